"""Names: of what the library knows, and of what a user's own module holds.

A *reference* is ``"module:attribute"``, as in Gymnasium's entry points: the module is imported, and
the attribute looked up in it. Whoever writes one, in a file or on the command line, lets that
module run.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def known(name: str, names: Iterable[str], kind: str) -> str:
    """The name itself, if it is one of those that are known.

    Example:
        >>> from gvf.names import known
        >>> known("IR", ["IR", "IS"], "method")
        'IR'
        >>> known("WIS", ["IR", "WIS-Buffer"], "method")
        Traceback (most recent call last):
        ValueError: unknown method: 'WIS'; did you mean 'WIS-Buffer'? Known are 'IR', 'WIS-Buffer'
    """
    names = list(names)
    if name in names:
        return name
    raise ValueError(f"unknown {kind}: {name!r}; {nearest(name, names)}")


def nearest(name: str, names: Iterable[str]) -> str:
    """What to say of a name that is not known: those that come near, then all of them."""
    name, names = str(name), list(names)
    folded = {known.casefold(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    close = close or [other for other in folded if name and name.casefold() in other][:3]
    listed = ", ".join(map(repr, names)) or "none"
    if not close:
        return f"known are {listed}"
    return f"did you mean {' or '.join(repr(folded[one]) for one in close)}? Known are {listed}"


def is_reference(name: str) -> bool:
    """Whether a name is of the form ``module:attribute``.

    Example:
        >>> from gvf.names import is_reference
        >>> is_reference("my_module:SquareRoot"), is_reference("IR")
        (True, False)
    """
    module, _, attribute = name.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def find(reference: str, kind: str) -> Any:
    """What a reference stands for; the module is imported.

    Args:
        reference: ``"module:attribute"``.
        kind: what it is to be, for messages.

    Example:
        >>> from gvf.names import find
        >>> find("gvf.correction:IR", "correction")
        <class 'gvf.correction.table.IR'>
        >>> find("gvf.correction:IRR", "correction")
        Traceback (most recent call last):
        ValueError: correction 'gvf.correction:IRR': the module has no 'IRR'; did you mean 'IR'?
    """
    name, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            told = f"the module needs {error.name!r}, which is not installed"
        else:
            told = f"there is no module {error.name!r}, beside the file or on Python's path"
        raise ValueError(f"{kind} {reference!r}: {told}") from error
    except Exception as error:
        told = f"the module cannot be imported: {type(error).__name__}: {error}"
        raise ValueError(f"{kind} {reference!r}: {told}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            there = [other for other in vars(found) if not other.startswith("_")]
            close = difflib.get_close_matches(part, there, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"{kind} {reference!r}: the module has no {part!r}{hint}")
        found = getattr(found, part)
    return found


def look_in(folder: Path) -> None:
    """Let modules be found in a folder too, as Python finds those beside a script."""
    name = str(folder.resolve())
    if name not in sys.path:
        sys.path.insert(0, name)
