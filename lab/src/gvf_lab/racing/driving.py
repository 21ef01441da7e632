"""Driving: episodes of the behaviour in a simulator, step by step.

    reset -> up to speed, without noise -> (view, action, log density, view), ... -> reset -> ...

:mod:`.recording` stores these steps in a file, and :class:`gvf_lab.racing.RacingDomain` gives them
to a learner as they come. :mod:`.rollouts` returns to some of their states.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import count, cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf_lab.racing import simulators
from gvf_lab.racing.driving_policies import Behaviour


class Drive:
    """An episode of the behaviour, from a reset on.

    In the first steps, while the car gets up to speed, the controller drives without noise.

    Args:
        env: the environment, as :func:`gvf_lab.racing.simulators.make` makes it.
        simulator: the simulator's name.
        seed: the seed of the goals, the noise and, in CarRacing, the track.
        draw: True if images are drawn.

    Attributes:
        frame: the image of the present state, uint8[64, 128].
        info: the simulator's information about the present state.
        actions: all actions since the reset; replaying them leads to the present state again.
    """

    def __init__(
        self, env: Any, simulator: str, *, seed: np.random.SeedSequence, draw: bool = True
    ) -> None:
        self._env = env
        self._behaviour = Behaviour(seed)
        self.reset_seed = int(seed.generate_state(3)[2])  # the behaviour uses the first two
        self.actions: list[float] = []
        env.draw = False
        self.frame, self.info = env.reset(seed=self.reset_seed)
        for left in reversed(range(simulators.get(simulator).start)):
            env.draw = draw and left == 0
            if self._execute(self._behaviour.controller.act(self.info)):
                raise RuntimeError(f"{simulator} ended the episode before the car was under way")

    def step(self) -> tuple[float, float, bool]:
        """Take a step; return its action, the log density, and True if the episode has ended."""
        action, log_mu = self._behaviour.act(self.info)
        return action, log_mu, self._execute(action)

    def _execute(self, action: float) -> bool:
        self.actions.append(action)
        self.frame, _, terminated, truncated, self.info = execute(self._env, action)
        return terminated or truncated


def execute(env: Any, action: float) -> tuple[Any, ...]:
    """Take a step with the action as float32, so that replays agree."""
    return env.step(np.array([action], np.float32))


class View(NamedTuple):
    """One state of a drive: the image, uint8[64, 128], and the simulator's info."""

    frame: NDArray[np.uint8]
    info: Mapping[str, Any]


class Step(NamedTuple):
    """A transition of the behaviour; in an episode ``after`` is the next step's ``before``."""

    before: View
    action: float
    log_mu: float
    after: View
    last: bool
    """True if the next step, if there is one, is of another episode."""


def behaviour_steps(
    simulator: str, steps: int, *, seed: int = 0, **options: Any
) -> Generator[Step]:
    """Drive the behaviour and yield its steps, through as many episodes as they need.

    An episode has at most 2,500 steps in TORCS and 1,000 in CarRacing, and the next one is on
    another track: in TORCS three tracks take turns, in CarRacing every episode has its own. The
    first steps after a reset, while the car gets up to speed, are left out. The same arguments give
    the same steps. The simulator is closed at the end, or when the iterator is deleted.

    Args:
        simulator: "torcs" or "car-racing".
        steps: the number of steps.
        seed: the seed of goals, noise and, in CarRacing, tracks.
        **options: options of the environment; ``track="g-track-1"`` makes it the only track.

    Example:
        >>> from gvf_lab.racing.driving import behaviour_steps
        >>> for step in behaviour_steps("torcs", 3, seed=0):  # doctest: +SKIP
        ...     print(step.before.frame.shape, round(step.action, 2))
        >>> behaviour_steps("torcs", 0)
        Traceback (most recent call last):
        ValueError: steps must be at least 1, got 0
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    return _episodes(simulator, steps, seeds(seed), simulators.roads(simulator, options))


def _episodes(
    simulator: str,
    steps: int,
    episodes: Iterator[np.random.SeedSequence],
    roads: list[dict[str, Any]],
) -> Generator[Step]:
    longest = simulators.get(simulator).episode
    with ExitStack() as stack:
        # TORCS starts at the first reset, so a road that is never driven costs nothing.
        envs = [stack.enter_context(closing(simulators.make(simulator, **road))) for road in roads]
        for env in cycle(envs):
            if not steps:
                return
            episode = Drive(env, simulator, seed=next(episodes))
            after = View(episode.frame, episode.info)
            length = min(longest, steps)
            for i in range(length):
                before = after
                action, log_mu, ended = episode.step()
                after = View(episode.frame, episode.info)
                yield Step(before, action, log_mu, after, ended or i == length - 1)
                steps -= 1
                if ended:
                    break


def seeds(seed: int) -> Iterator[np.random.SeedSequence]:
    """Return an endless series of seeds, one for each episode."""
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    return (np.random.SeedSequence((seed, episode)) for episode in count())
