"""Neural hordes: against linear hordes, neural learners and autograd of what is written out."""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from many_learners import BEHAVIOUR, CORRECTIONS, asked, near_the_edge, record, slots_of, stream
from networks import assert_same_weights, weights_of

import gvf
from gvf.window.buffer import write_means

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import NeuralHorde, NeuralLearner, heads  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

SGD = partial(torch.optim.SGD, lr=0.1)
OPTIMISERS = {
    "SGD": SGD,
    "momentum": partial(torch.optim.SGD, lr=0.02, momentum=0.9),
    "Adam": partial(torch.optim.Adam, lr=0.01),
    "RMSprop": partial(torch.optim.RMSprop, lr=0.003),
    "Adagrad": partial(torch.optim.Adagrad, lr=0.05),
}
WINDOW = 40
TWO = gvf.question_grid(
    {"u": gvf.policies.Uniform(3), "one": gvf.policies.Always(1, actions=3)},
    {"good": "reward", "weak": "weak"},
    [0.5],
)


def trunk(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.Tanh()).to(dtype)


def made(questions, body=None, optimiser: Any = SGD, correction=None, **options):
    options = {"window": WINDOW, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return NeuralHorde(
        questions, body or trunk(), optimiser, correction or gvf.corrections.IR(), **options
    )


def with_signals(data, **columns):
    return gvf.Transitions(**data.columns, **columns)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_heads_of_a_fixed_trunk_are_a_linear_horde(correction):
    data = stream(120, states=0)
    body = trunk().requires_grad_(False)

    def outputs(states):
        return np.column_stack([body(torch.as_tensor(states)).numpy(), np.ones(len(states))])

    linear = gvf.Horde(
        asked(),
        gvf.features.Dense(7, outputs),
        gvf.updates.TD(0.1),
        correction,
        behaviour=BEHAVIOUR,
        window=WINDOW,
        batch_size=4,
        seed=0,
    )
    neural = made(asked(), body, correction=correction)
    for start in range(0, 120, 50):
        for horde in (linear, neural):
            horde.observe(data[start : start + 50])
    assert np.abs(linear.predict(data.state)).max() > 0.1
    np.testing.assert_allclose(
        neural.predict(data.state), linear.predict(data.state), rtol=1e-12, atol=1e-12
    )
    for name in linear.names:
        np.testing.assert_allclose(
            neural.weights(name), linear.weights(name), rtol=1e-11, atol=1e-12
        )
    assert repr(neural.report()) == repr(linear.report())


@pytest.mark.parametrize("target_every", [None, 3])
@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_one_question_is_a_neural_learner(optimiser, target_every):
    data = stream(120, states=0)
    question = gvf.GVF(gvf.policies.Fixed([0.5, 0.4, 0.1]), "reward", 0.9)
    horde = made([question], optimiser=optimiser, target_every=target_every)
    batches = record(horde, data.state[:1])
    horde.observe(data)
    network = torch.nn.Sequential(*trunk(), torch.nn.Linear(6, 1, dtype=torch.float64))
    for weights in network[-1].parameters():
        torch.nn.init.zeros_(weights)
    learner = NeuralLearner(
        question,
        network,
        optimiser,
        behaviour=BEHAVIOUR,
        window=WINDOW,
        batch_size=4,
        target_every=target_every,
    )
    buffer, given = learner.buffer, slots_of(batches, 0, WINDOW)

    def draw(k, rng):
        write_means(buffer.masses, buffer.mass, buffer._means)
        return next(given)

    buffer.draw = draw
    learner.observe(data)
    assert learner.updates == horde.updates == 120
    assert np.abs(learner.predict(data.state)).max() > 0.1
    np.testing.assert_allclose(
        horde.predict(data.state)[:, 0], learner.predict(data.state), rtol=1e-11, atol=1e-12
    )
    for one, other in zip(horde.trunk.parameters(), network.parameters(), strict=False):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


def by_autograd(horde, batches, data, body, optimiser, target_every=None):
    """Predictions of a loop over questions: a loss each, and the mean for the trunk."""
    layout = horde._layout
    own = [torch.zeros(7, dtype=torch.float64, requires_grad=True) for _ in horde.questions]
    numbers = [q.evaluate(data, behaviour=BEHAVIOUR) for q in horde.questions]
    parameters = list(body.parameters())
    stepper = optimiser([*parameters, *own])
    target = copy.deepcopy((body, own))

    def value(network, head, state):
        return torch.cat([network(torch.from_numpy(state)), torch.ones(1)]) @ head

    updates = [(b, u) for b in batches for u in range(len(b.w))]
    for t, (batch, u) in enumerate(updates):
        slopes = []
        for q in range(len(own)):
            own[q].grad = None
            g = layout.group[layout.place[q]]
            if not batch.has_mass[u, g]:
                continue
            loss = torch.zeros((), dtype=torch.float64)
            slots = batch.slots[u, 0 if batch.slots.shape[1] == 1 else g]
            for slot, w in zip(slots, batch.w[u, g], strict=True):
                row = max(i for i in range(t + 1) if i % WINDOW == slot)
                network, head = (target[0], target[1][q]) if target_every else (body, own[q])
                ahead = value(network, head, data.next_state[row]).item()
                goal = numbers[q].cumulant[row] + numbers[q].continuation[row] * ahead
                loss = loss + w * (goal - value(body, own[q], data.state[row])) ** 2 / 2
            *of_trunk, own[q].grad = torch.autograd.grad(loss, [*parameters, own[q]])
            slopes.append(of_trunk)
        for weights, each in zip(parameters, zip(*slopes, strict=True), strict=True):
            weights.grad = torch.stack(each).mean(dim=0)
        stepper.step()
        if target_every and (t + 1) % target_every == 0:
            target = copy.deepcopy((body, own))
    with torch.no_grad():
        return np.array([[value(body, head, s).item() for head in own] for s in data.state])


@pytest.mark.parametrize("rows", [1024, 3])
@pytest.mark.parametrize(
    ("correction", "options"),
    [
        (gvf.corrections.IR(), {}),
        (gvf.corrections.IR(), {"target_every": 4}),
        (gvf.corrections.WISMinibatch(), {}),
        (gvf.corrections.EmphaticIR(0.5), {}),
        (gvf.corrections.WISOptimal(), {}),
    ],
    ids=lambda part: getattr(part, "name", str(part)),
)
def test_a_horde_is_a_loop_over_questions(correction, options, rows, monkeypatch):
    monkeypatch.setattr(heads, "ROWS", rows)
    steps = 15 if correction.draw.whole else 30
    data = stream(steps, states=0)
    # Two groups have as many questions, and the third has fewer, and no mass at first.
    policies = {"a": gvf.policies.Fixed([0.6, 0.3, 0.1]), "b": gvf.policies.Fixed([0.1, 0.1, 0.8])}
    signals = {"reward": "reward", "one": lambda t: np.ones(len(t))}
    questions = gvf.question_grid(policies, signals, {"0.9": 0.9, "edge": near_the_edge})
    questions.append(gvf.GVF(gvf.policies.Always(1, 3), "reward", 0.5))
    horde = made(questions, correction=correction, **options)
    batches = record(horde, data.state[:1])
    horde.observe(data)
    expected = by_autograd(horde, batches, data, trunk(), SGD, **options)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(horde.predict(data.state), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_a_failing_sensor_pauses_its_questions_only(optimiser):
    data = stream(150, states=0)
    weak = data.reward.copy()
    weak[40:43] = np.nan
    sick = with_signals(data, weak=weak)
    horde, alone = made(TWO, optimiser=optimiser), made(TWO, optimiser=optimiser)
    for one in (horde, alone):
        one.observe(sick[:40])
    before, memory = horde.weights("u, weak, 0.5"), memory_of(horde, "u, weak, 0.5")
    # The others learn as if those that pause were not there.
    alone.remove(["u, weak, 0.5", "one, weak, 0.5"])
    for one in (horde, alone):
        one.observe(sick[40:80])
    assert [*map(np.array_equal, memory, memory_of(horde, "u, weak, 0.5"))] == [True] * len(memory)
    assert list(horde.report().paused) == ["u, weak, 0.5", "one, weak, 0.5"]
    np.testing.assert_array_equal(horde.weights("u, weak, 0.5"), before)
    np.testing.assert_allclose(
        horde.predict(data.state, alone.names), alone.predict(data.state), rtol=1e-12, atol=1e-14
    )
    horde.observe(sick[80:])
    assert not horde.report().paused
    assert (horde.weights("u, weak, 0.5") != before).any()


def memory_of(horde, name):
    """Copies of what the optimiser keeps for the head of a question."""
    heads = horde._weights.network.heads
    parts = horde.optimiser.state[heads].values()
    return [p[horde._place(name)].numpy().copy() for p in parts if p.shape == heads.shape]


WILD = [*TWO, gvf.GVF(gvf.policies.Uniform(3), "wild", 0.5, name="wild")]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_wild_sensor_is_paused_and_named(kind):
    data = stream(80, states=0)
    wild = np.where(np.arange(80) == 50, 1e200, data.reward)  # infinite in 32 bits
    both = with_signals(data, weak=data.reward, wild=wild)
    alone, horde = (made(WILD, trunk(dtype=kind), clip=0.1) for _ in range(2))
    for one in (alone, horde):
        one.observe(both[:50])
    alone.remove("wild")
    for one in (alone, horde):
        one.observe(both[50:])
    expected = "a signal was not finite" if kind == torch.float32 else "it has diverged"
    assert horde.report().paused == {"wild": expected}
    # The trunk has followed it for a few updates at most, as far as the clip allows.
    apart = np.abs(horde.predict(data.state, alone.names) - alone.predict(data.state)).max()
    assert apart < 0.05
    before = horde.weights("wild")
    horde.observe(both[:5])
    np.testing.assert_array_equal(horde.weights("wild"), before)


def test_heads_that_grow_without_bound_are_paused_at_once():
    data = stream(60, states=0, ends=0.0)
    behaviour = gvf.policies.Fixed([1e-4, 0.5, 0.4999])
    action = np.where(np.arange(60) % 20 == 10, 0, 1)
    near = gvf.question_grid(
        {"near": gvf.policies.Fixed([0.0, 0.6, 0.4])}, {"reward": "reward"}, [0.0, 0.5]
    )
    far = gvf.GVF(
        gvf.policies.Always(0, 3), "reward", 0.9, name="far"
    )  # its ratios are 0 and 10,000
    given = gvf.Transitions(**{**data.columns, "action": action})
    horde = made([*near, far], correction=gvf.corrections.IS(), behaviour=behaviour, clip=0.1)
    horde.observe(given)
    assert horde._shard.pauses.diverged.tolist() == [False, False, True]
    assert horde.report().paused == {"far": "it has diverged"}
    assert np.abs(horde.predict(data.state)[:, :2]).max() < 5.0


def test_a_clip_bounds_what_one_question_does_to_the_trunk():
    data = stream(40, states=0)
    loud = 1e6 * data.reward
    both = with_signals(data, weak=data.reward, wild=loud)
    plain, free, clipped = trunk(), trunk(), trunk()
    made(WILD, free).observe(both[:3])
    horde = made(WILD, clipped, clip=0.1)
    horde.observe(both)
    moved, far = (
        max((a - b).abs().max() for a, b in zip(one.parameters(), plain.parameters(), strict=True))
        for one in (clipped, free)
    )
    assert far > 1e6
    assert 0.001 < moved < 40 * 0.1 * 0.1  # updates, step size, clip


def test_a_clip_does_not_count_the_bias():
    data, body, norms = stream(40, states=0), trunk(), []
    question = gvf.GVF(gvf.policies.Uniform(3), "reward", 0.5)
    horde = made([question], body, clip=0.1, batch_size=1)
    with pytest.warns(gvf.NotLearnedWarning):
        horde.predict(data.state[:1])
    heads = horde._weights.network.heads.detach()
    heads[:, :-1], heads[:, -1] = 0.3, 20.0

    def listen(module, states, outputs):
        if outputs.requires_grad:
            outputs.register_hook(lambda gradient: norms.append(gradient.norm().item()))

    body.register_forward_hook(listen)
    horde.observe(data[:5])
    np.testing.assert_allclose(norms, np.full(5, 0.1), rtol=1e-12)


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize(
    "options", [{}, {"target_every": 3, "correction": gvf.corrections.EmphaticIR(0.5)}]
)
def test_a_neural_horde_is_saved_and_goes_on_bit_for_bit(tmp_path, optimiser, options):
    data = stream(90, states=0)
    horde = made(asked(), optimiser=optimiser, **options)
    horde.observe(data[:50])
    horde.save(tmp_path / "horde")
    again = made(asked(), trunk(1), optimiser, seed=5, **options)
    again.load(tmp_path / "horde", same_functions=True)
    for one in (horde, again):
        one.observe(data[50:])
    np.testing.assert_array_equal(again.predict(data.state), horde.predict(data.state))
    assert_same_weights(weights_of(again.trunk), weights_of(horde.trunk))
    assert repr(again.report()) == repr(horde.report())


def test_a_horde_that_has_seen_nothing_is_saved(tmp_path):
    data = stream(30, states=0)
    horde, again = made(TWO[:1]), made(TWO[:1], trunk(1), seed=5)
    horde.save(tmp_path / "horde")
    again.load(tmp_path / "horde")
    for one in (horde, again):
        one.observe(data)
    np.testing.assert_array_equal(again.predict(data.state), horde.predict(data.state))
    with pytest.raises(ValueError, match=r"optimiser: there 'SGD\(lr=0.1\)', here 'SGD\(lr=0.2\)'"):
        made(TWO[:1], optimiser=partial(torch.optim.SGD, lr=0.2)).load(tmp_path / "horde")


OTHERS = {**OPTIMISERS, "Adafactor": partial(torch.optim.Adafactor, lr=0.01)}


@pytest.mark.parametrize("optimiser", OTHERS.values(), ids=OTHERS)
def test_questions_come_and_go(optimiser):
    data = stream(120, states=0)
    both = with_signals(data, weak=data.reward**2)
    horde = made(TWO[:3], optimiser=optimiser, target_every=2)
    horde.observe(both[:50])
    for change in (lambda: horde.add([TWO[3]]), lambda: horde.remove("one, good, 0.5")):
        before = dict(zip(horde.names, horde.predict(data.state).T, strict=True))
        memory = {name: memory_of(horde, name) for name in horde.names}
        change()
        for name in set(before) & set(horde.names):
            np.testing.assert_allclose(horde.predict(data.state, name), before[name], rtol=1e-12)
            for one, other in zip(memory_of(horde, name), memory[name], strict=True):
                np.testing.assert_array_equal(one, other)
        horde.observe(both[50:90])
    assert horde.names == (TWO[0].name, TWO[1].name, TWO[3].name)
    assert horde.weights(TWO[3].name).any()


def test_a_new_question_does_not_move_the_trunk_at_once():
    data = stream(60, states=0)
    alone, joined = made(TWO[:1]), made(TWO[:1])
    for one in (alone, joined):
        one.observe(data[:50])
    joined.add([replace(TWO[0], name="same, from now on")])
    for one in (alone, joined):
        one.observe(data[50:51])
    np.testing.assert_allclose(joined.weights(TWO[0].name), alone.weights(TWO[0].name), rtol=1e-12)
    with pytest.raises(ValueError, match="at least one question"):
        alone.remove(TWO[0].name)
    with pytest.raises(ValueError, match="number of actions"):
        alone.add([gvf.GVF(gvf.policies.Uniform(4), name="four")])
    alone.observe(data[51:])
    assert alone.updates == 60


class Frames(torch.nn.Module):
    """A convolution for frames of 6 x 8 in uint8."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 3, 3, 2)

    def forward(self, frames):
        return torch.tanh(self.convolution(frames.unsqueeze(1) / 255)).flatten(1)


def test_updates_without_mass_leave_everything():
    data = stream(10, states=0)
    never = gvf.Transitions(**{**data.columns, "action": np.zeros(10, int)})
    body, calls = trunk(), []
    horde = made([gvf.GVF(gvf.policies.Always(1, 3), "reward", 0.9)], body, OPTIMISERS["momentum"])
    horde._predict(never.state)
    body.register_forward_hook(lambda *given: calls.append(given))
    horde.observe(never)
    assert not calls
    assert_same_weights(weights_of(body), weights_of(trunk()))
    assert horde.report().skipped == {"Always(1, 3)": 10}
    assert not horde.optimiser.state


def test_states_may_be_frames_or_numbers():
    data, rng = stream(40, states=7), np.random.default_rng(0)
    film = rng.integers(256, size=(7, 6, 8), dtype=np.uint8)
    seen = gvf.Transitions(
        **{**data.columns, "state": film[data.state], "next_state": film[data.next_state]}
    )
    for body, given in ((Frames(), seen), (torch.nn.Embedding(7, 3), data)):
        horde = made(TWO[:1], body)
        horde.observe(given)
        assert horde.predict(given.state).shape == (40, 1)
        assert horde.weights(TWO[0].name).any()


def test_predictions_do_not_disturb_parts_in_eval_mode():
    body = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5))
    horde = made(TWO[:1], body)
    data = stream(20, states=0)
    horde.observe(data)
    first, second = (horde.predict(data.state) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert body[1].training


def test_a_horde_acts_in_an_environment_and_learns():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    policies = {name: gvf.policies.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")}
    questions = gvf.question_grid(policies, {"reward": "reward"}, [0.5, 0.9])
    torch.manual_seed(0)
    horde = made(
        questions, torch.nn.Embedding(16, 16), partial(torch.optim.Adam, lr=0.05),
        behaviour=gvf.policies.Uniform(4), window=1000,
    )  # fmt: skip
    report = horde.learn(env, steps=300, seed=0)
    assert (report.steps, report.updates, report.questions) == (300, 300, 8)
    assert horde.predict([14]).shape == (1, 8)
    assert horde.predict([14], ["R, reward, 0.9"]).shape == (1, 1)
    with pytest.raises(KeyError, match="no question is named 'X'"):
        horde.predict([14], "X")


NAN = with_signals(stream(5, states=0), weak=np.zeros(5))
NAN.columns["state"][2] = np.nan


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made([]), "a horde needs at least one question"),
        (lambda: made([TWO[0], TWO[0]]), "two questions are named 'u, good, 0.5'"),
        (lambda: made(TWO, behaviour=gvf.policies.Uniform(2)), "targets and behaviour differ"),
        (
            lambda: made(TWO, correction=gvf.corrections.PrioritisedIR()),
            "follow the errors of one question",
        ),
        (lambda: made(TWO, device="tpu"), 'device must be "cpu" or "cuda"'),
        (lambda: made(TWO, clip=-1.0), "clip must be a positive number"),
        (lambda: made(TWO, optimiser=torch.optim.LBFGS), "LBFGS evaluates the loss several times"),
        (
            lambda: made(TWO, torch.nn.Flatten(0)).predict([[0.0, 0.0]]),
            r"states \[m, ...\] to \[m, d\]; this one gives \[2\] for states \[1, 2\]",
        ),
        (lambda: made(TWO).predict(0.5), "states must be a batch"),
        (lambda: made(TWO).observe(NAN), r"state\[0\] is nan at position 2"),
        (
            lambda: made(TWO).predict([{"lidar": [0.0], "door": 1}]),
            "these states have the fields lidar, door",
        ),
        (
            lambda: change_form(np.zeros((5, 3))),
            r"the same form; got float64\[3\] and float64\[2\]",
        ),
        (lambda: change_form(np.zeros((5, 2), int)), r"the same form; got int64\[2\]"),
        (
            lambda: made(TWO, torch.nn.Linear(2, 3).half()),
            r"float32 or float64, got float16; .* mixed_precision=True",
        ),
        (
            lambda: made(TWO, optimiser=lambda p: torch.optim.SGD(list(p)[1:], lr=0.1)),
            "leaves out the heads",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def change_form(states):
    horde = made(TWO[:1])
    data = stream(5, states=0)
    horde.observe(data)
    before = horde.steps
    try:
        horde.observe(gvf.Transitions(**{**data.columns, "state": states}))
    finally:
        assert horde.steps == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made(TWO[0]), "questions must be a list"),
        (lambda: made(TWO, lambda states: states), "trunk must be a torch.nn.Module"),
        (
            lambda: made(TWO, optimiser=torch.optim.SGD([torch.zeros(1)])),
            "a function that makes one",
        ),
        (lambda: made(TWO, optimiser=lambda parameters: 3), "must make a torch.optim.Optimizer"),
        (
            lambda: made(TWO, correction=gvf.updates.TD(0.1)),
            "correction must be a gvf.corrections.Correction",
        ),
        (
            lambda: made(TWO, torch.nn.LSTM(2, 3)).predict([[0.0, 0.0]]),
            r"a trunk must return a tensor \[m, d\], got",
        ),
    ],
)
def test_parts_of_the_wrong_kind_are_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_neural_horde_is_watched_and_diagnosed(tmp_path):
    horde = made(asked())
    with pytest.raises(ValueError, match="the window is empty"):
        horde.diagnose()
    horde.observe(stream(200, states=0))
    assert np.isfinite(horde.report().ude).all()
    assert len(horde.diagnose().policies) == horde._layout.groups
    with pytest.raises(ValueError, match="has no update of its own"):
        horde.diagnose(horde.names[0])
    with pytest.raises(ValueError, match="a NeuralHorde has no export"):
        horde.export(tmp_path / "horde")
    horde.save(tmp_path / "horde")
    with pytest.raises(ValueError, match="make the NeuralHorde as before"):
        gvf.load(tmp_path / "horde")


def test_transitions_with_a_nan_are_left_out_if_asked():
    data = stream(60, states=0)
    state = data.state.copy()
    state[[5, 30]] = np.nan
    broken = gvf.Transitions(**{**data.columns, "state": state})
    horde = made(asked(), on_nan="skip")
    horde.observe(broken)
    assert (horde.steps, horde.report().missing) == (58, 2)
    with pytest.raises(ValueError, match="nan at position 5"):
        made(asked()).observe(broken)


def test_a_bad_row_is_named_and_no_row_before_it_is_learned_from():
    data = stream(700, states=0)
    action = data.action.copy()
    action[600] = 7
    horde = made(asked())
    with pytest.raises(ValueError, match="position 600"):
        horde.observe(gvf.Transitions(**{**data.columns, "action": action}))
    assert horde.steps == 0
