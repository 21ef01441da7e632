"""The inside of Numba, as the library uses it: a new release that changes it fails here first.

pyproject.toml caps the version. Before the cap is raised, these tests must pass with the new one.
"""

import re
from pathlib import Path
from typing import Any

import numba.extending
import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.registry import cpu_target

import gvf
from gvf.common import compiled, tiles, vector
from gvf.sampling.random_streams import addresses, next_double

SOURCE = Path(gvf.__file__).parent
USERS = {"common/compiled.py", "common/tiles.py", "common/vector.py", "sampling/random_streams.py"}
"""The files that write instructions, or read what a compiled function consists of."""
TARGET: Any = cpu_target.target_context
PARTS: dict[str, tuple[Any, list[str]]] = {
    "numba.core.cgutils": (
        cgutils,
        ["get_null_value", "get_or_insert_function", "if_unlikely"],
    ),
    "numba.extending": (
        numba.extending,
        ["intrinsic", "is_jitted", "models", "overload", "register_model"],
    ),
    "numba.types": (
        types,
        ["Array", "BaseTuple", "Integer", "IntegerLiteral", "Type", "float64", "int64", "intp",
         "uint64", "void"],
    ),
    "the context of compilation": (
        TARGET,
        ["call_conv", "cast", "codegen", "get_data_type", "get_dummy_value", "get_value_type",
         "make_array"],
    ),
    "the convention of calls": (
        TARGET.call_conv,
        ["call_function", "get_function_type", "return_status_propagate"],
    ),
    "a builder of instructions": (
        ir.IRBuilder,
        ["add", "append_basic_block", "bitcast", "call", "cbranch", "extract_value", "fadd",
         "fcmp_ordered", "fdiv", "fmul", "fsub", "gep", "icmp_signed", "insert_element",
         "insert_value", "inttoptr", "load", "mul", "phi", "position_at_end", "select",
         "shuffle_vector", "store"],
    ),
}  # fmt: skip


@njit
def _kernel(x, scale):
    for i in range(x.size):
        x[i] *= scale


@njit
def _total(x, scale):
    return scale * x.sum()


SIGNATURE = types.void(types.float64[::1], types.float64)
FLOAT_SIGNATURE = types.float64(types.float64[::1], types.float64)


@njit
def _loop(address, of_total, arrays, scale):
    (x,) = compiled.unowned(arrays)
    compiled.call(address, (x, scale))
    return compiled.call_float(of_total, (x, scale))


@njit
def _vectors(rows, out):
    like = vector.zeros(4)
    a, b = vector.load(like, rows, 0, 0), vector.load(like, rows, 1, 0)
    c = vector.absolute(a - b) / 2.0 + a * b
    vector.store(out, 0, 0, vector.choose(a, b, vector.root(c), c))


@njit
def _double(function, state):
    return next_double(function, state)


@njit
def _product(out, left, right):
    n = np.int64(0)
    tiles.prefetch(left, n)
    tiles.add_product((out, n, 16), (left, n, 3, 1), (right, n, 16), 2, 4, 3)


@pytest.mark.parametrize("part", PARTS)
def test_what_the_library_uses_is_there(part: str) -> None:
    owner, names = PARTS[part]
    missing = [name for name in names if not hasattr(owner, name)]
    assert not missing, f"{part} of Numba {numba.__version__} has no {missing}"


def test_the_inside_works_as_the_library_expects() -> None:
    """One small call of each: addresses, calls, freed references, vectors, products, numbers."""
    x = np.arange(4.0)
    address = compiled.address_of(_kernel, SIGNATURE)
    of_total = compiled.address_of(_total, FLOAT_SIGNATURE)
    assert _loop(address, of_total, (x,), 2.0) == 24.0
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0]
    compiled.direct_entry(_kernel, *SIGNATURE.args)(x, 0.5)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]

    rows, out = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 1.0, 6.0]]), np.zeros((1, 4))
    _vectors(rows, out)
    a, b = rows
    c = np.abs(a - b) / 2.0 + a * b
    np.testing.assert_array_equal(out[0], np.where(a < b, np.sqrt(c), c))

    rng, same = np.random.default_rng(3), np.random.default_rng(3)
    function, state = addresses(rng) or (0, 0)
    assert [_double(function, state) for _ in range(3)] == same.random(3).tolist()

    left, right = np.arange(6.0), np.zeros((3, 16))
    right[:, :4] = np.arange(12.0).reshape(3, 4)
    product = tiles.aligned(32, np.float64)
    product[:] = 0.0
    _product(product, left, right.ravel())
    expected = left.reshape(2, 3) @ right[:, :4]
    np.testing.assert_array_equal(product.reshape(2, 16)[:, :4], expected)
    assert tiles.BYTES in (16, 32, 64)


def test_no_other_file_uses_the_inside() -> None:
    inside = re.compile(r"^\s*(?:from|import) (?:llvmlite|numba\.core)\b", re.MULTILINE)
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if inside.search(path.read_text("utf-8"))
    }
    assert users == USERS
