"""Benchmark of lanes of the driving network: stacked or one by one, with two convolutions.

The table has a few lanes on the processor. The module can also be run alone, without Gymnasium and
rich, on any device and with any number of lanes:

    python -m benchmarks.neural [--device cuda] [--lanes 1 5 25 125] [--precision tf32]
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from functools import partial
from time import perf_counter

import torch

from benchmarks.measure import Effort, Row, Run, interleave
from gvf.neural import Lanes, driving_network

TITLE = "Lanes of the driving network: an update of one lane (16 transitions, Adam), one thread"
K, RATES, GROUPS, FRAMES = 16, 5, 2, 2000
WAYS = {
    "one by one": ("native", False),
    "stack, grouped convolution": ("native", True),
    "stack, matrix product": ("unfold", True),
}


def rows(effort: Effort) -> list[Row]:
    """Compare lanes with a plain PyTorch loop, in milliseconds a lane."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several cores are better used for several runs
    try:
        return [row for count in (1, 5) for row in _compare(count, effort)]
    finally:
        torch.set_num_threads(threads)


def _compare(count: int, effort: Effort) -> list[Row]:
    contenders: dict[str, Run] = {"plain PyTorch": _repeat(_plain(count))}
    for name, (convolution, together) in WAYS.items():
        contenders[name] = _repeat(_lanes(count, "cpu", convolution, together))
    rounds = Effort(min(effort.rounds, 5), effort.seconds)
    times = {name: 1e3 * t / count for name, t in interleave(contenders, rounds).items()}
    best = min(time for name, time in times.items() if name in WAYS)
    return [
        Row(f"lanes: {count}", name, time, "ms", time / best if time > best else None)
        for name, time in times.items()
    ]


def _repeat(update: Callable[[], object]) -> Run:
    def run(count: int) -> None:
        for _ in range(count):
            update()

    return run


def _batch(count: int, device: str) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Make a function that draws from frames on the device, as a study does."""
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(256, (FRAMES, 64, 128), dtype=torch.uint8, generator=generator)
    frames = frames.to(device)
    slots = torch.randint(FRAMES - 1, (GROUPS, K), generator=generator).to(device)
    cumulant = (torch.rand(GROUPS, K, generator=generator) < 0.1).float().to(device)
    weights = torch.full((count, K), 1 / K, device=device)
    return lambda: (frames[slots], frames[slots + 1], cumulant, 0.9 * (1 - cumulant), weights)


def _lanes(
    count: int, device: str, convolution: str, together: bool, mixed_precision: bool = False
) -> Callable[[], None]:
    lanes = Lanes(
        partial(driving_network, convolution=convolution),  # pyright: ignore[reportArgumentType]
        torch.optim.Adam,
        [10.0 ** (-5 + lane % RATES / 2) for lane in range(count)],
        seeds=list(range(count)),
        group=[lane % GROUPS for lane in range(count)] if count > 1 else [GROUPS - 1],
        device=device,
        mixed_precision=mixed_precision,
        together=together,
    )
    batch = _batch(count, device)
    return lambda: lanes.update(*batch())


def _plain(count: int) -> Callable[[], None]:
    """Make an update of networks one after the other in plain PyTorch."""
    first = driving_network()
    networks = [copy.deepcopy(first) for _ in range(count)]
    optimisers = [torch.optim.Adam(network.parameters(), lr=1e-4) for network in networks]
    batch = _batch(count, "cpu")

    def update() -> None:
        states, next_states, cumulant, continuation, weights = batch()
        for lane, (network, optimiser) in enumerate(zip(networks, optimisers, strict=True)):
            group = lane % GROUPS
            with torch.no_grad():
                goal = cumulant[group] + continuation[group] * network(next_states[group])
            loss = (weights[lane] * (goal - network(states[group])) ** 2).sum() / 2
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return update


def main() -> None:
    """Print updates a second for every number of lanes and every way to convolve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neural", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 5, 25, 125])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--precision", choices=("float32", "tf32", "bfloat16"), default="float32")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each line")
    options = parser.parse_args()
    tf32 = options.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    for count in options.lanes:
        for way in options.ways:
            convolution, together = WAYS[way]
            mixed = options.precision == "bfloat16"
            update = _lanes(count, options.device, convolution, together, mixed)
            time = _seconds(update, options.device, options.seconds)
            print(
                f"{count:4} lanes, {way:26} {1 / time:8.1f} updates/s  "
                f"{1e3 * time / count:8.3f} ms a lane{_memory(options.device)}",
                flush=True,
            )


def _seconds(update: Callable[[], object], device: str, limit: float) -> float:
    """Measure the seconds of an update, without the first few."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    for _ in range(3 if device != "cpu" else 1):
        update()
    wait()
    done, start = 0, perf_counter()
    while (taken := perf_counter() - start) < limit or done == 0:
        for _ in range(10 if device != "cpu" else 1):
            update()
            done += 1
        wait()
        taken = perf_counter() - start
    return taken / done


def _memory(device: str) -> str:
    if not device.startswith("cuda"):
        return ""
    peak = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return f"  {peak:6.1f} GiB at most"


if __name__ == "__main__":
    main()
