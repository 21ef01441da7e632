"""Names: of what the library knows, and of what a user's own module holds.

A *reference* is ``"module:attribute"``, as in Gymnasium's entry points: the module is imported, and
the attribute looked up in it. Whoever writes one, in a file or on the command line, lets that
module run.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.machinery
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def known(name: str, names: Iterable[str], kind: str) -> str:
    """The name itself, if it is one of those that are known.

    Example:
        >>> from gvf.common.names import known
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


def close(name: str, names: Iterable[str]) -> list[str]:
    """Up to three of the names that come near one, the nearest first.

    Example:
        >>> from gvf.common.names import close
        >>> close("cartpole", ["CartPole-v1", "Pendulum-v1"])
        ['CartPole-v1']
    """
    folded = {other.casefold(): other for other in reversed(list(names))}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    near = near or [other for other in folded if name and name.casefold() in other][:3]
    return [folded[one] for one in near]


def nearest(name: str, names: Iterable[str], listed: Iterable[str] | None = None) -> str:
    """What to say of a name that is not known: those that come near, then all of them.

    Args:
        name: which is not known.
        names: those that could be meant.
        listed: those that are told as known, where `names` are too many.
    """
    names = list(names)
    near = close(str(name), names)
    told = ", ".join(map(repr, names if listed is None else listed)) or "none"
    if not near:
        return f"known are {told}"
    return f"did you mean {' or '.join(map(repr, near))}? Known are {told}"


def is_reference(name: str) -> bool:
    """Whether a name is of the form ``module:attribute``.

    Example:
        >>> from gvf.common.names import is_reference
        >>> is_reference("my_module:SquareRoot"), is_reference("IR")
        (True, False)
    """
    module, _, attribute = name.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def check_lasting(module: str, told: str) -> None:
    """Refuse code of a notebook, a script or a prompt: nothing else can import it.

    Example:
        >>> from gvf.common.names import check_lasting
        >>> check_lasting("__main__", "correction Mine")
        Traceback (most recent call last):
        ValueError: correction Mine is in __main__: put it into a module of its own, so that workers
        and later runs find the same code
    """
    if module in ("__main__", "__mp_main__"):
        raise ValueError(
            f"{told} is in {module}: put it into a module of its own, so that workers and later "
            "runs find the same code"
        )


def find(reference: str, kind: str) -> Any:
    """What a reference stands for; the module is imported.

    Args:
        reference: ``"module:attribute"``.
        kind: what it is to be, for messages.

    Example:
        >>> from gvf.common.names import find
        >>> find("gvf.correction:IR", "correction")
        <class 'gvf.correction.table.IR'>
        >>> find("gvf.correction:IRR", "correction")
        Traceback (most recent call last):
        ValueError: correction 'gvf.correction:IRR': the module has no 'IRR'; did you mean 'IR'?
    """
    name, _, attribute = reference.partition(":")
    check_lasting(name, f"{kind} {reference!r}")
    try:
        found: Any = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            told = f"the module needs {error.name!r}, which is not installed"
        else:
            told = f"there is no module {error.name!r}, beside the file or on Python's path"
        raise ValueError(f"{kind} {reference!r}: {told}") from error
    except (Exception, SystemExit) as error:
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
    """Let modules be found in a folder first, as Python finds those beside a script."""
    name = str(folder.resolve())
    if sys.path[:1] != [name]:
        sys.path[:] = [name, *(place for place in sys.path if place != name)]


def check_place(reference: str) -> None:
    """Refuse a module that was imported from another folder than it would be found in now."""
    name = reference.partition(":")[0].partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None)
    spec = importlib.machinery.PathFinder.find_spec(name)
    if not (file and spec and spec.origin and Path(file).exists()):
        return
    if Path(spec.origin).read_bytes() != Path(file).read_bytes():
        raise ValueError(
            f"{reference!r} means a module in {Path(spec.origin).parent}, and another one of that "
            f"name is in use, from {Path(file).parent}: give one of them another name"
        )
