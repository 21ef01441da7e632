"""The tables of the page, as CSV files and in Markdown."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.humanoid.findings import Findings, own_forces
from examples.humanoid.learn import CORRECTIONS
from examples.humanoid.robot import CONTINUATIONS, DISTANCES, Robot, distance_of, expected_share

KINDS = {
    "qpos": "positions of joints",
    "qvel": "velocities of joints",
    "cinert": "inertias of bodies",
    "cvel": "velocities of bodies",
    "qfrc_actuator": "forces of actuators",
    "cfrc_ext": "contact forces",
}


def write_tables(
    path: Path, robot: Robot, found: Findings, compared: Sequence[Mapping[str, Any]]
) -> None:
    """Write all tables into a folder."""
    _csv(path / "summary.csv", [found.summary])
    _csv(path / "corrections.csv", compared)
    _csv(path / "targets.csv", _targets(robot, found))
    _csv(path / "answers.csv", _answers(robot, found))
    horizons = [f"γ = {c:g}" for c in CONTINUATIONS]
    _markdown(path / "targets.markdown", *_ladder(robot, found, horizons))
    _markdown(path / "kinds.markdown", *_kinds(robot, found, horizons))
    _markdown(path / "named.markdown", *_named(robot, found))
    _markdown(path / "changes.markdown", *_changes(robot, found, horizons))
    everyone = [*CORRECTIONS, "none"]
    _markdown(
        path / "corrections.markdown", *_compared(robot.checked, everyone[1:], "ratio", compared)
    )
    pushed = [name for name in robot.checked if distance_of(name) is not None]
    _markdown(path / "shares.markdown", *_compared(pushed, everyone[:-1], "change", compared))


def _targets(robot: Robot, found: Findings) -> Iterable[dict[str, Any]]:
    for i, (name, policy) in enumerate(robot.targets.items()):
        yield {
            "target": name,
            "expected_share": expected_share(policy),
            "effective_samples": found.effective[i],
            "mean_ratio": found.mean_ratio[i],
        }


def _answers(robot: Robot, found: Findings) -> Iterable[dict[str, Any]]:
    """Yield a row for each target and sensor: the variance explained, with its standard error."""
    for t, target in enumerate(robot.checked):
        for s, sensor in enumerate(found.names):
            row: dict[str, Any] = {"target": target, "sensor": sensor}
            for c, horizon in enumerate(CONTINUATIONS):
                row[f"{horizon:g}"] = f"{found.corrected.found[t, s, c]:.2f}"
                row[f"{horizon:g}_stderr"] = f"{found.corrected.stderr[t, s, c]:.2f}"
            yield row


def _ladder(robot: Robot, found: Findings, horizons: list[str]) -> tuple[list[str], Any]:
    heads = ["target", "expected share", "effective samples", "mean ratio"]
    rows = []
    for t, target in enumerate(robot.checked):
        row = [target, f"{expected_share(robot.targets[target]):.2g}"]
        row += [f"{found.effective[t]:,.0f}", f"{found.mean_ratio[t]:.2f}"]
        for explained in (found.corrected, found.uncorrected):
            row += [
                _plus_minus(explained.median(np.s_[t, :, c])) for c in range(len(CONTINUATIONS))
            ]
        rows.append(row)
    return [*heads, *horizons, *(f"uncorrected, {h}" for h in horizons)], rows


def _kinds(robot: Robot, found: Findings, horizons: list[str]) -> tuple[list[str], Any]:
    pushed = {d: _pushed(robot, d) for d in DISTANCES}
    groups = {"behaviour": [0], **{f"pushed by {d:g}": pushed[d] for d in (DISTANCES[1], 3.0)}}
    heads = ["sensors", "number", *(f"{name}, {h}" for name in groups for h in horizons)]
    rows = []
    for kind in dict.fromkeys(found.kinds.tolist()):
        own = np.flatnonzero(found.kinds == kind)
        row = [KINDS.get(kind, kind), str(len(own))]
        for targets in groups.values():
            for c in range(len(CONTINUATIONS)):
                some = (np.array(targets)[:, None], own, c)
                explained, _ = found.corrected.median(some)
                row.append(f"{explained:.2f} ({np.median(found.possible[some]):.2f})")
        rows.append(row)
    return heads, rows


def _changes(robot: Robot, found: Findings, horizons: list[str]) -> tuple[list[str], Any]:
    """Return the size of the changes, that of the errors of predicted ones, and the correlation."""
    rows, some = [], ~own_forces(found.kinds)
    for t, target in enumerate(robot.checked[1:], 1):
        row = [target]
        for c in range(len(CONTINUATIONS)):
            true, predicted = found.change[t, some, c], found.predicted_change[t, some, c]
            size, wrong = (np.sqrt(np.square(x).mean()) for x in (true, predicted - true))
            row.append(f"{size:.2f}, {wrong:.2f}, {np.corrcoef(true, predicted)[0, 1]:.2f}")
        rows.append(row)
    return ["target", *horizons], rows


def _named(robot: Robot, found: Findings) -> tuple[list[str], Any]:
    """Return the best and the worst question of each kind, for the middle horizon."""
    rows, c = [], 1
    (t, *_) = _pushed(robot, DISTANCES[1])
    for kind in dict.fromkeys(found.kinds.tolist()):
        own = np.flatnonzero(found.kinds == kind)
        order = own[np.argsort(found.corrected.found[t, own, c])]
        row = [KINDS.get(kind, kind)]
        for s in (order[-1], order[len(order) // 2], order[0]):
            numbers = found.corrected.found[t, s, c], found.corrected.stderr[t, s, c]
            row.append(f"`{found.names[s]}` {_plus_minus(numbers)}")
        rows.append(row)
    return ["sensors", "best", "middle", "worst"], rows


def _compared(
    targets: Sequence[str],
    corrections: Sequence[str],
    key: str,
    compared: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[list[str]]]:
    """Return a number and its interval for each target and correction."""
    rows = []
    for target in targets:
        own = {row["correction"]: row for row in compared if row["target"] == target}
        cells = [
            f"{own[c][key]:.2f} ({own[c][f'{key}_low']:.2f} to {own[c][f'{key}_high']:.2f})"
            for c in corrections
        ]
        rows.append([target, *cells])
    return ["target", *corrections], rows


def _pushed(robot: Robot, distance: float) -> list[int]:
    """Return the numbers of the checked targets whose mean is so far away."""
    return [t for t, name in enumerate(robot.checked) if distance_of(name) == distance]


def _plus_minus(numbers: tuple[float, float]) -> str:
    return f"{numbers[0]:.2f} ± {numbers[1]:.2f}"


def _csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    listed = [
        {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, listed[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)


def _markdown(path: Path, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [heads, ["---"] * len(heads), *rows]
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")
