"""The device of a horde: the processor, or a GPU, with the precision of its products."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, NamedTuple

import numpy as np

from gvf.common.checks import brief, check_choice

Precision = Literal["float64", "float32", "tf32"]


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
