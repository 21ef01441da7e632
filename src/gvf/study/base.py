"""What all studies have in common: tasks, the columns of their results, and how one is run.

A study is data: it says what is run, nothing random and nothing compiled. It expands to tasks, one
for each pair of question and behaviour, each gap and each run. A task gives rows: for each of its
methods one for each *choice* (a step size, say), with the key columns that tell them apart and the
columns that were measured. Engine, store, command line and figures know no more than this of a
study, and so none of them knows its kind.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from gvf.common.names import known, nearest
from gvf.study.method import NAMED, Method

Columns = Mapping[str, Any]
"""Columns by name, each with one entry for each row: numbers [rows], or lists [rows, m]."""
Stop = Callable[[], bool]
"""Asked now and then by a task: whether it should stop."""


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """A task was told to stop; nothing of it is kept."""


class BaseStudy(ABC):
    """A grid of pairs, gaps, methods and choices, over runs.

    Subclasses are frozen dataclasses; their fields are the settings, and the keys of a TOML file.

    Attributes:
        name: of the study, and of its folder of results.
        domain: where it happens, by name.
        methods: by name, in the order of the rows.
        own: what the names stand for that are not ours.
        pairs: (question, behaviour), by name.
        runs: how many.
        seed: of everything random.
    """

    kind: ClassVar[str]
    """The word that a file has for it."""
    keys: ClassVar[tuple[str, ...]]
    """The columns, besides the method, that tell the rows of a task apart."""
    measures: ClassVar[Mapping[str, str]]
    """The columns that are measured, and what each is, in words."""
    pictures: tuple[str, ...]
    """What can be drawn of it, the first before all; see :mod:`gvf.report.study`."""
    quantity: str
    """What its errors are, for the axis of a picture."""
    update = ""
    """How it updates, where it has a choice."""
    own_threads: ClassVar[bool] = False
    """Whether its work is done by threads that do not count as the worker's."""

    name: str
    domain: str
    methods: tuple[str, ...]
    own: tuple[Method, ...]
    pairs: tuple[tuple[str, str], ...]
    runs: int
    seed: int

    @property
    def protocol(self) -> str:
        """Under which it runs; "both" where that makes no difference."""
        return "both"

    @property
    def generation(self) -> int:
        """Raised when the same study gives other numbers than before; part of its settings."""
        return 1

    @property
    def gaps(self) -> tuple[Any, ...]:
        """Steps between updates; one None where there is no such thing."""
        return (None,)

    @abstractmethod
    def choices(self, method: str) -> tuple[Any, ...]:
        """What a method's rows differ in: values of `keys`, one or a tuple of them each."""

    @abstractmethod
    def key(self, choice: Any) -> Columns:
        """The key columns of a choice's row; those that do not apply are left out."""

    @abstractmethod
    def parts(self, method: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The parts of a method that can be run alone: a name for each, and the settings."""

    @abstractmethod
    def compute(self, task: Task, stop: Stop) -> Columns:
        """Do a task: what was measured, in the order of methods and choices."""

    @abstractmethod
    def tiny(self) -> Self:
        """The same study, so small that a task takes a moment: a trial of its parts."""

    @abstractmethod
    def probe(self) -> dict[int, float]:
        """Seconds of a task, by gap, from a short trial."""

    def check(self) -> None:  # noqa: B027 (may be left as it is)
        """Refuse, in one line, what could not be run; asked before anything is written."""

    def facts(self) -> dict[str, Any]:
        """What all its results must have been made from alike, for the log."""
        return {}

    def workers(self, engine: str, wanted: int | None) -> int | None:
        """How many tasks may be done at once."""
        return wanted

    def under(self, protocol: str | None) -> Self:
        """The same study under a protocol, where they differ."""
        return self

    def count(self) -> int:
        """How many choices a task has, over all methods."""
        return sum(len(self.choices(method)) for method in self.methods)

    def method(self, name: str) -> Method:
        """What a name among `methods` stands for."""
        return next((one for one in self.own if one.name == name), None) or NAMED[name]

    def tasks(self) -> Iterator[Task]:
        """Every task of the grid; those of one run come together."""
        for run in range(self.runs):
            for (question, behaviour), gap in product(self.pairs, self.gaps):
                yield Task(self, question, behaviour, run, gap)

    def part(self, name: str) -> Task:
        """The task that is one part of the grid, by its name: one method with one step size.

        Example:
            >>> from gvf.study import Study, run_task
            >>> study = Study("s", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=10, runs=2)
            >>> name = next(next(study.tasks()).parts())
            >>> name
            's/easy/easy/gap-1/run-0/IR/0.5'
            >>> [outcome.method for outcome in run_task(study.part(name))]
            ['IR']
        """
        for task in self.tasks():
            if name.startswith(f"{task.name}/"):
                parts = {part: only for one in self.methods for part, only in self.parts(one)}
                wanted = known(name.removeprefix(f"{task.name}/"), parts, f"part of {task.name}")
                return replace(task, study=self.with_(**parts[wanted]))
        task = next(self.tasks())
        raise ValueError(
            f"nothing in study {self.name!r} with {self.runs} runs is called {name!r}; a task is "
            f"called, for example, {task.name!r}, and a part {next(task.parts())!r}"
        )

    def with_(self, **changes: Any) -> Self:
        """The same study with other values."""
        for name in changes:
            if name not in self.__dataclass_fields__:  # type: ignore[attr-defined]
                told = nearest(name, self.settings, "`gvf show STUDY` shows all")
                raise ValueError(f"unknown setting: {name!r}; {told}")
        if "domain" in changes:  # another world has other pairs
            changes = {"pairs": (), **changes}
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of its fields that a file may have."""
        names: Sequence[str] = list(self.__dataclass_fields__)  # type: ignore[attr-defined]
        return tuple(name for name in names if name != "own")


@dataclass(frozen=True)
class NamedStudy:
    """A study that is known by name, as one for each protocol.

    Attributes:
        name: unique among them.
        shows: a few words about what one sees in it.
        make: makes it, from the protocol "paper" or "authors".
    """

    name: str
    shows: str
    make: Callable[[str], BaseStudy]


@dataclass(frozen=True)
class Task:
    """One pair, one gap, one run: all methods and choices of a study.

    Attributes:
        study: whose.
        question: by name.
        behaviour: by name.
        run: its number.
        gap: steps between updates, where there is such a thing.
    """

    study: Any
    question: str
    behaviour: str
    run: int
    gap: int | None = None

    @property
    def name(self) -> str:
        """Unique in all studies, and a path."""
        gap = "" if self.gap is None else f"gap-{self.gap}/"
        return f"{self.study.name}/{self.question}/{self.behaviour}/{gap}run-{self.run}"

    def parts(self) -> Iterator[str]:
        """The names of the parts: this task's, the method's, the step size's."""
        for method in self.study.methods:
            for part, _ in self.study.parts(method):
                yield f"{self.name}/{part}"


def seed_for(seed: int, run: int, *purpose: object) -> np.random.SeedSequence:
    """The seed of one purpose in one run, made from the study's seed, the run and what it is for.

    Example:
        >>> from gvf.study.base import seed_for
        >>> seed_for(0, 1, "walk", "uniform").spawn_key
        (1, 3836136024)
    """
    key = zlib.crc32("/".join(map(str, purpose)).encode())
    return np.random.SeedSequence(seed, spawn_key=(run, key))
