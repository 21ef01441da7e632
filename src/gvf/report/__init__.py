"""The page that shows figures and studies, and the files beside it."""

from gvf.report.evidence import shipped
from gvf.report.study import plot

__all__ = ["plot", "shipped"]
