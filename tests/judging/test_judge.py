"""Judgements of predictors that are known, on logs of a world with known values."""

import re
from dataclasses import replace

import numpy as np
import pytest
from five_states import chain_values
from judging_worlds import question, trajectories, values
from scipy import stats

import gvf
from gvf.judging.held_out import gather, squared_errors
from gvf.judging.off_policy_returns import Baseline, returns_of, shared_baseline
from gvf.online import LSTD, TDLambda

MU = [0.6, 0.4]
RIGHT = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
TRUTH = np.r_[0.0, chain_values(RIGHT.policy, 0.9, states=8), 0.0]


class Values:
    """A predictor with a table of values, [S] or [S, lanes]."""

    question = RIGHT

    def __init__(self, table):
        self.table = np.asarray(table, float)

    def predict(self, states):
        return self.table[states]


def chain(count, rng, limit=100):
    """Episodes of the chain, as one batch in order."""
    rows = []
    for _ in range(count):
        state = int(rng.integers(1, 9))
        for step in range(limit):
            action = int(rng.random() < MU[1])
            after = state + 2 * action - 1
            end, cut = after in (0, 9), step == limit - 1
            rows.append((state, action, float(after == 9), after, end, cut and not end, MU[action]))
            state = after
            if end:
                break
    names = ("state", "action", "reward", "next_state", "terminated", "truncated")
    columns = dict(zip((*names, "behaviour_probability"), zip(*rows, strict=True), strict=True))
    return gvf.Transitions(**{name: np.array(column) for name, column in columns.items()})


def log_of(batch):
    return gvf.read_log(batch.columns, quiet=True)


def visits(limit=100):
    """The mean number of visits of an episode to each state."""
    now, total = np.r_[0.0, np.full(8, 1 / 8), 0.0], np.zeros(10)
    for _ in range(limit):
        total += now
        moved = np.zeros(10)
        moved[:-1] += MU[0] * now[1:]
        moved[1:] += MU[1] * now[:-1]
        moved[[0, 9]] = 0.0
        now = moved
    return total


def test_the_right_values_win():
    log = log_of(chain(200, np.random.default_rng(0)))
    learners = {"right": Values(TRUTH), "low": Values(0.7 * TRUTH), "flat": Values(0 * TRUTH + 0.4)}
    for returns in ("doubly-robust", "per-decision", "weighted"):
        found = gvf.compare_learners(learners, log, returns=returns)
        assert found.best.name == "right"
        assert found.scores[0].name == "right"
        assert found.returns == returns
    assert str(gvf.compare_learners(learners, log).verdict) == "right is best"


def test_lanes_are_candidates_and_orders_do_not_matter():
    log = log_of(chain(60, np.random.default_rng(1)))
    together = gvf.compare_learners(Values(np.stack([TRUTH, 0.5 * TRUTH], 1)), log)
    apart = gvf.compare_learners({"b": Values(0.5 * TRUTH), "a": Values(TRUTH)}, log)
    assert together.best.name == "Values, lane 0"
    assert together.best.score == pytest.approx(apart.best.score)
    assert apart.compare("a", "b").value == pytest.approx(-apart.compare("b", "a").value)
    assert apart.compare("a", "b").value == pytest.approx(-apart.scores[-1].difference.value)


def test_logs_batches_and_lists_of_episodes_are_judged_alike():
    batch = chain(40, np.random.default_rng(2))
    log, predictor = log_of(batch), Values(0.8 * TRUTH)
    scores = [
        gvf.compare_learners(predictor, given).best.score for given in (log, batch, [*log.episodes])
    ]
    assert scores[0] == scores[1] == scores[2]


def test_a_score_is_the_mean_squared_error_to_returns():
    batch = chain(30, np.random.default_rng(3))
    ratio, cumulant, continuation, _ = RIGHT.evaluate(batch)
    returned, following = np.zeros(len(batch)), 0.0
    for t in reversed(range(len(batch))):
        following = 0.0 if batch.terminated[t] else following
        returned[t] = following = ratio[t] * (cumulant[t] + continuation[t] * following)
    expected = ((0.8 * TRUTH[batch.state] - returned) ** 2).mean()
    found = gvf.compare_learners(Values(0.8 * TRUTH), batch, returns="per-decision")
    assert found.best.score == pytest.approx(expected, rel=1e-12)


def test_differences_do_not_depend_on_the_kind_of_return_on_average():
    # On all trajectories of a small world, weighted by their chances: exactly the true difference.
    v, rng = values(), np.random.default_rng(4)
    learners = {"a": Values(v + rng.normal(size=8)), "b": Values(v + 0.5 * rng.normal(size=8))}
    for baseline in (np.zeros(8), v, rng.normal(size=8)):
        measured = true = 0.0
        for start in (0, 1):
            for chance, one in trajectories(start):
                held, _ = gather(learners, [one], question, None, "error")
                b = baseline[one.state]
                targets = returns_of(held, "doubly-robust", Baseline(b, 0 * b, 0 * b))
                a, other = squared_errors(held, targets, held.predicted).error[0]
                exact = [((p.table - v)[one.state] ** 2).sum() for p in learners.values()]
                measured += chance * (a - other)
                true += chance * (exact[0] - exact[1])
        assert measured == pytest.approx(true, abs=1e-10)


def test_good_baselines_take_most_of_the_noise():
    batch = chain(100, np.random.default_rng(6))
    held, _ = gather({"a": Values(TRUTH)}, batch, RIGHT, None, "error")
    b, none = TRUTH[batch.state], np.zeros(len(batch))
    baseline = Baseline(b, none, none)
    robust, *others = (
        ((returns_of(held, kind, baseline) - b) ** 2).mean()
        for kind in ("doubly-robust", "per-decision", "weighted")
    )
    assert robust < 0.2 * min(others)


def test_the_right_advantage_takes_all_noise_from_a_world_without_chance():
    batch = chain(50, np.random.default_rng(6))
    held, _ = gather({"a": Values(TRUTH)}, batch, RIGHT, None, "error")
    after = np.stack([np.r_[0, TRUTH[:-1]], np.r_[TRUTH[1:], 0]], 1)
    after[[0, 9]] = 0.0
    reward = np.zeros((10, 2))
    reward[8, 1] = 1.0
    ends = np.zeros((10, 2))
    ends[1, 0] = ends[8, 1] = 1.0
    advantage = reward + 0.9 * after * (1 - ends) - TRUTH[:, None]
    mean = (advantage * [0.3, 0.7]).sum(axis=1)
    control = mean[batch.state] - held.ratio * advantage[batch.state, batch.action]
    beyond = np.where(held.cut, TRUTH[batch.next_state], 0.0)
    baseline = Baseline(TRUTH[batch.state], beyond, control)
    found = returns_of(held, "doubly-robust", baseline)
    np.testing.assert_allclose(found, TRUTH[batch.state], atol=1e-9)


def test_regression_finds_advantages():
    batch = chain(150, np.random.default_rng(6))
    learners = {str(k): Values(TRUTH * (np.arange(10) <= k)) for k in range(1, 9)}
    held, _ = gather({"right": Values(TRUTH), **learners}, batch, RIGHT, None, "error")
    found = shared_baseline(held, seed=0)
    np.testing.assert_array_equal(found.value, TRUTH[batch.state])
    plain = Baseline(found.value, found.after, 0 * found.control)
    noise, left = (
        ((returns_of(held, "doubly-robust", one) - TRUTH[batch.state]) ** 2).mean()
        for one in (plain, found)
    )
    assert left < 0.3 * noise


def test_a_baseline_does_not_know_its_own_episode():
    learners = {str(k): Values(k * TRUTH) for k in (0.2, 0.6, 1.0, 1.4)}
    batch = chain(25, np.random.default_rng(5))
    held, _ = gather(learners, batch, RIGHT, None, "error")
    before = shared_baseline(held, seed=0)
    changed = 0
    for episode in range(25):
        mine = held.episode == episode
        cumulant = np.where(mine, held.cumulant + 1e3, held.cumulant)
        other = type(held)(**{**vars(held), "cumulant": cumulant})
        after = shared_baseline(other, seed=0)
        np.testing.assert_array_equal(after.value[mine], before.value[mine])
        # Only the row's own ratio and probabilities enter its control.
        np.testing.assert_array_equal(after.control[mine], before.control[mine])
        changed += bool((after.control != before.control).any())
    assert changed > 0  # and so the other episodes' baselines do learn from it


@pytest.mark.parametrize("kind", ["doubly-robust", "per-decision"])
def test_intervals_contain_the_true_difference(kind):
    first, second = 0.8 * TRUTH, TRUTH + 0.05
    weight = visits()
    true = weight @ ((first - TRUTH) ** 2 - (second - TRUTH) ** 2) / weight.sum()
    learners, count, hits = {"a": Values(first), "b": Values(second)}, 120, 0
    for seed in range(count):
        batch = chain(60, np.random.default_rng([7, seed]))
        found = gvf.compare_learners(learners, batch, returns=kind, replicates=300, seed=seed)
        difference = found.compare("a", "b")
        hits += difference.low <= true <= difference.high
    # Bootstrap intervals of 60 skewed numbers are a little narrow: at least 0.9, at level 1e-3.
    assert hits >= stats.binom.ppf(1e-3, count, 0.9)


def test_few_episodes_cannot_tell():
    found = gvf.compare_learners(Values(TRUTH), log_of(chain(6, np.random.default_rng(8))))
    assert str(found.verdict) == "cannot tell: there are only 6 held-out episodes"
    single = gvf.compare_learners(Values(TRUTH), log_of(chain(1, np.random.default_rng(8))))
    assert np.isnan(single.constant.difference.low)
    assert "only 1 held-out" in str(single.verdict)


def test_weights_that_degenerate_cannot_tell():
    far = gvf.GVF(gvf.policies.Fixed([0.01, 0.99]), "reward", 0.9)
    log = log_of(chain(30, np.random.default_rng(9)))
    found = gvf.compare_learners({"a": Values(TRUTH), "b": Values(0 * TRUTH)}, log, question=far)
    assert found.effective_sample_size < 10
    assert re.match(r"cannot tell: the 30 held-out episodes are worth only", str(found.verdict))


def test_effective_sample_size_is_all_episodes_on_policy():
    same = gvf.GVF(gvf.policies.Fixed(MU), "reward", 0.9)
    log = log_of(chain(40, np.random.default_rng(10)))
    found = gvf.compare_learners(Values(TRUTH), log, question=same)
    assert found.effective_sample_size == pytest.approx(40)
    assert found.k_hat == -np.inf


def test_values_beyond_cut_episodes_cannot_tell():
    log = log_of(chain(60, np.random.default_rng(11), limit=2))
    long = gvf.GVF(gvf.policies.Fixed(MU), "reward", 0.99)
    found = gvf.compare_learners({"a": Values(TRUTH), "b": Values(0 * TRUTH)}, log, question=long)
    assert found.beyond > 0.5
    assert "of the values lie beyond the ends of cut episodes" in str(found.verdict)


def test_the_share_beyond_cuts_is_that_of_the_target():
    batch = chain(60, np.random.default_rng(11), limit=4)
    ratio, _, continuation, _ = RIGHT.evaluate(batch)
    beyond, following = np.zeros(len(batch)), 0.0
    for t in reversed(range(len(batch))):
        following = 1.0 if batch.truncated[t] else 0.0 if batch.terminated[t] else following
        beyond[t] = following = ratio[t] * continuation[t] * following
    found = gvf.compare_learners(Values(TRUTH), batch)
    assert found.beyond == pytest.approx(beyond.mean(), rel=1e-12)


def test_the_constant_does_not_know_the_episode_that_it_is_judged_by():
    # Four episodes of one step with returns 1, 2, 3 and 6, the last of which counts twice.
    batch = gvf.Transitions(
        state=[0] * 4, action=[0] * 4, reward=[1.0, 2.0, 3.0, 6.0], terminated=[True] * 4,
        behaviour_probability=[1.0] * 4, interest=[1.0, 1.0, 1.0, 2.0],
    )  # fmt: skip
    asked = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", interest="interest")
    found = gvf.compare_learners(Values([0.0]), batch, question=asked, returns="per-decision")
    others = [(2 + 3 + 12) / 4, (1 + 3 + 12) / 4, (1 + 2 + 12) / 4, (1 + 2 + 3) / 3]
    errors = [(c - g) ** 2 for c, g in zip(others, (1, 2, 3, 6), strict=True)]
    expected = (sum(errors[:3]) + 2 * errors[3]) / 5
    assert found.constant.score == pytest.approx(expected, rel=1e-12)


def test_no_candidate_better_than_a_constant():
    log = log_of(chain(100, np.random.default_rng(12)))
    found = gvf.compare_learners(Values(-TRUTH), log)
    assert str(found.verdict) == "Values is not shown to predict better than a constant"
    assert found.constant.score < found.best.score


def test_diverged_candidates_are_named_and_never_win():
    log = log_of(chain(40, np.random.default_rng(13)))
    found = gvf.compare_learners({"a": Values(TRUTH), "b": Values(np.full(10, np.nan))}, log)
    last = found.scores[-1]
    assert (last.name, last.standing, last.score, last.chance) == ("b", "diverged", np.inf, 0.0)
    assert found.best.chance == 1.0
    assert "b" in repr(found)
    assert "diverged" in repr(found)
    lost = gvf.compare_learners({"b": Values(np.full(10, np.inf))}, log)
    assert str(lost.verdict) == "all candidates have diverged"


def test_predictions_that_nearly_overflow_raise_no_warning():
    log = log_of(chain(40, np.random.default_rng(13)))
    for huge in (1e153, 1e154, 1e160, 1e300):
        learners = {"a": Values(TRUTH), "b": Values(np.full(10, huge))}
        found = gvf.compare_learners(learners, log)
        assert found.best.name == "a"
        repr(found)


def test_lists_of_episodes_need_no_ends_and_predict_beyond_cuts():
    batch = chain(12, np.random.default_rng(18), limit=3)
    episodes = [*log_of(batch).episodes]
    bare = [
        gvf.Transitions(**{name: one[name] for name in one.columns if name != "truncated"})
        for one in episodes
    ]
    learners = {"a": Values(TRUTH), "b": Values(TRUTH + np.arange(10))}
    assert (
        gvf.compare_learners(learners, bare).scores
        == gvf.compare_learners(learners, episodes).scores
    )
    held, _ = gather(learners, bare, RIGHT, None, "error")
    assert held.last.sum() == 12
    np.testing.assert_array_equal(held.cut, batch.truncated)
    expected = [learners[name].table[batch.next_state[held.cut]] for name in "ab"]
    np.testing.assert_array_equal(held.after[held.cut], np.transpose(expected))
    assert (held.after[~held.cut] == 0.0).all()


def test_interest_weighs_states():
    batch = chain(40, np.random.default_rng(14))
    wrong = np.where(np.arange(10) < 5, TRUTH + 1.0, TRUTH)
    only = gvf.GVF(RIGHT.policy, "reward", 0.9, interest=lambda t: t.state >= 5)
    whole = {"wrong": Values(wrong), "right": Values(TRUTH)}
    assert gvf.compare_learners(whole, batch).best.name == "right"
    found = gvf.compare_learners(whole, batch, question=only)
    assert found.compare("wrong", "right").value == pytest.approx(0.0, abs=1e-12)


def test_estimated_ratios_are_said():
    batch = chain(30, np.random.default_rng(15))
    marked = gvf.Transitions(**batch.columns, behaviour_is_estimated=np.ones(len(batch), bool))
    assert gvf.compare_learners(Values(TRUTH), marked).estimated
    assert "estimated ratios" in repr(gvf.compare_learners(Values(TRUTH), marked))
    assert "estimated" not in repr(gvf.compare_learners(Values(TRUTH), batch))


def test_continuous_actions_are_judged():
    rng = np.random.default_rng(16)
    near, mine = gvf.policies.Gaussian(0.3, 0.5), gvf.policies.Gaussian(0.0, 0.6)
    state, action = rng.normal(size=(2, 400, 1))
    action = 0.6 * action
    batch = gvf.Transitions(
        state=state, action=action, reward=action[:, 0], next_state=state,
        terminated=np.ones(400, bool),
    )  # fmt: skip
    question = gvf.GVF(near, "reward", 0.9)

    class Constant:
        def __init__(self, value):
            self.value, self.question = value, question

        def predict(self, states):
            return np.full(len(states), self.value)

    found = gvf.compare_learners(
        {"low": Constant(-0.3), "right": Constant(0.3)}, batch, behaviour=mine
    )
    assert found.best.name == "right"
    assert found.compare("low", "right").low > 0.0


def test_the_table_shows_what_was_compared():
    learners = [
        gvf.Learner(RIGHT, gvf.features.OneHot(10), gvf.updates.TD([0.01, 0.1]), c, seed=0)
        for c in (gvf.corrections.IR(), gvf.corrections.IS())
    ]
    train, held_out = log_of(chain(150, np.random.default_rng(17))).split(0.3)
    for learner in learners:
        learner.fit(train, order="log")
    found = gvf.compare_learners(learners, held_out)
    assert sorted(score.name for score in found.scores) == [
        "TD, IR, step size 0.01", "TD, IR, step size 0.1", "TD, IS, step size 0.01",
        "TD, IS, step size 0.1", "a constant",
    ]  # fmt: skip
    shown = repr(found)
    for words in ("45 held-out episodes", "doubly-robust", "95 % interval", "verdict: "):
        assert words in shown
    assert gvf.compare_learners(learners, held_out, seed=0) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learners": {}}, "at least one learner"),
        ({"learners": {"a": 3}}, "learner 'a' has no method predict: 3"),
        ({"learners": 3}, "learners must be"),
        ({"returns": "exact"}, "returns"),
        ({"level": 95}, "level must be between 0 and 1"),
        ({"replicates": 0}, "replicates"),
        ({"question": "reward"}, "question must be a gvf.GVF"),
        ({"log": "log.parquet"}, "cannot judge by a str: give a gvf.Log"),
        ({"log": [3]}, "expected gvf.Transitions, got 3"),
        ({"log": []}, "no held-out transitions"),
    ],
)
def test_what_cannot_be_judged_is_refused(change, message):
    given = {"learners": Values(TRUTH), "log": chain(3, np.random.default_rng(0)), **change}
    with pytest.raises((TypeError, ValueError), match=message):
        gvf.compare_learners(given.pop("learners"), given.pop("log"), **given)


def test_different_questions_are_not_compared():
    other = Values(TRUTH)
    other.question = gvf.GVF(RIGHT.policy, "reward", 0.5)
    batch = chain(3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="only errors of the same question can be compared"):
        gvf.compare_learners({"a": Values(TRUTH), "b": other}, batch)


def test_an_open_end_and_a_wrong_probability_are_named():
    batch = chain(3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="the last episode of the log has no end"):
        gvf.compare_learners(Values(TRUTH), batch[: len(batch) - 1])
    columns = {**batch.columns, "reward": np.where(np.arange(len(batch)) == 2, np.nan, 0.0)}
    with pytest.raises(ValueError, match=r"reward.* is nan at position 2") as caught:
        gvf.compare_learners(Values(TRUTH), gvf.Transitions(**columns))
    assert "Positions count from transition 0" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match=r"reward.* is nan at position 2") as caught:
        gvf.compare_learners(Values(TRUTH), [batch, gvf.Transitions(**columns)])
    assert f"Positions count from transition {len(batch)} of" in caught.value.__notes__[0]


def test_gymnasium_and_online_learners_are_judged():
    batch = chain(70, np.random.default_rng(0))
    train, held_out = gvf.read_log(batch.columns, ends="truncated", quiet=True).split(0.5)
    online = gvf.OnlineLearner(RIGHT, gvf.features.OneHot(10), TDLambda(0.1, [0.0, 0.9]))
    lstd = gvf.OnlineLearner(RIGHT, gvf.features.OneHot(10), LSTD(0.9))
    for learner in (online, lstd):
        learner.fit(train, order="log")
    found = gvf.compare_learners([online, lstd], held_out)
    assert {score.learner for score in found.scores} == {"TDLambda", "LSTD", ""}
    assert "TDLambda, trace decay 0.9" in [score.name for score in found.scores]


def gains(number, runs=200, episodes=30):
    """How often the best of so many candidates, all worse than the constant, seems better."""
    won = 0
    for run in range(runs):
        rng = np.random.default_rng([run, episodes])
        reward = 1.0 + rng.normal(size=5 * episodes)
        state, action = rng.integers(10, size=5 * episodes), rng.integers(2, size=5 * episodes)
        steps = gvf.Transitions(
            state=state, action=action, reward=reward,
            terminated=np.arange(5 * episodes) % 5 == 4,
            behaviour_probability=np.full(5 * episodes, 0.5),
        )  # fmt: skip
        tables = rng.normal(size=(number, 10))
        tables *= 0.15 / np.sqrt((tables**2).mean(axis=1, keepdims=True))
        asked = gvf.GVF(gvf.policies.Fixed([0.35, 0.65]), "reward", 0.0)
        found = gvf.compare_learners(
            {f"{i}": Values(1.0 + table) for i, table in enumerate(tables)}, steps,
            question=asked, replicates=200, seed=run,
        )  # fmt: skip
        won += found.constant.difference.low > 0.0
    return won / runs


def test_the_best_of_many_is_corrected_for_the_choice():
    # 2.5 % at most are expected. More than 10 of 200 logs then have a probability of .01. Without
    # the correction it is 16 % of these logs.
    assert gains(24) <= 0.05
    assert gains(1) <= 0.05


def test_one_candidate_needs_no_correction():
    batch = chain(60, np.random.default_rng(3))
    found = gvf.compare_learners({"right": Values(TRUTH)}, batch)
    names = found._names
    plain = found.compare("a constant", names[0])
    assert found.constant.difference.low == pytest.approx(plain.low, rel=1e-9)


def test_predictions_beyond_the_limit_of_a_learner_have_diverged():
    """Returns here are at most 10; a learner has diverged above 10,000."""
    batch = chain(60, np.random.default_rng(3))
    near, beyond = TRUTH.copy(), TRUTH.copy()
    near[4], beyond[4] = 9_000.0, 11_000.0
    found = gvf.compare_learners({"near": Values(near), "beyond": Values(beyond)}, batch)
    standing = {one.name: one.standing for one in found.scores}
    assert standing["beyond"] == "diverged"
    assert standing["near"] == "best"
    assert found.scores[-1].score == np.inf
    shared = gvf.compare_learners({"beyond": Values(beyond), "right": Values(TRUTH)}, batch)
    alone = gvf.compare_learners({"right": Values(TRUTH)}, batch)
    assert shared.best.score == alone.best.score  # it is no part of the baseline either
    assert gvf.compare_learners({"beyond": Values(beyond)}, batch).verdict.outcome == "all diverged"


def choice(scores, errors=0.0, noise=False, diverged="", without=(), learners=None):
    """Choose among lanes 0, 1, ... with step sizes .1, .2, ..., by these scores."""
    tables = np.stack([TRUTH] * len(scores), axis=1)
    found = gvf.compare_learners(
        {"TD": Values(tables)}, chain(60, np.random.default_rng(3)), replicates=500
    )
    errors = errors * np.random.default_rng(0).normal(size=(500, len(scores) + 1))
    names = found._names
    entries = [
        replace(
            one,
            score=scores[names.index(one.name)],
            learner=learners[names.index(one.name)] if learners else one.learner,
            standing="diverged" if one.name == diverged else "as good",
        )
        for one in found.scores
        if one.standing != "reference"
    ]
    entries = [*sorted(entries, key=lambda one: one.score), found.constant]
    sums = replace(found._sums, error=np.tile([*scores, 1.0], (60, 1)), weight=np.ones(60))
    changed = replace(
        found, scores=tuple(entries), noise=noise, _samples=np.array([*scores, 1.0]) + errors,
        _sums=sums,
    )  # fmt: skip
    taken = changed.choose(lambda one: 0.1 * (1 + (one.lane or 0)), without)
    return None if taken is None else taken.lane


def test_ties_are_broken_towards_the_smaller_step():
    # The difference of two scores has a standard error of 1.4.
    assert choice([5.0, 4.0, 3.0], errors=1.0) == 2
    assert choice([5.0, 3.5, 3.0], errors=1.0) == 1
    assert choice([3.5, 3.4, 3.0], errors=1.0) == 0
    assert choice([3.0, 3.5, 3.5], errors=1.0) == 0  # never towards the larger step
    assert choice([3.5, 3.0]) == 1  # told apart
    assert choice([3.0, 3.1, 3.0], errors=1.0, learners=["A", "B", "B"]) == 0
    assert choice([3.1, 3.1, 3.0], errors=1.0, learners=["A", "B", "B"]) == 1


def test_where_returns_are_noise_what_cannot_be_told_apart_is_a_tie():
    assert choice([5.0, 4.0, 3.0], errors=1.0, noise=True) == 0
    assert choice([50.0, 4.0, 3.0], errors=1.0, noise=True) == 1


def test_returns_beyond_all_reason_are_a_doubt():
    """Ratios of 9, seven in a row, make returns of millions; none can be above 10."""
    steps = gvf.Transitions(
        state=np.tile(np.arange(8), 40), action=np.ones(320, int),
        reward=np.tile([0.0] * 7 + [1.0], 40), terminated=np.tile([False] * 7 + [True], 40),
        behaviour_probability=np.full(320, 0.1),
    )  # fmt: skip
    asked = gvf.GVF(gvf.policies.Fixed([0.1, 0.9]), "reward", 0.9)
    found = gvf.compare_learners({"zero": Values(np.zeros(10))}, steps, question=asked)
    assert found.noise
    assert "products of ratios make returns of " in "; ".join(found.doubts)
    assert not gvf.compare_learners(
        {"right": Values(TRUTH)}, chain(60, np.random.default_rng(3))
    ).noise


def test_what_diverged_or_failed_is_not_chosen():
    assert choice([5.0, 4.0, 3.0], diverged="TD, lane 2") == 1
    assert choice([5.0, 4.0, 3.0], without=("TD, lane 2", "TD, lane 1")) == 0
    assert choice([5.0, 4.0], without=("TD, lane 0", "TD, lane 1")) is None
