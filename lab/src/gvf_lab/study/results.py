"""Results of a study as arrays, with bootstrapped averages over runs.

The methods of a run share its stream and draws, so they are compared over the same runs. Confidence
intervals come from the bootstrap, which draws runs with replacement. All methods get the same
resampled runs, so comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.study.base_study import BaseStudy

if TYPE_CHECKING:
    import pyarrow as pa

    from gvf_lab.study.store import Store

RESAMPLES = 2000
"""Bootstrap samples for an interval."""
SEED = 20190
"""The seed of the bootstrap; it is fixed, so equal results give equal intervals."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class MethodResults:
    """The results of one method on one pair at one gap, over all runs R and choices L.

    Attributes:
        choices: step sizes, (u0, eta) pairs, or iterations.
        columns: the measured columns by name, float64[R, L] or [R, L, m].

    Example:
        >>> import numpy as np
        >>> from gvf_lab.study import MethodResults
        >>> MethodResults((0.5, 1.0), {"error": np.ones((3, 2))}).error.shape
        (3, 2)
    """

    choices: tuple[Any, ...]
    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @property
    def error(self) -> Array:
        """The error averaged over the run, [R, L]; inf if the run diverged."""
        return self["error"]

    @property
    def final(self) -> Array:
        """The error at the end of the run, [R, L]."""
        return self["final"]

    @property
    def curve(self) -> Array:
        """Averages of the error over equal parts of the run, [R, L, points]."""
        return self["curve"]


@dataclass(frozen=True)
class Results:
    """All results of a study.

    Attributes:
        study: the study.
        protocol: "paper" or "authors".
        by_method: the results by pair, gap and method.
        store: the store that they were read from, if any.
        once: True to choose the best step size once, by all runs; False to choose it anew in every
            bootstrap sample.
        chosen_by: results of other runs of the same study, which choose the best step sizes; None
            if these runs choose them.

    Example:
        >>> from gvf_lab.study import Results, Store, Study, run
        >>> import tempfile
        >>> study = Study("s", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=20, runs=3)
        >>> store = Store(study, tempfile.mkdtemp())
        >>> _ = run(study, store.out)
        >>> results = Results.read(store)
        >>> results.of("IR", pair=("hard", "hard")).error.shape
        (3, 2)
    """

    study: Any
    protocol: str
    by_method: Mapping[tuple[Pair, int | None, str], MethodResults]
    store: Store | None = field(default=None, repr=False, compare=False)
    once: bool = False
    chosen_by: Results | None = None
    _errors: dict[tuple[str, int | None, Pair | None], Array] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def read(cls, store: Store, protocol: str = "") -> Results:
        """Read the results of a finished study from a store."""
        study = store.study
        return cls(study, protocol or study.protocol, _cells(study, store.read()), store)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.study.runs

    def average(self, values: Array) -> Array:
        """Average over runs: [R, ...] to [1 + B, ...]; inf if a run in the sample is not finite."""
        flat = values.reshape(self.runs, -1)
        finite, weights = np.isfinite(flat), resampling(self.runs)
        mean = weights @ np.where(finite, flat, 0.0)
        diverged = np.flatnonzero(~finite.all(axis=0))
        if diverged.size:
            counts = weights @ ~finite[:, diverged] > 0
            mean[:, diverged] = np.where(counts, np.inf, mean[:, diverged])
        return mean.reshape(-1, *values.shape[1:])

    def errors(self, method: str, gap: int | None = None, pair: Pair | None = None) -> Array:
        """Average each choice's error, float64[1 + B, L]; gap and pair default to the only one."""
        key = method, gap, pair
        if key not in self._errors:  # many claims use the same averages
            self._errors[key] = self.average(self.of(method, gap, pair).error)
            self._errors[key].flags.writeable = False
        return self._errors[key]

    def chosen(self, method: str, gap: int | None = None, pair: Pair | None = None) -> Array:
        """Return the number of the choice with the smallest error, int64[1 + B]."""
        numbers = (self.chosen_by or self).errors(method, gap, pair).argmin(axis=1)
        fixed = self.once or self.chosen_by is not None
        return np.full_like(numbers, numbers[0]) if fixed else numbers

    def best(self, method: str, gap: int | None = None, pair: Pair | None = None) -> Array:
        """Return the error of the best choice, float64[1 + B]."""
        errors = self.errors(method, gap, pair)
        return errors[np.arange(len(errors)), self.chosen(method, gap, pair)]

    def choosing_once(self) -> Results:
        """Return the same results, with the best step sizes chosen once, by all runs."""
        same = replace(self, once=True)
        same._errors.update(self._errors)
        return same

    def second_half(self) -> Results:
        """Return the second half of the runs; the first half chooses the best step sizes.

        A single run chooses for itself.

        Example:
            >>> from gvf_lab.study import MethodResults, Results, Study
            >>> import numpy as np
            >>> pairs = (("hard", "hard"),)
            >>> study = Study("s", "markov-chain", ("IR",), (1, 2), pairs=pairs, updates=9, runs=2)
            >>> measured = MethodResults((1.0, 2.0), {"error": np.array([[0.3, 0.2], [0.3, 0.4]])})
            >>> results = Results(study, "paper", {(pairs[0], 1, "IR"): measured}).second_half()
            >>> results.chosen_by.best("IR")[0].tolist(), results.best("IR")[0].tolist()
            (0.2, 0.4)
        """
        half = self.runs // 2
        if half == 0:
            return self
        first, second = (self._part(part) for part in (slice(half), slice(half, self.runs)))
        return replace(second, chosen_by=first)

    def _part(self, runs: slice) -> Results:
        by_method = {
            key: MethodResults(cell.choices, {name: of[runs] for name, of in cell.columns.items()})
            for key, cell in self.by_method.items()
        }
        study = self.study.with_(runs=len(range(self.runs)[runs]))
        return replace(self, study=study, by_method=by_method)

    def of(self, method: str, gap: int | None = None, pair: Pair | None = None) -> MethodResults:
        """Return the results of one method; gap and pair default to the only one."""
        return self.by_method[
            pair or _only(self.study.pairs), gap or _only(self.study.gaps), method
        ]


def _cells(study: BaseStudy, table: pa.Table) -> dict[tuple[Pair, int | None, str], MethodResults]:
    """Sort the measured columns by pair, gap and method, by means of the key columns."""
    import pyarrow as pa

    order = _order(study, table)
    shape = (study.runs, len(study.pairs), len(study.gaps), -1)
    columns = {}
    for name in study.measures:
        values = table[name].combine_chunks()
        listed = pa.types.is_list(values.type)
        plain = (values.flatten() if listed else values).to_numpy().reshape(len(values), -1)
        rows = plain if np.array_equal(order, np.arange(len(order))) else plain[order]
        columns[name] = rows.reshape(*shape, rows.shape[1]) if listed else rows.reshape(shape)
    places, first = {}, 0
    for method in study.methods:
        places[method] = slice(first, first + len(study.choices(method)))
        first = places[method].stop
    by_method = {}
    for i, pair in enumerate(study.pairs):
        for j, gap in enumerate(study.gaps):
            for method, at in places.items():
                here = {name: column[:, i, j, at] for name, column in columns.items()}
                by_method[pair, gap, method] = MethodResults(study.choices(method), here)
    return by_method


def _order(study: BaseStudy, table: pa.Table) -> Array:
    """Return the number of the table's row for each choice of each task, in the study's order.

    Rows are identified by their key columns, so they may stand in any order.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tasks = list(study.tasks())
    choices = [
        (method, study.key(choice)) for method in study.methods for choice in study.choices(method)
    ]
    place, wanted = (
        np.zeros(table.num_rows, np.int64),
        np.zeros(len(tasks) * len(choices), np.int64),
    )
    for name in ("question", "behaviour", "gap", "run", "method", *study.keys):
        by_task = name in ("question", "behaviour", "gap", "run")
        if by_task:
            values = [getattr(task, name) for task in tasks]
        else:
            values = [method if name == "method" else key.get(name) for method, key in choices]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        codes = np.array([numbers[value] for value in values])
        codes = np.repeat(codes, len(choices)) if by_task else np.tile(codes, len(tasks))
        known = pa.array(list(numbers), table[name].type)
        index = pc.call_function("index_in", [table[name]], pc.SetLookupOptions(known))
        place = place * (len(numbers) + 1) + index.fill_null(len(numbers)).to_numpy()
        wanted = wanted * (len(numbers) + 1) + codes
    by_key = np.argsort(place, kind="stable")
    order = by_key[np.searchsorted(place, wanted, sorter=by_key).clip(max=len(place) - 1)]
    if len(place) != len(wanted) or not np.array_equal(place[order], wanted):
        raise ValueError(f"the rows stored of {study.name!r} are not those of its tasks")
    return order


@cache
def resampling(runs: int) -> Array:
    """Return the weights of the runs in each bootstrap sample, float64[1 + B, R].

    A weight is the number of times that a run was drawn, over the number of runs. The first row
    is the original sample. The weights depend only on the number of runs, so comparisons between
    studies are paired too.

    Example:
        >>> from gvf_lab.study.results import resampling
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
    """Compute the standard error of the mean over the first axis; nan if unknown.

    Example:
        >>> from gvf_lab.study.results import standard_error
        >>> import numpy as np
        >>> standard_error(np.array([[1.0, 2.0], [3.0, np.inf]])).tolist()
        [1.0, nan]
    """
    runs = len(values)
    if runs < 2:
        return np.full(values.shape[1:], np.nan)
    finite = np.isfinite(values).all(axis=0)
    kept = np.where(finite, values, 0.0)
    # Squares of huge values overflow, so values are scaled first; a power of two loses no digits.
    scale = np.ldexp(0.5, np.frexp(np.abs(kept).max(axis=0))[1])
    spread = (kept / scale).std(axis=0, ddof=1) / np.sqrt(runs) * scale
    return np.where(finite, spread, np.nan)
