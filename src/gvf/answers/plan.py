"""The plan: all that a question file says, as plain data.

A plan has no functions and no arrays. So it can be compared, written into a page, and sent to
another machine. :mod:`gvf.answers.question_file` reads it from a file, and
:mod:`gvf.answers.read_inputs` makes the objects of it, once the log is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
