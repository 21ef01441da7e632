"""The history of a claim: when it was written and changed, and what was known by then.

A range that was chosen when results were known proves less. So an entry has its text for readers
and, in a field of its own, what was known; nothing is counted by words of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Knew = Literal["unrecorded", "audit", "results"]
"""Prior knowledge: no record tells; small runs of an audit; the results that judge the claim."""


@dataclass(frozen=True)
class HistoryEntry:
    """A line in the history of a claim.

    Attributes:
        text: the line, which begins with its date.
        knew: what was known when the claim was written or changed.
    """

    text: str
    knew: Knew = "unrecorded"


def knowing_results(text: str) -> HistoryEntry:
    """Return an entry about a claim that was written or changed when results were known.

    Example:
        >>> from gvf_lab.figure.history import knowing_results
        >>> knowing_results("2026-11-16: left gaps below 16 out before.").knew
        'results'
    """
    return HistoryEntry(text, "results")


def after_audit(text: str) -> HistoryEntry:
    """Return an entry about a claim that was written after small runs in an audit."""
    return HistoryEntry(text, "audit")


def most_known(history: Iterable[HistoryEntry]) -> Knew:
    """Return the most that was known at any entry of a history.

    Example:
        >>> from gvf_lab.figure.history import HistoryEntry, after_audit, most_known
        >>> most_known([HistoryEntry("2026-11-15: written."), after_audit("2026-11-16: changed.")])
        'audit'
    """
    known = {entry.knew for entry in history}
    return "results" if "results" in known else "audit" if "audit" in known else "unrecorded"
