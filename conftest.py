"""Settings for every test and doctest, however pytest is started."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

from hypothesis import settings

from tools.cache_folder import cache_folder

ROOT = Path(__file__).parent

# Before anything imports Numba, which reads it once: see tools/cache_folder.py.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(cache_folder(ROOT / "src" / "gvf", ROOT / ".numba_cache"))
)
os.environ.setdefault("MPLBACKEND", "Agg")
# Small networks gain nothing from threads, and lose much where processors are shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Kernels for a GPU cannot be imported without Triton.
collect_ignore = [] if find_spec("triton") else ["src/gvf/horde/cuda_kernels.py"]

# The same examples every time, and compilation may take what it takes.
settings.register_profile("gvf", deadline=None, derandomize=True)
settings.load_profile("gvf")

# A shell starts background processes with SIGINT ignored, and some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
