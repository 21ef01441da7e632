"""Results on a GPU equal those on a CPU up to rounding. Skipped without a GPU."""

import copy
from functools import partial

import numpy as np
import pytest
import torch

import gvf
from gvf.neural import Lanes, NeuralHorde, NeuralLearner, driving_network, mlp

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

QUESTION = gvf.GVF(gvf.Gaussian(0.1, 0.5), "reward", 0.9)


def stream(steps: int, seed: int = 0) -> gvf.Transitions:
    """Images in a row, each the next state of the one before."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (steps + 1, 64, 128), np.uint8)
    behaviour = gvf.Gaussian(0.0, 0.6)
    actions = behaviour.sample(frames[:-1], rng=rng)
    return gvf.Transitions(
        state=frames[:-1],
        action=actions,
        reward=rng.random(steps),
        next_state=frames[1:],
        behaviour_log_probability=behaviour.log_probability(frames[:-1], actions),
    )


def learner(device: str, **options) -> NeuralLearner:
    torch.manual_seed(0)
    return NeuralLearner(
        QUESTION,
        driving_network(),
        partial(torch.optim.SGD, lr=1e-4),
        gvf.IR(),
        window=gvf.FrameWindow(50),
        seed=1,
        device=device,
        **options,
    )


def differ_little(one, other, fresh, *, share: float) -> None:
    """Assert that predictions [..., m] differ by less than a share of how far they have moved.

    Two networks that have learned nothing are equal, but have not moved either.
    """
    one, other, fresh = (np.asarray(predictions) for predictions in (one, other, fresh))
    moved, apart = (np.abs(one - before).max(axis=-1) for before in (fresh, other))
    assert (apart < share * moved).all(), (apart, moved)


@pytest.mark.parametrize("options", [{}, {"target_every": 5, "clip": 1.0}])
def test_a_learner_on_a_gpu_is_the_one_on_a_cpu(options) -> None:
    batch = stream(60)
    here, there = learner("cpu", **options), learner("cuda", **options)
    for one in (here, there):
        one.observe_many(batch)
    fresh = learner("cpu")._predict(batch.state)
    differ_little(here.predict(batch.state), there.predict(batch.state), fresh, share=0.02)
    assert next(there.network.parameters()).device.type == "cuda"


def test_a_learner_on_a_gpu_is_saved_and_goes_on(tmp_path) -> None:
    batch = stream(60)
    first, second = learner("cuda"), learner("cuda")
    first.observe_many(batch[:30])
    first.save(tmp_path / "learner.npz")
    second.load(tmp_path / "learner.npz")
    for one in (first, second):
        one.observe_many(batch[30:])
    fresh = learner("cuda")._predict(batch.state)
    differ_little(first.predict(batch.state), second.predict(batch.state), fresh, share=0.01)


def test_mixed_precision_is_about_the_same() -> None:
    batch = stream(60)
    whole, half = learner("cuda"), learner("cuda", mixed_precision=True)
    for one in (whole, half):
        one.observe_many(batch)
    fresh = learner("cuda")._predict(batch.state)
    differ_little(whole.predict(batch.state), half.predict(batch.state), fresh, share=0.2)


def horde(device: str, **options) -> NeuralHorde:
    torch.manual_seed(0)
    policies = {"left": gvf.Gaussian(-0.1, 0.5), "right": gvf.Gaussian(0.1, 0.5)}
    return NeuralHorde(
        gvf.questions(policies, {"reward": "reward", "weak": "weak"}, [0.0, 0.9]),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64 * 128, 8), torch.nn.Tanh()),
        partial(torch.optim.Adam, lr=1e-3),
        window=50,
        seed=1,
        device=device,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"target_every": 5, "clip": 1.0}])
@pytest.mark.parametrize("correction", [gvf.IR(), gvf.WISMinibatch(), gvf.WISOptimal()])
def test_a_horde_on_a_gpu_is_the_one_on_a_cpu(correction, options, tmp_path) -> None:
    data = stream(60)
    weak = np.where(np.arange(60) == 20, np.nan, data.reward)
    frames = {name: data[name].astype(np.float32) / 255 for name in ("state", "next_state")}
    batch = gvf.Transitions(**{**data.columns, **frames}, weak=weak)
    here, there, again = (
        horde(device, correction=correction, **options) for device in ("cpu", "cuda", "cuda")
    )
    fresh = here._predict(batch.state)
    here.observe_many(batch)
    there.observe_many(batch[:30])
    there.save(tmp_path / "horde")
    again.load(tmp_path / "horde")
    there.observe_many(batch[30:])
    again.observe_many(batch[30:])
    for one in (there, again):
        learned = [name for name in here.names if name not in here.report().paused]
        places = [here.names.index(name) for name in learned]
        ours, theirs = (h.predict(batch.state, learned).T for h in (here, one))
        differ_little(ours, theirs, fresh[:, places].T, share=0.05)
        assert one.report().paused == here.report().paused
    assert next(there.trunk.parameters()).device.type == "cuda"
    assert there.optimiser.state[there._core.engine.network.heads]["exp_avg"].is_cuda


@pytest.mark.parametrize(("convolution", "share"), [("native", 0.2), ("unfold", 0.001)])
def test_lanes_on_a_gpu_are_those_on_a_cpu(convolution, share) -> None:
    rates, seeds, group = [1e-4, 1e-3, 1e-4, 1e-3], [0, 0, 1, 1], [0, 1, 0, 1]
    rng = torch.Generator().manual_seed(2)
    frames = torch.randint(0, 256, (2, 8, 64, 128), dtype=torch.uint8, generator=rng)
    after = torch.randint(0, 256, (2, 8, 64, 128), dtype=torch.uint8, generator=rng)
    numbers, weights = torch.rand(2, 8, generator=rng), torch.rand(4, 8, generator=rng) / 8
    found = []
    for device in ("cpu", "cuda"):
        make = partial(driving_network, convolution=convolution)
        lanes = Lanes(make, torch.optim.Adam, rates, seeds, group=group, device=device)
        fresh = lanes.predict(frames[0]).cpu()
        for _ in range(5):
            lanes.update(frames, after, numbers, 0.9 * numbers, weights)
        found.append(lanes.predict(frames[0]).cpu())
    differ_little(found[0], found[1], fresh, share=share)


@pytest.mark.parametrize(
    "optimiser",
    [
        torch.optim.SGD,
        partial(torch.optim.SGD, momentum=0.9),
        torch.optim.RMSprop,
        torch.optim.Adam,
    ],
)
@pytest.mark.parametrize("options", [{}, {"target_every": 4, "clip": 1.0}])
def test_replayed_updates_are_the_plain_ones(optimiser, options) -> None:
    rates, seeds, group = [1e-4, 1e-3, 1e-4], [0, 0, 1], [0, 1, 0]
    rng = torch.Generator().manual_seed(3)
    make = partial(driving_network, convolution="unfold")
    plain, replayed, loaded = (
        Lanes(make, optimiser, rates, seeds, group=group, device="cuda", graph=graph, **options)
        for graph in (False, True, True)
    )
    fixed = torch.randint(0, 256, (8, 64, 128), dtype=torch.uint8, generator=rng)
    fresh = plain.predict(fixed).cpu()
    for u in range(20):
        # New draws each time, so that a replay with old ones is found out.
        frames = torch.randint(0, 256, (2, 2, 8, 64, 128), dtype=torch.uint8, generator=rng)
        numbers, weights = torch.rand(2, 8, generator=rng), torch.rand(3, 8, generator=rng) / 8
        if u == 10:
            loaded.load_state_dict(copy.deepcopy(replayed.state_dict()))
        for lanes in (plain, replayed) if u < 10 else (plain, replayed, loaded):
            lanes.update(frames[0], frames[1], numbers, 0.9 * numbers, weights)
    assert plain._graph is None
    for lanes in (replayed, loaded):
        assert lanes._graph is not None
        assert lanes._graph.recorded
        differ_little(plain.predict(fixed).cpu(), lanes.predict(fixed).cpu(), fresh, share=0.02)


def test_draws_of_another_size_are_not_replayed() -> None:
    plain, replayed = (
        Lanes(partial(mlp, 4), torch.optim.Adam, [0.1, 0.01], [0, 0], device="cuda", graph=graph)
        for graph in (False, True)
    )
    for k in (8, 8, 8, 8, 8, 4, 8, 6):
        states, ones = torch.rand(1, k, 4), torch.ones(1, k)
        for lanes in (plain, replayed):
            lanes.update(states, states, ones, 0.5 * ones, torch.full((2, k), 1 / k))
    points = torch.rand(20, 4)
    torch.testing.assert_close(
        replayed.predict(points), plain.predict(points), rtol=1e-3, atol=1e-4
    )


def test_a_lane_that_diverges_disturbs_no_other() -> None:
    states = torch.rand(1, 8, 4, device="cuda")
    ones = torch.ones(1, 8, device="cuda")
    weights = torch.full((2, 8), 1 / 8, device="cuda")
    together = Lanes(partial(mlp, 4), torch.optim.SGD, [1e30, 0.1], [0, 0], device="cuda")
    alone = Lanes(partial(mlp, 4), torch.optim.SGD, [0.1], [0], device="cuda")
    for _ in range(20):
        together.update(states, states, ones, 0.5 * ones, weights)
        alone.update(states, states, ones, 0.5 * ones, weights[:1])
    assert together.diverged.tolist() == [True, False]
    torch.testing.assert_close(together.predict(states[0])[1], alone.predict(states[0])[0])
