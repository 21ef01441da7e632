"""The diagnosis of a window: statistics of its ratios, and a comparison of corrections.

    effective sample size   (sum rho)^2 / sum rho^2
    mean ratio              r = (1/n) sum rho, with standard error sd(rho) / sqrt(n); rho - 1 is a
                            martingale difference, so this holds for a Markov stream too

The tail index is in :mod:`gvf.ratios`, variance and bias in
:mod:`gvf.diagnosis.moments`, IS against BC-IR in :mod:`gvf.diagnosis.variance_comparison`, the
advice in :mod:`gvf.diagnosis.diagnosis`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.checks import brief, whole
from gvf.corrections import BCIR, IR, IS, RATIO, TRACE, Correction, VTrace, WISMinibatch
from gvf.diagnosis.diagnosis import Diagnosis
from gvf.diagnosis.moments import WindowSums, all_moments
from gvf.diagnosis.show_diagnosis import histogram
from gvf.diagnosis.variance_comparison import compare
from gvf.diagnosis.window_updates import Updates, updates_of_array
from gvf.policies.action_checks import generator, numpy_array
from gvf.ratios import tail_index, trusted_up_to
from gvf.sampling.prefix_sums import LARGEST_RATIO
from gvf.sampling.ratio_ring import bad_weight

DEFAULT_CORRECTIONS: tuple[Correction, ...] = (IS(), BCIR(), IR(), VTrace(1.0), WISMinibatch())
"""The corrections of a diagnosis by default."""


def diagnose(
    ratios: Any,
    updates: Any,
    *,
    batch_size: int = 16,
    corrections: Iterable[Correction] | None = None,
    batches: int = 1000,
    rng: np.random.Generator | None = None,
    estimated: bool = False,
) -> Diagnosis:
    """Compare corrections on a window, recommend one, and warn if the window cannot be trusted.

    The window is given: means and variances are over the draws of a mini-batch. They are exact for
    every correction that gives a row the same weight in every batch, and simulated for others, such
    as WIS-Minibatch. For the window of a learner use :meth:`gvf.Learner.diagnose`.

    Args:
        ratios: the importance ratios of the window's transitions, [n]. Corrections with a trace,
            such as :class:`gvf.corrections.EmphaticIR`, need ratios and traces, [2, n], as
            :func:`gvf.corrections.carried.carried` computes them.
        updates: the on-policy update of each transition, [n, d]: for example the TD error times the
            features, or a gradient. One number per transition, [n], is also accepted.
        batch_size: the number of transitions drawn for an update, k.
        corrections: the corrections to compare; by default IS, BC-IR, IR, V-trace(1.0) and
            WIS-Minibatch. If masses change while learning, those at insertion are used.
        batches: the number of mini-batches to simulate, if simulation is needed.
        rng: the generator of the simulation; by default the same numbers every time.
        estimated: True if the behaviour's probabilities were estimated; the diagnosis says so.

    Returns:
        A :class:`gvf.Diagnosis`.

    Raises:
        ValueError: if the window is empty, all ratios are 0, or shapes do not match.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> ratios, updates = rng.lognormal(-0.5, 1.0, 4000), rng.normal(size=(4000, 2))
        >>> found = gvf.diagnose(ratios, updates)
        >>> found.recommendation
        IR()
        >>> round(found.effective_sample_size), round(found.k_hat, 2), found.k_threshold
        (1597, 0.11, 0.7)
        >>> round(found.moments["IS"].variance.value / found.moments["BC-IR"].variance.value, 1)
        2.4
        >>> found = gvf.diagnose(
        ...     ratios,
        ...     updates,
        ...     corrections=[gvf.corrections.IR(), gvf.corrections.BCInterpolated(0.5)],
        ... )
        >>> list(found.moments)
        ['IR', 'BC-Interpolated(0.5)']
    """
    array = np.asarray(numpy_array(ratios, "ratios"), np.float64)
    if array.ndim != 1 and not (array.ndim == 2 and len(array) == 2):
        raise ValueError(
            "ratios must be [n], one for each transition, or [2, n] with traces, got shape "
            f"{array.shape}"
        )
    inputs = np.ascontiguousarray(np.atleast_2d(array))
    vectors, dimensions = updates_of_array(updates)
    if len(vectors.x) != inputs.shape[1]:
        raise ValueError(
            f"updates has {len(vectors.x)} rows, but the window has {inputs.shape[1]} ratios; "
            "give one update for each ratio"
        )
    return diagnose_updates(
        inputs,
        vectors,
        dimensions,
        batch_size=batch_size,
        corrections=corrections,
        batches=batches,
        rng=rng,
        estimated=estimated,
    )


def diagnose_updates(
    inputs: Floats,
    updates: Updates,
    dimensions: int,
    *,
    batch_size: int,
    corrections: Iterable[Correction] | None,
    batches: int,
    rng: np.random.Generator | None,
    estimated: bool = False,
) -> Diagnosis:
    """Diagnose as :func:`diagnose` does, for updates in the form of :class:`Updates`.

    Args:
        inputs: the ratios, and the trace if there is one, [C, n]. Corrections without a trace use
            the ratios only.
        updates: the updates of the window's transitions.
        dimensions: the dimension of an update, d.
        batch_size: as in :func:`diagnose`.
        corrections: as in :func:`diagnose`; a trace must be the one that made `inputs`.
        batches: as in :func:`diagnose`.
        rng: as in :func:`diagnose`.
        estimated: as in :func:`diagnose`.
    """
    whole("batch_size", batch_size, 1)
    whole("batches", batches, 2)
    rng = np.random.default_rng(0) if rng is None else generator(rng)
    listed = _check_corrections(
        DEFAULT_CORRECTIONS if corrections is None else corrections, len(inputs)
    )
    ratios = inputs[RATIO]
    _check_mass(ratios)
    window = WindowSums.of(inputs, ratios, updates, dimensions)
    emphatic = None
    if any(correction.emphatic for correction in listed):
        emphasis = ratios * inputs[TRACE]
        if not (emphasis.any() and np.isfinite(emphasis).all()):
            raise ValueError("the products of ratios and traces must be finite, and not all 0")
        emphatic = WindowSums.of(inputs, emphasis, updates, dimensions)
    n, mean = len(ratios), window.mean
    # IS and BC-IR are always compared, even if they are not shown.
    needed = dict.fromkeys([IS(), BCIR(), *listed])
    results = all_moments(
        tuple(needed), window, emphatic, batch_size=batch_size, batches=batches, rng=rng
    )
    moments = dict(zip(needed, results, strict=True))
    pair = moments[IS()], moments[BCIR()]
    # In units of the mean, because squares of large ratios may overflow.
    spread = float((ratios / mean).std(ddof=1)) if n > 1 else math.nan
    return Diagnosis(
        window=n,
        batch_size=batch_size,
        effective_sample_size=window.effective_sample_size,
        emphatic_sample_size=math.nan if emphatic is None else emphatic.effective_sample_size,
        zero_ratios=float(np.mean(ratios == 0.0)),
        max_ratio=float(ratios.max()),
        max_share=float(window.shares.max()),
        mean_ratio=mean,
        mean_ratio_error=mean * spread / math.sqrt(n),
        k_hat=tail_index(ratios),
        k_threshold=trusted_up_to(n),
        moments={correction.name: moments[correction] for correction in listed},
        comparison=compare(*pair, ratios, mean, window.squares, batch_size),
        bias_windows=window.bias_windows,
        histogram=histogram(ratios),
        estimated=estimated,
    )


def _check_corrections(corrections: Iterable[Correction], rows: int) -> tuple[Correction, ...]:
    if isinstance(corrections, Correction):
        raise TypeError(f"corrections must be several, got {brief(corrections)}; put it in a list")
    several = tuple(corrections)
    for correction in several:
        if not isinstance(correction, Correction):
            raise TypeError(
                f"corrections must be like gvf.corrections.IR(), got {brief(correction)}"
            )
        if correction.refresh is not None:
            raise ValueError(
                f"the masses of {correction.name} change as it learns, which ratios do not tell: "
                "diagnose other corrections"
            )
        if correction.rows > rows:
            raise ValueError(
                f"{correction.name} carries a quantity along the stream, which ratios alone do not "
                "tell: give ratios and traces, [2, n], or use the diagnose method of a learner "
                "that has this correction"
            )
    names = Counter(correction.name for correction in several)
    if not names:
        raise ValueError("corrections is empty: name at least one, or leave it out")
    name, count = names.most_common(1)[0]
    if count > 1:
        raise ValueError(f"corrections has {count} of the name {name}; names must differ")
    return several


def _check_mass(ratios: Floats) -> None:
    if not len(ratios):
        raise ValueError("the window is empty: collect some transitions first")
    good = (ratios >= 0.0) & (ratios <= LARGEST_RATIO)
    if not good.all():
        at = int(np.argmin(good))
        raise ValueError(bad_weight(ratios[at], str(at)))
    if not ratios.any():
        raise ValueError(
            f"all {len(ratios)} ratios in the window are 0, so nothing in it tells of the target "
            "policy; collect transitions with actions that the target takes"
        )
