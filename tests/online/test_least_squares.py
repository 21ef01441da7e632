"""LSTD against exact fixed points, on enumerated streams and on long ones."""

from typing import Any

import numpy as np
import pytest
from charts_reference import Floats
from collision_road import BEHAVIOUR, FEATURES, QUESTION, Road, X, enumerated, fixed

import gvf
from gvf import online
from gvf.online.least_squares import Equations
from gvf.updates.linear_kernels import Experience


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
def test_the_learner_has_the_fixed_point_of_td_with_any_unbiased_correction(
    correction: gvf.corrections.Correction,
) -> None:
    learner = gvf.LSTDLearner(QUESTION, FEATURES, correction, behaviour=BEHAVIOUR)
    learner.observe(enumerated())
    weights = learner.weights
    np.testing.assert_allclose((X @ weights)[:8], fixed(0.0, False), atol=1e-10)


def test_the_learner_has_the_emphatic_fixed_point() -> None:
    correction = gvf.corrections.EmphaticIR()
    learner = gvf.LSTDLearner(QUESTION, FEATURES, correction, behaviour=BEHAVIOUR)
    learner.observe(enumerated())
    np.testing.assert_allclose((X @ learner.weights)[:8], fixed(0.0, True), atol=1e-10)


def test_clipped_ratios_have_the_clipped_equations() -> None:
    data, correction = enumerated(), gvf.corrections.VTrace(1.0)
    learner = gvf.LSTDLearner(QUESTION, FEATURES, correction, behaviour=BEHAVIOUR)
    learner.observe(data)
    rho, gamma = QUESTION.ratios(data, behaviour=BEHAVIOUR), QUESTION.continuations(data)
    clipped, x = np.minimum(rho, 1.0)[:, None], X[data.state]
    a = (clipped * x).T @ (x - gamma[:, None] * X[data.next_state])
    want = np.linalg.lstsq(a, (clipped * x).T @ QUESTION.cumulants(data), rcond=1e-10)[0]
    np.testing.assert_allclose(learner.weights, want, atol=1e-10)
    assert np.abs((X @ learner.weights)[:8] - fixed(0.0, False)).max() > 0.1


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
def test_predictions_are_determined_where_weights_are_not(
    correction: gvf.corrections.Correction,
) -> None:
    learner = gvf.LSTDLearner(QUESTION, SINGULAR, correction, behaviour=BEHAVIOUR)
    learner.observe(enumerated())
    assert learner.solution.is_singular
    want = BASIS[:8] @ MIXED @ least(0.0, correction in EMPHATIC)
    np.testing.assert_allclose(learner.predict(np.arange(8)), want, atol=1e-6)


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


ROWS = 203


def some_rows(kind: str, blocks: int, size: int = 37) -> Experience:
    """Return random rows; a third of them have a continuation of 0, and some a share of 0."""
    rng = np.random.default_rng(blocks)
    if kind == "dense":
        x, x_next = np.round(rng.normal(size=(2, ROWS, size)), 1)
    else:
        width = 3 if kind == "several" else 1
        x, x_next = rng.integers(size, size=(2, ROWS, width), dtype=np.int32)
    share, share_next = np.ones((2, ROWS, 1)) if blocks == 1 else rng.random((2, ROWS, blocks))
    if blocks > 1:
        share = np.eye(blocks)[rng.integers(blocks, size=ROWS)]
        share_next[::5, 0] = 0.0
    gamma = np.where(np.arange(ROWS) % 3, 0.9, 0.0)
    return Experience(x, share, x_next, share_next, rng.normal(size=ROWS), gamma)


def dumb_sums(rows: Experience, weights: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """Return A, b and the masses of rows, in plain NumPy."""
    a, b, mass = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    features = size // rows.share.shape[1]
    for i, s in enumerate(weights):
        near, far = (
            np.concatenate([part * dense(x[i], features) for part in share[i]])
            for x, share in ((rows.x, rows.share), (rows.x_next, rows.share_next))
        )
        a += s * np.outer(near, near - rows.continuation[i] * far)
        b += s * rows.cumulant[i] * near
        # A feature that is listed twice has the mass of both, 1 + 1 and not (1 + 1)^2.
        mass += abs(s) * (near if rows.x.dtype.kind == "i" else near**2)
    return a, b, mass


def dense(x: Any, size: int) -> Floats:
    if x.dtype.kind == "f":
        return x
    return np.bincount(x, minlength=size).astype(float)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("kind", ["one", "several", "dense"])
def test_equations_are_the_sums_of_their_rows(kind: str, blocks: int) -> None:
    size, rng = 37 * blocks, np.random.default_rng(9)
    rows, weights = some_rows(kind, blocks), rng.poisson(1, ROWS) * rng.random(ROWS)
    weights[5] = -0.3
    together, apart = Equations(size, size), Equations(size, size)
    together.add(rows, weights)
    for i in range(ROWS):
        apart.add(Experience(*(c[i : i + 1] for c in rows)), weights[i : i + 1])
    a, b, mass = dumb_sums(rows, weights, size)
    arrays = together.checkpoint()
    order = np.ix_(together.features, together.features)
    np.testing.assert_allclose(arrays["a"], a[order], atol=1e-12)
    np.testing.assert_allclose(arrays["b"], b[together.features], atol=1e-12)
    np.testing.assert_allclose(arrays["mass"], mass[together.features], atol=1e-12)
    np.testing.assert_array_equal(np.sort(together.features), np.unique(together.features))
    assert set(np.flatnonzero(mass)) <= set(together.features)
    for name, sums in apart.checkpoint().items():  # batches change no bit
        np.testing.assert_array_equal(sums, arrays[name])
    again = together.emptied()
    again.add(rows, weights)
    for name, sums in again.checkpoint().items():
        np.testing.assert_array_equal(sums, arrays[name])
    np.testing.assert_array_equal(together.checkpoint()["a"], arrays["a"])


def test_room_for_features_grows() -> None:
    rng = np.random.default_rng(0)
    equations, m = Equations(5000, 2000), 900
    x, x_next = rng.integers(5000, size=(2, m, 1), dtype=np.int32)
    share, gamma = np.ones((m, 1)), np.full(m, 0.9)
    gamma[::3] = 0.0
    rows, weights = Experience(x, share, x_next, share, rng.random(m), gamma), rng.random(m)
    for part in np.array_split(np.arange(m), 7):
        equations.add(Experience(*(column[part] for column in rows)), weights[part])
    a, b, _ = dumb_sums(rows, weights, 5000)
    known = np.unique(x)
    wanted = np.zeros(5000)
    wanted[known] = np.linalg.solve(a[np.ix_(known, known)], b[known])
    np.testing.assert_allclose(equations.solve(0.0).weights, wanted, atol=1e-9)
    np.testing.assert_array_equal(equations.checkpoint()["a"], a[np.ix_(*[equations.features] * 2)])


def test_equations_with_several_solutions_have_a_ridge_or_the_least_norm() -> None:
    rows = some_rows("dense", 1, size=6)
    mixed = [np.ascontiguousarray(x[:, [0, 1, 2, 3, 4, 4]]) for x in (rows.x, rows.x_next)]
    rows = rows._replace(x=mixed[0], x_next=mixed[1])
    equations, weights = Equations(6, 6), np.ones(ROWS)
    equations.add(rows, weights)
    a, b, _ = dumb_sums(rows, weights, 6)
    least = equations.solve(singular="least norm")
    np.testing.assert_allclose(least.weights, np.linalg.pinv(a, rcond=1e-10) @ b, rtol=1e-9)
    ridge = equations.solve()
    np.testing.assert_allclose(rows.x @ ridge.weights, rows.x @ least.weights, atol=1e-6)
    assert np.abs(ridge.weights - least.weights).max() > 1e-12
    assert least.is_singular
    assert ridge.is_singular
    for solution in (least, ridge):
        assert solution.residual < 1e-6
    regular = Equations(6, 6)
    regular.add(some_rows("dense", 1, size=6), weights)
    expected = regular.solve().weights
    np.testing.assert_array_equal(regular.solve(singular="least norm").weights, expected)
