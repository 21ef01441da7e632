"""Models of a behaviour: they find the policy that acted, up to chance of a stated level."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from acted import logits, needs_scikit_learn, softly, table_log, vector_log
from own_policies import LEVEL

import gvf
from gvf.behaviour import Classifier, Counts, Logistic, Normals
from gvf.behaviour.behaviour_models import _fit_spread
from gvf.behaviour.state_features import BentFeatures
from gvf.common.distribution import how_to_install

ROWS = gvf.policies.Table(
    [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.05, 0.9, 0.05]]
)


def test_counts_are_the_frequencies_of_each_state() -> None:
    log = table_log(ROWS, 4, episodes=300, steps=100)
    found = gvf.estimate_behaviour(log, calibrate=False)
    assert found.model == "counts"
    batch, p = log.transitions(), ROWS.probabilities(np.arange(4))
    visits = np.bincount(batch.state, minlength=4)[:, None]
    z = (found.policy.probabilities(np.arange(4)) - p) / np.sqrt(p * (1 - p) / visits)  # pyright: ignore
    # A union bound over the cells; smoothing moves an estimate by less than 3 / visits.
    assert np.abs(z).max() < scipy.stats.norm.isf(LEVEL / 2 / z.size) + 0.05


def identity(states):
    return states


WIDENING = gvf.policies.Gaussian(
    lambda s: 2.0 + s[:, 0] - 0.5 * s[:, 1], lambda s: np.exp(-1 + 0.3 * s[:, 1])
)
LIKELIHOODS = [
    # policy, model, the number of its free parameters
    pytest.param(
        *(gvf.policies.Function(softly, 3), Logistic(1e-6, identity), 6), marks=needs_scikit_learn
    ),
    (WIDENING, Normals("linear", 1e-6, identity), 6),
]


@pytest.mark.parametrize(("mu", "model", "free"), LIKELIHOODS, ids=lambda x: getattr(x, "name", ""))
def test_the_likelihood_ratio_to_the_policy_that_acted_is_chi_square(mu, model, free) -> None:
    log = vector_log(mu, episodes=200, steps=20, seed=1)
    batch, rng = log.transitions(), np.random.default_rng(0)
    discrete = isinstance(mu, gvf.policies.DiscretePolicy)
    actions = batch.action if discrete else batch.action[:, None]
    found = model.estimate(batch.state, actions, 3 if discrete else None, rng)
    gain = found.log_probability(batch.state, actions) - mu.log_probability(
        batch.state, batch.action
    )
    # Wilks: twice the gain in log likelihood of the best fit over the truth.
    statistic = 2 * gain.sum()
    low, high = scipy.stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], free)
    assert low < statistic < high


@needs_scikit_learn
@pytest.mark.parametrize("actions", [2, 3])
def test_logistic_weights_minimise_the_penalised_loss(actions: int) -> None:
    rng = np.random.default_rng(2)
    states = rng.normal(size=(300, 2))
    taken = np.minimum(gvf.policies.Function(softly, 3).sample(states, rng=rng), actions - 1)
    weights = Logistic(5.0, identity).estimate(states, taken, actions, rng).weights  # pyright: ignore
    x = np.column_stack([np.ones(300), states])

    def loss(point):
        # Of two actions the second alone has weights.
        w = point.reshape(3, -1) if actions == 3 else np.outer(point, [0.0, 1.0])
        likelihood = scipy.special.log_softmax(x @ w, axis=1)[np.arange(300), taken].sum()
        return -likelihood + 2.5 * (w[1:] ** 2).sum()

    best = scipy.optimize.minimize(loss, np.zeros(9 if actions == 3 else 3), method="BFGS").x
    best = best.reshape(3, 3) if actions == 3 else np.outer(best, [0.0, 1.0])
    np.testing.assert_allclose(weights[1:], best[1:], atol=1e-3)
    np.testing.assert_allclose(weights[0] - weights[0, 0], best[0] - best[0, 0], atol=1e-3)


@needs_scikit_learn
@pytest.mark.parametrize("weights", ["few", "many"])
def test_active_features_give_the_policy_of_the_matrix_they_stand_for(weights: str) -> None:
    size = {"few": 5, "many": 700}[weights]
    rng = np.random.default_rng(3)
    states = rng.integers(5, size=2000)
    actions = (rng.random(2000) < 0.1 + 0.15 * states).astype(int)
    listed = Logistic(features=gvf.features.OneHot(size)).estimate(states, actions, 2, rng)
    dense = Logistic(features=lambda s: np.eye(size)[s]).estimate(states, actions, 2, rng)
    at = np.arange(5)
    p = [policy.probabilities(at) for policy in (listed, dense)]  # pyright: ignore
    np.testing.assert_allclose(*p, atol=1e-4)


@pytest.mark.parametrize("spread", ["linear", "constant"])
def test_active_features_give_the_gaussian_of_their_matrix(spread: Any) -> None:
    rng = np.random.default_rng(3)
    states = rng.random((500, 2))
    actions = states[:, :1] ** 2 + 0.1 * (1 + states[:, 1:]) * rng.normal(size=(500, 1))
    tiles = gvf.features.TileCoder(low=[0, 0], high=[1, 1], tiles=[2, 3], tilings=3)

    def matrix(states):
        return np.eye(tiles.size)[tiles(states)].sum(axis=1)

    logs = [
        Normals(spread, features=features)
        .estimate(states, actions, None, rng)
        .log_probability(states, actions)
        for features in (tiles, matrix)
    ]
    np.testing.assert_allclose(logs[0], logs[1], atol=1e-6)


def test_the_spread_is_that_of_errors_with_each_row_left_out() -> None:
    rng = np.random.default_rng(4)
    states = rng.normal(size=(60, 8))
    actions = states[:, :1] + 0.5 * rng.normal(size=(60, 1))
    policy: Any = Normals("constant", 2.0, identity).estimate(states, actions, None, rng)
    sd = np.exp(policy.log_sd[0, 0])
    x = np.column_stack([np.ones(60), states])
    z = ((actions - policy.centre) / policy.unit)[:, 0]
    ridge = np.diag([0.0, *[2.0] * 8])

    def fitted(rows):
        return np.linalg.solve(x[rows].T @ x[rows] / sd**2 + ridge, x[rows].T @ z[rows] / sd**2)

    np.testing.assert_allclose(policy.mean[:, 0], fitted(np.arange(60)), atol=1e-4)
    errors = [z[i] - x[i] @ fitted(np.arange(60) != i) for i in range(60)]
    assert sd == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-4)
    assert sd > 1.1 * np.std(z - x @ policy.mean[:, 0])


def test_the_spread_maximises_the_penalised_likelihood_of_errors() -> None:
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    squares, ridge = rng.standard_t(2, size=200) ** 2, np.array([0.0, 3.0, 3.0])

    def loss(v):
        logs = x @ v
        return (0.5 * squares * np.exp(-2 * logs) + logs).sum() + 0.5 * (ridge * v * v).sum()

    best = scipy.optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-4}).x
    np.testing.assert_allclose(_fit_spread(x, squares, np.zeros(3), 3.0), best, atol=1e-4)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_a_gaussian_has_the_density_of_its_draws(dimensions: int) -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(2000, 2))
    noise = np.exp(0.3 * states[:, 1:]) * rng.normal(size=(2000, dimensions))
    policy = Normals().estimate(states, 5 + states[:, :1] + noise, None, rng)
    state = np.repeat([[0.3, -0.2]], 4000, axis=0)
    drawn = policy.sample(state, rng=rng)
    assert drawn.shape == (4000, dimensions)
    grid = np.linspace(0, 11, 2001)
    law: Any = policy
    for j in range(dimensions):
        # Along one dimension, the others at the mean, whose density is that of a normal's middle.
        middle = law.log_probability(state[:1], drawn.mean(axis=0, keepdims=True))
        points = np.repeat(drawn.mean(axis=0, keepdims=True), 2001, axis=0)
        points[:, j] = grid
        density = np.exp(law.log_probability(np.repeat(state[:1], 2001, axis=0), points) - middle)
        cumulative = scipy.integrate.cumulative_trapezoid(density, grid, initial=0)
        cumulative /= cumulative[-1]
        ks = scipy.stats.kstest(drawn[:, j], lambda x, c=cumulative: np.interp(x, grid, c))
        assert ks.pvalue > LEVEL


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("features", [None, gvf.features.OneHot(3), lambda s: np.ones((len(s), 2))])
def test_copies_of_features_and_actions_without_noise_have_a_density(features: Any, penalty: float):
    states = np.arange(30) % 3
    actions = 1.0 * (states[:, None] == [0, 2])
    policy = Normals(penalty=penalty, features=features).estimate(states, actions, None, None)  # pyright: ignore
    assert np.isfinite(policy.log_probability(states, actions)).all()
    if features is not None and hasattr(features, "size"):
        # The least standard deviation is a thousandth of that of all actions.
        peak = -2 * np.log(1e-3) - np.log(actions.std(axis=0)).sum() - np.log(2 * np.pi)
        density = policy.log_probability(states, actions)
        np.testing.assert_allclose(density, peak, atol=0.5 if penalty else 0.05)


def test_a_gaussian_of_more_features_than_rows_stays_sensible() -> None:
    rng = np.random.default_rng(6)
    states, new = rng.normal(size=(2, 150, 8))
    truth = gvf.policies.Gaussian(lambda s: s[:, :1], 0.3)
    policy = Normals().estimate(states, truth.sample(states, rng=rng), None, rng)
    actions = truth.sample(new, rng=rng)
    lost = truth.log_probability(new, actions) - policy.log_probability(new, actions)
    assert len(BentFeatures.of(states)(states).T) == 101
    assert lost.mean() < 1.5


@needs_scikit_learn
def test_the_default_features_follow_a_step_and_a_product() -> None:
    def p(states):
        right = scipy.special.expit(2 * states[:, :1] * states[:, 1:] + np.sign(states[:, :1]))
        return np.concatenate([1 - right, right], axis=1)

    log = vector_log(gvf.policies.Function(p, 2), episodes=200, steps=50)
    found = gvf.estimate_behaviour(log)
    assert found.model == "logistic regression"
    away = np.abs(found.probabilities(log.transitions()) - p(log.transitions().state))
    constant = np.abs(0.5 - p(log.transitions().state))
    assert away.mean() < 0.15 * constant.mean()


def test_the_features_leave_out_what_never_changes() -> None:
    states = np.column_stack([np.full(50, 0.3), np.arange(50.0)])
    features = BentFeatures.of(states)
    assert features.linear == 2
    assert np.isfinite(features(np.array([[9.9, 1e9]]))).all()


class Remembers:
    """A classifier that any library might have, without get_params."""

    def fit(self, x, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares = counts / len(y)
        return self

    def predict_proba(self, x):
        return np.tile(self.shares, (len(x), 1))


def test_a_classifier_may_miss_actions_that_its_fold_has_not_seen() -> None:
    policy = Classifier(Remembers()).estimate(
        np.zeros((3, 1)), np.array([2, 2, 0]), 4, np.random.default_rng(0)
    )
    np.testing.assert_allclose(policy.probability(np.zeros((2, 1)), [2, 1]), [2 / 3, 0])
    log = table_log(ROWS, 4, episodes=20, steps=20)
    found = gvf.estimate_behaviour(log, model=Remembers())
    assert found.model == "Remembers"
    assert found.scores.log_loss.value == pytest.approx(found.scores.constant, abs=0.02)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (None, [[0.2, 0.7], [0.9, 0.1]]),
        (lambda s: 2 * s[:, 0], [[0.4], [1.8]]),
        pytest.param(
            gvf.features.TileCoder(low=[0, 0], high=[1, 1], tiles=[1, 1], tilings=1),
            [[1, 0, 0, 0], [1, 0, 0, 0]],
            marks=needs_scikit_learn,
        ),
    ],
    ids=["states", "numbers", "active"],
)
def test_a_classifier_gets_the_features_alone(features: Any, expected: Any) -> None:
    seen: list[Any] = []

    class Sees(Remembers):
        def fit(self, x, y):
            seen.append(x)
            return super().fit(x, y)

    states = np.array([[0.2, 0.7], [0.9, 0.1]])
    Classifier(Sees(), features).estimate(states, np.array([0, 1]), 2, np.random.default_rng(0))
    np.testing.assert_allclose(seen[0], expected)


def test_a_function_may_fit_the_policy() -> None:
    def fit(states, actions):
        return gvf.policies.Fixed(np.bincount(actions, minlength=3) / len(actions))

    found = gvf.estimate_behaviour(table_log(ROWS, 4, episodes=20, steps=20), model=fit)
    assert found.model == "fit"
    with pytest.raises(TypeError, match=r"must return a gvf\.policies\.Policy"):
        gvf.estimate_behaviour(table_log(ROWS, 4, episodes=5, steps=9), model=lambda s, a: None)


@needs_scikit_learn
def test_trees_and_other_classifiers_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    log = vector_log(gvf.policies.Function(softly, 3), episodes=60, steps=50)
    batch = log.transitions()
    splines = make_pipeline(SplineTransformer(), StandardScaler(), LogisticRegression())
    p = [
        gvf.estimate_behaviour(log, model=model, folds=3, seed=5).probabilities(batch)
        for model in ("sklearn", "sklearn", LogisticRegression(), splines)
    ]
    np.testing.assert_array_equal(p[0], p[1])
    truth = softly(batch.state)
    for probabilities, most in zip(p[1:], (0.08, 0.03, 0.05), strict=True):
        assert np.abs(probabilities - truth).mean() < most


def test_what_needs_scikit_learn_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    log = vector_log(gvf.policies.Function(softly, 3), episodes=6, steps=9)
    for model, needed in ((None, "logistic"), ("logistic", "logistic"), ("sklearn", "sklearn")):
        with pytest.raises(ImportError, match=re.escape(how_to_install("gvf[sklearn]"))) as error:
            gvf.estimate_behaviour(log, model=model)
        assert str(error.value).startswith(f"model='{needed}' needs scikit-learn, which is not")
        assert "\n" not in str(error.value)


def test_counts_and_gaussians_need_neither_scikit_learn_nor_scipy(monkeypatch) -> None:
    for name in [*sys.modules, "scipy", "sklearn"]:
        if name.partition(".")[0] in ("scipy", "sklearn"):
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError):
        __import__("scipy")
    steps = {"episodes": 20, "steps": 10}
    for log, model in (
        (table_log(ROWS, 4, **steps), "counts"),
        (vector_log(WIDENING, **steps), "Gaussian"),
    ):
        estimate = gvf.estimate_behaviour(log)
        assert estimate.model == model
        assert len(set(estimate.temperatures)) == 5  # calibrated
        assert estimate.reliability().error.value < 1
        target = estimate.policy if model == "Gaussian" else gvf.policies.Uniform(3)
        assert estimate.support(target).effective_sample_size > 0


@pytest.mark.parametrize(
    ("mu", "model"),
    [
        (ROWS, "counts"),
        (WIDENING, "gaussian"),
        pytest.param(gvf.policies.Function(softly, 3), "logistic", marks=needs_scikit_learn),
        pytest.param(gvf.policies.Function(softly, 3), "tiles", marks=needs_scikit_learn),
    ],
)
def test_an_estimated_policy_comes_back_from_a_file_without_trust_or_scikit_learn(
    mu: Any, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"episodes": 20, "steps": 10}
    log = table_log(mu, 4, **steps) if model == "counts" else vector_log(mu, **steps)
    options: dict[str, Any] = {"model": model}
    if model == "tiles":
        tiles = gvf.features.TileCoder(low=[-3, -3], high=[3, 3], tiles=[4, 4])
        options = {"model": "logistic", "features": tiles}
    policy = gvf.estimate_behaviour(log, **options).policy
    target = policy if model == "gaussian" else gvf.policies.Uniform(3)
    learner = gvf.Learner(
        gvf.GVF(target, "reward", 0.5), gvf.features.OneHot(1), gvf.updates.TD(0.1),
        behaviour=policy, seed=0,
    )  # fmt: skip
    learner.save(tmp_path / "learner")
    for name in ("sklearn", "sklearn.linear_model", "scipy", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    again = gvf.load(tmp_path / "learner").behaviour
    batch = log.transitions()
    assert again.is_estimated
    np.testing.assert_array_equal(
        again.log_probability(batch.state, batch.action),
        policy.log_probability(batch.state, batch.action),
    )


@needs_scikit_learn
def test_a_policy_of_trees_is_not_read_from_a_file_but_its_learner_is(tmp_path: Path) -> None:
    log = vector_log(gvf.policies.Function(softly, 3), episodes=20, steps=10)
    policy = gvf.estimate_behaviour(log, model="sklearn", folds=2).policy

    def learner() -> gvf.Learner:
        question = gvf.GVF(gvf.policies.Uniform(3), "reward", 0.5)
        features, update = gvf.features.Dense(2), gvf.updates.TD(0.1)
        return gvf.Learner(question, features, update, behaviour=policy, seed=0)

    first = learner()
    first.fit(log)
    first.save(tmp_path / "learner")
    with pytest.raises(ValueError, match=r"HistGradientBoostingClassifier, which cannot be found"):
        gvf.load(tmp_path / "learner", trust=["sklearn"])
    second = learner()
    second.load(tmp_path / "learner", same_functions=True)
    np.testing.assert_array_equal(first.predict(np.eye(2)), second.predict(np.eye(2)))


def test_counts_tell_states_apart_as_asked() -> None:
    states = np.array([[0, 1], [0, 1], [1, 0]])
    rng = np.random.default_rng(0)
    policy = Counts(smoothing=0.0).estimate(states, np.array([0, 1, 1]), 2, rng)
    p = policy.probability(np.array([[1, 0], [0, 1], [5, 5]]), [1, 1, 1])
    np.testing.assert_allclose(p, [1.0, 0.5, 2 / 3])
    coarse = Counts(0.0, lambda s: (s[:, 0] > 0).astype(int))
    p = coarse.estimate(np.array([[-1.0], [2.0]]), np.array([0, 1]), 2, rng).probability(
        np.array([[-3.0], [0.5]]), [0, 0]
    )
    np.testing.assert_allclose(p, [1.0, 0.0])


def test_logits_of_the_test_are_those_of_its_policy() -> None:
    states = np.random.default_rng(0).normal(size=(4, 2))
    np.testing.assert_allclose(scipy.special.softmax(logits(states), axis=1), softly(states))
