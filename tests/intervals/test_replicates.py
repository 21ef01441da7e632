"""Replicates against dumb oracles: learners of logs in which episodes are repeated."""

from dataclasses import dataclass, replace
from typing import Any

import chains
import numpy as np
import pytest
import scipy.stats
from chains import QUESTION, episodes, learner, read, repeated
from dumb_least_squares import dumb_least_squares
from numba import njit

import gvf
from gvf.intervals.replicates import Replicate, ReplicateArguments, solved
from gvf.intervals.resampling import Units, counts
from gvf.intervals.whole_log import WholeLog
from gvf.sampling import xoshiro
from gvf.sampling.alias_table import alias_draw, alias_table

ROWWISE = [
    gvf.corrections.IR(),
    gvf.corrections.IS(),
    gvf.corrections.BCIR(),
    gvf.corrections.WISBuffer(),
    gvf.corrections.NormIS(1.8),
    gvf.corrections.VTrace(1.0),
    gvf.corrections.Interpolated(0.5),
    gvf.corrections.BCInterpolated(0.5),
    gvf.corrections.EmphaticIR(0.5),
    gvf.corrections.EmphaticIS(0.5),
]


def whole_log(made: list[dict[str, Any]], one: gvf.Learner) -> WholeLog:
    log = read(made)
    return WholeLog(one, log, Units(log), seed=0)


@pytest.mark.parametrize(
    "correction", [*ROWWISE, gvf.corrections.WISOptimal()], ids=lambda c: c.name
)
def test_least_squares_are_those_of_a_log_with_repeated_episodes(
    correction: gvf.corrections.Correction,
) -> None:
    made = episodes(12, seed=1)
    whole = whole_log(made, learner(correction=correction))
    copies = counts(12, range(6), seed=3)
    for lane in range(6):
        log = repeated(made, copies[:, lane])
        oracle = dumb_least_squares(
            QUESTION, gvf.features.OneHot(10), log.transitions(), correction
        )
        np.testing.assert_allclose(solved(whole, copies[:, lane]), oracle, atol=1e-12)


def resampled(whole: WholeLog, copies: Any, seed: int = 0) -> Replicate:
    return Replicate(whole, np.asarray(copies, np.uint8), seed)


def test_replicates_with_the_whole_log_in_every_batch_are_learners_of_repeated_episodes() -> None:
    made = episodes(10, seed=2)
    copies = counts(10, range(4), seed=5)
    one = learner(gvf.updates.TD(0.7), gvf.corrections.WISOptimal())
    whole = whole_log(made, one)
    for lane in range(4):
        replicate = resampled(whole, copies[:, lane])
        replicate.learn(30)
        log = repeated(made, copies[:, lane])
        oracle = learner(gvf.updates.TD(0.7), gvf.corrections.WISOptimal(), update_every=len(log))
        oracle.fit(log, epochs=30, order="drawn")
        np.testing.assert_allclose(replicate.weights, oracle.weights, atol=1e-12)


@njit
def count_slots(state: Any, experience: Any, slots: Any, w: Any) -> None:
    for slot in slots:
        state.weights[experience.x[slot, 0], 0] += 1.0


@dataclass(frozen=True)
class Count(gvf.updates.Update):
    """Count how often each row is drawn; every row has a state of its own."""

    step_size: float = 1.0
    kernel = staticmethod(count_slots)


@pytest.mark.parametrize(
    "correction", [*ROWWISE, gvf.corrections.WISMinibatch()], ids=lambda c: c.name
)
def test_a_replicate_draws_rows_by_their_counts_and_masses(
    correction: gvf.corrections.Correction,
) -> None:
    """The chi-square of the counts of each replicate is below its quantile of 1 - 1e-4."""
    made, states = episodes(8, seed=3, limit=5), 0
    for one in made:
        one["state"] = np.arange(states, states + len(one["state"]))
        states = one["state"][-1] + 1
    one = gvf.Learner(QUESTION, gvf.features.OneHot(states), Count(), correction, batch_size=20)
    whole, copies = whole_log(made, one), counts(8, range(1, 4), seed=2)
    for lane in range(3):
        replicate = resampled(whole, copies[:, lane], lane)
        replicate.learn(2000)
        plain = gvf.Learner(QUESTION, gvf.features.OneHot(states), gvf.updates.TD(0.1), correction)
        plain.fit(repeated(made, copies[:, lane]), order="drawn")
        p = np.zeros(states)
        np.add.at(p, plain.window.columns["x"][:, 0], correction.masses(plain.buffer.inputs))
        drawn, expected = replicate.weights, 40_000 * p / p.sum()
        some = expected > 0.0
        assert drawn.sum() == 40_000
        assert not drawn[~some].any()
        surprise = ((drawn - expected)[some] ** 2 / expected[some]).sum()
        assert surprise < scipy.stats.chi2.isf(1e-4, some.sum() - 1)


@pytest.mark.parametrize(
    "correction", [*ROWWISE, gvf.corrections.WISMinibatch()], ids=lambda c: c.name
)
@pytest.mark.parametrize(
    "update",
    [
        gvf.updates.TD(0.2),
        gvf.updates.TD(0.01, gvf.updates.RMSProp()),
        pytest.param(gvf.updates.Sarsa(0.2), marks=pytest.mark.slow),
    ],
    ids=lambda update: type(getattr(update, "optimiser", update)).__name__,
)
def test_a_replicate_learns_as_its_draws_say(
    update: gvf.updates.Update, correction: gvf.corrections.Correction
) -> None:
    """The same draws in Python, weighed by the means of the log of repeated episodes."""
    made = episodes(8, seed=4)
    whole, copies = whole_log(made, learner(update, correction)), counts(8, [3], seed=1)[:, 0]
    replicate, stream = resampled(whole, copies, 7), xoshiro.streams(1, 7)[0]
    replicate.learn(50)
    rows = np.repeat(np.arange(len(whole.unit)), copies[whole.unit])
    means = correction.means(np.ascontiguousarray(whole.buffer.inputs[:, rows]))
    table = alias_table(copies[whole.unit] * whole.masses)
    plain, slots = whole.values, np.empty(16, np.int64)
    for _ in range(50):
        alias_draw(*table, stream, slots)
        w = correction.weights(whole.buffer.inputs[:, slots], means, p=whole.masses[slots])
        plain.update_rule.apply(plain.state, whole.experience, slots, np.ascontiguousarray(w))
    assert replicate.weights.any()
    np.testing.assert_allclose(replicate.weights, plain.state.weights[:, 0], atol=1e-13)


UPDATES = [gvf.updates.TD(0.5), gvf.updates.ExpectedSarsa(0.5)]
OTHERS = [
    gvf.updates.TD(0.03, gvf.updates.Adam()),
    gvf.updates.IncrementalTD(0.05),
    gvf.updates.WISTD(10.0, 0.01),
    gvf.updates.TDC(0.3),
]  # Sarsa draws the next action of a row when it comes in, which here is once for all replicates


@pytest.mark.parametrize(
    "update", [*UPDATES, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS)]
)
@pytest.mark.parametrize(
    "correction", [gvf.corrections.BCIR(), gvf.corrections.WISMinibatch()], ids=lambda c: c.name
)
def test_replicates_are_learners_of_repeated_episodes(
    update: gvf.updates.Update, correction: gvf.corrections.Correction
) -> None:
    """Mean and variance of 300 learners of each kind, at a level of 1e-4 for each weight."""
    made, copies = episodes(8, seed=4), [1, 0, 2, 1, 0, 3, 1, 1]
    whole, log = whole_log(made, learner(update, correction)), repeated(made, copies)
    weights: list[list[Any]] = [[], []]
    for seed in range(300):
        replicate = resampled(whole, copies, seed)
        replicate.learn(40)
        weights[0].append(replicate.weights)
        plain = learner(update, correction, update_every=len(log), seed=seed)
        plain.fit(log, epochs=40, order="drawn", progress=False)
        weights[1].append(plain.weights)
    ours, theirs = np.array(weights)
    some = ours.std(axis=0) > 1e-9
    np.testing.assert_array_equal(some, theirs.std(axis=0) > 1e-9)
    assert some.sum() >= 4
    spread = [np.abs(each - np.median(each, axis=0)) for each in (ours, theirs)]
    for one, other in ((ours, theirs), spread):
        test: Any = scipy.stats.ttest_ind(one[:, some], other[:, some], equal_var=False)
        assert test.pvalue.min() > 1e-4


def test_replicates_have_draws_of_their_own() -> None:
    """Every episode is the same, so only draws can differ: they do, and as they should.

    One state, rewards 0 and 1 equally often: with step size a and batches of k the weight has the
    variance a / (2 - a) / (4 k). The bounds are four standard errors of 200 replicates.
    """
    made = [
        {"state": np.zeros(3, int), "action": np.ones(2, int), "reward": np.array([0.0, 1.0])}
        | {"terminated": True, "behaviour_probability": np.ones(2)}
    ] * 20
    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.0)
    one = gvf.Learner(question, gvf.features.OneHot(1), gvf.updates.TD(0.2), batch_size=4)
    weights = ReplicateArguments(read(made), None, 30, "td", 0).run(one, range(200)).weights[0]
    variance = 0.2 / 1.8 / 16
    assert abs(weights.mean() - 0.5) < 4 * np.sqrt(variance / 200)
    assert abs(weights.var() / variance - 1) < 4 * np.sqrt(2 / 200)


def test_a_replicate_takes_no_larger_steps_than_the_learner() -> None:
    """A step of 1.9 with weights that sum to 1 is stable; with a row counted twice it is not."""
    rng = np.random.default_rng(0)
    made = [
        {"state": [0, 0], "action": [int(rng.integers(2))], "reward": [rng.normal()]}
        | {"terminated": True, "behaviour_probability": [0.5]}
        for _ in range(50)
    ]
    question = gvf.GVF(gvf.policies.Fixed([0.4, 0.6]), "reward", 0.0)
    one = gvf.Learner(
        question,
        gvf.features.OneHot(1),
        gvf.updates.TD(1.9),
        gvf.corrections.WISMinibatch(),
        batch_size=2,
    )
    found = ReplicateArguments(read(made), None, 40, "td", 0).run(one, range(100))
    assert np.abs(found.weights).max() < 20
    assert not found.diverged.any()


@pytest.mark.parametrize(
    "update", [gvf.updates.TD(0.03), gvf.updates.ExpectedSarsa(0.03)], ids=type
)
def test_lanes_tend_to_least_squares(update: gvf.updates.Update) -> None:
    correction = gvf.corrections.OnPolicy() if update.action_values else gvf.corrections.IR()
    made, rng = episodes(30, seed=5), np.random.default_rng(0)
    for one in made:
        one["reward"] += rng.normal(size=len(one["reward"]))
    job = ReplicateArguments(read(made), None, 80, "td", 1)
    learned = job.run(learner(update, correction), range(20)).weights
    exact = replace(job, method="lstd").run(learner(update, correction), range(20)).weights
    spread = np.abs(exact - exact[:, :1]).mean()
    assert spread > 0.1
    assert np.abs(learned - exact).mean() < 0.2 * spread


@pytest.mark.parametrize("method", ["td", "lstd"])
def test_replicates_do_not_depend_on_how_they_are_sliced(method: Any) -> None:
    log = read(episodes(10, seed=6))
    job = ReplicateArguments(log, None, 3, method, 2)
    together = job.run(learner(), range(20)).weights
    parts = [job.run(learner(), part).weights for part in (range(3), range(3, 17), range(17, 20))]
    np.testing.assert_array_equal(together, np.concatenate(parts, axis=1))
    assert len(np.unique(together[5])) == 20


def test_replicates_without_mass_learn_nothing() -> None:
    made = [one for one in episodes(40, seed=0) if len(one["action"]) > 1][:5]
    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
    made = [one | {"action": np.zeros_like(one["action"])} for one in made]
    made[0]["action"][:] = 1
    one = gvf.Learner(question, gvf.features.OneHot(10), gvf.updates.TD(0.5))
    found = ReplicateArguments(read(made), None, 20, "td", 0).run(one, range(10))
    lost = counts(5, range(10), seed=0)[0] == 0
    assert 0 < lost.sum() == found.empty
    np.testing.assert_array_equal(found.weights.any(axis=0), ~lost)


@pytest.mark.parametrize("n_step", [1, 3])
def test_the_whole_log_has_the_rows_of_the_learner(n_step: int) -> None:
    made = episodes(12, seed=1)
    one = learner(correction=gvf.corrections.EmphaticIR(0.5), n_step=n_step)
    whole = whole_log(made, one)
    log = read(made)
    one.fit(log, order="drawn")
    for name in ("x", "x_next", "cumulant", "continuation"):
        np.testing.assert_array_equal(whole.columns[name], one.window.columns[name])
    np.testing.assert_array_equal(whole.buffer.inputs, one.buffer.inputs)
    assert np.isclose(np.median(whole.columns["continuation"]), 0.9**n_step)


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
