"""A horde on a device gives the answers of one on the processor: the same draws, other products.

The products are tried on the processor, too. The kernels need a GPU.
"""

import sys
from dataclasses import fields, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from many_learners import BEHAVIOUR, CORRECTIONS, asked, record, stream

import gvf
from gvf.horde import choose_weights as choice
from gvf.horde import watch
from gvf.horde.shard import Shard

torch = pytest.importorskip("torch")

from gvf.horde import cuda_weights as cuda  # noqa: E402

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
TOLERANCE = {"float64": 1e-12, "float32": 1e-4, "tf32": 2e-2}
KINDS = [
    ("products", "float64"),
    ("products", "float32"),
    *(pytest.param(("cuda", dtype), marks=GPU) for dtype in TOLERANCE),
]


def some_features(size):
    """Dense features of states in [0, 1)^2."""
    turned = np.random.default_rng(5).normal(size=(2, size))
    return gvf.features.Dense(size, lambda s: np.cos(s @ turned) / np.sqrt(size))


def inside(transitions):
    """A continuation that depends on the state."""
    return np.where(transitions["next_state"][:, 0] > 0.4, 1, 0)


def many(cumulants):
    """Three policies with different numbers of cumulants and continuations."""
    signals = gvf.SignalBank(lambda t: np.outer(t.reward, np.linspace(1, 2, cumulants)), cumulants)
    policies = {
        str(i): gvf.policies.Fixed(p) for i, p in enumerate(([0.2, 0.3, 0.5], [0.6, 0.2, 0.2]))
    }
    some = gvf.question_grid(policies, signals, [0.5, 0.9])
    return [
        *some,
        *gvf.question_grid({"never 2": gvf.policies.Always(1, 3)}, {"reward": "reward"}, [0.3]),
    ]


def look_here(weights, columns, places, averages, steps, ratios, resting, inverse):
    """The kernel of a look on the processor; test_cuda_watch tries the kernel itself."""
    columns = {name: column.numpy() for name, column in columns.items()}
    newest = watch.newest_rows(columns, steps, ratios.shape[1])
    x, x_next, cumulants, continuation = (column[newest] for column in columns.values())
    values = np.concatenate([x, x_next]) @ weights.numpy().T
    usable = np.ones(len(weights), bool) if resting is None else ~resting.numpy()
    *by_place, h, m = (part.numpy() for part in averages)
    y = np.zeros((len(newest), len(weights)))
    watch._average(
        (values, cumulants, continuation, ratios.numpy()),
        tuple(part.numpy() for part in places), tuple(by_place), usable, y,
    )  # fmt: skip
    if inverse is not None:
        h += x.T @ np.where(usable, inverse.numpy() @ (y - x @ h), 0.0).astype(h.dtype)
        kept = (1.0 - 1.0 / watch.RECENT) ** np.arange(len(newest) + 1)
        m *= np.where(usable, kept[-1], 1.0).astype(m.dtype)
        m += x.T @ (kept[-2::-1, None] / watch.RECENT * y).astype(m.dtype)


class Products(choice.LinearWeights):
    """The weights of a device, on the processor."""

    def new_weights(self, layout, dense, options, steps_per_call):
        step_size = getattr(self.update, "step_size", None) or 0.0
        return cuda.TorchWeights(layout, step_size, self.size, self.dtype, "cpu")


@pytest.fixture(params=KINDS, ids="-".join)
def kind(request, monkeypatch):
    """A kind of weights and a precision; hordes with the option `there` have these weights."""
    name, dtype = request.param
    if name == "products":
        monkeypatch.setattr(choice.Device, "memory", 10**9)
        kernels = SimpleNamespace(Look=partial(partial, look_here))  # the real ones need Triton
        monkeypatch.setitem(sys.modules, "gvf.horde.cuda_kernels", kernels)
    return name, dtype


def made(kind, questions, features, update=None, there=True, **options):
    """A horde on the device, or `there=False` the same on the processor."""
    name, dtype = kind
    single = "float64" if dtype == "float64" else "float32"
    given = {"window": 40, "batch_size": 4, "behaviour": BEHAVIOUR, "seed": 0, **options}
    given = {"rupee": True, **given}
    on_gpu = {"device": "cuda", "dtype": dtype} if there and name == "cuda" else {"dtype": single}
    horde = gvf.Horde(questions, features, update or gvf.updates.TD(0.3), **on_gpu, **given)
    if there and name == "products":
        options = horde._shard.options
        choice_here = options.weights
        assert isinstance(choice_here, choice.LinearWeights)
        products = Products(*(getattr(choice_here, field.name) for field in fields(choice_here)))
        products = replace(products, device=choice.Device("products"))
        horde._begin(horde._signals, Shard(horde._layout, replace(options, weights=products)))
    return horde


def assert_close(kind, one, other, states):
    tolerance = TOLERANCE[kind[1]]
    found, right = one.predict(states), other.predict(states)
    assert found.dtype == right.dtype
    assert (right != 0.0).any()
    np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)
    for name in one.names[:: max(1, len(one.names) // 7)]:
        np.testing.assert_allclose(
            one.weights(name), other.weights(name), rtol=tolerance, atol=tolerance
        )
    reports = [horde.report() for horde in (one, other)]
    for measure in ("ude", "rupee"):
        np.testing.assert_allclose(
            *(getattr(report, measure) for report in reports), rtol=tolerance, atol=tolerance
        )
    unknown = np.full(len(one.names), np.nan)  # rounded numbers, and the name of the largest
    shown = [repr(replace(report, ude=unknown, rupee=unknown)) for report in reports]
    assert (one.updates, shown[0]) == (other.updates, shown[1])


def compare(kind, questions, features, update=None, *, steps=150, pieces=70, **options):
    """Let both learn from the same stream, in the same pieces."""
    data = stream(steps, states=0)
    one, other = (made(kind, questions, features, update, t, **options) for t in (True, False))
    for horde in (one, other):
        for start in range(0, steps, pieces):
            horde.observe(data[start : start + pieces])
    weights = one._shard.weights
    assert isinstance(weights, cuda.TorchWeights)
    assert isinstance(weights, cuda.KernelWeights) == (kind[0] == "cuda" and kind[1] != "float64")
    assert_close(kind, one, other, data.state)
    return one


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_every_correction_and_layout(kind, correction):
    policy = asked()[0].policy
    # These two are neighbours, and only the second depends on the state.
    more = [gvf.GVF(policy, "reward", 1.0, name="1"), gvf.GVF(policy, "reward", inside, name="2")]
    questions = [*asked(), *more]
    horde = compare(kind, questions, some_features(5), correction=correction)
    layout = horde._layout
    assert len({*np.diff(layout.starts)}) > 1
    assert layout.source.max() > 0


@pytest.mark.parametrize("k", [1, 10, 16, 40, 200])
def test_batches_of_any_size(kind, k):
    compare(kind, many(3), some_features(70), batch_size=k, window=90)


@pytest.mark.parametrize(
    ("steps_per_call", "update_every", "warm_up"), [(1, 1, 0), (3, 1, 7), (64, 3, 10)]
)
def test_chunks_and_schedules_do_not_matter(kind, steps_per_call, update_every, warm_up):
    compare(
        kind,
        asked(),
        some_features(5),
        steps_per_call=steps_per_call,
        update_every=update_every,
        warm_up=warm_up,
        pieces=31,
    )


def test_wide_groups_are_cut_into_tiles(kind, monkeypatch):
    compare(kind, many(150), some_features(130), batch_size=16, window=100)
    monkeypatch.setattr(cuda, "_ROOM", 1)  # groups one after the other
    compare(kind, many(150), some_features(130), batch_size=16, window=100, steps=60)


@GPU
@pytest.mark.parametrize("correction", [gvf.corrections.IR(), gvf.corrections.BCIR()])
@pytest.mark.parametrize(("window", "steps_per_call"), [(40, 8), (40, 40), (40, 64), (3000, 64)])
def test_a_gpu_finds_the_rows_of_the_processor(window, steps_per_call, correction):
    options: dict[str, Any]
    options = {
        "window": window,
        "steps_per_call": steps_per_call,
        "batch_size": 16,
        "correction": correction,
    }
    one, other = (
        made(("cuda", "float32"), asked(), some_features(5), there=there, **options)
        for there in (True, False)
    )
    data, found = stream(3 * window + 5, states=0), []
    right = record(other, data.state[:1])
    one._predict(data.state[:1])
    weights: Any = one._shard.weights
    learn = weights.learn

    def learning(*given):
        learn(*given)
        found.append(weights.rows.cpu().numpy())

    weights.learn = learning
    for horde in (one, other):
        horde.observe(data)
    assert len(found) == len(right)
    for rows, batch in zip(found, right, strict=True):
        drawn = batch.has_mass.astype(bool)
        np.testing.assert_array_equal(rows[drawn], batch.rows[drawn])


def test_a_default_step_size_comes_with_each_batch(kind):
    compare(kind, asked(), some_features(5), gvf.updates.TD(), correction=gvf.corrections.IS())
    data = stream(60, states=0)
    hordes = [
        made(kind, asked(), some_features(5), gvf.updates.TD(), there=t) for t in (True, False)
    ]
    for horde in hordes:
        horde._shard._step_sizes = lambda rows: np.linspace(0.1, 0.5, rows.p.size).reshape(
            rows.p.shape[::-1]
        )
        horde.observe(data)
    assert_close(kind, hordes[0], hordes[1], data.state)


def test_policies_without_mass_skip(kind):
    horde = compare(kind, asked(), some_features(5), window=2, steps=60)
    assert list(horde.report().skipped) == ["Always(1, 3)"]


def with_signals(data, **columns):
    return gvf.Transitions(**data.columns, **columns)


def test_a_failing_sensor_disturbs_nobody_else(kind):
    data = stream(500, states=0)
    weak = data.reward.copy()
    weak[400:403] = np.nan
    policies = {"u": gvf.policies.Uniform(3), "one": gvf.policies.Always(1, actions=3)}
    questions = gvf.question_grid(policies, {"good": "reward", "weak": "weak"}, [0.5])
    sick = with_signals(data, weak=weak)
    hordes = [made(kind, questions, gvf.features.Dense(2), there=there) for there in (True, False)]
    for horde in hordes:
        horde.observe(sick[:420])
        assert list(horde.report().paused) == ["u, weak, 0.5", "one, weak, 0.5"]
        kept = horde.weights("u, weak, 0.5")
        horde.observe(sick[420:430])
        np.testing.assert_array_equal(horde.weights("u, weak, 0.5"), kept)
        horde.observe(sick[430:])
        assert (horde.weights("u, weak, 0.5") != kept).any()
    assert_close(kind, hordes[0], hordes[1], data.state)


def test_a_question_that_diverges_is_paused_and_named(kind):
    data = stream(1300, states=0, ends=0.0)
    growing = {**data.columns, "next_state": 3.0 * data.state, "zero": 0.0 * data.reward}
    data = gvf.Transitions(**growing)
    policy = gvf.policies.Uniform(3)
    questions = [
        gvf.GVF(policy, "reward", 0.0, name="tame"),
        gvf.GVF(policy, "reward", 1.0, name="wild"),
        gvf.GVF(policy, "zero", 1.0, name="zero"),
    ]
    horde, alone = (made(kind, some, gvf.features.Dense(2)) for some in (questions, questions[:1]))
    for one in (horde, alone):
        one.observe(data)
    assert horde.report().paused == {"wild": "it has diverged"}
    assert not horde.weights("zero").any()
    np.testing.assert_allclose(
        horde.predict(data.state, "tame"), alone.predict(data.state, "tame"), rtol=1e-3, atol=1e-3
    )
    before = horde.weights("wild")
    horde.observe(data[:10])
    np.testing.assert_array_equal(horde.weights("wild"), before)


def test_files_go_from_device_to_device(kind, tmp_path):
    data = stream(160, states=0)
    hordes = {
        there: made(kind, asked(), some_features(5), there=there, window=20)
        for there in (True, False)
    }
    for there, horde in hordes.items():
        horde.observe(data[:90])
        horde.save(tmp_path / str(there))
    for there, horde in hordes.items():
        horde.load(tmp_path / str(not there), same_functions=True)
        horde.observe(data[90:])
    assert_close(kind, hordes[True], hordes[False], data.state)


def test_questions_come_and_go(kind):
    data = stream(160, states=0)
    hordes = [made(kind, asked()[:9], some_features(5), there=t) for t in (True, False)]
    for horde in hordes:
        horde.observe(data[:60])
        horde.add(asked()[9:])
        horde.observe(data[60:100])
        horde.remove(horde.names[:3])
        horde.observe(data[100:])
    assert_close(kind, hordes[0], hordes[1], data.state)


def test_a_device_that_is_missing_is_named(monkeypatch):
    def refuse(name, message):
        with pytest.raises(ValueError, match=message):
            gvf.Horde(asked(), gvf.features.Dense(2), gvf.updates.TD(0.1), device=name)

    there = {"torch", "triton"}
    monkeypatch.setattr(choice, "find_spec", lambda name: name if name in there else None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refuse("cuda:1", "device='cuda:1': PyTorch finds no GPU here; use device='cpu'")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    refuse("cuda:1", "device='cuda:1': PyTorch finds only 1 here")
    there.discard("triton")
    refuse("cuda", "device='cuda' needs Triton, which is not installed here")
    there.discard("torch")
    refuse("cuda", "device='cuda' needs PyTorch, which is not installed here")


@pytest.mark.parametrize(
    ("features", "update"),
    [(gvf.features.OneHot(3), gvf.updates.TD(0.1)), (gvf.features.Dense(2), gvf.updates.TDRC(0.1))],
)
def test_a_device_learns_by_plain_td_with_dense_features(monkeypatch, features, update):
    chosen = choice.Device("cuda"), np.dtype(np.float64)
    monkeypatch.setattr("gvf.horde.horde.as_device", lambda *_: chosen)
    monkeypatch.setattr(choice.Device, "memory", 10**9)
    horde = gvf.Horde(asked(), features, update)
    with pytest.raises(ValueError, match="with SGD and dense features"):
        horde._predict([0] if isinstance(features, gvf.features.OneHot) else [[0.0, 0.0]])


def test_weights_that_a_gpu_cannot_hold_are_counted(monkeypatch):
    chosen = choice.Device("cuda"), np.dtype(np.float64)
    monkeypatch.setattr("gvf.horde.horde.as_device", lambda *_: chosen)
    monkeypatch.setattr(choice.Device, "memory", 10**9)
    with pytest.raises(MemoryError, match=r"for their weights; the GPU has 1.0 GB"):
        gvf.Horde(asked(), gvf.features.Dense(10**8), gvf.updates.TD(0.1))
