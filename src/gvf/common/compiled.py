"""Compiled functions: how they are entered from Python, and handed to one another.

Three needs, each with a function here: a call that must not cost more than its work
(:func:`direct_entry`), a compiled loop that calls kernels which it does not know
(:func:`compile_for`, :func:`address_of` and :func:`call`), and arrays whose owners are not counted
inside such a loop (:func:`unowned`).
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
    """A kernel's entry for arguments of exactly these types: nothing checks them any more.

    Numba looks at the types of all arguments at every call, 100 ns and more. Where a class owns
    the arrays, their types never change, and one look is enough.
    """
    kernel.compile(types)
    return kernel.overloads[types].entry_point


def once(make: Function) -> Function:
    """Call a function once for all threads, and remember what it made."""
    made = cache(make)

    @wraps(make)
    def one_at_a_time(*arguments: Any) -> Any:
        with _compiling:
            return made(*arguments)

    return one_at_a_time  # pyright: ignore[reportReturnType]


def compile_for(function: Any, signature: Any) -> Callable[..., Any]:
    """Compile a loop for one signature, and enter it directly.

    Kernels that it calls are handed to it as addresses: see :func:`call`.
    """
    return direct_entry(njit(cache=True, nogil=True)(function), *signature.args)


def address_of(kernel: Any, signature: Any) -> int:
    """Where a kernel, compiled for this signature, lies in memory; for :func:`call`."""
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
    """An intrinsic that calls the kernel at an address with a tuple of arguments."""

    def typed(typing: Any, address: Any, arguments: Any) -> Any:
        for kind in arguments:
            for part in tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,):  # pyright: ignore[reportArgumentType]
                # Kernels are compiled for such arrays, and nothing would check it at run time.
                if isinstance(part, types.Array) and part.layout != "C":
                    raise TypeError(f"a kernel takes contiguous arrays, not {part}")

        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            convention = context.call_conv
            form = convention.get_function_type(returned, tuple(arguments))
            callee = builder.inttoptr(given[0], form.as_pointer())
            parts = [builder.extract_value(given[1], i) for i in range(len(arguments))]
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
"""The same for a kernel that returns a number."""


def _unowned(typing: Any, arrays: Any) -> Any:
    """The same tuples of arrays, but nobody counts references: the caller keeps them alive.

    Counting is atomic, and a small update would take less time than the counts around it.
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
