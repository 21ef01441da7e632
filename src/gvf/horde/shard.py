"""A shard: the window, draws, watch, pauses and weights of some policies of a horde.

    rows (:mod:`gvf.horde.signals`) -> window, and rings of masses, one a group
                                    -> drawn rows and their weights -> weights of all questions

Rows come cut into pieces. What a piece changes is, up to rounding, what its rows change one by one.
A shard calls no function of the user, so it can be in any process: a horde has one shard, or one in
each worker (:mod:`gvf.horde.ray_shards`). A question is a column of weights that depends on no
other, so one that diverges, or whose sensor fails, disturbs nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Bools, Floats
from gvf.corrections import RATIO, Correction
from gvf.horde.group_draws import GroupDraws, Pool
from gvf.horde.layout import Ints, Layout
from gvf.horde.pauses import LOOK_EVERY, LOOKED_AT, Pauses, largest_continuations, largest_returns
from gvf.horde.return_checks import Outcomes
from gvf.horde.signals import ManyRows
from gvf.horde.watch import Watch
from gvf.horde.weights import Weights
from gvf.learners.learner_report import FEWEST
from gvf.learners.saved_state import group
from gvf.sampling.prefix_sums import SIZE
from gvf.updates import Update
from gvf.updates.default_step_size import default_step_sizes
from gvf.window import Window

_AXES = {
    "own/skipped": "groups",
    "own/step_size": "groups",
    "own/diverged": "places",
    "draws/rings": "groups",
    "draws/streams": "streams",
    "outcomes/off": "groups",
    "window/column/cumulant": "cumulants",
    "window/column/continuation": "continuations",
}
_SAME = ("own/begun", "draws/place", "draws/steps", "watch/longest")


def axis_of(name: str) -> str | None:
    """Return to what the rows of an array of a shard's state belong, or the columns of a signal.

    Returns:
        "groups", "places", "streams" (one a group, and the one that all share), "cumulants" or
        "continuations"; None for an array that is the same in all shards.
    """
    if name in _SAME or (name.startswith("window/") and name not in _AXES):
        return None
    return _AXES.get(name, "places")


class WeightsChoice(Protocol):
    """The choice of weights, which the arguments of a horde make; features come later."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the weights."""
        ...

    @property
    def size(self) -> int:
        """The number of weights of a question; 0 if it is not known."""
        ...

    @property
    def first_size(self) -> float:
        """The size that predictions may have before anything is learned."""
        ...

    @property
    def step_size_rule(self) -> Update | None:
        """The update whose default step size is used; None if the step size is an argument."""
        ...

    @property
    def on_device(self) -> bool:
        """True if predictions stay on a device, and so are not checked by returns."""
        ...

    def check_memory(self, layout: Layout, window: int) -> None:
        """Raise MemoryError if the weights and a window of so many rows do not fit."""
        ...

    def new_watch(self, layout: Layout, rows: int) -> Watch:
        """Make a watch that looks at so many rows."""
        ...

    def new_weights(
        self, layout: Layout, dense: bool, options: ShardOptions, steps_per_call: int, /
    ) -> Weights:
        """Make weights that are 0, for dense or for active features."""
        ...

    def best_steps_per_call(self, layout: Layout, dense: bool, options: ShardOptions, /) -> int:
        """Return the number of steps that are best taken in one call."""
        ...


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """The arguments of a horde that a shard needs."""

    weights: WeightsChoice
    correction: Correction
    window: int
    batch_size: int
    update_every: int
    warm_up: int
    steps_per_call: int | None
    pool: Pool
    seed: np.random.SeedSequence

    def updates_in(self, steps: int) -> int:
        """Return the number of updates that are due in so many steps."""
        return max(steps - self.warm_up, 0) // self.update_every


class Shard:
    """All that changes in some groups of a horde while it learns.

    The first features decide which weights are used, so there are none before; :meth:`begin` makes
    them.

    Args:
        layout: the layout of the questions.
        options: the arguments.

    Attributes:
        weights: the weights, None before the first features.
        steps_per_call: the largest number of rows in a piece.
        window: the columns of the latest rows. It has a few more than n, so that a row can be drawn
            for an earlier step of a piece that has replaced it.
        skipped: the number of updates that each group has skipped, int64[groups].
        step_size: the default step size of each group so far, float64[groups].
    """

    def __init__(self, layout: Layout, options: ShardOptions) -> None:
        options.weights.check_memory(layout, options.window)
        self.layout, self.options = layout, options
        self.pauses, self.outcomes = Pauses(layout), Outcomes(layout, options.window)
        self.skipped = np.zeros(layout.groups, np.int64)
        self.step_size = np.full(layout.groups, np.inf)
        self.draws = GroupDraws(
            options.correction,
            layout.groups,
            options.window,
            options.batch_size,
            options.seed,
            self._known_since,
        )
        # Fewer rows if updates are rare, so that looks stay cheap beside them.
        rows = max(options.batch_size // options.update_every, 1)
        self.watch = options.weights.new_watch(layout, rows)
        self.weights: Weights | None = None
        self.window = Window(1)  # until there are weights
        self.steps_per_call = 1
        self._dense = False

    @property
    def steps(self) -> int:
        """The number of transitions learned from."""
        return self.draws.steps

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return self.options.updates_in(self.steps)

    def begin(self, x: Array) -> None:
        """Make weights for features like these, if there are none."""
        if self.weights is None:
            self.start(x.dtype.kind == "f")
        assert self.weights is not None
        self.weights.see(x)

    def start(self, dense: bool, steps_per_call: int | None = None) -> None:
        """Make weights and window.

        Args:
            dense: True for dense features, False for active ones.
            steps_per_call: the largest number of rows in a piece; by default that of the options,
                or the best.
        """
        layout, options, choice = self.layout, self.options, self.options.weights
        steps = 1 if options.correction.draw.whole else steps_per_call or options.steps_per_call
        steps = steps or choice.best_steps_per_call(layout, dense, options)
        self.weights = choice.new_weights(layout, dense, options, steps)
        self.window = Window(options.window + steps - 1)
        self.steps_per_call, self._dense = steps, dense

    def learn(self, rows: ManyRows) -> None:
        """Insert rows piece by piece, and update; all checks are done."""
        options, before, weights = self.options, self.steps, self.weights
        assert weights is not None
        numbers = before + 1 + np.arange(rows.p.shape[1]) - options.warm_up
        due = (numbers > 0) & (numbers % options.update_every == 0)
        step_size, columns = self._step_sizes(rows), rows.columns
        self.outcomes.note(before, rows.inputs[RATIO])
        for piece in rows.pieces:
            here, kept = piece.rows, self.window.capacity
            self.window.extend(**{name: column[here] for name, column in columns.items()})
            inputs = np.ascontiguousarray(rows.inputs[:, :, here])
            p = np.ascontiguousarray(rows.p[:, here])
            mirrored = weights.mirror_masses(self.draws, kept)
            drawn = self.draws.insert(inputs, p, due[here], kept, options.pool, mirrored)
            if len(drawn.w):
                self.skipped += (drawn.has_mass == 0).sum(axis=0)
                sizes = None if step_size is None else step_size[here][due[here]]
                paused = self.pauses.places(piece.missing)
                limits = partial(self._largest_returns, rows.largest)
                diverged = weights.learn(self.window.columns, drawn, sizes, paused, limits)
                if diverged is not None:
                    self.pauses.diverged |= diverged
            if piece.returns is not None and self.outcomes.waiting:
                paused = self.pauses.places(piece.missing)
                self.outcomes.follow(before, columns, rows.course, piece.returns, paused)
            if piece.looks:
                self._look(weights, rows, piece.rows.stop, self.pauses.places(piece.missing))
                if self.steps % LOOK_EVERY == 0:
                    self.pauses.diverged[:] = self.divergent(rows.largest)

    @property
    def _known_since(self) -> Ints:
        """The step from which on transitions are known to each group, int64[groups]."""
        return self.layout.since[self.layout.group_question]

    def _look(self, weights: Weights, rows: ManyRows, stop: int, paused: Ints) -> None:
        """Watch the errors of the newest rows, except at places that pause or do not know them.

        The prediction for the next state of the newest row then waits for its return.
        """
        n, steps, resting = self.options.window, self.steps, paused
        count = min(self.watch.rows, len(self.window), n)
        ratios = self.draws.ratios[:, (steps - count + np.arange(count)) % n]
        if self.draws.latest > steps - count:
            new = self._known_since > steps - count
            resting = np.append(paused, np.flatnonzero(new[self.layout.group]))
        values = self.watch.look(self.window.columns, steps, weights, ratios, resting)
        if values is not None:
            newest = rows.course.part(slice(stop - 1, stop))
            continuations = largest_continuations(self.layout, rows.largest)
            self.outcomes.begin(steps, values[-1], newest, continuations, paused)

    def _passed_on(self) -> int:
        """Return the number of steps over which updates can have passed on cumulants."""
        return self.updates * self.options.batch_size

    def _largest_returns(self, largest: Floats, least: float = 1.0) -> Floats:
        return largest_returns(self.layout, largest, self._passed_on(), least)

    def divergent(self, largest: Floats) -> Bools:
        """Find the places that have diverged, by their predictions for recent states, bool[G].

        Args:
            largest: the largest absolute value of each signal so far.
        """
        return self.pauses.divergent(self._largest_predictions(), self._largest_returns(largest))

    def _largest_predictions(self) -> Floats:
        """Return the largest absolute prediction for recent states at each place, [G]."""
        if self.weights is None or not len(self.window):
            return np.zeros(len(self.layout))
        recent = self.window.oldest_first[-LOOKED_AT:]
        return self.weights.largest(self.window.columns["x"][recent])

    def _endless(self) -> Bools:
        """Find the places whose continuation is 1 in the whole window, bool[G]."""
        recent = self.window.oldest_first[-self.options.window :]
        if len(recent) < FEWEST:
            return np.zeros(len(self.layout), np.bool_)
        least = self.window.columns["continuation"][recent].min(axis=0)
        return self.layout.scale * least[self.layout.source] == 1.0

    def _step_sizes(self, rows: ManyRows) -> Floats | None:
        """Return the default step size from each row on in each group, float64[m, groups].

        Return None if the update has a step size.
        """
        if rows.lengths is None:
            return None
        options, rule = self.options, self.options.weights.step_size_rule
        assert rule is not None
        falling = default_step_sizes(
            rule, options.correction, rows.lengths, rows.inputs, rows.p,
            batch_size=options.batch_size, smallest=self.step_size,
        )  # fmt: skip
        self.step_size = falling[:, -1].copy()
        return np.where(np.isfinite(falling), falling, 0.0).T.copy()

    def predict(self, x: Array) -> Floats:
        """Return the values of states [m, ...], as the window keeps them, at all places, [m, G]."""
        assert self.weights is not None
        return self.weights.predict(x)

    def weights_of(self, places: Ints) -> Array:
        """Return copies of the weights at some places, [places, size]."""
        if self.weights is None:
            return np.zeros((len(places), self.options.weights.size), self.options.weights.dtype)
        return self.weights.take(places)["weights"].reshape(len(places), -1)

    def summary(self, largest: Floats) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report: those of groups [groups], and those of places [G].

        Args:
            largest: the largest absolute value of each signal so far.
        """
        layout, draws, unknown = self.layout, self.draws, np.full(self.layout.groups, np.nan)
        filled = bool(draws.place[SIZE])
        known = np.clip(draws.steps - self._known_since, 1, max(int(draws.place[SIZE]), 1))
        predicted, rupee = self._largest_predictions(), self.watch.rupee()
        limits = self._largest_returns(largest, self.options.weights.first_size)
        # Errors below this are rounding errors.
        rounding = np.sqrt(np.finfo(self.options.weights.dtype).eps) * largest[layout.cumulant]
        return {
            "skipped": self.skipped,
            "mean_ratio": draws.ratios.sum(axis=1) / known if filled else unknown,
            "effective_sample_size": draws.effective_sample_sizes if filled else unknown,
            "diverged": self.pauses.divergent(predicted, self._largest_returns(largest)),
            "outside": predicted > 2.0 * limits,
            "endless": self._endless(),
            "ude": self.watch.ude(rounding),
            **self.outcomes.summary(self.steps),
            **({} if rupee is None else {"rupee": rupee}),
        }

    def state_dict(self, weights: bool = True) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state, with or without the weights."""
        named: dict[str, dict[str, NDArray[Any]]] = {
            "own": {
                "skipped": self.skipped.copy(),
                "step_size": self.step_size.copy(),
                "diverged": self.pauses.diverged.copy(),
                "begun": np.array([self.weights is not None, self._dense, self.steps_per_call]),
            },
            "draws": self.draws.state_dict(),
            "watch": self.watch.state_dict(),
            "outcomes": self.outcomes.state_dict(),
            "window": self.window.checkpoint(),
        }
        if weights and self.weights is not None:
            named["weights"] = self.weights.take(np.arange(len(self.layout)))
        return {f"{a}/{b}": array for a, arrays in named.items() for b, array in arrays.items()}

    def load_state_dict(self, arrays: Arrays) -> None:
        """Restore the arrays of another shard with the same layout and options.

        Weights that are not among them stay 0.
        """
        begun, dense, steps_per_call = arrays["own/begun"].tolist()
        if begun:
            self.start(bool(dense), steps_per_call)
            assert self.weights is not None
            if weights := group(arrays, "weights"):
                self.weights.put(np.arange(len(self.layout)), weights)
            self.steps_per_call = steps_per_call
            self.window = Window(int(arrays["window/ring"][0]))
        self.window.restore(group(arrays, "window"))
        self.draws.load_state_dict(group(arrays, "draws"))
        self.watch.load_state_dict(group(arrays, "watch"))
        self.outcomes.load_state_dict(group(arrays, "outcomes"))
        self.pauses.diverged[:] = arrays["own/diverged"]
        self.skipped[:], self.step_size[:] = arrays["own/skipped"], arrays["own/step_size"]

    @classmethod
    def restored(cls, layout: Layout, options: ShardOptions, arrays: Arrays) -> Self:
        """Make a shard with the state of another with the same questions and options."""
        shard = cls(layout, options)
        shard.load_state_dict(arrays)
        return shard

    def gathered(self) -> Shard:
        """Return a shard of this process in the same state, which is the shard itself."""
        return self

    def __reduce__(self) -> Any:
        return type(self).restored, (self.layout, self.options, self.state_dict())
