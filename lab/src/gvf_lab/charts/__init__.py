"""Charts of Ghiassian and Sutton (2021): online algorithms and resampling on the same tasks."""

from gvf_lab.charts.chart_figures import FIGURES
from gvf_lab.charts.chart_studies import STUDIES

__all__ = ["FIGURES", "STUDIES"]
