"""Doing cells: those that are not stored, on threads or on a Ray cluster.

Cells that are stored are read. The others are done, and each is stored as soon as it is done, by
the process that the user started. So an interrupt loses only the cells in progress.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from gvf.answers.cell_store import CellStore, references
from gvf.answers.cells import Arrays, Cell, compute
from gvf.answers.read_inputs import Material
from gvf.common import user_code
from gvf.common.part_names import known
from gvf.common.progress import progress_of
from gvf.jobs import ray_cluster
from gvf.jobs.threads import Stop, on_threads

ENGINES = ("local", "ray")
BATCH = 3.0
"""Seconds that a batch of cells should take on a cluster."""
PATIENCE = 5.0
"""Seconds that threads have to stop."""

Done = tuple[Cell, Arrays]


@dataclass(frozen=True)
class Engine:
    """The place where cells are done: threads of this process, or a Ray cluster.

    Attributes:
        name: "local" or "ray".
        workers: the number of cells done at once; by default one for each processor.
        address: the address of a Ray cluster; by default one is started on this machine.
        progress: False to show none. By default it is a bar in a terminal, and elsewhere a line now
            and then. True adds a line at the end there.
    """

    name: str = "local"
    workers: int | None = None
    address: str | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        known(self.name, ENGINES, "engine")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        if self.address is not None and self.name != "ray":
            raise ValueError("an address is that of a Ray cluster: choose the engine 'ray' with it")

    def run(
        self, cells: Sequence[Cell], material: Material, store: CellStore, title: str
    ) -> dict[Cell, Arrays]:
        """Return the arrays of all cells; do and store those that are missing."""
        results = {cell: arrays for cell in cells if (arrays := store.get(cell)) is not None}
        missing = [cell for cell in cells if cell not in results]
        if missing:
            done = (_on_ray if self.name == "ray" else _on_threads)(missing, material, self)
            with (
                closing(done),
                progress_of(title, len(cells), len(results), show=self.progress) as advance,
            ):
                for cell, arrays in done:
                    store.put(cell, arrays)
                    results[cell] = arrays
                    advance()
        return results


def _on_threads(
    cells: Iterable[Cell], material: Material, engine: Engine
) -> Generator[Done, None, None]:
    def do(cell: Cell, stop: Stop) -> Done:
        return cell, compute(cell, material, stop)

    return on_threads(do, cells, engine.workers, PATIENCE)


def _on_ray(
    cells: Iterable[Cell], material: Material, engine: Engine
) -> Generator[Done, None, None]:
    ray = ray_cluster.import_ray()
    sent = user_code.files(references(material.plan))
    content = pickle.dumps(material)
    ours = ray_cluster.connect(ray, engine.workers, engine.address)
    do = partial(_do_all, sent, ray.put(content))
    yield from ray_cluster.spread(ray, do, cells, engine.workers, ours, BATCH)


def _do_all(sent: user_code.Files, content: Any, cells: list[Cell]) -> list[Done]:
    ray = ray_cluster.import_ray()
    user_code.install(sent)
    material = _unpacked(ray.get(content))
    return [(cell, compute(cell, material)) for cell in cells]


@cache
def _unpacked(content: bytes) -> Material:
    return pickle.loads(content)
