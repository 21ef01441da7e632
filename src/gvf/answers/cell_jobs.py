"""The cells of an answer as jobs (:mod:`gvf.jobs`): what each depends on, where they are done.

Results lie in the folder ``cells`` of the answer. The key of a cell has everything that its result
depends on: the log's contents, the parts of the plan that matter to it, the files that these parts
name, and the functions of the user's own that they use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from gvf.answers.cells import Cell, compute, methods, order_of
from gvf.answers.plan import Plan, texts
from gvf.answers.read_inputs import Material
from gvf.common import user_code
from gvf.common.part_names import is_reference
from gvf.jobs import Job, Place, Stop, Store, run_jobs
from gvf.jobs.store import Arrays


@dataclass(frozen=True)
class CellJobs:
    """The cells of an answer, to be done at a place and stored.

    Attributes:
        material: the material of the answer.
        store: the store of what is done.
        place: the place where cells are done.
        progress: False to show none; see :func:`gvf.jobs.run_jobs`.
    """

    material: Material
    store: Store
    place: Place
    progress: bool | None = None

    def run(self, cells: Iterable[Cell], title: str) -> dict[Cell, Arrays]:
        """Return the arrays of all cells; do and store those that are missing."""
        jobs = [self.job(cell) for cell in cells]
        arrays = run_jobs(
            jobs,
            partial(_compute, self.material),
            place=self.place,
            store=self.store,
            title=title,
            progress=self.progress,
            references=_references(self.material.plan),
        )
        return {job.work: arrays[job] for job in jobs}

    def job(self, cell: Cell) -> Job:
        """Return a cell as a job, with all that its result depends on."""
        plan = self.material.plan
        asked = {k: v for k, v in vars(plan.questions[cell.question]).items() if k != "name"}
        method = methods(self.material)[cell.method]
        parts: dict[str, Any] = {"question": _part(plan, asked), "method": cell.method}
        if method is not None:
            parts["method"] = _part(plan, method.plain())
        key = {**self._shared, **vars(cell), **parts}
        if cell.kind == "judge":
            key |= {"step_sizes": plan.step_sizes, "folds": plan.folds}
        return Job(f"{cell.kind}-{cell.method}-{cell.part}", key, cell)

    @cached_property
    def _shared(self) -> dict[str, Any]:
        """The entries of keys that all cells have."""
        material, plan = self.material, self.material.plan
        return {
            "log": material.digest,
            "behaviour": _part(plan, plan.behaviour),
            "features": _part(plan, plan.features),
            "learn": {**plan.learn, "order": order_of(material)},
            "seed": plan.seed,
        }


def _compute(material: Material, job: Job, stop: Stop) -> Arrays:
    return compute(job.work, material, stop)


def _part(plan: Plan, named: Any) -> list[Any]:
    """Return what tells a part of a plan from others: its text, its files, and the code it uses."""
    files = sorted({text for text in texts(named) if (plan.folder / text).is_file()})
    digests = {
        name: hashlib.sha256((plan.folder / name).read_bytes()).hexdigest() for name in files
    }
    return [named, digests, user_code.digest(_references_in(named))]


def _references(plan: Plan) -> list[str]:
    """Return the references of a plan to code of the user's own."""
    asked = [
        [question.policy, question.cumulant, question.continuation, question.interest]
        for question in plan.questions
    ]
    return _references_in([plan.features, plan.behaviour, plan.methods, asked])


def _references_in(named: Any) -> list[str]:
    names = {text.partition("(")[0] for text in texts(named)}
    return sorted(name for name in names if is_reference(name))
