"""Remarks on an answer: what is wrong with it, or was done about it, as data.

A remark is a dataclass whose fields decide; its text is for the terminal and the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gvf.common.progress import duration
from gvf.intervals import Events

MOST_SHOWN = 10.0
"""The largest number of half widths that is written as a number."""


@dataclass(frozen=True)
class Tied:
    """A candidate was taken that is tied with the best, and has a smaller step size.

    Attributes:
        best: the name of the candidate with the lowest error.
        taken: the name of the one that was taken.
    """

    best: str
    taken: str
    warns: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.taken} was taken: chance decides between it and {self.best}"


@dataclass(frozen=True)
class Faster:
    """A larger step size was taken, because learning with the best one is not finished.

    Attributes:
        best: the name of the candidate that is not finished.
        taken: the name of the one that was taken, which is not known to be worse.
    """

    best: str
    taken: str
    warns: ClassVar[bool] = False

    def __str__(self) -> str:
        return (
            f"{self.taken} was taken: learning with {self.best} is not finished, and the log "
            "does not tell that it predicts better"
        )


@dataclass(frozen=True)
class Diverged:
    """Candidates were passed over because replicates of them diverged.

    Attributes:
        names: the names of the candidates.
        replicates: the number of replicates of the first that diverged.
        total: the number of its replicates.
        taken: the name of the candidate that was taken instead.
    """

    names: tuple[str, ...]
    replicates: int
    total: int
    taken: str
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        first, *others = self.names
        text = f"{self.replicates} of the {self.total} replicates of {first} diverged"
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
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        return (
            f"no intervals: {self.events}, and intervals need at least {self.events.limit}; "
            "record more"
        )


@dataclass(frozen=True)
class FeaturesMatter:
    """The mean prediction depends on the features by more than its interval allows.

    Attributes:
        states: the states of the mean, "first states" or "states".
        value: their mean prediction.
        half_width: half of the width of its interval.
        richer: the mean prediction with richer features.
        features: the richer features, in words.
    """

    states: str
    value: float
    half_width: float
    richer: float
    features: str
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        return (
            f"the features are too poor for this interval: the mean over {self.states} is "
            f"{self.value:.4g} ± {self.half_width:.2g}, and {self.richer:.4g} with "
            f"{self.features}. Take richer [features]"
        )


@dataclass(frozen=True)
class Unfinished:
    """Learning was not finished, so replicates are wrong alike, and intervals too narrow.

    Attributes:
        epochs: the number of passes over the log.
        drift: the mean change of predictions in the second half of learning, in half widths of
            their intervals.
        distance: the mean distance of predictions from those that learning tends to, in half
            widths; None if these are not known.
    """

    epochs: int
    drift: float
    distance: float | None
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        several = "s" if self.epochs > 1 else ""
        text = (
            f"learning is not finished after {self.epochs} epoch{several}: predictions still moved "
            f"by {_percent(self.drift)} of the half width of their intervals"
        )
        if self.distance is not None:
            text += f", and are {_percent(self.distance)} away from what learning tends to"
        return f"{text}. Give more epochs or larger step_sizes in [learn]"


@dataclass(frozen=True)
class Costly:
    """The cost of least squares, if it is high. It is told before anything is computed.

    Attributes:
        features: the number of features that occur in the log.
        solutions: the number of times that their equations are solved: for held-out parts, for
            replicates, and for each question.
        seconds: an estimate of the processor time.
    """

    features: int
    solutions: int
    seconds: float
    warns: ClassVar[bool] = True

    def __str__(self) -> str:
        return (
            f"LSTD solves equations of {self.features:,} features {self.solutions:,} times, which "
            f"takes about {duration(self.seconds)} of processor time: fewer tiles or tilings in "
            "[features], or fewer replicates in [intervals], make it shorter"
        )


def _percent(share: float) -> str:
    """Write a share of a half width, which may be close to nothing."""
    most = MOST_SHOWN
    return f"{100 * share:.0f} %" if share <= most else f"more than {100 * most:,.0f} %"


Remark = Unfinished | FeaturesMatter | Tied | Faster | Diverged | FewEvents
