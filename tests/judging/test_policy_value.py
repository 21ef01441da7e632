"""The value of a policy from returns: identities, single decisions, coverage."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import gvf
from gvf.common.quantiles import t_quantile
from gvf.judging import Estimator
from gvf.judging.held_out import HeldOut
from gvf.judging.off_policy_returns import Returns, recursive_returns
from gvf.judging.policy_value import effective_rewards, policy_values

MU, PI = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
MEANS = np.array([[0.2, 0.5, 0.9], [0.8, 0.1, 0.4]])
"""The mean reward of each action in two contexts."""


def held(ratio, cumulant, **changed) -> HeldOut:
    """Single decisions after which nothing follows, unless columns are changed."""
    n = len(ratio)
    columns = {
        "ratio": ratio, "cumulant": cumulant, "continuation": np.zeros(n), "interest": np.ones(n),
        "last": np.ones(n, bool), "predicted": np.zeros((n, 1)), "after": np.zeros((n, 1)),
        "part": np.zeros(n, int), "action": np.zeros(n, int), "target": np.zeros((n, 0)),
        "estimated": np.zeros(n, bool),
    }  # fmt: skip
    return HeldOut(**{name: np.asarray(c) for name, c in (columns | changed).items()})


def decisions(n: int, seed: int, mu=MU) -> dict[str, np.ndarray]:
    """Contexts, actions and rewards of a recommender with two contexts."""
    rng = np.random.default_rng(seed)
    context, action = rng.integers(2, size=n), rng.choice(3, size=n, p=mu)
    reward = (rng.random(n) < MEANS[context, action]).astype(float)
    return {"context": context, "action": action, "reward": reward}


def values(ratio, reward, returns, level=0.95, kind: Returns = "doubly-robust", **changed):
    return policy_values(held(ratio, reward, **changed), returns, kind, level)


def test_estimates_are_right_in_every_possible_log_together() -> None:
    """Two decisions, one context: the mean over all logs, each as likely as it is."""
    truth, total = PI @ MEANS[0], {"plain": 0.0, "doubly-robust": 0.0}
    model = np.array([0.3, 0.3, 0.7])
    for actions in product(range(3), repeat=2):
        for rewards in product((0.0, 1.0), repeat=2):
            a, c = np.array(actions), np.array(rewards)
            chance = np.prod(MU[a] * np.where(c == 1, MEANS[0, a], 1 - MEANS[0, a]))
            rho = (PI / MU)[a]
            found = values(rho, c, PI @ model + rho * (c - model[a]))
            for name in total:
                total[name] += chance * found[Estimator(name)].value
    assert total["plain"] == pytest.approx(truth, rel=1e-12)
    assert total["doubly-robust"] == pytest.approx(truth, rel=1e-12)


def test_the_doubly_robust_value_is_the_models_and_a_correction() -> None:
    """By the returns that judge: with baseline b and advantages A, the model is b + A."""
    log = decisions(500, 0)
    model = MEANS + 0.1 * np.arange(3)
    q, b = model[log["context"]], np.array([0.3, 0.7])[log["context"]]
    taken = q[np.arange(500), log["action"]]
    rho, ones = (PI / MU)[log["action"]], np.ones(500)
    control = (q - b[:, None]) @ PI - rho * (taken - b)
    returns = recursive_returns(rho, log["reward"], 0 * ones, b, ones == 1, 0 * ones, control)
    direct, correction = (q @ PI).mean(), (rho * (log["reward"] - taken)).mean()
    found = values(rho, log["reward"], returns)
    assert found[Estimator.DOUBLY_ROBUST].value == pytest.approx(direct + correction, rel=1e-12)
    # With a model that is always 0, nothing but the plain estimate is left.
    bare = recursive_returns(rho, log["reward"], 0 * ones, 0 * ones, ones == 1, 0 * ones)
    found = values(rho, log["reward"], bare)
    assert found[Estimator.DOUBLY_ROBUST] == found[Estimator.PLAIN]


def test_a_constant_model_gives_the_constant_if_rewards_are_constant() -> None:
    rho = (PI / MU)[decisions(100, 1)["action"]]
    reward = np.full(100, 0.7)
    returns = 0.7 + rho * (reward - 0.7)
    found = values(rho, reward, returns)
    for name in (Estimator.DOUBLY_ROBUST, Estimator.SELF_NORMALISED, Estimator.CONSTANT):
        assert found[name].value == pytest.approx(0.7, rel=1e-12)
        assert found[name].high - found[name].low < 1e-12
    assert found[Estimator.PLAIN].value == pytest.approx(0.7 * rho.mean())
    assert found[Estimator.PLAIN].low < 0.7 * rho.mean() < found[Estimator.PLAIN].high


def test_if_the_target_acted_all_are_the_mean_with_its_t_interval() -> None:
    reward = np.random.default_rng(2).exponential(size=20)
    found = values(np.ones(20), reward, reward, level=0.9)
    expected = stats.t.interval(0.9, 19, reward.mean(), stats.sem(reward))
    for interval in found.values():
        assert interval.value == pytest.approx(reward.mean(), rel=1e-12)
        np.testing.assert_allclose((interval.low, interval.high), expected, rtol=1e-3)
    assert set(found) == {"doubly-robust", "plain", "self-normalised", "constant"}


def test_quantiles_are_those_of_the_t_distribution() -> None:
    for degrees in (4, 9, 30, 1000):
        for level in (0.8, 0.95, 0.99):
            exact = stats.t.ppf((1 + level) / 2, degrees)
            assert t_quantile(degrees, level) == pytest.approx(exact, rel=0.02)


def test_episodes_are_the_parts_and_interest_counts_for_the_constant_only() -> None:
    """Four episodes of three steps, whose returns differ by the same from each to the next."""
    last = np.tile([False, False, True], 4)
    returns = np.repeat([1.0, 2.0, 3.0, 4.0], 3) + np.tile([0.0, 1.0, 2.0], 4)
    interest = np.tile([1.0, 0.0, 3.0], 4)
    found = values(np.ones(12), returns, returns, last=last, interest=interest)
    assert set(found) == {"doubly-robust", "constant"}
    first = stats.t.interval(0.95, 3, 2.5, stats.sem([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose([*found[Estimator.DOUBLY_ROBUST]], (2.5, *first), atol=0.02)
    states = np.array([1.0, 2.0, 3.0, 4.0]) + 6 / 4  # 0 once and 2 three times
    spread = stats.t.interval(0.95, 3, states.mean(), stats.sem(states))
    np.testing.assert_allclose([*found[Estimator.CONSTANT]], (states.mean(), *spread), atol=0.02)


def test_decisions_that_are_cut_have_no_plain_value() -> None:
    """More would have followed, so ratio times cumulant is not the return."""
    n = np.ones(20)
    assert Estimator.PLAIN in values(n, n, n)
    assert Estimator.PLAIN not in values(n, n, n, continuation=0.5 * n)
    kinds = values(n, n, n, kind="weighted")
    assert "weighted" in kinds
    assert "doubly-robust" not in kinds


def test_what_cannot_be_told_is_nan() -> None:
    one = values(np.ones(1), np.ones(1), np.ones(1))
    assert one[Estimator.PLAIN].value == 1.0
    assert np.isnan([*one[Estimator.PLAIN]][1:]).all()
    lost = values(np.zeros(5), np.ones(5), np.full(5, np.inf))
    assert np.isnan([*lost[Estimator.SELF_NORMALISED]]).all()
    assert np.isnan([*lost[Estimator.DOUBLY_ROBUST]][1:]).all()
    # A state without interest may have any return.
    some = np.array([1.0, 1.0, 1.0, 0.0])
    kept = values(np.ones(4), np.ones(4), np.array([1.0, 2.0, 3.0, np.inf]), interest=some)
    assert kept[Estimator.CONSTANT].value == 2.0


class Values:
    def __init__(self, table) -> None:
        self.table = np.asarray(table)

    def predict(self, states):
        return self.table[states]


def log_of(seed: int, n: int = 300) -> gvf.Transitions:
    drawn = decisions(n, seed)
    return gvf.Transitions(
        state=drawn["context"], action=drawn["action"], reward=drawn["reward"],
        terminated=np.ones(n, bool), behaviour_probability=MU[drawn["action"]],
    )  # fmt: skip


def test_intervals_hold_the_value_as_often_as_they_say() -> None:
    """300 decisions in 300 logs; the level of each test is 1e-4."""
    question = gvf.GVF(gvf.policies.Fixed(PI), "reward", 0.0)
    truth, logs = (MEANS @ PI).mean(), 300
    models = {"a": Values([0.3, 0.3]), "b": Values([0.7, 0.4])}
    hits = dict.fromkeys(("plain", "self-normalised", "doubly-robust", "constant"), 0)
    width = dict.fromkeys(hits, 0.0)
    for seed in range(logs):
        found = gvf.compare_learners(
            models, log_of(seed), question=question, replicates=2, level=0.9
        )
        for name in hits:
            _, low, high = found.values[Estimator(name)]
            hits[name] += low <= truth <= high
            width[name] += high - low
    least, most = stats.binom.ppf([1e-4, 1 - 1e-4], logs, 0.9)
    for name, count in hits.items():
        assert least <= count <= most, name
    # A model of the rewards makes the interval shorter, else it would be of no use.
    assert width["doubly-robust"] < 0.95 * width["plain"]


def test_few_rewards_are_counted_by_their_weights() -> None:
    """The effective number of rewards other than the commonest one."""
    reward = np.zeros(100)
    reward[:4] = 1.0
    assert effective_rewards(held(np.ones(100), reward)) == pytest.approx(4)
    assert effective_rewards(held(np.ones(100), 5.0 - reward)) == pytest.approx(4)
    rho = np.where(np.arange(100) == 0, 3.0, 1.0)
    assert effective_rewards(held(rho, reward)) == pytest.approx(36 / 12)
    assert effective_rewards(held(rho, 0 * reward)) == 0.0
    assert np.isnan(effective_rewards(held(rho, reward, last=np.arange(100) % 2 == 1)))
