"""Predictions of many questions against held-out returns.

Errors in the units of sensors cannot be ranked across questions. The variance explained can,

    1 - mean (v - G)^2 / var G,

for predictions v and returns G. It is 1 for perfect predictions, 0 for the best constant, and below
0 for worse ones. A return has noise, so even true values do not reach 1 unless the world and the
policy are deterministic.

A course of events under a policy serves all questions about this policy, since cumulants and
continuations do not influence it. Returns come from an environment in which the target acts, as
those of :func:`gvf.held_out_returns`, or from a recorded stream in which it acted. Standard errors
are those of the first-order terms; in a recorded stream neighbouring rows are dependent, so they
are computed from the totals of long blocks of rows.

A stream is cut where episodes are truncated, rows are missing, or it ends. The return from a row is
complete if its episode ends before the cut, so complete returns are those of short episodes, and
their mean is no value. Rows are therefore chosen without a look at their returns: by the number of
rows that there would be before the cut if no episode ended, which must be enough for any return.
If truncation is a time limit, this number is known also for episodes that end before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Array, Bools, Floats
from gvf.corrections import OnPolicy
from gvf.horde.evaluator import Evaluator
from gvf.horde.horde_report import HordeWarning, share_cut, warned
from gvf.horde.layout import Ints, Layout
from gvf.horde.return_checks import ALIKE, steps_needed
from gvf.learners.learner_report import Problem
from gvf.links import in_order
from gvf.question import GVF
from gvf.stream import Actor, Walk
from gvf.transition import Transitions, recorded_column
from gvf.truth.held_out_returns import MOST_CUT, RolloutOptions, from_states

BLOCKS = 20
"""The number of blocks of a recorded stream, for standard errors."""
_TOGETHER = 32
"""The number of steps of a rollout that are evaluated together."""
_QUESTIONS = 2_000
"""The number of questions whose returns are in memory at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class HordeReturnError:
    """The errors of the predictions of many questions against held-out returns.

    Attributes:
        names: the names of the questions.
        variance_explained: 1 - mean (v - G)^2 / var G, [questions]; nan if returns do not vary,
            -inf if a prediction is not finite.
        standard_error: the standard error of the variance explained.
        root_mean_square: the root of the mean of (v - G)^2, in the unit of the returns.
        bias: the mean of v - G.
        spread: the standard deviation of G.
        returns: the number of returns of each question.
        cut: the number of returns that were left out, because the course of events was cut. If
            they are many, the others are a biased sample; see :attr:`warnings`.
        too_near: the number of rows that were left out because they are too near to a cut, whatever
            their returns are, which biases nothing.

    Example:
        >>> import gymnasium, gvf
        >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> policies = {
        ...     name: gvf.policies.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")
        ... }
        >>> horde = gvf.Horde(
        ...     gvf.question_grid(policies, {"reward": "reward"}, [0.5, 0.9]),
        ...     gvf.features.OneHot(16),
        ...     gvf.updates.TD(1.0),
        ...     behaviour=gvf.policies.Uniform(4),
        ...     seed=0,
        ... )
        >>> _ = horde.learn(env, steps=2000, seed=0)
        >>> error = horde.return_error(env, states=50, seed=1)
        >>> error.returns.tolist()
        [50, 50, 50, 50, 50, 50, 50, 50]
        >>> len(error.best(3)), len(error.worst(3))
        (3, 3)
    """

    names: tuple[str, ...]
    variance_explained: Floats
    standard_error: Floats
    root_mean_square: Floats
    bias: Floats
    spread: Floats
    returns: Ints
    cut: Ints
    too_near: Ints

    @property
    def warnings(self) -> tuple[HordeWarning, ...]:
        """The warnings: that more than 5 % of the returns of some questions were cut."""
        share = share_cut(self.returns, self.cut)
        return warned(Problem.CUT, self.names, share > MOST_CUT, share)

    def best(self, n: int = 10) -> dict[str, float]:
        """Return the n questions with the most variance explained, the best first."""
        return self._ranked(-self.variance_explained, n)

    def worst(self, n: int = 10) -> dict[str, float]:
        """Return the n questions with the least variance explained, the worst first."""
        return self._ranked(self.variance_explained, n)

    def _ranked(self, key: Floats, n: int) -> dict[str, float]:
        known = np.flatnonzero(~np.isnan(key))
        order = known[np.argsort(key[known], kind="stable")][:n]
        return {self.names[i]: float(self.variance_explained[i]) for i in order}

    def __repr__(self) -> str:
        known = self.variance_explained[~np.isnan(self.variance_explained)]
        least, most = self.returns.min(), self.returns.max()
        counts = f"{least}" if least == most else f"{least} to {most}"
        text = f"{len(self.names)} questions, {counts} returns"
        if len(known):
            (best, highest), (worst, lowest) = (
                next(iter(some.items())) for some in (self.best(1), self.worst(1))
            )
            text += (
                f"; variance explained: median {np.median(known):.2g}, from {lowest:.2g} ({worst}) "
                f"to {highest:.2g} ({best})"
            )
        if still := len(self.names) - len(known):
            text += f"; {still} with returns that do not vary"
        text += "".join(f"; {warning}" for warning in self.warnings)
        return f"HordeReturnError({text})"


def score(
    names: Sequence[str],
    predictions: Floats,
    returns: Floats,
    blocks: int | None = None,
    chosen: Bools | None = None,
) -> HordeReturnError:
    """Compare predictions with returns, both [S, questions]; a return is nan if it was cut.

    Args:
        names: the names of the questions.
        predictions: the predictions.
        returns: the returns.
        blocks: the number of blocks of consecutive rows that count as independent; None if all rows
            are independent.
        chosen: True for the returns that count, bool[S, questions]; all by default.
    """
    chosen = np.ones(returns.shape, np.bool_) if chosen is None else chosen
    has_return = chosen & np.isfinite(returns)
    count, cut = has_return.sum(axis=0), (chosen & ~has_return).sum(axis=0)
    with np.errstate(all="ignore"):
        G = np.where(has_return, returns, 0.0)
        mean = G.sum(axis=0) / count
        away = np.where(has_return, G - mean, 0.0)
        difference = np.where(has_return, predictions - G, 0.0)
        square, variance = ((part**2).sum(axis=0) / count for part in (difference, away))
        # A variance of rounding errors is none.
        variance[variance <= 1e-24 * mean**2] = 0.0
        explained = np.where(variance > 0.0, 1.0 - square / variance, np.nan)
        explained[(variance > 0.0) & ~np.isfinite(square)] = -np.inf
        # The terms of first order: with A the mean square and B the variance of returns,
        # d(1 - A / B) = -(dA - (A / B) dB) / B.
        term = ((difference**2 - square) - square / variance * (away**2 - variance)) / variance
        sums = np.where(has_return, term, 0.0)
        if blocks is not None:
            edges = np.linspace(0, len(sums), min(blocks, len(sums)) + 1).astype(int)[:-1]
            sums = np.add.reduceat(sums, edges, axis=0)
        many = len(sums) / max(len(sums) - 1, 1)
        error = np.sqrt(many * (sums**2).sum(axis=0)) / count
        error[(count < 2) | ~np.isfinite(explained)] = np.nan
        return HordeReturnError(
            names=tuple(names),
            variance_explained=explained,
            standard_error=error,
            root_mean_square=np.sqrt(square),
            bias=difference.sum(axis=0) / count,
            spread=np.sqrt(variance),
            returns=count,
            cut=cut,
            too_near=(~chosen).sum(axis=0),
        )


class Numbers:
    """The cumulants and continuations of some questions, evaluated together."""

    def __init__(self, questions: Sequence[GVF]) -> None:
        self.layout = Layout(questions, OnPolicy())
        self._evaluator = Evaluator(self.layout)
        self._endless = GVF(questions[0].policy, "reward", 1.0)

    def __call__(self, transitions: Transitions) -> tuple[Floats, Floats]:
        """Return the distinct cumulants [m, C] and continuations [m, 1 + Z]."""
        alive = self._endless.continuations(transitions) > 0.0
        return (
            self._evaluator.cumulants(transitions),
            self._evaluator.continuations(transitions, alive),
        )


def sampled_returns(
    env: Any,
    questions: Sequence[GVF],
    *,
    cutoff: float = 1e-6,
    longest: int = 100_000,
    **options: Unpack[RolloutOptions],
) -> tuple[NDArray[Any], Floats]:
    """Sample returns of questions about one policy; see :func:`gvf.held_out_returns`.

    Returns:
        The states [S, ...], and the mean return of each, [S, questions]; nan if all were cut.
    """
    numbers = Numbers(questions)
    layout = numbers.layout

    def sample(branch: Walk, target: Actor, rng: np.random.Generator) -> Floats:
        total, product = np.zeros(len(layout)), np.ones(len(layout))
        for start in range(0, longest, _TOGETHER):
            rows = _some_steps(branch, target, rng, min(_TOGETHER, longest - start))
            cumulant, continuation = numbers(rows)
            gamma = layout.scale * continuation[:, layout.source]
            before = product * np.cumprod(np.vstack([np.ones(len(layout)), gamma]), axis=0)
            total += (before[:-1] * cumulant[:, layout.cumulant]).sum(axis=0)
            product = before[-1]
            if (product <= cutoff).all():
                return total[layout.place]
            if rows.truncated[-1]:
                total[product > cutoff] = np.nan
                return total[layout.place]
        name = layout.first_with(product > cutoff)
        raise ValueError(
            f"after {longest} steps of a rollout the product of continuations of {name!r} is still "
            f"{product.max():g}; leave it out, or raise `longest` if episodes do terminate"
        )

    visited, samples = from_states(
        env, questions[0].policy, sample, cutoff=cutoff, longest=longest, **options
    )
    every = np.array(samples)
    is_known = np.isfinite(every)
    with np.errstate(invalid="ignore"):
        return visited, np.where(is_known, every, 0.0).sum(axis=1) / is_known.sum(axis=1)


def _some_steps(walk: Walk, target: Actor, rng: np.random.Generator, steps: int) -> Transitions:
    """Let the target act for some steps, or until an episode ends."""
    rows: list[Transitions] = []
    while len(rows) < steps:
        rows.append(walk.step(target, rng))
        if rows[-1].terminated[0] or rows[-1].truncated[0]:
            break
    return Transitions.concatenate(rows)


def room_of(transitions: Transitions, ends: Bools, alive: Bools) -> tuple[Floats, Bools]:
    """Find how long a return may be, if no episode ends: float64[m], and where the stream breaks.

    The first is the number of rows up to the time limit of the episode. There is one if episodes
    were truncated, and none was longer than the longest of these. Otherwise it is infinite.

    Args:
        transitions: a stream in order.
        ends: True for rows that the next does not follow.
        alive: True for rows that do not terminate.
    """
    rows, last = np.arange(len(ends)), ends | ~alive
    first = np.append(0, np.flatnonzero(last)[:-1] + 1)
    length = np.diff(np.append(first, len(rows)))
    truncated = alive & np.asarray(transitions.columns.get("truncated", ~alive), np.bool_)
    limit = length[truncated[last]].max(initial=0)
    limit = np.inf if length.max() > limit else limit
    breaks = ends & ~truncated & alive
    stream = transitions.columns.get("stream")
    breaks[-1:] = True
    if stream is not None:
        breaks[:-1] |= stream[1:] != stream[:-1]
    return np.asarray(limit - (rows - np.repeat(first, length)), np.float64), breaks


def returns_along(
    questions: Sequence[GVF], transitions: Transitions, rows: Ints, cutoff: float
) -> tuple[Floats, Bools]:
    """Return the returns from some rows of a stream in order, and which of these may be compared.

    Both are [rows, questions]. A return is nan if it was cut. Rows that may be compared are so far
    from a cut that a return is complete if its continuation alone shortens it to the cutoff. If no
    row is, they are as far as the longest time to an end that was seen.

    Args:
        questions: the questions; whoever acted, the returns are those of what happened.
        transitions: the stream, as :func:`gvf.links.in_order` returns it.
        rows: the rows, ascending.
        cutoff: the largest share of a value that a return may leave out.
    """
    numbers = Numbers(questions)
    layout = numbers.layout
    cumulant, continuation = numbers(transitions)
    _, ends = in_order(transitions)
    room, breaks = room_of(transitions, ends, continuation[:, 0] > 0.0)
    out, ahead = np.empty((len(rows), len(layout))), np.empty((len(rows), len(layout)))
    longest = np.zeros(len(layout))
    _backwards(
        cumulant, continuation, ends, breaks, layout.cumulant, layout.source, layout.scale, rows,
        cutoff, out, ahead, longest,
    )  # fmt: skip
    largest = layout.scale * continuation.max(axis=0)[layout.source]
    needed = np.array([steps_needed(factor, cutoff) for factor in largest.tolist()])
    np.minimum(ahead, room[rows, None], out=ahead)
    chosen = ahead >= np.where((ahead >= needed).any(axis=0), needed, longest)
    return out[:, layout.place], chosen[:, layout.place]


@njit(cache=True, nogil=True)
def _backwards(
    cumulants, continuations, ends, breaks, cumulant, source, scale, rows, cutoff,
    out, ahead, longest,
):  # fmt: skip
    """Write the returns from some rows [R, G]; a stretch that ends leaves `left` of them out.

    Write the number of rows up to the next break into `ahead` [R, G], whatever happens before it,
    and the longest time to an end into `longest` [G].
    """
    total, left = np.zeros(cumulant.size), np.ones(cumulant.size)
    room, to_end = np.zeros(cumulant.size), np.full(cumulant.size, np.nan)
    at = rows.size - 1
    for t in range(ends.size - 1, -1, -1):
        if ends[t]:
            total[:], left[:], to_end[:] = 0.0, 1.0, np.nan
        if breaks[t]:
            room[:] = 0.0
        for g in range(cumulant.size):
            gamma = scale[g] * continuations[t, source[g]]
            total[g] = cumulants[t, cumulant[g]] + gamma * total[g]
            left[g] *= gamma
            room[g] += 1.0
            to_end[g] = 1.0 if gamma == 0.0 else to_end[g] + 1.0
            if not abs(total[g]) < np.inf:  # a sensor that failed cuts the returns before it
                total[g], left[g], room[g], to_end[g] = 0.0, 1.0, 0.0, np.nan
            if to_end[g] > longest[g]:
                longest[g] = to_end[g]
        if at >= 0 and rows[at] == t:
            for g in range(cumulant.size):
                out[at, g] = total[g] if left[g] <= cutoff else np.nan
                ahead[at, g] = room[g]
            at -= 1


def followed(layout: Layout, transitions: Transitions) -> NDArray[np.bool_] | None:
    """Find the questions whose policy acted, by recorded probabilities: bool[G]; None without."""
    if recorded_column(transitions.columns) is None:
        return None
    ratios = Evaluator(layout).ratios(transitions, None, "recorded")
    acted = np.abs(ratios - 1.0).max(axis=1) <= ALIKE
    return acted[layout.group_policy[layout.group]][layout.place]


def _whose_policy_acted(
    layout: Layout, transitions: Transitions, chosen: Sequence[int] | None
) -> Sequence[int]:
    """Return the chosen questions, or all whose policy acted; refuse others if it is known."""
    acted = followed(layout, transitions)
    if acted is None:
        if chosen is None:
            raise ValueError(
                "the transitions do not tell which policy acted: name its questions, or add the "
                "column behaviour_probability"
            )
        return chosen
    if chosen is None:
        if not acted.any():
            raise ValueError("no question is about the policy that acted in these transitions")
        return np.flatnonzero(acted).tolist()
    for i in chosen:
        if not acted[i]:
            question = layout.questions[i]
            raise ValueError(
                f"question {question.name!r} is about {question.policy!r}, which did not act in "
                "these transitions"
            )
    return chosen


def error_in_environment(
    layout: Layout,
    predict: Callable[[Any], Array],
    env: Any,
    chosen: Sequence[int],
    **options: Any,
) -> HordeReturnError:
    """Compare predictions [m, G] with returns of the targets in an environment.

    Args:
        layout: the layout of the questions.
        predict: the function of states that predicts for all questions.
        env: the environment.
        chosen: the numbers of the questions.
        **options: options of :func:`sampled_returns`.
    """
    group = layout.group_policy[layout.group][layout.place][list(chosen)]
    columns: list[tuple[Floats, Floats]] = [(np.empty(0), np.empty(0))] * len(chosen)
    for policy in dict.fromkeys(group.tolist()):
        those = np.flatnonzero(group == policy).tolist()
        questions = [layout.questions[chosen[i]] for i in those]
        states, returns = sampled_returns(env, questions, **options)
        predictions = predict(states)
        for i, column in zip(those, returns.T, strict=True):
            columns[i] = predictions[:, chosen[i]].astype(np.float64), column
    predictions, returns = (np.column_stack(part) for part in zip(*columns, strict=True))
    return score([layout.names[i] for i in chosen], predictions, returns)


def error_along(
    layout: Layout,
    predict: Callable[[Any], Array],
    transitions: Transitions,
    chosen: Sequence[int] | None,
    rows: int,
    cutoff: float,
) -> HordeReturnError:
    """Compare predictions [m, G] with the returns along a recorded stream of one policy.

    Args:
        layout: the layout of the questions.
        predict: the function of states that predicts for all questions.
        transitions: the stream.
        chosen: the numbers of the questions, whose policy acted; None for all of these.
        rows: the number of rows, evenly spaced, whose predictions are compared.
        cutoff: the largest share of a value that a return may leave out.

    Raises:
        ValueError: if it is not known which policy acted, or if it is not that of a question.
    """
    chosen = _whose_policy_acted(layout, transitions, chosen)
    transitions, _ = in_order(transitions)
    some = np.unique(np.linspace(0, len(transitions) - 1, min(rows, len(transitions))).astype(int))
    predictions = predict(transitions["state"][some])
    errors = []
    for start in range(0, len(chosen), _QUESTIONS):
        those = list(chosen[start : start + _QUESTIONS])
        asked = [layout.questions[i] for i in those]
        returns, usable = returns_along(asked, transitions, some, cutoff)
        names, answers = [layout.names[i] for i in those], predictions[:, those].astype(np.float64)
        errors.append(score(names, answers, returns, BLOCKS, usable))
    if len(errors) == 1:
        return errors[0]
    names = [name for part in errors for name in part.names]
    fields = [field for field in HordeReturnError.__dataclass_fields__ if field != "names"]
    parts = {field: np.concatenate([getattr(part, field) for part in errors]) for field in fields}
    return HordeReturnError(tuple(names), **parts)
