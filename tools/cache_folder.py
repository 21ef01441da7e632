"""Name the folder of compiled kernels after the code they were compiled from.

Numba's cache checks only the file of the function that it compiled: a cached loop keeps the old
code of a kernel that it calls from another file, and the old value of a constant. A folder named
after a hash of all code is never out of date. The hash is that of the Python files without comments
and docstrings. So an edited table or picture compiles nothing anew, and an edited sentence only the
functions of its own file, whose date Numba looks at. The Makefile and the tests get the name from
here:

    python tools/cache_folder.py .numba_cache src/gvf lab/src/gvf_lab
"""

import ast
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path


def cache_folder(parent: Path, sources: Sequence[Path]) -> Path:
    """Return the absolute path `parent/<hash of the code under all sources>`."""
    digest = hashlib.sha256()
    for source in sources:
        for path in sorted(source.rglob("*.py")):
            text = code_of(path.read_bytes())
            # With the length, two different trees cannot give the same bytes.
            place = f"{source.name}/{path.relative_to(source).as_posix()}"
            digest.update(f"{place}\0{len(text)}\0{text}".encode())
    return parent.resolve() / digest.hexdigest()[:16]


def code_of(source: bytes) -> str:
    """Return code without comments, docstrings and layout; any text, if it is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return repr(source)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                setattr(node, name, [line for line in body if not _is_text(line)])
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    """Return True for a statement that is nothing but a string, which no code can see."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


if __name__ == "__main__":
    print(cache_folder(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
