"""Diagnosis of a window: the correction that suits it, and whether it can be trusted."""

from gvf.diagnosis.comparison import Comparison
from gvf.diagnosis.diagnose import diagnose
from gvf.diagnosis.moments import Moments
from gvf.diagnosis.record import Diagnosis

__all__ = ["Comparison", "Diagnosis", "Moments", "diagnose"]
