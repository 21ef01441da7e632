"""Benchmark of hordes on a GPU: a million questions, beside plain PyTorch, and fewer.

There are 1,000 policies, 250 cumulants, 4 continuations and 256 dense features, in a window of
100,000 transitions. A step inserts a transition, computes the ratios of all policies, draws 16 rows
for each, and updates all questions; the part of the processor is included. The peer does the same
step by step in plain PyTorch, with ``multinomial`` for the draws, and once more without draws.
A step by itself reads and writes every weight, so the bandwidth of the memory limits it. Several
steps together are not limited by that. Each size is measured as it is, with the watch of errors
that gives UDE, and without it; the watch of smaller hordes costs mostly time of the processor. The
table of the page about hordes is written, too.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

import gvf
from benchmarks.measure import Effort, Row, Run, at_most, interleave

TITLE = "Hordes on a GPU (n = 100,000, k = 16, SGD, 256 dense features)"
CONTINUATIONS, SIZE = (0.5, 0.9, 0.97, 0.99), 256
N, K, ACTIONS, POOL, STEP_SIZE = 100_000, 16, 4, 8_192, 0.1
MILLION = 1_000, 250, 4
SIZES = (
    (MILLION, "tf32", 2_800),
    (MILLION, "float32", 1_400),
    ((1, 1, 1), "tf32", None),
    ((1_000, 1, 1), "tf32", None),
    ((1_000, 25, 4), "tf32", None),
)
"""Policies, cumulants and continuations, with a precision and the steps a second to reach."""
ERRORS = {"tf32": 1e-2, "float32": 1e-4}
WATCH = 5.0
"""The largest cost of the watch, in percent of the time."""
PAGE = Path(__file__).parent.parent / "docs" / "horde" / "gpu.markdown"
"""The table of the page about hordes, which a run on a GPU writes."""
HEADER = [
    "policies x cumulants x continuations", "`dtype`", "steps a second", "without UDE",
    "plain PyTorch", "the same without draws", "error after 64 steps",
]  # fmt: skip


def rows(effort: Effort) -> list[Row]:
    """Measure steps a second with and without the watch, and a million beside plain PyTorch."""
    import torch

    case = " x ".join(f"{count:,}" for count in MILLION)
    if not torch.cuda.is_available():
        return [Row(case, "gvf", None, "Hz", note="there is no GPU here")]
    # With one question a turn varies by 4 %, so the fastest of many short ones tells more.
    longer = replace(effort, rounds=15, seconds=20 * effort.seconds)
    table = [Row(case, "limit: weights read and written once a step", limit(), "Hz")]
    lines = [HEADER, ["---"] * len(HEADER)]
    for size, dtype, target in SIZES:
        case = " x ".join(f"{count:,}" for count in size)
        horde, data = horde_of(questions(*size), dtype), stream(POOL, 1, size[1])
        horde.observe(stream(N, 0, size[1]))
        contenders = {"on": ours(horde, data), "off": ours(horde, data, watched=False)}
        if size == MILLION:
            torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
            contenders[f"plain torch, {dtype}"] = plain(draws=True)
            contenders[f"plain torch, {dtype}, without draws"] = plain(draws=False)
        times = interleave(contenders, longer)
        torch.set_float32_matmul_precision("highest")
        on, off = times.pop("on"), times.pop("off")
        reach = "" if target is None else f">= {target:,} Hz"
        met = None if target is None else 1 / on >= target
        name = f"gvf, {dtype}"
        table.append(Row(case, name, 1 / on, "Hz", target=reach, met=met))
        table.append(Row(case, f"{name}, without watch", 1 / off, "Hz"))
        table.append(at_most(case, f"{name}: cost of the watch", 100 * (1 - off / on), "%", WATCH))
        table += [Row(case, peer, 1 / t, "Hz", ratio=t / on) for peer, t in times.items()]
        worst = error(horde, data[:64])
        table.append(at_most(case, f"{name}: error of a change", worst, "", ERRORS[dtype]))
        rates = [f"{1 / t:,.0f}" for t in (on, off, *times.values())]
        lines.append([case, dtype, *rates, *["-"] * (2 - len(times)), f"{worst:.1g}"])
        assert not horde.report().paused
        del horde, contenders
        torch.cuda.empty_cache()
    PAGE.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines), "utf-8")
    return table


def questions(policies: int, cumulants: int, continuations: int) -> list[gvf.GVF]:
    """Return the questions of a size."""
    targets = np.random.default_rng(2).dirichlet(np.full(ACTIONS, 2.0), size=policies)
    named = {str(i): gvf.policies.Fixed(row) for i, row in enumerate(targets)}
    signals = gvf.SignalBank("signals", cumulants)
    return gvf.question_grid(named, signals, CONTINUATIONS[:continuations])


def stream(count: int, seed: int, cumulants: int) -> gvf.Transitions:
    """Return transitions with normal features of length about 1."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(count + 1, SIZE)) / np.sqrt(SIZE)
    return gvf.Transitions(
        state=states[:-1],
        action=rng.integers(ACTIONS, size=count),
        next_state=states[1:],
        terminated=rng.random(count) < 0.01,
        signals=rng.normal(size=(count, cumulants)),
    )


def horde_of(asked: list[gvf.GVF], dtype: Any) -> gvf.Horde:
    """Return a horde that learns once its window is full."""
    return gvf.Horde(
        asked,
        gvf.features.Dense(SIZE),
        gvf.updates.TD(STEP_SIZE),
        gvf.corrections.IR(),
        behaviour=gvf.policies.Uniform(ACTIONS),
        window=N,
        batch_size=K,
        warm_up=N,
        dtype=dtype,
        device="cuda",
        seed=0,
    )


def ours(horde: gvf.Horde, data: gvf.Transitions, *, watched: bool = True) -> Run:
    """Return a run of a horde, until the GPU is done."""
    import torch

    shard = cast(Any, horde._shard)
    look = type(shard)._look.__get__(shard) if watched else lambda *_: None

    def run(count: int) -> None:
        shard._look = look
        for start in range(0, count, POOL):
            horde.observe(data[: min(POOL, count - start)])
        torch.cuda.synchronize()

    for count in (1, 4, 64):  # kernels are compiled for each number of rows
        run(count)
    return run


def plain(draws: bool) -> Run:
    """Return a run of the same steps in plain PyTorch."""
    import torch

    here: dict[str, Any] = {"device": "cuda"}
    torch.manual_seed(0)
    policies, cumulants, _ = MILLION
    many = cumulants * len(CONTINUATIONS)
    x, x_next = (torch.randn(N, SIZE, **here) / SIZE**0.5 for _ in range(2))
    new, new_next = (torch.randn(POOL, SIZE, **here) / SIZE**0.5 for _ in range(2))
    signals, new_signals = torch.randn(N, many, **here), torch.randn(POOL, many, **here)
    alive = (torch.rand(N, **here) > 0.01).float()
    ratios, new_ratios = torch.rand(policies, N, **here), torch.rand(policies, POOL, **here)
    gamma = torch.tensor(CONTINUATIONS, **here).repeat_interleave(cumulants)
    weights = torch.zeros(policies, SIZE, many, **here)
    given = torch.randint(N, (policies, K), **here)

    def step(at: int) -> None:
        row, new_row = at % N, at % POOL
        x[row], x_next[row], signals[row] = new[new_row], new_next[new_row], new_signals[new_row]
        ratios[:, row] = new_ratios[:, new_row]
        slots = torch.multinomial(ratios, K, replacement=True) if draws else given  # [P, k]
        near, far = x[slots], x_next[slots]
        after = gamma * alive[slots][:, :, None] * torch.bmm(far, weights)
        delta = signals[slots] + after - torch.bmm(near, weights)
        weights.baddbmm_(near.transpose(1, 2), delta, alpha=STEP_SIZE / K)

    def run(count: int) -> None:
        with torch.no_grad():
            for i in range(count):
                step(i)
        torch.cuda.synchronize()

    return run


def limit() -> float:
    """Return how often a second the GPU can read and write all weights."""
    import torch

    one = torch.randn(math.prod(MILLION), SIZE, device="cuda")
    other = torch.empty_like(one)

    def run(count: int) -> None:
        for _ in range(count):
            other.copy_(one)
        torch.cuda.synchronize()

    return 1.0 / interleave({"copy": run}, Effort(rounds=5, seconds=0.2))["copy"]


def error(horde: gvf.Horde, data: gvf.Transitions) -> float:
    """Return the error of the change by some steps, for three policies, relative to the change.

    The same steps are taken one after the other in float64, with the rows that the horde draws.
    """
    shard = cast(Any, horde._shard)
    layout, weights_there, batches = shard.layout, shard.weights, []
    learn = weights_there.learn

    def recorded(columns: Any, drawn: Any, *rest: Any) -> None:
        learn(columns, drawn, *rest)
        batches.append((weights_there.rows.cpu().numpy(), drawn.w))

    groups = sorted({0, layout.groups // 2, layout.groups - 1})
    places = [np.arange(layout.starts[g], layout.starts[g + 1]) for g in groups]
    before = [weights_there.take(some)["weights"].astype(np.float64) for some in places]
    weights_there.learn = recorded
    horde.observe(data)
    weights_there.learn = learn
    columns = {name: column.astype(np.float64) for name, column in shard.window.columns.items()}
    worst = 0.0
    for g, some, old in zip(groups, places, before, strict=True):
        weights = old.copy()
        for rows, w in batches:
            for u in range(len(rows)):
                taken = {name: column[rows[u, g]] for name, column in columns.items()}
                gamma = layout.scale[some] * taken["continuation"][:, layout.source[some]]
                near, far = (taken[name] @ weights.T for name in ("x", "x_next"))
                delta = taken["cumulant"][:, layout.cumulant[some]] + gamma * far - near
                weights += (STEP_SIZE * w[u, g][:, None] * delta).T @ taken["x"]
        found = weights_there.take(some)["weights"]
        worst = max(worst, float(np.linalg.norm(found - weights) / np.linalg.norm(weights - old)))
    return worst
