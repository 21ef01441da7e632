"""A horde with other questions: what it has learned, in another layout.

Whatever belongs to a question, a group, a cumulant or a continuation goes with it. New groups begin
with ratio 0 for the transitions in the window, so they draw only those that come later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.horde.horde_core import Core
from gvf.horde.layout import Ints, Layout
from gvf.question import GVF
from gvf.sampling import xoshiro


def joined(core: Core, more: Sequence[GVF]) -> Core:
    """Return a core with more questions, after those that it has.

    A new question joins a group in which every row that may be drawn knows its signals, the one
    with most rows if there are several. Else it learns from new rows only.
    """
    old, options, steps = core.layout, core.options, core.draws.steps
    questions = [*old.questions, *more]
    trial = Layout(questions, options.correction)  # its groups do not depend on time
    here, new = trial.place[: len(old)], trial.place[len(old) :]
    # The continuation 0 is `alive`, which all rows have.
    known = np.maximum(
        _first_steps(trial.cumulant[new], trial.cumulant[here], old.since),
        _first_steps(trial.source[new], np.append(trial.source[here], 0), np.append(old.since, 0)),
    )
    since = np.full(len(new), steps)
    for first in np.unique(old.since)[::-1]:
        is_alike = np.isin(trial.group[new], trial.group[here[old.since == first]])
        since[is_alike & (known <= max(first, steps - options.window))] = first
    layout = Layout(questions, options.correction, np.append(old.since, since))
    return _moved(core, layout, np.append(np.arange(len(old)), np.full(len(more), -1)))


def _first_steps(wanted: Ints, signals: Ints, since: Ints) -> Ints:
    """Return the step from which on rows have each wanted signal; far off if none has it."""
    first = np.full(int(max(wanted.max(initial=0), signals.max())) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, signals, since)
    return first[wanted]


def without(core: Core, names: Sequence[str]) -> Core:
    """Return a core without some questions."""
    old, gone = core.layout, set(names)
    stay = np.array([i for i, name in enumerate(old.names) if name not in gone], np.int64)
    questions = [old.questions[i] for i in stay]
    return _moved(core, Layout(questions, core.options.correction, old.since[stay]), stay)


def _moved(core: Core, layout: Layout, origin: Ints) -> Core:
    """Return a core with another layout; `origin` has the old number of each question, or -1."""
    old, new = core.layout, type(core)(layout, core.options)
    kept = np.flatnonzero(origin >= 0)
    was, now = old.place[origin[kept]], layout.place[kept]
    groups = _from(old.group[was], layout.group[now], layout.groups)
    cumulants = _from(old.cumulant[was], layout.cumulant[now], len(layout.cumulants))
    sources = _from(old.source[was], layout.source[now], 1 + len(layout.signals))
    sources[0] = 0
    signals = np.append(cumulants, np.where(sources < 0, -1, sources + len(old.cumulants)))
    for name in ("skipped", "step_size"):
        setattr(new, name, _taken(getattr(core, name), groups, getattr(new, name)))
    for name in ("last", "largest"):
        array = getattr(new.pauses, name)
        setattr(new.pauses, name, _taken(getattr(core.pauses, name), signals, array))
    new.left_out, new.estimated = core.left_out, core.estimated
    new.pauses.diverged[now] = core.pauses.diverged[was]
    new.watch.moved(core.watch, was, now)
    new.courses, off = core.courses, _taken(core.outcomes.off, groups, new.outcomes.off)
    new.outcomes.moved_from(core.outcomes, was, now, off)
    new.traces = [
        core.traces[g] if g >= 0 else trace for g, trace in zip(groups, new.traces, strict=False)
    ]
    draws = new.draws
    draws.rings = _taken(core.draws.rings, groups, draws.rings)
    draws.place, draws.steps = core.draws.place, core.draws.steps
    # New groups get new streams, which depend only on the state: a restored horde gets the same.
    state = [*core.draws.streams[-1].tolist(), core.draws.steps, len(old), len(layout)]
    fresh = xoshiro.streams(len(draws.streams), state)
    draws.streams = _taken(
        core.draws.streams, np.append(groups, len(core.draws.streams) - 1), fresh
    )
    if core.engine is not None:
        ((dtype, width),) = core.form
        new.start((dtype, width))
        assert new.engine is not None
        new.engine.put(now, core.engine.take(was))
        new.steps_per_call, new.window = core.steps_per_call, core.window
        if len(core.window):
            new.window = _with_columns(core, cumulants, sources)
    return new


def _from(was: Ints, now: Ints, count: int) -> Ints:
    """Return the old number of each of the new parts; -1 for those that are new."""
    origin = np.full(count, -1)
    origin[now] = was
    return origin


def _taken(old: NDArray[Any], origin: Ints, fresh: NDArray[Any]) -> NDArray[Any]:
    """Return the old parts in their new order, with fresh ones where the origin is -1."""
    out = fresh.copy()
    out[origin >= 0] = old[origin[origin >= 0]]
    return out


def _with_columns(core: Core, cumulants: Ints, sources: Ints) -> Any:
    """Return the window with the columns of other cumulants and continuations; 0 if unknown."""
    arrays = core.window.checkpoint()
    for name, origin in (("cumulant", cumulants), ("continuation", sources)):
        column = arrays[f"column/{name}"]
        fresh = np.zeros((len(origin), len(column)), column.dtype)
        arrays[f"column/{name}"] = _taken(column.T, origin, fresh).T.copy()
    window = type(core.window)(core.window.capacity)
    window.restore(arrays)
    return window
