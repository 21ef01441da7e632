"""Compare the answers about the example log with the truth, which the simulator knows.

From the root of a clone, about three minutes: ``python docs/answers/truth.py`` writes
``docs/answers/truth.markdown``. The log's behaviour visits states; from each the target acts, 200
times.
"""

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium
import numpy as np

import gvf

EXAMPLE = Path("examples/logs")
HEAD = (
    "| question | coverage of 95 % intervals | squared error | variance of the truth | mean error |"
)


def line(one: gvf.answers.Answered) -> str:
    """Return the line of a question: how its predictions differ from the mean of returns."""
    sys.path.insert(0, str(EXAMPLE))
    careless = import_module("make_log").careless
    env = gymnasium.make("CartPole-v1", max_episode_steps=100)
    behaviour = gvf.policies.Function(careless, actions=2)
    held_out = gvf.held_out_returns(
        env, one.question, behaviour=behaviour, states=120, rollouts=200, cutoff=1e-4, seed=5
    )
    returns = np.asarray(held_out.returns).reshape(120, -1)
    truth, noise = returns.mean(axis=1), returns.std(axis=1, ddof=1) / returns.shape[1] ** 0.5
    point, low, high = one.predict(held_out.states)
    within = [(low - m <= truth) & (truth <= high + m) for m in (0.0, 2.0 * noise)]
    shares = " to ".join(f"{100 * share.mean():.0f}" for share in within)
    error = ((point - truth) ** 2).mean() - (noise**2).mean()
    return (
        f"| {one.question.name} | {shares} % | {error:.2f} | {truth.var():.1f} "
        f"| {(point - truth).mean():+.2f} |"
    )


def main() -> None:
    """Answer the example's questions, and write the table."""
    plan = gvf.answers.load(EXAMPLE / "question.toml")
    with TemporaryDirectory() as folder:
        answer = gvf.answers.answer(
            plan, EXAMPLE / "cartpole.parquet", Path(folder, "out"), progress=False, quiet=True
        )
        lines = [HEAD, "|---|---|---|---|---|", *map(line, answer.answers)]
    Path("docs/answers/truth.markdown").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
