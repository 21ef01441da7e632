"""Judging predictions from a log alone, and selecting a step size and a correction by it."""

from gvf.judging.judgement import Difference, Judgement, Score, judge
from gvf.judging.selection import Selection, select

__all__ = ["Difference", "Judgement", "Score", "Selection", "judge", "select"]
