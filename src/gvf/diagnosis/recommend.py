"""Advice from a diagnosis: one correction, with the reason for it.

The variances of IS and BC-IR at the present weights are known exactly
(:mod:`gvf.diagnosis.variance_comparison`). But weights change: if ratios and updates are unrelated,
as early in learning, the variance of IS is about n / (effective sample size) times larger (Theorem
3.4). IS is therefore recommended only if its present advantage exceeds this factor. Two decisions
remain: whether the bias of IR matters (:mod:`gvf.diagnosis.moments`), and whether the window can be
trusted at all (:mod:`gvf.ratios`). V-trace and WIS-Minibatch are never recommended,
because their biases do not vanish with more transitions. Emphatic corrections aim at another
update, that of emphatic TD, so the advice does not compare them with the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gvf.corrections import BCIR, IR, IS, Correction
from gvf.findings import Code, Finding

if TYPE_CHECKING:
    from gvf.diagnosis.diagnosis import Diagnosis

EQUAL_FACTOR = 1.1
"""Variances within this factor of each other count as equal."""
TRANSITIONS_PER_SAMPLE = 2.0
"""Below this many transitions per effective sample the ratios hardly vary."""
LASTING_WINDOWS = 100
"""A bias that outweighs chance only after this many windows does not matter."""


def recommend(diagnosis: Diagnosis) -> tuple[Correction, Finding]:
    """Return the recommended correction, and the reason."""
    reweighted = diagnosis.comparison.reweighted.variance
    resampled = diagnosis.comparison.resampled.variance
    if diagnosis.max_ratio == diagnosis.mean_ratio:
        return IS(), Finding(Code.EQUAL_RATIOS, "note")
    if reweighted == resampled == 0.0:
        return IR(), Finding(Code.NOTHING_VARIES, "note")
    if math.isinf(reweighted):
        return IR(), Finding(Code.INFINITE_VARIANCE, "note")
    gain, loss = _quotient(reweighted, resampled), _quotient(resampled, reweighted)
    unrelated = diagnosis.window / diagnosis.effective_sample_size
    if loss > unrelated:
        return IS(), Finding(Code.SHORT_UPDATES, "note", {"loss": loss})
    if gain < EQUAL_FACTOR and unrelated < TRANSITIONS_PER_SAMPLE:
        return IS(), Finding(Code.MILD_RATIOS, "note")
    variance = "less" if gain >= EQUAL_FACTOR else "equal" if loss < EQUAL_FACTOR else "more"
    fields = {"variance": variance, "gain": gain, "loss": loss, "unrelated": unrelated}
    if diagnosis.k_hat > diagnosis.k_threshold:
        return IR(), Finding(Code.UNTRUSTED_MEAN, "note", fields)
    fields["windows"] = windows = diagnosis.bias_windows
    if windows < LASTING_WINDOWS:
        return BCIR(), Finding(Code.LASTING_BIAS, "note", fields)
    return IR(), Finding(Code.SMALL_BIAS, "note", fields)


def _quotient(first: float, second: float) -> float:
    return first / second if second > 0.0 else math.inf
