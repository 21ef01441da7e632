"""The watch of a horde whose weights are on a device: the same averages, by one kernel a look.

The errors of a million questions would take longer to send than to compute. So the averages stay on
the device, and only a report or a file brings them back. The kernel needs Triton.

A look at few questions costs only time of the processor. So all that can be prepared once is kept
with the compiled kernel in a :class:`gvf.horde.cuda_kernels.Look`, and the ratios always go to the
same place of the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gvf.common.arrays import Arrays, Floats
from gvf.horde.layout import Ints
from gvf.horde.watch import Watch, newest_rows

if TYPE_CHECKING:
    from gvf.horde.cuda_kernels import Look
    from gvf.horde.cuda_weights import TorchWeights

_CHANGING = ("seen", "recent", "mean", "square", "secondary", "gradient")


class DeviceWatch(Watch):
    """The averages of the errors of all questions, on a device from the first look on.

    The arguments and attributes are those of :class:`gvf.horde.watch.Watch`. The attributes are
    brought up to date for a report or a file.
    """

    _averages_on_device: dict[str, torch.Tensor] | None = None
    _kernel: Look
    _ratios: torch.Tensor

    def look(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, columns: Arrays, steps: int, weights: TorchWeights, ratios: Floats, resting: Ints
    ) -> None:
        """Look at the newest L rows in order, with the present weights.

        The copies of the columns on the device are read, and nothing waits for the device.
        """
        weights.copy_new(columns, steps)
        if self._averages_on_device is None:
            self._begin(weights)
        layout, to_device = self._layout, weights.to_device
        rests = inverse = None
        if len(resting):
            rests = torch.zeros(len(layout), dtype=torch.bool, device=weights.device)
            rests.index_fill_(0, to_device(resting, torch.int64), True)
        if len(self.secondary):
            x = columns["x"][newest_rows(columns, steps, ratios.shape[1])].astype(np.float64)
            rate, joined = self._joined(x)
            inverse = to_device(rate * np.linalg.inv(joined), weights.dtype)
        if self._ratios.shape != ratios.shape:
            self._ratios = torch.empty(ratios.shape, dtype=torch.float64, device=weights.device)
        self._ratios.copy_(weights.pinned(ratios, torch.float64), non_blocking=True)
        self._kernel(steps, self._ratios, rests, inverse)

    def _begin(self, weights: TorchWeights) -> None:
        """Copy the averages to the device of the weights, and prepare the kernel."""
        from gvf.horde.cuda_kernels import Look

        averages = {
            name: torch.as_tensor(getattr(self, name)).to(weights.device) for name in _CHANGING
        }
        kinds = {"group": torch.int64, "cumulant": torch.int64, "source": torch.int64}
        places = {**kinds, "scale": torch.float64}
        layout = tuple(
            weights.to_device(getattr(self._layout, name), of) for name, of in places.items()
        )
        self._kernel = Look(weights.matrix, weights.columns, layout, tuple(averages.values()))
        self._ratios = torch.empty(0, 0, dtype=torch.float64, device=weights.device)
        self._averages_on_device = averages

    def _bring_back(self) -> None:
        """Let the arrays here be those of the device."""
        if self._averages_on_device is not None:
            for name, tensor in self._averages_on_device.items():
                getattr(self, name)[...] = tensor.cpu().numpy()

    def ude(self, smallest: Floats) -> Floats:
        """Return UDE at all places, float64[G]; nan if no row was looked at."""
        self._bring_back()
        return super().ude(smallest)

    def rupee(self) -> Floats | None:
        """Return RUPEE at all places, float64[G]; None if it was not wanted."""
        self._bring_back()
        return super().rupee()

    def moved(self, other: Watch, was: Ints, now: Ints) -> None:
        """Take over what another watch knows: that of its places `was` for the places `now`."""
        if isinstance(other, DeviceWatch):
            other._bring_back()
        self._bring_back()
        super().moved(other, was, now)
        self._averages_on_device = None

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change, with the places as their first axis."""
        self._bring_back()
        return super().state_dict()

    def load_state_dict(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`state_dict` returned."""
        super().load_state_dict(arrays)
        self._averages_on_device = None
