"""A horde with other questions: what it has learned, in another layout.

Whatever belongs to a question, a group, a cumulant or a continuation goes with it. New groups begin
with ratio 0 for the transitions in the window, so they draw only those that come later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.horde.layout import Ints, Layout
from gvf.horde.pauses import SignalHistory
from gvf.horde.shard import Shard, axis_of
from gvf.horde.signals import Signals
from gvf.question import GVF
from gvf.sampling import xoshiro


def with_questions(
    signals: Signals, shard: Shard, questions: Sequence[GVF]
) -> tuple[Signals, Shard]:
    """Return the parts of a horde with more questions, after those that it has.

    A new question joins a group in which every row that may be drawn knows its signals, the one
    with most rows if there are several. Else it learns from new rows only.
    """
    old, options, steps = shard.layout, shard.options, shard.steps
    every = [*old.questions, *questions]
    trial = Layout(every, options.correction)  # its groups do not depend on time
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
    layout = Layout(every, options.correction, np.append(old.since, since))
    origin = np.append(np.arange(len(old)), np.full(len(new), -1))
    return _moved(signals, shard, layout, origin)


def _first_steps(wanted: Ints, signals: Ints, since: Ints) -> Ints:
    """Return the step from which on rows have each wanted signal; far off if none has it."""
    first = np.full(int(max(wanted.max(initial=0), signals.max())) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, signals, since)
    return first[wanted]


def without_questions(
    signals: Signals, shard: Shard, names: Sequence[str]
) -> tuple[Signals, Shard]:
    """Return the parts of a horde without some questions."""
    old, gone = shard.layout, set(names)
    stay = np.array([i for i, name in enumerate(old.names) if name not in gone], np.int64)
    questions = [old.questions[i] for i in stay]
    layout = Layout(questions, shard.options.correction, old.since[stay])
    return _moved(signals, shard, layout, stay)


def _moved(signals: Signals, shard: Shard, layout: Layout, origin: Ints) -> tuple[Signals, Shard]:
    """Return the parts for another layout; `origin` has the old number of each question, or -1."""
    old = shard.layout
    stays = np.flatnonzero(origin >= 0)
    was, now = old.place[origin[stays]], layout.place[stays]
    groups = _from(old.group[was], layout.group[now], layout.groups)
    cumulants = _from(old.cumulant[was], layout.cumulant[now], len(layout.cumulants))
    sources = _from(old.source[was], layout.source[now], 1 + len(layout.signals))
    sources[0] = 0
    origins = {
        "groups": groups,
        "places": _from(was, now, len(layout)),
        "cumulants": cumulants,
        "continuations": sources,
        "streams": np.append(groups, len(shard.draws.streams) - 1),
    }
    new_shard = _moved_shard(shard, Shard(layout, shard.options), origins)
    if shard.weights is not None and new_shard.weights is not None:
        new_shard.weights.put(now, shard.weights.take(was))
    new = Signals(layout, signals.options)
    fresh, columns = new.history, np.where(sources < 0, -1, sources + len(old.cumulants))
    columns = np.append(cumulants, columns)
    new.history = SignalHistory(
        *(_taken(part, columns, like) for part, like in zip(signals.history, fresh, strict=True))
    )
    new.traces = [
        signals.traces[g] if g >= 0 else trace for g, trace in zip(groups, new.traces, strict=False)
    ]
    for name in ("courses", "form", "left_out", "estimated", "outside"):
        setattr(new, name, getattr(signals, name))
    return new, new_shard


def _moved_shard(shard: Shard, new: Shard, origins: dict[str, Ints]) -> Shard:
    """Let a new shard have the state of another, but for the weights."""
    # New groups get new streams, which depend only on the state: a restored horde gets the same.
    state = [*shard.draws.streams[-1].tolist(), shard.steps, len(shard.layout), len(new.layout)]
    arrays, fresh = shard.state_dict(weights=False), new.state_dict(weights=False)
    fresh["draws/streams"] = xoshiro.streams(len(new.draws.streams), state)
    moved: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        axis = axis_of(name)
        if axis in ("cumulants", "continuations"):
            like = np.zeros((len(array), len(origins[axis])), array.dtype)  # 0 if unknown
            moved[name] = _taken(array.T, origins[axis], like.T).T.copy()
        else:
            moved[name] = array if axis is None else _taken(array, origins[axis], fresh[name])
    new.load_state_dict(moved)
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
