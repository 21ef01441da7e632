"""The look of a GPU's watch, against that of the processor.

Without a GPU, Triton's interpreter runs the kernel; without Triton there is nothing to run.
"""

import os
from importlib.util import find_spec

import numpy as np
import pytest
from many_learners import asked

import gvf
from gvf.horde.layout import Layout
from gvf.horde.watch import Watch

torch = pytest.importorskip("torch")
if find_spec("triton") is None:
    pytest.skip("needs Triton", allow_module_level=True)
GPU = torch.cuda.is_available()
if not GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are imported

from gvf.horde import cuda_watch  # noqa: E402
from gvf.horde import cuda_weights as cuda  # noqa: E402

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
N, SIZE = 70, 75


def rows_of(layout, rng, dtype):
    """Columns of a window with random numbers."""
    sources = 1 + len(layout.signals)
    return {
        "x": rng.normal(size=(N, SIZE)).astype(dtype),
        "x_next": rng.normal(size=(N, SIZE)).astype(dtype),
        "cumulant": rng.normal(size=(N, len(layout.cumulants))).astype(dtype),
        "continuation": rng.random((N, sources)).astype(dtype),
    }


def both(dtype, count, rupee, questions=None):
    """A watch of each kind, and the weights that they look at."""
    layout = Layout(questions or asked(), gvf.corrections.IR())
    engine = cuda.TorchWeights(layout, 0.1, SIZE, np.dtype(dtype), "cuda" if GPU else "cpu")
    kinds = Watch, cuda_watch.DeviceWatch
    return engine, [kind(layout, count, SIZE * rupee, np.dtype(dtype)) for kind in kinds]


def assert_equal_watches(watches, dtype):
    here, there = (watch.state_dict() for watch in watches)
    assert here.keys() == there.keys()
    for name in here:
        np.testing.assert_allclose(
            there[name], here[name], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=name
        )


@pytest.mark.parametrize("padding", [1, 64])
@pytest.mark.parametrize("rupee", [False, True])
@pytest.mark.parametrize("count", [1, 5, 16, 64])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_look_is_that_of_the_processor(dtype, count, rupee, padding, monkeypatch):
    monkeypatch.setattr(cuda.TorchWeights, "padding", padding)
    rng = np.random.default_rng(count)
    engine, watches = both(dtype, count, rupee)
    layout = watches[0]._layout
    places = np.arange(len(layout))
    columns = rows_of(layout, rng, dtype)
    for look in range(4):
        engine.put(places, {"weights": rng.normal(size=(len(layout), SIZE))})
        resting = np.array([[], [3], [], [0, len(layout) - 1]][look], np.int64)
        ratios = rng.lognormal(size=(layout.groups, count))
        steps = 75 + 61 * look  # some of the rows are at both ends of the window
        engine._copied = 0  # all rows are new
        for watch in watches:
            watch.look(columns, steps, engine, ratios, resting)
        columns = {name: rng.permuted(column) for name, column in columns.items()}
    assert_equal_watches(watches, dtype)
    assert len({*watches[0].seen.tolist()}) == 2
    assert (watches[0].recent != 0.0).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the interpreter
@pytest.mark.parametrize(("weight", "ratio"), [(np.nan, 1.0), (np.inf, 1.0), (1e30, 1e300)])
def test_a_question_whose_errors_are_too_large_disturbs_nobody(weight, ratio):
    rng = np.random.default_rng(0)
    engine, watches = both("float32", 16, True)
    layout = watches[0]._layout
    weights = rng.normal(size=(len(layout), SIZE))
    weights[2] *= weight
    engine.put(np.arange(len(layout)), {"weights": weights})
    columns, ratios = rows_of(layout, rng, np.float32), rng.lognormal(size=(layout.groups, 16))
    ratios[layout.group[2]] *= ratio
    for watch in watches:
        watch.look(columns, 64, engine, ratios, np.array([], np.int64))
    assert_equal_watches(watches, "float32")
    assert watches[0].seen[2] == 0
    assert watches[0].seen.max() == 16


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_rows_do_not_count():
    rng = np.random.default_rng(3)
    engine, watches = both("float32", 5, True)
    layout = watches[0]._layout
    engine.put(np.arange(len(layout)), {"weights": 10 * rng.normal(size=(len(layout), SIZE))})
    columns = rows_of(layout, rng, np.float32)
    columns["x"][:59] = columns["x"][64:] = np.finfo(np.float32).max
    ratios = rng.lognormal(size=(layout.groups, 5))
    for watch in watches:
        watch.look(columns, 64, engine, ratios, np.array([], np.int64))
    assert (watches[0].seen == 5).all()
    assert_equal_watches(watches, "float32")


def test_many_questions_are_looked_at_tile_by_tile():
    rng = np.random.default_rng(1)
    signals = gvf.SignalBank("signals", 90)
    policies = {
        str(i): gvf.policies.Fixed(row) for i, row in enumerate(rng.dirichlet(np.ones(3), size=2))
    }
    engine, watches = both("float32", 16, True, gvf.question_grid(policies, signals, [0.5, 0.9]))
    layout = watches[0]._layout
    assert len(layout) % 64
    engine.put(np.arange(len(layout)), {"weights": rng.normal(size=(len(layout), SIZE))})
    columns, ratios = rows_of(layout, rng, np.float32), rng.lognormal(size=(2, 16))
    for watch in watches:
        watch.look(columns, 80, engine, ratios, np.array([70, 300]))
    assert_equal_watches(watches, "float32")


class FakeKernel:
    """A kernel that counts its launches; `compiled` is launched once it has been looked up."""

    def __init__(self, compiled=None):
        self.compiled, self.launches = compiled, []

    def __getitem__(self, grid):
        def launch(*arguments, **_):
            self.launches.append((grid, len(arguments)))
            return self.compiled

        return launch


def test_a_compiled_kernel_is_looked_up_once_for_each_case(monkeypatch):
    from gvf.horde import cuda_kernels

    compiled = FakeKernel()
    lookup = FakeKernel(compiled)
    monkeypatch.setattr(cuda_kernels, "_watch", lookup)
    rng = np.random.default_rng(4)
    engine, (_, watch) = both("float32", 64, False)
    columns, seen = rows_of(watch._layout, rng, np.float32), []
    for count, resting in ((16, []), (5, []), (16, [1]), (9, [2]), (40, []), (40, [])):
        ratios = rng.lognormal(size=(watch._layout.groups, count))
        watch.look(columns, 64, engine, ratios, np.array(resting, np.int64))
        seen.append((len(lookup.launches), len(compiled.launches)))
    assert seen == [(1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
    assert len({*lookup.launches, *compiled.launches}) == 1


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.skipif(not GPU, reason="there is no CUDA device")
def test_a_look_never_waits_for_the_gpu():
    rng = np.random.default_rng(2)
    engine, (_, watch) = both("float32", 16, True)
    columns = rows_of(watch._layout, rng, np.float32)
    ratios = rng.lognormal(size=(watch._layout.groups, 16))
    watch.look(columns, 64, engine, ratios, np.array([], np.int64))  # which makes its arrays
    try:
        torch.cuda.set_sync_debug_mode("error")
        for resting in ([], [1, 2]):
            watch.look(columns, 64 + N, engine, ratios, np.array(resting, np.int64))
    finally:
        torch.cuda.set_sync_debug_mode("default")
