"""The behaviour, the target and the question of Figure 3.

A controller that wanders over the road steers with a_det in [-1, 1], and

    behaviour: a ~ N(a_det, .1),    target: a ~ N(.15, .0075), a little to the left,
    C = 1 and gamma = 0 when the car comes near the middle of the road, else C = 0 and gamma = .9,

where the second numbers of the gaussians are standard deviations. The paper does not define "near"
and does not describe its controller. A controller that holds the middle makes the question trivial,
so ours follows a goal across the road, which changes now and then. It stays on the road, and is
within .1 half-widths of the middle about a fifth of the time in TORCS and about a quarter in
CarRacing. States are images, which do not show a_det (it depends on the goal), so ratios come from
the recorded density, ``behaviour_log_probability``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import GVF, Transitions
from gvf.policies import Gaussian

SD = 0.1
"""The standard deviation of the behaviour's steering around the controller's."""
TARGET = Gaussian(0.15, 0.0075)
"""The target policy: steer a little to the left, in every state."""
CONTINUATION = 0.9
"""The continuation away from the middle."""


class Wander:
    """A controller that follows a goal across the road; its steering is the behaviour's a_det.

    It steers along the road and towards the goal,

        a_det = (angle - gain * (lateral - goal)) / steer_lock, clipped to [-1, 1],

    with lateral and goal in half-widths of the road, positive left of the middle. A new goal is
    drawn uniformly from [-spread, spread] every ``every`` calls.

    Args:
        gain: radians of steering per half-width off the goal.
        spread: the goal's largest distance from the middle, in half-widths.
        every: the number of steps that a goal lasts.
        seed: the seed of the goals.

    Example:
        >>> from gvf_lab.racing.driving_policies import Wander
        >>> wander = Wander(seed=0)
        >>> round(wander.act({"lateral": 0.5, "angle": 0.0, "steer_lock": 0.4}), 3)
        -0.42
        >>> round(wander.goal, 3)
        0.164
    """

    def __init__(
        self, *, gain: float = 0.5, spread: float = 0.6, every: int = 60, seed: int | None = None
    ) -> None:
        if gain <= 0 or not 0 <= spread < 1 or every < 1:
            raise ValueError(
                "gain must be positive, spread in [0, 1) and every at least 1, got "
                f"gain={gain}, spread={spread}, every={every}"
            )
        self.gain, self.spread, self.every = float(gain), float(spread), int(every)
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Restart with goals of a new seed; the next call of :meth:`act` draws the first."""
        self._rng = np.random.default_rng(seed)
        self._steps = 0
        self.goal = 0.0

    def act(self, info: Mapping[str, Any]) -> float:
        """Compute a_det for the state that a simulator's ``info`` describes."""
        if self._steps % self.every == 0:
            self.goal = float(self._rng.uniform(-self.spread, self.spread))
        self._steps += 1
        wheels = info["angle"] - self.gain * (info["lateral"] - self.goal)
        return float(np.clip(wheels / info["steer_lock"], -1.0, 1.0))


def draw(a_det: float, *, rng: np.random.Generator) -> tuple[float, float]:
    """Draw an action of the behaviour around a_det; return it, unclipped, and its log density.

    Example:
        >>> import numpy as np
        >>> from gvf_lab.racing.driving_policies import draw
        >>> action, log_mu = draw(0.2, rng=np.random.default_rng(0))
        >>> round(action, 4), round(log_mu, 4)
        (0.2126, 1.3757)
    """
    behaviour = Gaussian(a_det, SD)
    action = behaviour.sample([0], rng=rng)
    return float(action[0]), float(behaviour.log_probability([0], action)[0])


class Behaviour:
    """The behaviour policy: a gaussian with standard deviation .1 around :class:`Wander`.

    It depends on the simulator's ``info`` and on its goal, so it is no function of the image and no
    :class:`gvf.policies.Policy`. A learner needs only the density of each action.

    Args:
        seed: the seed of the goals and the noise.

    Attributes:
        controller: the controller whose steering is the mean.

    Example:
        >>> from gvf_lab.racing.driving_policies import Behaviour
        >>> behaviour = Behaviour(seed=0)
        >>> action, log_mu = behaviour.act({"lateral": 0.5, "angle": 0.0, "steer_lock": 0.4})
        >>> round(action, 3), round(log_mu, 3)
        (-1.067, 1.158)
    """

    def __init__(self, seed: int | np.random.SeedSequence | None = None) -> None:
        sequence = (
            seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        )
        goals, noise = sequence.generate_state(2).tolist()
        self.controller = Wander(seed=goals)
        self._rng = np.random.default_rng(noise)

    def act(self, info: Mapping[str, Any]) -> tuple[float, float]:
        """Draw an action in the state of ``info``; return it, unclipped, and its log density."""
        return draw(self.controller.act(info), rng=self._rng)


@dataclass(frozen=True)
class Middle:
    """The cumulant and continuation of reaching the road's middle, from ``next_lateral``."""

    near: float

    def reached(self, transitions: Transitions) -> NDArray[np.float64]:
        """Compute the cumulant: 1 if the next state is near the middle, else 0."""
        return self._near(transitions).astype(np.float64)

    def ahead(self, transitions: Transitions) -> NDArray[np.float64]:
        """Compute the continuation: 0 if the next state is near the middle, else .9."""
        return np.where(self._near(transitions), 0.0, CONTINUATION)

    def _near(self, transitions: Transitions) -> NDArray[np.bool_]:
        return np.abs(transitions["next_lateral"]) < self.near


def towards_middle(near: float = 0.1) -> GVF:
    """Ask how soon the car comes near the middle if it steers a little to the left.

    Args:
        near: the largest distance that is near, in half-widths of the road.

    Example:
        >>> import gvf
        >>> from gvf_lab.racing.driving_policies import towards_middle
        >>> question = towards_middle()
        >>> question
        GVF(Gaussian(0.15, 0.0075), Middle.reached, Middle.ahead, name='towards-middle')
        >>> batch = gvf.Transitions(next_lateral=[-0.3, -0.05])
        >>> question.cumulants(batch), question.continuations(batch)
        (array([0., 1.]), array([0.9, 0. ]))
    """
    middle = Middle(near)
    return GVF(TARGET, middle.reached, middle.ahead, name="towards-middle")
