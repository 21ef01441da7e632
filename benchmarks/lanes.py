"""Benchmark of updates of many driving networks at once on a GPU, plain and as a CUDA graph.

The lanes are those of a run of the racing study: five methods and seven learning rates. Draws are
random frames on the GPU. Each variant starts from the same weights and gets the same draws, and the
last column tells how far its predictions are from those of the plain variant, as a share of how far
learning has moved them.

    python -m benchmarks.lanes [--updates 300]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any

import torch

from gvf_lab.racing.driving_network import driving_network
from gvf_lab.racing.network_lanes import Lanes
from gvf_lab.racing.racing_figure import RATES
from gvf_lab.racing.racing_task import optimiser_named

METHODS, K, FRAMES = 5, 16, 2000
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"graph": False},
    "graph": {"graph": True},
    "graph, TF32": {"graph": True, "tf32": True},
    "graph, bfloat16": {"graph": True, "mixed_precision": True},
}


def main() -> None:
    """Print a table of milliseconds of an update, for every optimiser and variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=300)
    updates = parser.parse_args().updates
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device here")
    print(torch.cuda.get_device_name(), torch.__version__)
    print(f"{'optimiser':10s} {'variant':16s} {'ms an update':>12s} {'differs by':>10s}")
    for name in ("momentum", "rmsprop", "adam"):
        reference = None
        for variant, options in VARIANTS.items():
            milliseconds, fresh, after = measure(name, updates, **options)
            reference = after if reference is None else reference
            apart = (after - reference).abs().amax(1) / (reference - fresh).abs().amax(1)
            differs = float(apart.nan_to_num(0.0).median())
            print(f"{name:10s} {variant:16s} {milliseconds:12.3f} {differs:10.2g}", flush=True)


def measure(
    optimiser: str, updates: int, *, tf32: bool = False, **options: Any
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Time updates; return milliseconds of one, and predictions before and after all."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    rng = torch.Generator("cuda").manual_seed(0)
    frames = torch.randint(
        0, 256, (FRAMES, 64, 128), dtype=torch.uint8, device="cuda", generator=rng
    )
    count = METHODS * len(RATES)
    index = torch.randint(0, FRAMES - 1, (updates, 2, K), device="cuda", generator=rng)
    numbers = torch.rand(updates, 2, K, device="cuda", generator=rng)
    weights = torch.rand(updates, count, K, device="cuda", generator=rng) / K
    lanes = Lanes(
        partial(driving_network, convolution="unfold"),
        optimiser_named(optimiser),
        [*RATES] * METHODS,
        [0] * count,
        group=[int(lane >= 2 * len(RATES)) for lane in range(count)],
        device="cuda",
        **options,
    )
    fresh, began, first = lanes.predict(frames[:64]), 0.0, 20
    for u in range(updates):
        if u == first:  # libraries are loaded and graphs are recorded in the first updates
            torch.cuda.synchronize()
            began = perf_counter()
        draws = frames[index[u]], frames[index[u] + 1], numbers[u], 0.9 * numbers[u]
        lanes.update(*draws, weights[u])
    torch.cuda.synchronize()
    milliseconds = 1000 * (perf_counter() - began) / (updates - first)
    return milliseconds, fresh, lanes.predict(frames[:64])


if __name__ == "__main__":
    main()
