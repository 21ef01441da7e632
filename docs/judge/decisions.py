"""Measure how often the intervals of single decisions hold the value, by the rewards behind them.

From the root of a clone, about a minute: ``python docs/judge/decisions.py`` writes
``docs/judge/decisions.markdown``. A log has 1,000, 3,000 or 10,000 decisions with 5 or 34 actions,
whose rewards are 0 or 1, and rarely 1. Policies and chances are drawn at random.
"""

from itertools import pairwise, product
from pathlib import Path

import numpy as np

from gvf.judging import Estimator
from gvf.judging.held_out import HeldOut
from gvf.judging.policy_value import effective_rewards, policy_values

LOGS = 400
"""The number of logs of each of the 24 kinds."""
GROUPS = (0, 3, 5, 10, 20, 50, 100, np.inf)
ESTIMATORS = (Estimator.PLAIN, Estimator.SELF_NORMALISED)


def decisions(ratio: np.ndarray, reward: np.ndarray) -> HeldOut:
    """Return single decisions as held-out episodes."""
    n, nothing = len(ratio), np.zeros((len(ratio), 0))
    return HeldOut(
        ratio=ratio, cumulant=reward, continuation=np.zeros(n), interest=np.ones(n),
        last=np.ones(n, bool), predicted=nothing, after=nothing, part=np.zeros(n, int),
        action=np.zeros(n, int), target=nothing, estimated=np.zeros(n, bool),
    )  # fmt: skip


def measured() -> np.ndarray:
    """Return a row for each log: effective rewards, and which intervals hold the value."""
    rng, rows = np.random.default_rng(0), []
    kinds = product((1000, 3000, 10_000), (0.002, 0.005, 0.02, 0.1), ((5, 1.0), (34, 0.3)))
    for count, chance, (actions, spread) in kinds:
        mu = rng.dirichlet(np.full(actions, 3.0))
        pi = rng.dirichlet(np.full(actions, spread))
        rewarded = np.minimum(chance * rng.gamma(2.0, 0.5, size=actions), 1.0)
        for _ in range(LOGS):
            action = rng.choice(actions, size=count, p=mu)
            reward = 1.0 * (rng.random(count) < rewarded[action])
            held = decisions((pi / mu)[action], reward)
            found = policy_values(held, np.zeros(count), "doubly-robust", 0.95)
            holds = [found[name].low <= pi @ rewarded <= found[name].high for name in ESTIMATORS]
            rows.append([effective_rewards(held), *holds])
    return np.array(rows)


def main() -> None:
    """Write the table."""
    rows = measured()
    lines = ["| effective rewards | logs | plain | self-normalised |", "|---|---|---|---|"]
    for least, most in pairwise(GROUPS):
        inside = rows[(rows[:, 0] >= least) & (rows[:, 0] < most)]
        shares = " | ".join(f"{100 * share:.0f} %" for share in inside[:, 1:].mean(axis=0))
        label = f"{least:g} to {most:g}" if np.isfinite(most) else f"{least:g} and more"
        lines.append(f"| {label} | {len(inside):,} | {shares} |")
    Path("docs/judge/decisions.markdown").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
