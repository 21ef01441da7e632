"""The local engine: threads of this process, since compiled loops release the interpreter's lock.

:mod:`gvf.jobs.threads` does the work. An event tells the workers to stop; the loops check it
about every 0.2 seconds, so an interrupt never waits long. A study says how long its tasks may take
to stop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from gvf.jobs import on_threads
from gvf_lab.study.base_study import BaseStudy, Stop, Task
from gvf_lab.study.engine import Result, perform


def results(
    tasks: Iterable[Task], workers: int | None = None, patience: float = BaseStudy.patience
) -> Generator[Result, None, None]:
    """Do tasks on threads and yield their results as they come.

    Closing the iterator, or an exception such as an interrupt, stops the workers and drops
    unfinished tasks. Workers have `patience` seconds to stop; a second interrupt leaves at once. If
    a task fails, the results of finished tasks come before its exception.

    Example:
        >>> from gvf_lab.study import Study
        >>> from gvf_lab.study.local_engine import results
        >>> study = Study("mine", "markov-chain", ("IR",), (0.5, 1), updates=20, runs=2)
        >>> sorted(result.task.run for result in results(study.tasks(), workers=2))
        [0, 0, 0, 1, 1, 1]
    """

    def do(task: Task, stop: Stop) -> Result:
        return perform(task, stop)

    return on_threads(do, tasks, workers, patience)
