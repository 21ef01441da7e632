"""Measure how well step sizes and corrections are selected from a log, where the truth is known.

    python -m experiments judge             all, about 4 minutes of processor time
    python -m experiments judge decisions   only single decisions (policy_value.py)

Parts are logs, example and intervals, with a CSV file each, and decisions and episodes, with a
table each.

For each of 200 logs, learners with three corrections and eight step sizes learn by cross-validation
in five parts. Each criterion selects one of the 24 candidates from its errors in held-out episodes.
All criteria see the same learners and the same episodes. The true error of a candidate is the mean
of the true squared errors of its five learners; that of a learner that learned from the whole log
is also measured. ``logs.csv`` has a row for each log, ``example.csv`` one for each step size.
"""

import copy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gvf
import gvf_lab
from experiments.judge.policy_value import of_decisions, of_episodes
from experiments.judge.random_problems import PUSH, Problem, problem, visited, walks
from experiments.tables import write_rows, write_table
from gvf.common.arrays import Floats
from gvf.judging.candidates import Candidate, named
from gvf.judging.compare import Comparison, judged
from gvf.judging.held_out import HeldOut, gather
from gvf.judging.select_learner import splits
from gvf_lab.domain import TabularDomain, get
from gvf_lab.worlds import cartpole_tiles, leaning

LOGS = 200
SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
CORRECTIONS = (gvf.corrections.IR(), gvf.corrections.IS(), gvf.corrections.VTrace(1.0))


class Learned:
    """The learners of one log, in five parts, and their errors."""

    def __init__(self, world: Problem, number: int) -> None:
        update = gvf.updates.TD([size / world.tilings for size in SIZES])
        made = [
            gvf.Learner(world.question, world.features, update, correction, seed=number)
            for correction in CORRECTIONS
        ]
        learners, parts, errors, true, sizes = named(made), [], [], [], []
        for rest, out in splits(len(world.log.episodes), 0.2, True, number):
            learned = copy.deepcopy(learners)
            for one in learned.values():
                one.fit(world.log.select(rest), order="log", progress=False)
            held_out = world.log.select(out)
            part, self.candidates = gather(learned, held_out, world.question, None, "error")
            parts.append(part)
            errors.append(td_errors(learned, part, held_out.transitions().next_state))
            true.append(true_errors(learned, world))
            sizes.append(len(held_out))
        self.held: HeldOut = HeldOut.joined(parts)
        self.squared: Floats = np.concatenate(errors)
        with np.errstate(over="ignore"):
            self.true: Floats = np.average(true, axis=0, weights=sizes)
        for one in learners.values():
            one.fit(world.log, order="log", progress=False)
        self.whole: Floats = true_errors(learners, world)

    def judgement(self, returns: Any) -> Comparison:
        """Judge the candidates by returns of this kind."""
        return judged(self.held, self.candidates, returns, 0.95, 1000, 0)

    def td_error(self, weights: Floats) -> Floats:
        """Compute the mean of the weighted squared TD errors of each candidate."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (weights[:, None] * self.squared).mean(axis=0)
        return np.where(np.isnan(mean), np.inf, mean)


def td_errors(learned: Mapping[str, Any], part: HeldOut, next_state: Any) -> Floats:
    """Compute the squared TD errors of all candidates in held-out transitions, [m, L]."""
    following = np.concatenate([one.predict(next_state) for one in learned.values()], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        target = part.cumulant[:, None] + part.continuation[:, None] * following
        return (target - part.predicted) ** 2


def true_errors(learned: Mapping[str, Any], world: Problem) -> Floats:
    """Compute the true squared error of all candidates; infinite if one has diverged."""
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = np.concatenate([one.predict(world.states) for one in learned.values()], axis=1)
        found = np.array([world.error(lane) for lane in predicted.T])
    return np.where(np.isfinite(found), np.maximum(found, 1e-12), np.inf)


def row_of(number: int) -> dict[str, Any]:
    """Select by all criteria from one log."""
    world = problem(number)
    one = Learned(world, number)
    names = [candidate.name for candidate in one.candidates]
    chosen: dict[str, int] = {}
    for kind in ("doubly-robust", "weighted", "per-decision"):
        chosen[kind] = names.index(one.judgement(kind).best.name)
    chosen["ratio-td"] = int(np.argmin(one.td_error(one.held.ratio)))
    chosen["td"] = int(np.argmin(one.td_error(np.ones(len(one.held.ratio)))))
    judgement = one.judgement("doubly-robust")
    covered, pairs = coverage(judgement, one.candidates, one.true)
    row: dict[str, Any] = {
        "log": number,
        "world": world.kind,
        "about": world.about,
        "transitions": len(world.log),
        "episodes": judgement.episodes,
        "effective_sample_size": judgement.effective_sample_size,
        "k_hat": judgement.k_hat,
        "beyond": judgement.beyond,
        "doubts": len(judgement.doubts),
        "chance": judgement.best.chance,
        "pairs": pairs,
        "covered": covered,
        "best": names[int(np.argmin(one.true))],
        "error": one.true.min(),
        "error_whole": one.whole.min(),
    }
    for kind, at in chosen.items():
        row[f"{kind}_chose"] = names[at]
        row[f"{kind}_ratio"] = one.true[at] / one.true.min()
        row[f"{kind}_ratio_whole"] = one.whole[at] / one.whole.min()
    for size, at in zip(SIZES, range(len(SIZES)), strict=True):
        row[f"always_{size}_ratio"] = one.true[at] / one.true.min()
    return row


def coverage(judgement: Comparison, listed: list[Candidate], true: Floats) -> tuple[int, int]:
    """Count the intervals of differences that contain the true one: to IR with step size 0.1."""
    reference = SIZES.index(0.1)
    covered = pairs = 0
    for at, candidate in enumerate(listed):
        if at == reference or not np.isfinite(true[[at, reference]]).all():
            continue
        found = judgement.compare(candidate.name, listed[reference].name)
        if np.isnan(found.low):  # one of the two counts as diverged, and there is no interval
            continue
        difference = true[at] - true[reference]
        pairs += 1
        covered += bool(found.low <= difference <= found.high)
    return covered, pairs


def example(quick: bool = False) -> list[dict[str, Any]]:
    """Judge step sizes by one log of CartPole: 5000 steps, one pass, held out for a third."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=40)
    (batch,) = gvf.collect(env, PUSH, steps=5000, batch=5000, seed=0)
    train, held_out = gvf.read_log(batch.columns, quiet=True).split(1 / 3, seed=0)
    question = gvf.GVF(leaning(1 - 0.9), "reward", 0.9)
    features = cartpole_tiles(tilings=16)
    sizes = [float(f"{size:.1g}") for size in np.geomspace(0.003, 0.6, 12)]
    learner = gvf.Learner(question, features, gvf.updates.TD(sizes), gvf.corrections.IR(), seed=0)
    learner.fit(train, order="log", progress=False)
    truth = gvf.held_out_returns(
        env, question, behaviour=PUSH, states=100 if quick else 2000, rollouts=4,
        run_length=200, cutoff=1e-3, seed=1,
    )  # fmt: skip
    part, listed = gather({"TD": learner}, held_out, question, None, "error")
    squared = td_errors({"TD": learner}, part, held_out.transitions().next_state)
    judgement = gvf.compare_learners({"TD": learner}, held_out)
    print(judgement)
    by_name = {score.name: score for score in judgement.scores}
    predicted = learner.predict(truth.states)
    rows = []
    for at, (size, candidate) in enumerate(zip(sizes, listed, strict=True)):
        score = by_name[candidate.name]
        found = truth.error(lambda _, at=at: predicted[:, at]).mean_squared_value
        assert found is not None
        rows.append({
            "step_size": size,
            "true": found.value,
            "true_stderr": found.standard_error,
            "td": float(squared[:, at].mean()),
            "score": score.score,
            "above": score.difference.value,
            "low": score.difference.low,
            "high": score.difference.high,
        })  # fmt: skip
    return rows


def intervals(runs: int = 100) -> list[dict[str, Any]]:
    """Count how often intervals of judged scores contain the truth, by the number of episodes.

    In the chain, 100 episodes to learn from and others to judge by, the step sizes .01, .03, .3 and
    1 are compared with .1.
    """
    domain, sizes = get("markov-chain"), [0.01, 0.03, 0.3, 1.0, 0.1]
    assert isinstance(domain, TabularDomain)
    mu, question = (
        gvf.policies.Fixed([0.6, 0.4]),
        gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9),
    )
    values, weights = gvf_lab.exact_values(domain.model, question), visited(domain, mu, 100)
    rows = []
    for episodes in (10, 20, 50, 200):
        covered = 0
        for run in range(runs):
            rng = np.random.default_rng([run, episodes])
            train, held_out = (walks(domain, mu, n, 100, 0.0, rng) for n in (100, episodes))
            learner = gvf.Learner(
                question,
                gvf.features.OneHot(10),
                gvf.updates.TD(sizes),
                gvf.corrections.IR(),
                seed=run,
            )
            learner.fit(train, order="log", progress=False)
            found = gvf.compare_learners(learner, held_out, replicates=1000)
            true = weights @ (learner.predict(np.arange(10)) - values[:, None]) ** 2
            for size, error in zip(sizes[:-1], true, strict=False):
                d = found.compare(f"TD, IR, step size {size:g}", "TD, IR, step size 0.1")
                covered += bool(d.low <= error - true[-1] <= d.high)
        rows.append({"episodes": episodes, "intervals": 4 * runs, "covered": covered})
    return rows


PARTS = ("example", "intervals", "logs", "decisions", "episodes")


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Measure parts, by default all, and write their files; the quick measure has few logs."""
    for part in parts or PARTS:
        if part == "example":
            write_rows(folder / "example.csv", example(quick))
        elif part == "intervals":
            write_rows(folder / "intervals.csv", intervals(2 if quick else 100))
        elif part == "logs":
            rows = []
            for number in range(LOGS if not quick else 2):
                rows.append(row_of(number))
                if sys.stderr.isatty():
                    print(f"\r{number + 1} of {LOGS} logs", end="", file=sys.stderr)
            write_rows(folder / "logs.csv", rows)
        else:
            lines = {"decisions": of_decisions, "episodes": of_episodes}[part]
            write_table(folder / f"{part}.markdown", lines(2 if quick else 400))
