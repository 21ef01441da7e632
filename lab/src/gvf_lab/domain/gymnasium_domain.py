"""Any Gymnasium environment as a domain: recorded streams, and truths from held-out returns.

A stream is recorded once, with mu(a|s) beside every action. For every question the record gives

    rho_t = pi(A_t|S_t) / mu(A_t|S_t),    C_{t+1},    gamma_{t+1}.

There is no model, so the true value of a state is estimated by returns of the target from it
(:mod:`gvf.truth.held_out_returns`). Streams and returns take long, so
:mod:`gvf_lab.domain.array_memory` keeps them. Domains with a model are in
:mod:`gvf_lab.domain.tabular`; :mod:`gvf_lab.domain.gymnasium_defaults` supplies everything that a
user leaves out.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf import GVF, HeldOutReturns, Transitions, collect, held_out_returns
from gvf.common.arrays import Floats
from gvf.common.checks import check_choice
from gvf.common.gymnasium import gym
from gvf.features import FeatureMap
from gvf.kernels import (
    Actor,
    Cut,
    Observations,
    check_share_cut,
    describe,
    features_of,
    info_columns,
)
from gvf.policies import DiscretePolicy, Gaussian, Policy
from gvf.truth import CutError
from gvf_lab.domain.array_memory import Memory, fingerprint
from gvf_lab.domain.domain import Domain, Signals, Trajectory, every_pair
from gvf_lab.domain.gymnasium_checks import (
    about,
    as_mask,
    check_support,
    identity,
    in_a_line,
    largest_ratio_in,
    largest_ratio_of_gaussians,
)
from gvf_lab.domain.gymnasium_defaults import (
    default_behaviours,
    default_features,
    default_questions,
)
from gvf_lab.truth import TrueValues

GENERATION = 2
"""The version of recordings; raise it when the same arguments give other streams or returns."""
PROBE = 2000
"""Steps of the short walk on which features and checks are based."""
ROLLOUTS = 20
"""The number of truncated rollouts after which a question is rejected."""

_BATCH = 256
_LARGEST_FILE = 2**28  # bytes, because images would fill a disk
_LONGEST = 100_000  # steps of a rollout
_MOST_STATES = 100_000  # the most states that are enumerated

Active = Callable[[Any], Any]
"""A function of states [m, ...] that returns bool[m]."""


class GymnasiumDomain(Domain):
    """Any Gymnasium environment, with behaviours, questions and features.

    Everything but the environment has a default:

    - behaviours: "uniform" for discrete actions. For real ones "gaussian", centred in their range
      with a quarter of it as standard deviation (0 and 1 without a range).
    - questions: the reward with continuation 0.9, for the targets "favour-0", "favour-1", ... that
      take one of the first four actions with probability 0.9. For real actions "steady", a Gaussian
      with half the behaviour's standard deviation: its ratios are at most 2^d.
    - features: one-hot for Discrete observations; else 8 tilings over all numbers of an
      observation, or, with more than 6 numbers, the standardised numbers and a constant. See
      :func:`gvf_lab.domain.gymnasium_defaults.default_features`.

    Each stream and each set of returns is recorded in a new environment, so several threads may
    record at the same time. They are kept in memory, and also in files if everything that
    determines them has a :func:`gvf_lab.domain.array_memory.fingerprint`.

    Args:
        environment: the id of a Gymnasium environment, or a function that makes a new one at every
            call. Actions are Discrete or Box; observations Box, Discrete or Dict.
        behaviours: the policies that make data, by name.
        questions: the questions, by name. A cumulant may be the name of a value in the
            environment's ``info``.
        features: the feature map of a linear value function. The states of a Dict are a structured
            array: ``states["position"]`` is [m, d].
        pairs: the pairs (question, behaviour) that belong together; by default all.
        initial_weights: the weights at which learning starts, float64[features.size]; by default 0.
        arguments: the arguments of ``gymnasium.make``, or of the function.
        active: functions of states [m, ...] that return bool[m], by question; True for states in
            which the question is active. By default all are. In other states the ratio is 0 and
            nothing is learned; true values are of active states only. The target may be undefined
            in other states if the question's continuation is 0 on leaving the active ones, because
            only then do returns end there.
        info: the names of values of ``info`` that functions of a question use as columns. A
            cumulant that is itself such a name need not be listed.
        rollouts: the number of returns from each state for the true values.
        run_length: the number of steps of a run in which the states of true values may lie.
        cutoff: the largest share of a value that a return may leave out.
        cut: "refuse" to raise an error if the environment truncates more than 5 % of the rollouts
            for true values, which may bias them; "drop" to accept it.
        name: the name for messages and files; by default the id, or the function's name.

    Example:
        >>> import gvf, gvf_lab, numpy as np
        >>> domain = gvf_lab.GymnasiumDomain("FrozenLake-v1")
        >>> domain
        Domain 'FrozenLake-v1', environment FrozenLake-v1
          behaviours: uniform
          questions: favour-0, favour-1, favour-2, favour-3
          features: OneHot(size=16)
        >>> domain.check("favour-2", "uniform")
        >>> seed = np.random.SeedSequence(0)
        >>> walk = domain.walk(domain.behaviour("uniform"), ["favour-2"], 5, seed)
        >>> walk.action, walk.signals["favour-2"].ratio.round(3)
        (array([2, 2, 2, 2, 1]), array([3.6  , 3.6  , 3.6  , 3.6  , 0.133]))
    """

    generation = GENERATION

    def __init__(
        self,
        environment: str | Callable[..., gym.Env[Any, Any]],
        *,
        behaviours: Mapping[str, Policy] | None = None,
        questions: Mapping[str, GVF] | None = None,
        features: FeatureMap | None = None,
        pairs: Sequence[tuple[str, str]] = (),
        initial_weights: ArrayLike | None = None,
        arguments: Mapping[str, Any] | None = None,
        active: Mapping[str, Active] | None = None,
        info: Iterable[str] = (),
        rollouts: int = 1,
        run_length: int = 1000,
        cutoff: float = 1e-6,
        cut: Cut = "refuse",
        name: str = "",
    ) -> None:
        if not isinstance(environment, str) and not callable(environment):
            raise TypeError(
                "environment must be a Gymnasium id or a function that makes a new environment, "
                f"not {environment!r}: several are needed at the same time"
            )
        self.environment, self.arguments = environment, dict(arguments or {})
        self.name = name or _called(environment)
        self.rollouts, self.run_length, self.cutoff = rollouts, run_length, cutoff
        self.cut: Cut = cut
        self._memory, self._first = Memory(), None
        with closing(self.make()) as env:
            self._first = weakref.ref(env)
            self.observation_space, self.action_space = env.observation_space, env.action_space
            self._identity = identity(environment, self.arguments, env)
        with about(self.name):
            self._observations = Observations(self.observation_space)
        space = self.action_space
        self.behaviours = dict(default_behaviours(space) if behaviours is None else behaviours)
        self.questions = dict(default_questions(space) if questions is None else questions)
        pairs_of_names = tuple((question, behaviour) for question, behaviour in pairs)
        self.pairs = pairs_of_names or every_pair(self.questions, self.behaviours)
        self.active, self.info = dict(active or {}), tuple(info)
        self._check_parts()
        # The columns of all questions, so that a stream does not depend on those being asked.
        needed = [info_columns(asked, self.info) for asked in self.questions.values()]
        self._columns = tuple(sorted(set().union(*needed)))
        with about(self.name):
            if features is None:
                features = default_features(self.observation_space, self._probe_states)
            if not callable(features) or not hasattr(features, "size"):
                raise TypeError(f"features must be a feature map, not {features!r}")
        self.features = features
        self.initial_weights = _weights(initial_weights, self.features.size)

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """Make a new environment; options such as ``render_mode`` go to ``gymnasium.make``."""
        arguments = self.arguments | options
        try:
            if isinstance(self.environment, str):
                return gym.make(self.environment, **arguments)
            env = self.environment(**arguments)
        except Exception as error:
            raise ValueError(f"{self.name} cannot be made: {in_a_line(error)}") from error
        if not isinstance(env, gym.Env):
            raise ValueError(f"{self.name} made {env!r}, which is no Gymnasium environment")
        if self._first is not None and self._first() is env:
            raise ValueError(f"{self.name} must make a new environment at every call")
        return env

    def walk(
        self,
        policy: Policy,
        questions: Sequence[str],
        steps: int,
        seed: np.random.SeedSequence,
    ) -> Trajectory:
        """Record a walk of a policy in a new environment, or return an earlier recording."""
        stream = self._stream(policy, steps, seed, self._columns)
        signals = {question: self._signals(question, stream) for question in questions}
        x, x_next = self._features(stream.state), self._features(stream.next_state)
        ended = np.asarray(stream.terminated) | np.asarray(stream.truncated)
        return Trajectory(x, x_next, stream.action, stream.next_state, signals, None, ended)

    def truth(
        self, question: str, behaviour: str, *, states: int = 1000, seed: int = 0
    ) -> TrueValues:
        """Estimate values by mean returns of the target from states that the behaviour visits.

        The noise is the standard error of each mean; with ``rollouts=1`` it is unknown, nan. Errors
        of predictions include that noise, so even right predictions have an error. On average it
        adds the same to the mean squared error of all methods.

        Rollouts that the environment truncates have no return, and states without any return are
        left out (see :func:`gvf.held_out_returns`). Their share is part of the result; above 5 % it
        is an error unless the domain has ``cut="drop"``. States in which the question is not active
        are replaced by others.
        """
        parts = {
            "environment": self._identity,
            "question": self.question(question),
            "behaviour": self.behaviour(behaviour),
            "active": self.active.get(question),
            "sampling": (states, seed, self.rollouts, self.run_length, self.cutoff, self.info),
            "generation": GENERATION,
        }

        def sample() -> dict[str, NDArray[Any]]:
            with about(f"question {question!r} with behaviour {behaviour!r} in {self.name}"):
                returns = self._returns(question, behaviour, states, seed)
            share_cut = np.array(returns.share_cut)
            return {
                "states": returns.states,
                "values": returns.values,
                "noise": returns.noise,
                "share_cut": share_cut,
            }

        arrays = dict(self._memory.get("gymnasium-returns-and-cuts", parts, sample))
        share_cut = float(arrays.pop("share_cut"))
        with about(f"question {question!r} with behaviour {behaviour!r} in {self.name}"):
            check_share_cut(share_cut, states * self.rollouts, self.cutoff, self.cut)
        return TrueValues(**arrays, share_cut=share_cut)

    def check(self, question: str, behaviour: str) -> None:
        """Raise ValueError if a short walk shows that a pair cannot be learned.

        The behaviour walks 2,000 steps. Every transition must have a ratio, cumulant, continuation
        and finite features, the behaviour must have support for the target in each of the states,
        and the question must be active in one of them. Then the target is followed from a state as
        in :meth:`truth`: its return must end within 100,000 steps. If the environment truncates
        that rollout, 20 are tried, and one must have a return.
        """
        asked, policy = self.question(question), self.behaviour(behaviour)
        with about(f"question {question!r} with behaviour {behaviour!r} in {self.name}"):
            stream = self._stream(policy, PROBE, np.random.SeedSequence(0), self._columns)
            signals = self._signals(question, stream)
            self._features(stream.state)
            self._features(stream.next_state)
            states = stream.state if signals.active is None else stream.state[signals.active]
            if not len(states):
                raise ValueError(f"it is active in none of {PROBE} states that are visited")
            check_support(asked.policy, policy, states)
            try:
                self._returns(question, behaviour, 1, 0)
            except CutError:
                self._returns(question, behaviour, ROLLOUTS, 0)

    def largest_ratio(self, question: str, behaviour: str) -> float:
        """Return the largest ratio that a transition can have; inf if no bound is known.

        It is known if states can be enumerated (Discrete observations); for discrete policies that
        are the same in all states of a short walk, and so are taken to be the same everywhere; and
        for Gaussian policies that are the same in every state. Other policies may differ most in a
        state that is not in the sample.
        """
        target, policy = self.question(question).policy, self.behaviour(behaviour)
        if isinstance(target, Gaussian) and isinstance(policy, Gaussian):
            return largest_ratio_of_gaussians(target, policy)
        if not isinstance(target, DiscretePolicy) or not isinstance(policy, DiscretePolicy):
            return math.inf
        space, active = self.observation_space, self.active.get(question)
        complete = isinstance(space, gym.spaces.Discrete) and space.n <= _MOST_STATES
        if isinstance(space, gym.spaces.Discrete) and complete:
            states = np.arange(space.start, space.start + space.n)
        else:
            states = self._probe_states(policy)
        states = states if active is None else states[as_mask(active, states, question)]
        return largest_ratio_in(target, policy, states, complete=complete)

    def _check_parts(self) -> None:
        """Raise ValueError for unknown names and for policies that do not fit the environment."""
        if not self.behaviours or not self.questions:
            raise ValueError(f"{self.name} needs at least one behaviour and one question")
        for question, behaviour in self.pairs:
            self.question(question)
            self.behaviour(behaviour)
        for question in self.active:
            self.question(question)
        for kind, value in (("rollouts", self.rollouts), ("run_length", self.run_length)):
            if value < 1:
                raise ValueError(f"{kind} must be at least 1, got {value}")
        if not 0 <= self.cutoff < 1:
            raise ValueError(f"cutoff must be in [0, 1), got {self.cutoff}")
        check_choice("cut", self.cut, Cut)
        for name, asked in self.questions.items():
            if not isinstance(asked, GVF):
                raise TypeError(f"question {name!r} must be a gvf.GVF, not {asked!r}")
        policies = {f"behaviour {name!r}": policy for name, policy in self.behaviours.items()}
        policies |= {f"question {name!r}": asked.policy for name, asked in self.questions.items()}
        for what, policy in policies.items():
            with about(f"{what} of {self.name}"):
                Actor(policy, self.action_space)

    def _stream(
        self,
        policy: Policy,
        steps: int,
        seed: np.random.SeedSequence,
        info: tuple[str, ...],
    ) -> Transitions:
        """Record ``steps`` transitions of a policy, or return an earlier recording."""
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        number = int.from_bytes(seed.generate_state(4).tobytes(), "little")
        parts = {
            "environment": self._identity,
            "policy": policy,
            "stream": (steps, number, info),
            "generation": GENERATION,
        }
        if fingerprint(policy) is None:  # the same object may have learned since
            parts["state"] = _state(policy)

        def record() -> dict[str, NDArray[Any]]:
            with closing(self.make()) as env:
                batches = collect(env, policy, steps, seed=number, batch=_BATCH, info=info)
                return Transitions.concatenate(batches).columns

        shape = math.prod(self.observation_space.shape or ())
        size = 2 * steps * shape * self._observations.dtype.itemsize
        kept = self._memory.get("gymnasium-walk", parts, record, file=size <= _LARGEST_FILE)
        return Transitions(**kept)

    def _probe_states(self, policy: Policy | None = None) -> NDArray[Any]:
        """Return the states of a short walk, by default of the first behaviour."""
        walker: Policy = next(iter(self.behaviours.values())) if policy is None else policy
        return self._stream(walker, PROBE, np.random.SeedSequence(0), ()).state

    def _signals(self, question: str, stream: Transitions) -> Signals:
        asked, function = self.question(question), self.active.get(question)
        if function is None:
            return Signals(*asked.evaluate(stream))
        active = as_mask(function, stream.state, question)
        ratio = np.zeros(len(stream))
        if active.any():  # in other states the target may be undefined
            ratio[active] = asked.ratios(stream[active])
        return Signals(
            ratio,
            asked.cumulants(stream),
            asked.continuations(stream),
            asked.interests(stream),
            active,
        )

    def _features(self, states: NDArray[Any]) -> NDArray[Any]:
        x = features_of(self.features, self.features.size, states)
        if not np.isfinite(x).all():
            row = int(np.argmin(np.isfinite(x).all(axis=1)))
            raise ValueError(f"the features of state {states[row]} are not finite: {x[row]}")
        return x

    def _returns(self, question: str, behaviour: str, states: int, seed: int) -> HeldOutReturns:
        """Sample returns from states in which the question is active."""
        active = self.active.get(question)
        with closing(self.make()) as env:
            return held_out_returns(
                env,
                self.question(question),
                behaviour=self.behaviour(behaviour),
                states=states,
                rollouts=self.rollouts,
                run_length=self.run_length,
                cutoff=self.cutoff,
                longest=_LONGEST,
                info=self.info,
                accept=active and (lambda transitions: as_mask(active, transitions, question)),
                cut="drop",
                seed=seed,
            )

    def __repr__(self) -> str:
        return (
            f"Domain {self.name!r}, environment {_called(self.environment)}\n"
            f"  behaviours: {', '.join(self.behaviours)}\n"
            f"  questions: {', '.join(self.questions)}\n"
            f"  features: {self.features!r}"
        )


def _called(environment: Any) -> str:
    """Return the id of an environment, or the name of the function that makes it."""
    if isinstance(environment, str):
        return environment
    return describe(environment).rpartition("<locals>.")[2]


def _weights(values: ArrayLike | None, size: int) -> Floats:
    weights = np.zeros(size) if values is None else np.array(values, np.float64)
    if weights.shape != (size,):
        raise ValueError(f"initial_weights have shape {weights.shape}; the features need {(size,)}")
    weights.setflags(write=False)
    return weights


def _state(policy: Policy) -> str:
    """Return a hash of a policy's pickled state; empty if it cannot be pickled."""
    try:
        return hashlib.sha256(pickle.dumps(policy)).hexdigest()
    except Exception:  # an object's own code may raise anything
        return ""
