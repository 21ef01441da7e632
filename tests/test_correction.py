"""Corrections: every weight against its formula, and the identities that tie them together."""

import itertools
import math
from dataclasses import dataclass

import dumb
import numpy as np
import pytest

import gvf
from gvf.correction import MEAN, PARAMETER, weigher

CORRECTIONS = [
    gvf.IS(),
    gvf.NormIS(7.5),
    gvf.VTrace(1.0),
    gvf.VTrace(2.5),
    gvf.WISMinibatch(),
    gvf.WISBuffer(),
    gvf.WISOptimal(),
    gvf.IR(),
    gvf.BCIR(),
    gvf.OnPolicy(),
]
WINDOW = np.array([0.3, 0.0, 7.1, 1.9, 0.77])
UPDATES = np.array([[0.4, -1.0], [2.2, 3.0], [-0.9, 0.1], [1.3, 0.0], [0.2, 5.1]])


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("slots", [[0], [2, 2, 3], [1, 1], [0, 1, 2, 3, 4]])
def test_weights_are_those_of_the_table(correction, slots):
    rho = WINDOW[slots]
    expected = dumb.weigh(type(correction).__name__, rho, WINDOW, correction.parameter)
    np.testing.assert_allclose(correction.weigh(rho, WINDOW.mean()), expected, rtol=1e-15)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_a_window_without_mass_gives_finite_weights(correction):
    assert np.isfinite(correction.weigh(np.zeros(3), 0.0)).all()


def expectation(correction, k):
    """The mean of sum_i w_i update_i over all draws of k, each with its probability."""
    n = len(WINDOW)
    if correction.draw == "window":
        return correction.weigh(WINDOW, WINDOW.mean()) @ UPDATES
    p = WINDOW / WINDOW.sum() if correction.draw == "ratio" else np.full(n, 1 / n)
    total = np.zeros(2)
    for slots in itertools.product(range(n), repeat=k):
        probability = math.prod(p[i] for i in slots)
        if probability > 0:
            w = correction.weigh(WINDOW[list(slots)], WINDOW.mean())
            total += probability * (w @ UPDATES[list(slots)])
    return total


@pytest.mark.parametrize("k", [1, 2, 3])
def test_mean_ratio_times_the_expectation_of_ir_is_that_of_is(k):
    importance_sampling = expectation(gvf.IS(), k)
    np.testing.assert_allclose(
        WINDOW.mean() * expectation(gvf.IR(), k), importance_sampling, rtol=1e-13
    )
    np.testing.assert_allclose(expectation(gvf.BCIR(), k), importance_sampling, rtol=1e-13)
    np.testing.assert_allclose(
        expectation(gvf.IR(), k), expectation(gvf.WISOptimal(), k), rtol=1e-13
    )
    np.testing.assert_allclose(
        expectation(gvf.WISBuffer(), k), expectation(gvf.WISOptimal(), k), rtol=1e-13
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_bcir_is_unbiased_over_windows_and_ir_is_not(n):
    """All windows of n independent transitions, each with its probability under mu."""
    mu, pi = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    update = np.array([1.0, -2.0, 0.7])
    rho = pi / mu
    mean = {"IR": 0.0, "BCIR": 0.0}
    for kinds in itertools.product(range(3), repeat=n):
        window = rho[list(kinds)]
        for correction in (gvf.IR(), gvf.BCIR()):
            for slot in range(n):
                probability = math.prod(mu[i] for i in kinds) * window[slot] / window.sum()
                w = correction.weigh(window[[slot]], window.mean())[0]
                mean[type(correction).__name__] += probability * w * update[kinds[slot]]
    assert mean["BCIR"] == pytest.approx(pi @ update, rel=1e-13)
    assert abs(mean["IR"] - pi @ update) > 0.01
    if n == 1:
        assert mean["IR"] == pytest.approx(mu @ update, rel=1e-13)


def test_names_are_those_of_the_figures():
    assert [c.name for c in CORRECTIONS] == [
        "IS",
        "NormIS",
        "V-trace(1.0)",
        "V-trace(2.5)",
        "WIS-Minibatch",
        "WIS-Buffer",
        "WIS-Optimal",
        "IR",
        "BC-IR",
        "On-policy",
    ]


def test_corrections_compare_and_show_themselves():
    assert gvf.VTrace(1) == gvf.VTrace(1.0) != gvf.VTrace(2.0)
    assert len({gvf.IR(), gvf.IR(), gvf.BCIR()}) == 2
    assert repr(gvf.VTrace(0.5)) == "VTrace(clip=0.5)"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_parameters_must_be_positive(value):
    with pytest.raises(ValueError, match=f"clip must be a positive number, got {value}"):
        gvf.VTrace(value)
    with pytest.raises(ValueError, match="max_ratio must be a positive number"):
        gvf.NormIS(value)


@weigher
def _uneven(rho, statistics, out):
    for i in range(rho.size):
        out[i] = statistics[PARAMETER] * rho[i] / (statistics[MEAN] * rho.size)


@dataclass(frozen=True)
class Uneven(gvf.Correction):
    """A correction that nobody has thought of: the few lines that it takes."""

    factor: float
    draw = "ratio"
    kernel = staticmethod(_uneven)


def test_a_new_correction_is_a_few_lines_and_works_in_a_learner():
    question = gvf.GVF(gvf.Fixed([0.2, 0.8]), "reward", 0.5)
    learner = gvf.Learner(
        question, gvf.OneHot(1), gvf.TD(0.5), Uneven(3.0), behaviour=gvf.Uniform(2), seed=0
    )
    learner.observe(0, 1, 1.0, 0, True)
    # One transition, so rho = mean = 1.6, w = 3 * 1.6 / 1.6 in all, and delta = 1.
    assert learner.predict([0]) == pytest.approx([0.5 * 3.0])
    assert Uneven(3.0).name == "Uneven(3.0)"
