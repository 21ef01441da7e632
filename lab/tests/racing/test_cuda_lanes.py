"""Lanes on a GPU equal those on a CPU up to rounding. Skipped without a GPU."""

import copy
from functools import partial

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from networks import differ_little  # noqa: E402

from gvf.neural import mlp  # noqa: E402
from gvf_lab.racing.driving_network import driving_network  # noqa: E402
from gvf_lab.racing.network_lanes import Lanes  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


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
