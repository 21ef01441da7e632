"""Benchmark of slots only: insert one ratio, then draw k slots by ratio, from Python.

This is the work of a user who keeps the transitions elsewhere. The peers are NumPy's and torch's
draws from given weights, and bare sum trees: TorchRL's in C++, tianshou's in Numba, and a plain one
in Numba (:mod:`.numba_tree`). cpprb's tree cannot be reached from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import cycle, islice
from typing import Any

import numpy as np

import gvf
from benchmarks import torchrl_extension
from benchmarks.measure import (
    DRAWS,
    LIMITS,
    SIZES,
    Effort,
    Row,
    Run,
    interleave,
    lognormal_ratios,
    size_and_draws,
)
from benchmarks.numba_tree import tree_draw, tree_insert, tree_of

TITLE = "Slots only: insert one ratio, draw k"
PLAIN = "numba sum tree, plain"
FUSED, SEPARATE = "gvf append_and_sample", "gvf append + sample(rng=)"
TARGETS = {
    FUSED: LIMITS["indices"]["append-and-sample"],
    SEPARATE: LIMITS["indices"]["append-then-sample"],
}

Steps = Iterable[tuple[int, float]]
Work = Callable[[Steps], None]
"""A loop over (slot, ratio) that writes the ratio into the slot, then draws. Every contender has
its own loop, because one more function call would distort times of microseconds."""


def rows(effort: Effort) -> list[Row]:
    """Time every sampler at every size and batch."""
    lines = []
    for n in SIZES:
        for k in DRAWS:
            lines += _case(n, k, effort)
    return lines


def _case(n: int, k: int, effort: Effort) -> list[Row]:
    case = size_and_draws(n, k)
    works = {"numpy choice": _choice, "torch.multinomial": _multinomial}
    trees = {PLAIN: _numba_tree, "tianshou tree": _tianshou_tree}
    ours = {FUSED: _fused, SEPARATE: _separate}
    lines = []
    note = ""
    torchrl = "TorchRL tree"
    try:
        _, note = torchrl_extension.load()
        trees |= {f"{torchrl}, NumPy": _torchrl_numpy, f"{torchrl}, torch": _torchrl_torch}
    except ImportError as error:
        lines.append(Row(case, torchrl, None, "us", note=str(error)))
    ratios = lognormal_ratios(n)
    runs = {name: _run(make(ratios.copy(), k), n) for name, make in (works | trees | ours).items()}
    times = interleave(runs, effort)
    best = min(times[name] for name in ours)
    for name in works | trees:
        shown = note if torchrl in name else ""
        lines.append(Row(case, name, times[name] * 1e6, "us", times[name] / best, note=shown))
    # Packaged trees are the alternatives that users have; the plain one is harder to beat.
    packaged = min(time for name, time in times.items() if name in trees and name != PLAIN)
    marks = {"the fastest packaged": packaged, "the plain one": times[PLAIN]}
    for name, target in TARGETS.items():
        for mark, time in marks.items():
            ratio = time / times[name]
            lines.append(
                Row(
                    case,
                    name,
                    times[name] * 1e6,
                    "us",
                    times[name] / best,
                    reached=f"{ratio:.1f} x {mark}",
                    target=f">= {target:g} x",
                    met=ratio >= target,
                )
            )
    return lines


def _run(work: Work, n: int) -> Run:
    turn = zip(cycle(range(n)), cycle(lognormal_ratios(512, seed=2).tolist()), strict=False)
    return lambda count: work(islice(turn, count))


def _fused(ratios: np.ndarray, k: int) -> Work:
    ring = gvf.RatioRing(len(ratios), seed=0)
    ring.extend(ratios)

    def work(steps: Steps) -> None:
        for _, ratio in steps:
            ring.append_and_sample(ratio, k)

    return work


def _separate(ratios: np.ndarray, k: int) -> Work:
    ring, rng = gvf.RatioRing(len(ratios)), np.random.default_rng(0)
    ring.extend(ratios)

    def work(steps: Steps) -> None:
        for _, ratio in steps:
            ring.append(ratio)
            ring.sample(k, rng=rng)

    return work


def _choice(ratios: np.ndarray, k: int) -> Work:
    n, rng = len(ratios), np.random.default_rng(0)

    def work(steps: Steps) -> None:
        for slot, ratio in steps:
            ratios[slot] = ratio
            rng.choice(n, k, p=ratios / ratios.sum())

    return work


def _multinomial(ratios: np.ndarray, k: int) -> Work:
    import torch

    shared = torch.from_numpy(ratios)  # NumPy writes one element ten times faster than torch

    def work(steps: Steps) -> None:
        for slot, ratio in steps:
            ratios[slot] = ratio
            torch.multinomial(shared, k, replacement=True)

    return work


def _numba_tree(ratios: np.ndarray, k: int) -> Work:
    nodes, rng = tree_of(ratios), np.random.default_rng(0)

    def work(steps: Steps) -> None:
        for slot, ratio in steps:
            tree_insert(nodes, slot, ratio)
            tree_draw(nodes, rng.random(k), np.empty(k, np.int64))

    return work


def _tianshou_tree(ratios: np.ndarray, k: int) -> Work:
    from tianshou.data import SegmentTree

    tree, rng = SegmentTree(len(ratios)), np.random.default_rng(0)
    tree[np.arange(len(ratios))] = ratios

    def work(steps: Steps) -> None:
        for slot, ratio in steps:
            tree[slot] = ratio
            tree.get_prefix_sum_idx(rng.random(k) * tree.reduce())

    return work


def _torchrl_tree(ratios: np.ndarray) -> Any:
    extension, _ = torchrl_extension.load()
    tree = extension.SumSegmentTreeFp64(len(ratios))
    tree[np.arange(len(ratios))] = ratios
    return tree


def _torchrl_numpy(ratios: np.ndarray, k: int) -> Work:
    n, tree, rng = len(ratios), _torchrl_tree(ratios), np.random.default_rng(0)

    def work(steps: Steps) -> None:
        for slot, ratio in steps:
            tree[slot] = ratio
            tree.scan_lower_bound(rng.random(k) * tree.query(0, n))

    return work


def _torchrl_torch(ratios: np.ndarray, k: int) -> Work:
    import torch

    n, tree, rng = len(ratios), _torchrl_tree(ratios), torch.Generator().manual_seed(0)

    def work(steps: Steps) -> None:
        for slot, ratio in steps:
            tree[slot] = ratio
            uniforms = torch.rand(k, dtype=torch.float64, generator=rng)
            tree.scan_lower_bound(uniforms.mul_(tree.query(0, n)))

    return work
