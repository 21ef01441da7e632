"""Charts of Ghiassian and Sutton (2021): online algorithms and resampling on the same tasks."""

from gvf_lab.catalogue import Figures

FIGURES = Figures("charts")
"""All charts, by id."""

__all__ = ["FIGURES"]
