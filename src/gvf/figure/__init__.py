"""Figures: what a study shows, next to what was published and what is claimed.

A figure reads points off results (:mod:`gvf.figure.reading`), lays them over published curves
(:mod:`gvf.figure.published`), judges sentences (:mod:`gvf.figure.claim`) and is drawn as a picture
(:mod:`gvf.figure.picture`). Nothing here belongs to one paper; :mod:`gvf.paper` has its figures.
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
