"""Studies: grids of methods and step sizes, run over many seeds."""

from gvf import Method
from gvf.kernels import NAMED
from gvf_lab.study.base_study import BaseStudy, NamedStudy, Task
from gvf_lab.study.online_study import OnlineStudy
from gvf_lab.study.results import MethodResults, Results
from gvf_lab.study.run_study import Summary, run
from gvf_lab.study.store import Store
from gvf_lab.study.study import Study
from gvf_lab.study.study_file import load
from gvf_lab.study.task import Outcome, run_method, run_task
from gvf_lab.study.variance_study import VarianceStudy, run_variance

__all__ = [
    "BaseStudy",
    "MethodResults",
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
