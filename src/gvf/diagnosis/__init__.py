"""Diagnosis of a window: the correction that suits it, and whether it can be trusted."""

from gvf.diagnosis.diagnose import diagnose
from gvf.diagnosis.diagnosis import Diagnosis
from gvf.diagnosis.moments import Moments
from gvf.diagnosis.variance_comparison import VarianceComparison

__all__ = ["Diagnosis", "Moments", "VarianceComparison", "diagnose"]
