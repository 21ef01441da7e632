"""The engines: they change the weights of all questions by drawn rows.

:mod:`gvf.horde.dense` has many steps as a few matrix products, :mod:`gvf.horde.sparse` has compiled
loops over active features, and :mod:`gvf.horde.stepwise` takes any update.
"""

from __future__ import annotations

import os
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.horde.dense import DenseEngine
from gvf.horde.draws import Batch, Pool
from gvf.horde.layout import Layout
from gvf.horde.sparse import SparseEngine
from gvf.horde.stepwise import StepwiseEngine
from gvf.learner import SGD, TD, Update


class Engine(Protocol):
    """The interface of an engine. A place is a position in the layout's order."""

    def learn(self, columns: Arrays, batch: Batch, step_size: Floats | None) -> None:
        """Apply U updates.

        Args:
            columns: the columns of the rows: x, x_next, cumulant [n, C], continuation [n, 1 + Z].
            batch: the drawn rows and their weights.
            step_size: the step size of each update and group, [U, groups]; None if it is constant.
        """
        ...

    def predict(self, x: Array, /) -> Floats:
        """Return the values of features [m, ...] at all places, [m, G]."""
        ...

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return copies of the weights, and whatever else changes, at some places [g, ...]."""
        ...

    def put(self, places: Any, arrays: Arrays) -> None:
        """Replace what belongs to some places by what :meth:`take` returned."""
        ...


def engine_for(
    layout: Layout,
    update: Update,
    size: int,
    dense: bool,
    dtype: np.dtype[Any],
    batch_size: int,
    pool: Pool,
) -> tuple[Engine, int]:
    """Return the engine for an update and a form of features, and its best chunk."""
    if dtype != np.float64 and not is_plain(update):
        raise ValueError(f"dtype='float32' is for gvf.TD with SGD, got {update}")
    if is_plain(update):
        kind = DenseEngine if dense else SparseEngine
        # A default step size comes with each batch.
        step_size = cast("float | None", cast(TD, update).step_size) or 0.0
        made = kind(layout, step_size, size, dtype, pool)
        return made, kind.best_chunk(layout, batch_size)
    return StepwiseEngine(layout, update, size, pool), 16


def is_plain(update: Update) -> bool:
    """Return True for TD with SGD, whose steps are linear in the weights."""
    return type(update) is TD and type(update.optimiser) is SGD


def check_memory(
    layout: Layout, update: Update, size: int, dtype: np.dtype[Any], capacity: int
) -> None:
    """Raise MemoryError if the weights and the rings need more memory than the machine has."""
    weights = len(layout) * size * (1 + update.memories) * dtype.itemsize
    rings = layout.groups * capacity * 16
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if weights + rings > there:
        raise MemoryError(
            f"{len(layout)} questions with {size} features need {weights / 1e9:.3g} GB for their "
            f"weights and {rings / 1e9:.3g} GB for the ratios of {layout.groups} policies; this "
            f"machine has {there / 1e9:.3g} GB"
        )
