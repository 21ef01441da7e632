"""Estimate click rates from the sample of the Open Bandit Dataset, by gvf and by obp.

Half of the sample was recorded while a policy chose uniformly ("random"), half while Bernoulli
Thompson sampling did ("bts"). So the value of each policy can be estimated from the log of the
other, and compared with the clicks in its own log. The sample lies in the package obp:

    pip download --no-deps obp==0.4.1
    python -m zipfile -e obp-0.4.1-py3-none-any.whl obp
    python -m experiments recommendations obp

writes obd.markdown and estimates.markdown, in two to four minutes. Where obp and what it needs
(scikit-learn, pandas, torch) are not installed, its columns stay empty. The quick measure draws a
small sample of the same form.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import gvf
from experiments.tables import write_table
from gvf.answers import answer, load
from gvf.answers.answer import Answered
from gvf.judging import Estimator

PLACES = 3
CAMPAIGNS = ("all", "men", "women")
UNIT = 1000
"""Clicks are counted for so many decisions."""
QUESTION = """
[[question]]
name = "clicks"
policy = {kind = "table", file = "policy.csv"}

[log]
steps = "single"
state = "position"
action = "item_id"
reward = "click"
behaviour_probability = "propensity_score"
"""
Estimate = tuple[float, float, float]


def read(folder: Path, policy: str, campaign: str) -> tuple[Path, dict[str, np.ndarray]]:
    """Return the file of a log, and its columns."""
    file = folder / "obp" / "dataset" / "obd" / policy / campaign / f"{campaign}.csv"
    table = pyarrow.csv.read_csv(file)
    return file, {name: table[name].to_numpy() for name in table.column_names}


def shares(log: dict[str, np.ndarray], items: int) -> np.ndarray:
    """Return the shares of the items in each place, [PLACES, items]: what the policy did there."""
    counts = np.zeros((PLACES, items))
    np.add.at(counts, (log["position"] - 1, log["item_id"]), 1.0)
    return counts / counts.sum(axis=1, keepdims=True)


def by_gvf(file: Path, target: np.ndarray, more: str = "") -> Answered:
    """Run ``gvf learn`` on a log, with more lines in the question file."""
    with tempfile.TemporaryDirectory() as folder:
        # Places are numbered from 1, and the rows of a table from 0.
        np.savetxt(Path(folder, "policy.csv"), np.vstack([target[:1], target]), delimiter=",")
        Path(folder, "question.toml").write_text(QUESTION + more)
        plan = load(Path(folder, "question.toml"))
        out = Path(folder, "out")
        return answer(plan, str(file), out, workers=1, progress=False, quiet=True).answers[0]


def by_obp(log: dict[str, np.ndarray], target: np.ndarray) -> dict[str, Estimate]:
    """Return what obp's estimators say, with its bootstrap's intervals of 95 %."""
    try:
        from obp import ope  # pyright: ignore[reportMissingImports]
        from sklearn.linear_model import (  # pyright: ignore[reportMissingImports]
            LogisticRegression,
        )
    except ImportError as error:
        print(f"obp's columns stay empty: {error}", file=sys.stderr)
        return {}
    features = [log[f"user_feature_{i}"] for i in range(4)]
    context = np.hstack([column[:, None] == np.unique(column)[1:] for column in features])
    given: dict[str, Any] = {
        "reward": log["click"],
        "action": log["item_id"],
        "position": log["position"] - 1,
        "pscore": log["propensity_score"],
        "action_dist": np.broadcast_to(target.T, (len(log["click"]), *target.T.shape)),
    }
    model = ope.RegressionModel(
        n_actions=target.shape[1],
        len_list=PLACES,
        base_model=LogisticRegression(C=100, max_iter=1000, random_state=0),
    )
    given["estimated_rewards_by_reg_model"] = model.fit_predict(
        context=context.astype(float),
        **{name: given[name] for name in ("action", "reward", "position", "pscore")},
        n_folds=3,
        random_state=0,
    )
    found = {}
    for name, estimator in (
        ("plain", ope.InverseProbabilityWeighting()),
        ("self-normalised", ope.SelfNormalizedInverseProbabilityWeighting()),
        ("doubly robust", ope.DoublyRobust()),
        ("direct", ope.DirectMethod()),
    ):
        value = estimator.estimate_policy_value(**given)
        options: dict[str, Any] = {"alpha": 0.05, "n_bootstrap_samples": 2000, "random_state": 0}
        ends = estimator.estimate_interval(**given, **options)
        found[name] = (value, ends["95.0% CI (lower)"], ends["95.0% CI (upper)"])
    return found


def wilson(clicks: int, rows: int, z: float = 1.96) -> Estimate:
    """Return a share with its interval (Wilson 1927)."""
    share, spread = clicks / rows, z**2 / rows
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / rows + spread / rows / 4)
    return share, middle - half, middle + half


def shown(estimate: Estimate | gvf.Estimate | None) -> str:
    """Return a number with its interval, in clicks for so many decisions."""
    if estimate is None:
        return ""
    numbers = [*estimate]
    value, low, high = (f"{UNIT * number:.1f}" for number in numbers)
    return f"{value} (refused)" if np.isnan(numbers[1]) else f"{value} ({low} to {high})"


def sample(folder: Path, rows: int = 2000, items: int = 5) -> None:
    """Draw a sample of the same form: clicks are rare, and one policy favours some items."""
    rng = np.random.default_rng(0)
    for campaign in CAMPAIGNS:
        for policy, chance in (
            ("random", np.full(items, 1 / items)),
            ("bts", rng.dirichlet(np.full(items, 2.0))),
        ):
            item = rng.choice(items, size=rows, p=chance)
            columns = {
                "item_id": item,
                "position": rng.integers(1, PLACES + 1, size=rows),
                "click": (rng.random(rows) < 0.05).astype(int),
                "propensity_score": chance[item],
            }
            columns |= {f"user_feature_{i}": rng.integers(2, size=rows) for i in range(4)}
            file = folder / "obp" / "dataset" / "obd" / policy / campaign / f"{campaign}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.csv.write_csv(pa.table(columns), file)


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Write both tables; the only part is the folder of the unpacked package."""
    if quick:
        sample(folder)
    elif len(parts) != 1:
        raise SystemExit("name the folder of the unpacked package; the first lines of sweep.py")
    source = folder if quick else Path(parts[0])
    logs = ["campaign", "log", "policy"]
    worth = ["clicks in the log", "worth", "policy's own log"]
    facts = [[*logs, *worth, "least squares", "step sizes", "held-out"]]
    names = ("plain", "self-normalised", "doubly robust")
    estimates = [
        [*logs, *(f"{name}, {by}" for name in names for by in ("gvf", "obp")), "direct, obp"]
    ]
    for campaign in CAMPAIGNS[: 1 if quick else None]:
        both = {policy: read(source, policy, campaign) for policy in ("random", "bts")}
        items = 1 + max(int(log["item_id"].max()) for _, log in both.values())
        targets = {
            "random": np.full((PLACES, items), 1 / items),
            "bts": shares(both["bts"][1], items),
        }
        for own, other in (("random", "bts"), ("bts", "random")):
            file, log = both[own]
            by_steps = by_gvf(file, targets[other])
            solved = by_gvf(file, targets[other], '[learn]\ncorrections = ["LSTD"]')
            obp = by_obp(log, targets[other])
            truth = both[other][1]["click"]
            start = [campaign, own, other]
            numbers = [f"{log['click'].sum()}", f"{solved.judgement.rewards:.1f}"]
            values = [
                shown(wilson(int(truth.sum()), len(truth))),
                shown(solved.values[Estimator.LEARNED]),
                shown(by_steps.values[Estimator.LEARNED]),
            ]
            facts.append([*start, *numbers, *values, str(solved.judgement.verdict.outcome)])
            cells = []
            for name in names:
                ours = solved.values[Estimator(name.replace(" ", "-"))]
                cells += [shown(ours), shown(obp.get(name))]
            estimates.append([*start, *cells, shown(obp.get("direct"))])
            print(facts[-1], estimates[-1], sep="\n", flush=True)
    write_table(folder / "obd.markdown", facts)
    write_table(folder / "estimates.markdown", estimates)
