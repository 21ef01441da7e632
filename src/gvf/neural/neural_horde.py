"""The neural horde: many questions answered by one network, from one stream of transitions.

This is :class:`gvf.Horde` with a trunk that learns in the place of fixed features. Ratios, draws,
signals and pauses are the same; :mod:`gvf.neural.heads` has the part that learns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief, whole
from gvf.corrections import IR, Correction
from gvf.horde.group_draws import Batch, Pool
from gvf.horde.horde import Horde, check_actions, check_arguments
from gvf.horde.horde_core import Common, Core, HordeRows
from gvf.horde.horde_diagnosis import HordeDiagnosis, diagnose_policies
from gvf.horde.layout import Ints, Layout
from gvf.horde.question_table import table_of
from gvf.horde.watch import Watch
from gvf.learners.linear_values import Form
from gvf.learners.states import States
from gvf.neural.heads import MakeOptimiser, NetworkEngine
from gvf.neural.network_checks import as_device, check_options, check_precision, check_states
from gvf.neural.neural_learner import in_words
from gvf.neural.tensors import as_batch
from gvf.policies import Policy
from gvf.question import GVF, OnConflict, OnNaN
from gvf.transition import Transitions, check_no_nan
from gvf.window import Window

_CHUNK = 16
"""The number of transitions that are inserted together; the answers do not depend on it."""


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(Common):
    """The arguments of :class:`NeuralHorde`, checked, without the questions."""

    trunk: nn.Module
    optimiser: MakeOptimiser
    target_every: int | None
    clip: float | None
    mixed_precision: bool
    device: torch.device


class NeuralHorde(Horde):
    """Many questions, answered by one network from one stream of off-policy transitions.

    The network has a trunk, which all questions share, and a linear head for each question. The
    heads of a policy learn from the transitions drawn for that policy, and the trunk from all. An
    update is one step of the optimiser. A head follows the gradient of its own loss, that of
    :class:`NeuralLearner`, and the trunk follows the gradient of the mean loss of all questions
    that learn. So the step of a head does not depend on the other questions, and that of the trunk
    does not grow with their number.

    Questions pause as in :class:`gvf.Horde`, and the trunk does not learn from a question that
    pauses. Other questions share the trunk, so one with much larger cumulants or weights dominates
    it: give cumulants similar sizes, and bound the influence of each question by ``clip``.

    Args:
        questions: the questions, each with a name of its own; see :func:`gvf.question_grid`.
        trunk: any module that maps states [m, ...] to [m, d]. States reach it as in
            :class:`NeuralLearner`. Heads add a bias.
        optimiser: a function that makes an optimiser from parameters, such as
            ``partial(torch.optim.Adam, lr=1e-3)``.
        correction: as in :class:`gvf.Horde`.
        behaviour: as in :class:`gvf.Horde`.
        window: the number of recent transitions to keep, n.
        batch_size: the number of transitions drawn for an update of a policy's questions, k.
        update_every: the number of steps between updates.
        warm_up: the number of steps before the first of these intervals begins.
        on_conflict: as in :class:`gvf.Learner`.
        on_nan: as in :class:`gvf.Horde`.
        seed: the seed of the draws: anything that :class:`numpy.random.SeedSequence` accepts.
        target_every: the number of updates between copies of the network to a target network, which
            gives v(s'). By default the network itself gives v(s').
        clip: the largest norm of the gradient that one question has for the trunk's outputs. By
            default there is none, and heads are never affected.
        device: the device of the network, for example ``"cuda"``.
        mixed_precision: True to compute the trunk in bfloat16; weights, errors and steps keep their
            type.

    Example:
        >>> from functools import partial
        >>> import gymnasium, gvf, torch
        >>> from gvf.neural import NeuralHorde
        >>> _ = torch.manual_seed(0)
        >>> policies = {
        ...     "left": gvf.policies.Always(0, actions=2),
        ...     "right": gvf.policies.Always(1, actions=2),
        ... }
        >>> asked = gvf.question_grid(policies, gvf.SignalBank("next_state", 4), [0.0, 0.9])
        >>> horde = NeuralHorde(
        ...     asked,
        ...     torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU()),
        ...     partial(torch.optim.Adam, lr=1e-3),
        ...     gvf.corrections.IR(),
        ...     behaviour=gvf.policies.Uniform(2),
        ...     seed=0,
        ... )
        >>> report = horde.learn(gymnasium.make("CartPole-v1"), steps=200, seed=0)
        >>> horde.predict([[0.0, 0.0, 0.0, 0.0]]).shape
        (1, 16)
        >>> horde.predict([[0.0, 0.0, 0.0, 0.0]], "left, 2, 0.9").shape
        (1,)
    """

    kind: ClassVar[str] = "neural horde"
    engine = "local"
    _core: NetworkCore

    def __init__(
        self,
        questions: Sequence[GVF],
        trunk: nn.Module,
        optimiser: MakeOptimiser,
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        behaviour: Policy | None = None,
        window: int = 15_000,
        batch_size: int = 16,
        update_every: int = 1,
        warm_up: int = 0,
        on_conflict: OnConflict = "error",
        on_nan: OnNaN = "error",
        seed: Any = None,
        target_every: int | None = None,
        clip: float | None = None,
        device: str | torch.device = "cpu",
        mixed_precision: bool = False,
    ) -> None:
        check_arguments(questions, correction, behaviour, on_conflict, on_nan)
        if not isinstance(trunk, nn.Module):
            raise TypeError(f"trunk must be a torch.nn.Module, got {brief(trunk)}")
        check_options(optimiser, target_every, clip)
        self.behaviour, self.states = behaviour, States(on_nan)
        check_precision(trunk)
        double = any(weights.dtype == torch.float64 for weights in trunk.parameters())
        options = NetworkOptions(
            trunk=trunk,
            optimiser=optimiser,
            target_every=target_every,
            clip=clip,
            mixed_precision=mixed_precision,
            device=as_device(device),
            correction=correction,
            behaviour=behaviour,
            window=whole("window", window, 1),
            batch_size=whole("batch_size", batch_size, 1),
            update_every=whole("update_every", update_every, 1),
            warm_up=whole("warm_up", warm_up, 0),
            on_conflict=on_conflict,
            on_nan=on_nan,
            dtype=np.dtype(np.float64 if double else np.float32),
            steps_per_call=None,
            pool=Pool(os.cpu_count() or 1),
            seed=seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed),
        )
        layout = Layout(questions, correction)
        check_actions(layout, behaviour)
        self._begin(NetworkCore(layout, options))

    @property
    def trunk(self) -> nn.Module:
        """The trunk, on its device."""
        return self._core.options.trunk

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """The optimiser of trunk and heads; :meth:`add` and :meth:`remove` make another."""
        return self._core.engine.optimiser

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return self._core.options.device

    def weights(self, name: str) -> NDArray[Any]:
        """Return a copy of the head of a question, [d + 1], with the bias last."""
        heads = self._core.engine.network.heads.detach()
        return heads[self._place(name)].cpu().numpy().copy()

    def diagnose(self, name: str | None = None, **options: Any) -> HordeDiagnosis:
        """Diagnose the ratios of all policies, as :meth:`gvf.Horde.diagnose` without a name."""
        if name is not None:
            raise ValueError(
                "a question of a NeuralHorde has no update of its own to diagnose; for the ratios "
                "of all policies: diagnose()"
            )
        return diagnose_policies(self._core, self._diagnosed())

    def exported(self) -> dict[str, Any]:
        """Raise ValueError, because nothing that predicts can be written without the trunk."""
        raise ValueError(
            "a NeuralHorde has no export; torch.save(horde.trunk.state_dict(), path) keeps the "
            "trunk, and horde.weights(name) is the head of a question"
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make a horde like this one, except seed and device."""
        options = self._core.options
        return {
            "questions": table_of(self.questions),
            "trunk": in_words(options.trunk),
            "optimiser": self._core.engine.optimiser_as_made,
            "correction": options.correction,
            "behaviour": options.behaviour,
            "window": options.window,
            "batch_size": options.batch_size,
            "update_every": options.update_every,
            "warm_up": options.warm_up,
            "on_conflict": options.on_conflict,
            "on_nan": options.on_nan,
            "target_every": options.target_every,
            "clip": options.clip,
            "mixed_precision": options.mixed_precision,
        }

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        return {**self.arguments(), "questions": len(self.questions), "device": str(self.device)}


class NetworkCore(Core):
    """The core of a horde with a network as its engine.

    The window keeps the states themselves. The engine is there from the start, and the first states
    show the width of its heads.
    """

    options: NetworkOptions  # pyright: ignore[reportIncompatibleVariableOverride]
    first_size = 1.0
    engine: NetworkEngine  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, layout: Layout, options: NetworkOptions) -> None:
        super().__init__(layout, options)  # pyright: ignore[reportArgumentType]
        self.start((options.dtype, 0))

    def _check_memory(self) -> None:
        """Leave it to PyTorch, because the width of the heads is not known."""

    def _note_states(self, states: Array) -> None:
        """Do nothing, because there are no features with bounds."""

    @property
    def outside_bounds(self) -> None:
        """None, because there are no features with bounds."""

    @property
    def _watched_features(self) -> int:
        return 0

    @property
    def _watch_kind(self) -> type[Watch]:
        """The watch of predictions, which come from the device."""
        return Watch

    def start(self, form: Form) -> None:
        """Make the engine and the window; the form has the width of the heads, 0 if unknown."""
        options = self.options
        engine = NetworkEngine(
            self.layout,
            options.trunk,
            form[1],
            options.optimiser,
            options.target_every,
            options.clip,
            options.mixed_precision,
            options.device,
        )
        self.steps_per_call = 1 if options.correction.draw.whole else _CHUNK
        self.window = Window(options.window + self.steps_per_call - 1)
        self.engine, self.form = engine, {form}  # pyright: ignore[reportIncompatibleVariableOverride]

    def values(self, states: Any) -> Floats:
        """Return the values of states [m, ...] at all places, [m, G]."""
        as_batch(states)  # checks the form
        self._see(states)
        return self.engine.predict(states)

    def _see(self, states: Array) -> None:
        """Find the width of the heads, if it is not known."""
        if len(states):
            self.engine.see(states)
            self.form = {(self.options.dtype, self.engine.network.width)}

    def _represented(self, transitions: Transitions) -> tuple[Array, Array]:
        x, x_next = (transitions[name] for name in ("state", "next_state"))
        known = self.window.columns.get("x")
        known = x if known is None else known
        check_states(x)
        for name, states in (("state", x), ("next_state", x_next)):
            check_no_nan(name, states)
            if (states.shape[1:], states.dtype.kind) != (known.shape[1:], known.dtype.kind):
                raise ValueError(
                    f"states must always have the same form; got {states.dtype}"
                    f"{list(states.shape[1:])} and {known.dtype}{list(known.shape[1:])}"
                )
        self._see(x)
        return x, x_next

    def _step_sizes(self, rows: HordeRows) -> None:
        """Return None, because the optimiser has the step size."""

    def _update(self, batch: Batch, step_size: Floats | None, paused: Ints) -> None:
        """Apply a batch without the questions that pause, and note those that diverge."""
        self.skipped += (batch.drawn == 0).sum(axis=0)
        largest = self.pauses.largest_returns(self.updates * self.options.batch_size)
        self.engine.learn(self.window.columns, batch, paused=paused, largest=largest)
        self.pauses.diverged |= self.engine.diverged.cpu().numpy()
