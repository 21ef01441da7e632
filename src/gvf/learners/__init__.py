"""Learners: they turn drawn and weighed transitions into predictions."""

from gvf.learners.callbacks import Callback as Callback
from gvf.learners.learner import Learner as Learner
from gvf.learners.learner_report import LearnerReport as LearnerReport
from gvf.learners.learner_report import Problem
from gvf.learners.method import Method as Method
from gvf.learners.states import NotLearnedWarning as NotLearnedWarning

__all__ = ["Problem"]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
