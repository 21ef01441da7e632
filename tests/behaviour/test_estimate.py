"""Estimating a behaviour: cross-fitting, calibration, what the log carries, and bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from acted import needs_scikit_learn, shown, softly, table_log, vector_log
from own_policies import LEVEL

import gvf
from gvf.behaviour import Logistic
from gvf.behaviour.reliability import of_densities, of_probabilities, transforms
from gvf.estimate import mean_by_episode
from gvf.online import TDLambda

MU = gvf.policies.Table([[0.1, 0.9], [0.6, 0.4], [0.5, 0.5]])
QUESTION = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), lambda t: t.state, 0.5)


def with_actions(log: gvf.Log, episode: int, actions: Any) -> gvf.Log:
    """The log with other actions in one episode."""

    def changed(batch: gvf.Transitions) -> dict[str, Any]:
        own = batch.episode == episode
        new = batch.action.copy()
        new[own] = actions[: own.sum()]
        return {"action": new}

    return log.with_columns(changed)


LOGISTIC = pytest.param("logistic", marks=needs_scikit_learn)


@pytest.mark.parametrize("model", ["counts", LOGISTIC, "gaussian"])
def test_the_model_of_a_row_has_not_seen_its_episode(model: str) -> None:
    if model == "gaussian":
        log = vector_log(gvf.policies.Gaussian(lambda s: s[:, 0], 0.5), episodes=15, steps=30)
        other = with_actions(log, 4, np.linspace(-9, 9, 30))
        states, actions = log.transitions().state, log.transitions().action
    else:
        log = table_log(MU, 3, episodes=15, steps=30)
        other = with_actions(log, 4, np.ones(30, int))
        states, actions = np.arange(3), np.ones(3, int)
    options: Any = {
        "model": model,
        "features": gvf.features.OneHot(3) if model == "logistic" else None,
    }
    first, second = (gvf.estimate_behaviour(one, **options) for one in (log, other))
    assert (first.fold_of == second.fold_of).all()
    assert sorted(np.bincount(first.fold_of)) == [3] * 5
    own = int(first.fold_of[4])
    for k in range(5):
        p = [found.fold_policies[k].log_probability(states, actions) for found in (first, second)]
        assert (p[0] == p[1]).all() == (k == own)  # temperatures included


def test_rows_carry_the_probabilities_of_their_folds_model() -> None:
    log = table_log(MU, 3, episodes=20, steps=10)
    found = gvf.estimate_behaviour(log, folds=4)
    for number, episode in enumerate(found.log.episodes):
        policy = found.fold_policies[found.fold_of[number]]
        p = policy.probability(episode.state, episode.action)
        np.testing.assert_array_equal(episode.behaviour_probability, p)
    every = found.probabilities(log.transitions())
    taken = np.take_along_axis(every, log.transitions().action[:, None], axis=1)[:, 0]
    np.testing.assert_array_equal(taken, found.log.transitions().behaviour_probability)
    assert found.scores.log_loss.value == pytest.approx(-np.log(taken).mean())


class Overconfident:
    """A model whose log odds are four times too large."""

    name = "overconfident"

    def estimate(self, states, actions, count, rng):
        policy = Logistic(features=lambda s: s).estimate(states, actions, count, rng)

        def sharp(states):
            powers = policy.probabilities(states) ** 4.0  # pyright: ignore
            return powers / powers.sum(axis=1, keepdims=True)

        return gvf.policies.Function(sharp, count)


@needs_scikit_learn
def test_calibration_corrects_a_model_that_is_too_sure_of_itself() -> None:
    log = vector_log(gvf.policies.Function(softly, 3), episodes=200, steps=20)
    raw, calibrated = (
        gvf.estimate_behaviour(log, model=Overconfident(), calibrate=calibrate)
        for calibrate in (False, True)
    )
    assert raw.temperatures == (1.0,) * 5
    assert all(3.0 < t < 5.0 for t in calibrated.temperatures)
    assert calibrated.scores.log_loss.high < raw.scores.log_loss.low
    errors = [found.reliability().error for found in (raw, calibrated)]
    assert errors[1].high < errors[0].low
    assert errors[0].low > raw.reliability().limit
    assert errors[1].value < 2 * calibrated.reliability().by_chance
    assert "calibration error is larger than chance explains" in shown(raw)
    assert "WARNING" not in shown(calibrated)


def test_the_temperature_comes_from_episodes_that_the_model_has_not_seen() -> None:
    class Remembers:
        """The action of the nearest state in the log, with a probability of 97 %."""

        name = "nearest state"

        def estimate(self, states, actions, count, rng):
            def near(asked):
                nearest = np.abs(asked - states.T).argmin(axis=1)
                return np.where(np.arange(count) == actions[nearest, None], 0.97, 0.03)

            return gvf.policies.Function(near, count)

    mu = gvf.policies.Function(lambda s: np.where(s > 0, [0.3, 0.7], [0.7, 0.3]), 2)
    log = vector_log(mu, episodes=40, steps=20, d=1)
    found = gvf.estimate_behaviour(log, model=Remembers())
    # On its own rows it is right, so they would give a temperature below 1.
    assert min(found.temperatures) > 2.5


def test_the_temperature_of_a_gaussian_widens_it() -> None:
    log = vector_log(gvf.policies.Gaussian(lambda s: s[:, 0], 0.5), episodes=12, steps=10)
    raw, wide = (gvf.estimate_behaviour(log, calibrate=calibrate) for calibrate in (False, True))
    states = log.transitions().state
    for first, second, t in zip(
        raw.fold_policies, wide.fold_policies, wide.temperatures, strict=True
    ):
        draws = [p.sample(states, rng=np.random.default_rng(0)) for p in (first, second)]
        again = [p.sample(states, rng=np.random.default_rng(1)) for p in (first, second)]
        np.testing.assert_allclose(draws[1] - again[1], t * (draws[0] - again[0]), atol=1e-9)
        assert abs(t - 1) > 1e-3


def test_the_calibration_error_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 2, 3], size=500)
    actions, episode = rng.integers(3, size=500), np.repeat(np.arange(50), 10)
    found = of_probabilities(p, actions, episode, rng)
    assert found.error.value > found.limit  # the actions are not from p
    edges = np.quantile(p, np.arange(1, 15) / 15)
    total = 0.0
    for low, high in zip([-1, *edges], [*edges, 2], strict=True):
        pairs = [(i, a) for i in range(500) for a in range(3) if low <= p[i, a] < high]
        total += abs(sum(p[i, a] - (actions[i] == a) for i, a in pairs))
    assert found.error.value == pytest.approx(total / 1500)
    assert found.counts.sum() == 1500


def test_the_calibration_error_of_the_true_policy_is_due_to_chance() -> None:
    above, found = 0, None
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet([1, 2, 3], size=300)
        actions = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
        found = of_probabilities(p, actions, np.arange(300), rng)
        above += found.error.value > found.limit
    assert above <= scipy.stats.binom.isf(LEVEL, 100, 0.04)  # 2.5 %, and noise of the limit
    assert found is not None
    assert found.limit > found.by_chance > 0


def test_the_transform_of_a_density_is_uniform_for_the_policy_that_acted() -> None:
    mu = gvf.policies.Gaussian(lambda s: s[:, :1], 0.5)
    rng = np.random.default_rng(1)
    states = rng.normal(size=(4000, 2))
    actions = mu.sample(states, rng=rng)
    right = transforms(mu, states, actions, rng)
    assert scipy.stats.kstest(right[:, 0], "uniform").pvalue > LEVEL
    wrong = transforms(gvf.policies.Gaussian(lambda s: s[:, :1], 0.4), states, actions, rng)
    episode = np.arange(4000) // 10
    assert of_densities(right, episode, rng).error.value < 0.01
    found = of_densities(wrong, episode, rng)
    assert found.error.low > found.limit


def test_intervals_over_episodes_cover_the_mean() -> None:
    rng, covered = np.random.default_rng(2), 0
    for _ in range(400):
        episode = np.repeat(np.arange(60), rng.integers(1, 9, 60))
        values = rng.normal(size=60)[episode] + rng.normal(size=len(episode))
        found = mean_by_episode(values, episode)
        covered += found.low < 0 < found.high
    # Between 90 % and 97.5 %: rows alone, as if independent, would cover 67 %.
    assert scipy.stats.binom.ppf(LEVEL, 400, 0.93) <= covered <= 398


def reports(log: gvf.Log, behaviour: gvf.policies.Policy | None = None) -> list[str]:
    """The reports and diagnoses of all kinds of learners."""
    features, update = gvf.features.OneHot(3), gvf.updates.TD(0.1)
    learner = gvf.Learner(QUESTION, features, update, behaviour=behaviour, seed=0)
    online = gvf.OnlineLearner(QUESTION, features, TDLambda(0.1), behaviour=behaviour)
    horde = gvf.Horde([QUESTION], features, update, behaviour=behaviour, seed=0)
    for one in (learner, online, horde):
        one.fit(log, order="log")
    told = [one.report() for one in (learner, online, horde)]
    return list(
        map(repr, [*told, learner.diagnose(), horde.diagnose(), horde.diagnose(horde.names[0])])
    )


def test_every_report_says_that_ratios_are_estimated() -> None:
    log = table_log(MU, 3, episodes=30, steps=10)
    found = gvf.estimate_behaviour(log)
    estimated, known = reports(found.log), reports(log, MU)
    assert [text.lower().count("ratios are estimated") for text in estimated] == [1] * 6
    assert all("ratios are estimated" in text.lower() for text in reports(log, found.policy))
    # The log's own probabilities and those of the policy differ, and the log's are used.
    assert reports(found.log, found.policy) == estimated
    assert "estimated" not in "".join(known)


def test_the_mark_survives_splits_files_and_larger_logs(tmp_path: Path) -> None:
    found = gvf.estimate_behaviour(table_log(MU, 3, episodes=30, steps=10))
    log = found.log
    assert log.has_estimates
    assert not found.source.has_estimates
    assert "behaviour probabilities: estimated, not recorded" in log.describe()
    log.to_parquet(tmp_path / "log.parquet")
    for again in (
        gvf.read_log(tmp_path / "log.parquet", quiet=True),
        gvf.read_log(tmp_path / "log.parquet", in_memory=False, quiet=True),
        gvf.read_log(log.transitions().columns, quiet=True),
        *log.split(0.3),
        log.select([2]),
    ):
        assert again.has_estimates
        assert "estimated, not recorded" in again.describe()
        learner = gvf.Learner(QUESTION, gvf.features.OneHot(3), gvf.updates.TD(0.1), seed=0)
        assert learner.fit(again, order="log").estimated


def test_a_saved_learner_remembers_that_ratios_are_estimated(tmp_path: Path) -> None:
    log = gvf.estimate_behaviour(table_log(MU, 3, episodes=30, steps=10)).log

    def made() -> list[Any]:
        return [
            gvf.Learner(QUESTION, gvf.features.OneHot(3), gvf.updates.TD(0.1), seed=0),
            gvf.OnlineLearner(QUESTION, gvf.features.OneHot(3), TDLambda(0.1)),
            gvf.Horde([QUESTION], gvf.features.OneHot(3), gvf.updates.TD(0.1), seed=0),
        ]

    for learner, other in zip(made(), made(), strict=True):
        learner.fit(log, order="log")
        learner.save(tmp_path / "learner")
        assert not other.report().estimated
        assert other.load(tmp_path / "learner", same_functions=True).report().estimated


@pytest.mark.parametrize("rows", [100_000, 150])
def test_a_log_larger_than_memory_is_estimated_alike(tmp_path: Path, rows: int) -> None:
    log = table_log(MU, 3, episodes=40, steps=10)
    log.to_parquet(tmp_path / "log.parquet")
    large = gvf.read_log(tmp_path / "log.parquet", in_memory=False, quiet=True)
    first, second = (gvf.estimate_behaviour(one, rows=rows) for one in (log, large))
    assert first.scores.rows == min(rows, 400)
    np.testing.assert_array_equal(
        first.log.transitions().behaviour_probability,
        second.log.transitions().behaviour_probability,
    )


def test_seeds_decide_folds() -> None:
    log = table_log(MU, 3, episodes=20, steps=5)
    folds = [gvf.estimate_behaviour(log, seed=seed).fold_of.tolist() for seed in (0, 0, 1)]
    assert folds[0] == folds[1] != folds[2]


@needs_scikit_learn
def test_rows_with_a_nan_have_no_probability_and_are_left_out() -> None:
    log = vector_log(gvf.policies.Function(softly, 3), episodes=30, steps=10)
    columns = dict(log.transitions().columns)
    columns["state"] = columns["state"].copy()
    columns["state"][7, 1] = np.nan
    log = gvf.read_log(columns, on_nan="keep", quiet=True)
    found = gvf.estimate_behaviour(log)
    p = found.log.transitions().behaviour_probability
    assert np.isnan(p).nonzero()[0].tolist() == [7]
    assert "1 rows have a NaN" in shown(found)
    question = gvf.GVF(gvf.policies.Uniform(3), "reward", 0.5)
    learner = gvf.Learner(
        question, gvf.features.Dense(2), gvf.updates.TD(0.01), on_nan="skip", seed=0
    )
    assert learner.fit(found.log, order="log").missing == 1
    assert found.support(gvf.policies.Uniform(3)).rows == 299


def test_an_action_that_is_never_taken_keeps_a_small_probability() -> None:
    log = table_log(MU, 3, episodes=30, steps=10)
    found = gvf.estimate_behaviour(log, actions=4)
    assert "The log never has the actions 2, 3" in shown(found)
    p = found.policy.probabilities(np.arange(3))[:, 2:]  # pyright: ignore
    assert (p > 0).all()
    assert (p < 0.02).all()
    support = found.support(gvf.policies.Fixed([0.5, 0.2, 0.2, 0.1]))
    assert support.untried == pytest.approx({2: 0.2, 3: 0.1})
    assert "never has the actions 2, 3, to which the target gives 30 %" in shown(support)


def test_states_that_are_all_the_same_give_the_same_frequencies() -> None:
    log = table_log(MU, 3, episodes=30, steps=10).with_columns(
        lambda batch: {"state": np.zeros((len(batch), 2))}
    )
    found = gvf.estimate_behaviour(log, model="logistic", calibrate=False)
    assert "All states are the same" in shown(found)
    share = log.transitions().action.mean()
    p = found.policy.probability(np.zeros((1, 2)), [1])
    assert p[0] == pytest.approx(share, abs=0.01)


def test_one_fold_is_not_cross_fitted_and_says_so() -> None:
    log = table_log(MU, 3, episodes=1, steps=200)
    found = gvf.estimate_behaviour(log, folds=1)
    assert found.folds == 1
    assert "Not cross-fitted" in shown(found)
    assert np.isnan(found.scores.log_loss.low)
    batch = found.log.transitions()
    p = found.policy.probability(batch.state, batch.action)
    np.testing.assert_array_equal(batch.behaviour_probability, p)


def with_column(name: str, values: Any) -> gvf.Log:
    log = vector_log(gvf.policies.Function(softly, 3), episodes=6, steps=5)
    return gvf.read_log({**log.transitions().columns, name: values}, on_nan="keep", quiet=True)


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no log": ([1, 2], {}, "log must be a gvf.Log"),
    "one episode": (table_log(MU, 3, episodes=1, steps=9), {}, "one episode, and cross-fitting"),
    "one action": (with_column("action", np.ones(30, int)), {}, "every action is 1"),
    "numbers as floats": (with_column("action", np.arange(30.0) % 2), {}, "actions=2"),
    "several": (with_column("action", np.ones((30, 2), int)), {}, "several numbers a row"),
    "negative": (with_column("action", np.arange(30) - 4), {}, "transition 0 .* action -4"),
    "too many": (with_column("action", np.arange(30) % 3), {"actions": 2}, "transition 2 .* 2,"),
    "no spread": (with_column("action", np.full(30, 0.5)), {}, "always 0.5"),
    "infinite": (with_column("state", np.full((30, 2), np.inf)), {}, "transition 0 .* infinite"),
    "all NaN": (with_column("state", np.full((30, 2), np.nan)), {}, "all rows have a NaN"),
    "unknown model": (with_column("x", np.ones(30)), {"model": "tree"}, "model must be one of"),
    "a class": (with_column("x", np.ones(30)), {"model": Logistic}, r"Logistic\(\)"),
    "a network": (with_column("x", np.ones(30)), {"model": "torch"}, "model must be one of"),
    "no model": (with_column("x", np.ones(30)), {"model": 3}, "model must be"),
    "a density": (with_column("x", np.ones(30)), {"model": "gaussian"}, "continuous actions"),
    "counts of floats": (with_column("x", np.ones(30)), {"model": "counts"}, "integers"),
    "features": (
        with_column("x", np.ones(30)),
        {"features": lambda s: np.zeros((2, 3))},
        "features must be",
    ),
    "not callable": (with_column("x", np.ones(30)), {"features": [1]}, "feature map"),
    "folds": (with_column("x", np.ones(30)), {"folds": 0}, "folds must be at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_told_in_one_line(what: str) -> None:
    log, options, message = BAD[what]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        gvf.estimate_behaviour(log, **options)
    assert "\n" not in str(caught.value)


def test_a_log_without_actions_has_no_behaviour() -> None:
    log = gvf.read_log({"state": [0, 1, 2], "reward": [0.0] * 3}, ends="truncated", quiet=True)
    with pytest.raises(ValueError, match="has no actions"):
        gvf.estimate_behaviour(log)


def test_pictures_show_what_was_observed(tmp_path: Path) -> None:
    found = gvf.estimate_behaviour(table_log(MU, 3, episodes=30, steps=10))
    reliability = found.reliability(tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = reliability.plot().axes
    assert axes.get_xlabel() == "estimated probability"
    line = axes.lines[1]
    np.testing.assert_array_equal(line.get_xdata(), reliability.expected)
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        found.reliability(tmp_path / "reliability.txt")
    left, right = found.support(gvf.policies.Uniform(2)).plot().axes
    assert left.get_xlabel() == "probability of the action by the behaviour"
    assert right.get_xlabel() == "state"
