"""Intervals for predictions from a log: how far chance in the log may have moved them."""

from gvf.intervals.bootstrap import bootstrap as bootstrap
from gvf.intervals.intervals import Interval as Interval
from gvf.intervals.intervals import Intervals as Intervals
