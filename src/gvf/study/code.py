"""The code of users that a study names: what it is, and what another machine needs to have it.

A reference ``"module:attribute"`` leads to a module; with it goes every module that it imports from
the same place, as the text of its files. Of these the digest becomes part of a study's settings, so
that results of other code do not mix, and the text goes to workers that have never seen it. What is
installed as a package is only named, with its version: it must be installed there too. Files that
are not Python do not go along.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import sys
import sysconfig
import tempfile
import tokenize
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

Files = Mapping[str, str]
"""The text of Python files, by their paths below the folder that they are found in."""


def digest(references: Iterable[str]) -> dict[str, str]:
    """What the code behind references is, by reference; comments and blank lines do not count.

    Example:
        >>> from gvf.study.code import digest
        >>> list(digest(["gvf.correction:IR"]))
        ['gvf.correction:IR']
    """
    return {reference: _digest(reference.partition(":")[0]) for reference in sorted(references)}


def files(references: Iterable[str]) -> dict[str, str]:
    """The files behind references, for :func:`install`; those of installed packages are left out.

    Example:
        >>> from gvf.study.code import files
        >>> files(["gvf.correction:IR"])
        {}
    """
    found: dict[str, str] = {}
    for reference in references:
        found |= _files(reference.partition(":")[0])
    return found


def install(sent: Files) -> None:
    """Let this process import what :func:`files` gave in another one."""
    if not sent:
        return
    name = hashlib.sha256(repr(sorted(sent.items())).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"gvf-code-{name}"
    if str(folder) in sys.path:
        return
    for path, text in sent.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))


@cache
def _digest(module: str) -> str:
    sources = _files(module)
    if not sources:
        package = module.partition(".")[0]
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            return package
    bare = sorted((path, _bare(text)) for path, text in sources.items())
    return hashlib.sha256(repr(bare).encode()).hexdigest()[:16]


def _bare(text: str) -> list[str]:
    """The words of a program, without comments and blank lines."""
    left_out = (tokenize.COMMENT, tokenize.NL)
    words = tokenize.generate_tokens(io.StringIO(text).readline)
    return [word.string for word in words if word.type not in left_out]


@cache
def _files(module: str) -> dict[str, str]:
    start = _path(module)
    if start is None or _is_installed(start):
        return {}
    parts = module.split(".")
    root = start.parent.parent if start.name == "__init__.py" else start.parent
    for _ in parts[1:]:
        root = root.parent
    found: dict[str, str] = {}
    todo = [start, *(root.joinpath(*parts[:n], "__init__.py") for n in range(1, len(parts)))]
    while todo:
        path = todo.pop()
        name = path.relative_to(root).as_posix()
        if name in found or not path.is_file():
            continue
        found[name] = path.read_text(encoding="utf-8")
        todo += _imported(found[name], path, root)
    return found


def _path(module: str) -> Path | None:
    """The file of a module."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
        file = spec.origin if spec else None
    return Path(file).resolve() if file and file.endswith(".py") else None


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to Python, gvf or an installed package."""
    ours = Path(__file__).resolve().parents[1]
    paths = [ours, *(sysconfig.get_paths()[site] for site in ("stdlib", "purelib", "platlib"))]
    return any(path.is_relative_to(place) for place in paths)


def _imported(text: str, path: Path, root: Path) -> list[Path]:
    """The files below a root that a program imports."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [(root, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = root if node.level == 0 else path.parents[node.level - 1]
            module = node.module or ""
            names = [(base, module), *((base, f"{module}.{n.name}") for n in node.names)]
        else:
            continue
        for base, name in names:
            place = base.joinpath(*filter(None, name.split(".")))
            found += [place.with_suffix(".py"), place / "__init__.py"]
            if base == root:
                above = name.split(".")[:-1]
                found += [
                    root.joinpath(*above[:n], "__init__.py") for n in range(1, len(above) + 1)
                ]
    return [file for file in found if file.is_file() and file.is_relative_to(root)]
