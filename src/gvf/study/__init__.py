"""Studies: grids of methods and step sizes, run over many seeds."""

from gvf.study.catalogue import CATALOGUE, get
from gvf.study.engine import Summary, run
from gvf.study.method import METHODS, Method
from gvf.study.racing import RacingStudy, RacingTask
from gvf.study.store import Store
from gvf.study.study import Study, Task
from gvf.study.task import Interrupted, Outcome, run_method, run_task
from gvf.study.toml import load
from gvf.study.variance import VarianceStudy, VarianceTask, run_variance

__all__ = [
    "CATALOGUE",
    "METHODS",
    "Interrupted",
    "Method",
    "Outcome",
    "RacingStudy",
    "RacingTask",
    "Store",
    "Study",
    "Summary",
    "Task",
    "VarianceStudy",
    "VarianceTask",
    "get",
    "load",
    "run",
    "run_method",
    "run_task",
    "run_variance",
]
