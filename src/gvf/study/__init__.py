"""Studies: grids of methods and step sizes, run over many seeds."""

from gvf.study.method import METHODS, Method
from gvf.study.study import Study, Task, load
from gvf.study.task import Outcome, run_method, run_task

__all__ = ["METHODS", "Method", "Outcome", "Study", "Task", "load", "run_method", "run_task"]
