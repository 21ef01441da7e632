"""The engines: they change the weights of all questions by drawn rows.

:mod:`gvf.horde.dense_weights` has many steps as a few matrix products,
:mod:`gvf.horde.active_weights` has compiled loops over active features, and
:mod:`gvf.horde.stepwise_weights` takes any update. :mod:`gvf.horde.cuda_weights` is for a GPU.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.horde.active_weights import SparseEngine
from gvf.horde.dense_weights import DenseEngine
from gvf.horde.device import Device
from gvf.horde.group_draws import Batch, GroupDraws, Pool
from gvf.horde.layout import Layout
from gvf.horde.stepwise_weights import StepwiseEngine
from gvf.horde.watch import Watch
from gvf.updates import SGD, TD, Update


class WeightEngine(Protocol):
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

    def follow(self, draws: GroupDraws, kept: int) -> bool:
        """Copy the masses of all rows, if this engine searches them itself; return if it does.

        Args:
            draws: the draws, before rows are inserted.
            kept: the number of rows in the columns.
        """
        ...

    def largest(self, x: Array) -> Floats:
        """Return the largest absolute value of features [m, ...] at each place, [G]."""
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
    device: Device,
) -> tuple[WeightEngine, int]:
    """Return the engine for an update and a form of features, and its best chunk."""
    if not device.is_cpu and not (is_plain(update) and dense):
        raise ValueError(
            f"device={device.name!r} is for gvf.updates.TD with SGD and dense features, got "
            f"{update} and "
            f"{'dense' if dense else 'active'} features"
        )
    if is_plain(update):
        # A default step size comes with each batch.
        step_size = cast("float | None", cast(TD, update).step_size) or 0.0
        if not device.is_cpu:
            cuda = import_module("gvf.horde.cuda_weights")  # which needs PyTorch
            if dtype == np.float64:
                engine = cuda.TorchEngine(layout, step_size, size, dtype, device.name)
            else:
                engine = cuda.KernelEngine(layout, step_size, size, device.tf32, device.name)
            return engine, engine.best_chunk(layout, batch_size)
        kind = DenseEngine if dense else SparseEngine
        engine = kind(layout, step_size, size, dtype, pool)
        return engine, kind.best_chunk(layout, batch_size)
    return StepwiseEngine(layout, update, size, pool), 16


def watch_for(device: Device) -> type[Watch]:
    """Return the class of the watch: that of the device, which has the weights."""
    if device.is_cpu:
        return Watch
    return import_module("gvf.horde.cuda_watch").DeviceWatch  # which needs PyTorch


def is_plain(update: Update) -> bool:
    """Return True for TD with SGD, whose steps are linear in the weights."""
    return type(update) is TD and type(update.optimiser) is SGD


def check_memory(
    layout: Layout,
    arrays: int,
    size: int,
    dtype: np.dtype[Any],
    capacity: int,
    device: Device,
) -> None:
    """Raise MemoryError if the machine has too little memory, or its GPU.

    Args:
        layout: the layout of the questions.
        arrays: the number of arrays of the size of the weights.
        size: the number of features.
        dtype: the type of the weights.
        capacity: the number of transitions in the window, n.
        device: the device that has these arrays.
    """
    weights = len(layout) * size * arrays * dtype.itemsize
    rings = layout.groups * capacity * 16
    needs = f"{len(layout):,} questions with {size:,} features need {_gigabytes(weights)} for "
    if not device.is_cpu:
        if weights > device.memory:
            raise MemoryError(f"{needs}their weights; the GPU has {_gigabytes(device.memory)}")
        weights = 0
    if not hasattr(os, "sysconf"):  # Windows does not say how much it has
        return
    memory_here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if weights + rings > memory_here:
        raise MemoryError(
            f"{needs}their weights and {_gigabytes(rings)} for the ratios of {layout.groups:,} "
            f"policies; this machine has {_gigabytes(memory_here)}"
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
