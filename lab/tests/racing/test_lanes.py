"""Lanes: each is the same network trained alone, and what cannot be stacked is refused."""

import copy
import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from networks import GROUP, RATES, SEEDS, VECTORS, batch, picture, vectors

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import mlp  # noqa: E402
from gvf_lab.racing.network_lanes import Lanes  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

OPTIMISERS = {
    "SGD": partial(torch.optim.SGD, momentum=0.5),
    "Adam": torch.optim.Adam,
    "RMSprop": partial(torch.optim.RMSprop, alpha=0.9),
}


def train_alone(make, optimiser, lane, batches, *, clip=None, target_every=None, group=GROUP):
    """One lane, as anyone would write it."""
    torch.manual_seed(SEEDS[lane])
    network = make()
    target = copy.deepcopy(network)
    step = optimiser(network.parameters(), lr=RATES[lane])
    for count, (*drawn, weights) in enumerate(batches, start=1):
        kind = next(network.parameters()).dtype
        states, next_states, cumulant, continuation = (
            torch.as_tensor(x[group[lane]]).to(kind) for x in drawn
        )
        with torch.no_grad():
            goal = cumulant + continuation * (target if target_every else network)(next_states)
        loss = 0.5 * (torch.as_tensor(weights[lane]).to(kind) * (goal - network(states)) ** 2).sum()
        step.zero_grad()
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        step.step()
        if target_every and count % target_every == 0:
            target = copy.deepcopy(network)
    return network


@pytest.mark.parametrize("options", [{}, {"clip": 0.4, "target_every": 3}], ids=["plain", "more"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("make", [vectors, picture])
def test_a_lane_is_the_same_network_trained_alone(make, optimiser, together, options):
    rng = np.random.default_rng(0)
    batches = [batch(make, rng) for _ in range(8)]
    lanes = Lanes(
        make, OPTIMISERS[optimiser], RATES, SEEDS, group=GROUP, together=together, **options
    )
    for one in batches:
        lanes.update(*one)
    states = torch.as_tensor(batches[0][0][0])
    predictions = lanes.predict(states)
    assert predictions.shape == (5, 4)
    for lane in range(5):
        alone = train_alone(make, OPTIMISERS[optimiser], lane, batches, **options)
        with torch.no_grad():
            torch.testing.assert_close(predictions[lane], alone(states), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("together", [True, False])
def test_lanes_in_single_precision_agree_to_single_precision(together):
    rng = np.random.default_rng(0)
    make = partial(vectors, torch.float32)
    batches = [batch(vectors, rng, groups=1) for _ in range(20)]
    lanes = Lanes(make, torch.optim.SGD, RATES, SEEDS, together=together)
    for one in batches:
        lanes.update(*one)
    states = torch.randn(6, 3)
    for lane, prediction in enumerate(lanes.predict(states)):
        alone = train_alone(make, torch.optim.SGD, lane, batches, group=(0,) * 5)
        with torch.no_grad():
            torch.testing.assert_close(prediction, alone(states), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("together", [True, False])
def test_a_diverged_lane_does_not_disturb_the_others(together):
    rng = np.random.default_rng(0)
    batches = [batch(picture, rng) for _ in range(12)]
    with_it, without = (
        Lanes(picture, torch.optim.Adam, rates, SEEDS, group=GROUP, clip=1.0, together=together)
        for rates in ((0.1, 0.01, float("inf"), 0.03, 0.01), RATES)
    )
    for one in batches:
        with_it.update(*one)
        without.update(*one)
    assert with_it.diverged.tolist() == [False, False, True, False, False]
    assert not without.diverged.any()
    states = batches[0][0][0]
    others = [0, 1, 3, 4]
    torch.testing.assert_close(
        with_it.predict(states)[others], without.predict(states)[others], rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("together", [True, False])
def test_lanes_resume_bit_for_bit(together, tmp_path):
    rng = np.random.default_rng(0)
    batches = [batch(vectors, rng) for _ in range(10)]

    def make():
        return Lanes(
            vectors, torch.optim.Adam, RATES, SEEDS, group=GROUP, target_every=4, together=together
        )

    through, first, second = make(), make(), make()
    for one in batches:
        through.update(*one)
    for one in batches[:6]:
        first.update(*one)
    torch.save(first.state_dict(), tmp_path / "lanes.pt")
    second.load_state_dict(torch.load(tmp_path / "lanes.pt", weights_only=True))
    for one in batches[6:]:
        second.update(*one)
    assert second.updates == 10
    assert torch.equal(second.predict(VECTORS), through.predict(VECTORS))


def test_predictions_do_not_depend_on_how_many_are_made():
    lanes = Lanes(vectors, torch.optim.SGD, RATES, SEEDS)
    states = torch.randn(1000, 3, dtype=torch.float64)
    pieces = torch.cat([lanes.predict(piece) for piece in states.split(7)], dim=1)
    torch.testing.assert_close(lanes.predict(states), pieces, rtol=1e-12, atol=1e-14)


def test_seeds_give_initial_weights_and_global_random_numbers_are_left_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    values = Lanes(vectors, torch.optim.SGD, RATES, SEEDS).predict(VECTORS)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])
    torch.manual_seed(1)
    torch.testing.assert_close(values[2], vectors()(torch.from_numpy(VECTORS)).detach())


@pytest.mark.parametrize("together", [True, False])
def test_mixed_precision_is_nearly_the_same(together):
    rng = np.random.default_rng(0)
    make = partial(picture, torch.float32)
    exact, mixed = (
        Lanes(make, torch.optim.SGD, RATES, SEEDS, group=GROUP, mixed_precision=mixed,
              together=together)
        for mixed in (False, True)
    )  # fmt: skip
    batches = [batch(picture, rng) for _ in range(5)]
    for one in batches:
        exact.update(*one)
        mixed.update(*one)
    states = batches[0][0][0]
    difference = (exact.predict(states) - mixed.predict(states)).abs().max()
    assert 0 < difference < 0.02
    assert mixed.predict(states).dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((RATES, SEEDS[:4]), {}, "one learning rate, one seed and one group a lane; got 5, 4 and"),
        ((RATES, SEEDS), {"group": [0]}, "got 5, 5 and 1"),
        (([], []), {}, "got 0, 0 and 0"),
        ((RATES, SEEDS), {"clip": -1.0}, "clip must be a positive number"),
        (((0.1, -1.0), (0, 0)), {}, "rate must be at least 0, got -1.0 in lane 1"),
        (((float("nan"), 1.0), (0, 0)), {}, "rate must be at least 0, got nan in lane 0"),
        (((0.1, 0.1), (0, 0)), {"group": [-1, 0]}, "0 or more; got -1 in lane 0"),
        ((RATES, SEEDS), {"device": "gpu"}, "device must be"),
    ],
)
def test_lanes_that_do_not_fit_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        Lanes(vectors, torch.optim.SGD, *arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((mlp(3), torch.optim.SGD, [0.1], [0]), "that makes a network, such as lambda: mlp"),
        ((3, torch.optim.SGD, [0.1], [0]), "that makes a network, such as .*, got 3"),
        ((list, torch.optim.SGD, [0.1], [0]), r"what make_network makes must be a .*, got \[\]"),
        (
            (vectors, torch.optim.Adam([torch.zeros(1)]), [0.1], [0]),
            "optimiser must be a function that makes one",
        ),
        ((vectors, torch.optim.SGD, 0.1, [0]), "learning_rates must be a sequence, a number a"),
        ((vectors, torch.optim.SGD, ["a"], [0]), "learning_rates must be a sequence, a number a"),
        ((vectors, torch.optim.SGD, [0.1], 0), "seeds must be a sequence, a whole number a lane"),
        ((vectors, torch.optim.SGD, [0.1], [0.5]), r"seeds must be .*, got \[0.5\]"),
    ],
)
def test_arguments_of_lanes_of_the_wrong_kind_are_named(arguments, message):
    with pytest.raises(TypeError, match=message):
        Lanes(*arguments)


def test_lanes_without_parameters_are_refused():
    with pytest.raises(ValueError, match="what make_network makes has no parameters to train"):
        Lanes(torch.nn.Tanh, torch.optim.SGD, [0.1], [0])


def test_numbers_of_lanes_may_be_numpys(tmp_path):
    plain = Lanes(vectors, torch.optim.SGD, RATES, SEEDS, group=GROUP)
    numpy = Lanes(vectors, torch.optim.SGD, np.array(RATES), np.array(SEEDS), group=np.array(GROUP))
    assert torch.equal(numpy.predict(VECTORS), plain.predict(VECTORS))
    torch.save(numpy.state_dict(), tmp_path / "lanes.pt")
    plain.load_state_dict(torch.load(tmp_path / "lanes.pt", weights_only=True))


@pytest.mark.parametrize(
    "optimiser", ["Adadelta", "Adagrad", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "Rprop"]
)
def test_lanes_take_every_optimiser_that_treats_each_weight_by_itself(optimiser):
    rng = np.random.default_rng(0)
    batches = [batch(vectors, rng) for _ in range(8)]
    kind = getattr(torch.optim, optimiser)
    lanes = Lanes(vectors, kind, RATES, SEEDS, group=GROUP)
    for one in batches:
        lanes.update(*one)
    for lane, prediction in enumerate(lanes.predict(VECTORS)):
        alone = train_alone(vectors, kind, lane, batches)
        with torch.no_grad():
            expected = alone(torch.from_numpy(VECTORS))
        torch.testing.assert_close(prediction, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "optimiser",
    [n for n in ("LBFGS", "SparseAdam", "Adafactor", "Muon") if hasattr(torch.optim, n)],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_lanes_refuse_optimisers_that_would_mix_them(optimiser, wrapped):
    kind = getattr(torch.optim, optimiser)
    with pytest.raises(ValueError, match=rf"^{optimiser} (does not treat|evaluates the loss)"):
        Lanes(vectors, (lambda groups: kind(groups)) if wrapped else kind, RATES, SEEDS)


@pytest.mark.parametrize("together", [True, False])
def test_frozen_parameters_of_lanes_stay_as_they_are(together):
    def make():
        network = vectors()
        next(network.parameters()).requires_grad_(False)
        return network

    optimiser = partial(torch.optim.AdamW, weight_decay=0.5)
    rng = np.random.default_rng(0)
    batches = [batch(vectors, rng) for _ in range(8)]
    lanes = Lanes(make, optimiser, RATES, SEEDS, group=GROUP, clip=0.4, together=together)
    for one in batches:
        lanes.update(*one)
    lanes.load_state_dict(copy.deepcopy(lanes.state_dict()))
    for lane, prediction in enumerate(lanes.predict(VECTORS)):
        alone = train_alone(make, optimiser, lane, batches, clip=0.4)
        with torch.no_grad():
            expected = alone(torch.from_numpy(VECTORS))
        torch.testing.assert_close(prediction, expected, rtol=1e-9, atol=1e-11)


def test_lanes_may_be_made_in_threads():
    def slowly():
        time.sleep(0.01)
        first = torch.nn.Linear(3, 4)
        time.sleep(0.01)
        return torch.nn.Sequential(first, torch.nn.Linear(4, 1))

    def values(seed):
        return Lanes(slowly, torch.optim.SGD, [0.1], [seed]).predict(torch.ones(1, 3))

    alone = [values(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(values, range(4))) == alone


@pytest.mark.parametrize("together", [True, False])
def test_a_network_with_dropout_cannot_be_stacked(together):
    def make(p):
        return torch.nn.Sequential(mlp(3), torch.nn.Dropout(p))

    with pytest.raises(ValueError, match=r"with dropout cannot .*; leave out Dropout\(p=0.5"):
        Lanes(partial(make, 0.5), torch.optim.SGD, [0.1], [0], together=together)
    Lanes(partial(make, 0.0), torch.optim.SGD, [0.1], [0], together=together)


def test_a_network_with_buffers_cannot_be_stacked():
    def make():
        return torch.nn.Sequential(torch.nn.BatchNorm1d(3), mlp(3))

    with pytest.raises(ValueError, match="buffers, such as the running means of BatchNorm"):
        Lanes(make, torch.optim.SGD, [0.1], [0])


def test_draws_that_do_not_fit_are_refused():
    lanes = Lanes(vectors, torch.optim.SGD, RATES, SEEDS, group=GROUP)
    s, s_next, c, gamma, weights = batch(vectors, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"weights must be \[5 lanes, k\], got \[4, 4\]"):
        lanes.update(s, s_next, c, gamma, weights[:4])
    with pytest.raises(ValueError, match=r"draws must be \[2 groups, 4, ...\].*got \[1, 4, 3\]"):
        lanes.update(s[:1], s_next[:1], c[:1], gamma[:1], weights)
    with pytest.raises(ValueError, match=r"got \[2, 4, 3\], \[2, 4, 3\], \[2, 4\], \[2, 3\]"):
        lanes.update(s, s_next, c, gamma[:, :3], weights)


def test_the_state_of_other_lanes_is_refused():
    lanes = Lanes(vectors, torch.optim.SGD, RATES, SEEDS)
    other = Lanes(vectors, torch.optim.SGD, RATES[:2], SEEDS[:2])
    with pytest.raises(ValueError, match=r"of other lanes: 0.weight should be \[5, 5, 3\] and is"):
        lanes.load_state_dict(other.state_dict())


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("learning_rates", (RATES[::-1], SEEDS, GROUP)),
        ("seeds", (RATES, SEEDS[::-1], GROUP)),
        ("group", (RATES, SEEDS, GROUP[::-1])),
    ],
)
def test_the_state_of_lanes_made_with_other_arguments_is_refused(name, other):
    lanes, others = (
        Lanes(vectors, torch.optim.SGD, rates, seeds, group=group)
        for rates, seeds, group in ((RATES, SEEDS, GROUP), other)
    )
    before = lanes.predict(VECTORS)
    with pytest.raises(ValueError, match=rf"of other lanes: {name} should be \[.*\] and is \["):
        lanes.load_state_dict(others.state_dict())
    assert torch.equal(lanes.predict(VECTORS), before)


def test_updates_are_recorded_on_a_gpu_only() -> None:
    with pytest.raises(ValueError, match="graph=True needs a stack of lanes on a GPU"):
        Lanes(partial(mlp, 2), torch.optim.Adam, [0.1], [0], graph=True)
    lanes = Lanes(partial(mlp, 2), torch.optim.Adam, [0.1], [0])
    assert lanes._graph is None
    assert not lanes._optimiser.param_groups[0]["capturable"]


def test_lanes_with_a_graph_are_freed_at_once() -> None:
    lanes = Lanes(partial(mlp, 2), torch.optim.Adam, [0.1], [0])
    lanes._recorded = True  # as on a GPU
    lanes._prepare_optimiser()
    freed = weakref.ref(lanes)
    gc.disable()  # a collector would also free what is in a cycle, but at any time
    try:
        del lanes
        assert freed() is None
    finally:
        gc.enable()


class Mean(torch.nn.Module):
    """One value for all states together, as no network should."""

    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(3, 1, dtype=torch.float64)

    def forward(self, states):
        return self.dense(states).mean(dim=0)


@pytest.mark.parametrize("together", [True, False])
def test_a_network_with_one_output_for_all_states_is_refused(together):
    lanes = Lanes(Mean, torch.optim.SGD, RATES, SEEDS, group=GROUP, together=together)
    with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[4, 3\]"):
        lanes.update(*batch(vectors, np.random.default_rng(0)))
    with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[5, 3\]"):
        lanes.predict(VECTORS)


@pytest.mark.parametrize("together", [True, False])
def test_a_single_state_needs_an_axis_in_front(together):
    lanes = Lanes(vectors, torch.optim.SGD, [0.1], [0], together=together)
    with pytest.raises(ValueError, match=r"gives \[\] for states \[3\] \(a single state needs"):
        lanes.predict([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"must be a batch \[m, ...\], got the single number 2"):
        lanes.predict(2)


@pytest.mark.parametrize("together", [True, False])
def test_integers_for_a_network_of_fractions_say_so(together):
    lanes = Lanes(partial(torch.nn.Linear, 3, 1), torch.optim.SGD, [0.1], [0], together=together)
    with pytest.raises(RuntimeError) as caught:
        lanes.predict([[0, 0, 0]])
    assert "give it fractions: [[0.0, 0.0]], not [[0, 0]]" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError) as caught:
        lanes.predict([[0.0, 0.0]])
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_so():
    with pytest.raises(ValueError, match="finds no GPU here for device='cuda:1'"):
        Lanes(vectors, torch.optim.SGD, [0.1], [0], device=torch.device("cuda:1"))
