"""Parameters of online algorithms: lanes, and values that are refused in one line."""

from typing import Any

import numpy as np
import pytest
from charts_reference import Floats

import gvf
from gvf import online


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: online.TDLambda(0.1, 1.5), "trace_decay must be in [0, 1], got 1.5"),
        (lambda: online.TDLambda(0.1, -0.1), "trace_decay must be in [0, 1], got -0.1"),
        (lambda: online.TDLambda(0.1, float("nan")), "trace_decay must be in [0, 1], got nan"),
        (lambda: online.TDLambda(-0.1), "step_size must be finite and not negative, got -0.1"),
        (lambda: online.TDLambda(None), "step_size must be finite and not negative, got None"),  # pyright: ignore[reportArgumentType]
        (lambda: online.TDLambda("0.1"), "step_size must be a number or a sequence of them"),  # pyright: ignore[reportArgumentType]
        (lambda: online.TDLambda(0.1, 0.5j), "trace_decay must be a number or a sequence"),  # pyright: ignore[reportArgumentType]
        (lambda: online.TDLambda(0.1, [[0.5]]), "trace_decay must be a number or a sequence"),  # pyright: ignore[reportArgumentType]
        (lambda: online.TDLambda([]), "step_size must be a number or a sequence of them"),
        (lambda: online.GTD(0.1, [0.5, 1.1]), "trace_decay must be in [0, 1], got [0.5, 1.1]"),
        (lambda: online.GTD(0.1, eta=-1), "eta must be finite and not negative, got -1"),
        (lambda: online.EmphaticTD(0.1, beta=2), "beta must be in [0, 1], got 2"),
        (lambda: online.EmphaticTD(0.1, beta=-1.0), "beta must be in [0, 1], got -1.0"),
        (lambda: online.ABTD(0.1, zeta=1.01), "zeta must be in [0, 1], got 1.01"),
        (lambda: online.ABTD(0.1, xi_0=3.0), "xi_0 and xi_max must be above 0 and in order"),
        (lambda: online.ABTD(0.1, xi_max="2"), "xi_0 and xi_max must be above 0 and in order"),  # pyright: ignore[reportArgumentType]
        (lambda: online.LSTD(trace_decay=7), "trace_decay must be in [0, 1], got 7"),
        (lambda: online.LSTD(regulariser=-1.0), "regulariser must be finite and not negative"),
        (lambda: online.LSTD(regulariser="0"), "regulariser must be finite and not negative"),  # pyright: ignore[reportArgumentType]
        (
            lambda: online.GTD([0.1, 0.2], [0.0, 0.5, 1.0]),
            "step_size and trace_decay and eta must have as many lanes each",
        ),
    ],
)
def test_bad_parameters_are_refused_in_one_line(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        make()
    assert message in str(refused.value)


def test_lanes_broadcast_and_fill_whole_vectors() -> None:
    algorithm = online.GTD([0.1, 0.2, 0.3], trace_decay=0.5, eta=(1.0, 2.0, 4.0))
    assert algorithm.lanes == 3
    state = algorithm.start(5)
    assert state.weights.shape[1] % 8 == 0
    np.testing.assert_array_equal(
        state.lanes[:, :3], [[0.1, 0.2, 0.3], [0.5, 0.5, 0.5], [1.0, 2.0, 4.0]]
    )
    assert not state.lanes[:, 3:].any()
    assert algorithm.weights(state).shape == (5, 3)
    assert np.shares_memory(algorithm.weights(state), state.weights)


@pytest.mark.parametrize("lanes", [1, 8, 64, 128, 512, 1824])
def test_the_number_of_vectors_is_odd(lanes: int) -> None:
    """Rows that are a power of two apart would compete for the same places of the cache."""
    state = online.TDLambda(tuple(np.full(lanes, 0.1))).start(2)
    assert state.weights.shape[1] // 8 % 2 == 1
    assert lanes <= state.weights.shape[1] < lanes + 16


def on_a_loop(algorithm: online.Algorithm, **options: Any) -> Floats:
    """Return the weights after a few steps around three states."""
    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9, **options)
    learner = gvf.OnlineLearner(
        question, gvf.features.OneHot(3), algorithm, behaviour=gvf.policies.Uniform(2)
    )
    for step in range(12):
        learner.observe(step % 3, 1, 1.0 + step % 2, (step + 1) % 3, False)
    return learner.weights.copy()


def test_only_emphatic_algorithms_use_the_interest() -> None:
    for algorithm, uses in (
        (online.TDLambda(0.01, 0.5), False),
        (online.EmphaticTD(0.01, 0.5), True),
        (online.LSTD(0.5), False),
        (online.LSTD(0.5, emphatic=True), True),
    ):
        everywhere = on_a_loop(algorithm)
        somewhere = on_a_loop(algorithm, interest=lambda t: t.state == 0)
        assert np.array_equal(somewhere, everywhere) != uses


def test_interest_scales_emphatic_steps() -> None:
    """Twice the interest is twice the step size."""
    twice = on_a_loop(online.EmphaticTD(0.01, 0.5), interest=2.0)
    np.testing.assert_allclose(twice, on_a_loop(online.EmphaticTD(0.02, 0.5)), rtol=1e-13)
