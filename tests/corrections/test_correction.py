"""Corrections: every weight against its formula, and the identities that tie them together."""

import itertools
import math
import pickle
from dataclasses import dataclass
from typing import Any

import dumb
import numpy as np
import pytest
from own_corrections import FollowOn, SquareRoot

import gvf
from gvf.corrections import MASS, RATIO

CORRECTIONS = [
    gvf.corrections.IS(),
    gvf.corrections.NormIS(7.5),
    gvf.corrections.VTrace(1.0),
    gvf.corrections.VTrace(2.5),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.WISBuffer(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.IR(),
    gvf.corrections.BCIR(),
    gvf.corrections.Interpolated(0.3),
    gvf.corrections.BCInterpolated(0.3),
    gvf.corrections.OnPolicy(),
]
WINDOW = np.array([0.3, 0.0, 7.1, 1.9, 0.77])
UPDATES = np.array([[0.4, -1.0], [2.2, 3.0], [-0.9, 0.1], [1.3, 0.0], [0.2, 5.1]])


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("slots", [[0], [2, 2, 3], [1, 1], [0, 1, 2, 3, 4]])
def test_weights_are_those_of_the_table(correction, slots):
    rho = WINDOW[slots]
    expected = dumb.weigh(correction, rho, WINDOW)
    means = correction.means(WINDOW)
    if dumb.masses(correction, WINDOW) is not None:
        # A row that is never drawn has the weight 0, whatever the formula gives.
        expected = np.where(correction.masses(rho) > 0, expected, correction.weights(rho, means))
    np.testing.assert_allclose(correction.weights(rho, means), expected, rtol=1e-14)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_masses_and_means_are_those_of_the_table(correction):
    p = dumb.masses(correction, WINDOW)
    expected = np.ones(5) if p is None or isinstance(p, str) else p
    np.testing.assert_allclose(correction.masses(WINDOW), expected, rtol=1e-15)
    np.testing.assert_allclose(correction.means(WINDOW), [WINDOW.mean(), expected.mean()])
    assert correction.draw.uniform == (p is None)
    assert correction.draw.whole == isinstance(p, str)


def test_weights_are_the_same_without_rows_of_ratio_0_where_a_correction_says_so():
    saying = [correction for correction in CORRECTIONS if correction.skips_zeros]
    assert saying == [gvf.corrections.WISOptimal()]
    for correction in saying:
        means, kept = correction.means(WINDOW), WINDOW > 0.0
        weights = correction.weights(WINDOW, means)
        np.testing.assert_array_equal(weights[kept], correction.weights(WINDOW[kept], means))
        np.testing.assert_array_equal(weights[~kept], 0.0)


def test_a_correction_with_its_own_weights_is_not_said_to_skip_rows_of_ratio_0():
    @dataclass(frozen=True)
    class Renamed(gvf.corrections.WISOptimal):
        label = "renamed"

    @dataclass(frozen=True)
    class Mean(gvf.corrections.WISOptimal):
        @staticmethod
        def weigh(inputs, p, means, parameters, out):
            out[:] = inputs[RATIO] / out.size

    assert Renamed.skips_zeros
    assert not Mean.skips_zeros


def test_the_ends_of_interpolation_are_is_and_ir_to_the_last_bit():
    for low, high in (
        (gvf.corrections.IS(), gvf.corrections.IR()),
        (gvf.corrections.IS(), gvf.corrections.BCIR()),
    ):
        kind = (
            gvf.corrections.BCInterpolated
            if high == gvf.corrections.BCIR()
            else gvf.corrections.Interpolated
        )
        for end, beta in ((low, 0.0), (high, 1.0)):
            between = kind(beta)
            np.testing.assert_array_equal(between.masses(WINDOW), end.masses(WINDOW))
            drawn = WINDOW[[0, 2, 2, 3]]
            np.testing.assert_array_equal(
                between.weights(drawn, between.means(WINDOW)),
                end.weights(drawn, end.means(WINDOW)),
            )


def test_corrections_that_draw_alike_are_known_by_it():
    assert gvf.corrections.IR().draw == gvf.corrections.BCIR().draw != gvf.corrections.IS().draw
    assert (
        gvf.corrections.IS().draw
        == gvf.corrections.VTrace(2.0).draw
        == gvf.corrections.WISMinibatch().draw
    )
    assert gvf.corrections.Interpolated(0.5).draw == gvf.corrections.BCInterpolated(0.5).draw
    assert gvf.corrections.Interpolated(0.5).draw != gvf.corrections.Interpolated(0.6).draw
    assert hash(gvf.corrections.IR().draw) == hash(gvf.corrections.BCIR().draw)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_a_window_without_mass_gives_finite_weights(correction):
    assert np.isfinite(correction.weights(np.zeros(3), correction.means(np.zeros(3)))).all()


def expectation(correction, k):
    """The mean of sum_i w_i update_i over all draws of k, each with its probability."""
    n, means = len(WINDOW), correction.means(WINDOW)
    if isinstance(dumb.masses(correction, WINDOW), str):
        return correction.weights(WINDOW, means) @ UPDATES
    p = dumb.probabilities(correction, WINDOW)
    total = np.zeros(2)
    for slots in itertools.product(range(n), repeat=k):
        probability = math.prod(p[i] for i in slots)
        if probability > 0:
            w = correction.weights(WINDOW[list(slots)], means)
            total += probability * (w @ UPDATES[list(slots)])
    return total


@pytest.mark.parametrize("k", [1, 2, 3])
def test_mean_ratio_times_the_expectation_of_ir_is_that_of_is(k):
    importance_sampling = expectation(gvf.corrections.IS(), k)
    np.testing.assert_allclose(
        WINDOW.mean() * expectation(gvf.corrections.IR(), k), importance_sampling, rtol=1e-13
    )
    np.testing.assert_allclose(
        expectation(gvf.corrections.BCIR(), k), importance_sampling, rtol=1e-13
    )
    for beta in (0.0, 0.4, 1.0):
        np.testing.assert_allclose(
            expectation(gvf.corrections.BCInterpolated(beta), k), importance_sampling, rtol=1e-13
        )
        np.testing.assert_allclose(
            np.mean(WINDOW**beta) * expectation(gvf.corrections.Interpolated(beta), k),
            importance_sampling,
            rtol=1e-13,
        )
    np.testing.assert_allclose(
        expectation(gvf.corrections.IR(), k),
        expectation(gvf.corrections.WISOptimal(), k),
        rtol=1e-13,
    )
    np.testing.assert_allclose(
        expectation(gvf.corrections.WISBuffer(), k),
        expectation(gvf.corrections.WISOptimal(), k),
        rtol=1e-13,
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
        for correction in (gvf.corrections.IR(), gvf.corrections.BCIR()):
            for slot in range(n):
                probability = math.prod(mu[i] for i in kinds) * window[slot] / window.sum()
                w = correction.weights(window[[slot]], window.mean())[0]
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
        "Interpolated(0.3)",
        "BC-Interpolated(0.3)",
        "On-policy",
    ]


def test_corrections_compare_and_show_themselves():
    assert gvf.corrections.VTrace(1) == gvf.corrections.VTrace(1.0) != gvf.corrections.VTrace(2.0)
    assert len({gvf.corrections.IR(), gvf.corrections.IR(), gvf.corrections.BCIR()}) == 2
    assert repr(gvf.corrections.VTrace(0.5)) == "VTrace(clip=0.5)"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "1", None])
def test_parameters_must_be_positive(value):
    with pytest.raises(ValueError, match=f"clip must be a positive number, got {value!r}"):
        gvf.corrections.VTrace(value)
    with pytest.raises(ValueError, match="max_ratio must be a positive number"):
        gvf.corrections.NormIS(value)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.5", None])
def test_beta_is_between_its_ends(value):
    with pytest.raises(ValueError, match=f"beta must be from 0 to 1, got {value!r}"):
        gvf.corrections.Interpolated(value)


def test_a_new_mass_is_a_few_lines():
    correction = SquareRoot()
    assert correction.name == "SquareRoot"
    np.testing.assert_allclose(correction.masses(WINDOW), np.sqrt(WINDOW))
    half = gvf.corrections.Interpolated(0.5)
    np.testing.assert_allclose(expectation(correction, 2), expectation(half, 2), rtol=1e-13)


@dataclass(frozen=True)
class Several(gvf.corrections.Correction):
    """Several parameters, one of them left out, and all means."""

    factor: float
    bound: float | None = None

    mass = staticmethod(lambda inputs, parameters: parameters[0] * inputs[RATIO])

    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        for i in range(out.size):
            bound = 1e9 if np.isnan(parameters[1]) else parameters[1]
            out[i] = min(p[i] / means[MASS] * means[RATIO], bound)


def test_parameters_means_and_masses_reach_the_kernels():
    correction = Several(3.0)
    assert correction.name == "Several(3.0)"
    np.testing.assert_allclose(correction.weights(WINDOW, correction.means(WINDOW)), WINDOW)
    bounded = Several(3.0, 1.0)
    np.testing.assert_allclose(
        bounded.weights(WINDOW, bounded.means(WINDOW)), np.minimum(WINDOW, 1.0)
    )
    with pytest.raises(ValueError, match=r"needs more than the mean ratio: means=correction.means"):
        correction.weights(WINDOW, 1.0)


def test_bad_kernels_and_masses_are_named():
    with pytest.raises(TypeError, match=r"Wrong\.mass must be a kernel, got 'ratio'"):
        type("Wrong", (gvf.corrections.Correction,), {"mass": "ratio"})

    class Negative(gvf.corrections.Correction):
        mass = staticmethod(lambda inputs, parameters: inputs[RATIO] - 1.0)
        weigh = gvf.corrections.IR.weigh

    with pytest.raises(ValueError, match=r"mass of Negative .* got -0.7 at position 0, .* is 0.3"):
        Negative().masses(WINDOW)


def test_a_correction_with_a_trace_says_what_it_needs():
    with pytest.raises(ValueError, match=r"needs the ratio and the carried quantity .* \[2, m\]"):
        FollowOn().masses(WINDOW)
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(FollowOn().masses(rows), [3.0, 8.0])
    np.testing.assert_array_equal(FollowOn().means(rows), [1.5, 3.5, 5.5])


def test_a_pickled_correction_has_the_kernels_of_its_class():
    correction = gvf.corrections.BCIR()
    assert correction.draw.mass is gvf.corrections.IR.mass
    again = pickle.loads(pickle.dumps(correction))
    assert again == correction
    assert again.draw == gvf.corrections.IR().draw
    assert again.draw.mass is gvf.corrections.IR.mass


def test_mistakes_in_kernels_are_told_with_the_name_of_the_kernel():
    class NoFields(gvf.corrections.Correction):
        bound: float = 2.0
        weigh = staticmethod(gvf.corrections.VTrace.weigh)

    class NoTrace(gvf.corrections.Correction):
        @staticmethod
        def weigh(inputs, p, means, parameters, out):
            out[:] = inputs[1]

    class Forgets(gvf.corrections.Correction):
        @staticmethod
        def weigh(inputs, p, means, parameters, out):
            out[0] = 1.0

    class Returns(gvf.corrections.Correction):
        @staticmethod
        def weigh(inputs, p, means, parameters, out):
            return inputs[RATIO]

    class Nothing(gvf.corrections.Correction):
        @staticmethod
        def mass(inputs, parameters):
            pass

        weigh = gvf.corrections.IR.weigh

    class TooFew(gvf.corrections.Correction):
        @staticmethod
        def weigh(inputs, out):
            out[:] = inputs[RATIO]

    @dataclass(frozen=True)
    class Text(gvf.corrections.Correction):
        bound: str = "a"
        weigh = gvf.corrections.IS.weigh

    for correction, message in (
        (NoFields(), "NoFields.bound is no field: @dataclass is missing"),
        (NoTrace(), "NoTrace.weigh fails: index 1 is out of bounds"),
        (Forgets(), r"Forgets.weigh must write a number into every out\[i\]"),
        (Returns(), "Returns.weigh must write a number"),
        (Nothing(), "Nothing.mass must return a number, got None"),
        (TooFew(), "TooFew.weigh fails: .* takes 2 positional arguments but 5 were given"),
        (Text(), "Text.bound must be a number, got 'a'"),
    ):
        with pytest.raises(TypeError, match=message) as caught:
            correction.weights(WINDOW, 1.0)
        assert "\n" not in str(caught.value)
        learner = gvf.Learner(
            gvf.GVF(gvf.policies.Uniform(2)),
            gvf.features.OneHot(2),
            gvf.updates.TD(0.1),
            gvf.corrections.IR(),
            behaviour=gvf.policies.Uniform(2),
        )
        with pytest.raises(TypeError, match=message):
            gvf.Learner(
                learner.question,
                gvf.features.OneHot(2),
                gvf.updates.TD(0.1),
                correction,
                behaviour=gvf.policies.Uniform(2),
            ).observe(0, 1, 1.0, 1, False)
    with pytest.raises(TypeError, match="Empty must say how to weigh"):
        type("Empty", (gvf.corrections.Correction,), {})


def test_a_parameter_that_is_left_out_equals_itself():
    assert Several(3.0).draw == Several(3.0).draw != Several(3.0, 1.0).draw


def test_kernels_of_users_are_compiled_anew_in_every_process():
    """Numba's cache does not notice that a value or a function that a kernel uses has changed."""
    assert type(gvf.corrections.IR.weigh._cache).__name__ != "NullCache"
    own: Any = SquareRoot.weigh
    assert type(own._cache).__name__ == "NullCache"
