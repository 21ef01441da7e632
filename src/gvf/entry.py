"""Direct entries into compiled functions, for calls that must not cost more than their work.

Numba looks at the types of all arguments at every call, 100 ns and more. Where a class owns the
arrays, their types never change, and one look is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def direct_entry(kernel: Any, *types: Any) -> Callable[..., Any]:
    """A kernel's entry for arguments of exactly these types: nothing checks them any more."""
    kernel.compile(types)
    return kernel.overloads[types].entry_point
