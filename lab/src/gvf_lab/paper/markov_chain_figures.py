"""Figure 4 of the paper: step sizes and the variance of updates, on a Markov chain.

The buffer is fixed and holds 15,000 transitions. The pair of policies is "hard", with ratios up to
9. :mod:`gvf_lab.paper.markov_pairs_figures` has two more pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.figure.claim import Claim
from gvf_lab.figure.figure import Axes, Figure
from gvf_lab.figure.history import HistoryEntry, knowing_results
from gvf_lab.figure.points import NORM_PANELS, points_by_iteration, points_by_step_size
from gvf_lab.figure.published import Published
from gvf_lab.figure.statistics import (
    Bounds,
    Statistic,
    ends_at,
    largest,
    largest_stable_step,
    rank_correlation,
    smallest,
)
from gvf_lab.paper.comparisons import (
    ADDED,
    AUDITED,
    BUFFER_IS_IS,
    GRID,
    OTHER_UNITS,
    PASSES,
    RANGES_WRITTEN,
    SLUGS,
    STEPS_TIE,
    TENTH,
    TIE,
    UNITS,
    WRITTEN,
    bears_more,
    grid_ends,
    revise,
    wider_range,
)
from gvf_lab.paper.four_rooms_figures import BC_IR_IS_LIKE_IR, less_variance_by_range
from gvf_lab.paper.named_studies import CATALOGUE
from gvf_lab.study.results import Pair, Results

ERROR = Axes("step size", "absolute value error, averaged over 1000 updates", y_top=1.0)
VARIANCE = Axes("iteration of WIS-Optimal", "variance of the update", y_log=True)
CLIPS = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
CLIPS_BY_SIZE = tuple(reversed(CLIPS))
SENSITIVE_METHODS = ("IS", "WIS-Buffer", "WIS-Minibatch")
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
LENIENT_REASON = (
    "The best error of WIS-Minibatch is several times that of IR, so many step sizes are within "
    "twice of it: this measure is lenient with a method that is inaccurate at every step size."
)
SARSA_REASON = (
    "Sarsa has no ratios at all, and each of its action values sees only a part of the updates: it "
    "bears larger step sizes than even On-policy. Its best error is about twice that of IR."
)
CLIPPED_REASON = (
    "With ratios clipped at 1 updates are so small that the error never passes 1 on this grid, but "
    "neither does it fall below a third: what is gained in variance is lost in bias."
)
STARK = "The sentence says that the difference is stark. We take three times and more."
COMPARABLE = "The sentence says comparable. We take a factor of at most 2."
NO_EXCEPTION = f"{TIE} The smallest ratio counts, since the sentence has no exception."
MORE_BIAS = (
    f"{TIE} The error at the end of learning stands for the bias. It does so if variance is small "
    "by then, as it is with ratios of up to 9."
)
AT_THE_END = knowing_results(
    "2026-11-16: was the error over all updates, in which learning speed and variance count too. "
    "Results were known. It held, and holds."
)
EACH_CLIP = knowing_results(
    "2026-11-16: replaces the claim that a harder clip always bears larger step sizes and has less "
    "variance, which the paper does not say. Results were known. It held, except on the pair easy, "
    "where it was undecided."
)
QUICK = {"runs": 30}
"""The quick scale of variances; errors with all runs take seconds."""

FIRST_UPDATES, LAST_UPDATES = (0, 25), (200, 250)
"""Iterations of early and of late learning."""


def _less_sensitive(other: str, because: str = "") -> Claim:
    clipped = other in CLIPS
    return Claim(
        f"ir-less-sensitive-than-{SLUGS[other]}",
        f"IR is less sensitive to the step size than {other}.",
        f"{PASSES}, IR's over that of {other}",
        # The figure of the clips does not have IR.
        lambda results, *more: (
            largest_stable_step([results, *more][-1], "IR") / largest_stable_step(results, other)
        ),
        least=1.0,
        needs=("markov-step-size",) if clipped else (),
        because=because,
        why=STEPS_TIE,
        history=(*RANGES_WRITTEN, grid_ends()),
        not_counted=OTHER_UNITS if clipped else BUFFER_IS_IS if other == "WIS-Buffer" else "",
    )


def others_bear_more(results: Results, pair: Pair | None = None) -> Bounds:
    """Return the least step size that another method bears over the most of the sensitive ones.

    V-trace and NormIS are left out: their step sizes are in other units.
    """
    methods = [name for name in results.study.methods if name not in (*CLIPS, "NormIS")]
    reaches = {method: largest_stable_step(results, method, pair) for method in methods}
    most_sensitive = largest([reaches.pop(method) for method in SENSITIVE_METHODS])
    return smallest(list(reaches.values())) / most_sensitive


MEASURES = {"l1": "variance of the L1 norm", "trace": "trace of the covariance of updates"}
"""The kinds of variance by which the paper's sentences are judged."""


def update_variance(
    results: Results,
    method: str,
    when: tuple[int, int],
    pair: Pair | None = None,
    kind: str = "l1",
) -> Array:
    """Return a variance of updates, averaged over some iterations, [1 + B]."""
    measured = results.of(method, pair=pair)
    iterations = np.array(measured.choices)
    at = (iterations >= when[0]) & (iterations <= when[1])
    return results.average(measured[kind][:, at].mean(axis=1))


def of_variances(
    first: str, second: str, when: tuple[int, int], pair: Pair | None = None, kind: str = "l1"
) -> Callable[[Results], Array]:
    """Make the statistic: the variance of one method over that of another, in some iterations."""
    return lambda results: (
        update_variance(results, first, when, pair, kind)
        / update_variance(results, second, when, pair, kind)
    )


def lower_throughout(other: str, pair: Pair | None, kind: str) -> Statistic:
    """Make the statistic: the variance of a method over IR's, the smallest of all iterations."""
    return lambda results: (
        results.average(results.of(other, pair=pair)[kind])
        / results.average(results.of("IR", pair=pair)[kind])
    ).min(axis=1)


def ir_variance(
    kind: str,
    history: tuple[HistoryEntry, ...],
    pair: Pair | None = None,
    late_reason: str = "",
    not_counted: str = "",
) -> tuple[Claim, ...]:
    """Make the claims about the variance of IR and IS, judged by one kind of variance."""
    words = [*(["trace"] if kind == "trace" else []), *([pair[0]] if pair else [])]
    slug = "".join(f"-{word}" for word in words)
    by = {"l1": [], "trace": ["by the trace"]}[kind]
    setting = [*by, *([pair[0]] if pair else [])]
    judged = f" ({', '.join(setting)})" if setting else ""
    return (
        Claim(
            f"ir-variance-far-below-early{slug}",
            f"Early in learning the variance of IR's updates is far below that of IS{judged}.",
            f"{MEASURES[kind]}, iterations 0 to 25, IS over IR",
            of_variances("IS", "IR", FIRST_UPDATES, pair, kind),
            least=3.0,
            why=STARK,
            history=history,
            not_counted=not_counted,
        ),
        Claim(
            f"ir-variance-comparable-late{slug}",
            f"Late in learning the variances of IR and IS are comparable{judged}.",
            f"{MEASURES[kind]}, iterations 200 to 250, IS over IR",
            of_variances("IS", "IR", LAST_UPDATES, pair, kind),
            least=0.5,
            most=2.0,
            why=COMPARABLE,
            history=history,
            not_counted=not_counted,
            because=late_reason,
        ),
        Claim(
            f"ir-variance-lower{slug}",
            f"The variance of IR's updates is lower than that of IS{judged}.",
            f"{MEASURES[kind]}, IS over IR, the smallest of all iterations",
            lower_throughout("IS", pair, kind),
            least=1.0,
            why=NO_EXCEPTION,
            history=history,
            not_counted=not_counted,
            because=late_reason,
        ),
    )


def clip_bears_more(clip: str, pair: Pair | None = None) -> Claim:
    """Make the claim that V-trace with a clip bears larger step sizes than IS."""
    slug, setting = (f"-{pair[0]}", f" ({pair[0]})") if pair else ("", "")
    return Claim(
        f"{SLUGS[clip]}-bears-larger-steps-than-is{slug}",
        f"{clip} bears larger step sizes than IS, since its variance is less{setting}.",
        f"{PASSES}, that of {clip} over that of IS",
        bears_more(clip, "IS", pair),
        least=1.0,
        why=STEPS_TIE,
        history=(EACH_CLIP,),
        not_counted=OTHER_UNITS,
    )


def steps_up(values: list[Array]) -> Array:
    """Return the smallest factor from one value to the next."""
    stacked = np.stack(values)
    return (stacked[1:] / stacked[:-1]).min(axis=0)


def follows_variance(when: tuple[int, int], pair: Pair | None = None) -> Callable[..., Array]:
    """Make the statistic: the rank correlation of variance with how early the error passes 1.

    The last results given have V-trace. It has no value where the order of the step sizes is not
    known.
    """
    methods = ("IR", "BC-IR", "IS", "WIS-Minibatch", "WIS-Buffer", *CLIPS)

    def statistic(results: Results, *errors: Results) -> Array:
        variance = [update_variance(results, method, when, pair) for method in methods]
        reaches = [
            largest_stable_step(errors[-1 if method in CLIPS else 0], method, pair)
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

    return statistic


def goes_with_sensitivity(when: str, pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that methods with larger variance are the more sensitive ones."""
    at = {"early": FIRST_UPDATES, "late": LAST_UPDATES}[when]
    slug, setting = (f"-{pair[0]}", f", {pair[0]}") if pair else ("", "")
    fields: dict[str, Any] = {
        "needs": ("markov-step-size", "markov-vtrace"),
        "why": "The sentence says that the two correlate. We take a rank correlation of .5 and "
        "more over eight methods.",
        "history": (ADDED,),
    }
    return Claim(
        f"variance-goes-with-sensitivity-{when}{slug}",
        "Methods with larger update variance are the more sensitive ones to the step size "
        f"({when} in learning{setting}).",
        f"rank correlation, over methods, of the variance of the L1 norm in iterations {at[0]} to "
        f"{at[1]} with the reciprocal of the {PASSES}",
        follows_variance(at, pair),
        least=0.5,
        **(fields | more),
    )


def late_near_zero(pair: Pair | None = None, **more: Any) -> Claim:
    """Make the claim that the variances of IR and IS are near zero late in learning."""
    slug, setting = (f"-{pair[0]}", f" ({pair[0]})") if pair else ("", "")

    def falls(results: Results, method: str) -> Array:
        late, early = (
            update_variance(results, method, when, pair) for when in (LAST_UPDATES, FIRST_UPDATES)
        )
        return late / early

    fields: dict[str, Any] = {"history": (ADDED,)} | more
    return Claim(
        f"late-variance-near-zero{slug}",
        "Once the weights have largely converged, the variances of IR and IS are near zero"
        f"{setting}.",
        "variance of the L1 norm, iterations 200 to 250 over iterations 0 to 25, the larger of "
        "IR's and that of IS",
        lambda results: np.maximum(*(falls(results, method) for method in ("IR", "IS"))),
        most=0.05,
        why="The sentence says near zero and names no amount. We take a twentieth of the method's "
        "own variance at the start.",
        **fields,
    )


STEP_SIZE = Figure(
    CATALOGUE["markov-step-size"],
    "Markov chain: sensitivity to the step size",
    "Fig. 4 left",
    ERROR,
    points_by_step_size,
    published=(Published("markov_chain_step_size_rho9", runs=100, must_match=True),),
    claims=(
        Claim(
            "ir-as-sensitive-as-on-policy",
            "IR is about as sensitive to the step size as On-policy sampling.",
            f"{PASSES}, IR's over On-policy's",
            bears_more("IR", "On-policy"),
            least=1 / 1.1,
            most=1.1,
            why=f"{TENTH} {GRID}",
            history=(*RANGES_WRITTEN, grid_ends()),
        ),
        *(_less_sensitive(other) for other in SENSITIVE_METHODS),
        _less_sensitive("Sarsa", because=SARSA_REASON),
        Claim(
            "is-most-sensitive",
            "IS, WIS-Buffer and WIS-Minibatch are the most sensitive to the step size.",
            f"{PASSES}: the smallest among all other methods over the largest among these three",
            others_bear_more,
            least=1.0,
            why=STEPS_TIE,
            history=(WRITTEN, grid_ends()),
        ),
        wider_range("IS", history=(*RANGES_WRITTEN, grid_ends())),
        wider_range("WIS-Buffer", history=(*RANGES_WRITTEN, grid_ends()), not_counted=BUFFER_IS_IS),
        wider_range(
            "WIS-Minibatch", history=(*RANGES_WRITTEN, grid_ends()), because=LENIENT_REASON
        ),
        BC_IR_IS_LIKE_IR,
    ),
    notes=NOTES,
    world="Markov chain",
)

VTRACE = Figure(
    CATALOGUE["markov-vtrace"],
    "Markov chain: V-trace with three clips",
    "Fig. 4 centre",
    ERROR,
    points_by_step_size,
    published=(Published("markov_chain_step_size_rho9", runs=100, must_match=True),),
    claims=(
        Claim(
            "harder-clip-more-bias",
            "V-trace has more bias the harder the clip.",
            "error in the last tenth of the updates, best step sizes, smallest factor from clip .9 "
            "max to .5 max to 1.0",
            lambda results: steps_up([ends_at(results, clip) for clip in CLIPS_BY_SIZE]),
            least=1.0,
            why=MORE_BIAS,
            history=(WRITTEN, AT_THE_END),
        ),
        *(clip_bears_more(clip) for clip in CLIPS_BY_SIZE),
        *(less_variance_by_range(clip) for clip in CLIPS_BY_SIZE),
        *(_less_sensitive(clip) for clip in CLIPS_BY_SIZE[:-1]),
        _less_sensitive("V-trace(1.0)", because=CLIPPED_REASON),
    ),
    notes=NOTES,
    world="Markov chain",
)

VARIANCE_HARD = Figure(
    CATALOGUE["markov-variance"],
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
    claims=(
        *ir_variance("l1", (WRITTEN,)),
        *ir_variance("trace", (AUDITED,)),
        late_near_zero(history=(WRITTEN,)),
        *(
            Claim(
                f"{SLUGS[clip]}-less-variance-than-is",
                f"{clip} has less variance than IS.",
                f"variance of the L1 norm, iterations 0 to 25, IS over {clip}",
                of_variances("IS", clip, FIRST_UPDATES),
                least=1.0,
                why=TIE,
                history=(EACH_CLIP,),
                not_counted="It follows from arithmetic. All large ratios of this chain are equal, "
                "so a clip multiplies every update that counts by the same factor below 1.",
            )
            for clip in CLIPS
        ),
        goes_with_sensitivity("early", history=(WRITTEN,)),
        goes_with_sensitivity("late"),
    ),
    notes=VARIANCE_NOTES,
    world="Markov chain",
)

FIGURES = (
    STEP_SIZE,
    revise(
        VTRACE,
        (
            UNITS,
            {
                "holds": ("*-bears-larger-steps-than-is", "ir-less-sensitive-than-v-trace-0.*"),
                "fails": ("ir-less-sensitive-than-v-trace-1",),
            },
        ),
    ),
    revise(
        VARIANCE_HARD,
        (
            "both were divided by the variance of IS at the start",
            {"holds": ("late-variance-near-zero",)},
        ),
    ),
)
