"""The code of users that a study names: what it is, and what another machine needs to have it.

A reference ``"module:attribute"`` leads to a module, and this to those that it imports. The user's
own are all whose files belong neither to Python, nor to gvf, nor to an installed package, wherever
they lie on Python's path. The digest of their text becomes part of a study's settings, so that
results of other code do not mix, and the files go to workers that have never seen them. An
installed package is only named, with its version: it must be installed there too.

Three things are not seen. Imports that only running code can tell (``importlib.import_module``, a
star that imports submodules) are not followed. Files that are not imported, such as data, do not
count and do not go along. And a text is read once, when it is first asked for: a module that was
edited after its import, and before that, counts as what its file says, until it is reloaded.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import importlib.util
import io
import shutil
import sys
import sysconfig
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec, all_suffixes
from pathlib import Path
from typing import NamedTuple

from gvf.common.names import check_lasting

Files = Mapping[str, bytes]
"""Files by the paths under which they can be imported from one folder: ``package/module.py``."""


class _Module(NamedTuple):
    """A module of the user's own: where it goes, its file, and whether it is a package."""

    path: str
    file: Path
    is_package: bool
    content: bytes

    @property
    def is_text(self) -> bool:
        return self.path.endswith(".py")


def digest(references: Iterable[str]) -> dict[str, str]:
    """What the code behind references is, by reference; comments and blank lines do not count.

    Of an installed package it is its name and version.

    Example:
        >>> from gvf.common.code import digest
        >>> list(digest(["gvf.correction:IR"]))
        ['gvf.correction:IR']
    """
    return {reference: _digest(reference) for reference in sorted(references)}


def files(references: Iterable[str]) -> dict[str, bytes]:
    """The files behind references, for :func:`install`; those of installed packages are left out.

    Example:
        >>> from gvf.common.code import files
        >>> files(["gvf.correction:IR"])
        {}
    """
    return {one.path: one.content for name in references for one in _closure(_module_of(name))}


def folders(references: Iterable[str]) -> list[str]:
    """The folders that must be on Python's path for the user's own modules behind references."""
    found = set()
    for one in (one for name in references for one in _closure(_module_of(name))):
        found.add(str(one.file.absolute().parents[one.path.count("/")]))
    return sorted(found)


_here: tuple[Path, dict[str, bytes]] | None = None


def install(sent: Files) -> None:
    """Let this process import what :func:`files` gave in another one, and nothing else by its name.

    The files are in a folder of this process alone: others may do the same at the same time, and
    other users can put nothing there. It is removed when the process ends by itself; workers that
    are killed, as Ray does, leave it in the folder for temporary files, beside Ray's own logs.
    """
    global _here
    before = dict(_here[1]) if _here else {}
    if not sent or before == sent:
        return
    if _here:
        sys.path.remove(str(_here[0]))
    for path in {*before, *sent}:
        # Else other code of the same name, if it was imported before, would stay.
        sys.modules.pop(_import_name(path), None)
    folder = Path(tempfile.mkdtemp(prefix="gvf-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path, content in sent.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    _here = folder, dict(sent)


def _import_name(path: str) -> str:
    above, _, file = path.rpartition("/")
    name = file.partition(".")[0]
    parts = [*filter(None, above.split("/")), *([] if name == "__init__" else [name])]
    return ".".join(parts)


def _module_of(reference: str) -> str:
    module = reference.partition(":")[0]
    check_lasting(module, reference)
    return module


def _digest(reference: str) -> str:
    module = _module_of(reference)
    own = _closure(module)
    if own:
        bare = sorted((one.path, _words(one)) for one in own)
        return hashlib.sha256(repr(bare).encode()).hexdigest()[:16]
    package = module.partition(".")[0]
    if found := _distributions(package):
        return found
    if _spec(module) is None and package not in sys.stdlib_module_names:
        raise ValueError(
            f"{reference!r}: module {module!r} has no file, so that results of its code could not "
            "be told from those of other code"
        )
    return package


@cache
def _distributions(package: str) -> str:
    """What an installed package belongs to, with its version; nothing where that is not known."""
    names = metadata.packages_distributions().get(package, [package])
    try:
        return ", ".join(sorted({f"{name} {metadata.version(name)}" for name in names}))
    except metadata.PackageNotFoundError:
        return ""


def _words(module: _Module) -> list[str]:
    if module.is_text:
        return _bare(module.content)
    return [hashlib.sha256(module.content).hexdigest()]


@lru_cache(maxsize=256)
def _bare(content: bytes) -> list[str]:
    """The words of a program, without comments and blank lines."""
    left_out = (tokenize.COMMENT, tokenize.NL)
    lines = io.StringIO(importlib.util.decode_source(content)).readline
    return [word.string for word in tokenize.generate_tokens(lines) if word.type not in left_out]


def _closure(module: str) -> list[_Module]:
    """A module and all that it imports, as far as they are the user's own."""
    found: dict[str, _Module | None] = {}
    todo = [*_with_packages(module)]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = one = _own(name)
        if one is not None and one.is_text:
            todo += _imports(one.content, name, one.is_package, str(one.file))
    return [one for one in found.values() if one is not None]


def _with_packages(name: str) -> Iterator[str]:
    """A module, and the packages that are imported before it."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts) + 1))


_read: dict[str, tuple[ModuleSpec, bytes]] = {}
"""The text of a module that is loaded, as it was when its specification was first seen."""


def _own(name: str) -> _Module | None:
    """A module of the user's own; None where it is installed, or there is none."""
    spec = _spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    file = Path(spec.origin)
    if _is_installed(file) or not file.is_file():
        return None
    # Reloading makes a new specification.
    if name not in _read or _read[name][0] is not spec:
        _read[name] = spec, file.read_bytes()
    is_package = spec.submodule_search_locations is not None
    suffix = next((end for end in all_suffixes() if file.name.endswith(end)), ".py")
    path = name.replace(".", "/") + ("/__init__" if is_package else "") + suffix
    return _Module(path, file, is_package, _read[name][1])


def _spec(name: str) -> ModuleSpec | None:
    """Where a module comes from, or would come from: unlike importlib's, this imports nothing."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is not None:
        return spec
    above, _, last = name.rpartition(".")
    path = None
    if above:
        package = _spec(above)
        if package is None or package.submodule_search_locations is None:
            return None
        path = list(package.submodule_search_locations)
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except KeyError:  # a folder without __init__.py, in a package that is not imported
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(Path(place, last)) for place in path or ()]
        if spec is not None:
            return spec
    return None


def _is_installed(file: Path) -> bool:
    """Whether a file belongs to Python, gvf or an installed package."""
    if {"site-packages", "dist-packages"} & {*file.parts}:
        return True
    return any(file.resolve().is_relative_to(place) for place in _places())


@cache
def _places() -> tuple[Path, ...]:
    ours = Path(__file__).resolve().parents[1]
    sites = [sysconfig.get_paths()[site] for site in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (ours, *(Path(site).resolve() for site in sites))


@lru_cache(maxsize=256)
def _imports(content: bytes, name: str, is_package: bool, file: str) -> list[str]:
    """The modules that a program may import; some may be no modules, but what is in them."""
    try:
        tree = ast.parse(importlib.util.decode_source(content))
    except (SyntaxError, ValueError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        told = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{file}{where} is not Python: {told}") from None
    package = name if is_package else name.rpartition(".")[0]
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found += _with_packages(one.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(filter(None, [*above, base]))
            if base:
                found += [*_with_packages(base), *(f"{base}.{one.name}" for one in node.names)]
    return found
