"""Logs: recorded transitions from files and tables, and back.

:func:`gvf.read_log` reads a log from a Parquet, CSV or ``.npz`` file, a Minari dataset, a table of
any library that shares its tables with Arrow, a dict of arrays or a list of episodes. A learner
takes the :class:`gvf.Log` as it takes an environment's stream: ``learner.fit(log)``.
"""

from gvf.log.log import Log, read_log
from gvf.log.write_log import record_log

__all__ = ["Log", "read_log", "record_log"]
