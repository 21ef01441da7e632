"""Learners: they turn drawn and weighed transitions into predictions."""

from gvf.learner.callbacks import Every
from gvf.learner.gradient_td import TDC, TDRC
from gvf.learner.learner import Learner
from gvf.learner.report import LearnerReport, Problem
from gvf.learner.sarsa import ExpectedSarsa, Sarsa
from gvf.learner.states import NotLearnedWarning
from gvf.learner.td import SGD, TD, Adam, IncrementalTD, RMSProp
from gvf.learner.update import Update
from gvf.learner.wis_td import WISTD

__all__ = [
    "SGD",
    "TD",
    "TDC",
    "TDRC",
    "WISTD",
    "Adam",
    "Every",
    "ExpectedSarsa",
    "IncrementalTD",
    "Learner",
    "LearnerReport",
    "NotLearnedWarning",
    "Problem",
    "RMSProp",
    "Sarsa",
    "Update",
]
