r"""Kernels in Triton: several steps of plain TD that read and write the weights once.

This module needs Triton, so only :class:`gvf.horde.cuda_weights.KernelWeights` imports it.

The R rows that a few updates drew for a group are learned from together, in two halves. With the
inverses ``T_1`` and ``T_2`` of each half and the products L of the second half's rows with the
first's, the errors of :mod:`gvf.horde.cuda_weights` are

    delta_1 = T_1 (c_1 + Z_1 W_0),    delta_2 = T_2 (c_2 + Z_2 W_0 + L delta_1).

``_gather`` copies the features of drawn rows. ``_halves`` makes T_1, T_2 and L for each stretch.
``_learn`` changes the weights of a *tile*, which is at most TQ neighbouring questions of a stretch.
An inverse is a product by doubling, ``(I - N)^-1 = (I + N) (I + N^2) (I + N^4) ...``, which ends
because N connects a step only with earlier ones.

Weights are [G, D], a question a row, so a question that has diverged does not touch another. D is a
multiple of 64. R is a power of 2; rows beyond those drawn have weight 0.

``_watch`` is a look of :mod:`gvf.horde.watch`: one kernel, which reads the weights once.

``_insert`` and ``_search`` keep and search prefix sums of masses, as
:mod:`gvf.sampling.prefix_sums` does. A ring of sums has one number more than the columns have rows,
so a chunk can search the window as it was at each of its steps: the sum before the oldest row of
the first step is still there.
"""

# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportArgumentType=false, reportIndexIssue=false, reportCallIssue=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from gvf.horde.watch import LONG_RUN, RECENT

_FADING = tuple((1.0 / length, math.log1p(-1.0 / length)) for length in (RECENT, LONG_RUN))
"""The share of a new number in an average, and the logarithm of what a step keeps of it."""


@triton.jit(do_not_specialize=["first", "count"])
def _insert(sums, masses, first, length, count):
    """Continue the sums [groups, length] with masses [groups, count], from position `first` on."""
    g = tl.program_id(0).to(tl.int64)
    ring = sums + g * length
    total = tl.load(ring + first - 1, mask=first > 0, other=0.0)
    for i in range(count):
        at = (first + i) % length
        # One after the other, so that a mass of 0 leaves the sum as it is.
        total = tl.where(at == 0, 0.0, total) + tl.load(masses + g * count + i)
        tl.store(ring + at, total)


@triton.jit(do_not_specialize=["n", "count"])
def _search(
    sums, uniforms, times, rows, length, n, groups, k, count,
    ROUNDS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the row of the first sum greater than a share of the mass, for each of U k numbers."""
    g, lane = tl.program_id(0).to(tl.int64), tl.program_id(1) * LANES + tl.arange(0, LANES)
    u, here, ring = lane // k, lane < count, sums + g * length
    time = tl.load(times + u, mask=here, other=0)
    newest = time % length
    oldest = newest + 1 - tl.minimum(time + 1, n)
    oldest = tl.where(oldest < 0, oldest + length, oldest)
    parted = oldest > newest  # the window goes on at 0
    before = tl.load(ring + oldest - 1, mask=oldest > 0, other=0.0)
    old = tl.where(parted, tl.load(ring + length - 1) - before, 0.0)
    base = tl.where(parted, 0.0, before)
    new = tl.load(ring + newest) - base
    at = (u * groups + g) * k + lane % k
    x = tl.load(uniforms + at, mask=here, other=0.0) * (old + new)
    in_old = parted & ((x < old) | (new <= 0.0))
    low = tl.where(in_old | (oldest <= newest), oldest, 0)
    high = tl.where(in_old, length - 1, newest)
    # x may round up to the end of a part; this keeps it below.
    end = tl.load(ring + high)
    target = tl.where(in_old, before + x, base + (x - old))
    target = tl.minimum(target, end - end * 2.220446049250313e-16)
    for _ in range(ROUNDS):
        middle = (low + high) // 2
        right = (tl.load(ring + middle) <= target) & (low < high)
        low = tl.where(right, middle + 1, low)
        high = tl.where(right, high, middle)
    age = (newest - low + length) % length
    tl.store(rows + at, (time - age) % (length - 1), mask=here)


@triton.jit(do_not_specialize=["count"])
def _gather(
    rows, w, x, x_next, slots, weight, near, far, turned,
    first, row_stride, group_stride, w_stride, k, count,
    D: tl.constexpr, R: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Copy drawn rows: near and far [groups, R, D], turned [groups, D, R]."""
    p, d0 = tl.program_id(0).to(tl.int64), tl.program_id(1) * BD
    r, d = tl.arange(0, R), d0 + tl.arange(0, BD)
    g, u, j, drawn = first + p, r // k, r % k, r < count
    slot = tl.load(rows + u * row_stride + g * group_stride + j, mask=drawn, other=0)
    if d0 == 0:
        tl.store(slots + p * R + r, slot)
        own_weights = tl.load(w + u * w_stride + g * k + j, mask=drawn, other=0.0)
        tl.store(weight + p * R + r, own_weights)
    level = tl.load(x + slot[:, None] * D + d[None, :])
    tl.store(near + p * R * D + r[:, None] * D + d[None, :], level)
    tl.store(turned + p * R * D + d[:, None] * R + r[None, :], tl.trans(level))
    level = tl.load(x_next + slot[:, None] * D + d[None, :])
    tl.store(far + p * R * D + r[:, None] * D + d[None, :], level)


@triton.jit
def _halves(
    group, scale, source, slots, weight, near, far, continuation, out,
    first_stretch, first_group, sources, k,
    D: tl.constexpr, H: tl.constexpr, BD: tl.constexpr, DOUBLINGS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Write T_1, T_2 and L of a stretch, out [stretches, 3, H, H]."""
    s, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    p = tl.load(group + first_stretch + s) - first_group
    i = tl.arange(0, H)
    row = tl.where(which == 0, 0, H) + i
    column = tl.where(which == 1, H, 0) + i
    slot = tl.load(slots + p * 2 * H + row)
    gamma = tl.load(scale + first_stretch + s) * tl.load(
        continuation + slot * sources + tl.load(source + first_stretch + s)
    )
    total = tl.zeros((H, H), tl.float32)
    base = p * 2 * H * D
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        x = tl.load(near + base + row[:, None] * D + d[None, :])
        x_next = tl.load(far + base + row[:, None] * D + d[None, :])
        y = tl.load(near + base + column[:, None] * D + d[None, :])
        z = gamma[:, None] * x_next - x
        total = tl.dot(z, tl.trans(y), total, input_precision=PRECISION)
    total = total * tl.load(weight + p * 2 * H + column)[None, :]
    # With a batch size that does not divide H, a step may have rows in both halves.
    N = tl.where(row[:, None] // k > column[None, :] // k, total, 0.0)
    at = out + (s * 3 + which) * H * H + i[:, None] * H + i[None, :]
    if which == 2:
        tl.store(at, N)
    else:
        T = tl.where(i[:, None] == i[None, :], 1.0, 0.0) + N
        for _ in range(DOUBLINGS):
            N = tl.dot(N, N, input_precision=PRECISION)
            T = tl.dot(T, N, T, input_precision=PRECISION)
        tl.store(at, T)


@triton.jit
def _learn(
    stretch, first, count, group, scale, source, cumulant,
    slots, weight, near, far, turned, inverses, continuation, cumulants, weights,
    first_tile, first_stretch, first_group, sources, signals,
    D: tl.constexpr, H: tl.constexpr, TQ: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Change the weights of a tile by all rows."""
    tile = first_tile + tl.program_id(0)
    s = tl.load(stretch + tile)
    p = tl.load(group + s) - first_group
    place = tl.load(first + tile)
    i, q = tl.arange(0, H), tl.arange(0, TQ)
    here = q < tl.load(count + tile)
    at_1 = slots + p * 2 * H + i
    slot_1, slot_2 = tl.load(at_1), tl.load(at_1 + H)
    factor, column = tl.load(scale + s), tl.load(source + s)
    gamma_1 = factor * tl.load(continuation + slot_1 * sources + column)
    gamma_2 = factor * tl.load(continuation + slot_2 * sources + column)
    error_1 = tl.zeros((TQ, H), tl.float32)
    error_2 = tl.zeros((TQ, H), tl.float32)
    base, first_weight = p * 2 * H * D, weights + place * D
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        w = tl.load(first_weight + q[:, None] * D + d[None, :], mask=here[:, None], other=0.0)
        at = base + i[:, None] * D + d[None, :]
        z = gamma_1[:, None] * tl.load(far + at) - tl.load(near + at)
        error_1 = tl.dot(w, tl.trans(z), error_1, input_precision=PRECISION)
        at += H * D
        z = gamma_2[:, None] * tl.load(far + at) - tl.load(near + at)
        error_2 = tl.dot(w, tl.trans(z), error_2, input_precision=PRECISION)
    signal = tl.load(cumulant + place + q, mask=here, other=0)
    among = here[:, None]
    error_1 += tl.load(cumulants + slot_1[None, :] * signals + signal[:, None], mask=among, other=0)
    error_2 += tl.load(cumulants + slot_2[None, :] * signals + signal[:, None], mask=among, other=0)
    inverse = inverses + (s - first_stretch) * 3 * H * H + i[:, None] * H + i[None, :]
    delta_1 = tl.dot(error_1, tl.trans(tl.load(inverse)), input_precision=PRECISION)
    passed_on = tl.trans(tl.load(inverse + 2 * H * H))
    error_2 = tl.dot(delta_1, passed_on, error_2, input_precision=PRECISION)
    delta_2 = tl.dot(error_2, tl.trans(tl.load(inverse + H * H)), input_precision=PRECISION)
    at_w = weight + p * 2 * H + i
    delta_1 *= tl.load(at_w)[None, :]
    delta_2 *= tl.load(at_w + H)[None, :]
    for d0 in range(0, D, BE):
        d = d0 + tl.arange(0, BE)
        at = first_weight + q[:, None] * D + d[None, :]
        w = tl.load(at, mask=here[:, None], other=0.0)
        x = turned + base + d[:, None] * (2 * H) + i[None, :]
        w = tl.dot(delta_1, tl.trans(tl.load(x)), w, input_precision=PRECISION)
        w = tl.dot(delta_2, tl.trans(tl.load(x + H)), w, input_precision=PRECISION)
        tl.store(at, w, mask=here[:, None])


@triton.jit(do_not_specialize=["start", "count"])
def _watch(
    weights, x, x_next, cumulants, continuation, group, cumulant, source, scale,
    seen, recent, mean, square, secondary, gradient, rows, places, signals, sources,
    ratios, resting, inverse, start, count,
    D: tl.constexpr, SIZE: tl.constexpr, L: tl.constexpr, TQ: tl.constexpr, BD: tl.constexpr,
    PRECISION: tl.constexpr, FADING: tl.constexpr,
):  # fmt: skip
    """Change the averages of a tile of places by new rows, and h and m if there is an inverse."""
    g, i = tl.program_id(0).to(tl.int64) * TQ + tl.arange(0, TQ), tl.arange(0, L)
    here, new = g < places, i < count
    slot = ((start + i) % rows).to(tl.int64)
    T: tl.constexpr = weights.dtype.element_ty
    # States and next states take turns, since two products would wait for the weights twice.
    j = tl.arange(0, 2 * L)
    pair = tl.where(j % 2 == 0, x, x_next) + ((start + j // 2) % rows).to(tl.int64) * D
    values = tl.zeros((TQ, 2 * L), T)
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        inside = (d < D)[None, :]
        w = tl.load(weights + g[:, None] * D + d[None, :], mask=here[:, None] & inside, other=0.0)
        level = tl.load(pair[:, None] + d[None, :], mask=inside, other=0.0)
        values = tl.dot(w, tl.trans(level), values, PRECISION, out_dtype=T)
    near, far = tl.split(tl.reshape(values, (TQ, L, 2)))
    column = tl.load(source + g, mask=here, other=0)
    gamma = tl.load(scale + g, mask=here, other=0.0)[:, None] * tl.load(
        continuation + slot[None, :] * sources + column[:, None]
    )
    signal = tl.load(cumulant + g, mask=here, other=0)
    y = tl.load(cumulants + slot[None, :] * signals + signal[:, None]).to(tl.float64)
    y += gamma * far - near
    question_places = tl.load(group + g, mask=here, other=0)[:, None] * count + i[None, :]
    y *= tl.load(ratios + question_places, mask=new[None, :], other=0.0)
    y = tl.where(new[None, :], y, 0.0)
    ok = here & (tl.max(tl.where(y * y < float("inf"), 0, 1), 1) == 0)
    if resting is not None:
        ok = ok & (tl.load(resting + g, mask=here, other=1) == 0)
    age, length = (count - 1 - i).to(tl.float64), count.to(tl.float64)
    fast, kept = tl.exp(age * FADING[0][1])[None, :] * FADING[0][0], tl.exp(length * FADING[0][1])
    slow, long = tl.exp(age * FADING[1][1])[None, :] * FADING[1][0], tl.exp(length * FADING[1][1])
    tl.store(seen + g, tl.load(seen + g, mask=ok, other=0) + count, mask=ok)
    average = tl.load(recent + g, mask=ok, other=0.0) * kept
    tl.store(recent + g, average + tl.sum(fast * y, 1), mask=ok)
    average = tl.load(mean + g, mask=ok, other=0.0) * long
    tl.store(mean + g, average + tl.sum(slow * y, 1), mask=ok)
    average = tl.load(square + g, mask=ok, other=0.0) * long
    tl.store(square + g, average + tl.sum(slow * y * y, 1), mask=ok)
    if inverse is not None:
        left, share, newer = y.to(T), (fast * y).to(T), new[:, None]  # 0 times infinity is no 0
        for d0 in range(0, SIZE, BD):
            d = d0 + tl.arange(0, BD)
            inside = (d < SIZE)[None, :]
            at = d.to(tl.int64)[None, :] * places + g[:, None]
            h = tl.load(secondary + at, mask=here[:, None] & inside, other=0.0)
            level = tl.load(x + slot[:, None] * D + d[None, :], mask=inside & newer, other=0.0)
            left = tl.dot(-h, tl.trans(level), left, PRECISION, out_dtype=T)
        square_mask = new[:, None] & new[None, :]
        turned = tl.load(inverse + i[None, :] * count + i[:, None], mask=square_mask, other=0.0)
        left = tl.dot(left, turned, None, PRECISION, out_dtype=T)
        for d0 in range(0, SIZE, BD):
            d = d0 + tl.arange(0, BD)
            inside = (d < SIZE)[None, :]
            at, among = d.to(tl.int64)[None, :] * places + g[:, None], ok[:, None] & inside
            level = tl.load(x + slot[:, None] * D + d[None, :], mask=inside & newer, other=0.0)
            h = tl.load(secondary + at, mask=among, other=0.0)
            tl.store(secondary + at, tl.dot(left, level, h, PRECISION, out_dtype=T), mask=among)
            m = tl.load(gradient + at, mask=among, other=0.0) * kept.to(T)
            tl.store(gradient + at, tl.dot(share, level, m, PRECISION, out_dtype=T), mask=among)


class Look:
    """The kernel of a look, with the arrays that are the same for every look.

    Triton derives the compiled kernel from all arguments anew at each launch, which takes three
    times as long as the launch itself. The compiled kernel depends only on the number of rows and
    on which arguments are None, so it is kept for each of these cases.

    Args:
        weights: the weights [G, D].
        columns: the columns of the window.
        places: group, cumulant, source and scale at each place, [G].
        averages: seen, recent, mean, square, secondary and gradient of the watch.
    """

    def __init__(
        self,
        weights: torch.Tensor,
        columns: dict[str, torch.Tensor],
        places: tuple[torch.Tensor, ...],
        averages: tuple[torch.Tensor, ...],
    ) -> None:
        self._rows, sources = columns["continuation"].shape
        self._weights, self._grid = weights, (triton.cdiv(len(weights), 64), 1, 1)
        self._arguments = (
            weights, columns["x"], columns["x_next"], columns["cumulant"], columns["continuation"],
            *places, *averages, self._rows, len(weights), columns["cumulant"].shape[1], sources,
        )  # fmt: skip
        self._sizes = weights.shape[1], len(averages[-1])
        self._compiled: dict[tuple[int, bool, bool], Any] = {}

    def __call__(
        self,
        steps: int,
        ratios: torch.Tensor,
        resting: torch.Tensor | None,
        inverse: torch.Tensor | None,
    ) -> None:
        """Look at the newest L rows.

        Args:
            steps: the number of transitions observed so far; the t-th is in row t mod n.
            ratios: the ratios of all groups, float64[groups, L].
            resting: True for the places that are left out, bool[G]; None if there are none.
            inverse: the matrix [L, L] from errors to changes of h; None if RUPEE is not wanted.
        """
        count = ratios.shape[1]
        tile = max(16, 1 << (count - 1).bit_length()), 64, 32
        arguments = (
            *self._arguments, ratios, resting, inverse, (steps - count) % self._rows, count,
            *self._sizes, *tile, "tf32x3", _FADING,
        )  # fmt: skip
        case = tile[0], resting is None, inverse is None
        with torch.cuda.device_of(self._weights):
            compiled = self._compiled.get(case)
            if compiled is None:  # always so in the interpreter, which compiles nothing
                compiled = _watch[self._grid](*arguments, num_warps=4, num_stages=3)
                self._compiled[case] = compiled
            else:
                compiled[self._grid](*arguments)


class Kernels:
    """The kernels with the tables that they read.

    Args:
        stretches: the stretches of the layout, :class:`gvf.horde.layout.Stretches`.
        groups: the number of groups.
        together: the largest number of groups whose drawn rows are in memory at a time.
        tf32: True to round the factors of products to TF32; otherwise each product is made of three
            such products, and has the accuracy of float32.
        device: the device.
    """

    def __init__(
        self, stretches: Any, groups: int, together: int, tf32: bool, device: torch.device
    ) -> None:
        self.precision = "tf32" if tf32 else "tf32x3"
        # Found by trying, with 250 questions a stretch and 256 features on an H200.
        most, self.warps, self.step = (128, 8, 64) if tf32 else (64, 4, 32)
        self.width = int(np.clip(triton.next_power_of_2(int(stretches.questions.max())), 16, most))
        tiles = -(-stretches.questions // self.width)
        stretch = np.repeat(np.arange(len(tiles)), tiles)
        number = np.arange(len(stretch)) - np.repeat(np.cumsum(tiles) - tiles, tiles)
        first = stretches.first[stretch] + number * self.width
        ends = (stretches.first + stretches.questions)[stretch]
        count = np.minimum(self.width, ends - first)

        def on_device(array: Any) -> torch.Tensor:
            return torch.tensor(array, device=device)

        self.group, self.source = on_device(stretches.group), on_device(stretches.source)
        self.scale = on_device(stretches.scale.astype(np.float32))
        self.stretch, self.first, self.count = (
            on_device(stretch),
            on_device(first),
            on_device(count),
        )
        self.parts = []
        for start in range(0, groups, together):
            edges = [start, min(start + together, groups)]
            bounds = np.searchsorted(stretches.group, edges)
            self.parts.append((edges, bounds.tolist(), np.searchsorted(stretch, bounds).tolist()))

    def insert(self, sums: torch.Tensor, masses: torch.Tensor, start: int) -> None:
        """Continue sums [groups, 1 + kept] with masses [groups, m] of transitions from `start`."""
        length, count = sums.shape[1], masses.shape[1]
        _insert[(len(sums),)](sums, masses, start % length, length, count, num_warps=1)

    def search(
        self, sums: torch.Tensor, uniforms: torch.Tensor, times: torch.Tensor, n: int
    ) -> torch.Tensor:
        """Return the rows int64[U, groups, k] of numbers in [0, 1) in windows of n rows.

        Args:
            sums: the prefix sums of masses, float64[groups, 1 + kept].
            uniforms: the numbers, float64[U, groups, k].
            times: the number of the newest transition at each update, int64[U].
            n: the number of rows in the window.
        """
        (updates, groups, k), length = uniforms.shape, sums.shape[1]
        rows = torch.empty_like(uniforms, dtype=torch.int64)
        _search[(groups, triton.cdiv(updates * k, 256))](
            sums, uniforms, times, rows, length, n, groups, k, updates * k,
            length.bit_length(), 256, num_warps=4,
        )  # fmt: skip
        return rows

    def learn(
        self,
        weights: torch.Tensor,
        columns: dict[str, torch.Tensor],
        cumulant: torch.Tensor,
        rows: torch.Tensor,
        w: torch.Tensor,
    ) -> None:
        """Change the weights [G, D] by a few updates.

        Args:
            weights: the weights.
            columns: the columns of the window.
            cumulant: the cumulant at each place, int64[G].
            rows: the drawn rows, int64[U, groups or 1, k].
            w: their weights times the step size, [U, groups, k].
        """
        (updates, sets, k), width = rows.shape, weights.shape[1]
        R = max(32, triton.next_power_of_2(updates * k))
        half = R // 2
        in_a_half = max((half - 1) // k + 1, (R - 1) // k - half // k + 1)  # steps
        doublings = max((in_a_half - 1).bit_length() - 1, 0)
        x, x_next = columns["x"], columns["x_next"]
        continuation, cumulants = columns["continuation"], columns["cumulant"]
        for (first, last), (a, b), (start, stop) in self.parts:
            slots = rows.new_empty(last - first, R)
            weight = w.new_empty(last - first, R)
            near, far, turned = (w.new_empty(last - first, R, width) for _ in range(3))
            inverses = w.new_empty(b - a, 3, half, half)
            _gather[(last - first, width // 64)](
                rows, w, x, x_next, slots, weight, near, far, turned,
                first, sets * k, k if sets > 1 else 0, w.shape[1] * k, k, updates * k,
                width, R, 64, num_warps=8,
            )  # fmt: skip
            _halves[(b - a, 3)](
                self.group, self.scale, self.source, slots, weight, near, far, continuation,
                inverses, a, first, continuation.shape[1], k,
                width, half, 32, doublings, self.precision, num_warps=4, num_stages=3,
            )  # fmt: skip
            _learn[(stop - start,)](
                self.stretch, self.first, self.count, self.group, self.scale, self.source,
                cumulant, slots, weight, near, far, turned, inverses, continuation, cumulants,
                weights, start, a, first, continuation.shape[1], cumulants.shape[1],
                width, half, self.width, 32, self.step, self.precision,
                num_warps=self.warps, num_stages=3,
            )  # fmt: skip
