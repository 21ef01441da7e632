"""Hordes: thousands of questions answered from one stream."""

from gvf.horde.horde import Horde
from gvf.horde.horde_report import HordeDiagnosis, HordeReport, HordeWarning
from gvf.horde.horde_returns import HordeReturnError
from gvf.horde.question_grid import SignalBank, question_grid

__all__ = [
    "Horde",
    "HordeDiagnosis",
    "HordeReport",
    "HordeReturnError",
    "HordeWarning",
    "SignalBank",
    "question_grid",
]
