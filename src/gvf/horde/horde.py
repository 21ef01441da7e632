"""The horde: thousands of questions answered from one stream of transitions.

A :class:`Horde` gives the answers that one :class:`gvf.Learner` for each question would give, and
shares the work: one window for all, ratios and draws for each policy, features for each drawn row.
:mod:`gvf.horde.core` has the part that learns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, check_choice, whole
from gvf.correction import IR, Correction
from gvf.features import FeatureMap
from gvf.horde.banks import Column
from gvf.horde.core import Core, Options
from gvf.horde.draws import Pool
from gvf.horde.layout import Layout
from gvf.horde.rearrange import joined, without
from gvf.horde.report import HordeReport
from gvf.learner import Update
from gvf.learner.base import Observer, check_answers
from gvf.learner.values import check_features
from gvf.policy import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict
from gvf.sampling.prefix_sums import SIZE
from gvf.stream.info import STANDARD, info_columns
from gvf.transition import Transitions, as_column

Precision = Literal["float64", "float32"]
_TOGETHER = 256
"""The number of transitions whose ratios and signals are in memory at a time."""


class Horde(Observer[HordeReport]):
    """Many questions, answered by linear values from one stream of off-policy transitions.

    A question whose cumulant or continuation is not a finite number pauses until such transitions
    have left the window, and a question that diverges pauses for good. The report names them; the
    others are not affected.

    Args:
        questions: the questions, each with a name of its own; see :func:`gvf.questions`.
        features: the representation, as in :class:`gvf.Learner`.
        update: the learning rule, with one step size. :class:`gvf.TD` with ``SGD`` is much the
            fastest.
        correction: the correction for the behaviour, except :class:`gvf.PrioritisedIR`.
        behaviour: the policy that chooses the actions, if known; as in :class:`gvf.Learner`.
        window: the number of recent transitions to keep, n.
        batch_size: the number of transitions drawn for an update of a question, k.
        every: the number of steps between updates.
        warm_up: the number of steps before the first of these intervals begins.
        on_conflict: as in :class:`gvf.Learner`.
        dtype: the precision of weights and features, ``"float64"`` or ``"float32"``. The second is
            for :class:`gvf.TD` with ``SGD``.
        chunk: the largest number of transitions that are learned from together. It has no influence
            on the answers beyond rounding.
        threads: the number of threads; by default one for each processor.
        device: ``"cpu"``.
        seed: the seed of the draws: anything that :class:`numpy.random.SeedSequence` accepts.

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> policies = {name: gvf.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")}
        >>> asked = gvf.questions(policies, {"reward": "reward"}, [0.5, 0.9])
        >>> horde = gvf.Horde(
        ...     asked, gvf.OneHot(16), gvf.TD(1.0), gvf.IR(), behaviour=gvf.Uniform(4), seed=0
        ... )
        >>> report = horde.learn(env, steps=2000, seed=0)
        >>> horde.predict([14]).shape
        (1, 8)
        >>> horde.predict([14], "R, reward, 0.9").shape
        (1,)
    """

    kind = "horde"

    def __init__(
        self,
        questions: Sequence[GVF],
        features: FeatureMap,
        update: Update,
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        behaviour: Policy | None = None,
        window: int = 15_000,
        batch_size: int = 16,
        every: int = 1,
        warm_up: int = 0,
        on_conflict: OnConflict = "error",
        dtype: Precision = "float64",
        chunk: int | None = None,
        threads: int | None = None,
        device: str = "cpu",
        seed: Any = None,
    ) -> None:
        check_arguments(questions, correction, behaviour, on_conflict)
        check_choice("dtype", dtype, Precision)
        check_features(features)
        _check_update(update)
        if device != "cpu":
            raise ValueError(f"device must be 'cpu', got {brief(device)}")
        self.behaviour = behaviour
        seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        options = Options(
            features=features,
            update=update,
            correction=correction,
            behaviour=behaviour,
            window=whole("window", window, 1),
            batch_size=whole("batch_size", batch_size, 1),
            every=whole("every", every, 1),
            warm_up=whole("warm_up", warm_up, 0),
            on_conflict=on_conflict,
            dtype=np.dtype(dtype),
            chunk=None if chunk is None else whole("chunk", chunk, 1),
            pool=Pool(whole("threads", (os.cpu_count() or 1) if threads is None else threads, 1)),
            seed=seeds,
        )
        layout = Layout(questions, correction)
        check_actions(layout, behaviour)
        self._begin(Core(layout, options))

    def _begin(self, core: Core) -> None:
        self._core = core
        self._places = dict(zip(core.layout.names, core.layout.place.tolist(), strict=True))

    @property
    def questions(self) -> tuple[GVF, ...]:
        """The questions, in the order of predictions."""
        return self._core.layout.questions

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the questions, in the order of predictions."""
        return self._core.layout.names

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self._core.draws.steps

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return self._core.updates

    def _take_in(self, transitions: Transitions, behaviour: Policy | None) -> None:
        for start in range(0, len(transitions), _TOGETHER):
            self._core.take_in(transitions[start : start + _TOGETHER], behaviour)

    def predict(self, states: Any, names: str | Sequence[str] | None = None) -> Floats:
        """Predict for a batch of states [m, ...].

        Args:
            states: the states.
            names: the name of a question, or several; all questions by default.

        Returns:
            [m, G] for all questions in their order, [m, names] for several, [m] for one.
        """
        values = self._core.values(as_column(states, "the states"))
        if names is None:
            return values[:, self._core.layout.place]
        if isinstance(names, str):
            return values[:, self._place(names)]
        return values[:, [self._place(name) for name in names]]

    def _place(self, name: str) -> int:
        if name not in self._places:
            raise KeyError(f"no question is named {name!r}")
        return self._places[name]

    def weights(self, name: str) -> NDArray[Any]:
        """Return a copy of the weights of a question, [size]."""
        place, core = self._place(name), self._core
        if core.engine is None:
            return np.zeros(core.options.features.size, core.options.dtype)
        return core.engine.take([place])["weights"].reshape(-1)

    def report(self) -> HordeReport:
        """Return counts, statistics of the ratios, and the questions that are paused."""
        core, layout, draws = self._core, self._core.layout, self._core.draws
        window, unknown = int(draws.place[SIZE]), np.full(layout.groups, np.nan)
        names = tuple(layout.group_name(g) for g in range(layout.groups))
        skipped = dict.fromkeys((names[g] for g in np.flatnonzero(core.skipped)), 0)
        for g in np.flatnonzero(core.skipped):
            skipped[names[g]] += int(core.skipped[g])
        return HordeReport(
            questions=len(layout),
            policies=names,
            steps=self.steps,
            updates=self.updates,
            skipped=skipped,
            window=window,
            mean_ratio=draws.ratios.mean(axis=1) if window else unknown,
            effective_sample_size=draws.effective_sample_sizes if window else unknown,
            paused=core.pauses.reasons(self.steps, core.divergent()),
        )

    def add(self, questions: Sequence[GVF]) -> None:
        """Add questions, which learn from now on.

        A question that differs from those already there only by its combination of parts learns
        from the whole window. One with a new policy, cumulant or continuation learns from new
        transitions only, because the window does not have its numbers for earlier ones.
        """
        core = joined(self._core, questions)
        check_actions(core.layout, self.behaviour)
        self._begin(core)

    def remove(self, names: str | Iterable[str]) -> None:
        """Remove questions by their names; the others do not change."""
        gone = [names] if isinstance(names, str) else list(names)
        for name in gone:
            self._place(name)
        self._begin(without(self._core, gone))

    def _begin_anew(self) -> None:
        for trace in self._core.traces:
            trace.restart()

    def _change_source(self) -> None:
        for trace in self._core.traces:
            trace.change_source()

    def _named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        layout, interests = self._core.layout, {q.interest for q in self.questions}
        parts = (*layout.cumulants, *layout.signals, *interests)
        sources = (part.source if isinstance(part, Column) else part for part in parts)
        own = [name for name in sources if isinstance(name, str) and name not in STANDARD]
        return info_columns(self._core.endless, [*own, *info])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._core.arrays()

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        core = self._core
        self._begin(core.restored(core.layout, core.options, arrays))

    def _parts(self) -> dict[str, Any]:
        """Return the arguments that make a horde like this one, except the seed and the threads."""
        options = self._core.options
        return {
            "questions": list(self.questions),
            "features": options.features,
            "update": options.update,
            "correction": options.correction,
            "behaviour": options.behaviour,
            "window": options.window,
            "batch_size": options.batch_size,
            "every": options.every,
            "warm_up": options.warm_up,
            "on_conflict": options.on_conflict,
            "dtype": options.dtype.name,
            "chunk": options.chunk,
        }

    def _shown(self) -> dict[str, Any]:
        return {**self._parts(), "questions": len(self.questions)}


def check_arguments(
    questions: Any, correction: Any, behaviour: Policy | None, on_conflict: OnConflict
) -> None:
    """Raise an error for an argument that no horde can use."""
    if isinstance(questions, GVF):
        raise TypeError("questions must be a list of gvf.GVFs; for one, use a gvf.Learner")
    check_answers(behaviour, on_conflict, "error")
    if not isinstance(correction, Correction):
        raise TypeError(f"correction must be a gvf.Correction, got {brief(correction)}")
    if correction.refresh is not None:
        raise ValueError(
            f"the masses of {correction.name} follow the errors of one question, and those of a "
            "horde share their draws; use a gvf.Learner, or another correction"
        )


def _check_update(update: Any) -> None:
    """Raise an error if a horde cannot use an update."""
    if not isinstance(update, Update):
        raise TypeError(f"update must be a gvf.Update, got {brief(update)}")
    if update.lanes is not None or update.action_values:
        raise ValueError(
            f"a horde has one step size and learns values of states, got {update}; use TD, "
            "IncrementalTD, WISTD, TDC or TDRC with one step size"
        )


def check_actions(layout: Layout, behaviour: Policy | None) -> None:
    """Raise ValueError if the behaviour has another number of actions than the targets."""
    discrete = [p for p in (*layout.policies, behaviour) if isinstance(p, DiscretePolicy)]
    if discrete and discrete[-1].actions != discrete[0].actions:
        raise ValueError(
            f"targets and behaviour differ in their number of actions: {discrete[0].actions} and "
            f"{discrete[-1].actions}"
        )
