"""The racing car as a domain: simulator, behaviour and question by name, and a stream of images.

It is the counterpart of :class:`gvf_lab.domain.Domain`, whose policies are tables. Here states are
images. The behaviour steers by the simulator's ``info``, which images do not show, so it is no
policy over states. Each transition has the log density of its action instead. :mod:`.recording`
stores the same transitions in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gvf import GVF, Transitions
from gvf.common.gymnasium import gym
from gvf.common.part_names import known
from gvf.policies import Policy
from gvf_lab.racing import driving_policies as policy
from gvf_lab.racing import simulators
from gvf_lab.racing.driving import Step, behaviour_steps


@dataclass(frozen=True, eq=False, repr=False)
class RacingDomain:
    """A simulator with the behaviour that drives in it and the question that is asked.

    Attributes:
        name: the simulator's name, as in :func:`get`.
        environment: the Gymnasium id.
        behaviours: functions that make a driver from a seed, by name.
        questions: the predictions that are asked for, by name.

    Example:
        >>> from gvf_lab.racing import get
        >>> domain = get("torcs")
        >>> domain
        RacingDomain 'torcs', environment gvf/Torcs-v0
          behaviours: wander
          questions: left
        >>> domain.question("left")
        GVF(Gaussian(0.15, 0.0075), Middle.reached, Middle.ahead, name='towards-middle')

        Online, without a recording:

        >>> from functools import partial
        >>> import gvf, torch
        >>> from gvf.neural import NeuralLearner
        >>> from gvf_lab.racing.driving_network import driving_network
        >>> learner = NeuralLearner(
        ...     domain.question("left"), driving_network(), partial(torch.optim.Adam, lr=1e-3),
        ...     window=gvf.FrameWindow(15_000),
        ... )
        >>> report = learner.learn(domain.stream(2_000), steps=2_000)  # doctest: +SKIP
    """

    name: str
    environment: str
    behaviours: dict[str, Callable[[int | None], policy.Behaviour]]
    questions: dict[str, GVF]

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """Make the environment; options such as ``track`` go to ``gymnasium.make``."""
        return gym.make(self.environment, **options)

    def behaviour(self, name: str, seed: int | None = None) -> policy.Behaviour:
        """Make the driver of this name, at the beginning of an episode.

        Example:
            >>> from gvf_lab.racing import get
            >>> driver = get("torcs").behaviour("wander", seed=0)
            >>> action, log_mu = driver.act({"lateral": 0.5, "angle": 0.0, "steer_lock": 0.4})
        """
        return self.behaviours[known(name, self.behaviours, f"behaviour of {self.name}")](seed)

    def question(self, name: str) -> GVF:
        """Return the question of this name."""
        return self.questions[known(name, self.questions, f"question of {self.name}")]

    def target(self, question: str) -> Policy:
        """Return the target policy of a question."""
        return self.question(question).policy

    def stream(
        self, steps: int, *, seed: int = 0, batch: int = 64, **options: Any
    ) -> Iterator[Transitions]:
        """Yield transitions of the behaviour as it drives, for a learner or a window.

        The transitions are those of :func:`gvf_lab.racing.recording.record` with the same
        arguments. The simulator starts at the first transition. It is closed after the last one,
        or when the iterator is deleted.

        Args:
            steps: the number of transitions.
            seed: the seed of goals, noise and, in CarRacing, tracks.
            batch: the number of transitions in a batch; it does not change what a learner learns.
            **options: options of the environment, for example ``track="g-track-1"``.

        Returns:
            Batches with the columns of :meth:`gvf_lab.racing.recording.Recording.transitions`.

        Example:
            >>> from gvf_lab.racing import get
            >>> next(get("torcs").stream(100))  # doctest: +SKIP
            Transitions(64: state uint8[64, 128], action float64, next_state uint8[64, 128],
            behaviour_log_probability float64, next_lateral float64, truncated bool)
        """
        if batch < 1:
            raise ValueError(f"batch must be at least 1, got {batch}")
        return _batches(behaviour_steps(self.name, steps, seed=seed, **options), batch)

    def __repr__(self) -> str:
        return (
            f"RacingDomain {self.name!r}, environment {self.environment}\n"
            f"  behaviours: {', '.join(self.behaviours)}\n"
            f"  questions: {', '.join(self.questions)}"
        )


def get(name: str) -> RacingDomain:
    """Return the racing car in one of its simulators, "torcs" or "car-racing".

    No simulator is started, and neither the simulator nor Gymnasium need be installed.

    Example:
        >>> from gvf_lab.racing import get
        >>> get("car-racing").environment
        'gvf/CarRacing-v0'
        >>> get("bicycle")
        Traceback (most recent call last):
        ValueError: unknown simulator: 'bicycle'; known are 'torcs', 'car-racing'
    """
    simulator = simulators.get(name)
    return RacingDomain(
        name,
        simulator.environment,
        behaviours={"wander": policy.Behaviour},
        questions={"left": policy.towards_middle(simulator.near)},
    )


def _batches(steps: Iterator[Step], size: int) -> Iterator[Transitions]:
    while taken := list(islice(steps, size)):
        yield _join(taken)


def _join(steps: list[Step]) -> Transitions:
    return Transitions(
        state=np.stack([step.before.frame for step in steps]),
        action=np.array([step.action for step in steps]),
        next_state=np.stack([step.after.frame for step in steps]),
        behaviour_log_probability=np.array([step.log_mu for step in steps]),
        next_lateral=np.array([step.after.info["lateral"] for step in steps], np.float64),
        truncated=np.array([step.last for step in steps]),
    )
