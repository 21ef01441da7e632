"""Benchmark of lanes of the driving network, stacked or one by one, and of a neural horde.

The table has a few lanes on the processor, with two convolutions. Its last rows compare a horde of
1,000 questions with plain PyTorch, which takes policy after policy and adds the losses. The module
can also be run alone, without Gymnasium and rich, on any device and with any number of lanes:

    python -m benchmarks.neural [--device cuda] [--lanes 1 5 25 125] [--precision tf32]
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from functools import partial
from time import perf_counter

import torch

import gvf
from benchmarks.horde import ACTIONS, POOL, Case, N
from benchmarks.measure import Effort, Row, Run, interleave
from gvf.neural import NeuralHorde
from gvf_lab.racing.driving_network import driving_network
from gvf_lab.racing.network_lanes import Lanes

TITLE = (
    "An update of a lane of the driving network, a step of a neural horde (k = 16, Adam, 1 thread)"
)
HORDE = Case("1,000: 10 x 100, layers of 64 and 64", 10, 100, 16)
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
        lanes = [row for count in (1, 5) for row in _compare(count, effort)]
        return [*lanes, *_hordes(HORDE, effort)]
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


def _hordes(case: Case, effort: Effort) -> list[Row]:
    """Compare a neural horde with plain PyTorch, in steps a second."""
    rounds = Effort(min(effort.rounds, 5), 10 * effort.seconds)
    times = interleave({"gvf": _horde(case), "plain PyTorch": _plain_horde(case)}, rounds)
    slower = times["plain PyTorch"] / times["gvf"]
    return [
        Row(case.name, "gvf", 1.0 / times["gvf"], "Hz"),
        Row(case.name, "plain PyTorch", 1.0 / times["plain PyTorch"], "Hz", ratio=slower),
    ]


def _trunk(case: Case) -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = (torch.nn.Linear(case.size, 64), torch.nn.Linear(64, 64))
    return torch.nn.Sequential(sizes[0], torch.nn.ReLU(), sizes[1], torch.nn.ReLU())


def _horde(case: Case) -> Run:
    """Return a run of a neural horde with a full window."""
    policies = {str(i): gvf.policies.Fixed(row) for i, row in enumerate(case.targets)}
    horde = NeuralHorde(
        gvf.question_grid(policies, gvf.SignalBank("signals", case.questions), [0.9]),
        _trunk(case),
        partial(torch.optim.Adam, lr=1e-3),
        gvf.corrections.IR(),
        behaviour=gvf.policies.Uniform(ACTIONS),
        window=N,
        warm_up=N,
        seed=0,
    )
    horde.observe(case.stream(N))
    data = case.stream(POOL)

    def run(count: int) -> None:
        for start in range(0, count, POOL):
            horde.observe(data[: min(POOL, count - start)])

    return run


def _plain_horde(case: Case) -> Run:
    """Return a run of the same steps in plain PyTorch: a batch and a loss for each policy."""
    data, new = case.stream(N), case.stream(POOL)
    trunk = _trunk(case)
    heads = torch.nn.ModuleList(torch.nn.Linear(64, case.questions) for _ in range(case.policies))
    optimiser = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=1e-3)
    table = torch.as_tensor(case.targets * ACTIONS).float()
    names = ("state", "next_state", "signals", "terminated")
    kept, fresh = ([torch.as_tensor(b[name]).float() for name in names] for b in (data, new))
    ratios = table[:, torch.as_tensor(data.action)].contiguous()
    new_ratios, place = table[:, torch.as_tensor(new.action)], 0

    def step(at: int) -> None:
        nonlocal place
        for column, given in zip(kept, fresh, strict=True):
            column[place] = given[at]
        ratios[:, place] = new_ratios[:, at]
        place = (place + 1) % N
        slots = torch.multinomial(ratios, K, replacement=True)  # [P, k]
        loss = torch.zeros(())
        for head, drawn in zip(heads, slots, strict=True):
            state, next_state, signals, terminated = (column[drawn] for column in kept)
            with torch.no_grad():
                goal = signals + 0.9 * (1.0 - terminated[:, None]) * head(trunk(next_state))
            loss = loss + ((goal - head(trunk(state))) ** 2).sum() / (2 * K)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def run(count: int) -> None:
        for i in range(count):
            step(i % POOL)

    return run


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
