"""Studies: grids of methods and step sizes, run over many seeds."""

from gvf.study.method import METHODS, Method
from gvf.study.study import Study, Task, load
from gvf.study.task import Interrupted, Outcome, run_method, run_task
from gvf.study.variance import VarianceStudy, VarianceTask, run_variance

__all__ = [
    "METHODS",
    "Interrupted",
    "Method",
    "Outcome",
    "Study",
    "Task",
    "VarianceStudy",
    "VarianceTask",
    "load",
    "run_method",
    "run_task",
    "run_variance",
]
