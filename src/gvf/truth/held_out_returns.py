"""Held-out returns: samples of the truth from any environment.

Without a model of the environment, a return G is still an unbiased sample of a value,

    E[ G | S_t = s ] = v(s):

:func:`held_out_returns` follows the behaviour to a state, switches to the target there, and records
the return, which is not used for learning. The difference of prediction and return is the error of
the prediction plus the noise of the return. With several returns from each state the noise can be
subtracted. With a model, :mod:`gvf_lab.truth.exact_values` is exact.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import check_choice, whole
from gvf.common.gymnasium import gym
from gvf.common.progress import progress_of
from gvf.estimate import Estimate, percent
from gvf.policies import Policy
from gvf.question import GVF
from gvf.stream import Actor, Walk, environment_seed
from gvf.stream.infos import info_columns

ATTEMPTS = 1000
"""The number of draws of a state after which :func:`held_out_returns` fails."""


MOST_CUT = 0.05
"""The largest share of rollouts that may be cut without a word from the user."""

Cut = Literal["refuse", "drop"]


class CutError(ValueError):
    """The error that too many rollouts were truncated, so that their returns are not known.

    Attributes:
        share_cut: the share of rollouts that were truncated.

    Example:
        >>> import gvf
        >>> error = gvf.truth.CutError("too many rollouts were truncated", share_cut=0.3)
        >>> error.share_cut
        0.3
    """

    def __init__(self, message: str, share_cut: float) -> None:
        super().__init__(message)
        self.share_cut = share_cut


def check_share_cut(share_cut: float, rollouts: int, cutoff: float, cut: Cut) -> None:
    """Raise :class:`CutError` if more rollouts were cut than the user accepts.

    Which rollouts an environment truncates may depend on their course: a chain that is cut after
    six steps leaves the short ways to its end, and their mean is no value.

    Args:
        share_cut: the share of rollouts that were truncated.
        rollouts: the number of rollouts.
        cutoff: the product of continuations at which a return is complete.
        cut: "refuse" to accept a share of 5 % at most, "drop" to accept any share but all.
    """
    reason = f"were truncated while the product of continuations was above {cutoff:g}"
    advice = "let the environment truncate later, or raise the cutoff"
    if share_cut >= 1.0:
        raise CutError(f"all {rollouts} rollouts {reason}; {advice}", share_cut)
    if cut == "refuse" and share_cut > MOST_CUT:
        raise CutError(
            f"{percent(share_cut)} of {rollouts} rollouts {reason}, and the returns of the others "
            f'may be a biased sample; {advice}, or accept that with cut="drop"',
            share_cut,
        )


@dataclass(frozen=True)
class ReturnError:
    """The errors of predictions against held-out returns, with standard errors over states.

    The first three compare the predictions with the mean return G of each state, and include its
    noise. The last leaves the noise out, and so estimates the error of the values themselves.

    Attributes:
        mean_absolute: mean of ``|V - G|``.
        root_mean_square: root of the mean of ``(V - G)^2``.
        bias: mean of ``V - G``; 0 on average if V is right.
        mean_squared_value: unbiased estimate of the mean of ``(V - v)^2``, with v the true value;
            it may be negative. None with fewer than two returns a state.
        states: number of states.
        share_cut: the share of rollouts that were truncated, and so left out. The errors are biased
            if truncation depends on the course of a rollout.

    A prediction that is not finite (a learner that diverged) makes all errors infinite.

    Example:
        >>> from gvf.truth import HeldOutReturns
        >>> import numpy as np
        >>> held_out = HeldOutReturns(np.arange(2), np.array([[1.0, 3.0], [0.0, 0.0]]), cut=0)
        >>> held_out.error(lambda states: np.array([2.5, 0.0]))
        ReturnError over 2 states:
          mean absolute        0.25 ± 0.25
          root mean square     0.3536 ± 0.18
          bias                 0.25 ± 0.25
          mean squared value   -0.375 ± 0.37
    """

    mean_absolute: Estimate
    root_mean_square: Estimate
    bias: Estimate
    mean_squared_value: Estimate | None
    states: int
    share_cut: float = 0.0

    def __repr__(self) -> str:
        lines = [f"ReturnError over {self.states} states:"]
        for name in ("mean_absolute", "root_mean_square", "bias", "mean_squared_value"):
            estimate = getattr(self, name)
            lines.append(f"  {name.replace('_', ' '):20} {estimate or 'needs rollouts >= 2'}")
        if self.share_cut:
            lines.append(f"  {'left out':20} {cut_text(self.share_cut)}")
        return "\n".join(lines)


def cut_text(share_cut: float) -> str:
    """Tell which share of the rollouts was cut, and that this may bias what is computed."""
    return f"{percent(share_cut)} of the rollouts, which were cut: the rest may be a biased sample"


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutReturns:
    """Returns under the target policy from states that the behaviour visits.

    Attributes:
        states: the states, [S, ...]; a structured array [S] if observations are Dicts.
        returns: sampled returns, [S, R]; nan for rollouts that were truncated. Each row has at
            least one return.
        cut: the number of rollouts left out, including those from states that were not kept.

    Example:
        >>> from gvf.truth import HeldOutReturns
        >>> import numpy as np
        >>> held_out = HeldOutReturns(np.array([4, 7]), np.array([[1.0, 3.0], [0.5, 0.5]]), cut=0)
        >>> held_out
        HeldOutReturns(2 states, 4 returns from 0.5 to 3, mean 1.25)
        >>> held_out.values, held_out.noise
        (array([2. , 0.5]), array([1., 0.]))
    """

    states: NDArray[Any]
    returns: Floats
    cut: int

    @property
    def share_cut(self) -> float:
        """The share of rollouts that were left out because they were truncated."""
        return self.cut / (self.cut + int(np.isfinite(self.returns).sum()))

    @property
    def values(self) -> Floats:
        """The mean return from each state, [S]."""
        return np.nanmean(self.returns, axis=1)

    @property
    @np.errstate(over="ignore")  # returns that are too far apart have infinite noise
    def noise(self) -> Floats:
        """The standard error of each state's mean return, [S]; nan with fewer than 2 returns."""
        rollouts = np.isfinite(self.returns).sum(axis=1)
        several = rollouts >= 2
        noise = np.full(len(self.returns), math.nan)
        spread = np.nanstd(self.returns[several], axis=1, ddof=1)
        noise[several] = spread / np.sqrt(rollouts[several])
        return noise

    @np.errstate(over="ignore")  # a prediction that overflows has diverged
    def error(self, predict: Callable[[Any], ArrayLike]) -> ReturnError:
        """Compare predictions with the returns.

        Args:
            predict: a function of states [S, ...] that returns predictions [S].
        """
        count = len(self.states)
        predictions = np.asarray(predict(self.states), np.float64)
        if predictions.shape != (count,):
            raise ValueError(
                f"predict must give one number a state, shape {(count,)}, got {predictions.shape}"
            )
        difference = predictions - self.values
        square = _mean(difference**2)
        root = math.sqrt(square.value)
        # To first order, d sqrt(x) = dx / (2 sqrt(x)).
        slope = 1 / (2 * root) if root > 0 else 0.0
        return ReturnError(
            mean_absolute=_mean(np.abs(difference)),
            root_mean_square=Estimate(root, standard_error=slope * square.standard_error),
            bias=_mean(difference),
            mean_squared_value=self._mean_squared_value(difference),
            states=count,
            share_cut=self.share_cut,
        )

    def _mean_squared_value(self, difference: Floats) -> Estimate | None:
        noise = self.noise
        several = ~np.isnan(noise)
        if not several.any():
            return None
        # The variance noise^2 of the mean return is contained in the square.
        return _mean((difference**2 - noise**2)[several])

    def __repr__(self) -> str:
        returns = self.returns[np.isfinite(self.returns)]
        left_out = f"; {self.cut} more ({percent(self.share_cut)}) were cut" if self.cut else ""
        return (
            f"HeldOutReturns({len(self.states)} states, {returns.size} returns from "
            f"{returns.min():.4g} to {returns.max():.4g}, mean {returns.mean():.4g}{left_out})"
        )


class RolloutOptions(TypedDict, total=False):
    """The options of rollouts from states that a behaviour visits; see :func:`held_out_returns`."""

    behaviour: Policy | None
    states: int
    rollouts: int
    run_length: int
    info: Iterable[str]
    accept: Callable[[Any], Any] | None
    seed: int | None
    progress: bool


def held_out_returns(
    env: gym.Env[Any, Any],
    question: GVF,
    *,
    behaviour: Policy | None = None,
    states: int = 100,
    rollouts: int = 1,
    run_length: int = 1000,
    cutoff: float = 1e-6,
    longest: int = 100_000,
    info: Iterable[str] = (),
    accept: Callable[[Any], Any] | None = None,
    cut: Cut = "refuse",
    seed: int | None = None,
    progress: bool = False,
) -> HeldOutReturns:
    """Sample returns of a question, from states distributed as the behaviour visits them.

    Each state has its own run: the behaviour acts for a number of steps drawn uniformly from
    0 .. run_length - 1, over several episodes if needed. So the states are independent draws from
    those that it visits in its first ``run_length`` steps. From there the target policy acts, until
    the product of continuations is at most ``cutoff``.

    The time limit of ``gymnasium.make`` applies to the behaviour, but not to rollouts, so it does
    not cut returns. A rollout that the environment itself truncates has no return; it is left out
    and counted. If truncation depends on the course of a rollout, and not only on its start, the
    remaining returns are a biased sample. More than 5 % of such rollouts are an error, unless
    ``cut="drop"`` accepts it.

    Args:
        env: a single Gymnasium environment; it is reset, and its last state is arbitrary.
        question: the question.
        behaviour: the policy that leads to the states; by default the target policy itself.
        states: the number of states, S.
        rollouts: the number of returns from each state, R. More than one needs deep copies of the
            environment, whose random numbers must all come from ``env.np_random``.
        run_length: the number of steps of a run in which the states may lie.
        cutoff: the largest share of a value that a return may leave out, in [0, 1).
        longest: the largest number of steps of a rollout; more are an error, since the rollout
            might never end.
        info: the names of values of the environment's ``info`` that functions of the question use
            as columns, as in :func:`gvf.collect`. A cumulant that is itself such a name need
            not be listed.
        accept: a function of states [m, ...] that returns bool[m], True for states that may be
            used; by default all may. After a rejected state a new run with a new number of steps
            follows, up to 1,000 times. So the states are distributed as the behaviour visits them,
            given that they are accepted. Rollouts may pass through any state.
        cut: "refuse" to raise :class:`gvf.truth.CutError` if more than 5 % of the rollouts are
            truncated; "drop" to leave out any number of them.
        seed: the seed. The first states are the same for any ``states``.
        progress: True to show a progress bar.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> env = gym.make("FrozenLake-v1", max_episode_steps=10_000)
        >>> question = gvf.GVF(gvf.policies.Uniform(4), continuation=0.9)
        >>> held_out = gvf.held_out_returns(env, question, states=20, rollouts=5, seed=0)
        >>> held_out.returns.shape
        (20, 5)
        >>> error = held_out.error(lambda states: 0.0 * states)
        >>> error.mean_absolute.value >= 0 and error.states == 20
        True
    """
    check_choice("cut", cut, Cut)

    def sample(branch: Walk, target: Actor, rng: np.random.Generator) -> float:
        return _return(branch, target, question, rng, cutoff, longest)

    visited, samples = from_states(
        env,
        question.policy,
        sample,
        behaviour=behaviour,
        states=states,
        rollouts=rollouts,
        run_length=run_length,
        cutoff=cutoff,
        longest=longest,
        info=info_columns(question, info),
        accept=accept,
        seed=seed,
        progress=progress,
    )
    returns = np.array(samples)
    usable = np.isfinite(returns)
    check_share_cut(1.0 - float(usable.mean()), returns.size, cutoff, cut)
    kept = usable.any(axis=1)
    return HeldOutReturns(states=visited[kept], returns=returns[kept], cut=int((~usable).sum()))


def from_states(
    env: gym.Env[Any, Any],
    target: Policy,
    sample: Callable[[Walk, Actor, np.random.Generator], Any],
    *,
    cutoff: float,
    longest: int,
    behaviour: Policy | None = None,
    states: int = 100,
    rollouts: int = 1,
    run_length: int = 1000,
    info: Iterable[str] = (),
    accept: Callable[[Any], Any] | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> tuple[NDArray[Any], list[list[Any]]]:
    """Let a behaviour lead to states, and sample rollouts of a target from each.

    A sample is the result of ``sample(walk, actor, rng)``, with a walk in the state. The options
    are those of :func:`held_out_returns`; ``cutoff`` and ``longest`` are only checked, since they
    matter to the sample alone. The states [S, ...] are returned, and the R samples of each.
    """
    for name, value in (
        ("states", states),
        ("rollouts", rollouts),
        ("run_length", run_length),
        ("longest", longest),
    ):
        whole(name, value, 1)
    if not 0 <= cutoff < 1:
        raise ValueError(f"cutoff must be in [0, 1), got {cutoff}")
    walk, actor = Walk(env, info), Actor(target, env.action_space)
    leader = actor if behaviour is None else Actor(behaviour, env.action_space)
    if rollouts > 1:
        _check_copies(walk.env)
    visited: list[NDArray[Any]] = []
    returns: list[list[Any]] = []
    sequences = np.random.SeedSequence(seed).spawn(states)
    for row, sequence in enumerate(_tracked(sequences, progress)):
        for_environment, for_behaviour, *others = sequence.spawn(2 + rollouts)
        for attempt in range(ATTEMPTS):
            if attempt:
                for_environment, for_behaviour = sequence.spawn(2)
            walk.start(environment_seed(for_environment))
            rng = np.random.default_rng(for_behaviour)
            walk.advance(leader, rng, int(rng.integers(run_length)))
            if accept is None or _accepted(accept, walk.state):
                break
        else:
            raise ValueError(
                f"none of {ATTEMPTS:,} states that the behaviour led to was accepted, after "
                f"{row} of {states} were found"
            )
        visited.append(walk.state)
        returns.append([])
        for other in others:
            for_copy, for_target = other.spawn(2)
            branch = walk if rollouts == 1 else _branch(walk, for_copy)
            with _without_time_limit(branch.env):
                returns[-1].append(sample(branch, actor, np.random.default_rng(for_target)))
    return np.concatenate(visited), returns


def _accepted(accept: Callable[[Any], Any], state: NDArray[Any]) -> bool:
    """Return True if a batch of 1 state is accepted."""
    answer = np.asarray(accept(state))
    if answer.dtype != bool or answer.shape != (1,):
        raise ValueError(
            f"accept must give bool[1] for 1 state, got {answer.dtype}{list(answer.shape)}"
        )
    return bool(answer[0])


def _return(
    walk: Walk,
    target: Actor,
    question: GVF,
    rng: np.random.Generator,
    cutoff: float,
    longest: int,
) -> float:
    """Sample the return of one rollout; nan if it was truncated."""
    total, product = 0.0, 1.0
    for _ in range(longest):
        batch = walk.step(target, rng)
        total += product * float(question.cumulants(batch)[0])
        product *= float(question.continuations(batch)[0])
        if product <= cutoff:
            return total
        if batch.truncated[0]:
            return math.nan
    raise ValueError(
        f"after {longest} steps of a rollout the product of continuations is still {product:g}; "
        "use a smaller continuation, or raise `longest` if episodes do terminate"
    )


@contextmanager
def _without_time_limit(env: gym.Env[Any, Any]) -> Iterator[None]:
    """Lift the time limits of ``gymnasium.make`` inside a context."""
    layer, limits = env, []
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.wrappers.TimeLimit):
            limits.append((layer, layer._max_episode_steps))
            layer._max_episode_steps = math.inf  # pyright: ignore[reportAttributeAccessIssue]
        layer = layer.env
    try:
        yield
    finally:
        for layer, steps in limits:
            layer._max_episode_steps = steps


def _branch(walk: Walk, seeds: np.random.SeedSequence) -> Walk:
    """Copy the walk, so that it continues from the same state with other random numbers."""
    try:
        branch = copy.deepcopy(walk)
    except Exception as error:
        raise TypeError(
            f"{walk.env} cannot be copied, as more than one rollout from a state needs; "
            "use rollouts=1"
        ) from error
    # In place, because parts of the environment may hold the same generator.
    bits = branch.env.unwrapped.np_random.bit_generator
    bits.state = type(bits)(seeds).state
    return branch


def _check_copies(env: gym.Env[Any, Any]) -> None:
    layer: Any = env
    while layer is not None:
        kind = type(layer)
        # EzPickle rebuilds copies from their arguments, so they lose the state.
        anew = getattr(kind, "__getstate__", None) is gym.utils.EzPickle.__getstate__
        if anew and not hasattr(kind, "__deepcopy__"):
            raise TypeError(
                f"copies of {kind.__name__} do not keep its state (gymnasium.utils.EzPickle), as "
                "more than one rollout from a state needs; use rollouts=1"
            )
        layer = layer.env if isinstance(layer, gym.Wrapper) else None


def _mean(sample: Floats) -> Estimate:
    """Compute the mean of independent numbers and its standard error."""
    if not np.isfinite(sample).all():
        return Estimate(math.inf)
    if len(sample) < 2:
        return Estimate(float(sample.mean()))
    error = float(sample.std(ddof=1) / math.sqrt(len(sample)))
    return Estimate(float(sample.mean()), standard_error=error)


def _tracked(items: list[Any], progress: bool) -> Iterable[Any]:
    with progress_of("held-out returns", len(items), show=progress) as advance:
        for item in items:
            yield item
            advance()
