"""Names of the library's own parts, and references to objects in a user's modules.

A *reference* is ``"module:attribute"``, as in Gymnasium's entry points: the module is imported, and
the attribute is looked up in it. A reference in a file or on the command line therefore runs the
code of that module.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.machinery
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_LISTED = 8
"""The number of names that fit into a message."""


def known(name: str, names: Iterable[str], kind: str, more: str = "") -> str:
    """Return the name if it is known; otherwise raise ValueError with the nearest known names.

    Args:
        name: the name that a user has written.
        names: the known names.
        kind: the kind of thing that is named, for the message.
        more: a hint where to find all names, for the message.

    Example:
        >>> from gvf.common.part_names import known
        >>> known("IR", ["IR", "IS"], "method")
        'IR'
        >>> known("WIS", ["IR", "WIS-Buffer"], "method")
        Traceback (most recent call last):
        ValueError: unknown method: 'WIS'; did you mean 'WIS-Buffer'? Known are 'IR', 'WIS-Buffer'
    """
    names = list(names)
    if name in names:
        return name
    raise ValueError(f"unknown {kind}: {name!r}; {nearest(name, names, more)}")


def nearest(name: str, names: Iterable[str], more: str = "") -> str:
    """Return a hint for an unknown name: the nearest known names, and all if they are few.

    Args:
        name: the unknown name.
        names: the known names.
        more: a hint where to find all names.

    Example:
        >>> from gvf.common.part_names import nearest
        >>> runs = [f"run{i}" for i in range(12)]
        >>> nearest("rum5", runs, "`gvf study show STUDY` shows all")
        "did you mean 'run5'? (`gvf study show STUDY` shows all)"
        >>> nearest("moon", runs)
        "known are 'run0', 'run1', 'run2', 'run3', 'run4', 'run5', 'run6', 'run7' and 4 more"
    """
    names = list(names)
    near, few = close(name, names), ", ".join(map(repr, names[:MOST_LISTED])) or "none"
    hint = f"did you mean {' or '.join(map(repr, near))}?"
    if len(names) <= MOST_LISTED:
        hint = f"{hint} Known are {few}" if near else f"known are {few}"
    elif not near:
        hint = f"known are {few} and {len(names) - MOST_LISTED} more"
    return f"{hint} ({more})" if more else hint


def close(name: str, names: Iterable[str]) -> list[str]:
    """Return at most three names that are near a given name, the nearest first.

    They are the names that contain it, the shortest first, or else those with the most similar
    spelling. Capital letters and punctuation are ignored.

    Example:
        >>> from gvf.common.part_names import close
        >>> close("cartpole", ["CartPole-v1", "Pendulum-v1"])
        ['CartPole-v1']
        >>> close("four-room-gap", ["four-rooms-gap", "four-rooms-step-size", "quick-check"])
        ['four-rooms-gap']
    """
    name = _folded(str(name))
    folded = {_folded(other): other for other in reversed(list(names))}
    near = sorted((other for other in reversed(folded) if name in other), key=len)
    if len(name) < 3 or not near:
        near = difflib.get_close_matches(name, folded, n=3, cutoff=0.6)
        likeness = [difflib.SequenceMatcher(None, other, name).ratio() for other in near]
        near = [
            other for other, like in zip(near, likeness, strict=True) if like > likeness[0] - 0.1
        ]
    return [folded[other] for other in near[:3]]


def _folded(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name


def is_reference(name: str) -> bool:
    """Return True if a name has the form ``module:attribute``.

    Example:
        >>> from gvf.common.part_names import is_reference
        >>> is_reference("my_module:SquareRoot"), is_reference("IR")
        (True, False)
    """
    module, _, attribute = name.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def check_lasting(module: str, what: str) -> None:
    """Raise ValueError for code of a notebook, script or prompt, which cannot be imported.

    Example:
        >>> from gvf.common.part_names import check_lasting
        >>> check_lasting("__main__", "correction Mine")
        Traceback (most recent call last):
        ValueError: correction Mine is in __main__: put it into a module of its own, so that workers
        and later runs find the same code
    """
    if module in ("__main__", "__mp_main__"):
        raise ValueError(
            f"{what} is in {module}: put it into a module of its own, so that workers and later "
            "runs find the same code"
        )


def find(reference: str, kind: str) -> Any:
    """Import the object that a reference names.

    Args:
        reference: the reference, ``"module:attribute"``.
        kind: the expected kind of object, for messages.

    Example:
        >>> from gvf.common.part_names import find
        >>> find("gvf.corrections:IR", "correction")
        <class 'gvf.corrections.plain_corrections.IR'>
        >>> find("gvf.corrections:IRR", "correction")
        Traceback (most recent call last):
        ValueError: correction 'gvf.corrections:IRR': the module has no 'IRR'; did you mean 'IR'?
    """
    name, _, attribute = reference.partition(":")
    check_lasting(name, f"{kind} {reference!r}")
    try:
        part_of_module: Any = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            reason = f"the module needs {error.name!r}, which is not installed"
        else:
            reason = f"there is no module {error.name!r}, beside the file or on Python's path"
        raise ValueError(f"{kind} {reference!r}: {reason}") from error
    except (Exception, SystemExit) as error:
        reason = f"the module cannot be imported: {type(error).__name__}: {error}"
        raise ValueError(f"{kind} {reference!r}: {reason}") from error
    for part in attribute.split("."):
        if not hasattr(part_of_module, part):
            names = [other for other in vars(part_of_module) if not other.startswith("_")]
            near = close(part, names)[:1]
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{kind} {reference!r}: the module has no {part!r}{hint}")
        part_of_module = getattr(part_of_module, part)
    return part_of_module


def look_in(first: Path) -> None:
    """Put a folder first on Python's path, as Python does with the folder of a script."""
    name = str(first.resolve())
    if sys.path[:1] != [name]:
        sys.path[:] = [name, *(folder for folder in sys.path if folder != name)]


def check_same_module(reference: str) -> None:
    """Raise ValueError if a module was imported from another file than would be found now."""
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
