"""Settings for every test and doctest, however pytest is started."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from tools.cache_folder import cache_folder

ROOT = Path(__file__).parent
LONG = {
    name
    for file in ("tests/long.txt", "lab/tests/long.txt")
    for name in (ROOT / file).read_text("utf-8").split()
}
"""The tests that take a second or more."""
pytest_plugins = ["shared_fixtures"]  # tests/shared_fixtures.py, for both houses

# Before anything imports Numba, which reads it once: see tools/cache_folder.py.
if "NUMBA_CACHE_DIR" not in os.environ:
    sources = [ROOT / "src" / "gvf", ROOT / "lab" / "src" / "gvf_lab"]
    os.environ["NUMBA_CACHE_DIR"] = str(cache_folder(ROOT / ".numba_cache", sources))
os.environ.setdefault("MPLBACKEND", "Agg")
# Small networks gain nothing from threads, and lose much where processors are shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Kernels for a GPU cannot be imported without Triton.
collect_ignore = [] if find_spec("triton") else ["src/gvf/horde/cuda_kernels.py"]
# The example of logistic regression needs scikit-learn, which all environments of `make` have.
if find_spec("sklearn") is None:
    collect_ignore += ["src/gvf/behaviour/classifiers.py"]
# What needs PyTorch is not for `make quick`, wherever PyTorch is installed.
if os.environ.get("GVF_QUICK") or find_spec("torch") is None:
    collect_ignore += ["src/gvf/horde/cuda_watch.py", "src/gvf/horde/cuda_weights.py"]
    collect_ignore += ["src/gvf/neural", "tests/neural"]
    collect_ignore += ["lab/src/gvf_lab/racing", "lab/tests/racing", "lab/tests/racing_by_hand.py"]

# The same examples every time, and compilation may take what it takes.
settings.register_profile("gvf", deadline=None, derandomize=True)
settings.load_profile("gvf")

# A shell starts background processes with SIGINT ignored, and some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that tests/long.txt and lab/tests/long.txt list."""
    for item in items:
        if item.nodeid.split("[")[0] in LONG:
            item.add_marker("long")
