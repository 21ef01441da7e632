"""Streams: transitions from a Gymnasium environment under a behaviour policy.

A stream turns the loop of acting and resetting into an iterator of batches, each with what a
learner needs of the behaviour: mu(a|s) beside every transition. Only what the dynamics did is a
transition; what a reset did is not: after an end the next state is the episode's own last one,
never the first of the next. Everything is copied out of the environment's buffers. The batches
go to :class:`gvf.window.Window`; :mod:`gvf.truth` walks through environments with the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.gym import gym
from gvf.policy import DiscretePolicy, Policy
from gvf.transition import Transitions


def transitions(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    policy: Policy,
    steps: int,
    *,
    seed: int | None = None,
) -> Iterator[Transitions]:
    """Let a behaviour policy act in an environment, and give its transitions batch by batch.

    The environment is reset first, and again after every episode. Spaces that do not fit are an
    error now, not at the first batch.

    Args:
        env: a Gymnasium environment (batches of 1) or vector environment (batches of at most
            ``num_envs``, in any of the autoreset modes: a step that only resets is left out).
            Observations are numbers or arrays; actions ``Discrete`` or real-valued ``Box``.
        policy: the behaviour mu. An action outside a bounded ``Box`` is executed clipped to it
            and recorded as it was drawn, since that is what the policy's density speaks of.
        steps: the number of transitions in all.
        seed: makes the stream reproducible, the environment's part and the actions alike.

    Returns:
        An iterator of batches with the columns ``state``, ``action``, ``reward`` (float64),
        ``next_state``, ``terminated``, ``truncated`` (bool), and ``behaviour_probability``
        (discrete actions) or ``behaviour_log_probability`` (continuous ones: a density).

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> env = gym.make("CartPole-v1")
        >>> for batch in gvf.transitions(env, gvf.Uniform(2), steps=3, seed=1):
        ...     print(batch.state.shape, batch.reward, batch.behaviour_probability)
        (1, 4) [1.] [0.5]
        (1, 4) [1.] [0.5]
        (1, 4) [1.] [0.5]
    """
    if steps < 0:
        raise ValueError(f"steps must be at least 0, got {steps}")
    for_environment, for_actions = np.random.SeedSequence(seed).spawn(2)
    reset_seed, rng = environment_seed(for_environment), np.random.default_rng(for_actions)
    if not isinstance(env, gym.vector.VectorEnv):
        return _single(Walk(env), Actor(policy, env.action_space), steps, reset_seed, rng)
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, gym.vector.AutoresetMode):
        raise ValueError(
            f"{env} does not say when it resets (metadata['autoreset_mode'] is {mode!r}); set it "
            "to the gymnasium.vector.AutoresetMode that the environment follows"
        )
    _check_observations(env.single_observation_space)
    actor = Actor(policy, env.single_action_space)
    return _vector(env, mode, actor, steps, reset_seed, rng)


class Actor:
    """A policy that acts in an action space.

    Args:
        policy: discrete, with as many actions as the space; or continuous, for a real ``Box``.
        space: the action space of a single environment.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> from gymnasium.spaces import Discrete
        >>> actor = gvf.stream.Actor(gvf.Uniform(2), Discrete(2))
        >>> actor.likelihood(np.zeros(3, int), np.array([0, 1, 1]))
        ('behaviour_probability', array([0.5, 0.5, 0.5]))
    """

    def __init__(self, policy: Policy, space: gym.Space[Any]) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a gvf.Policy, not {policy!r}")
        if not isinstance(space, gym.spaces.Discrete | gym.spaces.Box):
            raise ValueError(
                f"the action space {space} is neither Discrete nor Box; wrap the environment "
                "in a gymnasium.ActionWrapper that makes it one of them"
            )
        discrete = isinstance(policy, DiscretePolicy)
        if isinstance(space, gym.spaces.Box):
            if discrete or not np.issubdtype(space.dtype, np.floating):
                gives = f"{policy.actions} discrete" if discrete else "real-valued"
                raise ValueError(f"{policy} gives {gives} actions; the environment takes {space}")
        elif not discrete:
            raise ValueError(
                f"{policy} is not discrete, but the environment takes {space} "
                "(a FunctionPolicy is discrete when it is given its number of actions)"
            )
        elif space.start != 0:
            raise ValueError(
                f"the actions of {space} begin at {space.start}, a policy's at 0; wrap the "
                f"environment in gymnasium.wrappers.TransformAction(env, lambda a: a + "
                f"{space.start}, gymnasium.spaces.Discrete({space.n}))"
            )
        elif policy.actions != space.n:
            raise ValueError(
                f"{policy} gives {policy.actions} actions; the environment takes {space}"
            )
        self.policy = policy
        self.space = space

    def idle(self, count: int) -> NDArray[Any]:
        """An action the space takes, ``count`` times: for steps that ignore it."""
        return self.executed(np.zeros((count, *(self.space.shape or ())), self.space.dtype))

    def executed(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The policy's actions [m] or [m, d] as the space wants them: shape, bounds and type."""
        space = self.space
        if isinstance(space, gym.spaces.Discrete):
            return actions
        shape = (len(actions), *space.shape)
        if actions.size != math.prod(shape):
            raise ValueError(
                f"{self.policy} gave actions of shape {actions.shape[1:]}; the environment "
                f"takes {space}"
            )
        return np.clip(actions.reshape(shape), space.low, space.high).astype(space.dtype)

    def likelihood(
        self, states: NDArray[Any], actions: NDArray[Any]
    ) -> tuple[str, NDArray[np.float64]]:
        """The column that says how likely the actions were: its name, and its values [m]."""
        if isinstance(self.space, gym.spaces.Discrete):
            return "behaviour_probability", self.policy.probability(states, actions)
        # A density may be far outside the range of a float; its logarithm is not.
        return "behaviour_log_probability", self.policy.log_probability(states, actions)


class Walk:
    """A single environment under way: where it is, and the next transition on demand.

    A deep copy is a second walk from the same state.

    Args:
        env: a Gymnasium environment.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> import numpy as np
        >>> env = gym.make("FrozenLake-v1")
        >>> walk = gvf.stream.Walk(env)
        >>> walk.start(seed=0)
        >>> walk.state
        array([0])
        >>> actor = gvf.stream.Actor(gvf.Uniform(4), env.action_space)
        >>> len(walk.step(actor, np.random.default_rng(0)))
        1
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        if not isinstance(env, gym.Env):
            raise TypeError(f"expected a (single) Gymnasium environment, got {env!r}")
        _check_observations(env.observation_space)
        self.env = env
        self._dtype = env.observation_space.dtype

    def start(self, seed: int) -> None:
        """Reset the environment with a seed."""
        self._enter(self.env.reset(seed=seed)[0])

    @property
    def state(self) -> NDArray[Any]:
        """Where the next transition starts, as a batch of 1; a new episode begins if it must."""
        if self._ended:
            self._enter(self.env.reset()[0])
        return self._state

    def step(self, actor: Actor, rng: np.random.Generator) -> Transitions:
        """Act once, and give the transition."""
        state = self.state
        action = np.asarray(actor.policy.sample(state, rng=rng))
        executed = actor.executed(action)[0]
        if executed.ndim == 0 and executed.dtype.kind in "iu":
            executed = int(executed)
        observation, reward, terminated, truncated, _ = self.env.step(executed)
        self._enter(observation)
        self._ended = terminated or truncated
        name, likelihood = actor.likelihood(state, action)
        return Transitions._of(
            {
                "state": state,
                "action": action,
                "reward": np.array([reward], np.float64),
                # A copy, since the next batch has this array as its state.
                "next_state": self._state.copy(),
                "terminated": np.array([terminated], bool),
                "truncated": np.array([truncated], bool),
                name: likelihood,
            }
        )

    def _enter(self, observation: Any) -> None:
        self._state = np.array(observation, self._dtype)[None]
        self._ended = False


def environment_seed(seeds: np.random.SeedSequence) -> int:
    """A seed for ``env.reset``: 31 bits, which every simulator takes.

    Example:
        >>> import numpy as np
        >>> from gvf.stream import environment_seed
        >>> environment_seed(np.random.SeedSequence(0))
        1484405855
    """
    return int(seeds.generate_state(1)[0] >> 1)


def _single(
    walk: Walk, actor: Actor, steps: int, seed: int, rng: np.random.Generator
) -> Iterator[Transitions]:
    walk.start(seed)
    for _ in range(steps):
        yield walk.step(actor, rng)


def _vector(
    env: gym.vector.VectorEnv[Any, Any, Any],
    mode: gym.vector.AutoresetMode,
    actor: Actor,
    steps: int,
    seed: int,
    rng: np.random.Generator,
) -> Iterator[Transitions]:
    # Views of the environment's buffer, maybe; picking rows copies.
    observations = np.asarray(env.reset(seed=seed)[0])
    # In NEXT_STEP mode, the environments whose next step ignores its action and only resets.
    resetting = np.zeros(env.num_envs, bool)
    while steps > 0:
        acting = np.flatnonzero(~resetting)
        state, executed = observations[acting], actor.idle(env.num_envs)
        action = np.asarray(actor.policy.sample(state, rng=rng)) if len(acting) else None
        if action is not None:
            executed[acting] = actor.executed(action)
        observed, reward, terminated, truncated, info = env.step(executed)
        observations = np.asarray(observed)
        ended = np.logical_or(terminated, truncated)
        if action is not None:
            name, likelihood = actor.likelihood(state, action)
            landed = observations
            if mode is gym.vector.AutoresetMode.SAME_STEP and ended.any():
                landed = _final(observations, ended, info, env)
            batch = Transitions(
                state=state,
                action=action,
                reward=np.asarray(reward, np.float64)[acting],
                next_state=landed[acting],
                terminated=np.asarray(terminated, bool)[acting],
                truncated=np.asarray(truncated, bool)[acting],
                **{name: likelihood},
            )
            yield batch[:steps]
            steps -= len(batch)
        if mode is gym.vector.AutoresetMode.NEXT_STEP:
            resetting = ended
        elif mode is gym.vector.AutoresetMode.DISABLED and ended.any() and steps > 0:
            observations = np.asarray(env.reset(options={"reset_mask": ended})[0])


def _final(
    observations: NDArray[Any], ended: NDArray[np.bool_], info: dict[str, Any], env: Any
) -> NDArray[Any]:
    """Observations with those of ended episodes replaced by their own last ones."""
    if "final_obs" not in info:
        raise ValueError(f"{env} resets in the same step, but gives no 'final_obs' in its info")
    final = observations.copy()
    for row in np.flatnonzero(ended):
        final[row] = info["final_obs"][row]
    return final


def _check_observations(space: gym.Space[Any]) -> None:
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        raise ValueError(
            f"the observation space {space} is no array; wrap the environment in "
            "gymnasium.wrappers.FlattenObservation"
        )
    if not isinstance(
        space,
        gym.spaces.Box | gym.spaces.Discrete | gym.spaces.MultiBinary | gym.spaces.MultiDiscrete,
    ):
        raise ValueError(
            f"the observation space {space} is no array; wrap the environment in "
            "gymnasium.wrappers.TransformObservation with a function that makes it a Box"
        )
