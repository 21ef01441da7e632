"""LSTD against exact fixed points, on enumerated streams and on long ones."""

from typing import Any

import numpy as np
import pytest
from charts_reference import Floats
from collision_road import BEHAVIOUR, FEATURES, QUESTION, Road, X, enumerated, fixed

import gvf
from gvf import online


@pytest.mark.parametrize("emphatic", [False, True])
def test_an_enumerated_stream_gives_the_exact_fixed_points(emphatic: bool) -> None:
    decays = (0.0, 0.5, 0.9, 1.0)
    learner = gvf.OnlineLearner(
        QUESTION, FEATURES, online.LSTD(decays, emphatic), behaviour=BEHAVIOUR
    )
    learner.observe(enumerated())
    want = np.stack([fixed(decay, emphatic) for decay in decays], axis=1)
    np.testing.assert_allclose(learner.predict(np.arange(8)), want, atol=1e-10)


@pytest.mark.parametrize(
    "correction",
    [
        gvf.corrections.IS(),
        gvf.corrections.IR(),
        gvf.corrections.BCIR(),
        gvf.corrections.WISMinibatch(),
        gvf.corrections.WISBuffer(),
        gvf.corrections.NormIS(2.0),
    ],
    ids=lambda c: c.name,
)
def test_a_window_gives_the_fixed_point_of_td_with_any_unbiased_correction(
    correction: gvf.corrections.Correction,
) -> None:
    weights = online.window_lstd(QUESTION, FEATURES, enumerated(), correction, behaviour=BEHAVIOUR)
    np.testing.assert_allclose((X @ weights)[:8], fixed(0.0, False), atol=1e-10)


def test_a_window_gives_the_emphatic_fixed_point() -> None:
    weights = online.window_lstd(
        QUESTION,
        FEATURES,
        enumerated(),
        gvf.corrections.EmphaticIR(),
        behaviour=BEHAVIOUR,
    )
    np.testing.assert_allclose((X @ weights)[:8], fixed(0.0, True), atol=1e-10)


def test_a_window_with_clipped_ratios_solves_the_clipped_equations() -> None:
    data = enumerated()
    weights = online.window_lstd(
        QUESTION, FEATURES, data, gvf.corrections.VTrace(1.0), behaviour=BEHAVIOUR
    )
    rho, c, gamma, _ = QUESTION.evaluate(data, behaviour=BEHAVIOUR)
    clipped, x = np.minimum(rho, 1.0)[:, None], X[data.state]
    a = (clipped * x).T @ (x - gamma[:, None] * X[data.next_state])
    want = np.linalg.lstsq(a, (clipped * x).T @ c, rcond=1e-10)[0]
    np.testing.assert_allclose(weights, want, atol=1e-10)
    assert np.abs((X @ weights)[:8] - fixed(0.0, False)).max() > 0.1


@pytest.mark.parametrize("emphatic", [False, True])
def test_long_streams_lead_to_the_fixed_points(emphatic: bool) -> None:
    """The mean of 30 runs of 4000 steps is within 4 standard errors in every state."""
    found = []
    for seed in range(30):
        learner = gvf.OnlineLearner(
            QUESTION, FEATURES, online.LSTD(0.5, emphatic), behaviour=BEHAVIOUR
        )
        learner.learn(Road(), 4000, seed=seed)
        found.append(learner.predict(np.arange(8)))
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(mean - fixed(0.5, emphatic)) < 4 * spread).all()
    assert (spread < 0.02).all()


BASIS = np.random.default_rng(0).normal(size=(9, 2))
MIXED = np.array([[1.0, 0.0, 1.0, 0.5], [0.0, 1.0, 1.0, -2.0]])
SINGULAR = gvf.features.Dense(4, lambda s: (BASIS @ MIXED)[s])
"""Four features of rank 2 for the states of Collision."""


def least(trace_decay: float, emphatic: bool) -> Floats:
    """Return the weights of least norm at the fixed point, from regular equations of size 2."""
    visits = np.bincount(enumerated().state, minlength=8).astype(float)
    onwards, reward = np.diag(np.full(7, 0.9), k=1), np.eye(8)[7]
    weighting = visits
    if emphatic:
        follow_on = np.linalg.solve(np.eye(8) - onwards.T, visits)
        weighting = trace_decay * visits + (1 - trace_decay) * follow_on
    traced = np.diag(weighting) @ np.linalg.inv(np.eye(8) - trace_decay * onwards)
    u = BASIS[:8]
    a, b = u.T @ traced @ (np.eye(8) - onwards) @ u, u.T @ traced @ reward
    return MIXED.T @ np.linalg.solve(MIXED @ MIXED.T, np.linalg.solve(a, b))


@pytest.mark.parametrize("emphatic", [False, True])
def test_features_that_depend_on_each_other_get_the_weights_of_least_norm(emphatic: bool) -> None:
    decays = (0.0, 0.5, 1.0)
    learner = gvf.OnlineLearner(
        QUESTION, SINGULAR, online.LSTD(decays, emphatic), behaviour=BEHAVIOUR
    )
    learner.observe(enumerated())
    want = np.stack([least(decay, emphatic) for decay in decays], axis=1)
    np.testing.assert_allclose(learner.weights, want, atol=1e-10)


PLAIN = (
    gvf.corrections.IS(),
    gvf.corrections.NormIS(2.0),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.WISBuffer(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.IR(),
    gvf.corrections.BCIR(),
    gvf.corrections.Interpolated(0.3),
    gvf.corrections.BCInterpolated(0.3),
    gvf.corrections.PrioritisedIR(),
    gvf.corrections.StateRatioIR(),
)
EMPHATIC = (
    gvf.corrections.EmphaticIS(),
    gvf.corrections.EmphaticWISMinibatch(),
    gvf.corrections.EmphaticIR(),
    gvf.corrections.EmphaticBCIR(),
)


@pytest.mark.parametrize("correction", [*PLAIN, *EMPHATIC], ids=lambda c: c.name)
def test_a_window_gives_the_weights_of_least_norm(correction: gvf.corrections.Correction) -> None:
    weights = online.window_lstd(QUESTION, SINGULAR, enumerated(), correction, behaviour=BEHAVIOUR)
    np.testing.assert_allclose(weights, least(0.0, correction in EMPHATIC), atol=1e-10)


@pytest.mark.parametrize(
    ("rows", "correction", "message"),
    [
        (5, online.TDLambda(0.1), "must be a gvf.corrections.Correction"),
        (0, gvf.corrections.IR(), "has no transitions"),
    ],
)
def test_a_window_without_rows_or_a_correction_is_refused_in_one_line(
    rows: int, correction: Any, message: str
) -> None:
    window = enumerated()[:rows]
    with pytest.raises((TypeError, ValueError), match=message):
        online.window_lstd(QUESTION, SINGULAR, window, correction, behaviour=BEHAVIOUR)


def test_singular_equations_have_the_solution_of_least_norm() -> None:
    twice = gvf.features.Dense(2, lambda s: np.ones((len(s), 2)))
    learner = gvf.OnlineLearner(
        gvf.GVF(gvf.policies.Uniform(2), "reward", 0.5),
        twice,
        online.LSTD(),
        behaviour=gvf.policies.Uniform(2),
    )
    assert not learner.weights.any()
    learner.observe(0, 0, 1.0, 0, False)
    np.testing.assert_allclose(learner.weights, [1.0, 1.0])


def test_the_regulariser_shrinks() -> None:
    learner = gvf.OnlineLearner(
        gvf.GVF(gvf.policies.Uniform(2), "reward", 0.0),
        gvf.features.OneHot(1),
        online.LSTD(regulariser=3.0),
        behaviour=gvf.policies.Uniform(2),
    )
    learner.observe(0, 0, 1.0, 0, False)
    np.testing.assert_allclose(learner.weights, [0.25])
