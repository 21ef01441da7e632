"""Measure how well step sizes and corrections are selected from a log, where the truth is known.

    python docs/judge/experiments.py            all, about 3 minutes of processor time
    python docs/judge/experiments.py pictures   only the tables and pictures, from the CSV files

For each of 200 logs, learners with three corrections and eight step sizes learn by cross-validation
in five parts. Each criterion selects one of the 24 candidates from its errors in held-out episodes.
All criteria see the same learners and the same episodes. The true error of a candidate is the mean
of the true squared errors of its five learners; that of a learner that learned from the whole log
is also measured. ``logs.csv`` has a row for each log, ``example.csv`` one for each step size.
"""

import copy
import csv
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
from worlds import KINDS, PUSH, Problem, leaning, problem, visited, walks

import gvf
import gvf_lab
from gvf.common.arrays import Bools, Floats
from gvf.common.colours import SPARE_COLOURS
from gvf.common.plot_style import house_style
from gvf.judging.candidates import Candidate, named
from gvf.judging.compare import Comparison, judged
from gvf.judging.held_out import HeldOut, gather
from gvf.judging.select_learner import splits
from gvf_lab.domain import TabularDomain, get

HERE = Path(__file__).resolve().parent
LOGS = 200
SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
CORRECTIONS = (gvf.corrections.IR(), gvf.corrections.IS(), gvf.corrections.VTrace(1.0))
CRITERIA = {
    "doubly-robust": "returns, doubly robust",
    "weighted": "returns, weighted",
    "per-decision": "returns, per decision",
    "ratio-td": "TD error, weighted by ratio",
    "td": "TD error",
}
"""The criteria by their names in the file, with their names in the picture."""
NEAR = 1.1
"""The ratio to the lowest true error up to which a candidate counts as best."""


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


def measure(number: int) -> dict[str, Any]:
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


def example() -> list[dict[str, Any]]:
    """Judge step sizes by one log of CartPole: 5000 steps, one pass, held out for a third."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=40)
    (batch,) = gvf.collect(env, PUSH, steps=5000, batch=5000, seed=0)
    train, held_out = gvf.read_log(batch.columns, quiet=True).split(1 / 3, seed=0)
    question = gvf.GVF(leaning(0.9), "reward", 0.9)
    low, high = [-2.4, -2.5, -0.21, -2.5], [2.4, 2.5, 0.21, 2.5]
    features = gvf.features.TileCoder(low=low, high=high, tiles=[2, 2, 6, 4], tilings=16)
    sizes = [float(f"{size:.1g}") for size in np.geomspace(0.003, 0.6, 12)]
    learner = gvf.Learner(question, features, gvf.updates.TD(sizes), gvf.corrections.IR(), seed=0)
    learner.fit(train, order="log", progress=False)
    truth = gvf.held_out_returns(
        env, question, behaviour=PUSH, states=2000, rollouts=4, run_length=200, cutoff=1e-3, seed=1
    )
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


def intervals() -> list[dict[str, Any]]:
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
        for run in range(100):
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
        rows.append({"episodes": episodes, "intervals": 400, "covered": covered})
    return rows


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows to a CSV file."""
    with Path(HERE, name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def read(name: str) -> list[dict[str, str]]:
    """Read the rows of a CSV file."""
    with Path(HERE, name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> Floats:
    """Return a column as numbers."""
    return np.array([float(row[name]) for row in rows])


def bootstrap(statistic: Callable[[Any], Floats], count: int) -> tuple[float, float]:
    """Return the 95 % interval of a statistic of positions of logs [B, count]."""
    at = np.random.default_rng(0).integers(count, size=(10_000, count))
    low, high = np.quantile(statistic(at), [0.025, 0.975])
    return float(low), float(high)


def share(near: Bools) -> str:
    """Return the share of logs with its interval, in percent."""
    low, high = bootstrap(lambda at: near[at].mean(axis=1), len(near))
    return f"{100 * near.mean():.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def times(ours: Bools, theirs: Bools) -> str:
    """Return the ratio of two shares, paired by log, with its interval."""
    low, high = bootstrap(
        lambda at: ours[at].mean(axis=1) / np.maximum(theirs[at].mean(axis=1), 1e-9), len(ours)
    )
    return f"{ours.mean() / theirs.mean():.2f} ({low:.2f} to {high:.2f})"


def interval_table(rows: list[dict[str, str]]) -> str:
    """Return the table of intervals by the number of episodes, in Markdown."""
    shares = column(rows, "covered") / column(rows, "intervals")
    cells = [f"{100 * share:.0f} %" for share in shares]
    return (
        f"| held-out episodes | {' | '.join(row['episodes'] for row in rows)} |\n"
        f"|{'---|' * (len(rows) + 1)}\n"
        f"| intervals that contain the truth | {' | '.join(cells)} |\n"
    )


def tables(rows: list[dict[str, str]]) -> str:
    """Return the tables of the page in Markdown."""
    worlds = {"all": rows} | {kind: [r for r in rows if r["world"] == kind] for kind in KINDS}
    lines = [f"| selected by | {' | '.join(f'{k}, {len(v)} logs' for k, v in worlds.items())} |"]
    lines.append("|---|" + "---|" * len(worlds))
    for kind, label in CRITERIA.items():
        cells = [share(column(some, f"{kind}_ratio") <= NEAR) for some in worlds.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    best = max(SIZES, key=lambda s: float((column(rows, f"always_{s}_ratio") <= NEAR).mean()))
    cells = [share(column(some, f"always_{best}_ratio") <= NEAR) for some in worlds.values()]
    lines.append(f"| nothing: always IR with {best:g} | {' | '.join(cells)} |")
    lines.append("")
    lines.append("| doubly robust, times as often as | TD error | weighted TD error |")
    lines.append("|---|---|---|")
    for label, suffix, near in (
        ("learners that were judged", "ratio", NEAR),
        ("the same, root of the error", "ratio", NEAR**2),
        ("a learner of the whole log", "ratio_whole", NEAR),
    ):
        ours, *others = (
            column(rows, f"{kind}_{suffix}") <= near for kind in ("doubly-robust", "td", "ratio-td")
        )
        lines.append(f"| {label} | {' | '.join(times(ours, other) for other in others)} |")
    lines.append("")
    lines.append("| logs | number | selected within 10 % | intervals that contain the truth |")
    lines.append("|---|---|---|---|")
    near, chance = column(rows, "doubly-robust_ratio") <= NEAR, column(rows, "chance")
    doubt, size = column(rows, "doubts") > 0, column(rows, "effective_sample_size")
    k_hat, episodes = column(rows, "k_hat"), column(rows, "episodes")
    beyond = column(rows, "beyond")
    for label, some in (
        ("all", episodes > 0),
        ("without doubts", ~doubt),
        ("with doubts", doubt),
        ("k-hat above 0.7", k_hat > 0.7),
        ("effective sample size below 10", size < 10),
        ("more than 15 % of the values beyond cut episodes", beyond > 0.15),
        ("fewer than 50 episodes", episodes < 50),
        ("at least 200 episodes", episodes >= 200),
        ("chance of the winner below 40 %", chance < 0.4),
        ("chance of the winner above 60 %", chance > 0.6),
    ):
        if some.any():
            kept = [row for row, keep in zip(rows, some, strict=True) if keep]
            covered = column(kept, "covered").sum() / column(kept, "pairs").sum()
            cells = [label, str(some.sum()), f"{100 * near[some].mean():.0f} %"]
            cells.append(f"{100 * covered:.0f} %")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def pictures(rows: list[dict[str, str]], steps: list[dict[str, str]]) -> None:
    """Draw the shares, the ratios of errors, and the example."""
    colours = dict(
        zip(CRITERIA, ("#d55e00", "#e69f00", "#cc79a7", "#56b4e9", "#0072b2"), strict=True)
    )
    markers = dict(zip(CRITERIA, "os^Dv", strict=True))
    with house_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        groups = {f"all\n{len(rows)} logs": rows}
        for kind in KINDS:
            some = [row for row in rows if row["world"] == kind]
            groups[f"{kind}\n{len(some)} logs"] = some
        for at, (kind, label) in enumerate(CRITERIA.items()):
            for place, some in enumerate(groups.values()):
                near = column(some, f"{kind}_ratio") <= NEAR
                low, high = bootstrap(lambda i, near=near: near[i].mean(axis=1), len(near))
                x = place + 0.12 * (at - 2)
                left.plot([x, x], [100 * low, 100 * high], color=colours[kind], linewidth=1.5)
                left.plot(
                    x, 100 * near.mean(), markers[kind], color=colours[kind], markersize=5,
                    label=label if place == 0 else None,
                )  # fmt: skip
            ratios = np.sort(column(rows, f"{kind}_ratio"))
            shares = 100 * np.arange(1, len(ratios) + 1) / len(ratios)
            right.step(ratios, shares, where="post", color=colours[kind], label=label)
        left.set_xticks(range(len(groups)), groups)
        left.set_ylim(0, 100)
        left.set_ylabel("logs (%) with a selection within\n10 % of the lowest true error")
        left.grid(axis="x", visible=False)
        right.set_xscale("log")
        right.set_xlim(1, 1e3)
        right.set_ylim(0, 100)
        right.axvline(NEAR, color=SPARE_COLOURS[-1], linewidth=0.8, linestyle=":")
        right.set_xlabel("true squared error of the selection / lowest of all candidates")
        right.set_ylabel("logs (%) at or below")
        right.legend(loc="lower right", title="step size and correction selected by")
        figure.savefig(HERE / "result.png", dpi=150, metadata={"Software": None})
        plt.close(figure)
        draw_example(steps, colours)


def draw_example(steps: list[dict[str, str]], colours: Mapping[str, str]) -> None:
    """Draw the true error, the scores and the TD errors of one log against the step size."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
    x = column(steps, "step_size")
    panels = (
        ("true", "true squared error", SPARE_COLOURS[-1]),
        ("score", "score, doubly robust", colours["doubly-robust"]),
        ("td", "held-out squared TD error", colours["td"]),
    )
    true = column(steps, "true")
    for axis, (name, label, colour) in zip(axes, panels, strict=True):
        y = column(steps, name)
        if name == "score":
            low, high = y.min() + column(steps, "low"), y.min() + column(steps, "high")
        else:
            spread = 1.96 * column(steps, "true_stderr") if name == "true" else 0.0 * y
            low, high = y - spread, y + spread
        axis.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
        axis.plot(x, y, "o-", color=colour, markersize=3.5, linewidth=1.2)
        best = int(np.argmin(y))
        axis.plot(x[best], y[best], "*", color=colour, markersize=13)
        axis.set_xscale("log")
        axis.set_ylim(0, None)
        axis.set_xlabel("step size")
        axis.set_title(f"{label}\nlowest at {x[best]:g}, where the true error is {true[best]:.2g}")
    axes[0].set_ylabel("mean square (units of return squared)")
    figure.savefig(HERE / "example.png", dpi=150, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Measure, unless only pictures are wanted, and write tables and pictures."""
    if sys.argv[1:] != ["pictures"]:
        write("example.csv", example())
        write("intervals.csv", intervals())
        rows = []
        for number in range(LOGS):
            rows.append(measure(number))
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {LOGS} logs", end="", file=sys.stderr)
        write("logs.csv", rows)
    text = tables(read("logs.csv"))
    Path(HERE, "tables.markdown").write_text(text, "utf-8")
    Path(HERE, "intervals.markdown").write_text(interval_table(read("intervals.csv")), "utf-8")
    print(text)
    pictures(read("logs.csv"), read("example.csv"))


if __name__ == "__main__":
    main()
