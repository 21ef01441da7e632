"""Vectors of float64 in compiled code, one number for each of several neighbouring lanes.

Numba's loops over a few lanes spend more time on their entry than on their numbers. A vector has a
fixed width, so its operations are a few instructions, and a sum over many rows stays in registers:

    total = zeros(8)
    for row in rows:
        total += load(total, weights, row, lane)
    store(sums, 0, lane, total)

Each operation rounds as the same operation on single numbers does, so results have the same bits.
:func:`load`, :func:`store`, :func:`absolute`, :func:`root` and :func:`choose` also take single
numbers in place of vectors. One function then serves whole vectors and the lanes that are left.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

DOUBLE = ir.DoubleType()
compiled_only: Any = intrinsic
"""Makes a function for compiled code from its types and its instructions."""


class Vector(types.Type):
    """The compiled type of a vector of float64."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Vector({width})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(DOUBLE, kind.width))


def _vector(context: Any, builder: Any, kind: Any, argument: Any, wanted: Any) -> Any:
    """Return a vector as it is, and a number as a vector of copies."""
    if kind == wanted or not isinstance(wanted, Vector):
        return context.cast(builder, argument, kind, wanted)
    value = context.cast(builder, argument, kind, types.float64)
    undefined = ir.Constant(ir.VectorType(DOUBLE, wanted.width), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    copies = ir.Constant(ir.VectorType(ir.IntType(32), wanted.width), [0] * wanted.width)
    return builder.shuffle_vector(first, undefined, copies)


def _widest(*kinds: Any) -> Any:
    """Return the type of a result: that of the vectors among the arguments, else float64."""
    vectors = [kind for kind in kinds if isinstance(kind, Vector)]
    return vectors[0] if vectors else types.float64


@compiled_only
def zeros(typing: Any, width: Any) -> Any:
    """Return a vector of zeros; the width is a literal number."""
    if not isinstance(width, types.IntegerLiteral):
        return None
    result = Vector(width.literal_value)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _vector(context, builder, types.float64, ir.Constant(DOUBLE, 0.0), result)

    return result(width), code


def _pointer_to(context: Any, builder: Any, kind: Any, arguments: Any, result: Any) -> Any:
    """Return a pointer to the numbers of array [rows, lanes] at a row, from a lane on.

    An array [lanes] has only the row 0.
    """
    array = context.make_array(kind)(context, builder, arguments[0])
    lanes = builder.extract_value(array.shape, kind.ndim - 1)
    offset = builder.add(builder.mul(arguments[1], lanes), arguments[2])
    pointer = builder.gep(array.data, [offset])
    return builder.bitcast(pointer, context.get_value_type(result).as_pointer())


@compiled_only
def load(typing: Any, like: Any, array: Any, row: Any, lane: Any) -> Any:
    """Return the numbers of array [rows, lanes] at a row, from a lane on, as many as `like` has."""
    result = _widest(like)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer_to(context, builder, array, arguments[1:], result)
        return builder.load(pointer, align=8)

    return result(like, array, types.uint64, types.uint64), code


@compiled_only
def store(typing: Any, array: Any, row: Any, lane: Any, value: Any) -> Any:
    """Write a vector into array [rows, lanes] at a row, from a lane on."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(
            arguments[3], _pointer_to(context, builder, array, arguments[:3], value), align=8
        )
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64, value), code


def _elementary(name: str) -> Any:
    """Make a function of one vector from an instruction of LLVM."""

    @compiled_only
    def function(typing: Any, value: Any) -> Any:
        result = _widest(value)

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            form = context.get_value_type(result)
            suffix = f"v{result.width}f64" if isinstance(result, Vector) else "f64"
            called = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(form, [form]), f"llvm.{name}.{suffix}"
            )
            return builder.call(called, arguments)

        return result(result), code

    return function


absolute: Any = _elementary("fabs")
"""The absolute values of a vector."""
root: Any = _elementary("sqrt")
"""The square roots of a vector."""


@compiled_only
def choose(typing: Any, below: Any, limit: Any, then: Any, otherwise: Any) -> Any:
    """Return `then` where below < limit, else `otherwise`, number by number."""
    result = _widest(below, limit, then, otherwise)
    kinds = below, limit, then, otherwise

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b, yes, no = (
            _vector(context, builder, kind, value, result)
            for kind, value in zip(kinds, arguments, strict=True)
        )
        return builder.select(builder.fcmp_ordered("<", a, b), yes, no)

    return result(*kinds), code


def _operation(name: str, *operators: Any) -> None:
    """Give vectors an operator; numbers among its arguments are copied to all places."""

    @compiled_only
    def apply(typing: Any, a: Any, b: Any) -> Any:
        result = _widest(a, b)

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            left = _vector(context, builder, a, arguments[0], result)
            return getattr(builder, name)(left, _vector(context, builder, b, arguments[1], result))

        return result(a, b), code

    def typed(a, b):
        if isinstance(a, Vector) or isinstance(b, Vector):
            return lambda a, b: apply(a, b)
        return None

    for symbol in operators:
        overload(symbol)(typed)


_operation("fadd", operator.add, operator.iadd)
_operation("fsub", operator.sub, operator.isub)
_operation("fmul", operator.mul, operator.imul)
_operation("fdiv", operator.truediv, operator.itruediv)
