"""Verdicts: what held-out episodes could tell, as a code with its fields; `str` makes words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gvf.findings import Finding, sentence


class Outcome(StrEnum):
    """The kinds of verdicts on candidates by held-out episodes.

    Example:
        >>> from gvf.judging import Outcome
        >>> Outcome("cannot tell").sure, Outcome.TIED.sure, [*map(str, Outcome)]
        (False, True,
         ['best', 'tied', 'no better than a constant', 'cannot tell', 'all diverged'])
    """

    BEST = "best"
    """The winner predicts better than all other candidates and than the constant."""
    TIED = "tied"
    """The winner predicts better than the constant, and cannot be told from other candidates."""
    NO_BETTER = "no better than a constant"
    """The winner is not shown to predict better than the constant."""
    CANNOT_TELL = "cannot tell"
    """The episodes are too few, or their weights too uneven, to tell anything."""
    ALL_DIVERGED = "all diverged"
    """No candidate has finite predictions."""

    @property
    def sure(self) -> bool:
        """True if the winner was shown to predict better than a constant."""
        return self in (Outcome.BEST, Outcome.TIED)


@dataclass(frozen=True)
class Verdict:
    """A verdict on candidates by held-out episodes. Print it for a sentence.

    Attributes:
        outcome: the code, an :class:`Outcome`.
        winner: the name of the candidate with the lowest error.
        tied: the names of the candidates that cannot be told from it.
        others: the number of all other candidates.
        findings: the reasons why nothing can be told; none if something can.

    Example:
        >>> from gvf.judging import Outcome, Verdict
        >>> verdict = Verdict(Outcome.TIED, "IR", ("IS",), others=4)
        >>> print(verdict)
        IR has the lowest error, and cannot be told from IS
        >>> verdict.outcome.sure
        True
    """

    outcome: Outcome
    winner: str
    tied: tuple[str, ...] = ()
    others: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def doubts(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(map(sentence, self.findings))

    def __str__(self) -> str:
        match self.outcome:
            case Outcome.ALL_DIVERGED:
                return "all candidates have diverged"
            case Outcome.CANNOT_TELL:
                return f"cannot tell: {'; '.join(self.doubts)}"
            case Outcome.NO_BETTER:
                return f"{self.winner} is not shown to predict better than a constant"
            case Outcome.TIED:
                many = self.tied[0] if len(self.tied) == 1 else f"{len(self.tied)} others"
                return f"{self.winner} has the lowest error, and cannot be told from {many}"
            case Outcome.BEST if self.others:
                return f"{self.winner} is best"
            case Outcome.BEST:
                return f"{self.winner}, the only candidate, predicts better than a constant"
