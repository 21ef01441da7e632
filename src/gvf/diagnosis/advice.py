"""Advice from a diagnosis: one correction with its reason, and warnings.

The variances of IS and BC-IR at the present weights are known exactly
(:mod:`gvf.diagnosis.comparison`). But weights change: if ratios and updates are unrelated, as early
in learning, the variance of IS is about n / (effective sample size) times larger (Theorem 3.4). IS
is therefore recommended only if its present advantage exceeds this factor. Two decisions remain:
whether the bias of IR matters (:mod:`gvf.diagnosis.moments`), and whether the window can be trusted
at all (:mod:`gvf.diagnosis.tail`). V-trace and WIS-Minibatch are never recommended, because their
biases do not vanish with more transitions. Emphatic corrections aim at another update, that of
emphatic TD, so the advice does not compare them with the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gvf.correction import BCIR, IR, IS, Correction

if TYPE_CHECKING:
    from gvf.diagnosis.ratios import RatioStatistics
    from gvf.diagnosis.record import Diagnosis

EQUAL_FACTOR = 1.1
"""Variances within this factor of each other count as equal."""
TRANSITIONS_PER_SAMPLE = 2.0
"""Below this many transitions per effective sample the ratios hardly vary."""
LASTING_WINDOWS = 100
"""A bias that outweighs chance only after this many windows does not matter."""
SMALL_SAMPLE = 100
"""Below this effective sample size a mean has more than a tenth of the noise of one sample."""
STANDARD_ERRORS = 4
"""A mean ratio within this many of 1 is due to chance, even in thousands of diagnoses."""
EMPTY_SHARE = 0.05
"""A larger share of empty mini-batches gives a warning."""


def recommend(found: Diagnosis) -> tuple[Correction, str]:
    """Return the recommended correction, and the reason as a sentence."""
    reweighted = found.comparison.reweighted.variance
    resampled = found.comparison.resampled.variance
    if found.max_ratio == found.mean_ratio:
        return IS(), "All ratios are the same, so there is nothing that resampling could gain."
    if reweighted == resampled == 0.0:
        return IR(), (
            "No update varies on this window, so nothing tells the corrections apart: "
            "diagnose again after some learning."
        )
    if math.isinf(reweighted):
        return IR(), (
            "The ratios are so large that the variance of IS overflows; no ratio multiplies an "
            "update of IR."
        )
    gain, loss = _quotient(reweighted, resampled), _quotient(resampled, reweighted)
    unrelated = found.window / found.effective_sample_size
    if loss > unrelated:
        return IS(), (
            f"IS has {_times(loss)} less variance than resampling at the present weights, since "
            "the larger a ratio is, the shorter is the update."
        )
    if gain < EQUAL_FACTOR and unrelated < TRANSITIONS_PER_SAMPLE:
        return IS(), "IS has no bias, and with ratios as mild as these little variance to lose."
    elsewhere = (
        f"{_times(unrelated)} less where ratios say nothing of updates, as early in learning"
    )
    if gain >= EQUAL_FACTOR:
        less = f"has {_times(gain)} less variance than IS at the present weights"
    elif loss < EQUAL_FACTOR:
        less = f"has the variance of IS at the present weights, and {elsewhere}"
    else:
        less = f"has {_times(loss)} the variance of IS at the present weights, but {elsewhere}"
    if found.k_hat > found.k_threshold:
        return IR(), (
            f"IR {less}; no ratio multiplies an update, nor does their mean, "
            "which cannot be trusted here."
        )
    windows = found.bias_windows
    if windows < LASTING_WINDOWS:
        return BCIR(), (
            f"BC-IR {less}; it has no bias, and that of IR would outweigh chance after "
            f"{_about(windows)} windows."
        )
    bias = f"outweighs chance only after {_about(windows)} windows" if windows < 1e6 else "is small"
    return IR(), f"IR {less}; its bias {bias}."


def warnings(found: Diagnosis | RatioStatistics) -> Iterator[str]:
    """Yield warnings about the window, with remedies."""
    off, error = abs(found.mean_ratio - 1.0), found.mean_ratio_error
    if off > max(STANDARD_ERRORS * error, 1e-6):
        far = f"{off / error:.0f} standard errors from 1" if error > 1e-6 * off else "not 1"
        # False if k-hat is nan, because there are too few large ratios.
        tail_is_known = found.k_hat <= found.k_threshold
        yield f"The mean ratio is {found.mean_ratio:.3g}, {far}: " + (
            "check the behaviour's probabilities."
            if tail_is_known
            else "the behaviour's probabilities are wrong, or the window misses rare large ratios."
        )
    if found.k_hat > found.k_threshold:
        yield (
            f"The ratios have a heavy tail, k-hat {found.k_hat:.2f} > {found.k_threshold:.2f}: "
            "these numbers rest on a few transitions and the next one may change them; "
            "choose a behaviour closer to the target."
        )
    if found.effective_sample_size < SMALL_SAMPLE:
        yield (
            f"The window is worth {found.effective_sample_size:.3g} transitions from the target, "
            f"and one of them holds {percent(found.max_share)} of the mass: enlarge the window, "
            "or choose a behaviour closer to the target."
        )
    if found.emphatic_sample_size < SMALL_SAMPLE:
        yield (
            f"Weighted by rho F, the window is worth {found.emphatic_sample_size:.3g} transitions: "
            "enlarge the window. With an emphatic correction a smaller beta helps, too."
        )
    empty = found.zero_ratios**found.batch_size
    if empty > EMPTY_SHARE:
        yield (
            f"{100 * empty:.0f} % of uniform mini-batches hold zero ratios only, and teach "
            "nothing: resample, or draw more at a time."
        )


def percent(share: float) -> str:
    """Format a share: 0.5 %, 37 %, 120 %."""
    share = share if share > 1e-9 else 0.0  # a rounding error
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def _quotient(one: float, other: float) -> float:
    return one / other if other > 0.0 else math.inf


def _times(factor: float) -> str:
    return "infinitely" if math.isinf(factor) else f"{_about(factor)} times"


def _about(number: float) -> str:
    """Format a number with two digits: 1.4, 37, 5,200."""
    return f"{number:.2g}" if number < 10 else f"{float(f'{number:.2g}'):,.0f}"
