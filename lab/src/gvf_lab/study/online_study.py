"""A study of online algorithms: step sizes, trace decays and further parameters, over many runs.

The algorithms of :mod:`gvf.online` learn from each transition once and need neither a window nor
draws. A task is one run: a walk of the behaviour, from which every algorithm learns all questions
with all parameters. The error at a time is

    mean over questions q of  sqrt( sum_s d(s) (V_q(s) - v_q(s))^2 / sum_s d(s) ),

where s are the states in which q is active, with the weights d of the domain. Steps at which a
question is not active change nothing but its trace, which begins anew. So they are left out. Errors
are measured before every step, and each counts for as long as it lasts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit

from gvf.common.arrays import Array, Floats
from gvf.common.part_names import find, is_reference, known
from gvf.jobs import Interrupted
from gvf.kernels import Measure, Steps, features_of, run, start_streams, steps_of
from gvf.online import (
    ABTD,
    GTD,
    GTD2,
    HTD,
    Algorithm,
    EmphaticTD,
    ProximalGTD2,
    TDLambda,
    TDRCLambda,
    TreeBackup,
    VTraceLambda,
)
from gvf_lab import domain as domains
from gvf_lab.domain import Domain, Trajectory
from gvf_lab.domain.domain import every_pair
from gvf_lab.study.base_study import BaseStudy, Columns, Stop, Task
from gvf_lab.study.settings import (
    check_name,
    check_numbers,
    check_part,
    check_several,
    check_types,
)

GRIDS = {
    "step_size": "step_sizes",
    "trace_decay": "trace_decays",
    "eta": "etas",
    "beta": "betas",
    "zeta": "zetas",
}
"""The parameters of algorithms, each with the setting that has its values."""
ALL = "all"
"""The word that stands for all questions of a behaviour."""
LAST_SHARE = 0.01
"""The share of a run over which the final error is averaged."""
ERRORS = 2**18
"""The number of errors that are measured before they are added up."""
RANK = 1e-12
"""The share of the largest singular value below which one counts as 0."""


class Choice(NamedTuple):
    """The parameters of an algorithm; None for those that it has not, or that are not varied."""

    step_size: float
    trace_decay: float | None = None
    eta: float | None = None
    beta: float | None = None
    zeta: float | None = None


@dataclass(frozen=True)
class OnlineMethod:
    """An online algorithm and the parameters that a study varies.

    Attributes:
        name: the name in figures, or "module:Class".
        algorithm: the class.
        varied: the parameters that are varied; the others have their defaults.
        colour: the colour in figures; by default figures choose one.
    """

    name: str
    algorithm: type[Algorithm]
    varied: tuple[str, ...]
    colour: str = ""

    @classmethod
    def of(cls, name: Any) -> OnlineMethod:
        """Return the method of this name, or that of a user's class by its reference."""
        if not isinstance(name, str) or not is_reference(name):
            return NAMED[known(name, NAMED, "algorithm")]
        value = find(name, "algorithm")
        if not isinstance(value, type) or not issubclass(value, Algorithm):
            raise ValueError(f"algorithm {name!r} is not a subclass of gvf.online.Algorithm")
        for field in value.lane_fields:
            known(field, GRIDS, f"parameter of {name}")
        return cls(name, value, value.lane_fields)

    def make(self, choices: tuple[Choice, ...], **constants: float) -> Algorithm:
        """Make the algorithm with a lane for each choice."""
        lanes = {name: [getattr(choice, name) for choice in choices] for name in self.varied}
        fields = self.algorithm.__dataclass_fields__
        fitting = {name: value for name, value in constants.items() if name in fields}
        return self.algorithm(**lanes, **fitting)

    def plain(self) -> str:
        """Return the name, by which a file refers to it."""
        return self.name

    def references(self) -> tuple[str, ...]:
        """Return the references to code outside gvf."""
        return (self.name,) if is_reference(self.name) else ()


_TRACED = ("step_size", "trace_decay")
NAMED: dict[str, OnlineMethod] = {
    name: OnlineMethod(name, algorithm, varied)
    for name, algorithm, varied in (
        ("TD(lambda)", TDLambda, _TRACED),
        ("GTD(lambda)", GTD, (*_TRACED, "eta")),
        ("GTD2(lambda)", GTD2, (*_TRACED, "eta")),
        ("HTD(lambda)", HTD, (*_TRACED, "eta")),
        ("Proximal GTD2(lambda)", ProximalGTD2, (*_TRACED, "eta")),
        ("TDRC(lambda)", TDRCLambda, _TRACED),
        ("Emphatic TD(lambda)", EmphaticTD, _TRACED),
        ("Emphatic TD(lambda, beta)", EmphaticTD, (*_TRACED, "beta")),
        ("Tree Backup(lambda)", TreeBackup, _TRACED),
        ("V-trace(lambda)", VTraceLambda, _TRACED),
        ("ABTD(zeta)", ABTD, ("step_size", "zeta")),
    )
}
"""The algorithms by name."""


@dataclass(frozen=True, repr=False)
class OnlineStudy(BaseStudy):
    """A grid of online algorithms and their parameters.

    Attributes:
        name: the study's name.
        domain: the domain's name, id or reference, see :func:`gvf_lab.domain.get`.
        methods: names of algorithms, or references "module:Class" to subclasses of
            :class:`gvf.online.Algorithm`.
        step_sizes: the step sizes of every algorithm.
        trace_decays: the values of lambda.
        etas: the second step sizes of gradient algorithms, in units of the first.
        betas: the decays of the follow-on trace of Emphatic TD(lambda, beta).
        zetas: the amounts of tracing of ABTD.
        xi_max: the largest xi of ABTD.
        pairs: the (question, behaviour) pairs; the question "all" stands for all that belong to the
            behaviour. By default all questions of each behaviour.
        steps: the length of the stream.
        points: the number of points of a learning curve.
        runs: the number of runs.
        seed: the seed of everything random.

    Example:
        >>> from gvf_lab.study import OnlineStudy
        >>> study = OnlineStudy(
        ...     "mine", "rooms", ("TD(lambda)", "ABTD(zeta)"), step_sizes=(0.02, 0.05),
        ...     trace_decays=(0.0, 0.2), zetas=(0.5,), steps=5000, runs=3,
        ... )
        >>> task = next(study.tasks())
        >>> task.name, study.count()
        ('mine/all/uniform/run-0', 6)
        >>> study.compute(task, lambda: False)["error"].round(2)
        array([0.39, 0.31, 0.33, 0.31, 0.3 , 0.34])
        >>> study
        OnlineStudy 'mine' in rooms
          pairs: all/uniform
          methods: TD(lambda), ABTD(zeta)
          6 choices of parameters, 5000 steps, 3 runs, seed 0
    """

    kind = "online"
    keys = tuple(GRIDS)
    grid = GRIDS
    least = {"steps": 1, "points": 1, "runs": 1, "seed": 0}  # noqa: RUF012
    measures = {  # noqa: RUF012
        "error": "mean over the run",
        "final": "mean over the last 1 % of the run",
        "curve": "means over equal parts of the run",
        "curve_steps": "the middle of each part, in steps",
    }
    quantity = "root mean square value error"
    curve_unit = "steps"

    name: str
    domain: str
    methods: tuple[Any, ...]
    step_sizes: tuple[float, ...]
    trace_decays: tuple[float, ...] = (0.0,)
    etas: tuple[float, ...] = (1.0,)
    betas: tuple[float, ...] = ()
    zetas: tuple[float, ...] = ()
    xi_max: float = 4.0
    pairs: tuple[tuple[str, str], ...] = ()
    steps: int = 20_000
    points: int = 100
    runs: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.methods, str) or not self.methods:
            raise ValueError(f"methods must be a list of algorithms, got {self.methods!r}")
        object.__setattr__(self, "methods", tuple(self.methods))
        check_several(methods=self.methods)
        check_types(self)
        check_name(self.name)
        domain = self.world
        object.__setattr__(self, "pairs", self.pairs or _groups(domain))
        check_several(pairs=self.pairs)
        for pair in self.pairs:
            for part in pair:
                check_part(part)
            self._questions(domain, pair)
        check_numbers(self)
        if self.points > self.steps:
            raise ValueError(f"{self.points} points need as many steps, got {self.steps}")
        for name in self.methods:
            method = self.method(name)
            for parameter in method.varied:
                grid = GRIDS[parameter]
                if not getattr(self, grid):
                    raise ValueError(f"{name} needs {grid}")
                check_several(**{grid: getattr(self, grid)})
            self._make(method)  # refuses parameters out of range

    def _make(self, method: OnlineMethod) -> Algorithm:
        return method.make(self.choices(method.name), xi_max=self.xi_max)

    def method(self, name: str) -> OnlineMethod:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the algorithm of this name."""
        return OnlineMethod.of(name)

    @property
    def own(self) -> tuple[OnlineMethod, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The algorithms that are not built in."""
        return tuple(self.method(name) for name in self.methods if name not in NAMED)

    @property
    def generation(self) -> int:
        """The domain's generation."""
        return self.world.generation

    @property
    def pictures(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Sensitivity to the step size, and learning curves."""
        return ("sensitivity", "learning-curves") if self.points > 1 else ("sensitivity",)

    def questions(self, pair: tuple[str, str]) -> tuple[str, ...]:
        """Return the names of the questions of a pair."""
        return self._questions(self.world, pair)

    def _questions(self, domain: Domain, pair: tuple[str, str]) -> tuple[str, ...]:
        question, behaviour = pair
        known(behaviour, domain.behaviours, f"behaviour of {self.domain} in pairs")
        if question != ALL:
            known(question, domain.questions, f"question of {self.domain} in pairs")
            return (question,)
        return tuple(name for name, other in _pairs(domain) if other == behaviour)

    def varied(self, method: str) -> tuple[str, ...]:
        """Return the parameters that an algorithm has."""
        return self.method(method).varied

    def choice(self, **point: float) -> Choice:
        """Return the parameters of an algorithm."""
        return Choice(**point)

    def key(self, choice: Choice) -> Columns:
        """Return the parameters that the algorithm has."""
        return {name: value for name, value in choice._asdict().items() if value is not None}

    def _part_name(self, **point: float) -> str:
        return ",".join(f"{name}={value!r}" for name, value in self.key(Choice(**point)).items())

    def check(self) -> None:
        """Refuse a pair that cannot be learned, and an algorithm that cannot learn it."""
        domain = self.world
        for pair in self.pairs:
            for question in self.questions(pair):
                domain.check(question, pair[1])
        if self.own or self.domain not in domains.names():
            tiny = self.tiny()
            for task in tiny.tasks():
                tiny.compute(task, lambda: False)

    def compute(self, task: Task, stop: Stop) -> Columns:
        """Compute the errors of all algorithms and parameters."""
        sums = run_online(task, stop)
        curve = np.concatenate([sums_of_method[:-1] for sums_of_method in sums.values()], axis=1).T
        final = np.concatenate([sums_of_method[-1] for sums_of_method in sums.values()])
        edges = np.arange(self.points + 1) * self.steps // self.points
        broken = np.logical_or.accumulate(~np.isfinite(curve), axis=1)
        total = np.where(broken[:, -1], np.inf, curve.sum(axis=1) / self.steps)
        final = np.where(broken[:, -1], np.inf, final / _last(self.steps))
        middle = (edges[1:] + edges[:-1]) / 2
        return {
            "error": total,
            "final": final,
            "curve": np.where(broken, np.inf, curve / np.diff(edges)),
            "curve_steps": np.tile(middle, (len(total), 1)),
        }

    def tiny(self) -> Self:
        """Return the study with one run of a few steps."""
        return self.with_(steps=50, points=1, runs=1)

    def probe(self) -> dict[int, float]:
        """Time the beginning of a task, and scale it up."""
        steps = min(self.steps, max(100, self.steps // 50))
        part = self.with_(steps=steps, points=1)
        task = next(part.tasks())
        part.compute(task, lambda: False)  # the first call compiles
        began = time.thread_time()
        part.compute(task, lambda: False)
        return {1: (time.thread_time() - began) * self.steps / steps}

    def __repr__(self) -> str:
        return (
            f"OnlineStudy {self.name!r} in {self.domain}\n"
            f"  pairs: {', '.join('/'.join(pair) for pair in self.pairs)}\n"
            f"  methods: {', '.join(self.methods)}\n"
            f"  {self.count()} choices of parameters, {self.steps} steps, {self.runs} runs, "
            f"seed {self.seed}"
        )


def _pairs(domain: Domain) -> tuple[tuple[str, str], ...]:
    return tuple(domain.pairs) or every_pair(domain.questions, domain.behaviours)


def _groups(domain: Domain) -> tuple[tuple[str, str], ...]:
    """Return one pair for each behaviour, with its question, or "all" if it has several."""
    groups: dict[str, str] = {}
    for question, behaviour in _pairs(domain):
        groups[behaviour] = ALL if behaviour in groups else question
    return tuple((question, behaviour) for behaviour, question in groups.items())


def _last(steps: int) -> int:
    """Return the number of steps over which the final error is averaged."""
    return max(1, int(LAST_SHARE * steps))


class Asked(NamedTuple):
    """A question along the stream of a run, at the steps at which it is active.

    The last of its K steps only serves to measure the error after all others.
    """

    steps: Steps
    size: int
    """The number of weights."""
    measure: Measure
    begin: Array
    """The time from which on the error before each step is the present one, int64[K]."""


def run_online(task: Task, stop: Stop = lambda: False) -> dict[str, Array]:
    """Return the sum of the error over each part of a run, and over its last steps.

    The sums are float64[points + 1, L] for each method; not finite where a lane has diverged.
    """
    study: OnlineStudy = task.study
    domain, questions = task.world, study.questions((task.question, task.behaviour))
    path = task.walk(domain, questions, study.steps)
    asked = [active_steps(path, domain, question, task.behaviour) for question in questions]
    edges = np.arange(study.points + 1) * study.steps // study.points
    out = {}
    for name in study.methods:
        algorithm = study._make(study.method(name))
        sums = np.zeros((study.points + 1, algorithm.lanes or 1))
        for question, row in zip(questions, asked, strict=True):
            if algorithm.needs_probabilities and path.signals[question].probability is None:
                raise ValueError(
                    f"{name} needs the target's probabilities, and {domain.name} does not tell them"
                )
            learn_question(algorithm, row, edges, sums, task, stop)
        out[name] = sums / len(questions)
    return out


def learn_question(
    algorithm: Algorithm, asked: Asked, edges: Array, sums: Array, task: Task, stop: Stop
) -> None:
    """Learn a question in all lanes, and add its errors to the sums."""
    state = algorithm.start(asked.size)
    streams = start_streams(algorithm, state, 1)
    end = edges[-1]
    times = np.append(asked.begin, end)
    # The length of a slice never changes a result.
    size = max(1, ERRORS // state.weights.shape[1])
    for first in range(0, len(asked.begin), size):
        if stop():
            raise Interrupted(task.name)
        part = Steps(*(column[first : first + size] for column in asked.steps))
        errors = run(algorithm, state, streams, part, asked.measure)
        here = times[first : first + size + 1]
        add_errors(errors, here, edges, end - _last(int(end)), sums)


@njit(cache=True, nogil=True)
def add_errors(errors, times, edges, tail, sums):
    """Add errors [m, L] to the sums [points + 1, L] of the parts of a run and of its tail.

    Error j holds from times[j] to times[j + 1], and part p lasts from edges[p] to edges[p + 1].
    """
    points = edges.size - 1
    for j in range(errors.shape[0]):
        begin, end = times[j], times[j + 1]
        if begin == end:
            continue
        p = np.searchsorted(edges, begin, side="right") - 1
        while p < points and edges[p] < end:
            held = min(end, edges[p + 1]) - max(begin, edges[p])
            for lane in range(errors.shape[1]):
                sums[p, lane] += held * errors[j, lane]
            p += 1
        if end > tail:
            held = end - max(begin, tail)
            for lane in range(errors.shape[1]):
                sums[points, lane] += held * errors[j, lane]


def active_steps(path: Trajectory, domain: Domain, question: str, behaviour: str) -> Asked:
    """Prepare a question for learning along a path: its active steps, and its error."""
    size = domain.features.size
    signals, steps = path.signals[question], len(path.action)
    active = np.ones(steps, bool) if signals.active is None else signals.active
    rows = np.append(np.flatnonzero(active), steps - 1)
    restart = np.append(True, np.diff(rows) != 1)
    if path.ended is not None:
        restart[1:] |= path.ended[rows[:-1]]
    truth = domain.truth(question, behaviour)
    truth.check()
    x_truth = features_of(domain.features, size, truth.states)
    x, x_next = path.x[rows], path.x_next[rows]
    if x.dtype.kind == "i":
        used = np.zeros(size, bool)
        for indices in (x[:-1], x_next[:-1][signals.continuation[rows[:-1]] != 0.0], x_truth):
            used[indices] = True
        # Rows of weights that nothing reads are left out. Their number 0 is never used.
        number = np.where(used, np.cumsum(used) - 1, 0).astype(np.int32)
        x, x_next, size = number[x], number[x_next], int(used.sum())
        dense = np.zeros((len(x_truth), size))
        np.add.at(dense, (np.arange(len(x_truth))[:, None], number[x_truth]), 1.0)
        x_truth = dense
    weights = np.ones(len(x_truth)) if truth.weights is None else truth.weights
    prepared = steps_of(
        x,
        x_next,
        signals.cumulant[rows],
        signals.continuation[rows],
        signals.ratio[rows],
        restart=restart,
        probability=None if signals.probability is None else signals.probability[rows],
    )
    if signals.interest is not None:
        prepared = prepared._replace(interest=signals.interest[rows])
    begin = np.append(0, rows[:-1] + 1)
    return Asked(prepared, size, _measure(x_truth, truth.values, weights), begin)


def _measure(x: Floats, values: Floats, weights: Floats) -> Measure:
    """Return the root mean square error over states, with as few rows as possible."""
    shares = np.sqrt(weights / weights.sum())
    left, lengths, right = np.linalg.svd(shares[:, None] * x, full_matrices=False)
    kept = lengths > RANK * lengths.max(initial=1.0)
    wanted = shares * values
    target = left[:, kept].T @ wanted
    rest = wanted - left[:, kept] @ target
    root = np.ascontiguousarray(lengths[kept, None] * right[kept])
    return Measure(root, target, float(rest @ rest))
