"""The horde: thousands of questions answered from one stream of transitions.

A :class:`Horde` gives the answers that one :class:`gvf.Learner` for each question would give, and
shares the work: one window for all, ratios and draws for each policy, features for each drawn row.
:mod:`gvf.horde.horde_core` has the part that learns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Bools, Floats
from gvf.common.checks import brief, check_choice, whole
from gvf.common.files import write_text
from gvf.corrections import IR, Correction
from gvf.diagnosis import Diagnosis
from gvf.features import FeatureMap
from gvf.horde.add_remove import joined, without
from gvf.horde.device import Precision, as_device
from gvf.horde.group_draws import Pool
from gvf.horde.horde_core import TOGETHER, Core, HordeOptions
from gvf.horde.horde_diagnosis import HordeDiagnosis, diagnose_policies, diagnose_question
from gvf.horde.horde_report import HordeReport
from gvf.horde.horde_returns import HordeReturnError, error_along, error_in_environment, followed
from gvf.horde.layout import Layout
from gvf.horde.pauses import reasons
from gvf.horde.question_grid import Column
from gvf.horde.question_table import questions_of, table_of
from gvf.horde.ray_shards import SpreadCore
from gvf.horde.return_checks import CHECKS
from gvf.horde.weight_engine import is_plain
from gvf.jobs import ray_cluster
from gvf.learners.learner_options import AnyOptions
from gvf.learners.linear_values import check_features
from gvf.learners.states import States
from gvf.learners.training import Trained
from gvf.policies import DiscretePolicy, Policy
from gvf.question import GVF, OnConflict, OnNaN
from gvf.stream.infos import STANDARD, info_columns
from gvf.transition import Transitions, TransitionsLike, as_transitions
from gvf.updates import Update

EngineName = Literal["local", "ray"]


class Horde(Trained[HordeReport]):
    """Many questions, answered by linear values from one stream of off-policy transitions.

    A question whose cumulant or continuation is not a finite number pauses until such transitions
    have left the window, and a question that diverges pauses for good. The report names them; the
    others are not affected.

    Args:
        questions: the questions, each with a name of its own; see :func:`gvf.question_grid`.
        features: the representation, as in :class:`gvf.Learner`.
        update: the learning rule, with one step size. :class:`gvf.updates.TD` with ``SGD`` is much
            the fastest.
        correction: the correction for the behaviour, except :class:`gvf.corrections.PrioritisedIR`.
        behaviour: the policy that chooses the actions, if known; as in :class:`gvf.Learner`.
        window: the number of recent transitions to keep, n.
        batch_size: the number of transitions drawn for an update of a question, k.
        update_every: the number of steps between updates.
        warm_up: the number of steps before the first of these intervals begins.
        on_conflict: as in :class:`gvf.Learner`.
        on_nan: the response to a NaN in a state, an action or a recorded probability: ``"error"``
            raises and names the position, ``"skip"`` leaves the transition out for all questions
            and counts it in the report.
        dtype: the precision of weights and features, ``"float64"``, ``"float32"`` or ``"tf32"``.
            The last two are for :class:`gvf.updates.TD` with ``SGD``. With ``"tf32"``, for a GPU,
            weights are float32, and the factors of products may be rounded to TF32: to 11
            significant bits instead of 24.
        steps_per_call: the largest number of transitions that are learned from together. It has no
            influence on the answers beyond rounding.
        rupee: True to estimate the projected Bellman error of each question; see
            :attr:`gvf.HordeReport.rupee`. It takes two more arrays of the size of the weights, and
            about a quarter more time with dense features.
        threads: the number of threads; by default one for each processor. It changes no bit.
        engine: ``"local"`` for threads of this process, or ``"ray"`` for processes of a Ray
            cluster, which each have some of the policies. Both give the same bits.
        workers: the number of processes of the engine ``"ray"``; by default one for each processor.
        address: the address of a Ray cluster; by default one is started on this machine.
        device: ``"cpu"``, or the name of a GPU, ``"cuda"`` or ``"cuda:1"``. A GPU needs PyTorch and
            Triton, is for :class:`gvf.updates.TD` with ``SGD`` and dense features, and is much
            faster with ``"tf32"`` or ``"float32"`` than with ``"float64"``. The draws are the same
            on all devices, and a horde that was saved on one can be loaded on another.
        seed: the seed of the draws: anything that :class:`numpy.random.SeedSequence` accepts.

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> policies = {
        ...     name: gvf.policies.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")
        ... }
        >>> asked = gvf.question_grid(policies, {"reward": "reward"}, [0.5, 0.9])
        >>> horde = gvf.Horde(
        ...     asked,
        ...     gvf.features.OneHot(16),
        ...     gvf.updates.TD(1.0),
        ...     gvf.corrections.IR(),
        ...     behaviour=gvf.policies.Uniform(4),
        ...     seed=0,
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
        update_every: int = 1,
        warm_up: int = 0,
        on_conflict: OnConflict = "error",
        on_nan: OnNaN = "error",
        dtype: Precision = "float64",
        steps_per_call: int | None = None,
        rupee: bool = False,
        threads: int | None = None,
        engine: EngineName = "local",
        workers: int | None = None,
        address: str | None = None,
        device: str = "cpu",
        seed: Any = None,
    ) -> None:
        check_arguments(questions, correction, behaviour, on_conflict, on_nan)
        check_features(features)
        chosen, kind = as_device(device, dtype)
        _check_update(update, kind)
        _check_engine(engine, threads, workers, address, device)
        if engine == "ray":
            threads = 1
        self.behaviour, self.engine, self.states = behaviour, engine, States(on_nan)
        seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        options = HordeOptions(
            features=features,
            update=update,
            correction=correction,
            behaviour=behaviour,
            window=whole("window", window, 1),
            batch_size=whole("batch_size", batch_size, 1),
            update_every=whole("update_every", update_every, 1),
            warm_up=whole("warm_up", warm_up, 0),
            on_conflict=on_conflict,
            on_nan=on_nan,
            dtype=kind,
            device=chosen,
            steps_per_call=(
                None if steps_per_call is None else whole("steps_per_call", steps_per_call, 1)
            ),
            rupee=bool(rupee),
            pool=Pool(whole("threads", (os.cpu_count() or 1) if threads is None else threads, 1)),
            seed=seeds,
            workers=workers,
            address=address,
        )
        layout = Layout(questions, correction)
        check_actions(layout, behaviour)
        self._begin(Core(layout, options))

    def _begin(self, core: Core) -> None:
        """Go on with a core of this process, or with its groups spread over others."""
        self._core = SpreadCore(core) if self.engine == "ray" else core
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
        return self._core.steps

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return self._core.updates

    @classmethod
    def made_from(cls, arguments: dict[str, Any]) -> Horde:
        """Make a horde from the arguments that a file describes, with a table of its questions."""
        return Horde(**{**arguments, "questions": questions_of(arguments["questions"])})

    def observe_batch(self, batch: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions that this behaviour chose, or that carry its probabilities."""
        start, count, transitions = 0, len(batch), batch
        while start < count:
            together = TOGETHER if count <= TOGETHER else self._core.rows_together
            batch = transitions if count <= together else transitions[start : start + together]
            try:
                self._core.take_in(batch, behaviour)
            except ValueError as error:
                if start:
                    error.add_note(
                        f"Positions count from transition {start} of the batch. It is too large "
                        f"to be checked at once: {start} transitions have been learned from."
                    )
                raise
            if not self.states.is_noted:
                self.states.note(batch["state"])
            start += len(batch)

    def predict(self, states: Any, names: str | Sequence[str] | None = None) -> Floats:
        """Predict for a batch of states [m, ...].

        Args:
            states: the states; as in :meth:`gvf.Learner.predict` also one ``Dict`` observation.
            names: the name of a question, or several; all questions by default.

        Returns:
            [m, G] for all questions in their order, [m, names] for several, [m] for one.
        """
        predictions = self._predict(states, names)
        if not self.states.is_settled:
            self.states.settle(predictions, self.updates > 0, type(self).__name__, self.steps)
        return predictions

    def _predict(self, states: Any, names: str | Sequence[str] | None = None) -> Floats:
        values = self.states.predict(self._core.values, states)
        if names is None:
            return values[:, self._core.layout.place]
        if isinstance(names, str):
            return values[:, self._place(names)]
        return values[:, [self._place(name) for name in names]]

    def _named(self, places: Bools) -> tuple[str, ...]:
        """Return the names of the questions at some places, in the order of predictions."""
        return tuple(self.names[i] for i in np.sort(self._core.layout.order[places]))

    def _place(self, name: str) -> int:
        if name not in self._places:
            raise KeyError(f"no question is named {name!r}")
        return self._places[name]

    def weights(self, name: str) -> NDArray[Any]:
        """Return a copy of the weights of a question, [size]."""
        return self._core.weights(np.array([self._place(name)]))[0]

    def report(self) -> HordeReport:
        """Return counts, statistics of the ratios, errors, and the questions that are paused."""
        layout, numbers = self._core.layout, self._core.summary()
        names = tuple(layout.group_name(g) for g in range(layout.groups))
        skipped: dict[str, int] = {}
        for g in np.flatnonzero(numbers["skipped"]):
            skipped[names[g]] = skipped.get(names[g], 0) + int(numbers["skipped"][g])
        return HordeReport(
            questions=len(layout),
            policies=names,
            steps=self.steps,
            updates=self.updates,
            skipped=skipped,
            window=min(self.steps, self._core.options.window),
            mean_ratio=numbers["mean_ratio"],
            effective_sample_size=numbers["effective_sample_size"],
            missing=self._core.left_out,
            estimated=self._core.estimated,
            on_device=self._core.on_device,
            **{name: numbers[name][layout.place] for name in CHECKS},
            paused=reasons(layout, numbers["missing"], numbers["diverged"]),
            names=layout.names,
            ude=numbers["ude"][layout.place],
            rupee=numbers["rupee"][layout.place] if "rupee" in numbers else None,
            diverged=self._named(numbers["diverged"]),
            outside_bounds=self._core.outside_bounds,
            outside_returns=self._named(numbers["outside"] & ~numbers["diverged"]),
            endless=self._named(numbers["endless"]),
        )

    def diagnose(self, name: str | None = None, **options: Any) -> HordeDiagnosis | Diagnosis:
        """Diagnose the ratios of all policies, or one question as :meth:`gvf.Learner.diagnose`.

        Args:
            name: the name of a question; None for all policies.
            **options: options of :func:`gvf.diagnose` for one question: ``batch_size``,
                ``corrections``, ``batches`` and ``rng``. Updates are those of TD, ``delta_i x_i``.

        Returns:
            A :class:`gvf.HordeDiagnosis` with the statistics and warnings of each policy, and the
            errors of each question. For one question, a :class:`gvf.Diagnosis` that compares
            corrections.

        Raises:
            ValueError: if the window is empty, or if the question pauses.
        """
        report = self._diagnosed()
        if name is None:
            return diagnose_policies(self._core.gathered(), report)
        place = self._place(name)
        if name in report.paused:
            raise ValueError(f"question {name!r} pauses: {report.paused[name]}")
        return diagnose_question(self._core.gathered(), place, **options)

    def _diagnosed(self) -> HordeReport:
        """Return the report; raise ValueError if there is nothing to diagnose."""
        report = self.report()
        if not report.window:
            raise ValueError("the window is empty: observe some transitions first")
        return report

    def return_error(
        self, env: Any, names: str | Sequence[str] | None = None, **options: Any
    ) -> HordeReturnError:
        """Compare predictions with returns of the target policies, as a learner's method does.

        One rollout of a policy serves all of its questions, so it makes little difference how many
        they are. The targets must be able to draw actions.

        Args:
            env: a Gymnasium environment other than the one being learned from.
            names: the name of a question, or several; all questions by default.
            **options: options of :func:`gvf.held_out_returns`: ``states``, ``rollouts``, ``seed``
                and others.

        Returns:
            A :class:`gvf.HordeReturnError`, with the variance explained for each question.
        """
        named = self.named_columns(options.pop("info", ()))
        options = {"behaviour": self.behaviour, "info": named, **options}
        chosen = self._chosen(names)
        return error_in_environment(self._core.layout, self._predict, env, chosen, **options)

    def stream_error(
        self,
        transitions: TransitionsLike,
        names: str | Sequence[str] | None = None,
        *,
        rows: int = 1000,
        cutoff: float = 0.01,
    ) -> HordeReturnError:
        """Compare predictions with returns along a held-out stream in which a target acted.

        Args:
            transitions: consecutive transitions that the horde has not learned from. Returns do not
                go beyond a row that is truncated, or that the next row does not follow.
            names: the name of a question, or several, all about the policy that acted. By default
                all questions about it, if the transitions have its probabilities.
            rows: the number of rows, evenly spaced, whose predictions may be compared.
            cutoff: the largest share of a value that a return may leave out. Rows too near to a cut
                for this are left out, also if their episode ends before it: the returns that are
                complete there are those of short episodes.

        Returns:
            A :class:`gvf.HordeReturnError`, with the variance explained for each question, and a
            warning if many returns were cut nevertheless.

        Raises:
            ValueError: if it is not known which policy acted, or if it is not that of a question.
        """
        whole("rows", rows, 1)
        transitions = as_transitions(transitions)
        if not len(transitions):
            raise ValueError("there are no transitions")
        layout, chosen = self._core.layout, self._chosen(names)
        acted = followed(layout, transitions)
        if acted is None and names is None:
            raise ValueError(
                "the transitions do not tell which policy acted: name its questions, or add the "
                "column behaviour_probability"
            )
        if acted is not None and names is None:
            chosen = np.flatnonzero(acted).tolist()
            if not chosen:
                raise ValueError("no question is about the policy that acted in these transitions")
        if acted is not None and not acted[chosen].all():
            question = self.questions[chosen[int(acted[chosen].argmin())]]
            raise ValueError(
                f"question {question.name!r} is about {question.policy!r}, which did not act in "
                "these transitions"
            )
        return error_along(layout, self._predict, transitions, chosen, rows, cutoff)

    def page(
        self,
        path: str | os.PathLike[str],
        *,
        errors: HordeReturnError | None = None,
        stretch: TransitionsLike | None = None,
        names: str | Sequence[str] | None = None,
        title: str = "A horde of predictions",
    ) -> None:
        """Write one self-contained HTML page about all questions.

        The page shows the distribution of errors, the best and the worst questions by name, a map
        of errors by policy, cumulant and continuation, and the ratios of the policies.

        Args:
            path: the file.
            errors: the result of :meth:`return_error` or :meth:`stream_error`, for all questions or
                a sample.
            stretch: consecutive transitions over which to draw predictions and returns. The page
                says if the policy that acted is not the target of the questions.
            names: the questions to draw over the stretch; by default six about the policy that
                acted, if the transitions have its probabilities, from the best to the worst.
            title: the title of the page.

        Example:
            >>> import gymnasium, gvf
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
            >>> policies = {
            ...     name: gvf.policies.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")
            ... }
            >>> horde = gvf.Horde(
            ...     gvf.question_grid(policies, {"reward": "reward"}, [0.5, 0.9]),
            ...     gvf.features.OneHot(16),
            ...     gvf.updates.TD(1.0),
            ...     behaviour=gvf.policies.Uniform(4),
            ...     seed=0,
            ... )
            >>> _ = horde.learn(env, steps=2000, seed=0)
            >>> errors = horde.return_error(env, states=20, seed=1)
            >>> with TemporaryDirectory() as folder:
            ...     horde.page(Path(folder, "horde.html"), errors=errors)
            ...     text = Path(folder, "horde.html").read_text(encoding="utf-8")
            >>> "<h1>A horde of predictions</h1>" in text
            True
        """
        from gvf.horde import horde_page as pages

        diagnosis, layout = self.diagnose(), self._core.layout
        assert isinstance(diagnosis, HordeDiagnosis)
        ranks = diagnosis.report.ude if errors is None else -pages.by_question(layout, errors)
        stretch_shown = None
        if stretch is not None:
            chosen = None if names is None else self._chosen(names)
            stretch_shown = pages.stretch_of(
                layout, self._predict, as_transitions(stretch), chosen, ranks
            )
        write_text(
            path,
            pages.page(layout, diagnosis, errors, stretch_shown, self.present_arguments(), title),
        )

    def _chosen(self, names: str | Sequence[str] | None) -> list[int]:
        """Return the numbers of questions by their names, of all if there are none."""
        if names is None:
            return list(range(len(self.names)))
        listed = [names] if isinstance(names, str) else list(names)
        return [int(self._core.layout.order[self._place(name)]) for name in listed]

    def add(self, questions: Iterable[GVF]) -> None:
        """Add questions, which learn from now on.

        A question that differs from those already there only by its combination of parts learns
        from the whole window. One with a new policy, cumulant or continuation learns from new
        transitions only, because the window does not have its numbers for earlier ones.
        """
        if isinstance(questions, GVF) or not isinstance(questions, Iterable):
            raise TypeError(f"questions must be a list of gvf.GVFs, got {brief(questions)}")
        core = joined(self._core.gathered(), list(questions))
        check_actions(core.layout, self.behaviour)
        self._begin(core)

    def remove(self, names: str | Iterable[str]) -> None:
        """Remove questions by their names; the others do not change."""
        gone = [names] if isinstance(names, str) else list(names)
        for name in gone:
            self._place(name)
        self._begin(without(self._core.gathered(), gone))

    @property
    def keeps_order(self) -> bool:
        """True if the correction carries something from row to row."""
        correction = self._core.options.correction
        return correction.trace is not None and correction.looks_back

    def new_source(self, *, reset: bool) -> None:
        """Accept a next transition that does not follow; with `reset`, none follows."""
        for trace in self._core.traces:
            trace.new_source(reset=reset)

    def named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        """Return the names of values of ``info`` that questions need, with these."""
        layout, interests = self._core.layout, {q.interest for q in self.questions}
        parts = (*layout.cumulants, *layout.signals, *interests)
        sources = (part.source if isinstance(part, Column) else part for part in parts)
        columns = [name for name in sources if isinstance(name, str) and name not in STANDARD]
        return info_columns(self._core.endless, [*columns, *info])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._core.arrays()

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        core = self._core
        self._begin(core.restored(core.layout, core.options, arrays))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that the horde of a file must have in common with this one.

        There is a table of its questions.
        """
        options = self._core.options
        return {
            "questions": table_of(self.questions),
            "features": options.features,
            "update": options.update,
            "correction": options.correction,
            "behaviour": options.behaviour,
            "window": options.window,
            "batch_size": options.batch_size,
            "update_every": options.update_every,
            "warm_up": options.warm_up,
            "on_conflict": options.on_conflict,
            "on_nan": options.on_nan,
            "dtype": options.dtype.name,
            "steps_per_call": options.steps_per_call,
            "rupee": options.rupee,
        }

    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the questions."""
        core = self._core
        return {
            "question": f"{len(self.questions)} questions",
            "names": list(self.names),
            "features": core.options.features,
            "policy": None,
            "several": True,
            "weights": core.weights(core.layout.place).T.astype(np.float64),
        }

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        device = self._core.options.device
        arguments = {**self.arguments(), "questions": len(self.questions), "device": device.name}
        return {**arguments, "dtype": "tf32"} if device.tf32 else arguments


def _check_engine(
    engine: EngineName,
    threads: int | None,
    workers: int | None,
    address: str | None,
    device: str,
) -> None:
    """Raise an error if options of one engine are given for the other, or Ray is missing."""
    check_choice("engine", engine, EngineName)
    if engine == "ray":
        ray_cluster.import_ray()
        if device != "cpu":
            raise ValueError(f"engine='ray' is for device='cpu', got device={device!r}")
        if threads is not None:
            raise ValueError("each worker of the engine 'ray' has one thread: give workers instead")
    elif workers is not None or address is not None:
        raise ValueError("workers and address are those of a Ray cluster: choose engine='ray'")
    if workers is not None:
        whole("workers", workers, 1)


def check_arguments(
    questions: Any,
    correction: Any,
    behaviour: Policy | None,
    on_conflict: OnConflict,
    on_nan: OnNaN,
) -> None:
    """Raise an error for an argument that no horde can use."""
    if isinstance(questions, GVF):
        raise TypeError("questions must be a list of gvf.GVFs; for one, use a gvf.Learner")
    AnyOptions(behaviour=behaviour, on_conflict=on_conflict, on_nan=on_nan)  # checks them
    if not isinstance(correction, Correction):
        raise TypeError(f"correction must be a gvf.corrections.Correction, got {brief(correction)}")
    if correction.refresh is not None:
        raise ValueError(
            f"the masses of {correction.name} follow the errors of one question, and those of a "
            "horde share their draws; use a gvf.Learner, or another correction"
        )


def _check_update(update: Any, dtype: np.dtype[Any]) -> None:
    """Raise an error if a horde cannot use an update."""
    if not isinstance(update, Update):
        raise TypeError(f"update must be a gvf.updates.Update, got {brief(update)}")
    if update.lanes is not None or update.action_values:
        raise ValueError(
            f"a horde has one step size and learns values of states, got {update}; use TD, "
            "IncrementalTD, WISTD, TDC or TDRC with one step size"
        )
    if dtype != np.float64 and not is_plain(update):
        raise ValueError(f"dtype='float32' is for gvf.updates.TD with SGD, got {update}")


def check_actions(layout: Layout, behaviour: Policy | None) -> None:
    """Raise ValueError if the behaviour has another number of actions than the targets."""
    discrete = [p for p in (*layout.policies, behaviour) if isinstance(p, DiscretePolicy)]
    if discrete and discrete[-1].actions != discrete[0].actions:
        raise ValueError(
            f"targets and behaviour differ in their number of actions: {discrete[0].actions} and "
            f"{discrete[-1].actions}"
        )
