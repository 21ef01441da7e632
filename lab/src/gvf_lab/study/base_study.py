"""The base of all studies: tasks, the columns of their results, and the methods of a study.

A study is data: it defines the runs and holds nothing random or compiled. It expands to tasks, one
for each pair of question and behaviour, each gap and each run. A task gives one row for each method
and each *choice* (a step size, say). A row has the key columns that identify it and the columns
that were measured. The engine, the store, the command line and the figures use only this interface,
so they work with studies of every kind.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from gvf import Method
from gvf.common.part_names import known, nearest
from gvf.jobs import Place, Stop, Threads
from gvf.kernels import NAMED
from gvf_lab import domain as domains
from gvf_lab.domain import Domain, Trajectory

Columns = Mapping[str, Any]
"""Columns by name, each with one entry for each row: numbers [rows], or lists [rows, m]."""


class BaseStudy(ABC):
    """A grid of pairs, gaps, methods and choices, over runs.

    Subclasses are frozen dataclasses; their fields are the settings, and the keys of a TOML file. A
    kind defines :meth:`compute`, :meth:`tiny` and :meth:`probe`, and its grid.

    Attributes:
        name: the study's name, also that of its folder of results.
        domain: the domain's name.
        methods: the methods' names, in the order of the rows.
        own: the methods among them that are not built in.
        pairs: the (question, behaviour) pairs, by name.
        runs: the number of runs.
        seed: the seed of everything random.
    """

    kind: ClassVar[str]
    """The word for this kind of study in a TOML file."""
    keys: ClassVar[tuple[str, ...]]
    """The columns, besides the method, that tell the rows of a task apart."""
    grid: ClassVar[Mapping[str, str]]
    """The parameters that are varied, each with the setting that has its values."""
    least: ClassVar[Mapping[str, int]]
    """The settings that are whole numbers or several, each with the smallest value allowed."""
    measures: ClassVar[Mapping[str, str]]
    """The columns that are measured, each with a description."""
    pictures: tuple[str, ...]
    """The pictures that can be drawn, the most important first; see
    :mod:`gvf_lab.report.study_pages`."""
    quantity: str
    """The description of its errors on the axis of a picture."""
    update = ""
    """The name of the update, if the study lets the user choose one."""
    own_threads: ClassVar[bool] = False
    """True if the work is done by threads whose time is not counted as the worker's."""
    patience: ClassVar[float] = 1.0
    """Seconds that a task may take to stop when it is told to."""

    name: str
    domain: str
    methods: tuple[str, ...]
    own: tuple[Method, ...]
    pairs: tuple[tuple[str, str], ...]
    runs: int
    seed: int

    @property
    def protocol(self) -> str:
        """The protocol that it runs under; "both" if protocols make no difference."""
        return "both"

    @property
    def generation(self) -> int:
        """The version of the study's numbers, raised when they change; one of its settings."""
        return 1

    @property
    def gaps(self) -> tuple[Any, ...]:
        """Steps between updates; a single None if the study has no gaps."""
        return (None,)

    @property
    def world(self) -> Domain:
        """The domain, under the study's protocol."""
        return domains.get(self.domain, "paper" if self.protocol == "both" else self.protocol)

    def varied(self, method: str) -> tuple[str, ...]:
        """Return the parameters of the grid that a method has; by default all."""
        return tuple(self.grid)

    def _points(self, method: str) -> Iterator[dict[str, Any]]:
        """Yield the points of a method's grid: the parameters that it has, with their values."""
        names = self.varied(method)
        for values in product(*(getattr(self, self.grid[name]) for name in names)):
            yield dict(zip(names, values, strict=True))

    def choice(self, **point: Any) -> Any:
        """Return the choice at a point of the grid; by default the value of its parameter."""
        (value,) = point.values()
        return value

    def choices(self, method: str) -> tuple[Any, ...]:
        """Return a method's choices, one for each row: all combinations of its parameters."""
        return tuple(self.choice(**point) for point in self._points(method))

    def key(self, choice: Any) -> Columns:
        """Return the key columns of a choice's row, without those that do not apply."""
        (name,) = self.grid
        return {name: choice}

    def parts(self, method: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the parts of a method, which can be run alone: the name and settings of each."""
        for point in self._points(method):
            only = {self.grid[name]: (value,) for name, value in point.items()}
            yield f"{method}/{self._part_name(**point)}", {"methods": (method,), **only}

    def _part_name(self, **point: Any) -> str:
        """Return the name of the part at a point of the grid; a single parameter needs no name."""
        if len(point) == 1:
            return repr(*point.values())
        return ",".join(f"{name}={value!r}" for name, value in point.items())

    @abstractmethod
    def compute(self, task: Task, stop: Stop) -> Columns:
        """Do a task and return the measured columns, in the order of methods and choices."""

    @abstractmethod
    def tiny(self) -> Self:
        """Return the same study, so small that a task takes a moment; it serves as a trial."""

    @abstractmethod
    def probe(self) -> dict[int, float]:
        """Measure the seconds of a task in a short trial and return them by gap."""

    def check(self) -> None:  # noqa: B027 (may be left as it is)
        """Raise an error of one line if the study cannot run; called before anything is written."""

    def facts(self) -> dict[str, Any]:
        """Return what all results of the study must have in common; the log keeps it."""
        return {}

    def finished(self, task: Task) -> None:  # noqa: B027 (may be left as it is)
        """Remove what a task leaves elsewhere; called once its result is stored or shown."""

    def place(self, place: Place) -> Place:
        """Return the place where tasks are done, for one that the user chose."""
        return replace(place, patience=self.patience) if isinstance(place, Threads) else place

    def under(self, protocol: str | None) -> Self:
        """Return the same study under a protocol, if protocols make a difference."""
        return self

    def count(self) -> int:
        """Return the number of choices of a task, over all methods."""
        return sum(len(self.choices(method)) for method in self.methods)

    def method(self, name: str) -> Method:
        """Return the method of this name."""
        return next((method for method in self.own if method.name == name), None) or NAMED[name]

    def tasks(self) -> Iterator[Task]:
        """Yield every task of the grid, run after run."""
        for run in range(self.runs):
            for (question, behaviour), gap in product(self.pairs, self.gaps):
                yield Task(self, question, behaviour, run, gap)

    def part(self, name: str) -> Task:
        """Return the task that does only the part of this name: one method with one choice.

        Example:
            >>> from gvf_lab.study import Study, run_task
            >>> study = Study("s", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=10, runs=2)
            >>> name = next(next(study.tasks()).parts())
            >>> name
            's/easy/easy/gap-1/run-0/IR/0.5'
            >>> [outcome.method for outcome in run_task(study.part(name))]
            ['IR']
        """
        for task in self.tasks():
            if name.startswith(f"{task.name}/"):
                parts = {part: only for method in self.methods for part, only in self.parts(method)}
                wanted = known(name.removeprefix(f"{task.name}/"), parts, f"part of {task.name}")
                return replace(task, study=self.with_(**parts[wanted]))
        task = next(self.tasks())
        raise ValueError(
            f"nothing in study {self.name!r} with {self.runs} runs is called {name!r}; a task is "
            f"called, for example, {task.name!r}, and a part {next(task.parts())!r}"
        )

    def with_(self, **changes: Any) -> Self:
        """Return the same study with other values."""
        for name in changes:
            if name not in self.__dataclass_fields__:  # type: ignore[attr-defined]
                hint = nearest(name, self.settings, "`gvf study show STUDY` shows all")
                raise ValueError(f"unknown setting: {name!r}; {hint}")
        if "domain" in changes:  # another world has other pairs
            changes = {"pairs": (), **changes}
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the fields that a TOML file may set."""
        names: Sequence[str] = list(self.__dataclass_fields__)  # type: ignore[attr-defined]
        return tuple(name for name in names if name != "own")


@dataclass(frozen=True)
class NamedStudy:
    """A study that is known by name, in one version for each protocol.

    Attributes:
        name: the unique name.
        shows: a short description of what the study shows.
        make: the function that makes the study, given the protocol "paper" or "authors".
    """

    name: str
    shows: str
    make: Callable[[str], BaseStudy]


@dataclass(frozen=True)
class Task:
    """All methods and choices of a study, for one pair, one gap and one run.

    Attributes:
        study: the study that the task belongs to.
        question: the question's name.
        behaviour: the behaviour's name.
        run: the number of the run.
        gap: steps between updates; None if the study has no gaps.
    """

    study: Any
    question: str
    behaviour: str
    run: int
    gap: int | None = None

    @property
    def name(self) -> str:
        """The name of the task, unique among all studies; it is also a path."""
        gap = "" if self.gap is None else f"gap-{self.gap}/"
        return f"{self.study.name}/{self.question}/{self.behaviour}/{gap}run-{self.run}"

    @property
    def world(self) -> Domain:
        """The domain of the task's run."""
        return self.study.world.for_run(self.run, self.study.seed)

    def walk(self, world: Domain, questions: Sequence[str], steps: int) -> Trajectory:
        """Walk through the run's world by the behaviour; all gaps and methods share the path."""
        seed = seed_for(self.study.seed, self.run, "walk", self.behaviour)
        path = world.walk(world.behaviour(self.behaviour), questions, steps, seed)
        for question in questions:
            path.check(question, world.features.size)
        return path

    def parts(self) -> Iterator[str]:
        """Yield the names of the parts: the task's name, the method's and the choice's."""
        for method in self.study.methods:
            for part, _ in self.study.parts(method):
                yield f"{self.name}/{part}"


def seed_for(seed: int, run: int, *purpose: object) -> np.random.SeedSequence:
    """Return the seed of one purpose in one run, derived from the study's seed.

    Example:
        >>> from gvf_lab.study.base_study import seed_for
        >>> seed_for(0, 1, "walk", "uniform").spawn_key
        (1, 3836136024)
    """
    key = zlib.crc32("/".join(map(str, purpose)).encode())
    return np.random.SeedSequence(seed, spawn_key=(run, key))
