r"""Plain TD with dense features on a device of PyTorch, most of all on a GPU.

The processor keeps all that a horde has, except the weights. The device has a copy of the window's
columns. A chunk sends it the new rows, the numbers of the drawn rows, and their weights. While the
device learns from a chunk, the processor prepares the next one. A seed draws the same rows on all
devices.

With the notation of :mod:`gvf.horde.dense_weights`, the errors of a stretch (the questions of a
group with the same continuation) over several steps are

    delta = (I - N)^-1 (c + Z W_0),    W_U = W_0 + X^T diag(w) delta,

where N is strictly lower triangular. :class:`TorchWeights` has this in products of PyTorch, for any
layout, batch size and precision. :class:`KernelWeights` has kernels for single precision, which
read and write the weights once for many steps; see :mod:`gvf.horde.cuda_kernels`. It also searches
the rows of :class:`gvf.corrections.IR` and :class:`gvf.corrections.BCIR`, which is most of the
processor's work otherwise.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.horde.group_draws import DrawnRows, GroupDraws
from gvf.horde.layout import Ints, Layout
from gvf.horde.weights import Weights

_ROWS = 128
"""The number of drawn rows of a group that are learned from together, if k is not larger."""
_DRAWN = 2**20
"""The number of rows drawn for a chunk, over all groups."""
_MOST_STEPS = 64
_SENT = 4_096
"""The number of rows of the window that are sent together."""
_ROOM = 2**28
"""The number of features, or of errors, of drawn rows that are in memory at a time."""
_AHEAD = 2
"""The number of chunks that may wait for the device."""


class TorchWeights(Weights):
    """The weights of all questions on a device, changed by products of PyTorch.

    Args:
        layout: the layout of the questions.
        step_size: the step size, if it is constant.
        size: the number of features.
        dtype: the type of the weights.
        device: the device.
    """

    padding = 1
    """The number of features is rounded up to a multiple of this, with features that are 0."""

    def __init__(
        self, layout: Layout, step_size: float, size: int, dtype: np.dtype[Any], device: str
    ) -> None:
        self._layout, self._step_size, self.size = layout, step_size, size
        self.device = torch.device(device)
        self.dtype = torch.float64 if dtype == np.float64 else torch.float32
        width = -(-size // self.padding) * self.padding
        self.matrix = torch.zeros(len(layout), width, dtype=self.dtype, device=self.device)
        self.columns: dict[str, torch.Tensor] = {}  # a copy of the window's
        self._copied = 0  # the number of transitions of the stream that have been copied
        self.rows = torch.empty(0, 0, 0, dtype=torch.int64)  # those of the last batch
        self._waiting: deque[torch.cuda.Event] = deque()
        self._stretches = layout.stretches
        self._cumulant = self._on_device(layout.cumulant)

    @staticmethod
    def best_updates(layout: Layout, batch_size: int) -> int:
        """Return the number of updates that are best done in one call."""
        return int(np.clip(_DRAWN // (layout.groups * batch_size), 1, _MOST_STEPS))

    def apply(self, columns: Arrays, drawn: DrawnRows, step_size: Floats | None) -> None:
        """Apply U updates; see :class:`gvf.horde.weights.Weights`."""
        self.copy_new(columns, drawn.steps)
        alpha = self._step_size if step_size is None else step_size[:, :, None]
        w = self.to_device(drawn.w * alpha, self.dtype)
        self.rows = self._rows_on_device(drawn)
        together = max(1, _ROWS // w.shape[2])
        for start in range(0, len(w), together):
            self._learn(self.rows[start : start + together], w[start : start + together])
        self._wait()

    def _rows_on_device(self, drawn: DrawnRows) -> torch.Tensor:
        """Return the drawn rows, int64[U, groups or 1, k]."""
        return self.to_device(drawn.rows, torch.int64)

    def _learn(self, rows: torch.Tensor, w: torch.Tensor) -> None:
        """Apply a few updates: rows [U, groups or 1, k], weights with the step size [U, groups, k].

        Stretches with as many questions each are learned together.
        """
        updates, _, k = rows.shape
        rows, w = (part.transpose(0, 1).reshape(-1, updates * k) for part in (rows, w))
        rows = rows.expand(len(w), -1)
        for count in np.unique(self._stretches.questions).tolist():
            every = max(1, _ROOM // (rows.shape[1] * max(count, self.matrix.shape[1])))
            alike = np.flatnonzero(self._stretches.questions == count)
            for start in range(0, len(alike), every):
                self._learn_together(alike[start : start + every], rows, w, k)

    def _learn_together(self, some: Ints, rows: torch.Tensor, w: torch.Tensor, k: int) -> None:
        """Apply updates to some stretches of q questions each: rows and weights [groups, R]."""
        first, count, group, scale, source = (part[some] for part in self._stretches)
        places = self._on_device(first[:, None] + np.arange(count[0]))
        of, column, factor = self._on_device(group), self._on_device(source), self._on_device(scale)
        rows, w = rows[of], w[of]
        continuation = self.columns["continuation"][rows, column[:, None]]
        gamma = factor.to(self.dtype)[:, None] * continuation
        x = self.columns["x"][rows]  # [s, R, size]
        z = gamma[:, :, None] * self.columns["x_next"][rows] - x
        stacked = self.matrix[places]  # [s, q, size]
        delta = self.columns["cumulant"][rows[:, :, None], self._cumulant[places][:, None]]
        delta = delta + z @ stacked.transpose(1, 2)  # [s, R, q]
        if rows.shape[1] > k:
            step = torch.arange(rows.shape[1], device=self.device) // k
            earlier = step[:, None] > step
            passed_on = (z @ x.transpose(1, 2)) * w[:, None] * earlier
            eye = torch.eye(rows.shape[1], dtype=self.dtype, device=self.device)
            delta = torch.linalg.solve_triangular(
                eye - passed_on, delta, upper=False, unitriangular=True
            )
        self.matrix[places] = stacked + (w[:, :, None] * delta).transpose(1, 2) @ x

    def predict(self, x: Array) -> Array:
        """Return the values of features [m, size] at all places, [m, G]."""
        return self._values(self.to_device(x, self.dtype)).cpu().numpy()

    def largest(self, x: Array) -> Array:
        """Return the largest absolute value of features [m, size] at each place, [G]."""
        return self._values(self.to_device(x, self.dtype)).abs().amax(dim=0).cpu().numpy()

    def _values(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values of features [m, size] at all places, [m, G], on the device."""
        return x @ self.matrix[:, : self.size].T

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return copies of the weights at some places, [g, size]."""
        return {"weights": self.matrix[self._on_device(places), : self.size].cpu().numpy()}

    def put(self, places: Any, arrays: Arrays) -> None:
        """Replace the weights at some places by those that :meth:`take` returned."""
        weights = self._on_device(arrays["weights"]).to(self.dtype)
        self.matrix[self._on_device(places), : self.size] = weights

    def _on_device(self, array: Any) -> torch.Tensor:
        """Return an array on the device."""
        return torch.tensor(np.asarray(array), device=self.device)

    def to_device(self, array: Array, dtype: torch.dtype) -> torch.Tensor:
        """Return an array on the device, without waiting for what the device does now."""
        return self.pinned(array, dtype).to(self.device, non_blocking=True)

    def pinned(self, array: Array, dtype: torch.dtype) -> torch.Tensor:
        """Return a copy of an array in memory from which a GPU reads without a wait."""
        on_gpu = self.device.type == "cuda"
        here = torch.empty(array.shape, dtype=dtype, pin_memory=on_gpu)
        np.copyto(here.numpy(), array, casting="same_kind")
        return here

    def copy_new(self, columns: Arrays, steps: int) -> None:
        """Copy the rows that are new after so many transitions; the t-th is in row t mod kept."""
        kept = len(columns["x"])
        if not self.columns:
            width = self.matrix.shape[1]
            for name, column in columns.items():
                wide = width if name in ("x", "x_next") else column.shape[1]
                self.columns[name] = self.matrix.new_zeros(kept, wide)
        for start in range(max(self._copied, steps - kept), steps, _SENT):
            rows = np.arange(start, min(start + _SENT, steps)) % kept
            at = self.to_device(rows, torch.int64)
            for name, column in columns.items():
                copy = self.columns[name][:, : column.shape[1]]
                copy[at] = self.to_device(column[rows], self.dtype)
        self._copied = steps

    def _wait(self) -> None:
        """Wait until few chunks are left to the device, or their rows would fill the memory."""
        if self.device.type == "cuda":
            end = torch.cuda.Event()
            end.record(torch.cuda.current_stream(self.device))
            self._waiting.append(end)
            if len(self._waiting) > _AHEAD:
                self._waiting.popleft().synchronize()


class KernelWeights(TorchWeights):
    """The same in single precision by kernels for a GPU, if a batch has at most 128 rows.

    Args:
        layout: the layout of the questions.
        step_size: the step size, if it is constant.
        size: the number of features.
        tf32: True to round the factors of products to TF32.
        device: the device.
    """

    padding = 64

    def __init__(
        self, layout: Layout, step_size: float, size: int, tf32: bool, device: str
    ) -> None:
        from gvf.horde.cuda_kernels import Kernels

        super().__init__(layout, step_size, size, np.dtype(np.float32), device)
        groups = max(1, _ROOM // (_ROWS * self.matrix.shape[1]))
        self._kernels = Kernels(self._stretches, layout.groups, groups, tf32, self.device)
        # Prefix sums of masses [groups, 1 + kept], which begin anew at 0.
        self._sums = torch.empty(0, dtype=torch.float64, device=self.device)
        self._summed = 0  # the number of transitions of the stream that they have
        self._draws: GroupDraws | None = None

    def mirror_masses(self, draws: GroupDraws, window_rows: int) -> bool:
        """Copy the masses of all rows, if their search can be deferred; return if it can."""
        if draws.can_defer:
            if not self._sums.numel():
                self._sums = self._sums.new_zeros(len(draws.rings), 1 + window_rows)
            self._draws = draws
            self._sum(draws)
        return draws.can_defer

    def _sum(self, draws: GroupDraws) -> None:
        """Continue the prefix sums with the masses that are new."""
        masses, steps = draws.masses, draws.steps
        n = masses.shape[1]
        if steps - self._summed > n:  # some have been replaced, so the sums begin anew
            self._sums.zero_()
            self._summed = steps - n
        for start in range(self._summed, steps, _SENT):
            slots = np.arange(start, min(start + _SENT, steps)) % n
            with torch.cuda.device(self.device):
                new = self.to_device(masses[:, slots], torch.float64)
                self._kernels.insert(self._sums, new, start)
        self._summed = steps

    def _rows_on_device(self, drawn: DrawnRows) -> torch.Tensor:
        if drawn.uniforms is None:
            return super()._rows_on_device(drawn)
        assert self._draws is not None
        self._sum(self._draws)
        uniforms = self.to_device(drawn.uniforms, torch.float64)
        times = self.to_device(drawn.times, torch.int64)
        with torch.cuda.device(self.device):
            return self._kernels.search(self._sums, uniforms, times, self._draws.masses.shape[1])

    def _learn(self, rows: torch.Tensor, w: torch.Tensor) -> None:
        if rows.shape[0] * rows.shape[2] > _ROWS:
            super()._learn(rows, w)
        else:
            with torch.cuda.device(self.device):
                self._kernels.learn(self.matrix, self.columns, self._cumulant, rows, w)
