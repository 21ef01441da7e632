"""Learners diagnose their own updates."""

import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from own_corrections import SquareRoot

import gvf
from gvf.updates.gradient_td import gradient_td

MIXED = (
    gvf.corrections.VTrace(0.5),
    SquareRoot(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.WISMinibatch(),
)
TARGET, BEHAVIOUR = gvf.policies.Fixed([0.2, 0.8]), gvf.policies.Fixed([0.7, 0.3])
QUESTION = gvf.GVF(TARGET, "reward", 0.9)
VECTORS = np.random.default_rng(5).normal(size=(5, 3))


class Twice:
    """Active features, one of them listed twice for some states."""

    size = 6

    def __call__(self, states):
        states = np.asarray(states)
        return np.stack([states, states // 2 * 2, np.full(len(states), 5)], axis=1)


FEATURES = {
    "one-hot": gvf.features.OneHot(5),
    "listed twice": Twice(),
    "dense": gvf.features.Dense(3, lambda states: VECTORS[states]),
}


def data(m: int, seed: int = 0) -> gvf.Transitions:
    rng = np.random.default_rng(seed)
    state = rng.integers(5, size=m)
    return gvf.Transitions(
        state=state,
        action=BEHAVIOUR.sample(state, rng=rng),
        reward=rng.normal(size=m),
        next_state=rng.integers(5, size=m),
        terminated=rng.random(m) < 0.2,
    )


def make(update=None, features=None, correction=None, **options):
    options = {"behaviour": BEHAVIOUR, "window": 50, "batch_size": 4, "seed": 0, **options}
    return gvf.Learner(
        QUESTION,
        features or gvf.features.OneHot(5),
        update or gvf.updates.TD(0.5),
        correction or gvf.corrections.IR(),
        **options,
    )


def diagnosis(learner: gvf.Learner, **options) -> gvf.Diagnosis:
    found = learner.diagnose(**options)
    assert isinstance(found, gvf.Diagnosis)
    return found


def diagnoses(learner: gvf.Learner) -> list[gvf.Diagnosis | None]:
    found = learner.diagnose()
    assert isinstance(found, list)
    return found


def as_vectors(features, states):
    x = features(states)
    if x.dtype.kind == "f":
        return x
    vectors = np.zeros((len(x), features.size))
    np.add.at(vectors, (np.arange(len(x))[:, None], x), 1.0)
    return vectors


def written_out(transitions, features, weights, secondary=None):
    """The updates of the last transitions as vectors [n, d], in order of age."""
    x, following = (as_vectors(features, transitions[name]) for name in ("state", "next_state"))
    gamma = 0.9 * ~transitions["terminated"]
    delta = transitions["reward"] + gamma * (following @ weights) - x @ weights
    updates = delta[:, None] * x
    if secondary is not None:
        updates -= (gamma * (x @ secondary))[:, None] * following
    return updates


def same(one: gvf.Diagnosis, other: gvf.Diagnosis) -> None:
    """All but what depends on the order of slots."""
    assert list(one.moments) == list(other.moments)
    for name, moments in one.moments.items():
        if name != "WIS-Minibatch":
            assert moments.variance.value == pytest.approx(
                other.moments[name].variance.value, rel=1e-9
            )
            assert moments.bias == pytest.approx(other.moments[name].bias, abs=1e-12)
        else:
            error = math.hypot(
                moments.variance.standard_error, other.moments[name].variance.standard_error
            )
            assert abs(moments.variance.value - other.moments[name].variance.value) < 4 * error
    assert one.comparison.difference == pytest.approx(other.comparison.difference, rel=1e-9)
    assert one.effective_sample_size == pytest.approx(other.effective_sample_size)
    assert (one.window, one.batch_size) == (other.window, other.batch_size)


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES.keys())
@pytest.mark.parametrize("steps", [30, 77], ids=["filling", "wrapped"])
def test_a_learner_diagnoses_its_own_updates(features, steps):
    learner, transitions = make(features=features), data(steps)
    learner.observe(transitions)
    last = transitions[max(steps - 50, 0) :]
    rho = QUESTION.ratios(last, behaviour=BEHAVIOUR)
    updates = written_out(last, features, learner.weights)
    assert np.abs(learner.weights).max() > 0.01
    same(diagnosis(learner), gvf.diagnose(rho, updates, batch_size=4))
    same(
        diagnosis(learner, batch_size=7, corrections=MIXED, batches=200),
        gvf.diagnose(rho, updates, batch_size=7, corrections=MIXED, batches=200),
    )


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES.keys())
def test_gradient_td_is_diagnosed_with_its_second_part(features):
    learner, transitions = make(gvf.updates.TDC([0.1, 0.2]), features), data(60)
    learner.observe(transitions)
    last = transitions[10:]
    rho = QUESTION.ratios(last, behaviour=BEHAVIOUR)
    found = diagnoses(learner)
    for lane in range(2):
        secondary = learner.values.state.memory[0, :, lane]
        assert np.abs(secondary).max() > 0.01
        updates = written_out(last, features, learner.weights[:, lane], secondary)
        one = found[lane]
        assert one is not None
        same(one, gvf.diagnose(rho, updates, batch_size=4))


def test_a_gradient_update_of_ones_own_is_diagnosed_with_its_second_part():
    @dataclass(frozen=True)
    class Own(gvf.updates.Update):
        step_size: float = 0.1

        kernel = staticmethod(gradient_td)
        memories = 1

        def numbers(self):
            return 1.0, 0.0

        def secondary_weights(self, state):
            return state.memory[0]

    own, like = make(Own(0.1)), make(gvf.updates.TDC(0.1))
    for learner in (own, like):
        learner.observe(data(60))
    assert own.diagnose() == like.diagnose()


def test_every_step_size_has_a_diagnosis_and_those_that_diverged_none():
    learner = make(gvf.updates.TD([0.1, 1e200, 0.3]))
    learner.observe(data(40))
    first, second, third = diagnoses(learner)
    assert second is None
    alone = make(gvf.updates.TD(0.3))
    alone.observe(data(40))
    assert alone.diagnose() == third != first
    learner.weights[:, 0] = 1e200  # about to: its updates, squared, are infinite
    assert diagnoses(learner)[:2] == [None, None]


def test_a_diagnosis_changes_nothing():
    asked, silent = make(), make()
    for learner in (asked, silent):
        learner.observe(data(60))
    weights = asked.weights.copy()
    assert asked.diagnose() == asked.diagnose()
    np.testing.assert_array_equal(asked.weights, weights)
    for learner in (asked, silent):
        learner.observe(data(30, seed=1))
    np.testing.assert_array_equal(asked.weights, silent.weights)


def test_learners_that_cannot_be_diagnosed_say_why():
    with pytest.raises(ValueError, match="observe some transitions"):
        make().diagnose()
    sarsa = make(gvf.updates.Sarsa(0.1), correction=gvf.corrections.OnPolicy())
    sarsa.observe(data(10))
    with pytest.raises(ValueError, match="Sarsa learns action values"):
        sarsa.diagnose()
    unknown = make(correction=gvf.corrections.OnPolicy(), behaviour=None)
    unknown.observe(data(10))
    with pytest.raises(ValueError, match="ratios are not known"):
        unknown.diagnose()
    diverged = make(gvf.updates.TD(1e200))
    diverged.observe(data(10))
    with pytest.raises(ValueError, match="this learner has diverged"):
        diverged.diagnose()


def test_memory_grows_with_the_window_and_not_with_window_times_weights():
    coder = gvf.features.TileCoder([0.0], [5.0], tiles=300, tilings=16)

    def peak(n):
        learner = gvf.Learner(
            QUESTION,
            coder,
            gvf.updates.TD(0.1),
            behaviour=BEHAVIOUR,
            window=n,
            update_every=n,
            seed=0,
        )
        rows = data(n)
        columns = {name: rows[name] for name in rows.columns}
        columns |= {name: rows[name][:, None] + 0.5 for name in ("state", "next_state")}
        learner.observe(gvf.Transitions(**columns))
        learner.diagnose()
        tracemalloc.start()
        learner.diagnose()
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    small, large = peak(4000), peak(16_000)
    assert large < 4.2 * small
    assert large < 16_000 * coder.size * 8 / 50


def test_a_learner_with_a_trace_shows_the_effective_sample_size_of_rho_f():
    learner = make(correction=gvf.corrections.EmphaticIR())
    learner.observe(gvf.Transitions(**data(400).columns, episode=np.arange(400) // 20))
    ratio, trace = learner.buffer.inputs
    found = learner.diagnose()
    assert not isinstance(found, list)
    emphasis = ratio * trace
    expected = emphasis.sum() ** 2 / (emphasis**2).sum()
    assert found.emphatic_sample_size == pytest.approx(expected)
    assert found.effective_sample_size == pytest.approx(ratio.sum() ** 2 / (ratio**2).sum())
    assert "Emphatic IR" in found.moments
    assert "of rho F" in repr(found)
