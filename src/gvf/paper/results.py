"""Results of a study as arrays, and their averages over runs, resampled.

Methods of a run share its stream and draws, so runs are the unit: what is compared is averaged over
the same runs. Confidence comes from the bootstrap, which draws runs with replacement, the same ones
for all methods: a comparison is paired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.learner.linear import Array
from gvf.study.variance import NORMS, VarianceStudy

if TYPE_CHECKING:
    from gvf.study.store import AnyStudy, Store

RESAMPLES = 2000
"""Bootstrap samples behind an interval."""
SEED = 20190
"""Of the bootstrap: the same results give the same intervals."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Cell:
    """One method on one pair at one gap, over all runs R and lanes L.

    Attributes:
        lanes: step sizes, or (u0, eta).
        error: averaged over the run, float64[R, L]; inf where it diverged.
        final: at the end of the run, float64[R, L].
        curve: averages over parts of the run, float64[R, L, points].
        film: predictions along a film, float64[R, L, m], where there is one.
    """

    lanes: tuple[Any, ...]
    error: Array
    final: Array
    curve: Array
    film: Array | None = None


@dataclass(frozen=True)
class Results:
    """All results of a study.

    Attributes:
        study: whose.
        protocol: "paper" or "authors".
        cells: by pair, gap and method; of a study of update variance there are none.
        variance: by pair and method, float64[R, iterations, 3] (norms L1, L2 and the signed sum).

    Example:
        >>> from gvf.paper import Results
        >>> from gvf.study import Study
        >>> from gvf.study.engine import run
        >>> from gvf.study.store import Store
        >>> import tempfile
        >>> study = Study("s", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=20, runs=3)
        >>> store = Store(study, tempfile.mkdtemp())
        >>> _ = run(study, store.out)
        >>> results = Results.read(store, "paper")
        >>> results.cell("IR", pair=("hard", "hard")).error.shape
        (3, 2)
    """

    study: AnyStudy
    protocol: str
    cells: dict[tuple[Pair, int, str], Cell]
    variance: dict[tuple[Pair, str], Array]

    @classmethod
    def read(cls, store: Store, protocol: str) -> Results:
        """The results that a store has of a finished study."""
        study, table = store.study, store.read()
        if isinstance(study, VarianceStudy):
            shape = (study.runs, len(study.pairs), len(study.methods), len(study.iterations))
            columns = [table[name].to_numpy().reshape(shape) for name in NORMS]
            values = np.stack(columns, axis=-1)
            variance = {
                (pair, method): values[:, i, j]
                for i, pair in enumerate(study.pairs)
                for j, method in enumerate(study.methods)
            }
            return cls(study, protocol, {}, variance)
        grid = (study.runs, len(study.pairs), len(study.gaps), -1)
        error, final = (table[name].to_numpy().reshape(grid) for name in ("error", "final"))

        def lists(name: str) -> Array:
            return table[name].combine_chunks().flatten().to_numpy().reshape(*error.shape, -1)

        curve = lists("curve")
        film = lists("film") if "film" in table.column_names else None
        ends = np.cumsum([0, *(len(study.lanes(method)) for method in study.methods)])
        cells = {}
        for i, pair in enumerate(study.pairs):
            for j, gap in enumerate(study.gaps):
                for m, method in enumerate(study.methods):
                    at = np.s_[:, i, j, ends[m] : ends[m + 1]]
                    lanes = study.lanes(method)
                    shown = None if film is None else film[at]
                    cells[pair, gap, method] = Cell(lanes, error[at], final[at], curve[at], shown)
        return cls(study, protocol, cells, {})

    @property
    def runs(self) -> int:
        """How many there are."""
        return self.study.runs

    def average(self, values: Array) -> Array:
        """Average over runs: [R, ...] to [1 + B, ...]; infinite where a run that counts is."""
        flat = values.reshape(self.runs, -1)
        finite, weights = np.isfinite(flat), resampling(self.runs)
        mean = weights @ np.where(finite, flat, 0.0)
        if not finite.all():
            mean[weights @ ~finite > 0] = np.inf
        return mean.reshape(-1, *values.shape[1:])

    def errors(self, method: str, gap: int | None = None, pair: Pair | None = None) -> Array:
        """Average error of each lane, float64[1 + B, L]; by default at the only gap and pair."""
        return self.average(self.cell(method, gap, pair).error)

    def best(self, method: str, gap: int | None = None, pair: Pair | None = None) -> Array:
        """Average error of the best lane, chosen anew in every sample: float64[1 + B]."""
        return self.errors(method, gap, pair).min(axis=1)

    def cell(self, method: str, gap: int | None = None, pair: Pair | None = None) -> Cell:
        """The results of one method; by default at the only gap and pair."""
        assert not isinstance(self.study, VarianceStudy)
        return self.cells[pair or _only(self.study.pairs), gap or _only(self.study.gaps), method]


@cache
def resampling(runs: int) -> Array:
    """How often each run counts, over the number of runs: float64[1 + B, R].

    The first row is the runs as they are; each of the others is one bootstrap sample. Results with
    as many runs are resampled alike, whatever their study: comparisons between studies are paired.

    Example:
        >>> from gvf.paper.results import resampling
        >>> resampling(2)[0].tolist(), resampling(2).shape
        ([0.5, 0.5], (2001, 2))
    """
    rng = np.random.default_rng([SEED, runs])
    drawn = rng.multinomial(runs, np.full(runs, 1 / runs), RESAMPLES)
    weights = np.concatenate([np.ones((1, runs)), drawn]) / runs
    weights.flags.writeable = False
    return weights


def _only(values: Iterable[Any]) -> Any:
    (value,) = values
    return value


def standard_error(values: Array) -> Array:
    """Standard error of the mean over the first axis; nan where there is none.

    Example:
        >>> from gvf.paper.results import standard_error
        >>> import numpy as np
        >>> standard_error(np.array([[1.0, 2.0], [3.0, np.inf]])).tolist()
        [1.0, nan]
    """
    runs = len(values)
    if runs < 2:
        return np.full(values.shape[1:], np.nan)
    finite = np.isfinite(values).all(axis=0)
    kept = np.where(finite, values, 0.0)
    # Values that diverge have squares that overflow before they do; a power of two rounds nothing.
    scale = np.ldexp(0.5, np.frexp(np.abs(kept).max(axis=0))[1])
    spread = (kept / scale).std(axis=0, ddof=1) / np.sqrt(runs) * scale
    return np.where(finite, spread, np.nan)
