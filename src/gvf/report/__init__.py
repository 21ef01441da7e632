"""The page that shows figures and studies, and the files beside it."""

from gvf.figure import sensitivity

__all__ = ["sensitivity"]
