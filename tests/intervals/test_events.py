"""Events of a log: what counts as one, what it is worth, and the refusal of logs with few."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gvf
from gvf.intervals.events import LEAST_EVENTS

RIGHT = gvf.policies.Fixed([0.0, 1.0])


def single(reward: Any, action: Any = None, **columns: Any) -> gvf.Log:
    """A log of episodes of one step, in one state; the behaviour goes right half of the time."""
    rows = len(reward)
    action = np.ones(rows, int) if action is None else np.asarray(action)
    columns = {"state": np.zeros(rows, int), "action": action, "reward": reward, **columns}
    columns |= {"episode": np.arange(rows), "terminated": np.ones(rows, bool)}
    columns |= {"behaviour_probability": np.full(rows, 0.5)}
    return gvf.read_log(columns, quiet=True, on_nan="keep")


def solver(policy: Any = RIGHT, cumulant: Any = "reward", **options: Any) -> gvf.LSTDLearner:
    return gvf.LSTDLearner(gvf.GVF(policy, cumulant, 0.9), gvf.features.OneHot(1), **options)


def walks(*lengths: int, reward: float, terminated: bool = True) -> gvf.Log:
    return gvf.read_log(
        [
            {"state": np.zeros(length + 1, int), "action": np.ones(length, int)}
            | {"reward": np.full(length, reward), "terminated": terminated}
            | {"behaviour_probability": np.full(length, 0.5)}
            for length in lengths
        ],
        quiet=True,
    )


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.0, 1.0, 2.5]), st.integers(0, 1)), min_size=1))
def test_events_are_the_rows_whose_cumulant_is_not_the_commonest(rows: Any) -> None:
    reward, action = np.array([r for r, _ in rows]), np.array([a for _, a in rows])
    policy = gvf.policies.Fixed([0.2, 0.8])
    events = gvf.intervals.count_events(solver(policy), single(reward, action))
    counts = {value: (reward == value).sum() for value in reward}
    usual = min(value for value in counts if counts[value] == max(counts.values()))
    kept = [(r, a) for r, a in rows if r != usual]
    if usual != 0.0:  # all rows end, so no end is unusual
        assert events.name == "events"
    ratios, every = ([(0.4, 1.6)[a] for _, a in some] for some in (kept, rows))
    assert (events.count, events.rows) == (len(kept), len(rows))
    worth = 0.0
    if ratios:
        sized = [ratio * (r - usual) ** 2 for ratio, (r, _) in zip(ratios, kept, strict=True)]
        worth = sum(sized) ** 2 / sum(z**2 for z in sized)
        worth = min(worth, sum(ratios) * sum(every) / sum(r**2 for r in every))
    assert events.effective == pytest.approx(worth)
    assert events.few == (worth < LEAST_EVENTS)


def test_events_of_ratio_0_tell_nothing() -> None:
    reward, action = (
        np.r_[np.ones(20), np.zeros(180)],
        np.r_[np.zeros(17), np.ones(183)].astype(int),
    )
    events = gvf.intervals.count_events(solver(), single(reward, action))
    assert (events.count, events.effective, events.few) == (20, pytest.approx(3.0), True)
    assert str(events) == "20 rewards in 200 rows, worth 3 by their ratios and sizes"
    sarsa = gvf.Learner(
        solver().question,
        gvf.features.OneHot(1),
        gvf.updates.ExpectedSarsa(0.1),
        gvf.corrections.OnPolicy(),
    )
    assert gvf.intervals.count_events(sarsa, single(reward, action)).effective == pytest.approx(
        20.0
    )


def test_many_events_of_small_ratios_do_not_stand_for_the_large_ones() -> None:
    """Ten rewards of the action that the target hardly takes, none of the other."""
    reward, action = np.zeros(200), np.tile([0, 1], 100)
    reward[:20:2] = 1.0
    events = gvf.intervals.count_events(
        solver(gvf.policies.Fixed([0.1, 0.9])), single(reward, action)
    )
    assert (events.count, events.few) == (10, True)
    assert events.effective == pytest.approx(10 * 0.2 * 1.0 / ((0.2**2 + 1.8**2) / 2))


def test_noise_in_all_rewards_hides_no_two_large_ones() -> None:
    reward = np.random.default_rng(0).normal(0.0, 0.01, size=10_000)
    reward[[5, 77]] += 100.0
    events = gvf.intervals.count_events(solver(), single(reward))
    assert events.count == 9_999
    assert events.effective == pytest.approx(2.0, rel=1e-2)
    with pytest.raises(gvf.intervals.TooFewEventsError, match=r"worth 2 by their ratios and sizes"):
        gvf.bootstrap(solver(), single(reward), replicates=19)


def test_ends_are_events_where_they_end_a_stream_of_rewards() -> None:
    learner = solver(gvf.policies.Fixed([0.5, 0.5]))
    lengths = [3, 9, 4, 30, 5, 6, 7]
    falls = gvf.intervals.count_events(learner, walks(*lengths, reward=1.0))
    assert (falls.count, falls.rows, falls.name) == (7, sum(lengths), "events")
    assert gvf.intervals.count_events(learner, walks(*lengths, reward=0.0)).count == 0
    assert (
        gvf.intervals.count_events(learner, walks(*lengths, reward=1.0, terminated=False)).count
        == 0
    )


def test_all_rows_of_a_continuous_reward_are_events() -> None:
    reward = np.random.default_rng(0).normal(size=50)
    assert gvf.intervals.count_events(solver(), single(reward)).count == 49
    gvf.bootstrap(solver(), single(reward), replicates=19)


def test_huge_ratios_do_not_overflow() -> None:
    log = single(np.r_[np.ones(20), np.zeros(50)])
    log = gvf.read_log(
        log.transitions().columns | {"behaviour_probability": np.full(70, 1e-200)}, quiet=True
    )
    assert gvf.intervals.count_events(solver(), log).effective == pytest.approx(20.0)


def test_rows_that_a_learner_leaves_out_do_not_count() -> None:
    reward = np.r_[np.full(5, np.nan), np.ones(8), np.zeros(40)]
    events = gvf.intervals.count_events(solver(on_nan="skip"), single(reward))
    assert (events.count, events.rows) == (8, 48)


def test_a_log_with_few_events_is_refused_and_the_count_is_named() -> None:
    reward = np.r_[np.ones(4), np.zeros(9996)]
    with pytest.raises(
        gvf.intervals.TooFewEventsError, match=r"4 rewards in 10,000 rows, and .* at least 5"
    ):
        gvf.bootstrap(solver(), single(reward))
    name, error = "how often they click", None
    asked = [gvf.GVF(RIGHT, "reward", 0.0), gvf.GVF(RIGHT, "sold", 0.0, name=name)]
    log = single(reward[::-1] + np.r_[np.ones(6), np.zeros(9994)], sold=reward)
    horde = gvf.Horde(asked, gvf.features.OneHot(1), gvf.updates.TD(0.1), gvf.corrections.IR())
    with pytest.raises(ValueError, match=name) as caught:
        gvf.bootstrap(horde, log)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.events.count, error.events.rows, error.events.limit) == (4, 10_000, LEAST_EVENTS)
    assert str(error) == str(caught.value)
    found = gvf.bootstrap(solver(), single(np.r_[reward, 1.0]), replicates=19)
    assert np.isfinite(found.predict([0]).high).all()


def test_the_log_of_the_examples_has_events() -> None:
    folder = Path(__file__).parents[2] / "examples" / "logs"
    log = gvf.read_log(
        folder / "cartpole.parquet", state=["x", "speed", "angle", "spin"], action="push",
        behaviour_probability="probability", episode="run", terminated="fell", quiet=True,
    )  # fmt: skip
    policy = gvf.policies.Function(
        lambda s: np.where(s[:, 2:3] > 0, [0.1, 0.9], [0.9, 0.1]), actions=2
    )
    learner = gvf.LSTDLearner(gvf.GVF(policy, "reward", 0.95), gvf.features.Dense(4, lambda s: s))
    events = gvf.intervals.count_events(learner, log)
    assert events.count == log.terminated.sum() > 100
    assert events.effective > 10 * LEAST_EVENTS
