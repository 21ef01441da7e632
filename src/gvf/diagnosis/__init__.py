"""Which correction suits a window, and can it be trusted?"""

from gvf.diagnosis.comparison import Comparison
from gvf.diagnosis.diagnose import diagnose
from gvf.diagnosis.moments import Moments
from gvf.diagnosis.record import Diagnosis

__all__ = ["Comparison", "Diagnosis", "Moments", "diagnose"]
