"""Compare the answers about the example log with the truth, which the simulator knows.

    python -m experiments answers       about three minutes

The log's behaviour visits states; from each the target acts, 200 times.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import gvf
from experiments.tables import write_table

LOGS = Path(__file__).resolve().parents[2] / "examples" / "logs"
HEAD = [
    "question",
    "coverage of 95 % intervals",
    "squared error",
    "variance of the truth",
    "mean error",
]


def line(answered: gvf.answers.Answered, states: int) -> list[str]:
    """Return the line of a question: how its predictions differ from the mean of returns."""
    sys.path.insert(0, str(LOGS))
    careless = import_module("make_log").careless
    env = gymnasium.make("CartPole-v1", max_episode_steps=100)
    behaviour = gvf.policies.Function(careless, actions=2)
    held_out = gvf.held_out_returns(
        env,
        answered.question,
        behaviour=behaviour,
        states=states,
        rollouts=200,
        cutoff=1e-4,
        seed=5,
    )
    returns = np.asarray(held_out.returns).reshape(states, -1)
    truth, noise = returns.mean(axis=1), returns.std(axis=1, ddof=1) / returns.shape[1] ** 0.5
    point, low, high = answered.predict(held_out.states)
    within = [(low - m <= truth) & (truth <= high + m) for m in (0.0, 2.0 * noise)]
    shares = " to ".join(f"{100 * share.mean():.0f}" for share in within)
    error = ((point - truth) ** 2).mean() - (noise**2).mean()
    numbers = [
        f"{shares} %",
        f"{error:.2f}",
        f"{truth.var():.1f}",
        f"{(point - truth).mean():+.2f}",
    ]
    return [answered.question.name, *numbers]


@cache
def example(folder: Path) -> gvf.answers.Answer:
    """Answer the questions about the example log, or about the smaller one that a folder has."""
    source = folder if (folder / "question.toml").exists() else LOGS
    plan = gvf.answers.load(source / "question.toml")
    with TemporaryDirectory() as out:
        log = source / "cartpole.parquet"
        return gvf.answers.answer(plan, log, Path(out, "out"), progress=False, quiet=True)


def shorten(folder: Path, runs: int = 30) -> None:
    """Write a few runs of the example log, and its questions with two learners, into a folder."""
    table = pq.read_table(LOGS / "cartpole.parquet")
    first = pc.less(table["run"], runs)  # pyright: ignore[reportAttributeAccessIssue]
    pq.write_table(table.filter(first), folder / "cartpole.parquet")
    text, _, _ = (LOGS / "question.toml").read_text(encoding="utf-8").partition("[learn]")
    few = '[learn]\ncorrections = ["IR"]\nstep_sizes = [0.1, 0.3]\n'
    (folder / "question.toml").write_text(text + few, encoding="utf-8")


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Answer the example's questions, and write the table; there are no parts."""
    if quick:
        shorten(folder)
    lines = [line(answered, 3 if quick else 120) for answered in example(folder).answers]
    write_table(folder / "truth.markdown", [HEAD, *lines])
