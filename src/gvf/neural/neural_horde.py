"""The neural horde: many questions answered by one network, from one stream of transitions.

This is :class:`gvf.Horde` with a trunk that learns in the place of fixed features. Ratios, draws,
signals and pauses are the same; :mod:`gvf.neural.heads` has the part that learns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gvf.common.arrays import Array, Floats
from gvf.common.checks import brief
from gvf.corrections import IR, Correction
from gvf.horde.horde import OPTION_TEXTS, Horde, check_arguments
from gvf.horde.horde_report import HordeDiagnosis, diagnose_policies
from gvf.horde.shard import Shard
from gvf.horde.signals import Form, Signals
from gvf.learners.learner_options import (
    HordeKeywords,
    HordeOptions,
    documents_options,
    options_of,
)
from gvf.neural.heads import MakeOptimiser, NetworkChoice, NetworkWeights
from gvf.neural.network_checks import as_device, check_options, check_precision, check_states
from gvf.neural.neural_learner import in_words
from gvf.neural.tensors import as_batch
from gvf.question import GVF
from gvf.transition import Transitions, check_no_nan


@dataclass(frozen=True)
class StatesOfNetwork:
    """The representation of states for a network: the states themselves.

    Args:
        dtype: the precision of states that are no integers.
    """

    dtype: np.dtype[Any]
    has_bounds = False

    def of_states(self, states: Any) -> Array:
        """Return states, of which the form is checked."""
        as_batch(states)
        return states

    def of_transitions(self, transitions: Transitions, form: Form | None) -> tuple[Array, Array]:
        """Return the states and the next states, of the form of earlier ones."""
        x, x_next = (transitions[name] for name in ("state", "next_state"))
        form = form or self.form(x)
        check_states(x)
        for name, states in (("state", x), ("next_state", x_next)):
            check_no_nan(name, states)
            kind, *shape = self.form(states)
            if (np.dtype(kind).kind, *shape) != (np.dtype(form[0]).kind, *form[1:]):
                raise ValueError(
                    f"states must always have the same form; got {kind}[{', '.join(shape)}] and "
                    f"{form[0]}[{', '.join(form[1:])}]"
                )
        return x, x_next

    def form(self, x: Array) -> Form:
        """Return the type and the shape of states."""
        return x.dtype.name, *map(str, x.shape[1:])

    def width(self, form: Form) -> int:
        """Return how many numbers a state has."""
        return math.prod(map(int, form[1:]))

    def outside(self, states: Array) -> None:
        """Return None, because there are no features with bounds."""


@documents_options(HordeOptions, **OPTION_TEXTS)
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
        {options}
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
    workers = None

    def __init__(
        self,
        questions: Sequence[GVF],
        trunk: nn.Module,
        optimiser: MakeOptimiser,
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        target_every: int | None = None,
        clip: float | None = None,
        device: str | torch.device = "cpu",
        mixed_precision: bool = False,
        **options: Unpack[HordeKeywords],
    ) -> None:
        chosen = options_of(HordeOptions, self, options)
        check_arguments(questions, correction)
        if not isinstance(trunk, nn.Module):
            raise TypeError(f"trunk must be a torch.nn.Module, got {brief(trunk)}")
        check_options(optimiser, target_every, clip)
        check_precision(trunk)
        double = any(weights.dtype == torch.float64 for weights in trunk.parameters())
        dtype = np.dtype(np.float64 if double else np.float32)
        choice = NetworkChoice(
            trunk, optimiser, target_every, clip, mixed_precision, as_device(device), dtype
        )
        states, threads = StatesOfNetwork(dtype), os.cpu_count() or 1
        self._make(questions, correction, chosen, states, choice, None, threads)

    def _begin(self, signals: Signals, shard: Shard) -> None:
        """Go on with these parts; the network is there from the start."""
        super()._begin(signals, shard)
        if shard.weights is None:
            shard.start(dense=True)

    def _values(self, states: Any) -> Floats:
        x = self._signals.options.states.of_states(states)
        self._weights.see(x)
        return self._weights.predict(x)

    @property
    def _weights(self) -> NetworkWeights:
        weights = self._shard.weights
        assert isinstance(weights, NetworkWeights)
        return weights

    @property
    def _choice(self) -> NetworkChoice:
        choice = self._shards.options.weights
        assert isinstance(choice, NetworkChoice)
        return choice

    @property
    def trunk(self) -> nn.Module:
        """The trunk, on its device."""
        return self._choice.trunk

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """The optimiser of trunk and heads; :meth:`add` and :meth:`remove` make another."""
        return self._weights.optimiser

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return self._choice.device

    def weights(self, name: str) -> NDArray[Any]:
        """Return a copy of the head of a question, [d + 1], with the bias last."""
        heads = self._weights.network.heads.detach()
        return heads[self._place(name)].cpu().numpy().copy()

    def diagnose(self, name: str | None = None, **options: Any) -> HordeDiagnosis:
        """Diagnose the ratios of all policies, as :meth:`gvf.Horde.diagnose` without a name."""
        if name is not None:
            raise ValueError(
                "a question of a NeuralHorde has no update of its own to diagnose; for the ratios "
                "of all policies: diagnose()"
            )
        return diagnose_policies(self._shard, self._diagnosed())

    def exported(self) -> dict[str, Any]:
        """Raise ValueError, because nothing that predicts can be written without the trunk."""
        raise ValueError(
            "a NeuralHorde has no export; torch.save(horde.trunk.state_dict(), path) keeps the "
            "trunk, and horde.weights(name) is the head of a question"
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that make a horde like this one, except seed and device."""
        choice, shared = self._choice, self._shared_arguments()
        return {
            "questions": shared.pop("questions"),
            "trunk": in_words(choice.trunk),
            "optimiser": self._weights.optimiser_as_made,
            **shared,
            "target_every": choice.target_every,
            "clip": choice.clip,
            "mixed_precision": choice.mixed_precision,
        }

    def present_arguments(self) -> dict[str, Any]:
        """Return the arguments that ``repr`` shows, with their present values."""
        return {**self.arguments(), "questions": len(self.questions), "device": str(self.device)}
