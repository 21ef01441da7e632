"""Judging predictions from a log alone, and selecting a step size and a correction by it."""

from gvf.judging.judgement import judge
from gvf.judging.policy_value import Estimator
from gvf.judging.record import Difference, Judgement, Score
from gvf.judging.selection import Selection, select
from gvf.judging.verdict import Outcome, Verdict

__all__ = [
    "Difference",
    "Estimator",
    "Judgement",
    "Outcome",
    "Score",
    "Selection",
    "Verdict",
    "judge",
    "select",
]
