"""Questions: the signal to predict, and the policy to predict it for.

A general value function is the expected discounted sum of a signal if a policy were followed,

    v(s) = E_pi[ C_{t+1} + gamma_{t+1} C_{t+2} + gamma_{t+1} gamma_{t+2} C_{t+3} + ... | S_t = s ],

with a target policy pi, a cumulant C and a continuation gamma; the last two are functions of a
transition. :class:`GVF` holds the three, and the interest i in each state, by which emphatic
corrections weigh. From transitions and the behaviour it computes the numbers that samplers and
learners use: the ratio (:mod:`gvf.policies`), the cumulant, the continuation and the interest of
each transition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import as_numbers, brief, check_choice
from gvf.common.errors import DataCode, DataError, place
from gvf.policies import Policy, ratio
from gvf.policies.policy import describe
from gvf.policies.ratio import check_recorded
from gvf.transition import (
    RECORDED,
    Transitions,
    TransitionsLike,
    as_transitions,
    nan_place,
    nan_rows,
    without_last_states,
)

Signal = Callable[[Transitions], Any]
OnConflict = Literal["error", "recorded", "behaviour"]
OnNaN = Literal["error", "skip"]


class Evaluation(NamedTuple):
    """The ratios, cumulants, continuations and interests of m transitions for a question.

    Example:
        >>> import gvf
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2))
        >>> batch = gvf.Transitions(state=[0, 0], action=[0, 1], reward=[5.0, 7.0])
        >>> found = question.evaluate(batch, behaviour=gvf.policies.Uniform(2))
        >>> found.ratio, found.cumulant
        (array([0., 2.]), array([5., 7.]))
    """

    ratio: NDArray[np.float64]
    """The importance ratio pi(a|s) / mu(a|s), float64[m]."""
    cumulant: NDArray[np.float64]
    """The signal to sum, float64[m]."""
    continuation: NDArray[np.float64]
    """The discount after the transition, float64[m] in [0, 1]."""
    interest: NDArray[np.float64]
    """The interest in the state, float64[m], not negative."""


@dataclass(frozen=True, repr=False)
class GVF:
    """A question: the expected discounted sum of a cumulant if a policy were followed.

    The continuation of a transition with ``terminated`` (as in Gymnasium) is always 0.
    ``truncated`` has no effect, because the episode would have continued.

    Args:
        policy: the target policy pi.
        cumulant: the name of a column, or a function of m transitions that returns numbers [m].
        continuation: a number in [0, 1], or a function of m transitions that returns such numbers
            [m].
        name: a name for reports.
        interest: the interest in the value of each state: a number, the name of a column, or a
            function of m transitions that returns numbers [m]; none may be negative. None is 1.
            Only corrections with a trace use it, such as :class:`gvf.corrections.EmphaticIR`; the
            others ignore it.

    Example:
        The discounted reward, if the action were always 1:

        >>> import gvf
        >>> gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        GVF(Always(1, 2), 'reward', 0.9)

        The probability of reaching the goal, state 4, before the pit, state 0:

        >>> question = gvf.GVF(
        ...     gvf.policies.Uniform(2),
        ...     cumulant=lambda t: t.next_state == 4,
        ...     continuation=lambda t: (t.next_state != 4) & (t.next_state != 0),
        ...     name="goal before pit",
        ... )
        >>> batch = gvf.Transitions(state=[3, 3], action=[0, 1], next_state=[2, 4])
        >>> question.evaluate(batch, behaviour=gvf.policies.Fixed([0.2, 0.8]))
        Evaluation(ratio=array([2.5  , 0.625]),
                   cumulant=array([0., 1.]),
                   continuation=array([1., 0.]),
                   interest=array([1., 1.]))

        The same question, if only the values of states near the goal matter:

        >>> from dataclasses import replace
        >>> replace(question, interest=lambda t: t.state >= 3).interests(batch)
        array([1., 1.])
    """

    policy: Policy
    cumulant: str | Signal = "reward"
    continuation: float | Signal = 0.9
    name: str = ""
    interest: float | str | Signal | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise TypeError(
                f"policy must be a gvf.policies.Policy, not {brief(self.policy)}; a function of "
                f"states can "
                "be wrapped: gvf.policies.Function(function)"
            )
        if not isinstance(self.cumulant, str) and not callable(self.cumulant):
            raise TypeError(
                "cumulant must be the name of a column or a function of transitions, not "
                f"{brief(self.cumulant)}; for a constant, lambda t: 1.0"
            )
        number = isinstance(self.continuation, int | float | np.number)
        if not callable(self.continuation) and not (number and 0 <= self.continuation <= 1):
            raise ValueError(
                "continuation must be a number in [0, 1] or a function of transitions, got "
                f"{brief(self.continuation)}"
            )
        if not callable(self.interest) and not isinstance(self.interest, str | None):
            number = isinstance(self.interest, int | float | np.number)
            if not (number and 0 <= self.interest < np.inf):
                raise ValueError(
                    "interest must be a finite number that is not negative, the name of a column "
                    f"or a function of transitions, got {brief(self.interest)}"
                )

    def evaluate(
        self,
        transitions: TransitionsLike,
        *,
        behaviour: Policy | None = None,
        on_conflict: OnConflict = "error",
    ) -> Evaluation:
        """Compute the ratio, cumulant, continuation and interest of each of m transitions.

        The behaviour mu is the recorded probability if the transitions have one, and otherwise the
        given policy. The record takes precedence because a behaviour may change while it learns.

        Args:
            transitions: transitions, or a list of mappings, one each. They have the columns
                ``state``, ``action``, and those that cumulant, continuation and interest use.
                Without ``behaviour`` they also need the column ``behaviour_log_probability`` or
                ``behaviour_probability``; the first is used if there are both.
            behaviour: the policy that chose the actions, mu.
            on_conflict: the rule if there are both a record and a policy. "error": use the record,
                and raise an error if the policy differs from it by more than 1e-5 (relative; in log
                space for logarithms), unless the policy is an estimate. "recorded": use the record,
                and do not evaluate the policy. "behaviour": use the policy, and ignore the record.

        Returns:
            An :class:`Evaluation` with arrays [m].

        Raises:
            ValueError: if mu is not known, if record and policy differ, if mu is 0 where pi is not,
                if a cumulant is not finite, if a continuation is not in [0, 1], or if an interest
                is negative or not finite. The message names the transition.

        Example:
            The behaviour preferred action 1 when it acted, and is uniform now:

            >>> import gvf
            >>> batch = gvf.Transitions(
            ...     state=[0, 0], action=[0, 1], reward=[0.0, 0.0], behaviour_probability=[0.2, 0.8]
            ... )
            >>> question, now = gvf.GVF(gvf.policies.Fixed([0.4, 0.6])), gvf.policies.Uniform(2)
            >>> question.evaluate(batch, behaviour=now, on_conflict="recorded").ratio
            array([2.  , 0.75])
            >>> question.evaluate(batch, behaviour=now, on_conflict="behaviour").ratio
            array([0.8, 1.2])
        """
        if not isinstance(transitions, Transitions):
            transitions = as_transitions(transitions)
        return Evaluation(
            self.ratios(transitions, behaviour=behaviour, on_conflict=on_conflict),
            self.cumulants(transitions),
            self.continuations(transitions),
            self.interests(transitions),
        )

    def ratios(
        self,
        transitions: TransitionsLike,
        *,
        behaviour: Policy | None = None,
        on_conflict: OnConflict = "error",
    ) -> NDArray[np.float64]:
        """Compute pi(a|s) / mu(a|s) of each transition, float64[m]; mu as in :meth:`evaluate`."""
        check_choice("on_conflict", on_conflict, OnConflict)
        if not isinstance(transitions, Transitions):
            transitions = as_transitions(transitions)
        states, actions = transitions["state"], transitions["action"]
        source = behaviour_source(transitions, behaviour, on_conflict)
        if all(name in transitions for name in RECORDED):
            _check_alike(*(transitions[name] for name in RECORDED))
        if isinstance(source, Policy):
            return ratio(self.policy, states, actions, behaviour=source)
        if source is None:
            raise ValueError(_NO_BEHAVIOUR.format(", ".join(transitions.columns)))
        mu = {source: transitions[source]}
        if behaviour is not None and on_conflict == "error":
            check_recorded(behaviour, states, actions, **mu)
        return ratio(self.policy, states, actions, **mu)

    def cumulants(self, transitions: TransitionsLike) -> NDArray[np.float64]:
        """Compute the cumulant of each transition, float64[m], all finite."""
        if not isinstance(transitions, Transitions):
            transitions = as_transitions(transitions)
        if isinstance(self.cumulant, str):
            values = transitions[self.cumulant]
        else:
            values = self.cumulant(transitions)
        cumulants = _one_each(values, len(transitions), "cumulant", self.cumulant)
        good = np.isfinite(cumulants)
        if not good.all():
            at = int(good.argmin())
            where = "" if isinstance(self.cumulant, str) else _nan_there(transitions, at)
            raise DataError(
                f"cumulant {describe(self.cumulant)} is {cumulants[at]}",
                place(at),
                f"{where}; it must be finite{_SKIP if np.isnan(cumulants[at]) else ''}",
                code=DataCode.NOT_FINITE,
                column="cumulant",
                value=cumulants[at],
            )
        return cumulants

    def continuations(self, transitions: TransitionsLike) -> NDArray[np.float64]:
        """Compute the continuation of each transition, float64[m] in [0, 1], 0 if terminated."""
        if not isinstance(transitions, Transitions):
            transitions = as_transitions(transitions)
        if callable(self.continuation):
            values = self.continuation(transitions)
            values = _one_each(values, len(transitions), "continuation", self.continuation)
            good = (values >= 0) & (values <= 1)
            if not good.all():
                at = int(good.argmin())
                raise DataError(
                    f"continuation {describe(self.continuation)} is {values[at]}",
                    place(at),
                    f"{_nan_there(transitions, at)}; it must be in [0, 1]",
                    column="continuation",
                    value=values[at],
                )
        else:
            values = np.full(len(transitions), self.continuation, np.float64)
        if "terminated" in transitions:
            values = np.where(_ended(transitions["terminated"]), 0.0, values)
        return values

    def interests(self, transitions: TransitionsLike) -> NDArray[np.float64]:
        """Compute the interest in each transition's state, float64[m], finite, not negative."""
        if not isinstance(transitions, Transitions):
            transitions = as_transitions(transitions)
        source = self.interest
        if source is None or not (callable(source) or isinstance(source, str)):
            return np.full(len(transitions), 1.0 if source is None else source, np.float64)
        values = source(transitions) if callable(source) else transitions[source]
        interests = _one_each(values, len(transitions), "interest", source)
        good = (interests >= 0) & (interests < np.inf)
        if not good.all():
            at = int(good.argmin())
            where = "" if isinstance(source, str) else _nan_there(transitions, at)
            raise DataError(
                f"interest {describe(source)} is {interests[at]}",
                place(at),
                f"{where}; it must be finite and not negative"
                f"{_SKIP if np.isnan(interests[at]) else ''}",
                column="interest",
                value=interests[at],
            )
        return interests

    def missing(self, transitions: Transitions, *, interest: bool = True) -> NDArray[np.bool_]:
        """Find the transitions that cannot be used because of a NaN: bool[m].

        The NaN may be in the state, the next state if one is predicted from, the action, a recorded
        probability, the cumulant, the continuation, or the interest if it is used.
        """
        bad = unusable(transitions)
        good = np.flatnonzero(~bad)
        rest = transitions[good]
        for signal in (self.cumulant, self.continuation, self.interest if interest else None):
            if len(good) and (callable(signal) or isinstance(signal, str)):
                values = signal(rest) if callable(signal) else rest[signal]
                bad[good] |= np.isnan(_one_each(values, len(good), "", signal))
        return bad

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        interest = "" if self.interest is None else f", interest={describe(self.interest)}"
        parts = ", ".join(describe(p) for p in (self.policy, self.cumulant, self.continuation))
        return f"GVF({parts}{name}{interest})"


def behaviour_source(
    transitions: Transitions, behaviour: Policy | None, on_conflict: OnConflict
) -> Policy | str | None:
    """Return the source of the behaviour's probabilities: a policy, or the name of a column.

    None if neither the transitions nor the caller know the behaviour; then there are no ratios.

    Example:
        >>> import gvf
        >>> from gvf.question import behaviour_source
        >>> batch = gvf.Transitions(state=[0], action=[1], behaviour_probability=[0.5])
        >>> behaviour_source(batch, gvf.policies.Uniform(2), "recorded")
        'behaviour_probability'
        >>> behaviour_source(batch, gvf.policies.Uniform(2), "behaviour")
        Uniform(2)
    """
    recorded = next((name for name in RECORDED if name in transitions.columns), None)
    if behaviour is not None and (recorded is None or on_conflict == "behaviour"):
        return behaviour
    return recorded


def unusable(transitions: Transitions) -> NDArray[np.bool_]:
    """Find the transitions that no question can use because of a NaN: bool[m].

    The NaN may be in the state, the next state if one is predicted from, the action, or a recorded
    probability.
    """
    bad = np.zeros(len(transitions), bool)
    predicted = without_last_states(transitions)
    for name in ("state", "next_state", "action", "terminated", *RECORDED):
        if name in transitions:
            bad |= nan_rows(predicted[name])
    return bad


_NO_BEHAVIOUR = """the behaviour is not known, so there is no ratio pi(a|s) / mu(a|s).
Give the policy that chose the actions:
    gvf.Learner(..., behaviour=gvf.policies.Uniform(4))    (a NeuralLearner or a Horde likewise)
or record the probability it gave to each action, as a column of the transitions:
    gvf.Transitions(..., behaviour_probability=behaviour.probability(states, actions))
(behaviour_log_probability, the logarithm, does better for densities). The columns here are: {}"""


_SKIP = """ (to leave out transitions with a NaN: gvf.Learner(..., on_nan="skip"))"""


def _ended(terminated: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the column ``terminated`` as bool[m]; raise ValueError if it holds anything else."""
    if terminated.dtype.kind == "b" and terminated.ndim == 1:
        return terminated
    what = "column 'terminated'"
    if terminated.dtype.kind in "USO" and not all(value in (0, 1) for value in terminated.flat):
        good = np.array([value in (0, 1) for value in terminated.flat])
    else:
        numbers = _one_each(terminated, len(terminated), "column", "terminated")
        good = (numbers == 0) | (numbers == 1)
        if good.all():
            return numbers == 1
    at = int(good.argmin())
    value = terminated.ravel()[at : at + 1].tolist()[0]
    raise DataError(
        f"{what} is {brief(value)}",
        place(at),
        f"; it must be True or False{_SKIP if value != value else ''}",
        column="terminated",
        value=value,
    )


def _check_alike(log_probability: NDArray[Any], probability: NDArray[Any]) -> None:
    """Raise ValueError if the two recorded columns of the behaviour disagree."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        alike = np.isclose(np.exp(log_probability), probability, rtol=1e-4, atol=1e-7)
    alike |= np.isnan(log_probability) | np.isnan(probability)
    if not alike.all():
        at = int(alike.argmin())
        raise DataError(
            f"behaviour_log_probability is {log_probability[at]:.6g}",
            place(at),
            f", which is a probability of {np.exp(log_probability[at]):.6g}, and "
            f"behaviour_probability is {probability[at]:.6g}: leave out the wrong one",
            code=DataCode.CONFLICT,
            column="behaviour_log_probability",
            value=log_probability[at],
        )


def _nan_there(transitions: Transitions, at: int) -> str:
    """Return the part of a message that names the columns with a NaN in a row."""
    row = transitions[[at]].columns
    places = [nan_place(name, column[0]) for name, column in row.items() if nan_rows(column)[0]]
    return f", where {' and '.join(places)} is nan" if places else ""


def _one_each(values: Any, count: int, kind: str, source: object) -> NDArray[np.float64]:
    """Return a copy of the values as float64[m]; a scalar is repeated m times.

    Args:
        values: the values of the transitions.
        count: the number of transitions, m.
        kind: the kind of signal, for messages, which are made only where they are needed.
        source: the name or the function from which the values come.
    """
    if type(values) is np.ndarray and values.shape == (count,) and values.dtype.kind in "biuf":
        return values.astype(np.float64)
    what = f"{kind} {describe(source)}".lstrip()
    numbers = as_numbers(values, what)
    try:
        array = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, got {brief(numbers)}") from None
    if array.shape == (count,):
        return array
    if array.shape == ():
        return np.full(count, array)
    hint = "; take values[:, 0]" if array.shape == (count, 1) else ""
    raise ValueError(
        f"{what} has shape {array.shape} for {count} transitions, expected ({count},) or a "
        f"single number{hint}"
    )
