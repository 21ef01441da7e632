"""Studies: grids of methods and step sizes, run over many seeds."""

from gvf.study.base import BaseStudy, Interrupted, NamedStudy, Task
from gvf.study.engine import Summary, run
from gvf.study.method import NAMED, Method
from gvf.study.online import OnlineStudy
from gvf.study.results import MethodResults, Results
from gvf.study.store import Store
from gvf.study.study import Study
from gvf.study.task import Outcome, run_method, run_task
from gvf.study.toml import load
from gvf.study.variance import VarianceStudy, run_variance

__all__ = [
    "BaseStudy",
    "MethodResults",
    "Interrupted",
    "Method",
    "NAMED",
    "NamedStudy",
    "OnlineStudy",
    "Outcome",
    "Results",
    "Store",
    "Study",
    "Summary",
    "Task",
    "VarianceStudy",
    "load",
    "run",
    "run_method",
    "run_task",
    "run_variance",
]
