"""TorchRL's C++ part, which its prioritised buffer needs.

A wheel of TorchRL is built for one version of torch, and its C++ part may not load with another.
The wheel holds the sources, so in that case they are compiled here once, as a release build (about
half a minute), and kept in the virtual environment.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any


@cache
def load() -> tuple[ModuleType, str]:
    """Load TorchRL's C++ part, with a note on its origin; raise ImportError if there is none."""
    import torch  # noqa: F401 (its libraries have to be loaded first)

    spec = importlib.util.find_spec("torchrl")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("TorchRL is not installed")
    package = Path(next(iter(spec.submodule_search_locations)))
    try:
        library = next(iter(package.glob("_torchrl*.so")))
        found = importlib.util.spec_from_file_location("torchrl._torchrl", library)
        assert found is not None
        extension, note = importlib.util.module_from_spec(found), ""
    except (ImportError, StopIteration):
        extension = _compile(package / "csrc")
        note = f"the wheel's C++ part does not load with torch {version('torch')}; compiled here"
    sys.modules["torchrl._torchrl"] = extension  # so that `import torchrl` finds it
    return extension, note


def _compile(sources: Path) -> Any:
    import ninja
    from torch.utils import cpp_extension

    os.environ["PATH"] = f"{ninja.BIN_DIR}{os.pathsep}{os.environ['PATH']}"
    folder = Path(sys.prefix, f"torchrl-{version('torchrl')}-torch-{version('torch')}")
    if not folder.exists():
        print("compiling TorchRL's C++ part (half a minute, once) ...", file=sys.stderr)
        folder.mkdir()
    try:
        return cpp_extension.load(
            "_torchrl",
            [str(sources / name) for name in ("pybind.cpp", "utils.cpp")],
            extra_cflags=["-O3", "-DNDEBUG"],
            build_directory=str(folder),
        )
    except (RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ImportError(f"no C++ part for torch {version('torch')}: {reason}") from error
