"""Streams: transitions from a Gymnasium environment under a behaviour policy.

A stream turns the loop of acting and resetting into an iterator of batches, each with what a
learner needs of the behaviour: mu(a|s) beside every transition, from the evaluation of the policy
that chose the action. Only what the dynamics did is a transition; what a reset did is not: after an
end the next state is the episode's own last one, never the first of the next. Everything is copied
out of the environment's buffers: observations by :mod:`gvf.stream.observation`, values of ``info``
by :mod:`gvf.stream.info`. The batches go to :class:`gvf.Window`; :mod:`gvf.truth` walks through
environments with the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import brief, whole
from gvf.common.gym import gym
from gvf.policy import DiscretePolicy, Policy
from gvf.stream.info import Info
from gvf.stream.observation import Observations
from gvf.transition import Transitions


def transitions(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    policy: Policy,
    steps: int,
    *,
    seed: int | None = None,
    batch: int = 1,
    info: Iterable[str] = (),
) -> Iterator[Transitions]:
    """Let a behaviour policy act in an environment, and give its transitions batch by batch.

    The environment is reset first, and again after every episode. Spaces that do not fit are an
    error now, not at the first batch.

    Args:
        env: a Gymnasium environment, or a vector environment in any of the autoreset modes (a
            step that only resets is left out). Observations are numbers, arrays, or a ``Dict`` of
            them, which becomes a structured array: ``batch.state["position"]`` is [m, d]. Actions
            are ``Discrete`` or real-valued ``Box``.
        policy: the behaviour mu. An action outside a bounded ``Box`` is executed clipped to it
            and recorded as it was drawn, since that is what the policy's density speaks of.
        steps: the number of transitions in all.
        seed: makes the stream reproducible, the environment's part and the actions alike.
        batch: the number of transitions in a batch of a single environment; the last batch may be
            shorter. Larger batches are faster and hold the same transitions, but the behaviour
            acts up to ``batch`` times before the batch is seen: a behaviour that must react to
            each transition at once needs ``batch=1``. A vector environment gives the transitions
            of one step as a batch, at most ``num_envs``, whatever ``batch`` is.
        info: the names of values in the ``info`` that every step returns; each becomes a column
            of that name, float64[m] for numbers and float64[m, ...] for arrays. A value that is
            missing at a step, is not numeric, or changes its shape is an error.

    Returns:
        An iterator of batches with the columns ``state``, ``action``, ``reward`` (float64),
        ``next_state``, ``terminated``, ``truncated`` (bool), and ``behaviour_probability``
        (discrete actions) or ``behaviour_log_probability`` (continuous ones: a density), both as
        they were when the action was chosen. The batches of a vector environment also have the
        column ``stream`` (int64), the index of the environment that each transition is from. The
        columns that ``info`` names come last.

        The iterator acts only when it is asked for a batch. Where the environment or the policy
        raises an error in the middle of one, the transitions before it come first, as a shorter
        batch, and the error after them. Ctrl-C does not wait: it loses an unfinished batch.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> env = gym.make("CartPole-v1")
        >>> for batch in gvf.transitions(env, gvf.Uniform(2), steps=3, seed=1):
        ...     print(batch.state.shape, batch.reward, batch.behaviour_probability)
        (1, 4) [1.] [0.5]
        (1, 4) [1.] [0.5]
        (1, 4) [1.] [0.5]
        >>> [len(batch) for batch in gvf.transitions(env, gvf.Uniform(2), steps=150, batch=64)]
        [64, 64, 22]

        A frozen lake tells with each step how likely it was to slide that way:

        >>> lake = gym.make("FrozenLake-v1", is_slippery=False)
        >>> next(gvf.transitions(lake, gvf.Uniform(4), steps=1, seed=0, info=["prob"])).prob
        array([1.])
    """
    batch, steps = whole("batch", batch, 1), whole("steps", steps, 0)
    for_environment, for_actions = np.random.SeedSequence(seed).spawn(2)
    reset_seed, rng = environment_seed(for_environment), np.random.default_rng(for_actions)
    if not isinstance(env, gym.vector.VectorEnv):
        return _single(
            Walk(env, info), Actor(policy, env.action_space), steps, batch, reset_seed, rng
        )
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, gym.vector.AutoresetMode):
        raise ValueError(
            f"{env} does not say when it resets (metadata['autoreset_mode'] is {mode!r}); set it "
            "to the gymnasium.vector.AutoresetMode that the environment follows"
        )
    observations = Observations(env.single_observation_space)
    actor = Actor(policy, env.single_action_space)
    return _vector(env, mode, observations, Info(info), actor, steps, reset_seed, rng)


_UNSEEN = 64  # rows that are filled at once where nobody looks at them


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
        >>> actor.act(np.zeros(3), np.random.default_rng(0))
        (array([1, 0, 0]), array([0.5, 0.5, 0.5]))
        >>> actor.column
        'behaviour_probability'
    """

    column: str
    """The column that holds the likelihood of the actions."""

    def __init__(self, policy: Policy, space: gym.Space[Any]) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a gvf.Policy, not {brief(policy)}")
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
        # A density may be far outside the range of a float; its logarithm is not.
        self.column = "behaviour_probability" if discrete else "behaviour_log_probability"

    def act(
        self, states: NDArray[Any], rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Draw actions [m] or [m, d] for the states [m, ...], and give their likelihood [m]."""
        actions, likelihood = self.policy.act(states, rng=rng)
        # A copy, since a policy too may give out its own buffer.
        return np.array(actions), likelihood

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


class Walk:
    """A single environment under way: where it is, and the next transition on demand.

    A deep copy is a second walk from the same state.

    Args:
        env: a Gymnasium environment.
        info: the names of values of ``info`` that become columns, as in :func:`transitions`.

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

    def __init__(self, env: gym.Env[Any, Any], info: Iterable[str] = ()) -> None:
        if not isinstance(env, gym.Env):
            raise TypeError(f"expected a (single) Gymnasium environment, got {brief(env)}")
        self.env = env
        self._observations = Observations(env.observation_space)
        self._info = Info(info)
        # A Dict's observations are read by `Observations`, an array's at once, which is quicker.
        self._dtype = None if self._observations.structured else self._observations.dtype

    def start(self, seed: int) -> None:
        """Reset the environment with a seed."""
        self._info.step = 0
        self._enter(self.env.reset(seed=seed)[0])

    @property
    def state(self) -> NDArray[Any]:
        """Where the next transition starts, as a batch of 1; a new episode begins if it must."""
        if self._ended:
            self._enter(self.env.reset()[0])
        return self._state

    def step(self, actor: Actor, rng: np.random.Generator) -> Transitions:
        """Act once, and give the transition."""
        rows = _Rows(self._state, 1)
        self._fill(rows, actor, rng)
        return rows.transitions(actor.column)

    def advance(self, actor: Actor, rng: np.random.Generator, steps: int) -> None:
        """Act so many times, and give nothing."""
        while steps > 0:
            rows = _Rows(self._state, min(steps, _UNSEEN))
            self._fill(rows, actor, rng)
            steps -= rows.filled

    def _fill(self, rows: _Rows, actor: Actor, rng: np.random.Generator) -> None:
        """Act until the rows are full; if a step fails, ``rows.filled`` counts those before it."""
        for row in range(len(rows.reward)):
            state = self.state
            rows.state[row] = state[0]
            action, likelihood = actor.act(state, rng)
            executed = actor.executed(action)[0]
            if executed.ndim == 0 and executed.dtype.kind in "iu":
                executed = int(executed)
            observation, reward, terminated, truncated, info = self.env.step(executed)
            self._enter(observation)
            self._ended = terminated or truncated
            if self._info.names:
                rows.write_info(row, self._info.one(info))
            rows.action.append(action)
            rows.reward[row] = reward
            rows.next_state[row] = self._state[0]
            rows.terminated[row] = terminated
            rows.truncated[row] = truncated
            rows.likelihood[row] = likelihood[0]
            rows.filled = row + 1

    def _enter(self, observation: Any) -> None:
        if self._dtype is None:
            self._state = self._observations.one(observation)
        else:
            self._state = np.array(observation, self._dtype)[None]
        self._ended = False


class _Rows:
    """The columns of a batch of at most ``size`` transitions, filled row by row."""

    def __init__(self, state: NDArray[Any], size: int) -> None:
        shape = (size, *state.shape[1:])
        self.filled = 0
        self.state, self.next_state = np.empty(shape, state.dtype), np.empty(shape, state.dtype)
        self.reward, self.likelihood = np.empty(size), np.empty(size)
        self.terminated, self.truncated = np.empty(size, bool), np.empty(size, bool)
        # One array a row, joined at the end: only the policy knows their shape and type.
        self.action: list[NDArray[Any]] = []
        self.info: dict[str, NDArray[np.float64]] = {}

    def write_info(self, row: int, values: dict[str, NDArray[np.float64]]) -> None:
        """Write the values of ``info`` that belong to a row."""
        for name, value in values.items():
            if name not in self.info:
                self.info[name] = np.empty((len(self.reward), *value.shape))
            self.info[name][row] = value

    def transitions(self, likelihood: str) -> Transitions:
        """The rows filled so far, with the given name for the column of likelihoods."""
        columns = {
            "state": self.state,
            "action": np.concatenate(self.action),
            "reward": self.reward,
            "next_state": self.next_state,
            "terminated": self.terminated,
            "truncated": self.truncated,
            likelihood: self.likelihood,
            **self.info,
        }
        batch = Transitions._of(columns)
        return batch if self.filled == len(self.reward) else batch[: self.filled]


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
    walk: Walk, actor: Actor, steps: int, batch: int, seed: int, rng: np.random.Generator
) -> Iterator[Transitions]:
    walk.start(seed)
    while steps > 0:
        rows = _Rows(walk.state, min(batch, steps))
        try:
            walk._fill(rows, actor, rng)
        except Exception:
            if rows.filled:
                yield rows.transitions(actor.column)
            raise
        yield rows.transitions(actor.column)
        steps -= rows.filled


def _vector(
    env: gym.vector.VectorEnv[Any, Any, Any],
    mode: gym.vector.AutoresetMode,
    seen: Observations,
    named: Info,
    actor: Actor,
    steps: int,
    seed: int,
    rng: np.random.Generator,
) -> Iterator[Transitions]:
    # Views of the environment's buffer, maybe; picking rows copies.
    observations = seen.many(env.reset(seed=seed)[0], env.num_envs)
    # In NEXT_STEP mode, the environments whose next step ignores its action and only resets.
    resetting = np.zeros(env.num_envs, bool)
    while steps > 0:
        acting = np.flatnonzero(~resetting)
        state, executed = observations[acting], actor.idle(env.num_envs)
        chosen = actor.act(state, rng) if len(acting) else None
        if chosen is not None:
            executed[acting] = actor.executed(chosen[0])
        observed, reward, terminated, truncated, info = env.step(executed)
        observations = seen.many(observed, env.num_envs)
        ended = np.logical_or(terminated, truncated)
        if chosen is not None:
            action, likelihood = chosen
            landed, over = observations, None
            if mode is gym.vector.AutoresetMode.SAME_STEP and ended.any():
                landed, over = _final(observations, ended, info, seen, env), ended[acting]
            batch = Transitions(
                state=state,
                action=action,
                reward=np.asarray(reward, np.float64)[acting],
                next_state=landed[acting],
                terminated=np.asarray(terminated, bool)[acting],
                truncated=np.asarray(truncated, bool)[acting],
                **{actor.column: np.array(likelihood, np.float64)},
                stream=acting,
                **(named.many(info, acting, over) if named.names else {}),
            )
            yield batch if len(batch) <= steps else batch[:steps]
            steps -= len(batch)
        if mode is gym.vector.AutoresetMode.NEXT_STEP:
            resetting = ended
        elif mode is gym.vector.AutoresetMode.DISABLED and ended.any() and steps > 0:
            after = env.reset(options={"reset_mask": ended})[0]
            observations = seen.many(after, env.num_envs)


def _final(
    observations: NDArray[Any],
    ended: NDArray[np.bool_],
    info: Mapping[str, Any],
    seen: Observations,
    env: Any,
) -> NDArray[Any]:
    """Observations with those of ended episodes replaced by their own last ones."""
    if "final_obs" not in info:
        raise ValueError(f"{env} resets in the same step, but gives no 'final_obs' in its info")
    final, last = observations.copy(), info["final_obs"]
    if isinstance(last, Mapping):  # of arrays, from an environment that is a vector by itself
        final[ended] = seen.many(last, len(ended))[ended]
        return final
    for row in np.flatnonzero(ended):
        final[row] = seen.one(last[row])[0]
    return final
