"""The numbers of a NumPy Generator, inside compiled code.

A call of ``Generator.random`` costs half a microsecond before its first number, as much as sixteen
draws. NumPy publishes the addresses of a bit generator's function and state (its ``ctypes``
interface), so a kernel can call the function itself. The kernel gets the same numbers in the same
order, and the generator's state moves on. Only one thread may use a generator at a time.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# NumPy's own bit generators: all instances of one type share one function.
KNOWN_GENERATORS = (
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.MT19937,
    np.random.Philox,
    np.random.SFC64,
)
_functions: dict[type, int] = {}


def addresses(rng: np.random.Generator) -> tuple[int, int] | None:
    """Return the addresses of the generator's function and state; None if it is not NumPy's."""
    bits = rng.bit_generator
    function = _functions.get(type(bits))
    if function is None:
        if type(bits) not in KNOWN_GENERATORS:
            return None
        function = ctypes.cast(bits.ctypes.next_double, ctypes.c_void_p).value or 0
        _functions[type(bits)] = function
    return function, bits.ctypes.state_address


def native(rng: np.random.Generator) -> np.random.Generator:
    """Return the generator itself if it is NumPy's, else a NumPy one seeded by its numbers."""
    if type(rng.bit_generator) in KNOWN_GENERATORS:
        return rng
    return np.random.default_rng(rng.integers(2**63, size=4))


def _next_double(typing_context: Any, function: Any, state: Any) -> Any:
    """Return the next number of the generator with this function and state (two addresses)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.DoubleType(), [pointer])
        callee = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(callee, [builder.inttoptr(arguments[1], pointer)])

    return types.float64(types.int64, types.int64), generate


next_double: Any = intrinsic(_next_double)
