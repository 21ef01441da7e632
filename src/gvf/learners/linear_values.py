"""Linear values: features, weights and an update, without a window.

    v(s) = sum_b share_b(s) sum_f W[b, f] x_f(s)

This is one of two value functions; the other is a network (:mod:`gvf.neural.neural_learner`). The
kernels are in :mod:`gvf.updates.linear_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.checks import as_array, brief
from gvf.common.fields import as_states
from gvf.diagnosis.window_updates import Updates
from gvf.features import FeatureMap, features_of
from gvf.learners.update_loop import Schedule, compiled_loop
from gvf.policies import DiscretePolicy, Policy
from gvf.sampling.random_streams import addresses
from gvf.sampling.ratio_ring import Slots
from gvf.transition import Transitions, check_no_nan
from gvf.updates.default_step_size import default_step_sizes, squared_lengths
from gvf.updates.linear_kernels import Experience, td_errors, values
from gvf.updates.update import Update
from gvf.window import Window
from gvf.window.buffer import Buffer, Rows, check_like
from gvf.window.frame_window import FrameWindow

_LOOKED_AT = 2**16
"""The number of features read, over all states, to find the largest prediction."""


@dataclass(frozen=True)
class LinearPrediction:
    """The parts of linear values that predictions need.

    Attributes:
        features: the representation.
        policy: the policy over whose actions action values are averaged; None for state values.
        several: True if predictions are [m, lanes], False if they are [m].
        weights: the weights, float64[rows, lanes].
    """

    features: FeatureMap
    policy: DiscretePolicy | None
    several: bool
    weights: Floats

    def __post_init__(self) -> None:
        blocks = 1 if self.policy is None else self.policy.actions
        if self.weights.ndim != 2 or len(self.weights) != self.features.size * blocks:
            raise ValueError(
                f"the weights have shape {self.weights.shape}; there should be a row for each of "
                f"{self.features.size} features and {blocks} block(s)"
            )

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]: [m], or [m, lanes]."""
        if type(states) is not np.ndarray:
            states = as_array(as_states(states), "the states")
        x = features_of(self.features, self.features.size, states)
        out = np.empty((len(x), self.weights.shape[1]))
        share = np.ones((len(x), 1)) if self.policy is None else self.policy.probabilities(states)
        values(self.weights, x, share, out)
        return out if self.several else out[:, 0]


def check_features(features: FeatureMap) -> None:
    """Raise TypeError if an object is no feature map."""
    if not callable(features) or not hasattr(features, "size"):
        raise TypeError(
            f"features must be a feature map such as gvf.features.OneHot(5), got {brief(features)}"
        )


Form = tuple[np.dtype[Any], int]
"""The type and the width of features; compiled loops would write beside arrays of another."""


def represent(
    features: FeatureMap, transitions: Transitions, form: Collection[Form] = ()
) -> tuple[Array, Array]:
    """Return the features of the states and of the next states, both of the same form.

    Args:
        features: the representation.
        transitions: the transitions.
        form: the form of earlier features, if there are any.

    Raises:
        ValueError: if a form differs, or a state has a NaN; the message says where.
    """

    def features_in(name: str) -> Array:
        try:
            return features_of(features, features.size, transitions[name])
        except ValueError:
            check_no_nan(name, transitions[name])
            raise

    x, x_next = features_in("state"), features_in("next_state")
    forms = {(x.dtype, x.shape[1]), (x_next.dtype, x_next.shape[1]), *form}
    if len(forms) > 1:
        form_names = sorted(f"{dtype}[m, {width}]" for dtype, width in forms)
        raise ValueError(f"features must always have the same form; got {' and '.join(form_names)}")
    return x, x_next


class LinearValues:
    """The value function of :class:`gvf.Learner`.

    Args:
        policy: the target policy, over whose actions action values are averaged.
        features: the representation.
        update: the learning rule.
        rng: the generator of next actions, for updates that draw one.
    """

    def __init__(
        self, policy: Policy, features: FeatureMap, update: Update, rng: np.random.Generator
    ) -> None:
        if not isinstance(update, Update):
            raise TypeError(f"update must be a gvf.updates.Update, got {brief(update)}")
        check_features(features)
        if update.action_values and not isinstance(policy, DiscretePolicy):
            raise ValueError(
                f"{type(update).__name__} learns a value for every action, and {brief(policy)} "
                "has no finite number of them; use TD, TDC or TDRC"
            )
        self.features, self.update_rule, self.rng = features, update, rng
        self.first_size = 0.0
        # Action values are averaged over the policy's actions. State values have one block.
        averages = update.action_values and isinstance(policy, DiscretePolicy)
        self._averaged: DiscretePolicy | None = policy if averages else None  # pyright: ignore[reportAttributeAccessIssue]
        self.blocks = 1 if self._averaged is None else self._averaged.actions
        self.state = update.start(features.size * self.blocks)
        self._ones = np.ones((0, 1))
        self._chooses_step_size = update.chooses_step_size
        self._compiled: Callable[[Any, Any], None] | None = None
        self._kept: Experience | None = None  # the columns of the window
        self._form: set[Form] = set()

    def represent(self, transitions: Transitions) -> dict[str, Array]:
        """Return the columns to keep in the window."""
        x, x_next = represent(self.features, transitions, self._form)
        columns = {"x": x, "x_next": x_next}
        if self._averaged is not None:
            next_state = transitions["next_state"]
            columns["share"] = np.eye(self.blocks)[transitions["action"]]
            if self.update_rule.next_action == "sampled":
                next_action = self._averaged.sample(next_state, rng=self.rng)
                columns["share_next"] = np.eye(self.blocks)[next_action]
            else:
                columns["share_next"] = self._averaged.probabilities(next_state)
            for name in ("share", "share_next"):
                columns[name] = np.ascontiguousarray(columns[name], np.float64)
                if columns[name].shape != (len(transitions), self.blocks):
                    raise ValueError(
                        f"{self._averaged} should give {self.blocks} probabilities for each of "
                        f"{len(transitions)} states, got {columns[name].shape}"
                    )
        return columns

    def experience(self, columns: dict[str, Array]) -> Experience:
        """Return columns [m, ...] in the form that updates read."""
        rows = len(columns["x"])
        if len(self._ones) < rows:
            self._ones = np.ones((rows, 1))
        ones = self._ones[:rows]  # with one block of weights its share is always 1
        return Experience(
            columns["x"],
            columns.get("share", ones),
            columns["x_next"],
            columns.get("share_next", ones),
            columns["cumulant"],
            columns["continuation"],
        )

    def observe(self, buffer: Buffer, rows: Rows, schedule: Schedule) -> None:
        """Insert rows into the buffer, and update whenever an update is due."""
        if not self._chooses_step_size:
            self._observe(buffer, rows, schedule)
            return
        lengths = squared_lengths(rows.columns["x"], rows.columns["x_next"])
        falling = default_step_sizes(
            self.update_rule, buffer.correction, lengths, rows.inputs, rows.p,
            batch_size=schedule.batch_size, smallest=self.step_size or np.inf,
        )  # fmt: skip
        step_size = np.where(np.isfinite(falling), falling, 0.0)
        # Cut where the step size falls, so that results do not depend on the size of the batch.
        falls = np.flatnonzero(np.diff(step_size, prepend=np.nan))
        for start, end in pairwise([*falls.tolist(), len(rows)]):
            self.state.lanes[0] = step_size[start]
            self._observe(buffer, rows[start:end], schedule)

    @property
    def step_size(self) -> float | None:
        """The default step size in use; None before there is one, or if one was given."""
        chosen = self.update_rule.chooses_step_size
        return float(self.state.lanes[0, 0]) or None if chosen else None

    @property
    def were_set(self) -> bool:
        """True if a weight is not 0."""
        return bool(self.state.weights.any())

    def repeat(self, buffer: Buffer, schedule: Schedule, times: int) -> None:
        """Draw, weigh and update so many times, without new rows."""
        if times and len(buffer):
            columns = {name: column[:0] for name, column in buffer.window.columns.items()}
            none = Rows(columns, np.empty((buffer.correction.rows, 0)), np.empty(0))
            self._observe(buffer, none, schedule, times)

    def row_size(self, transitions: Transitions) -> int:
        """Return the size in bytes that the states of one transition take in the window."""
        try:
            x = features_of(self.features, self.features.size, transitions["state"])
        except ValueError:  # a state with a NaN, which may be left out later
            return 16 * self.features.size
        return 2 * x.nbytes + 16 * self.blocks

    def _observe(self, buffer: Buffer, rows: Rows, schedule: Schedule, repeats: int = 0) -> None:
        """Insert rows into the buffer and update when due, in one compiled call."""
        window, correction = buffer.window, buffer.correction
        assert isinstance(window, Window)
        new, kept = self.experience(rows.columns), self._kept
        if self._compiled is None or kept is None or window.columns.get("x") is not kept.x:
            # From then on rows have the same form, so that the window keeps its columns.
            window.make_room(rows.columns)
            self._kept = kept = self.experience(window.columns)
        if self._compiled is None:
            dense = rows.columns["x"].dtype.kind == "f"
            x = rows.columns["x"]
            self._form = {(x.dtype, x.shape[1])}
            self._compiled = compiled_loop(
                dense, correction, self.update_rule, buffer.write, buffer.draws
            )
        self._compiled(
            (
                self.state,
                kept,
                new,
                buffer.masses,
                (rows.inputs, rows.p, correction.parameters),
                schedule.counts,
            ),
            (
                buffer.mass,
                schedule.batch_size,
                schedule.update_every,
                schedule.warm_up,
                *(addresses(schedule.rng) or ()),
                repeats,
            ),
        )

    def update(self, buffer: Buffer, slots: Slots, w: Floats) -> None:
        """Change the weights by the transitions in slots [k], with weights w [k]."""
        self.update_rule.apply(self.state, self.experience(buffer.window.columns), slots, w)

    def td_errors(self, buffer: Buffer, slots: Slots) -> Floats:
        """Return the TD errors of the transitions in slots [k], in the first lane."""
        delta = np.empty((len(slots), self.state.weights.shape[1]))
        td_errors(self.state.weights, self.experience(buffer.window.columns), slots, delta)
        return delta[:, 0].copy()

    def updates(self, window: Window, lane: int) -> tuple[Updates, int]:
        """Return the update by each transition of a window in a lane, and its dimension."""
        kept = self.experience({name: c[: len(window)] for name, c in window.columns.items()})
        weights = np.ascontiguousarray(self.state.weights[:, lane : lane + 1])
        near, far = np.empty((len(window), 1)), np.zeros((len(window), 1))
        td_errors(weights, kept, np.arange(len(window)), near)
        secondary = self.update_rule.secondary_weights(self.state)
        if secondary is not None:
            secondary_of_lane = np.ascontiguousarray(secondary[:, lane : lane + 1])
            values(secondary_of_lane, kept.x, kept.share, far)
            far *= -kept.continuation[:, None]
        update_columns = near[:, 0], kept.x, kept.share, far[:, 0], kept.x_next, kept.share_next
        return Updates(*update_columns), len(weights)

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]: [m], or [m, lanes]."""
        return self.prediction.predict(states)

    @property
    def prediction(self) -> LinearPrediction:
        """The predictor, which shares the weights."""
        several = self.update_rule.lanes is not None
        return LinearPrediction(self.features, self._averaged, several, self.state.weights)

    def predict_sample(self, window: Window) -> Floats:
        """Return predictions for the window's states, [m, lanes].

        They are infinite if a weight is not finite. In a long window with many features only some
        of the states are read.
        """
        x = window.columns["x"]
        rows = np.arange(0, len(window), 1 + len(window) * x.shape[1] // _LOOKED_AT)
        kept = self.experience({name: c[rows] for name, c in window.columns.items()})
        out = np.empty((len(rows), self.state.weights.shape[1]))
        values(self.state.weights, kept.x, kept.share, out)
        out[:, ~np.isfinite(self.state.weights).all(axis=0)] = np.inf
        return out

    @property
    def parts(self) -> dict[str, Any]:
        """The arguments of the learner that describe the value function."""
        return {"features": self.features, "update": self.update_rule}

    def check(self, window: Window | FrameWindow) -> None:
        """Raise ValueError if the window does not fit, because compiled loops check nothing."""
        columns = {name: column[: len(window)] for name, column in window.columns.items()}
        shares = {"share", "share_next"} if self._averaged is not None else set()
        if columns.keys() != {"x", "x_next", "cumulant", "continuation"} | shares:
            raise ValueError(f"the window has the columns {', '.join(columns)}")
        x, x_next = columns["x"], columns["x_next"]
        blocks = np.empty((len(window), self.blocks))
        for name, column in columns.items():
            like = x if name in ("x", "x_next") else blocks if name in shares else blocks[:, 0]
            check_like(f"column {name}", column, like)
        for features in (x, x_next):
            features_of(lambda _, f=features: f, self.features.size, features)
            if features.dtype not in (np.int32, np.float64):
                raise ValueError(f"features should be int32 or float64, not {features.dtype}")
        self._form = {(x.dtype, x.shape[1])}

    @property
    def exported(self) -> dict[str, Any]:
        """The parts of the value function that predictions need."""
        prediction = self.prediction
        return {field.name: getattr(prediction, field.name) for field in fields(prediction)}

    @property
    def rngs(self) -> tuple[np.random.Generator, ...]:
        """The random generators used while learning."""
        return (self.rng,)

    def __getstate__(self) -> dict[str, Any]:
        # Addresses of kernels are not valid in another process.
        return self.__dict__ | {"_compiled": None, "_kept": None}

    def checkpoint(self) -> dict[str, Array]:
        """Return copies of the arrays that change."""
        return {name: array.copy() for name, array in self.state._asdict().items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the arrays that :meth:`checkpoint` returned."""
        arrays_here = self.state._asdict()
        if arrays_here.keys() != arrays.keys():
            raise ValueError(
                f"there should be {', '.join(arrays_here)}, and there are {', '.join(arrays)}"
            )
        for name, array in arrays.items():
            check_like(name, array, arrays_here[name])
        for name, array in arrays.items():
            arrays_here[name][...] = array
        self._form, self._compiled = set(), None  # the window to be restored may have another form
