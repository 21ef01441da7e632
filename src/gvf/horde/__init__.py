"""Hordes: thousands of questions answered from one stream."""

from gvf.horde.banks import Columns, PolicyBank, questions
from gvf.horde.horde import Horde
from gvf.horde.report import HordeReport

__all__ = ["Columns", "Horde", "HordeReport", "PolicyBank", "questions"]
