"""The names that a house binds: which say how a value was come by, and which stand twice."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rooms import SOURCES

WORDS = frozenset(["found", "given", "one", "own", "told", "said", "shown", "there", "made"])
"""Names that say how a value was come by, and not what it is."""
MOST = 0.01
"""The share of names that may be such words."""


def sources(house: str) -> list[Path]:
    """Return the Python files of a house."""
    return sorted(SOURCES[house].rglob("*.py"))


def bound_names(text: str) -> Iterator[str]:
    """Yield every name that code binds: by assignment or loop, as argument, function or class."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def says_nothing(name: str) -> bool:
    """True for one of the words, also with underscores around it."""
    return name.strip("_") in WORDS


def share(house: str) -> float:
    """Return the share of the words among all names that a house binds."""
    names = [name for path in sources(house) for name in bound_names(path.read_text("utf-8"))]
    return sum(map(says_nothing, names)) / len(names)


def classes(text: str) -> Iterator[str]:
    """Yield the name of every class, also of private ones and of those inside others."""
    return (node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def repeated(names: Iterator[str]) -> set[str]:
    """Return the names that stand twice or more."""
    return {name for name, count in Counter(names).items() if count > 1}


def repeated_files(house: str) -> set[str]:
    """Return the file names that stand twice in a house; every room has an ``__init__``."""
    return repeated(path.stem for path in sources(house) if path.stem != "__init__")


def repeated_classes(house: str) -> set[str]:
    """Return the class names that stand twice in a house."""
    return repeated(name for path in sources(house) for name in classes(path.read_text("utf-8")))
