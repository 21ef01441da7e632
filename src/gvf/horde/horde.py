"""The horde: thousands of questions answered from one stream of transitions.

A :class:`Horde` gives the answers that one :class:`gvf.Learner` for each question would give, and
shares the work: one window for all, ratios and draws for each policy, features for each drawn row.

    transitions -> signals (:mod:`gvf.horde.signals`) -> shard (:mod:`gvf.horde.shard`), or several
                                                         in workers (:mod:`gvf.horde.ray_shards`)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Bools, Floats
from gvf.common.checks import brief, whole
from gvf.common.files import write_text
from gvf.corrections import IR, Correction
from gvf.diagnosis import Diagnosis
from gvf.features import FeatureMap
from gvf.horde.add_remove import with_questions, without_questions
from gvf.horde.choose_weights import LinearWeights, Precision, as_device, is_plain
from gvf.horde.cuts import checked_together
from gvf.horde.group_draws import Pool
from gvf.horde.horde_report import HordeDiagnosis, HordeReport, diagnose_policies, diagnose_question
from gvf.horde.horde_returns import HordeReturnError, error_along, error_in_environment
from gvf.horde.layout import Layout
from gvf.horde.pauses import needing, pause_reasons
from gvf.horde.question_grid import Column, questions_of, table_of
from gvf.horde.ray_shards import RayShards
from gvf.horde.return_checks import CHECKS
from gvf.horde.shard import Shard, ShardOptions, WeightsChoice
from gvf.horde.signals import FeaturesOfStates, RepresentsStates, SignalOptions, Signals
from gvf.jobs import RayCluster, ray_cluster
from gvf.learners.learner_options import (
    HordeKeywords,
    HordeOptions,
    documents_options,
    options_of,
)
from gvf.learners.linear_values import check_features
from gvf.learners.saved_state import group
from gvf.learners.states import States
from gvf.learners.training import Trained
from gvf.policies import DiscretePolicy, Policy
from gvf.question import GVF
from gvf.stream.infos import STANDARD, info_columns
from gvf.transition import Transitions, TransitionsLike, as_transitions
from gvf.updates import Update

OPTION_TEXTS = {
    "window": "the number of recent transitions to keep, n.",
    "batch_size": "the number of transitions drawn for an update of a policy's questions, k.",
    "on_nan": "the response to a NaN in a state, an action or a recorded probability: "
    '``"error"`` raises and names the position, ``"skip"`` leaves the transition out for all '
    "questions and counts it in the report.",
    "seed": "the seed of the draws: anything that :class:`numpy.random.SeedSequence` accepts.",
}
"""The documentation of options that differ from those of a learner."""


@documents_options(HordeOptions, **OPTION_TEXTS)
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
        {options}
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
        workers: a :class:`gvf.jobs.RayCluster`, whose processes each have some of the policies; by
            default all are in this process, on threads. Both give the same bits.
        device: ``"cpu"``, or the name of a GPU, ``"cuda"`` or ``"cuda:1"``. A GPU needs PyTorch and
            Triton, is for :class:`gvf.updates.TD` with ``SGD`` and dense features, and is much
            faster with ``"tf32"`` or ``"float32"`` than with ``"float64"``. The draws are the same
            on all devices, and a horde that was saved on one can be loaded on another.

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
        dtype: Precision = "float64",
        steps_per_call: int | None = None,
        rupee: bool = False,
        threads: int | None = None,
        workers: RayCluster | None = None,
        device: str = "cpu",
        **options: Unpack[HordeKeywords],
    ) -> None:
        chosen = options_of(HordeOptions, self, options)
        check_arguments(questions, correction)
        check_features(features)
        where, kind = as_device(device, dtype)
        _check_update(update, kind)
        _check_workers(workers, threads, device)
        threads = threads if workers is None else 1
        self.workers: RayCluster | None = workers
        self._make(
            questions,
            correction,
            chosen,
            FeaturesOfStates(features, kind),
            LinearWeights(update, features.size, kind, where, bool(rupee)),
            None if steps_per_call is None else whole("steps_per_call", steps_per_call, 1),
            (os.cpu_count() or 1) if threads is None else threads,
        )

    def _make(
        self,
        questions: Sequence[GVF],
        correction: Correction,
        chosen: HordeOptions,
        states: RepresentsStates,
        weights: WeightsChoice,
        steps_per_call: int | None,
        threads: int,
    ) -> None:
        """Make the parts of the horde."""
        self.behaviour, self.states, seed = chosen.behaviour, States(chosen.on_nan), chosen.seed
        window, layout = chosen.window, Layout(questions, correction)
        check_actions(layout, self.behaviour)
        signal_options = SignalOptions(
            states=states,
            correction=correction,
            window=window,
            on_conflict=chosen.on_conflict,
            on_nan=chosen.on_nan,
            needs_lengths=weights.step_size_rule is not None,
        )
        shard_options = ShardOptions(
            weights=weights,
            correction=correction,
            window=window,
            batch_size=chosen.batch_size,
            update_every=chosen.update_every,
            warm_up=chosen.warm_up,
            steps_per_call=steps_per_call,
            pool=Pool(whole("threads", threads, 1)),
            seed=seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed),
        )
        self._begin(Signals(layout, signal_options), Shard(layout, shard_options))

    @classmethod
    def made_from(cls, arguments: dict[str, Any]) -> Horde:
        """Make a horde from the arguments that a file describes, with a table of its questions."""
        questions = questions_of(arguments["questions"])
        return Horde(questions, **{k: part for k, part in arguments.items() if k != "questions"})

    def _begin(self, signals: Signals, shard: Shard) -> None:
        """Go on with these parts; the groups of the shard may be spread over workers."""
        self._signals, layout = signals, shard.layout
        self._shards = shard if self.workers is None else RayShards(shard, self.workers)
        self._places = dict(zip(layout.names, layout.place.tolist(), strict=True))

    @property
    def _shard(self) -> Shard:
        """A shard with all groups; those of workers are gathered."""
        return self._shards.gathered()

    @property
    def _layout(self) -> Layout:
        return self._shards.layout

    @property
    def questions(self) -> tuple[GVF, ...]:
        """The questions, in the order of predictions."""
        return self._layout.questions

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the questions, in the order of predictions."""
        return self._layout.names

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self._shards.steps

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return self._shards.updates

    def observe_batch(self, batch: Transitions, behaviour: Policy | None) -> None:
        """Observe transitions that this behaviour chose, or that carry its probabilities."""
        for rows in checked_together(len(batch), self._bytes_of_row):
            part = batch if rows.stop - rows.start == len(batch) else batch[rows]
            try:
                self._signals.pass_on(part, behaviour, self._shards)
            except ValueError as error:
                if rows.start:
                    error.add_note(
                        f"Positions count from transition {rows.start} of the batch. It is too "
                        f"large to be checked at once: {rows.start} transitions have been learned "
                        "from."
                    )
                raise
            if not self.states.is_noted:
                self.states.note(part["state"])

    def _bytes_of_row(self) -> int:
        """Return the number of bytes that a transition needs until it is learned from."""
        return self._signals.row_size(self._shards.options.weights.size)

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
        values = self.states.predict(self._values, states)
        if names is None:
            return values[:, self._layout.place]
        if isinstance(names, str):
            return values[:, self._place(names)]
        return values[:, [self._place(name) for name in names]]

    def _values(self, states: Any) -> Floats:
        """Return the values of states [m, ...] at all places, [m, G]."""
        x = self._signals.options.states.of_states(states)
        self._signals.begin(x, self._shards)
        return self._shards.predict(self._signals.rounded(x))

    def _named(self, places: Bools) -> tuple[str, ...]:
        """Return the names of the questions at some places, in the order of predictions."""
        return tuple(self.names[i] for i in np.sort(self._layout.order[places]))

    def _place(self, name: str) -> int:
        if name not in self._places:
            raise KeyError(f"no question is named {name!r}")
        return self._places[name]

    def weights(self, name: str) -> NDArray[Any]:
        """Return a copy of the weights of a question, [size]."""
        return self._shards.weights_of(np.array([self._place(name)]))[0]

    def report(self) -> HordeReport:
        """Return counts, statistics of the ratios, errors, and the questions that are paused."""
        layout, signals, options = self._layout, self._signals, self._shards.options
        numbers = self._shards.summary(signals.history.largest)
        missing = needing(layout, signals.history.missing(self.steps, options.window))
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
            window=min(self.steps, options.window),
            mean_ratio=numbers["mean_ratio"],
            effective_sample_size=numbers["effective_sample_size"],
            missing=signals.left_out,
            estimated=signals.estimated,
            on_device=options.weights.on_device,
            **{name: numbers[name][layout.place] for name in CHECKS},
            paused=pause_reasons(layout, missing, numbers["diverged"]),
            names=layout.names,
            ude=numbers["ude"][layout.place],
            rupee=numbers["rupee"][layout.place] if "rupee" in numbers else None,
            diverged=self._named(numbers["diverged"]),
            outside_bounds=signals.outside_bounds(self.steps),
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
            return diagnose_policies(self._shard, report)
        place = self._place(name)
        if name in report.paused:
            raise ValueError(f"question {name!r} pauses: {report.paused[name]}")
        options = {"estimated": report.estimated, **options}
        return diagnose_question(self._shard, place, **options)

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
        return error_in_environment(self._layout, self._predict, env, chosen, **options)

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
        chosen = None if names is None else self._chosen(names)
        return error_along(self._layout, self._predict, transitions, chosen, rows, cutoff)

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

        diagnosis, layout = self.diagnose(), self._layout
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
        return [int(self._layout.order[self._place(name)]) for name in listed]

    def add(self, questions: Iterable[GVF]) -> None:
        """Add questions, which learn from now on.

        A question that differs from those already there only by its combination of parts learns
        from the whole window. One with a new policy, cumulant or continuation learns from new
        transitions only, because the window does not have its numbers for earlier ones.
        """
        if isinstance(questions, GVF) or not isinstance(questions, Iterable):
            raise TypeError(f"questions must be a list of gvf.GVFs, got {brief(questions)}")
        parts = with_questions(self._signals, self._shard, list(questions))
        check_actions(parts[0].layout, self.behaviour)
        self._begin(*parts)

    def remove(self, names: str | Iterable[str]) -> None:
        """Remove questions by their names; the others do not change."""
        gone = [names] if isinstance(names, str) else list(names)
        for name in gone:
            self._place(name)
        self._begin(*without_questions(self._signals, self._shard, gone))

    @property
    def keeps_order(self) -> bool:
        """True if the correction carries something from row to row."""
        correction = self._shards.options.correction
        return correction.trace is not None and correction.looks_back

    def new_source(self, *, reset: bool) -> None:
        """Accept a next transition that does not follow; with `reset`, none follows."""
        for trace in self._signals.traces:
            trace.new_source(reset=reset)

    def named_columns(self, info: Iterable[str]) -> tuple[str, ...]:
        """Return the names of values of ``info`` that questions need, with these."""
        layout, interests = self._layout, {q.interest for q in self.questions}
        parts = (*layout.cumulants, *layout.signals, *interests)
        sources = (part.source if isinstance(part, Column) else part for part in parts)
        columns = [name for name in sources if isinstance(name, str) and name not in STANDARD]
        return info_columns(self._signals.endless, [*columns, *info])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        parts = {"signals": self._signals.state_dict(), "shard": self._shards.state_dict()}
        return {f"{a}/{b}": array for a, named in parts.items() for b, array in named.items()}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        signals = self._signals.restored(
            self._layout, self._signals.options, group(arrays, "signals")
        )
        options = self._shards.options
        self._begin(signals, Shard.restored(signals.layout, options, group(arrays, "shard")))

    def _shared_arguments(self) -> dict[str, Any]:
        """Return the arguments that all kinds of hordes have; there is a table of the questions."""
        signals, options = self._signals.options, self._shards.options
        return {
            "questions": table_of(self.questions),
            "correction": options.correction,
            "behaviour": self.behaviour,
            "window": options.window,
            "batch_size": options.batch_size,
            "update_every": options.update_every,
            "warm_up": options.warm_up,
            "on_conflict": signals.on_conflict,
            "on_nan": signals.on_nan,
        }

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that the horde of a file must have in common with this one."""
        weights, shared = self._weights_choice, self._shared_arguments()
        return {
            "questions": shared.pop("questions"),
            "features": self._features,
            "update": weights.update,
            **shared,
            "dtype": weights.dtype.name,
            "steps_per_call": self._shards.options.steps_per_call,
            "rupee": weights.rupee,
        }

    @property
    def _weights_choice(self) -> LinearWeights:
        weights = self._shards.options.weights
        assert isinstance(weights, LinearWeights)
        return weights

    @property
    def _features(self) -> FeatureMap:
        states = self._signals.options.states
        assert isinstance(states, FeaturesOfStates)
        return states.features

    def exported(self) -> dict[str, Any]:
        """Return the parts that predictions need, and a text about the questions."""
        return {
            "question": f"{len(self.questions)} questions",
            "names": list(self.names),
            "features": self._features,
            "policy": None,
            "several": True,
            "weights": self._shards.weights_of(self._layout.place).T.astype(np.float64),
        }

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        device = self._weights_choice.device
        arguments = {**self.arguments(), "questions": len(self.questions), "device": device.name}
        return {**arguments, "dtype": "tf32"} if device.tf32 else arguments


def _check_workers(workers: Any, threads: int | None, device: str) -> None:
    """Raise an error if options do not fit a Ray cluster, or Ray is missing."""
    if workers is None:
        return
    if not isinstance(workers, RayCluster):
        raise TypeError(
            f"workers must be a gvf.jobs.RayCluster, got {brief(workers)}; the number of threads "
            "of this process is threads="
        )
    ray_cluster.import_ray()
    if device != "cpu":
        raise ValueError(f"a Ray cluster is for device='cpu', got device={device!r}")
    if threads is not None:
        raise ValueError(
            "each worker of a Ray cluster has one thread: give their number, RayCluster(workers=8)"
        )


def check_arguments(questions: Any, correction: Any) -> None:
    """Raise an error for an argument that no horde can use."""
    if isinstance(questions, GVF):
        raise TypeError("questions must be a list of gvf.GVFs; for one, use a gvf.Learner")
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
