"""Many questions from few parts: policies, cumulants and continuations in all combinations.

A question names its parts one by one, and a :class:`gvf.Horde` evaluates each distinct part once.
Parts that are computed together come from a bank: :class:`SignalBank` has cumulants (or
continuations) that one function returns as [m, many]; :class:`gvf.policies.Bank` has policies whose
likelihoods one function returns as [m, P]. Both are mappings from names to parts.

For a file, :func:`table_of` makes a table of the distinct parts: thousands of questions have few. A
part is written once and made once, so that questions share it in a horde made from a file as they
did before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import as_numbers, brief, whole
from gvf.common.fields import flattened
from gvf.horde.layout import distinct
from gvf.policies import Policy
from gvf.policies.policy import describe
from gvf.policies.policy_bank import Member
from gvf.question import GVF, Signal
from gvf.transition import Transitions

_PARTS = ("policy", "cumulant", "continuation", "interest")


@dataclass(frozen=True)
class Column:
    """One column of numbers [m, many] that belong to transitions; a cumulant or a continuation.

    Args:
        source: the name of a column of the transitions, [m, many], or a function of m transitions
            that returns [m, many].
        index: the position among the many.

    Example:
        >>> import gvf
        >>> batch = gvf.Transitions(next_state=[[1.0, 2.0], [3.0, 4.0]])
        >>> gvf.SignalBank("next_state", 2)["1"](batch)
        array([2., 4.])
    """

    source: str | Signal
    index: int

    def __call__(self, transitions: Transitions) -> NDArray[Any]:
        """Return the numbers of m transitions, [m]."""
        return numbers_of(self.source, transitions)[:, self.index]

    def __repr__(self) -> str:
        return f"{describe(self.source)}[{self.index}]"


def numbers_of(source: str | Signal, transitions: Transitions) -> NDArray[Any]:
    """Return the numbers [m, many] of a source of columns."""
    values = transitions[source] if isinstance(source, str) else source(transitions)
    numbers = as_numbers(values, describe(source))
    if numbers.dtype.names is not None and numbers.ndim == 1:
        numbers = flattened(numbers)
    if numbers.ndim != 2 or len(numbers) != len(transitions):
        raise ValueError(
            f"columns {describe(source)} have shape {numbers.shape} for {len(transitions)} "
            f"transitions, expected ({len(transitions)}, many)"
        )
    return numbers


class SignalBank(Mapping[str, Column]):
    """Named columns of numbers [m, many], for the cumulants of :func:`gvf.question_grid`.

    Args:
        source: the name of a column of the transitions with several numbers a row, such as
            ``"next_state"``, or a function of m transitions that returns [m, many]. Of a structured
            array, as of Dict observations, these are the numbers of all fields, field by field.
        names: the names of the columns in order, or their number; they are then named "0", "1", ...

    Example:
        >>> import gvf
        >>> sensors = gvf.SignalBank("next_state", ["distance", "bump"])
        >>> sensors["bump"]
        'next_state'[1]
    """

    def __init__(self, source: str | Signal, names: Iterable[str] | int) -> None:
        if not isinstance(source, str) and not callable(source):
            raise TypeError(
                "the source of columns is the name of a column or a function of transitions, not "
                f"{brief(source)}"
            )
        listed = (
            [cast(str, name) for name in names]
            if isinstance(names, Iterable)
            else list(map(str, range(whole("names, if a number,", names, 1))))
        )
        self._columns = {name: Column(source, i) for i, name in enumerate(listed)}
        if len(self._columns) < len(listed):
            raise ValueError("two columns have the same name")

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def question_grid(
    policies: Mapping[str, Policy],
    cumulants: Mapping[str, str | Signal],
    continuations: Iterable[float | Signal] | Mapping[str, float | Signal],
) -> list[GVF]:
    """Return the questions of all combinations, named "policy, cumulant, continuation".

    Args:
        policies: the target policies by name, or a :class:`gvf.policies.Bank`.
        cumulants: the cumulants by name, or :class:`gvf.SignalBank`.
        continuations: the continuations, numbers or functions, with or without names.

    Example:
        >>> import gvf
        >>> asked = gvf.question_grid(
        ...     {
        ...         "left": gvf.policies.Always(0, actions=2),
        ...         "right": gvf.policies.Always(1, actions=2),
        ...     },
        ...     gvf.SignalBank("next_state", ["distance", "bump"]),
        ...     [0.0, 0.9],
        ... )
        >>> len(asked), asked[3].name
        (8, 'left, bump, 0.9')
    """
    for what, parts in (("policies", policies), ("cumulants", cumulants)):
        if not isinstance(parts, Mapping):
            raise TypeError(f"{what} must be a mapping from names, got {brief(parts)}")
    if not isinstance(continuations, Mapping):
        if not isinstance(continuations, Iterable) or isinstance(continuations, str):
            raise TypeError(f"continuations must be a list, got {brief(continuations)}")
        listed = list(continuations)
        continuations = {describe(c) if callable(c) else f"{c}": c for c in listed}
        if len(continuations) < len(listed):
            raise ValueError("two continuations have the same name: give them as a mapping")
    return [
        GVF(policy, cumulant, continuation, name=f"{who}, {signal}, {horizon}")
        for who, policy in policies.items()
        for signal, cumulant in cumulants.items()
        for horizon, continuation in continuations.items()
    ]


def table_of(questions: Sequence[GVF]) -> dict[str, Any]:
    """Return names, distinct parts, banks and the numbers of each question's parts, int64[G, 4].

    A part that belongs to a bank is written as the number of the bank and its index in it.

    Example:
        >>> import gvf
        >>> from gvf.horde.question_grid import table_of
        >>> policies = {
        ...     "left": gvf.policies.Always(0, actions=2),
        ...     "right": gvf.policies.Always(1, actions=2),
        ... }
        >>> table = table_of(gvf.question_grid(policies, gvf.SignalBank("next_state", 2), [0.9]))
        >>> table["cumulant"], table["banks"], table["numbers"][-1]
        ([{'bank': 0, 'index': 0}, {'bank': 0, 'index': 1}], ['next_state'], array([1, 1, 0, 0]))
    """
    distinct_parts = {part: distinct(getattr(q, part) for q in questions) for part in _PARTS}
    parts = [part for listed, _ in distinct_parts.values() for part in listed]
    banks, bank = distinct(_bank(part) for part in parts if isinstance(part, Column | Member))
    of_bank = iter(bank.tolist())

    def written(part: Any) -> Any:
        if isinstance(part, Column | Member):
            return {"bank": next(of_bank), "index": part.index}
        return part

    return {
        "names": [question.name for question in questions],
        **{name: [*map(written, listed)] for name, (listed, _) in distinct_parts.items()},
        "banks": banks,
        "numbers": np.stack([numbers for _, numbers in distinct_parts.values()], axis=1),
    }


def questions_of(table: Mapping[str, Any]) -> list[GVF]:
    """Return the questions that :func:`table_of` wrote."""

    def part_of(name: str, part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        return (Member if name == "policy" else Column)(table["banks"][part["bank"]], part["index"])

    parts = [[part_of(name, part) for part in table[name]] for name in _PARTS]
    return [
        GVF(policy, cumulant, continuation, name, interest)
        for name, row in zip(table["names"], table["numbers"].tolist(), strict=True)
        for policy, cumulant, continuation, interest in [
            [listed[at] for listed, at in zip(parts, row, strict=True)]
        ]
    ]


def _bank(part: Column | Member) -> Any:
    return part.source if isinstance(part, Column) else part.bank
