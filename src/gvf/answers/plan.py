"""The plan: all that a question file says, and the facts of a log that it leaves open.

A plan has no functions and no arrays. So it can be compared, written into a page, and sent to
another machine. :mod:`gvf.answers.question_file` reads it from a file, and
:mod:`gvf.answers.read_inputs` makes the objects of it, once the log is known: how many actions and
states there are, and their ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.log import Log

Table = dict[str, Any]
"""A table of the file: a kind, and what belongs to it."""


@dataclass(frozen=True)
class Asked:
    """One question of a file.

    Attributes:
        name: its name in files and on the page.
        policy: the target policy, a table with its ``kind``.
        cumulant: the name of a column, a reference, a number or a table.
        continuation: a number, the name of a column, or a reference.
        interest: the same, or None.
    """

    name: str
    policy: Table
    cumulant: Any = "reward"
    continuation: Any = 0.9
    interest: Any = None


@dataclass(frozen=True)
class Plan:
    """All that a question file says.

    Attributes:
        name: the name of the file, without its ending.
        folder: the folder of the file, in which other files and modules are looked for.
        questions: the questions.
        behaviour: a table with its ``kind``: "recorded", "estimated", or that of a policy.
        log: the arguments of :func:`gvf.read_log`.
        features: a table with its ``kind``.
        methods: the corrections to compare, as in studies.
        step_sizes: the step sizes to compare.
        learn: the settings of learning: epochs, order, window, batch_size, every.
        folds: the number of parts that are held out in turn.
        replicates: the number of replicates of the bootstrap; 0 for no intervals.
        level: the level of the intervals.
        seed: the seed of everything.
        dimensions: the two dimensions of the state that the map shows; None for a choice by gvf.
        trust: True if code and modules may run.
    """

    name: str
    folder: Path
    questions: tuple[Asked, ...]
    behaviour: Table
    log: Table
    features: Table
    methods: tuple[Any, ...]
    step_sizes: tuple[float, ...]
    learn: Table = field(default_factory=dict)
    folds: int = 3
    replicates: int = 199
    level: float = 0.95
    seed: int = 0
    dimensions: tuple[Any, ...] | None = None
    trust: bool = False


def texts(setting: Any) -> Iterator[str]:
    """Yield all texts in a value of a plan.

    Example:
        >>> from gvf.answers.plan import texts
        >>> list(texts(["IR", {"correction": "mine:Root", "update": {"rule": "tdrc"}}]))
        ['IR', 'mine:Root', 'tdrc']
    """
    if isinstance(setting, str):
        yield setting
    elif isinstance(setting, dict):
        for value in setting.values():
            yield from texts(value)
    elif isinstance(setting, list | tuple):
        for value in setting:
            yield from texts(value)


def setting_text(setting: Any) -> str:
    """Return a setting of a question as text, as it stands in the file.

    Example:
        >>> from gvf.answers.plan import setting_text
        >>> setting_text({"kind": "favour", "action": 1, "probability": 0.9, "actions": None})
        'favour, action = 1, probability = 0.9'
    """
    if not isinstance(setting, dict):
        return str(setting)
    rest = {name: value for name, value in setting.items() if name != "kind" and value is not None}
    parts = [
        f"{name} = {setting_text(value) if isinstance(value, dict) else value}"
        for name, value in rest.items()
    ]
    return ", ".join([*([setting["kind"]] if "kind" in setting else []), *parts])


SAMPLE = 100_000
"""The number of states, at least, from which ranges are taken; a smaller log gives all of its."""
QUANTILES = (0.005, 0.995)
"""The quantiles of the states' dimensions that bound tile coding and scaled features."""


@dataclass(frozen=True)
class Facts:
    """Facts of a log that a plan leaves open.

    Attributes:
        actions: the number of actions, if they are whole numbers; otherwise None.
        states: the number of states, if they are whole numbers; otherwise None.
        last_action: the largest action and its place, in words.
        last_state: the largest state and its place, in words.
        names: the names of the dimensions of a state.
        sample: states of the log, [n, ...].
        not_numbered: why the actions are not numbered, in words; empty if they are.
        renamed: the meanings of columns that have other names in the file, by these names.
    """

    actions: int | None
    states: int | None
    last_action: str
    last_state: str
    names: tuple[str, ...]
    sample: Array
    not_numbered: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, log: Log) -> Facts:
        """Look through a log."""
        stride = max(1, len(log) // SAMPLE)
        most, place, sample, before = {"action": -1, "state": -1}, {}, [], 0
        action = state = np.zeros(0)
        for batch in log:
            action, state = batch.action, batch.state
            for name, column in (("action", action), ("state", state)):
                if column.dtype.kind in "iub" and column.ndim == 1 and column.max() > most[name]:
                    most[name] = int(column.max())
                    place[name] = before + int(column.argmax())
            sample.append(state[(-before) % stride :: stride])
            before += len(batch)
        texts = {name: f"{log.place(at)} has {name} {most[name]}" for name, at in place.items()}
        why = ""
        if "action" not in place:
            why = f"the log's are {action.dtype}{list(action.shape[1:]) or ''}"
            if action.ndim == 1 and (action == np.floor(action)).all():
                why += ": store them as whole numbers (integers)"
        width = int(np.prod(state.shape[1:]))
        columns = log.meanings.get("state", ())
        names = columns if len(columns) == width else [f"state[{i}]" for i in range(width)]
        return cls(
            actions=most["action"] + 1 if "action" in place else None,
            states=most["state"] + 1 if "state" in place else None,
            last_action=texts.get("action", ""),
            last_state=texts.get("state", ""),
            names=tuple(names),
            sample=np.concatenate(sample),
            not_numbered=why,
            renamed={
                columns[0]: meaning
                for meaning, columns in log.meanings.items()
                if meaning in log.columns and meaning not in ("state", "next_state")
            },
        )

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The range of each dimension of the states, [d] and [d], without rare outliers."""
        flat = self.sample.reshape(len(self.sample), -1).astype(np.float64)
        flat = np.where(np.isfinite(flat), flat, np.nan)
        low, high = np.nanquantile(flat, QUANTILES, axis=0)
        same = high <= low
        least, most = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
        low, high = np.where(same, least, low), np.where(same, most, high)
        still = high <= low  # a dimension that never changes
        return np.where(still, low - 0.5, low), np.where(still, high + 0.5, high)
