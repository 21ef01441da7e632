"""Products of matrices in compiled loops, at the speed of the processor.

:func:`add_product` adds a product to a matrix. It goes over tiles of ``MOST`` rows and up to three
vectors. The numbers of a tile stay in registers while the terms of their sums are added, so that
nearly all instructions are multiply-adds (Goto and van de Geijn 2008). A library's product
cannot be called from a compiled loop, has threads of its own, and may leave half of a processor's
speed unused, as MKL does on AMD.

Each number is one sum, added up in order. So it does not depend on the size of the matrices around
it, nor on how work is divided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from gvf.common.arrays import Array


def _machine() -> tuple[int, int]:
    """Return the bytes of a vector, and the rows of a tile that fits into the registers.

    They follow from the features that Numba compiles for, which are in the key of its cache. So two
    machines that share a cache do not get functions with each other's vectors.
    """
    target: Any = cpu_target.target_context
    *_, features = target.codegen().magic_tuple()
    has = features.split(",")
    if "+avx512f" in has:
        return 64, 8  # 32 registers
    return (32, 4) if "+avx2" in has else (16, 8 if "+neon" in has else 4)


BYTES, MOST = _machine()
"""The bytes of a vector, and the number of rows of a tile."""


def lanes_of(dtype: Any) -> int:
    """Return how many numbers a vector has."""
    return BYTES // np.dtype(dtype).itemsize


def aligned(count: int, dtype: Any) -> NDArray[Any]:
    """Return an array of so many numbers that begins where vectors are read fastest."""
    itemsize = np.dtype(dtype).itemsize
    room: Array = np.empty(count + BYTES // itemsize, dtype)
    first = -room.ctypes.data % BYTES // itemsize
    return room[first : first + count]


def _tile(rows: int, vectors: int) -> Any:
    """Make an intrinsic that adds the product of some rows and some vectors of columns.

    Its operands are arrays with the position of the first number, the distance of rows, and for the
    left factor the distance of columns; the others have neighbouring columns.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = signature.args[0].dtype
        bytes_each = number.bitwidth // 8
        lanes = BYTES // bytes_each
        vector = ir.VectorType(context.get_data_type(number), lanes)
        index = arguments[1].type
        out, out_at, out_row, left, left_at, left_row, left_column = arguments[:7]
        right, right_at, right_row, depth = arguments[7:]

        def start(position: int, array: Any, at: Any) -> Any:
            data = context.make_array(signature.args[position])(context, builder, array).data
            return builder.gep(data, [at])

        def of_row(base: Any, i: int, distance: Any, v: int = 0) -> Any:
            offset = builder.mul(index(i), distance)
            return builder.gep(base, [builder.add(offset, index(v * lanes))])

        def as_vector(pointer: Any) -> Any:
            return builder.bitcast(pointer, vector.as_pointer())

        out, left, right = start(0, out, out_at), start(3, left, left_at), start(7, right, right_at)
        tile = [(i, v) for i in range(rows) for v in range(vectors)]
        pointers = {(i, v): as_vector(of_row(out, i, out_row, v)) for i, v in tile}
        first = {at: builder.load(pointer, align=bytes_each) for at, pointer in pointers.items()}
        before = builder.block
        loop, done = (builder.append_basic_block(name) for name in ("terms", "done"))
        builder.cbranch(builder.icmp_signed(">", depth, index(0)), loop, done)

        builder.position_at_end(loop)
        k = builder.phi(index)
        sums = {at: builder.phi(vector) for at in tile}
        row = builder.gep(right, [builder.mul(k, right_row)])
        b = [
            builder.load(as_vector(of_row(row, 0, right_row, v)), align=bytes_each)
            for v in range(vectors)
        ]
        column = builder.gep(left, [builder.mul(k, left_column)])
        form = ir.FunctionType(vector, [vector] * 3)
        multiply_add = cgutils.get_or_insert_function(
            builder.module, form, f"llvm.fmuladd.v{lanes}f{8 * bytes_each}"
        )
        none, word = ir.Constant(vector, ir.Undefined), ir.IntType(32)
        everywhere = ir.Constant(ir.VectorType(word, lanes), [0] * lanes)
        next_sums = {}
        for i in range(rows):
            left_number = builder.load(of_row(column, i, left_row), align=bytes_each)
            a = builder.shuffle_vector(
                builder.insert_element(none, left_number, word(0)), none, everywhere
            )
            for v in range(vectors):
                next_sums[i, v] = builder.call(multiply_add, [a, b[v], sums[i, v]])
        after = builder.add(k, index(1))
        k.add_incoming(index(0), before)
        k.add_incoming(after, loop)
        for at in tile:
            sums[at].add_incoming(first[at], before)
            sums[at].add_incoming(next_sums[at], loop)
        builder.cbranch(builder.icmp_signed("<", after, depth), loop, done)

        builder.position_at_end(done)
        results = {at: builder.phi(vector) for at in tile}
        for at in tile:
            results[at].add_incoming(first[at], before)
            results[at].add_incoming(next_sums[at], loop)
        for at in tile:
            builder.store(results[at], pointers[at], align=bytes_each)
        return context.get_dummy_value()

    def typed(
        typing: Any,
        out: Any, out_at: Any, out_row: Any,
        left: Any, left_at: Any, left_row: Any, left_column: Any,
        right: Any, right_at: Any, right_row: Any,
        depth: Any,
    ) -> Any:  # fmt: skip
        n = types.intp
        return types.void(out, n, n, left, n, n, n, right, n, n, n), code

    return intrinsic(typed)


def _prefetch(typing: Any, array: Any, at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        builder.call(fetch, [pointer, word(0), word(3), word(1)])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp), code


prefetch: Any = intrinsic(_prefetch)
"""``prefetch(array, at)`` lets memory send a number of a contiguous array, and does not wait."""


def _strip(vectors: int) -> Any:
    """Make a function for some vectors of columns, from a column on, and any number of rows."""
    many, single = _tile(MOST, vectors), _tile(1, vectors)

    def strip(out, left, right, column, rows, depth):
        c, c_at, c_row = out
        a, a_at, a_row, a_column = left
        b, b_at, b_row = right
        c_at, b_at, i = c_at + column, b_at + column, 0
        while i + MOST <= rows:
            many(c, c_at, c_row, a, a_at, a_row, a_column, b, b_at, b_row, depth)
            c_at, a_at, i = c_at + MOST * c_row, a_at + MOST * a_row, i + MOST
        while i < rows:
            single(c, c_at, c_row, a, a_at, a_row, a_column, b, b_at, b_row, depth)
            c_at, a_at, i = c_at + c_row, a_at + a_row, i + 1

    # Numba may take compiled functions of one name for the same, if they come from its cache.
    strip.__qualname__ = f"strip_of_{vectors}"
    return njit(nogil=True)(strip)


_one_row, _two, _three = map(_strip, (1, 2, 3))


@njit(nogil=True)
def add_product(out, left, right, rows, columns, depth):
    """Add the product of two matrices to a third.

    Args:
        out: a flat array, the position of the first number, and the distance of rows. The columns
            are neighbours. Up to a whole number of vectors, what follows in a row is overwritten.
        left: a flat array, the position of the first number, and the distances of rows and of
            columns.
        right: like `out`; what follows in a row is read.
        rows: the number of rows.
        columns: the number of columns.
        depth: the number of terms of each sum.

    Numba compiles this anew for each constant in a tuple, unless it is written ``np.int64(0)``.
    """
    lanes, j = BYTES // out[0].itemsize, 0
    while j < columns:
        vectors = min(3, (columns - j + lanes - 1) // lanes)
        if vectors == 3:
            _three(out, left, right, j, rows, depth)
        elif vectors == 2:
            _two(out, left, right, j, rows, depth)
        else:
            _one_row(out, left, right, j, rows, depth)
        j += vectors * lanes
