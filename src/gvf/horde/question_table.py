"""The questions of a horde as a table of their distinct parts, for files.

Thousands of questions have few distinct parts. A part is written once and made once, so that
questions share it in a horde made from a file as they did before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gvf.horde.layout import distinct
from gvf.horde.question_grid import Column
from gvf.policies.policy_bank import Member
from gvf.question import GVF

_PARTS = ("policy", "cumulant", "continuation", "interest")


def table_of(questions: Sequence[GVF]) -> dict[str, Any]:
    """Return names, distinct parts, banks and the numbers of each question's parts, int64[G, 4].

    A part that belongs to a bank is written as the number of the bank and its index in it.

    Example:
        >>> import gvf
        >>> from gvf.horde.question_table import table_of
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
