"""Neural learners: gradients, resuming, bad input; against autograd of what is written out."""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import dumb
import numpy as np
import pytest
from five_states import (
    BEHAVIOUR,
    CHAIN,
    CHAIN_BEHAVIOUR,
    CORRECTIONS,
    QUESTION,
    chain_stream,
    chain_values,
    stream,
)
from networks import (
    VECTORS,
    OneHot,
    Picture,
    assert_same_weights,
    picture,
    vectors,
    weights_of,
)

import gvf
from gvf.window.frame_window import FrameWindow

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import NeuralLearner, mlp  # noqa: E402
from gvf.neural import neural_learner as learner_module  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

SGD = partial(torch.optim.SGD, lr=0.1)
ADAM = partial(torch.optim.Adam, lr=0.01)


def small(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return mlp(3, (5,)).to(dtype)


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


POLICY = gvf.policies.Fixed([0.8, 0.2])
VECTOR_QUESTION = gvf.GVF(POLICY, "reward", 0.9)


def vector_learner(network=None, optimiser: Any = SGD, correction=None, **options):
    options = {"window": 7, "batch_size": 4, "seed": 3, **options}
    return NeuralLearner(
        VECTOR_QUESTION,
        network or small(),
        optimiser,
        correction or gvf.corrections.IR(),
        **options,
    )


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_a_table_learns_what_the_linear_learner_learns(correction):
    options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3}
    network = OneHot(5)
    neural = NeuralLearner(
        QUESTION, network, partial(torch.optim.SGD, lr=0.3), correction, **options
    )
    linear = gvf.Learner(
        QUESTION, gvf.features.OneHot(5), gvf.updates.TD(0.3), correction, **options
    )
    for transition in stream(25, seed=8):
        neural.observe(*transition)
        linear.observe(*transition)
    assert np.abs(linear.weights).max() > 0.1
    np.testing.assert_allclose(neural.predict(np.arange(5)), linear.weights, rtol=1e-12)
    ours, plain = neural.report(), linear.report()
    assert ours.largest_predictions == pytest.approx(plain.largest_predictions, rel=1e-12)
    assert replace(ours, largest_predictions=plain.largest_predictions) == plain


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
    learner.observe(data)
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


@pytest.mark.parametrize(
    "correction", [gvf.corrections.IR(), gvf.corrections.WISMinibatch()], ids=lambda c: c.name
)
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
        update_every=4,
        seed=0,
    )
    truth = chain_values(CHAIN.policy, CHAIN.continuation)
    before = np.abs(learner._predict(np.arange(5)) - truth).mean()
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 4000, seed=0))
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
    through.observe(data)
    first.observe(data[:25])
    first.save(tmp_path / "learner.npz")
    second = vector_learner(small(1, kind), ADAM, **options).load(tmp_path / "learner.npz")
    second.observe(data[25:])
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
        NeuralLearner(question, picture(), SGD, behaviour=gvf.policies.Uniform(2), window=w, seed=0)
        for w in (windows if frames_first else windows[::-1])
    )
    first.observe(film(40, seed=0))
    first.save(tmp_path / "learner.npz")
    there, here = ("'30 frames'", "30")[:: 1 if frames_first else -1]
    with pytest.raises(
        ValueError, match=rf"another learner:\n  window: there {there}, here {here}"
    ):
        second.load(tmp_path / "learner.npz")


def test_the_target_network_gives_next_values_and_follows_now_and_then():
    data = vector_stream(5, seed=1)
    learner = vector_learner(correction=gvf.corrections.WISOptimal(), target_every=2)
    alone = small()
    targets = [copy.deepcopy(alone)]
    optimiser = SGD(alone.parameters())
    for t in range(1, 6):
        learner.observe(data[t - 1 : t])
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
    at_once, in_pieces = (vector_learner(correction=gvf.corrections.WISOptimal()) for _ in range(2))
    at_once.observe(data)
    monkeypatch.setattr(learner_module, "ROWS", 3)
    in_pieces.observe(data)
    np.testing.assert_allclose(
        in_pieces.predict(VECTORS), at_once.predict(VECTORS), rtol=1e-12, atol=1e-14
    )


def test_clipped_gradients_have_at_most_that_norm():
    data = vector_stream(12, seed=1)
    norms = []
    for clip in (None, 1e-3):
        learner = vector_learner(clip=clip, warm_up=11)
        before = weights_of(learner.network)
        learner.observe(data)
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
        question = gvf.GVF(gvf.policies.Fixed([0.8, 0.2]), "reward", 0.9)
        return NeuralLearner(
            question, Picture(), ADAM, behaviour=gvf.policies.Uniform(2), window=window, seed=0
        )

    data = film(120, seed=0)
    plain, frames = make(20), make(FrameWindow(20))
    plain.observe(data)
    frames.observe(data[:50])
    frames.save(tmp_path / "learner.npz")
    frames = make(FrameWindow(20)).load(tmp_path / "learner.npz")
    frames.observe(data[50:])
    assert_same_weights(weights_of(frames.network), weights_of(plain.network))
    assert frames.updates == len(data)


def test_a_diverged_network_is_reported():
    learner = vector_learner(optimiser=partial(torch.optim.SGD, lr=1e6))
    assert learner.report().diverged == ()
    learner.observe(vector_stream(200, seed=1))
    assert learner.report().diverged == (0,)


def test_predictions_are_made_in_eval_mode_and_training_goes_on():
    network = torch.nn.Sequential(torch.nn.Dropout(0.5), mlp(3, (5,)).double())
    learner = vector_learner(network)
    np.testing.assert_array_equal(learner._predict(VECTORS), learner._predict(VECTORS))
    assert network.training


def test_predictions_leave_every_part_in_its_own_mode_even_when_they_fail():
    kept = torch.nn.Dropout(0.5).eval()
    network = torch.nn.Sequential(kept, torch.nn.Dropout(0.5), mlp(3, (5,)).double())
    network.training = True
    learner = vector_learner(network)
    before = [part.training for part in network.modules()]
    assert before[:3] == [True, False, True]
    learner._predict(VECTORS)
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
        (
            {"correction": "IR"},
            TypeError,
            "correction must be a gvf.corrections.Correction, got 'IR'",
        ),
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


def test_a_network_with_one_output_for_all_states_is_refused():
    predictor = vector_learner(Mean())
    with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[4, 3\]"):
        predictor.observe(vector_stream(5, seed=1))
    with pytest.raises(ValueError, match=r"this one gives \[1\] for states \[5, 3\]"):
        predictor.predict(VECTORS)


def test_a_single_state_needs_an_axis_in_front():
    predictor = vector_learner(vectors())
    with pytest.raises(ValueError, match=r"gives \[\] for states \[3\] \(a single state needs"):
        predictor.predict([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"must be a batch \[m, ...\], got the single number 2"):
        predictor.predict(2)


def test_integers_for_a_network_of_fractions_say_so():
    predictor = vector_learner(torch.nn.Linear(3, 1))
    with pytest.raises(RuntimeError) as caught:
        predictor.predict([[0, 0, 0]])
    assert "give it fractions: [[0.0, 0.0]], not [[0, 0]]" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError) as caught:
        predictor.predict([[0.0, 0.0]])
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    "correction", [gvf.corrections.IS(), gvf.corrections.BCIR()], ids=lambda c: c.name
)
def test_a_weight_that_the_network_cannot_hold_is_named(correction):
    data = vector_stream(1, seed=1)
    data.action[:] = 0
    data.behaviour_probability[:] = 1e-40  # ratios of 8e39
    vector_learner(correction=correction).observe(data)
    narrow = vector_learner(small(0, torch.float32), correction=correction)
    before = weights_of(narrow.network)
    with pytest.raises(ValueError, match=r"weight 2e\+39 .* ratio is 8e\+39, is no number of .*32"):
        narrow.observe(data)
    assert_same_weights(weights_of(narrow.network), before)
    vector_learner(small(0, torch.float32), correction=gvf.corrections.IR()).observe(data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_so():
    with pytest.raises(ValueError, match="finds no GPU here for device='cuda'; choose \"cpu\""):
        vector_learner(device="cuda")


def test_frames_are_copied_once_an_update(monkeypatch):
    question = gvf.GVF(POLICY, "reward", 0.9)
    learner = NeuralLearner(
        question, picture(), SGD, behaviour=gvf.policies.Uniform(2), window=FrameWindow(20), seed=0
    )
    monkeypatch.setattr(FrameWindow, "__getitem__", None)
    learner.observe(film(30, seed=0))
    assert learner.updates > 20


def test_a_trace_of_frames_follows_episodes_and_refuses_shuffled_frames():
    film = np.random.default_rng(0).integers(0, 256, (30, 6, 8), np.uint8)
    first = np.concatenate([np.arange(12), np.arange(14, 28)])
    cut = np.append(np.diff(first) != 1, True)
    rows = gvf.Transitions(
        state=film[first], action=np.arange(26) % 2, reward=np.ones(26), next_state=film[first + 1],
        truncated=cut,
    )  # fmt: skip
    question = gvf.GVF(gvf.policies.Fixed([0.2, 0.8]), "reward", 0.9)

    def learner():
        return NeuralLearner(
            question,
            picture(),
            SGD,
            gvf.corrections.EmphaticIR(),
            behaviour=gvf.policies.Uniform(2),
            seed=0,
            window=FrameWindow(50),
            batch_size=4,
        )

    followed, expected = learner(), [1.0]
    followed.learn([rows])
    for t in range(25):
        carried = 0.9 * (1.6 if rows.action[t] else 0.4) * expected[t]
        expected.append(1.0 if cut[t] else carried + 1.0)
    np.testing.assert_allclose(followed.buffer.inputs[1], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="carries a trace from each transition to the next"):
        learner().learn([rows[::-1]])
