"""Intervals for predictions from a log: how far chance in the log may have moved them."""

from gvf.intervals.bootstrap import bootstrap as bootstrap
from gvf.intervals.bootstrap_result import BootstrapResult as BootstrapResult
from gvf.intervals.bootstrap_result import Interval
from gvf.intervals.events import Events, TooFewEventsError, count_events

__all__ = ["Events", "Interval", "TooFewEventsError", "count_events"]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
