"""The users' code that results depend on: its digest, and its files for other machines.

A reference ``"module:attribute"`` leads to a module and to all modules that it imports. The user's
own modules are those whose files belong neither to Python, nor to this project, nor to an installed
package. Their files are sent to workers on other machines: Ray's own ``py_modules`` can only be set
when a program connects to a cluster, and a program may be connected already.

A digest keeps results of different code apart. Of the module itself, those statements count that
the attribute needs: the one that binds it, those that bind the names in it, and so on. Of modules
that these import the whole text counts. An installed package is only named, with its version.

There are three limits. Names and imports that are decided at run time (``globals()["f"]``,
``importlib.import_module``, a star that imports submodules) are not followed. Files that are not
imported, such as data, neither count nor are sent. And a file is read once, when its text is first
needed: if it was edited between the import and that moment, the edited text counts until the module
is reloaded.
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

from gvf.common.distribution import PACKAGES
from gvf.common.part_names import check_lasting

Files = Mapping[str, bytes]
"""Files by the paths under which they can be imported from one folder: ``package/module.py``."""


class _Module(NamedTuple):
    """A module of the user's own: the path to install it at, its file, and its content."""

    path: str
    file: Path
    is_package: bool
    content: bytes

    @property
    def is_text(self) -> bool:
        return self.path.endswith(".py")


def digest(references: Iterable[str]) -> dict[str, str]:
    """Compute a digest of the code of each reference; comments and blank lines do not count.

    For an installed package the digest is its name and version.

    Example:
        >>> from gvf.common.user_code import digest
        >>> list(digest(["gvf.corrections:IR"]))
        ['gvf.corrections:IR']
    """
    return {reference: _digest(reference) for reference in sorted(references)}


def files(references: Iterable[str]) -> dict[str, bytes]:
    """Return the files of references for :func:`install`, without those of installed packages.

    Example:
        >>> from gvf.common.user_code import files
        >>> files(["gvf.corrections:IR"])
        {}
    """
    modules = (module for name in references for module in _closure(_module_of(name)))
    return {module.path: module.content for module in modules}


def folders(references: Iterable[str]) -> list[str]:
    """Return the folders that must be on Python's path for the user's own modules."""
    roots = set()
    for module in (module for name in references for module in _closure(_module_of(name))):
        roots.add(str(module.file.absolute().parents[module.path.count("/")]))
    return sorted(roots)


_here: tuple[Path, dict[str, bytes]] | None = None


def install(sent: Files) -> None:
    """Let this process import the files that :func:`files` returned in another process.

    They replace other modules of the same names. They are written to a temporary folder of this
    process, which other processes do not use and other users cannot write to. The folder is removed
    when the process exits, but not when it is killed, as Ray kills workers.
    """
    global _here
    before = dict(_here[1]) if _here else {}
    if not sent or before == sent:
        return
    if _here:
        sys.path.remove(str(_here[0]))
    for path in {*before, *sent}:
        # Otherwise a module of the same name that was imported before would stay.
        sys.modules.pop(_import_name(path), None)
    folder = Path(tempfile.mkdtemp(prefix="gvf-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path, content in sent.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
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
    modules = _closure(module, reference.partition(":")[2].partition(".")[0])
    if modules:
        bare = sorted((part.path, _words(part)) for part in modules)
        return hashlib.sha256(repr(bare).encode()).hexdigest()[:16]
    package = module.partition(".")[0]
    if names := _distributions(package):
        return names
    if _spec(module) is None and package not in sys.stdlib_module_names:
        raise ValueError(
            f"{reference!r}: module {module!r} has no file, so that results of its code could not "
            "be told from those of other code"
        )
    return package


@cache
def _distributions(package: str) -> str:
    """Return the distributions of an installed package with versions; "" if unknown."""
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
    """Split a program into tokens, without comments and blank lines."""
    left_out = (tokenize.COMMENT, tokenize.NL)
    lines = io.StringIO(importlib.util.decode_source(content)).readline
    return [word.string for word in tokenize.generate_tokens(lines) if word.type not in left_out]


def _closure(begin: str, attribute: str = "") -> list[_Module]:
    """Find a module and all modules that it imports; return the user's own among them.

    With an attribute, the first module has only the statements that the attribute needs.
    """
    modules: dict[str, _Module | None] = {}
    todo = [*_with_packages(begin)]
    while todo:
        name = todo.pop()
        if name in modules:
            continue
        module = _user_module(name)
        if module is not None and module.is_text and attribute and name == begin:
            module = module._replace(content=_needed(module.content, attribute, str(module.file)))
        modules[name] = module
        if module is not None and module.is_text:
            todo += _imports(module.content, name, module.is_package, str(module.file))
    return [module for module in modules.values() if module is not None]


def _with_packages(name: str) -> Iterator[str]:
    """Iterate over a module's packages and the module itself, in the order of import."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts) + 1))


_read: dict[str, tuple[ModuleSpec, bytes]] = {}
"""The text of each module, as it was when its specification was first seen."""


def _user_module(name: str) -> _Module | None:
    """Find a module of the user's own; return None if it is installed or does not exist."""
    spec = _spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    file = Path(spec.origin)
    if is_installed(file) or not file.is_file():
        return None
    # Reloading a module makes a new specification.
    if name not in _read or _read[name][0] is not spec:
        _read[name] = spec, file.read_bytes()
    is_package = spec.submodule_search_locations is not None
    suffix = next((end for end in all_suffixes() if file.name.endswith(end)), ".py")
    path = name.replace(".", "/") + ("/__init__" if is_package else "") + suffix
    return _Module(path, file, is_package, _read[name][1])


def _spec(name: str) -> ModuleSpec | None:
    """Find a module's specification; unlike importlib's function, this imports nothing."""
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
        except KeyError:  # a folder without __init__.py in a package that is not imported
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(Path(root, last)) for root in path or ()]
        if spec is not None:
            return spec
    return None


def is_installed(file: Path) -> bool:
    """Return True if a file belongs to Python, this project or an installed package."""
    if {"site-packages", "dist-packages"} & {*file.parts}:
        return True
    return any(file.resolve().is_relative_to(root) for root in _installed_roots())


@cache
def _installed_roots() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    sites = [paths[site] for site in ("stdlib", "platstdlib", "purelib", "platlib")]
    specs = [_spec(package) for package in PACKAGES]
    ours = [root for spec in specs if spec for root in spec.submodule_search_locations or ()]
    return tuple(Path(root).resolve() for root in (*ours, *sites))


def _parsed(content: bytes, file: str) -> ast.Module:
    try:
        return ast.parse(importlib.util.decode_source(content))
    except (SyntaxError, ValueError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        message = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{file}{where} is not Python: {message}") from None


@lru_cache(maxsize=256)
def _needed(content: bytes, attribute: str, file: str) -> bytes:
    """Return the statements of a module that an attribute needs; all if none binds the attribute.

    A statement belongs to the names that it binds. One that binds none, such as ``f.scale = 2``,
    belongs to those that it mentions.
    """
    body = _parsed(content, file).body
    mentioned = [_names(statement) for statement in body]
    bound = [_bound(statement) for statement in body]
    needed, todo = set[int](), {attribute, "*"}
    if not any(attribute in names for names in bound):
        return content
    while todo:
        wanted, todo = todo, set[str]()
        for i, names in enumerate(mentioned):
            if i not in needed and wanted & (bound[i] or names):
                needed.add(i)
                todo |= names
    lines = importlib.util.decode_source(content).splitlines(keepends=True)
    parts = [lines[_first_line(body[i]) - 1 : body[i].end_lineno] for i in sorted(needed)]
    return "".join(line for part in parts for line in (*part, "\n")).encode()


def _names(statement: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _bound(statement: ast.AST) -> set[str]:
    """Return the names that a statement of a module binds in it."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Name):
        return {statement.id} if isinstance(statement.ctx, ast.Store) else set()
    return set[str]().union(*map(_bound, ast.iter_child_nodes(statement)))


def _first_line(statement: ast.stmt) -> int:
    return min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])


@lru_cache(maxsize=256)
def _imports(content: bytes, name: str, is_package: bool, file: str) -> list[str]:
    """List the names that a program imports; some may be attributes of modules, not modules."""
    tree = _parsed(content, file)
    package = name if is_package else name.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names += _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(filter(None, [*above, base]))
            if base:
                names += [*_with_packages(base), *(f"{base}.{alias.name}" for alias in node.names)]
    return names
