"""A study: a grid of (pair, method, step size, gap) x runs, as data.

It says what is run, not how: nothing random, nothing compiled. It expands to tasks, one for each
pair of question and behaviour, each gap and each run; a task does all methods and step sizes, which
share its stream and its draws. Every task, and every cell of the grid, has a name and gives the
same bits alone as in the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from gvf.domain.domain import known
from gvf.study.check import check_at_least, check_distinct, check_several, check_shared
from gvf.study.method import METHODS, OPTIMISERS, UPDATES

if TYPE_CHECKING:
    from gvf.study.racing import RacingStudy
    from gvf.study.variance import VarianceStudy

ERRORS = {"absolute": False, "root mean square": True}
"""How |V - v| is averaged over states; the value says whether it is squared."""


@dataclass(frozen=True, repr=False)
class Study:
    """What to run.

    Attributes:
        name: of the study, and of its folder of results.
        domain: by name, see :func:`gvf.domain.get`.
        methods: by name, see ``gvf.study.METHODS``.
        step_sizes: of every method but WIS-TD(0).
        protocol: "paper" or "authors".
        pairs: (question, behaviour), by name; by default all that belong together.
        update: "sgd", "rmsprop", "adam", "incremental", "tdc" or "tdrc".
        steps: of the stream; with a fixed buffer, how many transitions it holds.
        updates: with a fixed buffer, how many; 0: online, an update every ``gap`` steps.
        gaps: steps between updates.
        warm_up: steps before the first of these intervals.
        window: how many recent transitions draws are made from, n.
        batch_size: how many are drawn for an update, k.
        error: "absolute" or "root mean square".
        measure_every: steps between measurements of the error, which is averaged over the run.
        points: of a learning curve.
        u0: of WIS-TD(0).
        mu: of WIS-TD(0); eta = mu / u0.
        evaluation_states: where values are sampled, how many states count.
        runs: how many.
        seed: of everything random.

    Example:
        >>> from gvf.study import Study
        >>> study = Study("mine", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=100, runs=3)
        >>> len(list(study.tasks())), next(study.tasks()).name
        (9, 'mine/easy/easy/gap-1/run-0')
        >>> study
        Study 'mine' (protocol 'paper') in markov-chain
          pairs: easy/easy, hard/hard, hardest/hardest
          methods: IR, IS
          update: sgd, step sizes 0.5, 1
          15000 steps, window 15000, batches of 16, 100 updates
          absolute error, 3 runs, seed 0
    """

    name: str
    domain: str
    methods: tuple[str, ...]
    step_sizes: tuple[float, ...] = ()
    protocol: str = "paper"
    pairs: tuple[tuple[str, str], ...] = ()
    update: str = "sgd"
    steps: int = 15_000
    updates: int = 0
    gaps: tuple[int, ...] = (1,)
    warm_up: int = 0
    window: int = 15_000
    batch_size: int = 16
    error: str = "absolute"
    measure_every: int = 1
    points: int = 100
    u0: tuple[float, ...] = ()
    mu: tuple[float, ...] = ()
    evaluation_states: int = 1000
    runs: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        check_shared(self)
        known(self.update, UPDATES, "update")
        known(self.error, ERRORS, "error")
        for method in self.methods:
            self._check_method(method)
        self._check_numbers()

    def _check_numbers(self) -> None:
        positive = ("steps", "window", "batch_size", "measure_every", "points", "runs")
        for name in (*positive, "evaluation_states"):
            check_at_least(1, **{name: getattr(self, name)})
        check_at_least(0, warm_up=self.warm_up, updates=self.updates, seed=self.seed)
        check_several(gaps=self.gaps)
        for gap in self.gaps:
            check_at_least(1, gaps=gap)
        for name, least in (("step_sizes", 0.0), ("u0", 1e-300), ("mu", 1e-300)):
            check_distinct(**{name: getattr(self, name)})
            for value in getattr(self, name):
                if not least <= value < float("inf"):
                    sign = "not negative" if least == 0.0 else "positive"
                    raise ValueError(f"{name} must be finite and {sign}, got {value}")
        if self.updates and self.gaps != (1,):
            raise ValueError("a fixed buffer (updates > 0) has no gaps")
        if not self.updates and self.warm_up + max(self.gaps) > self.steps:
            raise ValueError(
                f"no update would come in {self.steps} steps, after a warm_up of {self.warm_up} "
                f"and with gaps of up to {max(self.gaps)}"
            )
        if self.measure_every > (self.updates or self.steps):
            raise ValueError(
                f"nothing would be measured: measure_every is {self.measure_every}, and there are "
                f"{self.updates or self.steps} steps or updates"
            )

    def _check_method(self, name: str) -> None:
        method = METHODS[name]
        if method.kind == "wis-td":
            if not (self.u0 and self.mu):
                raise ValueError(f"{name} needs u0 and mu instead of step sizes")
        elif not self.step_sizes:
            raise ValueError(f"{name} needs step_sizes")
        if method.kind in ("sarsa", "expected sarsa") and self.update not in OPTIMISERS:
            raise ValueError(
                f"{name} learns action values from whole mini-batches: update must be one of "
                f"{', '.join(OPTIMISERS)}, not {self.update}"
            )
        if method.correction(1.0).draw.whole:
            if self.update == "incremental":
                raise ValueError(f"{name} has no draws to go through: no incremental update")
            if method.kind == "sarsa":
                raise ValueError(f"{name} needs a next action for each draw, and has no draws")
            if self.domain == "continuous-four-rooms":
                raise ValueError(
                    f"{name} needs the whole window in every update: affordable in a table, "
                    "where transitions repeat, not with continuous states"
                )

    def lanes(self, method: str) -> tuple[Any, ...]:
        """The step sizes of a method, or for WIS-TD(0) its (u0, eta)."""
        if METHODS[method].kind == "wis-td":
            return tuple((u0, mu / u0) for u0, mu in product(self.u0, self.mu))
        return self.step_sizes

    def tasks(self) -> Iterator[Task]:
        """Every task of the grid; those of one run come together."""
        for run in range(self.runs):
            for (question, behaviour), gap in product(self.pairs, self.gaps):
                yield Task(self, question, behaviour, gap, run)

    def cell(self, name: str) -> Task:
        """The task that is one cell of the grid, by its name: one method, one step size.

        Example:
            >>> from gvf.study import Study, run_task
            >>> study = Study("s", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=10, runs=2)
            >>> name = next(next(study.tasks()).cells())
            >>> name
            's/easy/easy/gap-1/run-0/IR/0.5'
            >>> [outcome.method for outcome in run_task(study.cell(name))]
            ['IR']
        """
        for task in self.tasks():
            if name.startswith(task.name + "/"):
                for method, lane, cell in task.each():
                    if cell == name:
                        wis = METHODS[method].kind == "wis-td"
                        only = {"u0": lane[:1], "mu": lane[1:]} if wis else {"step_sizes": (lane,)}
                        return replace(task, study=self.with_(methods=(method,), **only))
                method, _, size = name.removeprefix(f"{task.name}/").partition("/")
                known(method, self.methods, f"method in the name {name!r}")
                sizes = [cell.split("/")[-1] for one, _, cell in task.each() if one == method]
                known(size, sizes, f"step size of {method} in the name {name!r}")
        raise no_such_name(self, name)

    def __repr__(self) -> str:
        sizes = self.step_sizes
        if len(sizes) > 6:
            shown = f"{len(sizes)} from {sizes[0]:g} to {sizes[-1]:g}"
        else:
            shown = ", ".join(f"{size:g}" for size in sizes)
        when = f"{self.updates} updates" if self.updates else f"gaps {_short(self.gaps)}"
        return (
            f"Study {self.name!r} (protocol {self.protocol!r}) in {self.domain}\n"
            f"  pairs: {', '.join('/'.join(pair) for pair in self.pairs)}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  update: {self.update}, step sizes {shown}\n"
            f"  {self.steps} steps, window {self.window}, batches of {self.batch_size}, {when}\n"
            f"  {self.error} error, {self.runs} runs, seed {self.seed}"
        )

    def with_(self, **changes: Any) -> Study:
        """The same study with other values."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Task:
    """One pair, one gap, one run: all methods and step sizes of a study."""

    study: Study
    question: str
    behaviour: str
    gap: int
    run: int

    @property
    def name(self) -> str:
        """Unique in all studies, and a path."""
        return f"{self.study.name}/{self.question}/{self.behaviour}/gap-{self.gap}/run-{self.run}"

    def each(self) -> Iterator[tuple[str, Any, str]]:
        """Method, lane (a step size, or u0 and mu), and name of every cell."""
        for method in self.study.methods:
            if METHODS[method].kind == "wis-td":
                for u0, mu in product(self.study.u0, self.study.mu):
                    yield method, (u0, mu), f"{self.name}/{method}/u0={u0!r},mu={mu!r}"
            else:
                for size in self.study.step_sizes:
                    yield method, size, f"{self.name}/{method}/{size!r}"

    def cells(self) -> Iterator[str]:
        """The names of the cells: this task's, the method's, the step size's."""
        return (name for _, _, name in self.each())


def no_such_name(study: Study | VarianceStudy | RacingStudy, name: str) -> ValueError:
    """The error when neither a task nor a cell is called so."""
    task = next(study.tasks())
    return ValueError(
        f"nothing in study {study.name!r} with {study.runs} runs is called {name!r}; a task is "
        f"called, for example, {task.name!r}, and a cell {next(task.cells())!r}"
    )


def _short(numbers: tuple[int, ...]) -> str:
    if len(numbers) > 6:
        return f"{numbers[0]} to {numbers[-1]} ({len(numbers)})"
    return ", ".join(map(str, numbers))
