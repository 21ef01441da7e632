"""Calls of compiled functions, from Python and from one another.

:func:`direct_entry` makes a call from Python cheap. :func:`compile_for`, :func:`address_of` and
:func:`call` let a compiled loop call kernels that were unknown when it was compiled.
:func:`unowned` avoids the counting of references to arrays inside such a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import Any, TypeVar

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, is_jitted

Function = TypeVar("Function", bound=Callable[..., Any])

_compiling = RLock()  # threads may ask for the same function at the same time


@cache
def direct_entry(kernel: Any, *types: Any) -> Callable[..., Any]:
    """Return a kernel's entry for arguments of exactly these types, which are not checked.

    Numba checks the types of all arguments at every call, which takes 100 ns and more. If a class
    owns the arrays, their types never change, and one check is enough.
    """
    kernel.compile(types)
    return kernel.overloads[types].entry_point


def once(make: Function) -> Function:
    """Call a function once for all threads, and keep its result."""
    cached = cache(make)

    @wraps(make)
    def one_at_a_time(*arguments: Any) -> Any:
        with _compiling:
            return cached(*arguments)

    return one_at_a_time  # pyright: ignore[reportReturnType]


def compile_for(function: Any, signature: Any) -> Callable[..., Any]:
    """Compile a loop for one signature and return its direct entry.

    The kernels that it calls are passed to it as addresses; see :func:`call`.
    """
    return direct_entry(njit(cache=True, nogil=True)(function), *signature.args)


def address_of(kernel: Any, signature: Any) -> int:
    """Compile a kernel for this signature and return its address, for :func:`call`."""
    if not is_jitted(kernel):
        raise TypeError(f"{kernel!r} must be compiled, by numba.njit")
    with _compiling:
        if signature.args not in kernel.overloads:
            kernel.compile(signature)
        compiled = kernel.overloads[signature.args]
        if compiled.signature.return_type != signature.return_type:
            raise TypeError(
                f"{kernel.__name__} must return {signature.return_type}, and returns "
                f"{compiled.signature.return_type}"
            )
        return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def _calling(returned: Any) -> Any:
    """Make an intrinsic that calls the kernel at an address with a tuple of arguments."""

    def typed(typing: Any, address: Any, arguments: Any) -> Any:
        for kind in arguments:
            for part in tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,):  # pyright: ignore[reportArgumentType]
                # Kernels are compiled for contiguous arrays, and nothing checks this at run time.
                if isinstance(part, types.Array) and part.layout != "C":
                    raise TypeError(f"a kernel takes contiguous arrays, not {part}")

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            form = convention.get_function_type(returned, tuple(arguments))
            callee = builder.inttoptr(values[0], form.as_pointer())
            parts = [builder.extract_value(values[1], i) for i in range(len(arguments))]
            status, result = convention.call_function(
                builder, callee, returned, tuple(arguments), parts
            )
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result if returned is types.float64 else context.get_dummy_value()

        return returned(types.int64, arguments), code

    return intrinsic(typed)


call: Any = _calling(types.void)
"""``call(address, (a, b))`` calls a kernel that returns nothing, in a compiled loop.

A loop is compiled once for all kernels of a signature, and a call costs a nanosecond or two. The
arguments must have exactly the types of the signature that the kernel was compiled for.
"""
call_float: Any = _calling(types.float64)
"""The same as ``call``, for a kernel that returns a number."""


def _unowned(typing: Any, arrays: Any) -> Any:
    """Return the same tuples of arrays without reference counts; the caller keeps them alive.

    Counting is atomic, and would take longer than a small update.
    """

    def release(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if not isinstance(kind, types.Array):
            for i, part in enumerate(kind):
                freed = release(context, builder, part, builder.extract_value(value, i))
                value = builder.insert_value(value, freed, i)
            return value
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return release(context, builder, arrays, arguments[0])

    return arrays(arrays), code


unowned: Any = intrinsic(_unowned)
