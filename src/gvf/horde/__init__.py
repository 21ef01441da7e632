"""Hordes: thousands of questions answered from one stream."""

from gvf.horde.banks import Columns, PolicyBank, questions
from gvf.horde.diagnosis import HordeDiagnosis
from gvf.horde.horde import Horde
from gvf.horde.report import HordeReport, HordeWarning
from gvf.horde.returns import HordeReturnError

__all__ = [
    "Columns",
    "Horde",
    "HordeDiagnosis",
    "HordeReport",
    "HordeReturnError",
    "HordeWarning",
    "PolicyBank",
    "questions",
]
