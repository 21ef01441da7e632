"""Pictures of figures, and the page that shows them."""

from gvf.report.picture import sensitivity

__all__ = ["sensitivity"]
