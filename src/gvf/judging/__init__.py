"""Judging predictions from a log alone, and selecting a step size and a correction by it."""

from gvf.judging.compare import compare_learners as compare_learners
from gvf.judging.comparison import Comparison as Comparison
from gvf.judging.comparison import Outcome, Score, Verdict
from gvf.judging.policy_value import Estimator
from gvf.judging.select_learner import Selection as Selection
from gvf.judging.select_learner import select_learner as select_learner

__all__ = ["Estimator", "Outcome", "Score", "Verdict"]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
