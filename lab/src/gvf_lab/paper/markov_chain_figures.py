"""Figure 4 of the paper: step sizes and the variance of updates, on a Markov chain.

The buffer is fixed and holds 15,000 transitions. The main text has the pair of policies "hard",
with ratios up to 9. The appendix has "easy" and "hardest" too, with ratios up to 1.8 and 99. It
shows them without a word, but the paper's general sentences speak of them.
`markov_chain_figures.toml` has the claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf.kernels import BETWEEN, PAPER
from gvf_lab.figure.families import ClaimFile
from gvf_lab.figure.figure import Axes, Figure
from gvf_lab.figure.points import NORM_PANELS, points_by_iteration, points_by_step_size
from gvf_lab.figure.published import Published
from gvf_lab.figure.statistics import (
    Bounds,
    agreement,
    error_ratio,
    largest_stable_step,
    rank_correlation,
    steps_up,
)
from gvf_lab.paper.grids import REWEIGHTING, VTRACE, doublings, steps, study_from
from gvf_lab.study.base_study import NamedStudy
from gvf_lab.study.results import Pair, Results
from gvf_lab.study.variance_study import VarianceStudy

HARD = (("hard", "hard"),)
"""The pair of the main text."""
BATCH_METHODS = tuple(name for name, method in PAPER.items() if method.update != "wis-td")


def chain(protocol: str) -> dict[str, Any]:
    """Return the settings of a study: a fixed buffer. The protocols do not differ."""
    return {
        "domain": "markov-chain",
        "methods": BATCH_METHODS,
        "step_sizes": steps(0.0, 0.1, 12.0),
        "steps": 15_000,
        "window": 15_000,
        "batch_size": 16,
        "updates": 1000,
        "points": 10,
        "runs": 100,
    }


ERROR = Axes("step size", "absolute value error, averaged over 1000 updates", y_top=1.0)
VARIANCE = Axes("iteration of WIS-Optimal", "variance of the update", y_log=True)
NOTES = {
    "paper": "n = 15,000, k = 16, and 1000 updates, as in the authors' code (the paper does not "
    "say how many). The error counts all 10 states, the ends too. The pair hard, with "
    "probabilities of left and right: behaviour .9 and .1, target .1 and .9.",
    "authors": "Nothing differs from the paper here.",
}
VARIANCE_NOTES = NOTES | {
    "paper": "1000 mini-batches of 16 at each iteration of WIS-Optimal with step size 1. The "
    "panels have the variance of the update's L1 norm and of its signed sum of weighted TD errors, "
    "and the trace of its covariance, which is the paper's V(X | B). The pair hard, with "
    "probabilities of left and right: behaviour .9 and .1, target .1 and .9.",
}
OTHER_PAIRS = (
    "The pair easy: behaviour .5 and .5, target .1 and .9. The pair hardest: behaviour .99 and "
    ".01, target .01 and .99."
)
CAPPED_MEANS = (
    "Pictures show plain means. Where comparisons take the step size at which an error passes 1, a "
    "run's error counts as at most 2, so that step size can be larger. On the pair hardest the "
    "drawn means of IR and On-policy pass 1 at 7.0 and 8.1, a quotient of .86, because few runs "
    "have huge errors there; the comparison has .99."
)
QUICK = {"runs": 30}
"""The quick scale of variances; errors with all runs take seconds."""


# Statistics that claims about the variance of updates name.

EARLY, LATE = (0, 25), (200, 250)
"""Iterations of early and of late learning."""


def update_variance(
    results: Results,
    method: str,
    iterations: tuple[int, int],
    pair: Pair | None = None,
    kind: str = "l1",
) -> Array:
    """Return a variance of updates, averaged over some iterations, [1 + B]."""
    measured = results.of(method, pair=pair)
    numbers = np.array(measured.choices)
    at = (numbers >= iterations[0]) & (numbers <= iterations[1])
    return results.average(measured[kind][:, at].mean(axis=1))


def variance_ratio(
    results: Results,
    method: str,
    other: str,
    iterations: tuple[int, int],
    pair: Pair | None = None,
    kind: str = "l1",
) -> Array:
    """Return the variance of one method over that of another one, in some iterations."""
    first, second = (
        update_variance(results, name, iterations, pair, kind) for name in (method, other)
    )
    return first / second


def least_variance_ratio(
    results: Results, method: str, other: str, kind: str, pair: Pair | None = None
) -> Array:
    """Return the variance of one method over that of another, the smallest of all iterations."""
    first, second = (results.average(results.of(name, pair=pair)[kind]) for name in (method, other))
    return (first / second).min(axis=1)


def rising_variances(
    results: Results, method: str, iterations: tuple[int, int], pairs: Sequence[Pair]
) -> Array:
    """Return the smallest factor from the variance on one pair to that on the next."""
    return steps_up([update_variance(results, method, iterations, pair) for pair in pairs])


def largest_late_share(results: Results, methods: Sequence[str], pair: Pair | None = None) -> Array:
    """Return the late variance of updates over the early one, the largest of some methods."""
    shares = [
        update_variance(results, method, LATE, pair) / update_variance(results, method, EARLY, pair)
        for method in methods
    ]
    return np.max(shares, axis=0)


def early_difference(results: Results, method: str, other: str, pair: Pair | None = None) -> Array:
    """Return the early difference of two variances over the largest later one."""
    return _early(results, method, other, pair, lambda one, two: np.abs(one - two))


def early_factor(results: Results, method: str, other: str, pair: Pair | None = None) -> Array:
    """Return the early factor between two variances over the largest later one."""
    return _early(results, method, other, pair, lambda one, two: np.maximum(one / two, two / one))


def _early(
    results: Results,
    method: str,
    other: str,
    pair: Pair | None,
    differ: Callable[[Array, Array], Array],
) -> Array:
    first, second = (results.average(results.of(m, pair=pair)["l1"]) for m in (method, other))
    early = np.array(results.of(other, pair=pair).choices) <= EARLY[1]
    difference = differ(first, second)
    return difference[:, early].mean(axis=1) / difference[:, ~early].max(axis=1)


def variance_and_error(
    results: Results,
    errors: Results,
    method: str,
    other: str,
    iterations: tuple[int, int],
    pair: Pair,
) -> Bounds:
    """Return how far variances and errors of two methods lie on the same side of a tie."""
    variance = variance_ratio(results, method, other, iterations, pair)
    error = error_ratio(errors, method, other, pair)
    ends = [agreement(variance, end) for end in (error.least, error.most)]
    return Bounds(np.min(ends, axis=0), np.max(ends, axis=0), error.why)


def variance_and_sensitivity(
    results: Results, *errors: Results, iterations: tuple[int, int], pair: Pair | None = None
) -> Array:
    """Return the rank correlation of variance with how early the error passes 1.

    The last results have V-trace. It has no value where the order of the step sizes is not known.
    """
    methods = ("IR", "BC-IR", "IS", "WIS-Minibatch", "WIS-Buffer", *VTRACE)
    variance = [update_variance(results, method, iterations, pair) for method in methods]
    reaches = [
        largest_stable_step(errors[-1 if method in VTRACE else 0], method, pair)
        for method in methods
    ]
    least, most = (
        np.stack([getattr(reach, end) for reach in reaches]) for end in ("least", "most")
    )
    # Two numbers of which one has bounds may be in either order if their bounds overlap.
    overlap = (least[:, None] < most) & (least < most[:, None])
    overlap[np.diag_indices(len(methods))] = False
    correlation = rank_correlation(np.stack(variance, axis=1), -least.T)
    return np.where(overlap.any(axis=(0, 1)), np.nan, correlation)


def distance_of_mean_ratio(results: Results, pair: Pair) -> Array:
    """Return the distance of a buffer's mean ratio from 1, root of the mean square over runs."""
    corrected, plain = (
        results.of(method, pair=pair)["trace"].sum(axis=1) for method in ("BC-IR", "IR")
    )
    known = plain > 0  # a buffer in which no step enters the right end has no updates
    squares = (np.sqrt(corrected / np.where(known, plain, 1.0)) - 1) ** 2
    return np.sqrt(results.average(squares * known) / results.average(1.0 * known))


CLAIMS = ClaimFile(__name__)


def _with_pairs(notes: Mapping[str, str]) -> dict[str, str]:
    """Add the policies of the pairs easy and hardest to the note on protocol paper."""
    return {**notes, "paper": f"{notes['paper']} {OTHER_PAIRS}"}


STEP_SIZE = Figure(
    study_from(
        "markov-step-size",
        "error against step size, hard pair (Fig. 4 left)",
        chain,
        pairs=HARD,
        methods=("IR", "BC-IR", *REWEIGHTING, "Sarsa", "Expected Sarsa", "On-policy"),
    ),
    "Markov chain: sensitivity to the step size",
    "Fig. 4 left",
    ERROR,
    points_by_step_size,
    published=(Published("markov_chain_step_size_rho9", runs=100, must_match=True),),
    claims_of=CLAIMS,
    notes=NOTES,
    world="Markov chain",
)

VTRACE_CLIPS = Figure(
    study_from(
        "markov-vtrace",
        "V-trace with three clips, hard pair (Fig. 4 centre)",
        chain,
        pairs=HARD,
        methods=("IS", *VTRACE),
    ),
    "Markov chain: V-trace with three clips",
    "Fig. 4 centre",
    ERROR,
    points_by_step_size,
    published=(Published("markov_chain_step_size_rho9", runs=100, must_match=True),),
    claims_of=CLAIMS,
    notes=NOTES,
    world="Markov chain",
)

VARIANCE_HARD = Figure(
    NamedStudy(
        "markov-variance",
        "variance of updates, hard pair (Fig. 4 right)",
        lambda protocol: VarianceStudy("markov-variance", pairs=HARD),
    ),
    "Markov chain: variance of the updates",
    "Fig. 4 right",
    VARIANCE,
    points_by_iteration,
    panels=NORM_PANELS,
    quick=QUICK,
    published=(
        Published(
            "markov_chain_variance_l1_rho9",
            runs=100,
            frame=None,
            must_match=True,
            note="From the talk: the variance of the L1 norm.",
        ),
        Published(
            "markov_chain_variance_scalar_rho9",
            runs=100,
            panel="scalar",
            frame=None,
            must_match=True,
            note="From the poster, whose label says L1 norm: the variance of the signed sum. Its "
            "BC-IR divides by the mean ratio instead of multiplying with it.",
        ),
    ),
    claims_of=CLAIMS,
    notes=VARIANCE_NOTES,
    world="Markov chain",
)

STEP_SIZE_ALL = Figure(
    study_from("markov-step-size-all", "error against step size, three pairs (appendix)", chain),
    "Markov chain: sensitivity to the step size, three pairs of policies",
    "Appendix",
    ERROR,
    points_by_step_size,
    main=False,
    published=(Published("markov_chain_step_size_rho9", runs=100, panel="hard", must_match=True),),
    claims_of=CLAIMS,
    notes=_with_pairs({**NOTES, "paper": f"{NOTES['paper']} {CAPPED_MEANS}"}),
    world="Markov chain",
)

VTRACE_ALL = Figure(
    study_from(
        "markov-vtrace-all",
        "V-trace with three clips, three pairs (appendix)",
        chain,
        methods=("IS", *VTRACE),
    ),
    "Markov chain: V-trace with three clips, three pairs of policies",
    "Appendix",
    ERROR,
    points_by_step_size,
    main=False,
    published=(Published("markov_chain_step_size_rho9", runs=100, panel="hard", must_match=True),),
    claims_of=CLAIMS,
    notes=_with_pairs(NOTES),
    world="Markov chain",
)

VARIANCE_ALL = Figure(
    NamedStudy(
        "markov-variance-all",
        "variance of updates, three pairs (authors' code)",
        lambda protocol: VarianceStudy("markov-variance-all"),
    ),
    "Markov chain: variance of the updates, three pairs of policies",
    "the authors' code",
    VARIANCE,
    points_by_iteration,
    panels=NORM_PANELS,
    quick=QUICK,
    main=False,
    published=(
        Published(
            "markov_chain_variance_l1_rho9", runs=100, panel="hard", frame=None, must_match=True
        ),
        Published(
            "markov_chain_variance_l1_rho99",
            runs=100,
            panel="hardest",
            frame=None,
            note="All iterations of a run share a buffer, so a curve deviates as a whole: with our "
            "100 runs WIS-Minibatch is two standard errors low, and with 400 others it agrees. The "
            "authors' draws are stratified, which lowers the variance of IR by a tenth.",
        ),
    ),
    claims_of=CLAIMS,
    notes=_with_pairs(VARIANCE_NOTES),
    world="Markov chain",
)

FIGURES = (STEP_SIZE, VTRACE_CLIPS, VARIANCE_HARD, STEP_SIZE_ALL, VTRACE_ALL, VARIANCE_ALL)
STUDIES = (
    # Can a ratio that is split between draw and weight beat both ends?
    study_from(
        "interpolation-chain",
        "between IS and IR: chain, three pairs",
        chain,
        methods=("IS", "IR", "BC-IR", *BETWEEN),
        step_sizes=doublings(-5, 8, 4),
        runs=200,
    ),
    study_from(
        "quick-check",
        "a few seconds on the chain, to see that all works",
        chain,
        methods=("IR", "IS", "WIS-Optimal", "On-policy"),
        step_sizes=steps(0.0, 0.5, 8.0),
        updates=500,
        runs=10,
    ),
)
"""The studies without a figure here."""
