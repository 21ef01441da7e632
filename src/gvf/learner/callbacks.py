"""Callbacks: functions that are called now and then while a learner learns.

A learner takes batches of transitions, and a callback is due after every so many of them. Batches
are cut there, which changes no result, because a learner learns from a batch as from its
transitions one by one. An environment is not reset, and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gvf.common.checks import brief, whole
from gvf.transition import Transitions


@dataclass(frozen=True)
class Every:
    """A callback: a function that is called after every so many transitions.

    The function gets the learner, and may ask for its report and its predictions, save it, or draw
    a picture. If it returns True, learning stops. The learner learns the same with it as without
    it, bit for bit, unless the function changes the learner.

    Args:
        steps: the number of transitions between two calls. They are counted from the start of
            ``learn`` or ``fit``, over all epochs.
        function: the function of the learner.

    Example:
        >>> import gvf
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "reward": [0.0, 1.0], "terminated": True}
        >>> log = gvf.read([walk] * 50, quiet=True)
        >>> question = gvf.GVF(gvf.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question, gvf.OneHot(3), gvf.TD(0.5), behaviour=gvf.Always(1, actions=2), seed=0
        ... )
        >>> show = gvf.Every(400, lambda learner: print(learner.updates, learner.predict([0])))
        >>> report = learner.fit(log, epochs=10, callbacks=show)
        400 [0.9]
        800 [0.9]
    """

    steps: int
    function: Callable[[Any], object]

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1)
        if not callable(self.function):
            raise TypeError(f"function must be a function of the learner: {brief(self.function)}")


Callbacks = Every | tuple[int, Callable[[Any], object]] | Iterable[Any]
"""A callback, or several; a pair ``(steps, function)`` is one too."""


class Calls:
    """The callbacks of one call of ``learn`` or ``fit``.

    Args:
        callbacks: the callbacks.
        learner: the learner that they get.

    Example:
        >>> from gvf.learner.callbacks import Calls
        >>> from gvf.transition import Transitions
        >>> calls = Calls([(2, print), (3, print)], "the learner")
        >>> [len(piece) for piece in calls.pieces(Transitions(state=[0] * 7), 1)]
        [1, 1, 1, 2, 2]
        >>> calls.after(3)
        the learner
        False
    """

    def __init__(self, callbacks: Callbacks, learner: Any) -> None:
        self._learner, self._every = learner, _each(callbacks)

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
        return min([most, *(every.steps - taken % every.steps for every in self._every)])

    def after(self, taken: int) -> bool:
        """Call the callbacks that are due after this many transitions; return True to stop."""
        due = [every for every in self._every if taken % every.steps == 0]
        said = [every.function(self._learner) for every in due]
        return any(isinstance(one, bool | np.bool_) and bool(one) for one in said)


def _each(callbacks: Callbacks) -> list[Every]:
    if isinstance(callbacks, Every):
        return [callbacks]
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks must be gvf.Every(10_000, function), got {brief(callbacks)}")
    given = list(callbacks)
    if len(given) == 2 and callable(given[1]) and not isinstance(given[0], Every | tuple | list):
        return [Every(given[0], given[1])]
    for one in given:
        if not isinstance(one, Every) and not (isinstance(one, tuple | list) and len(one) == 2):
            raise TypeError(
                f"a callback is gvf.Every(10_000, function) or (10_000, function), got {brief(one)}"
            )
    return [one if isinstance(one, Every) else Every(*one) for one in given]
