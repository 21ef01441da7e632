"""The watch of a horde whose weights are on a device: the same averages, in products of PyTorch.

The errors of a million questions would take longer to send than to compute. So the averages stay on
the device, and only a report or a file brings them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gvf.common.arrays import Arrays, Floats
from gvf.horde.layout import Ints
from gvf.horde.watch import LONG_RUN, RECENT, SECONDARY, Watch

if TYPE_CHECKING:
    from gvf.horde.cuda import TorchEngine

_AVERAGES = ("recent", "mean", "square")
_CHANGING = ("seen", *_AVERAGES, "secondary", "gradient")


class DeviceWatch(Watch):
    """The averages of the errors of all questions, on a device from the first look on.

    The arguments and attributes are those of :class:`gvf.horde.watch.Watch`. The attributes are
    brought up to date for a report or a file.
    """

    _there: dict[str, torch.Tensor] | None = None

    def look(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        rows: Arrays,
        engine: TorchEngine,
        ratios: Floats,
        resting: Ints,
    ) -> None:
        """Look at L rows in order, with the present weights of an engine."""
        layout, count, sent = self._layout, ratios.shape[1], engine.sent
        if self._there is None:
            self._there = {
                name: torch.as_tensor(getattr(self, name)).to(engine.device) for name in _CHANGING
            }
            places = {name: getattr(layout, name) for name in ("cumulant", "source", "group")}
            self._places = {name: sent(of, torch.int64) for name, of in places.items()}
            self._scale = sent(layout.scale, torch.float64)
        own, (cumulant, source, group) = self._there, self._places.values()
        x = sent(np.concatenate([rows["x"], rows["x_next"]]), engine.dtype)
        values = engine.values(x).double()
        gamma = self._scale * sent(rows["continuation"], torch.float64)[:, source]
        y = sent(rows["cumulant"], torch.float64)[:, cumulant] - values[:count]
        y += gamma * values[count:]
        y *= sent(ratios.T, torch.float64)[:, group]
        usable = torch.isfinite(y * y).all(dim=0)
        usable[sent(resting, torch.int64)] = False
        y = torch.where(usable, y, 0.0)
        own["seen"] += count * usable
        for name, length, errors in (
            ("recent", RECENT, y),
            ("mean", LONG_RUN, y),
            ("square", LONG_RUN, y * y),
        ):
            kept = sent((1.0 - 1.0 / length) ** np.arange(count + 1), torch.float64)
            new = kept[-1] * own[name] + kept[:-1].flip(0) @ errors / length
            own[name] = torch.where(usable, new, own[name])
        if len(own["secondary"]):
            self._regress_there(rows["x"].astype(np.float64), y, usable, engine)

    def _regress_there(
        self, x: Floats, y: torch.Tensor, usable: torch.Tensor, engine: TorchEngine
    ) -> None:
        """Change h and m on the device, as :meth:`_regress` does here."""
        assert self._there is not None
        secondary, gradient = self._there["secondary"], self._there["gradient"]
        products = x @ x.T
        self.longest = max(self.longest, float(products.diagonal().max()))
        rate = SECONDARY / self.longest if self.longest > 0.0 else 0.0
        features = engine.sent(x, secondary.dtype)
        joined = engine.sent(np.eye(len(x)) + rate * np.tril(products, -1), torch.float64)
        residual = torch.linalg.solve(joined, y - (features @ secondary).double())
        residual = torch.where(usable, residual, 0.0)
        secondary += features.T @ (rate * residual).to(features.dtype)
        kept = (1.0 - 1.0 / RECENT) ** np.arange(len(x) + 1)
        gradient *= 1.0 - (1.0 - kept[-1]) * usable.to(features.dtype)
        share = engine.sent(kept[-2::-1, None] / RECENT, torch.float64)
        gradient += features.T @ (share * y).to(features.dtype)

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
