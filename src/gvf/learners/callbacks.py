"""Callbacks: functions that are called now and then while a learner learns.

A learner takes batches of transitions, and a callback is due after every so many of them. Batches
are cut there, which changes no result, because a learner learns from a batch as from its
transitions one by one. An environment is not reset, and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gvf.common.checks import brief, whole
from gvf.transition import Transitions


@dataclass(frozen=True)
class Callback:
    """A callback: a function that is called after every so many transitions.

    The function gets the learner, and may ask for its report and its predictions, save it, or draw
    a picture. If it returns True, learning stops. The learner learns the same with it as without
    it, bit for bit, unless the function changes the learner.

    Args:
        function: the function of the learner.
        every_steps: the number of transitions between two calls. They are counted from the start of
            ``learn`` or ``fit``, over all epochs.

    Example:
        >>> import gvf
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "reward": [0.0, 1.0], "terminated": True}
        >>> log = gvf.read_log([walk] * 50, quiet=True)
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.5),
        ...     behaviour=gvf.policies.Always(1, actions=2),
        ...     seed=0,
        ... )
        >>> def show(learner):
        ...     print(learner.updates, learner.predict([0]))
        >>> callback = gvf.Callback(show, every_steps=400)
        >>> report = learner.fit(log, epochs=10, callbacks=callback)
        400 [0.9]
        800 [0.9]
    """

    function: Callable[[Any], object]
    every_steps: int = field(kw_only=True)

    def __post_init__(self) -> None:
        whole("every_steps", self.every_steps, 1)
        if not callable(self.function):
            raise TypeError(f"function must be a function of the learner: {brief(self.function)}")


Callbacks = Callback | Iterable[Callback]
"""A callback, or several."""


class Calls:
    """The callbacks of one call of ``learn`` or ``fit``.

    Args:
        callbacks: the callbacks.
        learner: the learner that they get.

    Example:
        >>> from gvf.learners.callbacks import Callback, Calls
        >>> from gvf.transition import Transitions
        >>> callbacks = [Callback(print, every_steps=2), Callback(print, every_steps=3)]
        >>> calls = Calls(callbacks, "the learner")
        >>> [len(piece) for piece in calls.pieces(Transitions(state=[0] * 7), 1)]
        [1, 1, 1, 2, 2]
        >>> calls.after(3)
        the learner
        False
    """

    def __init__(self, callbacks: Callbacks, learner: Any) -> None:
        self._learner, self._callbacks = learner, _as_list(callbacks)

    def pieces(self, batch: Transitions, taken: int) -> Iterator[Transitions]:
        """Yield a batch in pieces that end where a callback is due.

        Args:
            batch: the batch.
            taken: the number of transitions before it.
        """
        start, count = 0, len(batch)
        while start < count:
            stop = min(count, start + self.wait(taken + start, count))
            yield batch if stop - start == count else batch[start:stop]
            start = stop

    def wait(self, taken: int, most: int) -> int:
        """Return the number of transitions until the next callback is due, at most `most`."""
        return min(
            [most, *(each.every_steps - taken % each.every_steps for each in self._callbacks)]
        )

    def after(self, taken: int) -> bool:
        """Call the callbacks that are due after this many transitions; return True to stop."""
        due = [each for each in self._callbacks if taken % each.every_steps == 0]
        results = [callback.function(self._learner) for callback in due]
        return any(isinstance(result, bool | np.bool_) and bool(result) for result in results)


def _as_list(callbacks: Callbacks) -> list[Callback]:
    several = [callbacks] if isinstance(callbacks, Callback) else callbacks
    if isinstance(several, Iterable):
        several = list(several)
        if all(isinstance(callback, Callback) for callback in several):
            return several
    raise TypeError(
        "callbacks must be gvf.Callback(function, every_steps=10_000), or a list of them, got "
        f"{brief(callbacks)}"
    )
