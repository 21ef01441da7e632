"""Driving: episodes of the behaviour in a simulator, step by step.

    reset -> up to speed, without noise -> (view, action, log density, view), ... -> reset -> ...

:mod:`.recording` keeps these steps in a file, :class:`gvf.racing.RacingDomain` gives them to
a learner as they come, and :mod:`.rollouts` goes back to some of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.racing import simulators
from gvf.racing.policy import Behaviour


class Drive:
    """An episode of the behaviour, from a reset on.

    The first steps, in which the car gets up to speed, are driven by the controller without noise.

    Args:
        env: the environment, of :func:`gvf.racing.simulators.make`.
        simulator: its name.
        seed: the seed of the goals, the noise and, in CarRacing, the track.
        draw: whether there are to be images.

    Attributes:
        frame: the image of the present state, uint8[64, 128].
        info: the simulator's information about it.
        actions: all actions since the reset; they lead here again.
    """

    def __init__(
        self, env: Any, simulator: str, *, seed: np.random.SeedSequence, draw: bool = True
    ) -> None:
        self._env = env
        self._behaviour = Behaviour(seed)
        self.reset_seed = int(seed.generate_state(3)[2])  # after the two of the behaviour
        self.actions: list[float] = []
        env.draw = False
        self.frame, self.info = env.reset(seed=self.reset_seed)
        for left in reversed(range(simulators.get(simulator).start)):
            env.draw = draw and left == 0
            if self._execute(self._behaviour.controller.act(self.info)):
                raise RuntimeError(f"{simulator} ended the episode before the car was under way")

    def step(self) -> tuple[float, float, bool]:
        """Drive on: the action, its log density, and whether the episode has ended with it."""
        action, log_mu = self._behaviour.act(self.info)
        return action, log_mu, self._execute(action)

    def _execute(self, action: float) -> bool:
        self.actions.append(action)
        self.frame, _, terminated, truncated, self.info = execute(self._env, action)
        return terminated or truncated


def execute(env: Any, action: float) -> tuple[Any, ...]:
    """Take a step; the same action is always the same float32, so that replays agree."""
    return env.step(np.array([action], np.float32))


class View(NamedTuple):
    """One moment of a drive: the image, uint8[64, 128], and the simulator's info."""

    frame: NDArray[np.uint8]
    info: Mapping[str, Any]


class Step(NamedTuple):
    """A transition of the behaviour; within an episode ``after`` is the next one's ``before``."""

    before: View
    action: float
    log_mu: float
    after: View


def driven(simulator: str, steps: int, *, seed: int = 0, **options: Any) -> Generator[Step]:
    """Let the behaviour drive, one step after the other, through as many episodes as it takes.

    An episode that ends is followed by another, in CarRacing after 1,000 steps at the latest and
    on another track. The first steps after a reset, in which the car gets up to speed, are left
    out. The same arguments give the same steps. The simulator is closed at the end, or when the
    iterator is forgotten.

    Args:
        simulator: "torcs" or "car-racing".
        steps: the number of steps.
        seed: the seed of goals, noise and, in CarRacing, tracks.
        **options: for the environment, for example ``track="g-track-1"``.

    Example:
        >>> from gvf.racing.driving import driven
        >>> for step in driven("torcs", 3, seed=0):  # doctest: +SKIP
        ...     print(step.before.frame.shape, round(step.action, 2))
        >>> driven("torcs", 0)
        Traceback (most recent call last):
        ValueError: steps must be at least 1, got 0
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    longest = simulators.get(simulator).episode or steps
    return _episodes(simulator, steps, longest, seeds(seed), options)


def _episodes(
    simulator: str,
    steps: int,
    longest: int,
    episodes: Iterator[np.random.SeedSequence],
    options: dict[str, Any],
) -> Generator[Step]:
    env = simulators.make(simulator, **options)
    try:
        while steps:
            episode = Drive(env, simulator, seed=next(episodes))
            after = View(episode.frame, episode.info)
            for _ in range(min(longest, steps)):
                before = after
                action, log_mu, ended = episode.step()
                after = View(episode.frame, episode.info)
                yield Step(before, action, log_mu, after)
                steps -= 1
                if ended:
                    break
    finally:
        env.close()


def seeds(seed: int) -> Iterator[np.random.SeedSequence]:
    """An endless series of seeds, one for each episode."""
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    return (np.random.SeedSequence((seed, episode)) for episode in count())
