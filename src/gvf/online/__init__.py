"""Algorithms that learn from each transition once, with traces, and least squares."""

from gvf.online.algorithm import Algorithm
from gvf.online.gradient_traces import GTD, GTD2, HTD, ProximalGTD2, TDRCLambda
from gvf.online.least_squares import LSTD
from gvf.online.lstd_learner import LSTDLearner as LSTDLearner
from gvf.online.lstd_learner import LSTDReport
from gvf.online.online_learner import OnlineLearner as OnlineLearner
from gvf.online.online_learner import OnlineReport
from gvf.online.semi_gradient import ABTD, EmphaticTD, TDLambda, TreeBackup, VTraceLambda

__all__ = [
    "ABTD",
    "Algorithm",
    "EmphaticTD",
    "GTD",
    "GTD2",
    "HTD",
    "LSTD",
    "LSTDReport",
    "OnlineReport",
    "ProximalGTD2",
    "TDLambda",
    "TDRCLambda",
    "TreeBackup",
    "VTraceLambda",
]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
