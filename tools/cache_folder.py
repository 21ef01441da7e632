"""Name the folder of compiled kernels after the source they were compiled from.

Numba's cache checks only the file of the function that it compiled: a cached loop keeps the old
code of a kernel that it calls from another file. A folder named after a hash of the whole source is
never out of date. Both the Makefile and the tests get the name from here:

    python tools/cache_folder.py src/gvf .numba_cache
"""

import hashlib
import sys
from pathlib import Path


def cache_folder(source: Path, parent: Path) -> Path:
    """Return the absolute path `parent/<hash of the names and contents under source>`."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            # With the length, two different trees cannot give the same bytes.
            digest.update(f"{path.relative_to(source).as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
    return parent.resolve() / digest.hexdigest()[:16]


if __name__ == "__main__":
    print(cache_folder(Path(sys.argv[1]), Path(sys.argv[2])))
