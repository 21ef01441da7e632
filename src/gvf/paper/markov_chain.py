"""Figure 4 of the paper: step sizes and the variance of updates, on a Markov chain.

The buffer is fixed and holds 15,000 transitions. Three pairs of policies have ratios up to 1.8, 9
and 99. The main text shows the second pair, "hard".
"""

from __future__ import annotations

import numpy as np

from gvf.common.arrays import Array
from gvf.figure.claim import Claim
from gvf.figure.figure import Axes, Figure
from gvf.figure.published import Published
from gvf.figure.reading import NORM_PANELS, against_iteration, against_step_size
from gvf.figure.statistics import Statistic, rank_correlation, reach
from gvf.paper.comparisons import (
    AUDITED,
    BUFFER_IS_IS,
    SLUGS,
    TENTH,
    TIE,
    WRITTEN,
    accurate_over_wider_range,
    larger_steps,
    lower_error,
    wider_range,
)
from gvf.paper.four_rooms import BC_IR_IS_LIKE_IR
from gvf.paper.studies import CATALOGUE
from gvf.study.results import Pair, Results

ERROR = Axes("step size", "absolute value error, averaged over 1000 updates", y_top=1.0)
VARIANCE = Axes("iteration of WIS-Optimal", "variance of the update", y_log=True)
CLIPS = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
CLIPS_BY_SIZE = tuple(reversed(CLIPS))
SENSITIVE_METHODS = ("IS", "WIS-Buffer", "WIS-Minibatch")
NOTES = {
    "paper": "n = 15,000, k = 16, 1000 updates. The error counts all 10 states, the ends too.",
    "authors": "Nothing differs from the paper here.",
}
VARIANCE_NOTES = {
    protocol: "1000 mini-batches of 16 at each iteration of WIS-Optimal with step size 1. The main "
    "panel has the L1 norm of the update, the other one the signed sum of weighted TD errors."
    for protocol in NOTES
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
QUICK = {"runs": 30}
"""The quick scale of variances; errors with all runs take seconds."""

FIRST_UPDATES, LAST_UPDATES = (0, 25), (200, 250)
"""Iterations of early and of late learning."""


def _less_sensitive(other: str, because: str = "") -> Claim:
    clipped = other in CLIPS
    return Claim(
        f"ir-less-sensitive-than-{SLUGS[other]}",
        f"IR is less sensitive to the step size than {other}.",
        f"step size at which the error passes 1, IR's over that of {other}",
        # The figure of the clips does not have IR.
        lambda results, *more: reach([results, *more][-1], "IR") / reach(results, other),
        least=1.0,
        needs=("markov-step-size",) if clipped else (),
        because=because,
        why=TIE,
        history=(WRITTEN,),
        given=BUFFER_IS_IS if other == "WIS-Buffer" else "",
    )


def _others_bear_more(results: Results) -> Array:
    reaches = {method: reach(results, method) for method in results.study.methods}
    most_sensitive = np.max([reaches.pop(method) for method in SENSITIVE_METHODS], axis=0)
    return np.min(list(reaches.values()), axis=0) / most_sensitive


def update_variance(
    results: Results, method: str, when: tuple[int, int], pair: Pair | None = None
) -> Array:
    """Return the variance of updates' L1 norms, averaged over some iterations, [1 + B]."""
    measured = results.of(method, pair=pair)
    iterations = np.array(measured.choices)
    at = (iterations >= when[0]) & (iterations <= when[1])
    return results.average(measured["l1"][:, at].mean(axis=1))


def _of_variances(
    first: str, second: str, when: tuple[int, int], pair: Pair | None = None
) -> Statistic:
    return lambda results: (
        update_variance(results, first, when, pair) / update_variance(results, second, when, pair)
    )


def _lower_throughout(results: Results) -> Array:
    one, other = (results.average(results.of(method)["l1"]) for method in ("IS", "IR"))
    return (one / other).min(axis=1)


def _steps_up(values: list[Array]) -> Array:
    """Return the smallest factor from one value to the next."""
    stacked = np.stack(values)
    return (stacked[1:] / stacked[:-1]).min(axis=0)


def _follows_variance(results: Results, step_size: Results, vtrace: Results) -> Array:
    """Return the rank correlation of update variance with how early the error passes 1."""
    methods = ("IR", "BC-IR", "IS", "WIS-Minibatch", "WIS-Buffer", *CLIPS)
    variance = [update_variance(results, method, FIRST_UPDATES) for method in methods]
    reaches = [reach(vtrace if method in CLIPS else step_size, method) for method in methods]
    return rank_correlation(np.stack(variance, axis=1), -np.stack(reaches, axis=1))


STEP_SIZE = Figure(
    CATALOGUE["markov-step-size"],
    "Markov chain: sensitivity to the step size",
    "Fig. 4 left",
    ERROR,
    against_step_size,
    published=(Published("markov_chain_step_size_rho9", runs=100, must_match=True),),
    claims=(
        Claim(
            "ir-as-sensitive-as-on-policy",
            "IR is about as sensitive to the step size as On-policy sampling.",
            "step size at which the error passes 1, IR's over On-policy's",
            lambda results: reach(results, "IR") / reach(results, "On-policy"),
            least=1 / 1.1,
            most=1.1,
            why=TENTH,
            history=(WRITTEN,),
        ),
        *(_less_sensitive(other) for other in SENSITIVE_METHODS),
        _less_sensitive("Sarsa", because=SARSA_REASON),
        Claim(
            "is-most-sensitive",
            "IS, WIS-Buffer and WIS-Minibatch are the most sensitive to the step size.",
            "step size at which the error passes 1: the smallest among all other methods over the "
            "largest among these three",
            _others_bear_more,
            least=1.0,
            why=TIE,
            history=(WRITTEN,),
        ),
        wider_range("IS", history=(WRITTEN,)),
        wider_range("WIS-Buffer", history=(WRITTEN,), given=BUFFER_IS_IS),
        wider_range("WIS-Minibatch", history=(WRITTEN,), because=LENIENT_REASON),
        BC_IR_IS_LIKE_IR,
    ),
    notes=NOTES,
)

VTRACE = Figure(
    CATALOGUE["markov-vtrace"],
    "Markov chain: V-trace with three clips",
    "Fig. 4 centre",
    ERROR,
    against_step_size,
    published=(Published("markov_chain_step_size_rho9", runs=100, must_match=True),),
    claims=(
        Claim(
            "harder-clip-more-bias",
            "V-trace has more bias the harder the clip.",
            "smallest factor between best errors from clip .9 max to .5 max to 1.0",
            lambda results: _steps_up([results.best(clip) for clip in CLIPS_BY_SIZE]),
            least=1.0,
            why=TIE,
            history=(WRITTEN,),
        ),
        Claim(
            "harder-clip-more-step-sizes",
            "V-trace bears larger step sizes the harder the clip: its variance is less.",
            "smallest factor between the step sizes at which the error passes 1, from IS to clip "
            ".9 max to .5 max to 1.0",
            lambda results: _steps_up(
                [reach(results, method) for method in ("IS", *CLIPS_BY_SIZE)]
            ),
            least=1.0,
            why=TIE,
            history=(WRITTEN,),
        ),
        *(_less_sensitive(clip) for clip in CLIPS_BY_SIZE[:-1]),
        _less_sensitive("V-trace(1.0)", because=CLIPPED_REASON),
    ),
    notes=NOTES,
)

VARIANCE_HARD = Figure(
    CATALOGUE["markov-variance"],
    "Markov chain: variance of the updates",
    "Fig. 4 right",
    VARIANCE,
    against_iteration,
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
        Claim(
            "ir-variance-far-below-early",
            "Early in learning the variance of IR's updates is far below that of IS.",
            "variance of the L1 norm, iterations 0 to 25, IS over IR",
            _of_variances("IS", "IR", FIRST_UPDATES),
            least=3.0,
            why="The sentence says that the difference is stark. We take three times and more.",
            history=(WRITTEN,),
        ),
        Claim(
            "ir-variance-comparable-late",
            "Late in learning the variances of IR and IS are comparable.",
            "variance of the L1 norm, iterations 200 to 250, IS over IR",
            _of_variances("IS", "IR", LAST_UPDATES),
            least=0.5,
            most=2.0,
            why="The sentence says comparable. We take a factor of at most 2.",
            history=(WRITTEN,),
        ),
        Claim(
            "ir-variance-lower",
            "The variance of IR's updates is lower than that of IS.",
            "variance of the L1 norm, IS over IR, the smallest of all iterations",
            _lower_throughout,
            least=1.0,
            why=f"{TIE} The smallest ratio counts, since the sentence has no exception.",
            history=(WRITTEN,),
        ),
        Claim(
            "late-variance-near-zero",
            "Once the weights have largely converged, the variances of IR and IS are near zero.",
            "variance of the L1 norm, the larger of IR and IS in iterations 200 to 250, over IS in "
            "iterations 0 to 25",
            lambda results: (
                np.maximum(
                    *(update_variance(results, method, LAST_UPDATES) for method in ("IR", "IS"))
                )
                / update_variance(results, "IS", FIRST_UPDATES)
            ),
            most=0.05,
            why="The sentence says near zero, of a curve on an axis that begins at 0. We take a "
            "twentieth of the axis.",
            history=(WRITTEN,),
        ),
        Claim(
            "harder-clip-less-variance",
            "V-trace has less variance the harder the clip.",
            "smallest factor between variances from clip 1.0 to .5 max to .9 max to IS, early",
            lambda results: _steps_up(
                [update_variance(results, method, FIRST_UPDATES) for method in (*CLIPS, "IS")]
            ),
            least=1.0,
            why=TIE,
            history=(WRITTEN,),
            given="It follows from arithmetic. All large ratios of this chain are equal, so a clip "
            "at .9 of the largest multiplies every update that counts by .9.",
        ),
        Claim(
            "variance-goes-with-sensitivity",
            "Methods with larger update variance are the more sensitive ones to the step size.",
            "rank correlation, over methods, of the early variance with the reciprocal of the step "
            "size at which the error passes 1",
            _follows_variance,
            least=0.5,
            needs=("markov-step-size", "markov-vtrace"),
            why="The sentence says that the two correlate. We take a rank correlation of .5 and "
            "more over eight methods.",
            history=(WRITTEN,),
        ),
    ),
    notes=VARIANCE_NOTES,
)

EASY, HARD, HARDEST = PAIRS = (("easy", "easy"), ("hard", "hard"), ("hardest", "hardest"))
"""The pairs of policies, by the size of their ratios."""
COMPETITORS = ("IS", "WIS-Minibatch", "V-trace(1.0)")
"""The methods with which IR is compared on every pair."""
SMALL_RATIOS_REASON = (
    "Ratios are at most 1.8 here, so there is little for a draw by ratio to gain, and it costs "
    "diversity: a mini-batch of IR repeats transitions that reweighting counts once."
)


def _less_dependent(other: str) -> Claim:
    """Make the claim that IR's error depends less on the policies."""
    return Claim(
        f"ir-depends-less-on-policies-than-{SLUGS[other]}",
        f"The error of IR depends less on the policies than that of {other}.",
        f"best error on the pair hardest over that on the pair easy, that of {other} over IR's",
        lambda results: (
            results.best(other, pair=HARDEST)
            / results.best(other, pair=EASY)
            / (results.best("IR", pair=HARDEST) / results.best("IR", pair=EASY))
        ),
        least=1.0,
        why=TIE,
        history=(AUDITED,),
    )


def _steps_depend_less(other: str) -> Claim:
    """Make the claim that the step sizes that IR bears depend less on the policies."""
    return Claim(
        f"ir-step-sizes-depend-less-on-policies-than-{SLUGS[other]}",
        f"The step sizes that IR bears depend less on the policies than those of {other}.",
        "step size at which the error passes 1 on the pair easy over that on the pair hardest, "
        f"that of {other} over IR's",
        lambda results: (
            reach(results, other, EASY)
            / reach(results, other, HARDEST)
            / (reach(results, "IR", EASY) / reach(results, "IR", HARDEST))
        ),
        least=1.0,
        why=TIE,
        history=(AUDITED,),
    )


def _lower_variance(other: str, pair: Pair) -> Claim:
    """Make the claim that IR's updates vary less early in learning."""
    return Claim(
        f"ir-less-variance-than-{SLUGS[other]}-{pair[0]}",
        f"Early in learning IR's updates vary less than those of {other} ({pair[0]}).",
        f"variance of the L1 norm, iterations 0 to 25, {other} over IR",
        _of_variances(other, "IR", FIRST_UPDATES, pair),
        least=1.0,
        why=TIE,
        history=(AUDITED,),
    )


def _comparable_late(pair: Pair) -> Claim:
    """Make the claim that the variances of IR and IS are comparable late in learning."""
    return Claim(
        f"ir-variance-comparable-late-{pair[0]}",
        f"Late in learning the variances of IR and IS are comparable ({pair[0]}).",
        "variance of the L1 norm, iterations 200 to 250, IS over IR",
        _of_variances("IS", "IR", LAST_UPDATES, pair),
        least=0.5,
        most=2.0,
        why="The sentence says comparable. We take a factor of at most 2.",
        history=(AUDITED,),
    )


STEP_SIZE_ALL = Figure(
    CATALOGUE["markov-step-size-all"],
    "Markov chain: sensitivity to the step size, three pairs of policies",
    "Appendix",
    ERROR,
    against_step_size,
    main=False,
    published=(Published("markov_chain_step_size_rho9", runs=100, panel="hard", must_match=True),),
    claims=(
        *(
            lower_error(other, pair, because=SMALL_RATIOS_REASON if pair == EASY else "")
            for pair in PAIRS
            for other in COMPETITORS
        ),
        *(larger_steps(other, pair) for pair in PAIRS for other in COMPETITORS),
        *(wider_range(other, pair) for pair in PAIRS for other in COMPETITORS),
        *(accurate_over_wider_range(other, pair) for pair in PAIRS for other in COMPETITORS),
        *(_less_dependent(other) for other in COMPETITORS),
        *(_steps_depend_less(other) for other in COMPETITORS),
    ),
    notes=NOTES,
)


def _harder_clips(pair: Pair) -> tuple[Claim, ...]:
    """Make the claims about V-trace's clips for a pair."""
    # The largest ratio of the easy pair is 1.8, so half of it is a harder clip than 1.
    clips = ("V-trace(0.9 max)", "V-trace(1.0)", "V-trace(0.5 max)")
    clips = clips if pair == EASY else CLIPS_BY_SIZE
    order = " to ".join(clip.removeprefix("V-trace(").removesuffix(")") for clip in clips)
    return (
        Claim(
            f"harder-clip-more-bias-{pair[0]}",
            f"V-trace has more bias the harder the clip ({pair[0]}).",
            f"smallest factor between best errors from clip {order}",
            lambda results: _steps_up([results.best(clip, pair=pair) for clip in clips]),
            least=1.0,
            why=TIE,
            history=(AUDITED,),
        ),
        Claim(
            f"harder-clip-more-step-sizes-{pair[0]}",
            f"V-trace bears larger step sizes the harder the clip ({pair[0]}).",
            "smallest factor between the step sizes at which the error passes 1, from IS to clip "
            f"{order}",
            lambda results: _steps_up([reach(results, one, pair) for one in ("IS", *clips)]),
            least=1.0,
            why=TIE,
            history=(AUDITED,),
        ),
    )


VTRACE_ALL = Figure(
    CATALOGUE["markov-vtrace-all"],
    "Markov chain: V-trace with three clips, three pairs of policies",
    "Appendix",
    ERROR,
    against_step_size,
    main=False,
    published=(Published("markov_chain_step_size_rho9", runs=100, panel="hard", must_match=True),),
    claims=tuple(claim for pair in PAIRS for claim in _harder_clips(pair)),
    notes=NOTES,
)

VARIANCE_ALL = Figure(
    CATALOGUE["markov-variance-all"],
    "Markov chain: variance of the updates, three pairs of policies",
    "the authors' code",
    VARIANCE,
    against_iteration,
    panels=NORM_PANELS,
    quick=QUICK,
    main=False,
    published=(
        Published(
            "markov_chain_variance_l1_rho9", runs=100, panel="hard", frame=None, must_match=True
        ),
    ),
    claims=tuple(
        claim
        for pair in PAIRS
        for claim in (
            *(_lower_variance(other, pair) for other in ("IS", "WIS-Minibatch", *CLIPS)),
            _comparable_late(pair),
        )
    ),
    notes=VARIANCE_NOTES,
)

FIGURES = (STEP_SIZE, VTRACE, VARIANCE_HARD, STEP_SIZE_ALL, VTRACE_ALL, VARIANCE_ALL)
