"""Charts of Ghiassian and Sutton (2021): online algorithms and resampling on the same tasks."""

from gvf.charts.figures import FIGURES
from gvf.charts.studies import STUDIES

__all__ = ["FIGURES", "STUDIES"]
