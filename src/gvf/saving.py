"""Learners, hordes and predictors from files.

A file names the classes and functions of a learner, and may come from anyone. Nothing in it is
executed, and names are looked up only in gvf itself and in modules that the caller trusts
(:mod:`gvf.common.describe`). Each kind of learner makes itself from what a file describes. This
module imports all kinds, so that they are known, and none has to import another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

import gvf.horde  # so that its kind of file is known, and those of the next line
import gvf.online  # noqa: F401
from gvf.common import checkpoint
from gvf.common.arrays import Arrays, Floats
from gvf.common.checks import brief
from gvf.common.describe import build
from gvf.learners.linear_values import LinearPrediction
from gvf.learners.saved_state import KINDS, PREDICTOR
from gvf.learners.states import States


def load(path: str | os.PathLike[str], *, trust: Iterable[str] = (), network: Any = None) -> Any:
    """Load what a method ``save`` or ``export`` wrote: a learner, a horde or a predictor.

    A learner or a horde continues bit for bit. One with a network, or with a lambda in its
    question, cannot be made from a file: make it as before, and call its method ``load``.

    Args:
        path: the file.
        trust: modules whose functions and classes the file may name, for example
            ``["my_robot.signals"]``; a package includes its submodules. gvf itself is trusted.
        network: for the predictor of a learner with a network, a module of the same form; its
            weights are replaced.

    Returns:
        The learner, the horde, or the :class:`gvf.Predictor`.

    Example:
        >>> import gvf
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question,
        ...     gvf.features.OneHot(3),
        ...     gvf.updates.TD(0.5),
        ...     behaviour=gvf.policies.Uniform(2),
        ... )
        >>> learner.observe(0, 1, 1.0, 2, False)
        >>> with TemporaryDirectory() as folder:
        ...     learner.save(Path(folder, "learner"))
        ...     learner.export(Path(folder, "predictor"))
        ...     again = gvf.load(Path(folder, "learner"))
        ...     predictor = gvf.load(Path(folder, "predictor"))
        >>> again.predict([0]), again.steps
        (array([0.5]), 1)
        >>> predictor
        Predictor(GVF(Always(1, 2), 'reward', 0.9))
        >>> predictor.predict([0, 1])
        array([0.5, 0. ])
    """
    kind, description, arrays = checkpoint.read_any(path)
    place, trusted = os.fspath(path), _packages(trust)
    if kind.startswith("neural "):
        name = kind.title().replace(" ", "")
        raise ValueError(
            f"{place} holds a {name} with a network, whose code is not in the file: make the "
            f"{name} as before, and call its method load(path)"
        )
    if network is not None and "network" not in description:
        raise ValueError(f"{place} holds linear values, which need no network")
    if kind.startswith(PREDICTOR):
        return _load_predictor(place, description, arrays, trusted, network)
    if kind not in KINDS:
        raise ValueError(f"{place} holds a {kind}, not a learner, a horde or a predictor")
    with checkpoint.damage_named(path):
        learner = KINDS[kind].made_from(_build(description, arrays, trusted))
        learner.load_state_dict(arrays)
    return learner


class _Predicts(Protocol):
    def predict(self, states: Any) -> Floats: ...


@dataclass(frozen=True)
class Predictor:
    """A value function that predicts and does not learn; see :func:`gvf.load`.

    Attributes:
        question: the ``repr`` of the question; of a horde, the number of its questions.
        values: the value function.
        names: the names of the questions of a horde, in the order of predictions.
        states: the form of the states, and the response to a NaN, which are those of the learner.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.learners.linear_values import LinearPrediction
        >>> values = LinearPrediction(gvf.features.OneHot(2), None, False, np.array([[0.5], [1.0]]))
        >>> gvf.Predictor("how far to the wall", values).predict([1, 0])
        array([1. , 0.5])
    """

    question: str
    values: _Predicts
    names: tuple[str, ...] = ()
    states: States = field(default_factory=States, repr=False, compare=False)

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...].

        Returns:
            [m]; [m, lanes] with several step sizes; [m, G] for the questions of a horde.
        """
        return self.states.predict(self.values.predict, states)

    def __repr__(self) -> str:
        return f"Predictor({self.question})"


def _load_predictor(
    place: str,
    description: dict[str, Any],
    arrays: Arrays,
    trusted: tuple[str, ...],
    network: Any,
) -> Predictor:
    with checkpoint.damage_named(place):
        states = States(description.pop("on_nan"))
        states.restore(arrays)
    if "network" in description:
        if network is None:
            raise ValueError(
                f"{place} holds the weights of a network, whose code is not in the file: "
                "gvf.load(path, network=...) with a network of the same form"
            )
        from gvf.neural.neural_learner import NetworkPrediction  # needs PyTorch

        values = NetworkPrediction.load(network, description["network"], arrays["weights"])
        return Predictor(description["question"], values, states=states)
    with checkpoint.damage_named(place):
        parts = _build(description, arrays, trusted)
        question, names = parts.pop("question"), tuple(parts.pop("names", ()))
        weights = np.array(arrays["weights"], np.float64, order="C")
        return Predictor(question, LinearPrediction(weights=weights, **parts), names, states)


def _packages(trust: Iterable[str]) -> tuple[str, ...]:
    trusted = (trust,) if isinstance(trust, str) else tuple(trust or ())
    for name in trusted:
        if not isinstance(name, str):
            raise TypeError(f'trust must name modules, as in trust=["my_robot"], got {brief(name)}')
    return trusted


def _build(description: dict[str, Any], arrays: Any, trust: tuple[str, ...]) -> dict[str, Any]:
    return build({"dict": [[name, part] for name, part in description.items()]}, arrays, trust)
