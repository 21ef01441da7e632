"""The choice of linear weights by update, features, precision and device, which is made once.

Plain TD with dense features has matrix products, on the processor or on a GPU; with active features
it has loops over these. Any other update goes question by question. A GPU has a watch of its own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from gvf.common.checks import brief, check_choice
from gvf.horde.active_weights import ActiveWeights
from gvf.horde.dense_weights import DenseWeights
from gvf.horde.layout import Layout
from gvf.horde.shard import ShardOptions
from gvf.horde.stepwise_weights import StepwiseWeights
from gvf.horde.watch import Watch
from gvf.horde.weights import Weights
from gvf.updates import SGD, TD, Update

Precision = Literal["float64", "float32", "tf32"]
_STEPWISE_STEPS = 16
"""The number of updates in a call of :class:`gvf.horde.stepwise_weights.StepwiseWeights`."""


class Device(NamedTuple):
    """A device by its name in PyTorch."""

    name: str = "cpu"
    tf32: bool = False
    """True if products may be rounded to TF32."""

    @property
    def is_cpu(self) -> bool:
        """True for the processor."""
        return self.name == "cpu"

    @property
    def memory(self) -> int:
        """The number of bytes of a GPU's memory."""
        return import_module("torch").cuda.get_device_properties(self.name).total_memory


def as_device(name: str, precision: Precision) -> tuple[Device, np.dtype[np.floating]]:
    """Return a device and the type of its weights; raise ValueError if it is not there."""
    check_choice("dtype", precision, Precision)
    if not isinstance(name, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:1', got {brief(name)}")
    tf32 = precision == "tf32"
    dtype = np.dtype(np.float64 if precision == "float64" else np.float32)
    if name == "cpu":
        if tf32:
            raise ValueError("dtype='tf32' is for device='cuda'; use dtype='float32'")
        return Device(), dtype
    for module, called in (("torch", "PyTorch"), ("triton", "Triton")):
        if find_spec(module) is None:
            raise ValueError(f"device={name!r} needs {called}, which is not installed here")
    cuda = import_module("torch").cuda
    count = cuda.device_count() if cuda.is_available() else 0
    number = int(name.partition(":")[2] or 0)
    if number >= count:
        gpus = f"only {count}" if count else "no GPU"
        raise ValueError(f"device={name!r}: PyTorch finds {gpus} here; use device='cpu'")
    return Device(name, tf32), dtype


def is_plain(update: Update) -> bool:
    """Return True for TD with SGD, whose steps are linear in the weights."""
    return type(update) is TD and type(update.optimiser) is SGD


@dataclass(frozen=True)
class LinearWeights:
    """The choice of weights for features that do not learn.

    Args:
        update: the learning rule.
        size: the number of features.
        dtype: the type of the weights.
        device: the device that has the weights.
        rupee: True to watch RUPEE.
    """

    update: Update
    size: int
    dtype: np.dtype[Any]
    device: Device
    rupee: bool

    @property
    def first_size(self) -> float:
        """The size that predictions may have before anything is learned: 0."""
        return 0.0

    @property
    def step_size_rule(self) -> Update | None:
        """The update, if it has no step size of its own."""
        return self.update if self.update.chooses_step_size else None

    @property
    def on_device(self) -> bool:
        """True if predictions stay on a GPU."""
        return not self.device.is_cpu

    def new_watch(self, layout: Layout, rows: int) -> Watch:
        """Make a watch of the device that has the weights."""
        kind = Watch
        if self.on_device:
            kind = import_module("gvf.horde.cuda_watch").DeviceWatch  # which needs PyTorch
        return kind(layout, rows, self.size if self.rupee else 0, self.dtype)

    def new_weights(
        self, layout: Layout, dense: bool, options: ShardOptions, steps_per_call: int
    ) -> Weights:
        """Make weights that are 0, for dense or for active features."""
        plain, size, dtype = is_plain(self.update), self.size, self.dtype
        if self.on_device and not (plain and dense):
            raise ValueError(
                f"device={self.device.name!r} is for gvf.updates.TD with SGD and dense features, "
                f"got {self.update} and {'dense' if dense else 'active'} features"
            )
        if not plain:
            return StepwiseWeights(layout, self.update, size, options.pool)
        # A default step size comes with each batch.
        step_size = cast("float | None", cast(TD, self.update).step_size) or 0.0
        if self.on_device:
            cuda = import_module("gvf.horde.cuda_weights")  # which needs PyTorch
            if dtype == np.float64:
                return cuda.TorchWeights(layout, step_size, size, dtype, self.device.name)
            device = self.device
            return cuda.KernelWeights(layout, step_size, size, device.tf32, device.name)
        if not dense:
            return ActiveWeights(layout, step_size, size, dtype, options.pool)
        updates = -(-steps_per_call // options.update_every)  # so a call is one product
        return DenseWeights(layout, step_size, size, dtype, options.pool, updates)

    def best_steps_per_call(self, layout: Layout, dense: bool, options: ShardOptions) -> int:
        """Return the number of steps that are best taken in one call."""
        updates = _STEPWISE_STEPS
        if is_plain(self.update):
            kind: Any = DenseWeights if dense else ActiveWeights
            if self.on_device:
                kind = import_module("gvf.horde.cuda_weights").TorchWeights
            updates = kind.best_updates(layout, options.batch_size)
        return updates * options.update_every

    def check_memory(self, layout: Layout, window: int) -> None:
        """Raise MemoryError if the machine has too little memory, or its GPU."""
        arrays = 1 + self.update.memories + 2 * self.rupee
        weights = len(layout) * self.size * arrays * self.dtype.itemsize
        rings = layout.groups * window * 16
        needs = f"{len(layout):,} questions with {self.size:,} features need "
        needs += f"{_gigabytes(weights)} for "
        if self.on_device:
            if weights > self.device.memory:
                has = _gigabytes(self.device.memory)
                raise MemoryError(f"{needs}their weights; the GPU has {has}")
            weights = 0
        if not hasattr(os, "sysconf"):  # Windows does not say how much it has
            return
        memory_here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if weights + rings > memory_here:
            raise MemoryError(
                f"{needs}their weights and {_gigabytes(rings)} for the ratios of "
                f"{layout.groups:,} policies; this machine has {_gigabytes(memory_here)}"
            )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
