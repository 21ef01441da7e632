"""Judging predictions from a log alone, and selecting a step size and a correction by it."""

from gvf.judging.judgement import judge
from gvf.judging.record import Difference, Judgement, Score
from gvf.judging.selection import Selection, select

__all__ = ["Difference", "Judgement", "Score", "Selection", "judge", "select"]
