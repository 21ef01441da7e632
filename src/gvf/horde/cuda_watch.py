"""The watch of a horde whose weights are on a device: the same averages, by one kernel a look.

The errors of a million questions would take longer to send than to compute. So the averages stay on
the device, and only a report or a file brings them back. The kernel needs Triton.
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
    from gvf.horde.cuda import TorchEngine

_CHANGING = ("seen", "recent", "mean", "square", "secondary", "gradient")


class DeviceWatch(Watch):
    """The averages of the errors of all questions, on a device from the first look on.

    The arguments and attributes are those of :class:`gvf.horde.watch.Watch`. The attributes are
    brought up to date for a report or a file.
    """

    _there: dict[str, torch.Tensor] | None = None

    def look(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, columns: Arrays, steps: int, engine: TorchEngine, ratios: Floats, resting: Ints
    ) -> None:
        """Look at the newest L rows in order, with the present weights of an engine.

        The engine's own copies of the columns are read, and nothing waits for the device.
        """
        from gvf.horde.cuda_kernels import watch

        layout, sent = self._layout, engine.sent
        if self._there is None:
            self._there = {
                name: torch.as_tensor(getattr(self, name)).to(engine.device) for name in _CHANGING
            }
            kinds = {"group": torch.int64, "cumulant": torch.int64, "source": torch.int64}
            places = {**kinds, "scale": torch.float64}
            self._places = tuple(sent(getattr(layout, name), of) for name, of in places.items())
        engine.copy_new(columns, steps)
        rests = inverse = None
        if len(resting):
            rests = torch.zeros(len(layout), dtype=torch.bool, device=engine.device)
            rests.index_fill_(0, sent(resting, torch.int64), True)
        if len(self.secondary):
            x = columns["x"][newest_rows(columns, steps, ratios.shape[1])].astype(np.float64)
            rate, joined = self._joined(x)
            inverse = sent(rate * np.linalg.inv(joined), engine.dtype)
        averages = tuple(self._there.values())
        own = sent(ratios, torch.float64)
        watch(engine.weights, engine.columns, steps, own, rests, inverse, self._places, averages)

    def _bring_back(self) -> None:
        """Let the arrays here be those of the device."""
        if self._there is not None:
            for name, tensor in self._there.items():
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
        self._there = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change, with the places as their first axis."""
        self._bring_back()
        return super().arrays()

    def restore(self, arrays: Arrays) -> None:
        """Restore the arrays that :meth:`arrays` returned."""
        super().restore(arrays)
        self._there = None
