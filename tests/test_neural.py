"""Neural learners: gradients, lanes and resuming, against autograd of the written formulas."""

import copy
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import dumb
import numpy as np
import pytest
from test_updates import (
    BEHAVIOUR,
    CHAIN,
    CHAIN_BEHAVIOUR,
    CORRECTIONS,
    QUESTION,
    chain_stream,
    chain_values,
    stream,
)

import gvf
from gvf.window.frames import FrameWindow

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import Lanes, NeuralLearner, driving_network, mlp  # noqa: E402
from gvf.neural import learner as learner_module  # noqa: E402

SGD = partial(torch.optim.SGD, lr=0.1)
ADAM = partial(torch.optim.Adam, lr=0.01)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class OneHot(torch.nn.Module):
    """States as numbers, to a table of values: [m] to [m, 1]."""

    def __init__(self, states):
        super().__init__()
        self.table = torch.nn.Embedding(states, 1, dtype=torch.float64)
        torch.nn.init.zeros_(self.table.weight)

    def forward(self, states):
        return self.table(states)


class Picture(torch.nn.Module):
    """A convolution and a dense layer, for frames of 6 x 8."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 3, 3, 2)
        self.dense = torch.nn.Linear(18, 1)

    def forward(self, frames):
        x = self.convolution(frames.to(self.dense.weight.dtype).unsqueeze(1) / 255)
        return self.dense(torch.tanh(x).flatten(1)).squeeze(1)


def small(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return mlp(3, (5,)).to(dtype)


VECTORS = np.random.default_rng(2).normal(size=(5, 3))


def vector_stream(steps, seed):
    """The transitions of the other learners' tests, with vectors for states."""
    rows = list(stream(steps, seed))
    state, action, reward, next_state, terminated = (np.array(c) for c in zip(*rows, strict=True))
    return gvf.Transitions(
        state=VECTORS[state],
        action=action,
        reward=reward,
        next_state=VECTORS[next_state],
        terminated=terminated,
        behaviour_probability=BEHAVIOUR.probability(state, action),
    )


POLICY = gvf.Fixed([0.8, 0.2])
VECTOR_QUESTION = gvf.GVF(POLICY, "reward", 0.9)


def vector_learner(network=None, optimiser: Any = SGD, correction=None, **options):
    options = {"window": 7, "batch_size": 4, "seed": 3, **options}
    return NeuralLearner(
        VECTOR_QUESTION, network or small(), optimiser, correction or gvf.IR(), **options
    )


def weights_of(network):
    return {name: w.detach().clone() for name, w in network.named_parameters()}


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_a_table_learns_what_the_linear_learner_learns(correction):
    options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3}
    network = OneHot(5)
    neural = NeuralLearner(
        QUESTION, network, partial(torch.optim.SGD, lr=0.3), correction, **options
    )
    linear = gvf.Learner(QUESTION, gvf.OneHot(5), gvf.TD(0.3), correction, **options)
    for transition in stream(25, seed=8):
        neural.observe(*transition)
        linear.observe(*transition)
    assert np.abs(linear.weights).max() > 0.1
    np.testing.assert_allclose(neural.predict(np.arange(5)), linear.weights, rtol=1e-12)
    assert neural.report() == linear.report()


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_a_step_is_the_gradient_of_the_written_out_loss(correction, monkeypatch):
    data = vector_stream(12, seed=1)
    learner = vector_learner(correction=correction, warm_up=11)
    drawn = []
    update = learner.values.update
    monkeypatch.setattr(
        learner.values, "update", lambda b, slots, w: (drawn.append(slots), update(b, slots, w))
    )
    before = copy.deepcopy(learner.network)
    learner.observe_many(data)
    (slots,) = drawn
    rho = POLICY.probabilities(np.zeros(12))[0][data.action] / data.behaviour_probability
    rows = [max(t for t in range(12) if t % 7 == slot) for slot in slots]
    w = dumb.weigh(correction, rho[rows], rho[-7:])
    if not correction.needs_ratios:
        assert w == pytest.approx(1 / len(rows))
    loss = torch.zeros((), dtype=torch.float64)
    for row, weight in zip(rows, w, strict=True):
        state, next_state = (torch.from_numpy(data[n][[row]]) for n in ("state", "next_state"))
        gamma = 0.0 if data.terminated[row] else 0.9
        goal = data.reward[row] + gamma * before(next_state)[0].item()
        loss = loss + weight * (goal - before(state)[0]) ** 2 / 2
    gradients = torch.autograd.grad(loss, list(before.parameters()))
    assert max(g.abs().max() for g in gradients) > 1e-3
    for old, new, g in zip(
        before.parameters(), learner.network.parameters(), gradients, strict=True
    ):
        torch.testing.assert_close(new, old - 0.1 * g, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("correction", [gvf.IR(), gvf.WISMinibatch()], ids=lambda c: c.name)
def test_a_tiny_network_learns_known_values(correction):
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Embedding.from_pretrained(torch.eye(5)), torch.nn.Linear(5, 8), torch.nn.Tanh(),
        torch.nn.Linear(8, 1),
    )  # fmt: skip
    learner = NeuralLearner(
        CHAIN,
        network,
        partial(torch.optim.Adam, lr=0.003),
        correction,
        behaviour=CHAIN_BEHAVIOUR,
        batch_size=64,
        every=4,
        seed=0,
    )
    truth = chain_values(CHAIN.policy, CHAIN.continuation)
    before = np.abs(learner.predict(np.arange(5)) - truth).mean()
    learner.observe_many(chain_stream(CHAIN_BEHAVIOUR, 4000, seed=0))
    after = np.abs(learner.predict(np.arange(5)) - truth).mean()
    assert before > 0.3
    assert after < 0.04  # 0.02, and the window's own error is of that size


@pytest.mark.parametrize(
    "options", [{}, {"target_every": 3, "clip": 0.5}, {"mixed_precision": True}], ids=str
)
def test_saved_and_resumed_is_bit_for_bit_the_same(options, tmp_path):
    data = vector_stream(60, seed=4)
    kind = torch.float32
    through = vector_learner(small(0, kind), ADAM, **options)
    first = vector_learner(small(0, kind), ADAM, **options)
    through.observe_many(data)
    first.observe_many(data[:25])
    first.save(tmp_path / "learner.npz")
    second = vector_learner(small(1, kind), ADAM, **options).load(tmp_path / "learner.npz")
    second.observe_many(data[25:])
    assert_same_weights(weights_of(second.network), weights_of(through.network))
    assert second.report() == through.report()
    assert second.updates > 50


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    vector_learner().save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match=r"another learner:\n  network: there .*=5.*, here .*=4"):
        vector_learner(mlp(3, (4,))).load(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match="saved by another learner"):
        vector_learner(optimiser=ADAM).load(tmp_path / "learner.npz")


def test_an_optimiser_with_other_settings_is_refused_however_it_is_made(tmp_path):
    def make(lr, **settings):
        return vector_learner(
            optimiser=lambda parameters: torch.optim.SGD(parameters, lr=lr, **settings)
        )

    learner = make(0.1)
    learner.save(tmp_path / "learner.npz")
    vector_learner(optimiser=SGD).load(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match=r"optimiser: there 'SGD\(lr=0.1\)', here 'SGD\(lr=0.2\)'"):
        make(0.2).load(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match=r"lr=0.1, momentum=0.5"):
        make(0.1, momentum=0.5).load(tmp_path / "learner.npz")
    # What a schedule has made of the rate is part of the state, and comes back.
    learner.optimiser.param_groups[0]["lr"] = 0.01
    learner.save(tmp_path / "learner.npz")
    assert make(0.1).load(tmp_path / "learner.npz").optimiser.param_groups[0]["lr"] == 0.01


@pytest.mark.parametrize("frames_first", [True, False])
def test_a_checkpoint_of_another_kind_of_window_is_refused(frames_first, tmp_path):
    question = gvf.GVF(POLICY, "reward", 0.9)
    windows = [FrameWindow(30), gvf.Window(30)]
    first, second = (
        NeuralLearner(question, picture(), SGD, behaviour=gvf.Uniform(2), window=w, seed=0)
        for w in (windows if frames_first else windows[::-1])
    )
    first.observe_many(film(40, seed=0))
    first.save(tmp_path / "learner.npz")
    there, here = ("'30 frames'", "30")[:: 1 if frames_first else -1]
    with pytest.raises(
        ValueError, match=rf"another learner:\n  window: there {there}, here {here}"
    ):
        second.load(tmp_path / "learner.npz")


def test_the_target_network_gives_next_values_and_follows_now_and_then():
    data = vector_stream(5, seed=1)
    learner = vector_learner(correction=gvf.WISOptimal(), target_every=2)
    alone = small()
    targets = [copy.deepcopy(alone)]
    optimiser = SGD(alone.parameters())
    for t in range(1, 6):
        learner.observe_many(data[t - 1 : t])
        seen = data[:t]
        rho = POLICY.probabilities(np.zeros(t))[0][seen.action] / seen.behaviour_probability
        goal = (
            seen.reward
            + 0.9
            * ~seen.terminated
            * targets[-1](torch.from_numpy(seen.next_state)).detach().numpy()
        )
        error = torch.from_numpy(goal) - alone(torch.from_numpy(seen.state))
        optimiser.zero_grad()
        (torch.from_numpy(rho / rho.sum()) * error**2 / 2).sum().backward()
        optimiser.step()
        if t in (2, 4):
            targets.append(copy.deepcopy(alone))
        for one, other in zip(learner.network.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_a_whole_window_may_go_through_in_pieces(monkeypatch):
    data = vector_stream(9, seed=1)
    at_once, in_pieces = (vector_learner(correction=gvf.WISOptimal()) for _ in range(2))
    at_once.observe_many(data)
    monkeypatch.setattr(learner_module, "_ROWS", 3)
    in_pieces.observe_many(data)
    np.testing.assert_allclose(
        in_pieces.predict(VECTORS), at_once.predict(VECTORS), rtol=1e-12, atol=1e-14
    )


def test_clipped_gradients_have_at_most_that_norm():
    data = vector_stream(12, seed=1)
    norms = []
    for clip in (None, 1e-3):
        learner = vector_learner(clip=clip, warm_up=11)
        before = weights_of(learner.network)
        learner.observe_many(data)
        change = [w.detach() - before[name] for name, w in learner.network.named_parameters()]
        norms.append(float(torch.stack([c.square().sum() for c in change]).sum().sqrt()) / 0.1)
    assert norms[0] > 0.01
    assert norms[1] == pytest.approx(1e-3, rel=0.01)


def film(frames, seed):
    """Transitions between pictures, with an episode's end here and there."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(256, size=(frames, 6, 8), dtype=np.uint8)
    first = np.array([t for t in range(frames - 1) if t % 9 != 8])
    return gvf.Transitions(
        state=pictures[first],
        next_state=pictures[first + 1],
        action=rng.integers(2, size=len(first)),
        reward=rng.random(len(first)),
        terminated=first % 9 == 7,
    )


def test_a_window_of_frames_learns_the_same(tmp_path):
    def make(window):
        torch.manual_seed(0)
        question = gvf.GVF(gvf.Fixed([0.8, 0.2]), "reward", 0.9)
        return NeuralLearner(
            question, Picture(), ADAM, behaviour=gvf.Uniform(2), window=window, seed=0
        )

    data = film(120, seed=0)
    plain, frames = make(20), make(FrameWindow(20))
    plain.observe_many(data)
    frames.observe_many(data[:50])
    frames.save(tmp_path / "learner.npz")
    frames = make(FrameWindow(20)).load(tmp_path / "learner.npz")
    frames.observe_many(data[50:])
    assert_same_weights(weights_of(frames.network), weights_of(plain.network))
    assert frames.updates == len(data)


def test_a_diverged_network_is_reported():
    learner = vector_learner(optimiser=partial(torch.optim.SGD, lr=1e6))
    assert learner.report().diverged == ()
    learner.observe_many(vector_stream(200, seed=1))
    assert learner.report().diverged == (0,)


def test_predictions_are_made_in_eval_mode_and_training_goes_on():
    network = torch.nn.Sequential(torch.nn.Dropout(0.5), mlp(3, (5,)).double())
    learner = vector_learner(network)
    np.testing.assert_array_equal(learner.predict(VECTORS), learner.predict(VECTORS))
    assert network.training


def test_predictions_leave_every_part_in_its_own_mode_even_when_they_fail():
    kept = torch.nn.Dropout(0.5).eval()
    network = torch.nn.Sequential(kept, torch.nn.Dropout(0.5), mlp(3, (5,)).double())
    network.training = True
    learner = vector_learner(network)
    before = [part.training for part in network.modules()]
    assert before[:3] == [True, False, True]
    learner.predict(VECTORS)
    assert [part.training for part in network.modules()] == before
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        learner.predict(np.zeros((2, 4)))
    assert [part.training for part in network.modules()] == before


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"network": "mlp"}, TypeError, "network must be a torch.nn.Module, got 'mlp'"),
        ({"optimiser": 0.1}, TypeError, "a function that makes one, such as"),
        ({"optimiser": torch.optim.SGD([torch.zeros(1)], 0.1)}, TypeError, "a function that makes"),
        ({"clip": 0.0}, ValueError, "clip must be a positive number, or None for none, got 0.0"),
        ({"clip": "a"}, TypeError, "clip must be a positive number or None, got 'a'"),
        ({"target_every": 0}, ValueError, "target_every must be at least 1"),
        ({"target_every": 1.5}, TypeError, "target_every must be an integer, got 1.5"),
        ({"optimiser": torch.optim.LBFGS}, ValueError, "LBFGS evaluates the loss several times"),
        ({"optimiser": list}, TypeError, "must make a torch.optim.Optimizer, and made"),
        ({"network": torch.nn.Tanh()}, ValueError, r"network has no parameters to train: Tanh\(\)"),
        ({"network": mlp(3).requires_grad_(False)}, ValueError, "no parameters to train"),
        ({"device": "gpu"}, ValueError, 'device must be "cpu" or "cuda", got \'gpu\''),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        ({"correction": "IR"}, TypeError, "correction must be a gvf.Correction, got 'IR'"),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        vector_learner(**options)


def test_a_window_with_something_in_it_is_refused():
    window = gvf.Window(3)
    window.append(state=0)
    with pytest.raises(ValueError, match=r"fills its window itself.*Window\(1 of 3"):
        vector_learner(window=window)


def test_a_network_with_several_outputs_is_refused():
    learner = vector_learner(torch.nn.Linear(3, 2).double())
    with pytest.raises(ValueError, match=r"to values \[m\] or \[m, 1\]; this one gives \[5, 2\]"):
        learner.predict(VECTORS)


class Mean(torch.nn.Module):
    """One value for all states together, as no network should."""

    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(3, 1, dtype=torch.float64)

    def forward(self, states):
        return self.dense(states).mean(dim=0)


@pytest.mark.parametrize("together", [None, True, False])
def test_a_network_with_one_output_for_all_states_is_refused(together):
    if together is None:
        predictor = vector_learner(Mean())
        with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[4, 3\]"):
            predictor.observe_many(vector_stream(5, seed=1))
    else:
        predictor = Lanes(Mean, torch.optim.SGD, RATES, SEEDS, group=GROUP, together=together)
        with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[4, 3\]"):
            predictor.update(*batch(vectors, np.random.default_rng(0)))
    with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[5, 3\]"):
        predictor.predict(VECTORS)


def either(network):
    """A learner and lanes with the same network."""
    return (
        vector_learner(network()),
        *(Lanes(network, torch.optim.SGD, [0.1], [0], together=t) for t in (True, False)),
    )


def test_a_single_state_needs_an_axis_in_front():
    for predictor in either(vectors):
        with pytest.raises(ValueError, match=r"gives \[\] for states \[3\] \(a single state needs"):
            predictor.predict([0.0, 0.0, 0.0])
        with pytest.raises(
            ValueError, match=r"must be a batch \[m, ...\], got the single number 2"
        ):
            predictor.predict(2)


def test_integers_for_a_network_of_fractions_say_so():
    for predictor in either(partial(torch.nn.Linear, 3, 1)):
        with pytest.raises(RuntimeError) as caught:
            predictor.predict([[0, 0, 0]])
        assert "give it fractions: [[0.0, 0.0]], not [[0, 0]]" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError) as caught:
            predictor.predict([[0.0, 0.0]])
        assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("correction", [gvf.IS(), gvf.BCIR()], ids=lambda c: c.name)
def test_a_weight_that_the_network_cannot_hold_is_named(correction):
    data = vector_stream(1, seed=1)
    data.action[:] = 0
    data.behaviour_probability[:] = 1e-40  # ratios of 8e39
    vector_learner(correction=correction).observe_many(data)
    narrow = vector_learner(small(0, torch.float32), correction=correction)
    before = weights_of(narrow.network)
    with pytest.raises(ValueError, match=r"weight 2e\+39 .* ratio is 8e\+39, is no number of .*32"):
        narrow.observe_many(data)
    assert_same_weights(weights_of(narrow.network), before)
    vector_learner(small(0, torch.float32), correction=gvf.IR()).observe_many(data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_so():
    with pytest.raises(ValueError, match="finds no GPU here for device='cuda'; choose \"cpu\""):
        vector_learner(device="cuda")
    with pytest.raises(ValueError, match="finds no GPU here for device='cuda:1'"):
        Lanes(vectors, torch.optim.SGD, [0.1], [0], device=torch.device("cuda:1"))


def test_frames_are_copied_once_an_update(monkeypatch):
    question = gvf.GVF(POLICY, "reward", 0.9)
    learner = NeuralLearner(
        question, picture(), SGD, behaviour=gvf.Uniform(2), window=FrameWindow(20), seed=0
    )
    monkeypatch.setattr(FrameWindow, "__getitem__", None)
    learner.observe_many(film(30, seed=0))
    assert learner.updates > 20


# Lanes


OPTIMISERS = {
    "SGD": partial(torch.optim.SGD, momentum=0.5),
    "Adam": torch.optim.Adam,
    "RMSprop": partial(torch.optim.RMSprop, alpha=0.9),
}
RATES, SEEDS, GROUP = (0.1, 0.01, 0.1, 0.03, 0.01), (0, 0, 1, 2, 0), (1, 0, 0, 1, 1)


def picture(dtype=torch.float64):
    return Picture().to(dtype)


def vectors(dtype=torch.float64):
    return mlp(3, (5,)).to(dtype)


def batch(make, rng, groups=2, k=4):
    """Draws for every group, and weights for every lane."""
    if make is picture:
        states, next_states = rng.integers(256, size=(2, groups, k, 6, 8), dtype=np.uint8)
    else:
        states, next_states = rng.normal(size=(2, groups, k, 3))
    cumulant, continuation = rng.normal(size=(groups, k)), rng.random((groups, k))
    return states, next_states, cumulant, continuation, rng.random((len(RATES), k)) / k


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


def test_states_from_before_lanes_kept_their_arguments_can_be_loaded():
    lanes = Lanes(vectors, torch.optim.SGD, RATES, SEEDS)
    lanes.update(*batch(vectors, np.random.default_rng(0), groups=1))
    state = {
        name: part
        for name, part in lanes.state_dict().items()
        if name not in ("learning_rates", "seeds", "group")
    }
    again = Lanes(vectors, torch.optim.SGD, RATES, SEEDS)
    again.load_state_dict(state)
    assert torch.equal(again.predict(VECTORS), lanes.predict(VECTORS))


# Networks


def test_both_convolutions_of_the_driving_network_are_the_same_function():
    frames = torch.randint(256, (2, 64, 128), dtype=torch.uint8)
    torch.manual_seed(0)
    native = driving_network().double()
    torch.manual_seed(0)
    unfolded = driving_network(convolution="unfold").double()
    assert_same_weights(weights_of(native), weights_of(unfolded))
    values = native(frames)
    torch.testing.assert_close(unfolded(frames), values, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(native(frames.double()), values)
    gradients = [
        torch.autograd.grad(v.sum(), list(network.parameters()))
        for v, network in ((values, native), (unfolded(frames), unfolded))
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_the_driving_network_is_that_of_the_publication():
    network = driving_network()
    shapes = [tuple(w.shape) for name, w in network.named_parameters() if name.endswith("weight")]
    assert shapes == [
        (24, 1, 5, 5), (36, 24, 5, 5), (48, 36, 5, 5), (64, 48, 3, 3), (64, 64, 3, 3),
        (100, 576), (50, 100), (10, 50), (1, 10),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="'native' or 'unfold', got 'fft'"):
        driving_network(convolution="fft")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("convolution", ["native", "unfold"])
def test_lanes_of_the_driving_network_work_as_a_stack(convolution):
    make = partial(driving_network, convolution=convolution)
    stacked, apart = (
        Lanes(lambda: make().double(), torch.optim.SGD, [0.1, 0.01], [0, 1], group=[0, 1],
              together=together)
        for together in (True, False)
    )  # fmt: skip
    frames = torch.randint(256, (2, 2, 64, 128), dtype=torch.uint8)
    for lanes in (stacked, apart):
        for _ in range(2):
            lanes.update(frames, frames.flip(0), torch.ones(2, 2), torch.ones(2, 2) / 2,
                         torch.ones(2, 2))  # fmt: skip
    torch.testing.assert_close(
        stacked.predict(frames[0]), apart.predict(frames[0]), rtol=1e-9, atol=1e-11
    )


def test_the_driving_network_sees_images_of_mean_0_and_sd_1():
    seen = []
    network = driving_network()
    convolution = next(m for m in network.modules() if isinstance(m, torch.nn.Conv2d))
    convolution.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    frames = torch.randint(0, 100, (3, 64, 128), dtype=torch.uint8)
    frames[2] = 7
    network(frames)
    assert seen[0].shape == (3, 1, 64, 128)
    means, spreads = seen[0].mean(dim=(1, 2, 3)), seen[0].std(dim=(1, 2, 3))
    torch.testing.assert_close(means, torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(spreads, torch.tensor([1.0, 1.0, 0.0]), atol=0.05, rtol=0)


# The extra


def test_without_torch_the_error_says_what_to_install():
    program = "import sys; sys.modules['torch'] = None; import gvf.neural"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ImportError: gvf.neural needs PyTorch" in done.stderr
    assert 'pip install "gvf[torch]"' in done.stderr
