"""Learners, hordes and predictors from files.

A file names the classes and functions of a learner, and may come from anyone. Nothing in it is
executed, and names are looked up only in gvf itself and in modules that the caller trusts
(:mod:`gvf.common.spec`). This module imports all kinds of learner, so that none has to import
another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gvf.common import checkpoint, spec
from gvf.common.arrays import Floats
from gvf.common.checks import brief
from gvf.horde import Horde
from gvf.horde.table import questions_of
from gvf.learner.base import renewed
from gvf.learner.learner import Learner
from gvf.learner.states import States
from gvf.learner.values import LinearPrediction
from gvf.online import LSTDLearner, OnlineLearner
from gvf.sampling.generator import KNOWN_GENERATORS

_KINDS = ("learner", "LSTD learner", "online learner", "neural learner", "horde", "neural horde")


def load(
    path: str | os.PathLike[str], *, trust: Iterable[str] = ()
) -> Learner | OnlineLearner | LSTDLearner | Any:  # a Horde, whose attributes are others
    """Load a learner or a horde that its method ``save`` wrote; it continues bit for bit.

    A learner with a network, or with a lambda in its question, cannot be made from a file. Make it
    as before, and call its method ``load``.

    Args:
        path: the file.
        trust: modules whose functions and classes the file may name, for example
            ``["my_robot.signals"]``; a package includes its submodules. gvf itself is trusted.

    Returns:
        The learner, or the horde.

    Example:
        >>> import gvf
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> question = gvf.GVF(gvf.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(question, gvf.OneHot(3), gvf.TD(0.5), behaviour=gvf.Uniform(2))
        >>> learner.observe(0, 1, 1.0, 2, False)
        >>> with TemporaryDirectory() as folder:
        ...     learner.save(Path(folder, "learner"))
        ...     again = gvf.load(Path(folder, "learner"))
        >>> again.predict([0]), again.steps
        (array([0.5]), 1)
    """
    description, arrays = checkpoint.read(path, _KINDS)
    for part, kind in (("network", "NeuralLearner"), ("trunk", "NeuralHorde")):
        if part in description:
            raise ValueError(
                f"{os.fspath(path)} holds a {kind} with a network, whose code is not in the file: "
                f"make the {kind} as before, and call its method load(path)"
            )
    trusted = _packages(trust)
    with checkpoint.damage_named(path):
        if "questions" in description:
            made = _build(description, arrays, trusted)
            horde = Horde(**{**made, "questions": questions_of(made["questions"])})
            horde.restore(arrays)
            return horde
        if "max_features" in description:
            solver = LSTDLearner(**_build(description, arrays, trusted))
            solver.restore(arrays)
            return solver
        made = _build(renewed(description), arrays, trusted)
        if "algorithm" in made:
            online = OnlineLearner(**made)
            online.restore(arrays)
            return online
        generators = {kind.__name__: kind for kind in KNOWN_GENERATORS}
        learner = Learner(seed=np.random.Generator(generators[made.pop("rng")](0)), **made)
        learner.restore(arrays)
    return learner


class _Predicts(Protocol):
    def predict(self, states: Any) -> Floats: ...


@dataclass(frozen=True)
class Predictor:
    """A value function that predicts and does not learn; see :func:`load_predictor`.

    Attributes:
        question: the ``repr`` of the question; of a horde, the number of its questions.
        values: the value function.
        names: the names of the questions of a horde, in the order of predictions.
        states: the form of the states, and the response to a NaN, which are those of the learner.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.learner.values import LinearPrediction
        >>> values = LinearPrediction(gvf.OneHot(2), None, False, np.array([[0.5], [1.0]]))
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


def load_predictor(
    path: str | os.PathLike[str], *, trust: Iterable[str] = (), network: Any = None
) -> Predictor:
    """Load a predictor that the method ``export`` of a learner or a horde wrote.

    Args:
        path: the file.
        trust: modules whose feature functions the file may name; see :func:`gvf.load`.
        network: for a learner with a network, a module of the same form; its weights are replaced.

    Returns:
        The predictor.

    Example:
        >>> import gvf
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> question = gvf.GVF(gvf.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(question, gvf.OneHot(3), gvf.TD(0.5), behaviour=gvf.Uniform(2))
        >>> learner.observe(0, 1, 1.0, 2, False)
        >>> with TemporaryDirectory() as folder:
        ...     learner.export(Path(folder, "predictor"))
        ...     predictor = gvf.load_predictor(Path(folder, "predictor"))
        >>> predictor
        Predictor(GVF(Always(1, 2), 'reward', 0.9))
        >>> predictor.predict([0, 1])
        array([0.5, 0. ])
    """
    kinds = tuple(f"predictor of a {kind}" for kind in _KINDS)
    description, arrays = checkpoint.read(path, kinds)
    states = States(description.pop("on_nan", "error"))  # older files do not have it
    states.restore(arrays)
    if "network" in description:
        if network is None:
            raise ValueError(
                f"{os.fspath(path)} holds the weights of a network, whose code is not in the file: "
                "load_predictor(path, network=...) with a network of the same form"
            )
        from gvf.neural.learner import NetworkPrediction  # needs PyTorch

        values = NetworkPrediction.load(network, description["network"], arrays["weights"])
        return Predictor(description["question"], values, states=states)
    if network is not None:
        raise ValueError(f"{os.fspath(path)} holds linear values, which need no network")
    trusted = _packages(trust)
    with checkpoint.damage_named(path):
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
    return spec.build({"dict": [[name, part] for name, part in description.items()]}, arrays, trust)
