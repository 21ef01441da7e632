"""Weights of states and priorities: expected updates by enumeration, fixed points, learners."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream

import gvf

RATIO = np.array([0.3, 0.0, 7.1, 1.9, 0.77])
UPDATES = np.array([[0.4, -1.0], [2.2, 3.0], [-0.9, 0.1], [1.3, 0.0], [0.2, 5.1]])


def enumerated(weights, p, k):
    """Mean and variance of sum_i w_i update_i over all draws of k, each with its probability."""
    p, mean, square = p / p.sum(), np.zeros(2), 0.0
    for slots in itertools.product(range(5), repeat=k):
        chance = math.prod(p[i] for i in slots)
        if chance > 0:
            update = weights(list(slots)) @ UPDATES[list(slots)]
            mean, square = mean + chance * update, square + chance * update @ update
    return mean, square - mean @ mean


# State-ratio IR.


@pytest.mark.parametrize("k", [1, 2, 3])
def test_weights_of_states_change_the_mean_update_to_the_weighted_one(k):
    correction, u = gvf.corrections.StateRatioIR(), np.array([0.5, 4.0, 0.1, 2.0, 0.0])
    inputs = np.array([RATIO, u])
    p = correction.masses(inputs)
    np.testing.assert_allclose(p, RATIO * u)
    means = correction.means(inputs)
    mean, _ = enumerated(lambda slots: correction.weights(inputs[:, slots], means), p, k)
    np.testing.assert_allclose(mean, (RATIO * u) @ UPDATES / (RATIO @ u), rtol=1e-13)


PI = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
MU = np.array([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8]])
MOVES = np.array([[[0.1, 0.9, 0.0], [0.5, 0.0, 0.5]], [[0.0, 0.3, 0.7], [1.0, 0.0, 0.0]],
                  [[0.6, 0.2, 0.2], [0.0, 0.0, 1.0]]])  # fmt: skip
LAW, REWARD, GAMMA = np.array([0.5, 0.2, 0.3]), np.array([1.0, -2.0, 0.5]), 0.9
X = np.array([[1.0, 0.0], [0.4, 1.0], [-0.3, 0.8]])


class Features:
    size = 2

    def __call__(self, states):
        return X[states]


def population(u):
    """A log with every transition as often as it is probable, in no order, with weights u."""
    chance = LAW[:, None, None] * MU[:, :, None] * MOVES
    count = np.rint(chance * 1000).astype(int)
    np.testing.assert_allclose(count, chance * 1000)
    rows = np.repeat(np.argwhere(count >= 0), count.ravel(), axis=0)
    s, a, after = rows[np.random.default_rng(0).permutation(len(rows))].T
    return gvf.Transitions(
        state=s, action=a, next_state=after, reward=REWARD[after], interest=u[s],
        terminated=np.zeros(len(s), bool),
    )  # fmt: skip


def fixed_point(law):
    """The weights of TD(0) where states come with these probabilities."""
    moves = np.einsum("sa,sat->st", PI, MOVES)
    a = X.T @ np.diag(law) @ (np.eye(3) - GAMMA * moves) @ X
    return np.linalg.solve(a, X.T @ np.diag(law) @ moves @ REWARD)


def stationary():
    moves = np.einsum("sa,sat->st", PI, MOVES)
    return np.linalg.matrix_power(moves, 2000)[0]


@pytest.mark.parametrize("u", [np.ones(3), np.array([0.2, 3.0, 1.1]), stationary() / LAW])
def test_the_fixed_point_is_that_of_td_under_the_weighted_visits(u):
    """The mean update given the window vanishes at the exact solution, and only there."""
    question = gvf.GVF(gvf.policies.Table(PI), "reward", GAMMA, interest="interest")
    learner = gvf.Learner(
        question,
        Features(),
        gvf.updates.TD(0.1),
        gvf.corrections.StateRatioIR(),
        behaviour=gvf.policies.Table(MU),
        window=1000,
        warm_up=10**6,
    )
    learner.observe(population(u))  # out of order
    p = learner.correction.masses(learner.buffer.inputs)
    columns = learner.window.columns
    exact = fixed_point(LAW * u)
    target = columns["cumulant"] + columns["continuation"] * (columns["x_next"] @ exact)
    delta = target - columns["x"] @ exact
    np.testing.assert_allclose(p / p.sum() @ (delta[:, None] * columns["x"]), 0.0, atol=1e-13)
    assert (np.abs(exact - fixed_point(LAW)).max() > 0.01) == (u != 1.0).any()


def test_the_scale_of_weights_has_no_effect_and_one_is_importance_resampling():
    log = chain_stream(CHAIN_BEHAVIOUR, 200, seed=1)

    def learned(correction, interest=None):
        question = replace(CHAIN, interest=interest)
        learner = gvf.Learner(
            question,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.3),
            correction,
            behaviour=CHAIN_BEHAVIOUR,
            seed=0,
        )
        learner.observe(log)
        return learner.weights

    np.testing.assert_array_equal(
        learned(gvf.corrections.StateRatioIR()), learned(gvf.corrections.IR())
    )
    u = np.array([0.1, 2.0, 1.0, 0.5, 3.0])
    weighted = learned(gvf.corrections.StateRatioIR(), lambda t: u[t.state])
    np.testing.assert_array_equal(
        weighted, learned(gvf.corrections.StateRatioIR(), lambda t: 4 * u[t.state])
    )
    assert not np.array_equal(weighted, learned(gvf.corrections.IR()))
    with pytest.raises(ValueError, match="interest"):
        learned(gvf.corrections.StateRatioIR(), lambda t: -u[t.state])


def test_a_diagnosis_measures_the_bias_from_the_weighted_update():
    question = gvf.GVF(gvf.policies.Table(PI), "reward", GAMMA, interest="interest")
    learner = gvf.Learner(
        question,
        Features(),
        gvf.updates.TD(0.1),
        gvf.corrections.StateRatioIR(),
        behaviour=gvf.policies.Table(MU),
    )
    learner.observe(population(np.array([0.2, 3.0, 1.1])))
    found = learner.diagnose()
    assert isinstance(found, gvf.Diagnosis)
    assert found.moments["State-ratio IR"].bias < 1e-3  # that of WIS, which falls as 1/n
    p = learner.correction.masses(learner.buffer.inputs)
    assert found.emphatic_sample_size == pytest.approx(p.sum() ** 2 / (p @ p))


# Prioritised IR.


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_given_the_window_the_mean_update_is_that_of_bc_ir(k, exponent):
    correction = gvf.corrections.PrioritisedIR(exponent, floor=0.2)
    delta, p = np.array([0.1, 5.0, -2.0, 0.0, 0.7]), np.empty(5)
    correction.refresh(delta, RATIO[None], correction.parameters, p)
    np.testing.assert_allclose(p, RATIO * (np.abs(delta) ** exponent + 0.2), rtol=1e-15)
    for masses in (p, correction.masses(RATIO)):
        means = [RATIO.mean(), masses.mean()]
        mean, _ = enumerated(
            lambda slots, m=masses, e=means: correction.weights(RATIO[slots], e, p=m[slots]),
            masses, k,
        )  # fmt: skip
        np.testing.assert_allclose(mean, RATIO @ UPDATES / 5, rtol=1e-13)


def test_the_exponent_0_is_bc_ir_to_the_last_bit():
    log = chain_stream(CHAIN_BEHAVIOUR, 200, seed=1)
    weights = []
    for correction in (gvf.corrections.BCIR(), gvf.corrections.PrioritisedIR(0.0, floor=1.0)):
        learner = gvf.Learner(
            CHAIN,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.3),
            correction,
            behaviour=CHAIN_BEHAVIOUR,
            seed=0,
        )
        learner.observe(log)
        weights.append(learner.weights)
    np.testing.assert_allclose(*weights, rtol=1e-9)


def test_no_priorities_have_less_variance_than_the_lengths_of_updates():
    """By Cauchy and Schwarz, p = rho |update| is best; a small floor comes close."""
    lengths = np.linalg.norm(UPDATES, axis=1)

    def variance(priority):
        p = RATIO * priority
        correction = gvf.corrections.PrioritisedIR()
        means = [RATIO.mean(), p.mean()]
        return enumerated(lambda slots: correction.weights(RATIO[slots], means, p=p[slots]), p, 2)[
            1
        ]

    best = variance(lengths)
    assert best < variance(lengths + 0.05) < variance(np.ones(5))
    assert variance(1.0 / lengths) > variance(np.ones(5))  # wrong priorities do harm
    rng = np.random.default_rng(0)
    assert all(variance(rng.lognormal(size=5)) >= best for _ in range(50))


def test_priorities_of_a_learner_are_those_of_its_errors(tmp_path):
    log = chain_stream(CHAIN_BEHAVIOUR, 300, seed=1)

    def make():
        return gvf.Learner(
            CHAIN,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.2),
            gvf.corrections.PrioritisedIR(0.7, 0.05, initial=2.0),
            behaviour=CHAIN_BEHAVIOUR,
            window=50,
            batch_size=8,
            seed=0,
        )

    learner, resumed = make(), make()
    learner.observe(log)
    resumed.observe(log[:140])
    resumed.save(tmp_path / "learner")
    resumed = gvf.load(tmp_path / "learner")
    assert isinstance(resumed, gvf.Learner)
    resumed.observe(log[140:])
    np.testing.assert_array_equal(learner.weights, resumed.weights)
    np.testing.assert_array_equal(learner.buffer.masses.nodes, resumed.buffer.masses.nodes)
    first = 2.0**0.7 + 0.05
    new = make()
    new.observe(log[:1])
    rho = new.buffer.ratios[0]
    (mass,) = new.buffer.masses.nodes[new.buffer.masses.nodes > 0][:1]
    delta = log.reward[0]  # all values are 0
    assert mass == pytest.approx(rho * (abs(delta) ** 0.7 + 0.05))
    assert new.correction.masses([rho])[0] == pytest.approx(rho * first)


@pytest.mark.parametrize("weight", [1e300, np.inf, np.nan])
def test_a_learner_that_diverges_reports_it_instead_of_failing(weight):
    learner = gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        gvf.updates.TD(0.1),
        gvf.corrections.PrioritisedIR(1.0),
        behaviour=CHAIN_BEHAVIOUR,
        seed=0,
    )
    log = chain_stream(CHAIN_BEHAVIOUR, 300, seed=1)
    learner.observe(log[:100])
    learner.weights[:] = [weight, -weight, 0.0, 1.0, -1.0]
    learner.observe(log[100:])
    assert learner.report().diverged == (0,)
    assert learner.updates == 300


def test_priorities_are_refused_where_draws_are_shared():
    with pytest.raises(ValueError, match="several step sizes share their draws; give one") as told:
        gvf.Learner(
            CHAIN,
            gvf.features.OneHot(5),
            gvf.updates.TD([0.1, 0.2]),
            gvf.corrections.PrioritisedIR(),
        )
    assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match=r"masses of Prioritised IR.* change as it learns"):
        gvf.diagnose(RATIO, UPDATES, corrections=[gvf.corrections.PrioritisedIR()])
    learner = gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        gvf.updates.TD(0.1),
        gvf.corrections.PrioritisedIR(),
        behaviour=CHAIN_BEHAVIOUR,
    )
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 50, seed=1))
    found = learner.diagnose()
    assert isinstance(found, gvf.Diagnosis)
    assert "IR" in found.moments
    assert not any("Prioritised" in name for name in found.moments)


@pytest.mark.parametrize(
    "parameters",
    [{"exponent": -0.1}, {"exponent": 1.1}, {"floor": 0.0}, {"initial": -1.0},
     {"floor": float("nan")}],
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(ValueError, match=rf"{next(iter(parameters))} must be"):
        gvf.corrections.PrioritisedIR(**parameters)
