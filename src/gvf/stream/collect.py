"""Streams: transitions from a Gymnasium environment under a behaviour policy.

A stream turns the loop of acting and resetting into an iterator of batches. Each transition comes
with mu(a|s), from the evaluation of the policy that chose the action. A reset is not a transition:
at the end of an episode the next state is the last state of that episode, never the first of the
next. Everything is copied out of the environment's buffers: observations by
:mod:`gvf.stream.observations`, values of ``info`` by :mod:`gvf.stream.infos`. Learners and
:class:`gvf.Window` take the batches; :mod:`gvf.truth` uses the same classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import brief, whole
from gvf.common.gymnasium import gym
from gvf.policies import DiscretePolicy, Policy
from gvf.stream.infos import Info
from gvf.stream.observations import Observations
from gvf.transition import Transitions


def collect(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    policy: Policy,
    steps: int,
    *,
    seed: int | None = None,
    batch: int = 1,
    info: Iterable[str] = (),
) -> Iterator[Transitions]:
    """Run a behaviour policy in an environment, and yield its transitions in batches.

    The environment is reset first, and again after every episode. Spaces that do not fit the policy
    raise an error at once, not at the first batch.

    Args:
        env: a Gymnasium environment, or a vector environment in any of the autoreset modes (steps
            that only reset are left out). Observations are numbers, arrays, or a ``Dict`` of them,
            which becomes a structured array: ``batch.state["position"]`` is [m, d]. Actions are
            ``Discrete`` or real-valued ``Box``.
        policy: the behaviour mu. An action outside a bounded ``Box`` is clipped for the
            environment, and recorded as drawn, because the density is that of the drawn action.
        steps: the total number of transitions.
        seed: the seed of the environment and of the actions.
        batch: the number of transitions in a batch of a single environment; the last batch may be
            shorter. Larger batches are faster and hold the same transitions. The policy acts up to
            ``batch`` times before a batch is returned, so a policy that must react to each
            transition needs ``batch=1``. A vector environment ignores ``batch`` and returns the
            transitions of one step as a batch, at most ``num_envs``.
        info: names of entries of the ``info`` that every step returns. Each becomes a column of
            that name, float64[m] for numbers and float64[m, ...] for arrays. An entry that is
            missing at a step, is not numeric, or changes its shape is an error.

    Returns:
        An iterator of batches with the columns ``state``, ``action``, ``reward`` (float64),
        ``next_state``, ``terminated``, ``truncated`` (bool), and ``behaviour_probability``
        (discrete actions) or ``behaviour_log_probability`` (continuous actions, a density), both
        from the time of the action. The batches of a vector environment also have the column
        ``stream`` (int64), the index of the environment of each transition. The columns that
        ``info`` names come last.

        The iterator acts only when a batch is requested. If the environment or the policy raises an
        error within a batch, the iterator first returns the transitions before it, as a shorter
        batch, and then raises the error. Ctrl-C interrupts at once and loses an unfinished batch.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> env = gym.make("CartPole-v1")
        >>> for batch in gvf.collect(env, gvf.policies.Uniform(2), steps=3, seed=1):
        ...     print(batch.state.shape, batch.reward, batch.behaviour_probability)
        (1, 4) [1.] [0.5]
        (1, 4) [1.] [0.5]
        (1, 4) [1.] [0.5]
        >>> [len(batch) for batch in gvf.collect(env, gvf.policies.Uniform(2), steps=150, batch=64)]
        [64, 64, 22]

        FrozenLake reports in ``info`` the probability of each step's outcome:

        >>> lake = gym.make("FrozenLake-v1", is_slippery=False)
        >>> next(gvf.collect(lake, gvf.policies.Uniform(4), steps=1, seed=0, info=["prob"])).prob
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


_UNSEEN = 64  # rows allocated at once for transitions that are not returned


class Actor:
    """A policy that acts in an action space.

    Args:
        policy: a discrete policy with as many actions as the space, or a continuous one for a real
            ``Box``.
        space: the action space of a single environment.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> from gymnasium.spaces import Discrete
        >>> actor = gvf.stream.Actor(gvf.policies.Uniform(2), Discrete(2))
        >>> actor.act(np.zeros(3), np.random.default_rng(0))
        (array([1, 0, 0]), array([0.5, 0.5, 0.5]))
        >>> actor.column
        'behaviour_probability'
    """

    column: str
    """The name of the column for the likelihood of the actions."""

    def __init__(self, policy: Policy, space: gym.Space[Any]) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a gvf.policies.Policy, not {brief(policy)}")
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
                "(a Function is discrete when it is given its number of actions)"
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
        # A density may be outside the range of a float; its logarithm is not.
        self.column = "behaviour_probability" if discrete else "behaviour_log_probability"

    def act(
        self, states: NDArray[Any], rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Draw actions [m] or [m, d] for states [m, ...]; return them and their likelihoods [m]."""
        actions, likelihood = self.policy.act(states, rng=rng)
        # A copy, because a policy may return its own buffer.
        return np.array(actions), likelihood

    def idle(self, count: int) -> NDArray[Any]:
        """Return ``count`` valid actions for steps that ignore them."""
        return self.executed(np.zeros((count, *(self.space.shape or ())), self.space.dtype))

    def executed(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Convert actions [m] or [m, d] to the shape, bounds and type of the space."""
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
    """A walk through a single environment: its current state, and transitions on demand.

    A deep copy is a second walk from the same state.

    Args:
        env: a Gymnasium environment.
        info: names of entries of ``info`` that become columns, as in :func:`collect`.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> import numpy as np
        >>> env = gym.make("FrozenLake-v1")
        >>> walk = gvf.stream.Walk(env)
        >>> walk.start(seed=0)
        >>> walk.state
        array([0])
        >>> actor = gvf.stream.Actor(gvf.policies.Uniform(4), env.action_space)
        >>> len(walk.step(actor, np.random.default_rng(0)))
        1
    """

    def __init__(self, env: gym.Env[Any, Any], info: Iterable[str] = ()) -> None:
        if not isinstance(env, gym.Env):
            raise TypeError(f"expected a (single) Gymnasium environment, got {brief(env)}")
        self.env = env
        self._observations = Observations(env.observation_space)
        self._info = Info(info)
        # Arrays are converted directly, which is faster than through `Observations`.
        self._dtype = None if self._observations.structured else self._observations.dtype

    def start(self, seed: int) -> None:
        """Reset the environment with a seed."""
        self._info.step = 0
        self._enter(self.env.reset(seed=seed)[0])

    @property
    def state(self) -> NDArray[Any]:
        """The state before the next transition, as a batch of 1; resets if an episode has ended."""
        if self._ended:
            self._enter(self.env.reset()[0])
        return self._state

    def step(self, actor: Actor, rng: np.random.Generator) -> Transitions:
        """Act once, and return the transition."""
        rows = _Rows(self._state, 1)
        self._fill(rows, actor, rng)
        return rows.transitions(actor.column)

    def advance(self, actor: Actor, rng: np.random.Generator, steps: int) -> None:
        """Act ``steps`` times, and discard the transitions."""
        while steps > 0:
            rows = _Rows(self._state, min(steps, _UNSEEN))
            self._fill(rows, actor, rng)
            steps -= rows.filled

    def _fill(self, rows: _Rows, actor: Actor, rng: np.random.Generator) -> None:
        """Act until the rows are full; if a step fails, ``rows.filled`` counts rows before it."""
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
            self._state = _as_state(observation, self._dtype)[None]
        self._ended = False


def _as_state(observation: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Copy an observation to its space's type; raise ValueError if integers cannot hold it."""
    values = np.asarray(observation)
    if values.dtype == dtype or dtype.kind not in "iu":
        return np.array(observation, dtype)
    with np.errstate(invalid="ignore"):
        state = values.astype(dtype)
    if np.array_equal(values, state):
        return state
    raise ValueError(
        f"an observation is {brief(observation)}, but its space holds {dtype}: give the space the "
        "type of the observations"
    )


class _Rows:
    """The columns of a batch of at most ``size`` transitions, filled row by row."""

    def __init__(self, state: NDArray[Any], size: int) -> None:
        shape = (size, *state.shape[1:])
        self.filled = 0
        self.state, self.next_state = np.empty(shape, state.dtype), np.empty(shape, state.dtype)
        self.reward, self.likelihood = np.empty(size), np.empty(size)
        self.terminated, self.truncated = np.empty(size, bool), np.empty(size, bool)
        # A list of arrays, because their shape and type depend on the policy.
        self.action: list[NDArray[Any]] = []
        self.info: dict[str, NDArray[np.float64]] = {}

    def write_info(self, row: int, values: dict[str, NDArray[np.float64]]) -> None:
        """Write the entries of ``info`` for a row."""
        for name, value in values.items():
            if name not in self.info:
                self.info[name] = np.empty((len(self.reward), *value.shape))
            self.info[name][row] = value

    def transitions(self, likelihood: str) -> Transitions:
        """Return the rows filled so far; ``likelihood`` names the column of likelihoods."""
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
    """Return a seed for ``env.reset`` of 31 bits, which every simulator accepts.

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
    # These may be views of the environment's buffer; indexing below copies.
    observations = seen.many(env.reset(seed=seed)[0], env.num_envs)
    # In NEXT_STEP mode: the environments whose next step ignores its action and only resets.
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
    """Return observations with the last observation of each ended episode in its place."""
    if "final_obs" not in info:
        raise ValueError(f"{env} resets in the same step, but gives no 'final_obs' in its info")
    final, last = observations.copy(), info["final_obs"]
    if isinstance(last, Mapping):  # an environment that is natively a vector gives arrays
        final[ended] = seen.many(last, len(ended))[ended]
        return final
    for row in np.flatnonzero(ended):
        final[row] = seen.one(last[row])[0]
    return final
