"""Remarks on an answer: what is wrong with it, or was done about it, as data.

A remark is a dataclass whose fields decide; its text is for the terminal and the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from gvf.intervals import Events


@dataclass(frozen=True)
class Diverged:
    """Candidates were passed over because replicates of them diverged.

    Attributes:
        names: the names of the candidates.
        replicates: the number of replicates of the first that diverged.
        total: the number of its replicates.
        taken: the name of the candidate that was taken instead; None if there was no other.
    """

    names: tuple[str, ...]
    replicates: int
    total: int
    taken: str | None

    def __str__(self) -> str:
        first, *others = self.names
        text = f"{self.replicates} of the {self.total} replicates of {first} diverged"
        if self.taken is None:
            return f"{text}, and no candidate is better: give smaller step_sizes in [learn]"
        if others:
            text += f", and some of {len(others)} more"
        return f"{text}, so {self.taken} was taken instead"


@dataclass(frozen=True)
class FewEvents:
    """The log has too few events for intervals.

    Attributes:
        events: the events.
    """

    events: Events

    def __str__(self) -> str:
        return (
            f"no intervals: {self.events}, and intervals need at least {self.events.limit}; "
            "record more"
        )


Remark = Diverged | FewEvents
