"""Models of a behaviour: they find the policy that acted, up to chance of a stated level."""

import re

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from acted import logits, softly, table_log, vector_log
from own_policies import LEVEL

import gvf
from gvf.behaviour import Classifier, Counts, Logistic, Network, Normals
from gvf.behaviour.descent import minimise
from gvf.behaviour.state_basis import Basis
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


def two_normals(states):
    return np.stack([1.0 + states[:, 0], -1.5 - 0.5 * states[:, 1]], axis=1)


class TwoNormals(gvf.policies.Policy):
    """A mixture of two normal distributions whose shares depend on the state."""

    def log_probability(self, states, actions):
        share = 1 / (1 + np.exp(-0.5 * states[:, 0]))
        means = two_normals(states)
        densities = scipy.stats.norm.pdf(np.reshape(actions, (-1, 1)), means, [0.4, 0.7])
        return np.log(share * densities[:, 0] + (1 - share) * densities[:, 1])

    def sample(self, states, *, rng):
        first = rng.random(len(states)) < 1 / (1 + np.exp(-0.5 * states[:, 0]))
        noise = rng.normal(size=len(states))
        means = two_normals(states)
        return np.where(first, means[:, 0] + 0.4 * noise, means[:, 1] + 0.7 * noise)


WIDENING = gvf.policies.Gaussian(
    lambda s: 2.0 + s[:, 0] - 0.5 * s[:, 1], lambda s: np.exp(-1 + 0.3 * s[:, 1])
)
LIKELIHOODS = [
    # policy, model, the number of its free parameters
    (gvf.policies.Function(softly, 3), Logistic(1e-6, identity), 6),
    (WIDENING, Normals(1, "linear", 1e-6, identity), 6),
    (TwoNormals(), Normals(2, "constant", 1e-6, identity), 11),
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


def test_logistic_weights_minimise_the_penalised_loss() -> None:
    rng = np.random.default_rng(2)
    states = rng.normal(size=(300, 2))
    actions = gvf.policies.Function(softly, 3).sample(states, rng=rng)
    found = Logistic(5.0, identity).estimate(states, actions, 3, rng).weights  # pyright: ignore
    x = np.column_stack([np.ones(300), states])

    def loss(point):
        w = point.reshape(3, 3)
        likelihood = scipy.special.log_softmax(x @ w, axis=1)[np.arange(300), actions].sum()
        return -likelihood + 2.5 * (w[1:] ** 2).sum()

    best = scipy.optimize.minimize(loss, np.zeros(9), method="BFGS").x.reshape(3, 3)
    np.testing.assert_allclose(found[1:], best[1:], atol=2e-4)
    np.testing.assert_allclose(found[0] - found[0, 0], best[0] - best[0, 0], atol=2e-4)


def test_active_features_give_the_weights_of_the_matrix_they_stand_for() -> None:
    rng = np.random.default_rng(3)
    states = rng.integers(5, size=2000)
    actions = (rng.random(2000) < 0.1 + 0.15 * states).astype(int)
    listed = Logistic(features=gvf.features.OneHot(5)).estimate(states, actions, 2, rng)
    dense = Logistic(features=lambda s: np.eye(5)[s]).estimate(states, actions, 2, rng)
    at = np.arange(5)
    p = [policy.probabilities(at) for policy in (listed, dense)]  # pyright: ignore
    np.testing.assert_allclose(*p, atol=1e-4)


def test_descent_reaches_the_minimum_of_a_curved_valley() -> None:
    def rosenbrock(x):
        return scipy.optimize.rosen(x), scipy.optimize.rosen_der(x)

    np.testing.assert_allclose(minimise(rosenbrock, np.array([-1.2, 1.0, 0.5])), 1.0, atol=1e-5)


def test_the_default_basis_follows_a_step_and_a_product() -> None:
    def p(states):
        right = scipy.special.expit(2 * states[:, :1] * states[:, 1:] + np.sign(states[:, :1]))
        return np.concatenate([1 - right, right], axis=1)

    log = vector_log(gvf.policies.Function(p, 2), episodes=200, steps=50)
    found = gvf.estimate_behaviour(log)
    assert found.model == "logistic regression"
    away = np.abs(found.probabilities(log.transitions()) - p(log.transitions().state))
    constant = np.abs(0.5 - p(log.transitions().state))
    assert away.mean() < 0.15 * constant.mean()


def test_the_basis_leaves_out_what_never_changes() -> None:
    states = np.column_stack([np.full(50, 0.3), np.arange(50.0)])
    basis = Basis.of(states)
    assert basis.linear == 2
    assert np.isfinite(basis(np.array([[9.9, 1e9]]))).all()


def test_a_mixture_has_the_density_of_its_draws() -> None:
    log = vector_log(TwoNormals(), episodes=100, steps=20)
    batch, rng = log.transitions(), np.random.default_rng(0)
    model = Normals(2, "constant", features=identity)
    policy = model.estimate(batch.state, batch.action[:, None], None, rng)
    state = np.repeat([[0.3, -0.2]], 4000, axis=0)
    drawn = policy.sample(state, rng=rng)[:, 0]
    grid = np.linspace(-6, 6, 2001)
    density = np.exp(policy.log_probability(np.repeat(state[:1], 2001, axis=0), grid))
    cumulative = scipy.integrate.cumulative_trapezoid(density, grid, initial=0)
    assert cumulative[-1] == pytest.approx(1.0, abs=1e-3)
    found = scipy.stats.kstest(drawn, lambda x: np.interp(x, grid, cumulative))
    assert found.pvalue > LEVEL


def test_a_mixture_of_many_dimensions_draws_them_together() -> None:
    rng = np.random.default_rng(4)
    states = rng.normal(size=(4000, 1))
    side = rng.choice([-1.0, 1.0], size=(4000, 1))
    actions = side * [2.0, -3.0] + 0.3 * rng.normal(size=(4000, 2))
    policy = Normals(2).estimate(states, actions, None, rng)
    drawn = policy.sample(states, rng=rng)
    assert np.corrcoef(drawn.T)[0, 1] < -0.95


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


def test_a_function_may_fit_the_policy() -> None:
    def fit(states, actions):
        return gvf.policies.Fixed(np.bincount(actions, minlength=3) / len(actions))

    found = gvf.estimate_behaviour(table_log(ROWS, 4, episodes=20, steps=20), model=fit)
    assert found.model == "fit"
    with pytest.raises(TypeError, match=r"must return a gvf\.policies\.Policy"):
        gvf.estimate_behaviour(table_log(ROWS, 4, episodes=5, steps=9), model=lambda s, a: None)


def test_a_network_learns_the_policy() -> None:
    torch = pytest.importorskip("torch")
    log = vector_log(gvf.policies.Function(softly, 3), episodes=40, steps=50)
    batch, own = log.transitions(), torch.nn.Linear(2, 3)
    before = torch.get_rng_state(), own.weight.detach().clone()
    for model in (Network(step_size=0.01), Network(own, step_size=0.03)):
        found = gvf.estimate_behaviour(log, model=model, folds=2)
        assert np.abs(found.probabilities(batch) - softly(batch.state)).mean() < 0.06
    assert (torch.get_rng_state() == before[0]).all()
    assert (own.weight == before[1]).all()
    assert gvf.estimate_behaviour(log, model=own, folds=2, calibrate=False).model == "network"


@pytest.mark.extras
def test_trees_and_other_classifiers_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingImports]

    log = vector_log(gvf.policies.Function(softly, 3), episodes=60, steps=50)
    batch = log.transitions()
    p = [
        gvf.estimate_behaviour(log, model=model, folds=3, seed=5).probabilities(batch)
        for model in ("sklearn", "sklearn", LogisticRegression())
    ]
    np.testing.assert_array_equal(p[0], p[1])
    truth = softly(batch.state)
    assert np.abs(p[0] - truth).mean() < 0.08
    assert np.abs(p[2] - truth).mean() < 0.03


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError, match=re.escape(how_to_install("gvf[sklearn]"))):
        gvf.estimate_behaviour(table_log(ROWS, 4, episodes=5, steps=9), model="sklearn")


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
