"""Faults that intervals know of: divergence, unfinished learning, and states without events."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from chains import QUESTION, STATES, episodes, learner, read
from numba import njit

import gvf
from gvf.intervals.bootstrap import intervals_of
from gvf.intervals.replicates import ReplicateArguments


def clicks(rows: int, rate: float, seed: int, states: int = 1) -> tuple[gvf.Log, Any]:
    """A log of single decisions with rare rewards, and a question about them."""
    rng = np.random.default_rng(seed)
    columns = {"state": rng.integers(states, size=rows), "action": np.ones(rows, int)}
    columns |= {"reward": (rng.random(rows) < rate).astype(float), "episode": np.arange(rows)}
    columns |= {"terminated": np.ones(rows, bool), "behaviour_probability": np.ones(rows)}
    return gvf.read_log(columns, quiet=True), gvf.GVF(
        gvf.policies.Always(1, actions=2), "reward", 0.0
    )


def test_intervals_of_rare_rewards_cover_their_rate() -> None:
    """Forty logs of 20 rewards on average; the last 1 / step size draws seldom have one.

    The bound leaves out 1 in 1000 outcomes if intervals cover 90 %: binomial, 40 draws.
    """
    covered = 0
    for seed in range(40):
        log, question = clicks(1000, 0.02, seed)
        one = gvf.Learner(
            question,
            gvf.features.OneHot(1),
            gvf.updates.TD(0.8),
            gvf.corrections.IR(),
            update_every=4,
        )
        _, low, high = gvf.bootstrap(one, log, replicates=39, epochs=2, seed=seed).predict([0])
        covered += int((low <= 0.02).all() and (high >= 0.02).all())
    assert covered >= 29


def test_a_state_without_an_event_has_an_infinite_interval() -> None:
    log, question = clicks(400, 0.1, 0, states=4)
    columns = dict(log.transitions().columns)
    columns["reward"] = columns["reward"] * (columns["state"] != 2)
    one = gvf.Learner(question, gvf.features.OneHot(4), gvf.updates.TD(0.1), gvf.corrections.IR())
    for method in ("td", "lstd"):
        found = gvf.bootstrap(one, gvf.read_log(columns, quiet=True), epochs=5, method=method)
        point, low, high = found.predict(np.arange(4))
        assert np.isinf(high - low).tolist() == [False, False, True, False]
        assert point[2] == 0.0
        assert np.isfinite(found.mean(np.arange(4)).high)


def test_diverged_replicates_make_intervals_infinite_and_are_counted() -> None:
    log = read(episodes(30, seed=0))
    sound = gvf.bootstrap(learner(gvf.updates.TD(0.5)), log, epochs=5)
    assert not sound.diverged.any()
    assert not sound.lost.any()
    assert "DIVERGED" not in repr(sound)
    wild = gvf.bootstrap(learner(gvf.updates.TD(80.0)), log, epochs=5)
    assert wild.diverged.all()
    assert wild.lost.all()
    assert "the log's own learner and 199 replicates DIVERGED: intervals are infinite" in repr(wild)
    _, low, high = wild.predict(STATES)
    assert np.isinf([low, high]).all()
    assert np.isinf(wild.mean(STATES).high)
    report = learner(gvf.updates.TD(80.0)).fit(log, epochs=5)
    assert report.diverged


@pytest.mark.parametrize(
    ("own", "others", "lost"), [(0, 1, True), (0, 10, True), (1, 0, True), (0, 0, False)]
)
def test_intervals_are_lost_if_a_lane_diverges(own: int, others: int, lost: bool) -> None:
    found = gvf.bootstrap(learner(), read(episodes(30, seed=0)), method="lstd", seed=0)
    diverged = np.zeros((1, 200), bool)
    diverged[0, 0], diverged[0, 1 : 1 + others] = own, True
    found = replace(found, diverged=diverged)
    assert found.lost.tolist() == [lost]
    _, low, high = found.predict(STATES)
    assert np.isinf(high - low).all() == lost
    assert np.isnan(found.replicate(STATES)).sum() == others * len(STATES)
    assert ("DIVERGED: intervals are infinite" in repr(found)) == lost


@njit
def set_weights(state: Any, experience: Any, slots: Any, w: Any) -> None:
    state.weights[:] = state.lanes[0, 0]


@dataclass(frozen=True)
class Constant(gvf.updates.Update):
    """Set all weights to a number."""

    step_size: float
    kernel = staticmethod(set_weights)


@pytest.mark.parametrize("continuation", [0.9, 1.0])
def test_the_limit_of_divergence_is_the_learners(continuation: float) -> None:
    """Values of 999 times the largest return are sound, and of 1001 times are not.

    Without discounting, the largest return grows with the rows that updates have drawn.
    """
    log, question = read(episodes(30, seed=0)), replace(QUESTION, continuation=continuation)
    options: dict[str, Any] = {"batch_size": 4, "update_every": 3, "n_step": 2}
    plain = gvf.Learner(question, gvf.features.OneHot(10), gvf.updates.TD(0.1), **options)
    largest = plain.fit(log, epochs=2, order="drawn").largest_return
    for times, diverged in ((999.0, False), (1001.0, True)):
        one = gvf.Learner(question, gvf.features.OneHot(10), Constant(times * largest), **options)
        assert (gvf.bootstrap(one, log, replicates=19, epochs=2).diverged == diverged).all()
        assert bool(one.fit(log, epochs=2, order="drawn").diverged) == diverged


def test_the_noise_of_draws_is_seldom_taken_for_learning() -> None:
    """One state, a large step: 2 of 20 logs would be 10 %; a mean change has 4 standard errors."""
    wrong = 0
    for seed in range(20):
        log, question = clicks(300, 0.3, seed)
        one = gvf.Learner(
            question,
            gvf.features.OneHot(1),
            gvf.updates.TD(0.5),
            gvf.corrections.IR(),
            update_every=4,
        )
        wrong += int(gvf.bootstrap(one, log, replicates=59, epochs=2, seed=seed).unfinished([0]))
    assert wrong <= 2


@pytest.mark.parametrize("when", ["early", "late"])
def test_learning_that_goes_on_is_noticed(when: str) -> None:
    log = read(episodes(60, seed=1))
    one = learner(gvf.updates.TD(0.02 if when == "early" else 0.3), update_every=4)
    found = gvf.bootstrap(one, log, epochs=3 if when == "early" else 60)
    assert found.unfinished(STATES) == (when == "early")
    assert found.drift(STATES).shape == (8,)
    solved = gvf.bootstrap(one, log, method="lstd")
    assert not solved.unfinished(STATES)
    assert not solved.drift(STATES).any()


def test_drift_is_the_change_of_the_replicates_since_half_of_learning() -> None:
    log, one = read(episodes(60, seed=1)), learner(update_every=1)
    half, whole = (gvf.bootstrap(one, log, epochs=epochs, seed=3) for epochs in (2, 4))
    change = (whole.weights - half.weights).mean(axis=2)
    np.testing.assert_allclose(whole.change, change, atol=1e-12)
    point, _, high = whole.predict(STATES)
    moved = np.abs(change[0, STATES]) / (high - point)
    np.testing.assert_allclose(whole.drift(STATES), np.maximum(moved - 0.5 * np.sqrt(2 / 199), 0))
    assert whole.drift(STATES).max() > 0.1
    policies = {"right": gvf.policies.Fixed([0.1, 0.9]), "left": gvf.policies.Fixed([0.8, 0.2])}
    asked = gvf.question_grid(policies, {"reward": "reward"}, [0.9])
    horde = gvf.Horde(
        asked, gvf.features.OneHot(10), gvf.updates.TD(0.1), gvf.corrections.IR(), update_every=1
    )
    both = gvf.bootstrap(horde, log, epochs=4, seed=3)
    assert both.unfinished(STATES).shape == both.lost.shape == (2,)
    np.testing.assert_allclose(both.drift(STATES)[:, 0], whole.drift(STATES))
    lost = replace(whole, diverged=np.ones((1, 200), bool))
    assert not lost.drift(STATES).any()


def test_nothing_drifts_if_a_replicate_has_diverged() -> None:
    log, one = read(episodes(30, seed=1)), learner()
    job = ReplicateArguments(log, None, 4, "td", 3)
    found = job.run(one, range(20))
    weights, diverged = found.weights.copy(), np.zeros(20, bool)
    weights[:, 4], diverged[4] = np.inf, True
    wild = intervals_of(job, [one], [replace(found, weights=weights, diverged=diverged)], 0.9)
    assert not wild.change.any()
    assert not wild.drift(STATES).any()
