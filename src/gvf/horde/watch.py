r"""Watching the errors of all questions while they learn, without any truth.

After every 64th step the newest rows are looked at with the present weights: as many as an update
draws, so a look costs about a 64th of the updates. So the averages below are over some rows of the
stream, in runs of neighbours, and not over all. Errors are off-policy: under the behaviour, the
ratio times the TD error has the mean that the TD error has under the target. A row gives

    y = rho (C + gamma v(s') - v(s)),      z = rho x   (y x = delta z, the update of TD(0)).

The unexpected demon error (UDE; White 2015) of a question is the size of a recent average of y over
its long-run standard deviation. If nothing changes it is small, because the recent average is near
0: about the root of 1 / (2 RECENT) for independent errors. It rises if a sensor or the world has
changed, and falls again as the question is learned anew. Values without a constant feature may have
a mean error, which UDE shows for ever. It is no measure of quality: a question whose errors are
large and stay the same may have a small UDE. :mod:`gvf.horde.return_checks` compares predictions
with returns.

The recent unsigned projected error estimate (RUPEE; White 2015) has a unit, that of the cumulant.
With m a recent average of y x, and h a regression of y on x,

    h += a_h [y - h . x] x,      RUPEE = sqrt(|h . m|),

it estimates the root of the projected Bellman error under the behaviour, ``E[y x] E[x x]^-1
E[y x]``. At the fixed point noise remains: at most the root of features / RECENT, and at most that
of SECONDARY, times the standard deviation of y. RUPEE needs two arrays of the size of the weights.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.horde.layout import Ints, Layout

EVERY = 64
"""The number of steps between two looks."""
RECENT = 200
"""The number of rows looked at that a recent average is about."""
LONG_RUN = 20_000
"""The number of rows looked at that the standard deviation is about."""
SECONDARY = 0.1
"""The step size of h times the largest squared length of features so far."""

_BY_PLACE = ("seen", "recent", "mean", "square")
_BY_FEATURE = ("secondary", "gradient")


class Predicts(Protocol):
    """Weights, of which only the predictions are needed here."""

    def predict(self, x: Array, /) -> Array:
        """Return the values of features [m, ...] at all places, [m, G]."""
        ...


class Watch:
    """The averages of the errors of all questions.

    Args:
        layout: the layout of the questions.
        rows: the number of rows to look at.
        size: the number of features if RUPEE is wanted, otherwise 0.
        dtype: the type of the two arrays for RUPEE.

    Attributes:
        seen: the number of rows looked at, for each place, int64[G].
        recent: the recent average of y, float64[G], not yet corrected for its start at 0.
        mean: the long-run average of y.
        square: the long-run average of y^2.
        secondary: h for RUPEE, [size, G].
        gradient: m for RUPEE, the recent average of y x.
        longest: the largest squared length of features so far.
    """

    def __init__(self, layout: Layout, rows: int, size: int, dtype: np.dtype[Any]) -> None:
        self._layout, self.rows = layout, min(rows, EVERY)
        self.seen = np.zeros(len(layout), np.int64)
        self.recent, self.mean, self.square = np.zeros((3, len(layout)))
        self.secondary, self.gradient = np.zeros((2, size, len(layout)), dtype)
        self.longest = 0.0

    def look(
        self, columns: Arrays, steps: int, weights: Predicts, ratios: Floats, resting: Ints
    ) -> Array | None:
        """Look at the newest L rows in order, with the present weights.

        Return the values of their next states, [L, G], unless these are on a device.

        Args:
            columns: the columns of the window: x, x_next, cumulant [n, C], continuation [n, 1 + Z].
            steps: the number of transitions observed so far.
            weights: the weights.
            ratios: the ratios of all groups, float64[groups, L].
            resting: the places that are left out, because they pause or do not know these rows.
        """
        layout, newest = self._layout, newest_rows(columns, steps, ratios.shape[1])
        rows = {name: column[newest] for name, column in columns.items()}
        values = weights.predict(np.concatenate([rows["x"], rows["x_next"]]))  # [2 L, G]
        usable = np.ones(len(layout), np.bool_)
        usable[resting] = False
        # Regression needs the errors of all rows; averages take one place after the other.
        errors = np.empty((ratios.shape[1], len(layout) if len(self.secondary) else 0))
        _average(
            (values, rows["cumulant"], rows["continuation"], ratios),
            (layout.group, layout.cumulant, layout.source, layout.scale),
            (self.seen, self.recent, self.mean, self.square),
            usable,
            errors,
        )
        if len(self.secondary):
            self._regress(_as_dense(rows["x"], len(self.secondary)), errors, usable)
        return values[ratios.shape[1] :]

    def _regress(self, x: Floats, y: Floats, usable: NDArray[np.bool_]) -> None:
        """Change h and m by the rows x [L, size] one after the other, in a few products.

        The residual of a row depends on the rows before by their products, as in
        :mod:`gvf.horde.dense_weights`.
        """
        rate, joined = self._joined(x)
        x = x.astype(self.secondary.dtype)
        residual = np.linalg.solve(joined, y - x @ self.secondary)
        residual[:, ~usable] = 0.0
        self.secondary += x.T @ (rate * residual).astype(x.dtype)
        kept = (1.0 - 1.0 / RECENT) ** np.arange(len(x) + 1)
        self.gradient *= np.where(usable, kept[-1], 1.0).astype(x.dtype)
        self.gradient += x.T @ (kept[-2::-1, None] / RECENT * y).astype(x.dtype)

    def _joined(self, x: Floats) -> tuple[float, Floats]:
        """Return a_h, and the matrix [L, L] that maps residuals to those without earlier rows."""
        products = x @ x.T
        self.longest = max(self.longest, float(products.diagonal().max()))
        rate = SECONDARY / self.longest if self.longest > 0.0 else 0.0
        return rate, np.eye(len(x)) + rate * np.tril(products, -1)

    def ude(self, smallest: Floats) -> Floats:
        """Return UDE at all places, float64[G]; nan if no row was looked at.

        Args:
            smallest: the standard deviation below which errors are rounding errors, float64[G].
        """
        recent = self._started(self.recent, RECENT)
        mean, square = (self._started(part, LONG_RUN) for part in (self.mean, self.square))
        deviation = np.sqrt(np.maximum(square - mean * mean, 0.0)) + smallest
        with np.errstate(invalid="ignore"):
            return np.where(deviation == 0.0, 0.0, np.abs(recent) / deviation)

    def rupee(self) -> Floats | None:
        """Return RUPEE at all places, float64[G]; None if it was not wanted."""
        if not len(self.secondary):
            return None
        product = np.einsum("ij,ij->j", self.secondary, self.gradient, dtype=np.float64)
        return np.sqrt(np.abs(self._started(product, RECENT)))

    def _started(self, average: Floats, length: int) -> Floats:
        """Correct an average for its start at 0; nan if it has no row yet."""
        weight = 1.0 - (1.0 - 1.0 / length) ** self.seen
        return np.divide(average, weight, out=np.full(len(average), np.nan), where=weight > 0.0)

    def moved(self, other: Watch, was: Ints, now: Ints) -> None:
        """Take over what another watch knows: that of its places `was` for the places `now`."""
        for name in _BY_PLACE:
            getattr(self, name)[now] = getattr(other, name)[was]
        for name in _BY_FEATURE:
            getattr(self, name)[:, now] = getattr(other, name)[:, was]
        self.longest = other.longest

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change, with the places as their first axis."""
        named = {name: getattr(self, name).T.copy() for name in (*_BY_PLACE, *_BY_FEATURE)}
        return {**named, "longest": np.array(self.longest)}

    def load_state_dict(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`state_dict` returned."""
        for name in (*_BY_PLACE, *_BY_FEATURE):
            getattr(self, name)[...] = arrays[name].T
        self.longest = float(arrays["longest"])


def newest_rows(columns: Arrays, steps: int, count: int) -> Ints:
    """Return the rows of the newest transitions in order; the t-th is in row t mod n."""
    return (steps - count + np.arange(count)) % len(columns["continuation"])


@njit(cache=True, nogil=True)
def _average(rows, layout, averages, usable, errors):
    """Change the averages of each place by the errors y of all rows, one after the other.

    Unset `usable` where one is too large or not finite. Write y into `errors`, 0 where not usable,
    unless it is empty.
    """
    values, cumulants, continuations, ratios = rows
    group, cumulant, source, scale = layout
    seen, recent, mean, square = averages
    count, fast, slow = ratios.shape[1], 1.0 / RECENT, 1.0 / LONG_RUN
    sums = np.zeros(count)
    for g in range(usable.size):
        for i in range(count):
            gamma = scale[g] * continuations[i, source[g]]
            error = cumulants[i, cumulant[g]] + gamma * values[count + i, g] - values[i, g]
            sums[i] = ratios[group[g], i] * error
            if not sums[i] * sums[i] < np.inf:
                usable[g] = False
        if usable[g]:
            seen[g] += count
            for i in range(count):
                recent[g] += fast * (sums[i] - recent[g])
                mean[g] += slow * (sums[i] - mean[g])
                square[g] += slow * (sums[i] * sums[i] - square[g])
        if errors.size > 0:
            for i in range(count):
                errors[i, g] = sums[i] if usable[g] else 0.0


def _as_dense(x: Array, size: int) -> Floats:
    """Return features [L, ...] as float64[L, size]; active ones are counted."""
    if x.dtype.kind == "f":
        return x.astype(np.float64)
    dense = np.zeros((len(x), size))
    np.add.at(dense, (np.arange(len(x))[:, None], x), 1.0)
    return dense
