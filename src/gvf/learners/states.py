"""The states that predictions are for: one observation or a batch, and states with a NaN.

Learners, hordes and predictors share this. A learner remembers the fields of the states that it has
learned from, which tells one ``Dict`` observation from a batch (:mod:`gvf.common.fields`). A
learner that leaves out transitions with a NaN predicts NaN for such a state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Arrays, Floats
from gvf.common.fields import as_states
from gvf.policies.action_checks import numpy_array
from gvf.question import OnNaN
from gvf.transition import nan_rows


class NotLearnedWarning(UserWarning):
    """The category of the warning that predictions were asked for before any update.

    Each learner and horde warns once, and not while its ``learn`` or ``fit`` runs, because a
    behaviour or a callback may follow the predictions from the start.

    Example:
        >>> import gvf, warnings
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.5),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> with warnings.catch_warnings(action="ignore", category=gvf.NotLearnedWarning):
        ...     learner.predict([0])
        array([0.])
    """


@dataclass
class States:
    """The states of a learner, as far as predictions need to know them.

    Attributes:
        on_nan: the response to a state with a NaN.
        like: the structured type of a state; None for plain arrays, and before the first one.
        is_noted: True once there were states.
        is_settled: True once it was looked whether predictions come before the first update.

    Example:
        >>> import numpy as np
        >>> from gvf.learners.states import States
        >>> maze = np.dtype([("agent", float, (2,)), ("target", float, (2,))])
        >>> states = States("skip", maze)
        >>> def distance(s):
        ...     return np.abs(s["agent"] - s["target"]).sum(axis=1)
        >>> states.predict(distance, {"agent": [0.0, 1.0], "target": [2.0, 3.0]})
        array([4.])
        >>> states.predict(distance, {"agent": [[0, 1], [np.nan, 1]], "target": [[2, 3]] * 2})
        array([ 4., nan])
    """

    on_nan: OnNaN = "error"
    like: np.dtype[Any] | None = None
    is_settled: bool = False
    is_noted: bool = False

    def note(self, states: Array) -> None:
        """Remember the fields of the first states, if they have any."""
        if states.dtype.names is not None:
            self.like = states.dtype
        self.is_noted = True

    def predict(self, values: Callable[[Any], Floats], states: Any) -> Floats:
        """Return the values of states, [m, ...]; NaN for a state with a NaN, if it may have one."""
        states = as_states(states, self.like)
        if self.on_nan == "error":
            return values(states)
        column = numpy_array(states, "the states")
        bad = nan_rows(column) if column.ndim else np.zeros(0, np.bool_)
        if not bad.any():
            return values(states)
        known = values(column[~bad])
        out = np.full((len(bad), *known.shape[1:]), np.nan, known.dtype)
        out[~bad] = known
        return out

    def settle(self, predictions: Floats, has_learned: bool, learner: str, steps: int) -> None:
        """Warn the caller of a method ``predict`` if nothing has been learned, once."""
        if len(predictions) or has_learned:
            self.is_settled = True
        if len(predictions) and not has_learned:
            text = f"{learner}.predict before the first update, after {steps} transitions"
            warnings.warn(f"{text}: these numbers say nothing", NotLearnedWarning, stacklevel=3)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Do not warn: while it learns, a behaviour or a callback may follow the predictions."""
        before, self.is_settled = self.is_settled, True
        try:
            yield
        finally:
            self.is_settled = before

    def arrays(self) -> Arrays:
        """Return the arrays of a file: an array of no states, if they have fields."""
        return {} if self.like is None else {_LIKE: np.zeros(0, self.like)}

    def restore(self, arrays: Arrays) -> None:
        """Restore the arrays of a file."""
        self.like = arrays[_LIKE].dtype if _LIKE in arrays else None


_LIKE = "states"
"""The name of the array."""
