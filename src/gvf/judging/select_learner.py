"""Selection of a step size and a correction, from a log alone.

The log is split by whole episodes into parts. Each part is held out in turn: copies of all learners
learn from the other parts, and predict the states of this one. All held-out predictions together
are judged as in :mod:`gvf.judging.compare`. The learner that wins then learns from the whole log.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief, whole
from gvf.estimate import percent
from gvf.jobs import Job, Stop, Workers, place_of, run_jobs
from gvf.judging.candidates import Candidate, named, predictions, question_of
from gvf.judging.compare import Comparison, Score, check, judged
from gvf.judging.held_out import HeldOut, gather, side_by_side
from gvf.judging.off_policy_returns import Returns
from gvf.log import Log
from gvf.policies import Policy
from gvf.question import GVF, OnConflict

Learn = Callable[[Any, Log], Any]
"""A function that lets a learner learn from a log."""


@dataclass(frozen=True, repr=False)
class Selection:
    """The learner that predicts best, chosen from a log alone.

    Attributes:
        comparison: the scores of all candidates on held-out episodes.
        best: the score of the candidate that won: the lowest, or that of a smaller step size that
            is tied with it (:meth:`gvf.Comparison.choose`).
        learner: a copy of the learner that won, which has learned from the whole log. If it was a
            :class:`gvf.Learner` with several step sizes, it has the one that won.

    Print it for the table of candidates and the verdict.

    Example:
        >>> import gvf, gymnasium
        >>> env = gymnasium.make("CliffWalking-v1", max_episode_steps=30)
        >>> batch, = gvf.collect(env, gvf.policies.Uniform(4), steps=2000, batch=2000, seed=0)
        >>> log = gvf.read_log(batch.columns, ends="truncated", quiet=True)
        >>> question = gvf.GVF(gvf.policies.Favour(1, 0.4, actions=4), "reward", 0.9)
        >>> selection = gvf.select_learner(
        ...     gvf.Learner(
        ...         question, gvf.features.OneHot(48), gvf.updates.TD([0.001, 0.1]), seed=0
        ...     ),
        ...     log,
        ... )
        >>> selection.name, selection.sure, selection.learner.steps
        ('TD, IR, step size 0.1', True, 2000)
    """

    comparison: Comparison
    best: Score
    learner: Any

    @property
    def name(self) -> str:
        """The name of the candidate that won."""
        return self.best.name

    @property
    def lane(self) -> int | None:
        """The lane that won; None if the learner has no lanes."""
        return self.best.lane

    @property
    def chance(self) -> float:
        """The share of bootstrap samples of the episodes in which this candidate wins."""
        return self.best.chance

    @property
    def sure(self) -> bool:
        """True if the log can tell the winner from all other candidates."""
        alone = all(score.standing != "as good" for score in self.comparison.scores)
        beats = self.comparison.constant.difference.low > 0.0
        return not self.comparison.findings and alone and beats and self.best.standing == "best"

    def predict(self, states: Any) -> Floats:
        """Predict with the lane that won, for a batch of states [m, ...]: [m]."""
        values = predictions(self.learner, states, self.best.learner)
        return values[:, 0 if values.shape[1] == 1 else self.lane or 0]

    def __repr__(self) -> str:
        chosen = (
            f"selected: {self.name} (best in {percent(self.chance, '.0f')} of bootstrap samples)"
        )
        return f"{chosen}\n{self.comparison!r}"


def select_learner(
    learners: Any,
    log: Log,
    *,
    held_out: float = 0.2,
    cross_validate: bool = True,
    epochs: int | None = None,
    learn: Learn | None = None,
    returns: Returns = "doubly-robust",
    question: GVF | None = None,
    behaviour: Policy | None = None,
    on_conflict: OnConflict = "error",
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
    workers: Workers = 1,
    progress: bool | None = None,
) -> Selection:
    """Select the learner and the step size that predict held-out episodes best.

    The learners are copied, and stay as they are. They must not have learned yet, because their
    copies must not know the episodes that they are judged by.

    Args:
        learners: learners that have not learned, by name in a dict or in a list, or one learner.
            Differ them in their correction, update or features. Each step size of a learner is a
            candidate.
        log: the log, of at least two episodes.
        held_out: the share of the episodes that is held out at a time, at most a half.
        cross_validate: True to hold out each part in turn, so that all episodes judge; every
            learner then learns 1 / `held_out` times. False to hold out one part only, for large
            logs.
        epochs: the number of passes: learners learn by ``learner.fit(log, epochs=epochs)``. By
            default they learn once in the order of the log, by ``learner.fit(log, order="log")``.
        learn: a function that lets a learner learn from a log in another way.
        returns: as in :func:`compare_learners`, like the rest.
        question: the question.
        behaviour: the policy that chose the actions; by default the learners' own.
        on_conflict: the rule for records that differ from it.
        level: the level of the intervals.
        replicates: the number of bootstrap samples.
        seed: the seed of the split and of the bootstrap.
        workers: the number of learners that learn at once, on threads of this process, or a
            :class:`gvf.jobs.RayCluster`; None for one for each processor. The selection is the
            same.
        progress: False to show none. By default it is a bar in a terminal, and elsewhere a line now
            and then. True adds a line at the end there.

    Returns:
        A :class:`Selection`; print it.

    Example:
        >>> import gvf, gymnasium
        >>> env = gymnasium.make("CliffWalking-v1", max_episode_steps=30)
        >>> batch, = gvf.collect(env, gvf.policies.Uniform(4), steps=2000, batch=2000, seed=0)
        >>> log = gvf.read_log(batch.columns, ends="truncated", quiet=True)
        >>> question, x = (
        ...     gvf.GVF(gvf.policies.Favour(1, 0.4, actions=4), "reward", 0.9),
        ...     gvf.features.OneHot(48),
        ... )
        >>> update = gvf.updates.TD([0.001, 0.01, 0.1])
        >>> learners = [
        ...     gvf.Learner(question, x, update, c, seed=0)
        ...     for c in (gvf.corrections.IR(), gvf.corrections.IS())
        ... ]
        >>> selection = gvf.select_learner(learners, log)
        >>> selection.best.lane, selection.predict([8]).shape
        (2, (1,))
    """
    by_name = named(learners)
    asked = question_of(by_name, question)
    check(returns, level, replicates)
    if not isinstance(log, Log):
        raise TypeError(f"log must be a gvf.Log, which gvf.read_log makes, got {brief(log)}")
    if not 0.0 < held_out <= 0.5:
        raise ValueError(f"held_out must be above 0 and at most 0.5, got {held_out}")
    for name, learner in by_name.items():
        if getattr(learner, "steps", 0):
            raise ValueError(
                f"learner {name!r} has learned from {learner.steps} steps already, maybe of this "
                "log; give new learners, or judge those that have learned: gvf.compare_learners"
            )
    if behaviour is None:
        policies = (getattr(candidate, "behaviour", None) for candidate in by_name.values())
        behaviour = next((policy for policy in policies if policy), None)
    if epochs is not None and learn is not None:
        raise ValueError("give epochs, or learn, which says how learners learn, but not both")
    teach = learn or partial(_learn, epochs=None if epochs is None else whole("epochs", epochs, 1))
    place = place_of(workers)
    jobs = [
        [Job(f"{name}, part {number} held out", work=(name, *part)) for name in by_name]
        for number, part in enumerate(splits(len(log.episodes), held_out, cross_validate, seed), 1)
    ]
    held = run_jobs(
        [job for part in jobs for job in part],
        partial(_hold_out, by_name, log, teach, asked, behaviour, on_conflict),
        place=place,
        title="learners",
        progress=progress,
    )
    parts = [side_by_side([held[job] for job in part]) for part in jobs]
    joined, listed = HeldOut.joined(part for part, _ in parts), parts[0][1]
    judgement = judged(joined, listed, returns, level, replicates, seed)
    best = _chosen(judgement, by_name)
    winner = copy.deepcopy(by_name[best.learner])
    if best.lane is not None and hasattr(winner, "lane"):
        winner = winner.lane(best.lane)
    job, do = Job(best.name, work=winner), partial(_learn_all, log, teach)
    learner = run_jobs([job], do, place=place, title="learning from all", progress=progress)[job]
    return Selection(judgement, best, learner)


def _hold_out(
    learners: Mapping[str, Any],
    log: Log,
    teach: Learn,
    question: GVF,
    behaviour: Policy | None,
    on_conflict: OnConflict,
    job: Job,
    stop: Stop,
) -> tuple[HeldOut, list[Candidate]]:
    """Let a copy of a learner learn from the other parts, and predict for the held-out one."""
    name, rest, out = job.work
    learner = copy.deepcopy(learners[name])
    teach(learner, log.select(rest))
    return gather({name: learner}, log.select(out), question, behaviour, on_conflict)


def _learn_all(log: Log, teach: Learn, job: Job, stop: Stop) -> Any:
    teach(job.work, log)
    return job.work


def _chosen(judgement: Comparison, learners: Mapping[str, Any]) -> Score:
    """Return the candidate to take; learners without lanes of step sizes have no ties."""

    def step_size(score: Score) -> float:
        update = getattr(learners[score.learner], "update", None)
        sizes = getattr(update, "step_size", None)
        return sizes[score.lane] if isinstance(sizes, tuple) and score.lane is not None else 0.0

    return judgement.choose(step_size) or judgement.best


def _learn(learner: Any, log: Log, epochs: int | None) -> None:
    if epochs is None:
        learner.fit(log, order="log", progress=False)
    else:
        learner.fit(log, epochs=epochs, progress=False)


def splits(
    episodes: int, share: float, cross_validate: bool, seed: int
) -> Iterator[tuple[Array, Array]]:
    """Yield the positions of the episodes to learn from, and of those that are held out."""
    if episodes < 2:
        raise ValueError("a log of one episode cannot be split by episodes")
    parts = min(round(1.0 / share), episodes)
    part = np.random.default_rng(seed).permutation(episodes) % parts
    for at in range(parts if cross_validate else 1):
        yield np.flatnonzero(part != at), np.flatnonzero(part == at)
