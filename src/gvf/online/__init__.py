"""Algorithms that learn from each transition once, with traces, and least squares."""

from gvf.online.algorithm import Algorithm
from gvf.online.gradient import GTD, GTD2, HTD, ProximalGTD2, TDRCLambda
from gvf.online.least_squares import LSTD, window_lstd
from gvf.online.lstd_learner import LSTDLearner, LSTDReport
from gvf.online.online_learner import OnlineLearner, OnlineReport
from gvf.online.semi_gradient import ABTD, EmphaticTD, TDLambda, TreeBackup, VTraceLambda

__all__ = [
    "ABTD",
    "GTD",
    "GTD2",
    "HTD",
    "LSTD",
    "Algorithm",
    "EmphaticTD",
    "LSTDLearner",
    "LSTDReport",
    "OnlineLearner",
    "OnlineReport",
    "ProximalGTD2",
    "TDLambda",
    "TDRCLambda",
    "TreeBackup",
    "VTraceLambda",
    "window_lstd",
]
