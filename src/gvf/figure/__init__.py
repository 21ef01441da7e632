"""Figures: the results of a study, next to published curves and claims.

A figure turns results into points (:mod:`gvf.figure.reading`), compares them with published curves
(:mod:`gvf.figure.published`), judges sentences (:mod:`gvf.figure.claim`) and is drawn as a picture
(:mod:`gvf.figure.picture`). :mod:`gvf.paper` has the figures of the paper; of it, this package has
only the published curves and the looks of its methods.
"""

from gvf.figure.claim import Claim, Verdict, judge
from gvf.figure.companion import Companion
from gvf.figure.figure import SCALES, Axes, Figure, Point
from gvf.figure.picture import sensitivity
from gvf.figure.published import Match, Published, compare

__all__ = [
    "Axes",
    "Claim",
    "Companion",
    "Figure",
    "Match",
    "Published",
    "Point",
    "SCALES",
    "Verdict",
    "compare",
    "judge",
    "sensitivity",
]
