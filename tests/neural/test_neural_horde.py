"""Neural hordes: against linear hordes, neural learners and autograd of what is written out."""

import copy
import io
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from many_learners import BEHAVIOUR, asked, near_the_edge, record, slots_of, stream
from networks import assert_same_weights, weights_of

import gvf
from gvf.window.buffer import write_means

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import NeuralHorde, NeuralLearner, heads, mlp  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

SGD = partial(torch.optim.SGD, lr=0.1)
OPTIMISERS = {
    "SGD": SGD,
    "momentum": partial(torch.optim.SGD, lr=0.02, momentum=0.9),
    "Adam": partial(torch.optim.Adam, lr=0.01),
    "RMSprop": partial(torch.optim.RMSprop, lr=0.003),
}
CORRECTIONS = [
    gvf.IR(),
    gvf.BCIR(),
    gvf.IS(),
    gvf.WISMinibatch(),
    gvf.WISBuffer(),
    gvf.WISOptimal(),
    gvf.VTrace(),
    gvf.NormIS(5.0),
    gvf.Interpolated(0.5),
    gvf.EmphaticIR(0.5),
    gvf.EmphaticIS(0.5),
]
WINDOW = 40
TWO = gvf.questions(
    {"u": gvf.Uniform(3), "one": gvf.Always(1, actions=3)},
    {"good": "reward", "weak": "weak"},
    [0.5],
)


def trunk(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.Tanh()).to(dtype)


def made(questions, body=None, optimiser: Any = SGD, correction=None, **options):
    options = {"window": WINDOW, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return NeuralHorde(questions, body or trunk(), optimiser, correction or gvf.IR(), **options)


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
        gvf.Dense(7, outputs),
        gvf.TD(0.1),
        correction,
        behaviour=BEHAVIOUR,
        window=WINDOW,
        batch_size=4,
        seed=0,
    )
    neural = made(asked(), body, correction=correction)
    for start in range(0, 120, 50):
        for horde in (linear, neural):
            horde.observe_many(data[start : start + 50])
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
    question = gvf.GVF(gvf.Fixed([0.5, 0.4, 0.1]), "reward", 0.9)
    horde = made([question], optimiser=optimiser, target_every=target_every)
    batches = record(horde, data.state[:1])
    horde.observe_many(data)
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
    buffer, given = learner.buffer, slots_of(batches, 0)

    def draw(k, rng):
        write_means(buffer.masses, buffer.mass, buffer._means)
        return next(given)

    buffer.draw = draw
    learner.observe_many(data)
    assert learner.updates == horde.updates == 120
    assert np.abs(learner.predict(data.state)).max() > 0.1
    np.testing.assert_allclose(
        horde.predict(data.state)[:, 0], learner.predict(data.state), rtol=1e-11, atol=1e-12
    )
    for one, other in zip(horde.trunk.parameters(), network.parameters(), strict=False):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


def by_autograd(horde, batches, data, body, optimiser, target_every=None):
    """Predictions of a loop over questions: a loss each, and the mean for the trunk."""
    layout = horde._core.layout
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
            if not batch.drawn[u, g]:
                continue
            loss = torch.zeros((), dtype=torch.float64)
            slots = batch.slots[u, 0 if batch.slots.shape[1] == 1 else g]
            for slot, w in zip(slots, batch.w[u, g], strict=True):
                row = max(i for i in range(t + 1) if i % WINDOW == slot)
                ahead = value(*((body, own[q]) if target_every is None else (target[0], target[1][q])),
                              data.next_state[row]).item()  # fmt: skip
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
        (gvf.IR(), {}),
        (gvf.IR(), {"target_every": 4}),
        (gvf.WISMinibatch(), {}),
        (gvf.EmphaticIR(0.5), {}),
        (gvf.WISOptimal(), {}),
    ],
    ids=lambda part: getattr(part, "name", str(part)),
)
def test_a_horde_is_a_loop_over_questions(correction, options, rows, monkeypatch):
    monkeypatch.setattr(heads, "ROWS", rows)
    steps = 15 if correction.draw.whole else 60
    data = stream(steps, states=0)
    # Not all groups have as many questions, and the third has no mass at first.
    questions = asked()[:14] + [gvf.GVF(gvf.Always(1, 3), "reward", near_the_edge)]
    horde = made(questions, correction=correction, **options)
    batches = record(horde, data.state[:1])
    horde.observe_many(data)
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
    alone.remove(["u, weak, 0.5", "one, weak, 0.5"])
    horde.observe_many(sick[:40])
    # From here on the others learn as if the failing ones were not there.
    before = horde.weights("u, weak, 0.5")
    alone = made(TWO, optimiser=optimiser)
    alone.observe_many(with_signals(data, weak=weak)[:40])
    alone.remove(["u, weak, 0.5", "one, weak, 0.5"])
    for one in (horde, alone):
        one.observe_many(sick[40:80])
    assert list(horde.report().paused) == ["u, weak, 0.5", "one, weak, 0.5"]
    np.testing.assert_array_equal(horde.weights("u, weak, 0.5"), before)
    np.testing.assert_allclose(
        horde.predict(data.state, alone.names), alone.predict(data.state), rtol=1e-12, atol=1e-14
    )
    horde.observe_many(sick[80:])
    assert not horde.report().paused
    assert (horde.weights("u, weak, 0.5") != before).any()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_question_that_diverges_disturbs_nobody(kind):
    data = stream(600, states=0)
    wild = np.where(np.arange(600) == 5, 1e200, data.reward)
    questions = [*TWO, gvf.GVF(gvf.Uniform(3), "wild", 0.5, name="wild")]
    tame, horde = (made(qs, trunk(dtype=kind), batch_size=16) for qs in (TWO, questions))
    tame.observe_many(with_signals(data, weak=data.reward, wild=wild))
    horde.observe_many(with_signals(data, weak=data.reward, wild=wild))
    assert "wild" in horde.report().paused
    names = [q.name for q in TWO]
    assert np.isfinite(horde.predict(data.state, names)).all()
    apart = np.abs(horde.predict(data.state, names) - tame.predict(data.state)).max()
    assert apart < 0.3 * np.abs(tame.predict(data.state)).max()
