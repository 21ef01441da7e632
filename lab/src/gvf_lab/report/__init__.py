"""The page that shows figures and studies, and the files beside it."""

from gvf_lab.report.exhibit import shipped
from gvf_lab.report.study_pages import plot

__all__ = ["plot", "shipped"]
