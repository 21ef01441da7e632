"""Corrections: how the mismatch of behaviour and target is corrected, as a pair (p, w).

Draw slot i with probability proportional to p_i, then add ``w_i * update_i``, summed over the
batch of k. With ratios rho and their mean over the window r (paper, sections 3 and 5):

=================  ===============  =======================================
correction         p_i              w_i
=================  ===============  =======================================
``IS``             1                rho_i / k
``VTrace(clip)``   1                min(rho_i, clip) / k
``WISMinibatch``   1                rho_i / sum of rho over the batch
``WISBuffer``      1                rho_i / (k r)
``NormIS(max)``    1                rho_i / (k max)
``IR``             rho_i            1 / k
``BCIR``           rho_i            r / k
``WISOptimal``     the whole window rho_i / sum of rho over the window
``OnPolicy``       1                1 / k (the data come from the target)
=================  ===============  =======================================

Note the 1/k: a step size multiplies the weighted *sum*, here and everywhere. A correction knows
nothing of values, features or environments; learners and compiled loops know no correction by name.
A new one is a weigher, compiled by :func:`weigher`, and a subclass of :class:`Correction`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numba import njit

MEAN, PARAMETER = 0, 1
"""Where a weigher finds, in its statistics, the window's mean ratio and its own parameter."""


def weigher(function: Callable[..., None]) -> Callable[..., None]:
    """Compile ``function(rho, statistics, out)``, which writes a batch's weights w into ``out``.

    ``rho`` [k] are the ratios of the drawn transitions, ``statistics`` [2] the mean ratio over the
    window (``MEAN``) and the correction's parameter (``PARAMETER``).

    Example:
        >>> import numpy as np
        >>> from gvf.correction import weigher
        >>> @weigher
        ... def halve(rho, statistics, out):
        ...     out[:] = 0.5 * rho / rho.size
        >>> w = np.empty(2)
        >>> halve(np.array([1.0, 3.0]), np.zeros(2), w); w
        array([0.25, 0.75])
    """
    # Not every function has a file to cache beside: one typed at a prompt has none.
    cache = not function.__code__.co_filename.startswith("<")
    return njit(cache=cache, nogil=True)(function)


@weigher
def _by_ratio(rho, statistics, out):
    for i in range(rho.size):
        out[i] = rho[i] / rho.size


@weigher
def _by_clipped_ratio(rho, statistics, out):
    for i in range(rho.size):
        out[i] = min(rho[i], statistics[PARAMETER]) / rho.size


@weigher
def _by_share_of_batch(rho, statistics, out):
    total = 0.0
    for i in range(rho.size):
        total += rho[i]
    for i in range(rho.size):
        out[i] = rho[i] / total if total > 0.0 else 0.0


@weigher
def _by_ratio_to_mean(rho, statistics, out):
    mean = statistics[MEAN]
    for i in range(rho.size):
        out[i] = rho[i] / (rho.size * mean) if mean > 0.0 else 0.0


@weigher
def _by_ratio_to_largest(rho, statistics, out):
    for i in range(rho.size):
        out[i] = rho[i] / (rho.size * statistics[PARAMETER])


@weigher
def _equally(rho, statistics, out):
    for i in range(rho.size):
        out[i] = 1.0 / rho.size


@weigher
def _by_mean(rho, statistics, out):
    for i in range(rho.size):
        out[i] = statistics[MEAN] / rho.size


@dataclass(frozen=True)
class Correction:
    """What all corrections have; subclass it to add one (see the module's docstring).

    A subclass says how slots are drawn, ``draw``: ``"uniform"``, ``"ratio"`` (in proportion to the
    ratios) or ``"window"`` (all slots, no draw), and how they are weighed, ``kernel``. If it has a
    parameter, that is its one field.

    Example:
        >>> from dataclasses import dataclass
        >>> import gvf, numpy as np
        >>> from gvf.correction import weigher
        >>> @weigher
        ... def root(rho, statistics, out):
        ...     out[:] = np.sqrt(rho) / rho.size
        >>> @dataclass(frozen=True)
        ... class SquareRoot(gvf.Correction):
        ...     draw = "uniform"
        ...     kernel = staticmethod(root)
        >>> SquareRoot().weigh([4.0, 9.0], mean_ratio=1.0)
        array([1. , 1.5])
    """

    draw: ClassVar[Literal["uniform", "ratio", "window"]]
    kernel: ClassVar[Callable[..., None]]
    label: ClassVar[str] = ""
    needs_ratios: ClassVar[bool] = True
    """Whether ratios matter to it; without, transitions of an unknown behaviour will do."""

    @property
    def name(self) -> str:
        """The name that figures and tables use, for example ``V-trace(1.0)``."""
        label = self.label or type(self).__name__
        return f"{label}({self.parameter})" if fields(self) else label

    @property
    def parameter(self) -> float:
        """The correction's one number, nan when it has none."""
        return float(getattr(self, fields(self)[0].name)) if fields(self) else float("nan")

    def weigh(self, rho: Any, mean_ratio: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The weights w [k] of drawn transitions, from their ratios [k] and the window's mean."""
        rho = np.ascontiguousarray(rho, np.float64)
        out = np.empty_like(rho)
        self.kernel(rho, np.array([mean_ratio, self.parameter]), out)
        return out


def _positive(correction: Correction, name: str) -> None:
    value = getattr(correction, name)
    if not 0.0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive number, got {value}")


@dataclass(frozen=True)
class IS(Correction):
    """Importance sampling: uniform draws, w = rho / k. Unbiased, with the largest variance.

    Example:
        >>> import gvf
        >>> gvf.IS().weigh([0.5, 8.0], mean_ratio=1.0)
        array([0.25, 4.  ])
    """

    draw = "uniform"
    kernel = staticmethod(_by_ratio)


@dataclass(frozen=True)
class NormIS(Correction):
    """Importance sampling with ratios divided by the largest possible one, so that w <= 1 / k.

    The same as ``IS`` with a smaller step size. The largest ratio is known from the policies
    (:func:`gvf.largest_ratio`).

    Example:
        >>> import gvf
        >>> gvf.NormIS(max_ratio=8.0).weigh([0.5, 8.0], mean_ratio=1.0)
        array([0.03125, 0.5    ])
    """

    max_ratio: float
    draw = "uniform"
    kernel = staticmethod(_by_ratio_to_largest)

    def __post_init__(self) -> None:
        _positive(self, "max_ratio")

    @property
    def name(self) -> str:
        """``NormIS``: the largest ratio belongs to the policies, not to the method."""
        return "NormIS"


@dataclass(frozen=True)
class VTrace(Correction):
    """V-trace(0): ratios clipped from above. Less variance and more bias the lower the clip.

    Example:
        >>> import gvf
        >>> gvf.VTrace(clip=1.0).weigh([0.5, 8.0], mean_ratio=1.0)
        array([0.25, 0.5 ])
    """

    clip: float = 1.0
    draw = "uniform"
    kernel = staticmethod(_by_clipped_ratio)
    label = "V-trace"

    def __post_init__(self) -> None:
        _positive(self, "clip")


@dataclass(frozen=True)
class WISMinibatch(Correction):
    """Weighted importance sampling in the batch: w = rho / sum over the batch, or 0 if that is 0.

    Example:
        >>> import gvf
        >>> gvf.WISMinibatch().weigh([1.0, 3.0], mean_ratio=1.0)
        array([0.25, 0.75])
    """

    draw = "uniform"
    kernel = staticmethod(_by_share_of_batch)
    label = "WIS-Minibatch"


@dataclass(frozen=True)
class WISBuffer(Correction):
    """Weighted importance sampling over the window: w = rho / (k * mean ratio of the window).

    Example:
        >>> import gvf
        >>> gvf.WISBuffer().weigh([1.0, 3.0], mean_ratio=0.5)
        array([1., 3.])
    """

    draw = "uniform"
    kernel = staticmethod(_by_ratio_to_mean)
    label = "WIS-Buffer"


@dataclass(frozen=True)
class WISOptimal(Correction):
    """The whole window in every update, w = rho / sum over the window: what IR is on average.

    The best that a window allows, at the price of n instead of k samples an update.

    Example:
        >>> import gvf
        >>> gvf.WISOptimal().weigh([1.0, 3.0], mean_ratio=2.0)
        array([0.25, 0.75])
    """

    draw = "window"
    kernel = staticmethod(_by_share_of_batch)
    label = "WIS-Optimal"


@dataclass(frozen=True)
class IR(Correction):
    """Importance resampling: draw by ratio, then update as if on-policy, w = 1 / k.

    Its bias, that of WIS-Optimal, falls as 1 / n (Theorem 3.1).

    Example:
        >>> import gvf
        >>> gvf.IR().draw, gvf.IR().weigh([1.0, 3.0], mean_ratio=2.0)
        ('ratio', array([0.5, 0.5]))
    """

    draw = "ratio"
    kernel = staticmethod(_equally)


@dataclass(frozen=True)
class BCIR(Correction):
    """Bias-corrected importance resampling: w = (mean ratio of the window) / k. Unbiased.

    Example:
        >>> import gvf
        >>> gvf.BCIR().weigh([1.0, 3.0], mean_ratio=2.0)
        array([1., 1.])
    """

    draw = "ratio"
    kernel = staticmethod(_by_mean)
    label = "BC-IR"


@dataclass(frozen=True)
class OnPolicy(Correction):
    """No correction: uniform draws, w = 1 / k. Right for data that come from the target policy.

    Also what Sarsa(0) needs, which learns action values and uses no ratio.

    Example:
        >>> import gvf
        >>> gvf.OnPolicy().weigh([1.0, 3.0], mean_ratio=2.0)
        array([0.5, 0.5])
    """

    draw = "uniform"
    kernel = staticmethod(_equally)
    label = "On-policy"
    needs_ratios = False
