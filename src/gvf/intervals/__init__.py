"""Intervals for predictions from a log: how far chance in the log may have moved them."""

from gvf.intervals.bootstrap import bootstrap as bootstrap
from gvf.intervals.events import Events as Events
from gvf.intervals.events import TooFewEventsError as TooFewEventsError
from gvf.intervals.events import count_events as count_events
from gvf.intervals.intervals import Interval as Interval
from gvf.intervals.intervals import Intervals as Intervals
