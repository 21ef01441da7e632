"""Figures: the results of a study, next to published curves and claims.

A figure turns results into points (:mod:`gvf_lab.figure.points`), compares them with published
curves (:mod:`gvf_lab.figure.published`), judges claims (:mod:`gvf_lab.figure.claim`) and is drawn
as a picture (:mod:`gvf_lab.figure.picture`). :mod:`gvf_lab.paper` has the figures of the paper; of
it, this package has only the published curves, the reasons of claims and the looks of methods.
"""

from gvf_lab.figure.claim import Claim, Verdict, judge
from gvf_lab.figure.figure import SCALES, Axes, Companion, Figure, Point
from gvf_lab.figure.picture import sensitivity
from gvf_lab.figure.published import Match, Published, compare

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
