"""Updates: one kernel signature, lanes of step sizes, arrays that change.

An update is a frozen description: a compiled kernel, its values per lane (step sizes) and its
numbers (decays, for example). Its state is five arrays, which can be saved, copied and passed to
compiled loops:

    kernel(state, experience, slots, w)

    state        the arrays that change, a :class:`LearnerState`
    experience   the window's columns, a :class:`gvf.updates.linear_kernels.Experience`
    slots        the drawn slots, int64[k]
    w            the correction's weights [k]

All updates have this signature, so one loop runs them all.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import float64, int64, types

from gvf.common.arrays import Array
from gvf.common.checks import as_array, brief
from gvf.updates.linear_kernels import Experience

Lanes = float | Sequence[float]
"""One number, or one for each lane."""

SHARE = 0.1
"""The default step size removes at most this share of a mini-batch's mean error."""


class LearnerState(NamedTuple):
    """The arrays that an update changes, with L lanes."""

    weights: Array
    """float64[rows, L]"""
    memory: Array
    """float64[M, rows, L]: further arrays of the same shape, a mean square for example."""
    marks: Array
    """int64[...]: integers."""
    lanes: Array
    """float64[P, L]: one value for each lane, such as its step size."""
    numbers: Array
    """float64[C]: constants, and numbers that change."""


def state_type() -> types.NamedTuple:
    """Return the compiled type of a LearnerState."""
    f1, f2 = float64[::1], float64[:, ::1]
    return types.NamedTuple((f2, float64[:, :, ::1], int64[::1], f2, f1), LearnerState)


@dataclass(frozen=True)
class LaneFields(ABC):
    """A frozen description with fields that are one number, or one for each lane."""

    lane_fields: ClassVar[tuple[str, ...]]
    """The fields that have lanes."""
    unit_fields: ClassVar[tuple[str, ...]] = ()
    """The lane fields that must be in [0, 1]."""
    unset: ClassVar[Mapping[str, float]] = {}
    """The fields that may be None, with the number that stands for None in the lanes."""

    def __post_init__(self) -> None:
        for name in self.lane_fields:
            values = getattr(self, name)
            if values is None and name in self.unset:
                continue
            try:
                value = as_array(values, name)
                value = np.zeros(0) if value.dtype.kind in "SUc" else value.astype(np.float64)
            except (TypeError, ValueError):
                value = np.zeros(0)
            if value.ndim > 1 or value.size == 0:
                raise ValueError(
                    f"{name} must be a number or a sequence of them, got {brief(values)}"
                )
            unit = name in self.unit_fields
            if not np.all((value >= 0.0) & (value <= 1.0 if unit else np.isfinite(value))):
                wanted = "in [0, 1]" if unit else "finite and not negative"
                raise ValueError(f"{name} must be {wanted}, got {brief(values)}")
            plain = float(value) if value.ndim == 0 else tuple(value.tolist())
            object.__setattr__(self, name, plain)
        self.lane_values()

    @property
    def lanes(self) -> int | None:
        """The number of lanes; None if every field is a single number."""
        values = [getattr(self, name) for name in self.lane_fields]
        return max((len(v) for v in values if isinstance(v, tuple)), default=None)

    def lane_values(self) -> Array:
        """Return the lane fields as rows [P, L]."""
        all_values = {name: getattr(self, name) for name in self.lane_fields}
        values: list[Any] = [
            np.atleast_1d(self.unset[name] if value is None else value)
            for name, value in all_values.items()
        ]
        try:
            return np.array(np.broadcast_arrays(*values), np.float64)
        except ValueError:
            names = " and ".join(self.lane_fields)
            raise ValueError(f"{names} must have as many lanes each: {self}") from None


@dataclass(frozen=True)
class Update(LaneFields):
    """The base class of all updates: the rules that change the weights by drawn transitions.

    A field named in `lane_fields` is a number or a sequence of L numbers. With a sequence, L copies
    of the weights learn side by side from the same draws, one for each number. To write an update,
    give it a compiled `kernel` with the arguments of the example, and declare its state: `memories`
    (the number of arrays like the weights), `marks` (integers) and `numbers` (constants).

    A step size of None stands for :meth:`default_step_size`, which depends on the features.

    Example:
        >>> from dataclasses import dataclass
        >>> import gvf, numba
        >>> @numba.njit
        ... def count(state, experience, slots, w):
        ...     for slot in slots:
        ...         state.weights[experience.x[slot, 0], 0] += state.lanes[0, 0]
        >>> @dataclass(frozen=True)
        ... class Count(gvf.updates.Update):
        ...     step_size: float = 1.0
        ...     kernel = staticmethod(count)
        >>> question = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     Count(),
        ...     behaviour=gvf.policies.Uniform(2),
        ...     batch_size=1,
        ...     seed=0,
        ... )
        >>> for state in (0, 1, 2):
        ...     learner.observe(state, 0, 0.0, 0, False)
        >>> float(learner.weights.sum())
        3.0
    """

    lane_fields: ClassVar[tuple[str, ...]] = ("step_size",)
    # The default step size is 0, which changes nothing, until features are known.
    unset: ClassVar[Mapping[str, float]] = {"step_size": 0.0}
    action_values: ClassVar[bool] = False
    """True if the update learns a value for every action, False for one per state."""
    next_action: ClassVar[str] = "none"
    """The bootstrap of action values: "sampled" for one action of pi, "expected" for the mean."""
    kernel: ClassVar[Callable[..., None]]
    memories: ClassVar[int] = 0

    @property
    def chooses_step_size(self) -> bool:
        """True if the step size is the default."""
        return getattr(self, "step_size", 0.0) is None

    def default_step_size(self, squared_length: Array, weight: Array, batch_size: int) -> Array:
        """Compute the default step size: 0.1 / (squared length of the features), or less.

        For a active binary features this is 0.1 / a: 0.1 for :class:`gvf.features.OneHot`, 0.1 /
        tilings for :class:`gvf.features.TileCoder`. Where ratios multiply updates, as with
        :class:`gvf.corrections.IS`, a smaller step size keeps weight times step size times squared
        length at most 1, so that no single transition takes a prediction past its target. A learner
        uses the smallest value over all transitions observed, so its step size never rises.

        Args:
            squared_length: the squared length of the features of each transition, [m].
            weight: the correction's weight of each transition when it is drawn, [m].
            batch_size: the number of transitions drawn for an update, k.

        Returns:
            The step size that each transition allows, [m].
        """
        with np.errstate(divide="ignore"):
            return np.minimum(SHARE, 1.0 / weight) / squared_length

    def marks(self, rows: int) -> Array:
        """Return the integers to keep between updates; none by default."""
        return np.zeros(0, np.int64)

    def numbers(self) -> Sequence[float]:
        """Return the constants of the kernel; none by default."""
        return ()

    def start(self, rows: int) -> LearnerState:
        """Return the initial state; all weights are 0."""
        lanes = self.lane_values()
        shape = (rows, lanes.shape[1])
        return LearnerState(
            weights=np.zeros(shape),
            memory=np.zeros((self.memories, *shape)),
            marks=np.ascontiguousarray(self.marks(rows), np.int64),
            lanes=lanes,
            numbers=np.array(self.numbers(), np.float64),
        )

    def secondary_weights(self, state: LearnerState) -> Array | None:
        """Return the weights h [rows, L] of a gradient correction; None if there is none.

        They tell :meth:`gvf.Learner.diagnose` that the update of a transition is
        ``delta x - gamma (h . x) x'`` instead of ``delta x``.
        """
        return None

    def apply(self, state: LearnerState, experience: Experience, slots: Array, w: Array) -> None:
        """Change the state by the transitions in slots [k], with weights w [k]."""
        self.kernel(state, experience, slots, w)
