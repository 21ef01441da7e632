"""Replicates against dumb oracles: learners of logs in which episodes are repeated."""

from dataclasses import replace
from itertools import product
from typing import Any

import chains
import numpy as np
import pytest
from chains import QUESTION, episodes, learner, read, repeated

import gvf
from gvf.intervals.counts import Units, counts
from gvf.intervals.lanes import Lanes, of_lanes, weigh_lanes, weighs_by_row
from gvf.intervals.least_squares import Equations
from gvf.intervals.replicates import Job
from gvf.intervals.whole import WholeLog
from gvf.online import window_lstd

ROWWISE = [
    gvf.IR(),
    gvf.IS(),
    gvf.BCIR(),
    gvf.WISBuffer(),
    gvf.NormIS(1.8),
    gvf.VTrace(1.0),
    gvf.Interpolated(0.5),
    gvf.BCInterpolated(0.5),
    gvf.EmphaticIR(0.5),
    gvf.EmphaticIS(0.5),
]


def whole_log(made: list[dict[str, Any]], one: gvf.Learner) -> WholeLog:
    log = read(made)
    whole = WholeLog(one, log, Units(log), seed=0)
    whole.take(log)
    return whole


@pytest.mark.parametrize("correction", [*ROWWISE, gvf.WISOptimal()], ids=lambda c: c.name)
def test_least_squares_are_those_of_a_log_with_repeated_episodes(
    correction: gvf.Correction,
) -> None:
    made = episodes(12, seed=1)
    whole = whole_log(made, learner(correction=correction))
    copies = counts(12, range(6), seed=3)
    for lane in range(6):
        log = repeated(made, copies[:, lane])
        oracle = window_lstd(QUESTION, gvf.OneHot(10), log.transitions(), correction)
        np.testing.assert_allclose(Equations(whole).solve(copies[:, lane]), oracle, atol=1e-12)


def test_lanes_with_the_whole_log_in_every_batch_are_learners_of_repeated_episodes() -> None:
    made = episodes(10, seed=2)
    copies = counts(10, range(4), seed=5)
    one = learner(gvf.TD(0.7), gvf.WISOptimal())
    lanes = Lanes(whole_log(made, one), copies)
    lanes.learn(30)
    for lane in range(4):
        log = repeated(made, copies[:, lane])
        oracle = learner(
            gvf.TD(0.7), gvf.WISOptimal(), window=len(log), warm_up=len(log) - 1, every=1
        )
        oracle.learn(log)
        batch = log.transitions()
        # Rows that replace themselves keep the window, and each brings an update.
        for at in range(29):
            oracle.observe_many(batch[at % len(log) : at % len(log) + 1])
        np.testing.assert_allclose(lanes.state.weights[:, lane], oracle.weights, atol=1e-12)


@pytest.mark.parametrize("correction", ROWWISE, ids=lambda c: c.name)
@pytest.mark.parametrize("by_row", [True, False])
def test_the_mean_update_of_a_lane_is_that_of_a_log_with_repeated_episodes(
    correction: gvf.Correction, by_row: bool
) -> None:
    """The mean over all batches of two, with their probabilities; u is any update."""
    made = episodes(6, seed=7, limit=4)
    whole = whole_log(made, learner(correction=correction))
    copies = counts(6, range(5), seed=1)
    inputs, unit = whole.inputs, whole.unit
    p = correction.masses(inputs)
    u = np.random.default_rng(0).normal(size=len(unit))
    mean, shares = np.zeros(5), p / p.sum()
    for pair in product(range(len(unit)), repeat=2):
        rows, w = np.array(pair), np.empty((2, 5))
        batch = unit[rows], np.ascontiguousarray(inputs[:, rows]), p[rows]
        given = copies, *of_lanes(whole, copies)
        weigh_lanes(correction.address("weigh"), batch, given, correction.parameters, by_row, w)
        mean += shares[rows].prod() * (u[rows] @ w)
    for lane in range(5):
        rows = np.repeat(np.arange(len(unit)), copies[unit, lane])
        own, q = np.ascontiguousarray(inputs[:, rows]), p[rows]
        w = correction.weights(own, correction.means(own), p=q) * len(rows)
        assert mean[lane] == pytest.approx((q / q.sum()) @ (w * u[rows]), rel=1e-10)


def test_corrections_of_whole_batches_are_told_apart() -> None:
    assert all(weighs_by_row(correction) for correction in ROWWISE)
    assert not weighs_by_row(gvf.WISOptimal())
    assert not weighs_by_row(gvf.WISMinibatch())
    assert not weighs_by_row(gvf.EmphaticWISMinibatch())


UPDATES = [gvf.TD(0.2), gvf.TD(0.01, gvf.RMSProp()), gvf.ExpectedSarsa(0.2), gvf.TD()]
OTHERS = [
    gvf.TD(0.01, gvf.Adam()),
    gvf.IncrementalTD(0.05),
    gvf.WISTD(10.0, 0.01),
    gvf.TDC(0.1),
    gvf.Sarsa(0.2),
]


@pytest.mark.parametrize(
    "update", [*UPDATES, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS)]
)
@pytest.mark.parametrize("correction", [gvf.BCIR(), gvf.WISMinibatch()], ids=lambda c: c.name)
def test_the_lane_of_the_log_itself_is_the_plain_learner(
    update: gvf.Update, correction: gvf.Correction
) -> None:
    made = episodes(8, seed=4)
    one = learner(update, correction)
    lanes = Lanes(whole_log(made, one), counts(8, range(3), seed=0))
    lanes.learn(100)
    plain = whole_log(made, one)  # the same draws, in Python
    for _ in range(100):
        slots = plain.buffer.draw(16, plain.schedule.rng)
        assert slots is not None
        plain.values.update(plain.buffer, slots, plain.buffer.weigh(slots))
    np.testing.assert_allclose(
        lanes.state.weights[:, 0], plain.values.state.weights[:, 0], atol=1e-12
    )
    assert np.abs(lanes.state.weights[:, 0] - lanes.state.weights[:, 1]).max() > 1e-3


@pytest.mark.parametrize("update", [gvf.TD(0.03), gvf.ExpectedSarsa(0.03)], ids=type)
def test_lanes_tend_to_least_squares(update: gvf.Update) -> None:
    correction = gvf.OnPolicy() if update.action_values else gvf.IR()
    made, rng = episodes(30, seed=5), np.random.default_rng(0)
    for one in made:
        one["reward"] += rng.normal(size=len(one["reward"]))
    job = Job(read(made), None, 80, "td", 1)
    learned = job.run(learner(update, correction), range(20)).weights
    solved = replace(job, method="lstd").run(learner(update, correction), range(20)).weights
    spread = np.abs(solved - solved[:, :1]).mean()
    assert spread > 0.1
    assert np.abs(learned - solved).mean() < 0.2 * spread


@pytest.mark.parametrize("method", ["td", "lstd"])
def test_replicates_do_not_depend_on_how_they_are_sliced(method: Any) -> None:
    log = read(episodes(10, seed=6))
    job = Job(log, None, 3, method, 2)
    together = job.run(learner(), range(20)).weights
    parts = [job.run(learner(), part).weights for part in (range(3), range(3, 17), range(17, 20))]
    np.testing.assert_array_equal(together, np.concatenate(parts, axis=1))
    assert len(np.unique(together[5])) == 20


def test_replicates_without_mass_learn_nothing() -> None:
    made = [one for one in episodes(40, seed=0) if len(one["action"]) > 1][:5]
    question = gvf.GVF(gvf.Always(1, actions=2), "reward", 0.9)
    made = [one | {"action": np.zeros_like(one["action"])} for one in made]
    made[0]["action"][:] = 1
    one = gvf.Learner(question, gvf.OneHot(10), gvf.TD(0.5))
    found = Job(read(made), None, 20, "td", 0).run(one, range(10))
    lost = counts(5, range(10), seed=0)[0] == 0
    assert 0 < lost.sum() == found.empty
    np.testing.assert_array_equal(found.weights.any(axis=0), ~lost)


def test_counts_are_poisson_and_no_replicate_is_empty() -> None:
    drawn = counts(2000, range(1, 101), seed=0).astype(float)
    # Bounds of six standard errors of 200,000 counts.
    assert abs(drawn.mean() - 1.0) < 6 / np.sqrt(2e5)
    assert abs(drawn.var() - 1.0) < 6 * np.sqrt(3 / 2e5)
    assert abs((drawn == 0).mean() - np.exp(-1)) < 6 * np.sqrt(0.24 / 2e5)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(100)).max() < 6 / np.sqrt(2000)
    few = counts(5, range(1, 2001), seed=0)
    assert few.any(axis=0).all()
    assert (counts(5, [0], seed=0) == 1).all()


def test_blocks_are_consecutive_steps_of_one_episode_in_every_batch_and_pass() -> None:
    log = read(episodes(9, seed=8))
    lengths = log.lengths
    expected = np.concatenate(
        [[f"{e} {t // 3}" for t in range(length)] for e, length in enumerate(lengths)]
    )
    numbers = np.unique(expected, return_index=True)
    order = np.argsort(np.argsort(numbers[1]))
    _, inverse = np.unique(expected, return_inverse=True)
    units, whole = Units(log, block=3), log.transitions()
    for size in (1, 4, len(whole)):
        pieces = [units.of(whole[at : at + size]) for at in range(0, len(whole), size)]
        np.testing.assert_array_equal(np.concatenate(pieces), order[inverse])
    assert len(units) == sum(-(-length // 3) for length in lengths)


def test_the_chains_of_these_tests_have_the_law_of_the_domain() -> None:
    steps = read(episodes(400, seed=0)).transitions()
    assert np.abs(steps.action.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(steps))
    assert (np.abs(steps.next_state[~steps.terminated] - steps.state[~steps.terminated]) == 1).all()
    assert chains.STATES.tolist() == np.unique(steps.state).tolist()
