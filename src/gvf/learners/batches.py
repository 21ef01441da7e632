"""Batches of transitions from a source, with Ctrl-C.

A question takes hardly longer for a batch than for one transition, so single transitions are
joined; after Ctrl-C no more are awaited. Long batches are cut, because a learner is interrupted
only between batches, where its state is consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gvf.transition import Transitions, check_item, together

JOINED_ROWS = 64
"""The number of single transitions joined into a batch, which hides the cost of a call. In an
environment, the behaviour acts for this many steps before the learner observes them."""
LONGEST_BATCH = 1024
"""The largest number of transitions in a batch, so that Ctrl-C takes effect soon."""


def batches_of(
    source: Iterable[Any],
    steps: int | None = None,
    act_steps: int | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Transitions]:
    """Yield batches from an iterable of batches or mappings, at most `steps` transitions in all.

    Once `interrupted` is True, transitions that wait to be joined are yielded without others.
    """
    if isinstance(source, Mapping | str) or not isinstance(source, Iterable):
        raise TypeError(
            f"cannot learn from a {type(source).__name__}; give a Gymnasium environment, "
            "or an iterable of gvf.Transitions or of mappings; gvf.read_log reads files for fit"
        )
    joined = _grouped(
        _runs(source), act_steps or JOINED_ROWS, act_steps or LONGEST_BATCH, interrupted
    )
    return joined if steps is None else _first(joined, steps)


def _runs(source: Iterable[Any]) -> Iterator[Transitions | list[Mapping[str, Any]]]:
    for position, item in enumerate(source):
        check_item(item, position)
        yield item if isinstance(item, Transitions) else [item]


def _grouped(
    items: Iterable[Transitions | list[Mapping[str, Any]]],
    least: int,
    most: int,
    interrupted: Callable[[], bool],
) -> Iterator[Transitions]:
    """Join short items and cut long ones, so that a question evaluates many rows together."""
    waiting: list[Transitions | list[Mapping[str, Any]]] = []
    count = 0
    try:
        for item in items:
            if isinstance(item, Transitions) and len(item) > most:
                if waiting:
                    ready, waiting, count = waiting, [], 0
                    yield together(ready)
                yield from (item[start : start + most] for start in range(0, len(item), most))
                continue
            if waiting and isinstance(item, list) and isinstance(waiting[-1], list):
                waiting[-1].extend(item)
            else:
                waiting.append(item)
            count += len(item)
            if count >= least or interrupted():
                ready, waiting, count = waiting, [], 0
                yield together(ready)
    except (Exception, KeyboardInterrupt):  # the transitions before it are sound
        if waiting:
            yield together(waiting)
        raise
    if waiting:
        yield together(waiting)


def _first(batches: Iterable[Transitions], steps: int) -> Iterator[Transitions]:
    for batch in batches:
        yield batch[:steps]
        steps -= len(batch)
        if steps <= 0:
            return
