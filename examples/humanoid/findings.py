"""The findings: answers, errors and ratios of all checked questions, and who answers better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from examples.humanoid.judge import (
    TINY,
    all_but_one,
    all_states,
    by_chance,
    drawn,
    errors,
    interval,
    scaled_returns,
    sums,
)
from examples.humanoid.learn import CORRECTIONS, sensors
from examples.humanoid.robot import distance_of
from examples.humanoid.work import FIRST, OTHERS, Folder, compared
from gvf.common.arrays import Floats

Choice = dict[tuple[str, str], float]
"""The step size of each correction and target."""


@dataclass(frozen=True)
class Explained:
    """The variance of held-out returns that predictions explain, [targets, C, continuations].

    Attributes:
        found: the variance explained.
        stderr: its standard error.
        draws: the variance explained for states that are drawn anew, [draws, ...].
    """

    found: Floats
    stderr: Floats
    draws: Floats

    def median(self, questions: tuple[Any, ...]) -> tuple[float, float]:
        """Return the median over some questions, and its standard error."""
        draws = self.draws[(slice(None), *questions)].reshape(len(self.draws), -1)
        return float(np.median(self.found[questions])), float(np.median(draws, axis=1).std())


@dataclass(frozen=True)
class Findings:
    """The findings about the horde of all questions.

    Attributes:
        kinds: the kind of each sensor, [C].
        names: the name of each sensor.
        corrected: the variance explained by the answers.
        uncorrected: the same, if the answers about the behaviour are given for every target.
        possible: the largest variance explained that chance allows, [targets, C, continuations].
        change: how much more each target makes of a sensor than the behaviour, on average over
            states, in standard deviations of the behaviour's returns, [targets, C, continuations].
        predicted_change: the same by the answers.
        effective: the effective sample size of each policy in the window, [all targets].
        mean_ratio: the mean ratio of each policy in the window.
        predictions: predictions over a stretch of time, [steps, all targets, C, continuations].
        summary: counts and times.
    """

    kinds: NDArray[Any]
    names: list[str]
    corrected: Explained
    uncorrected: Explained
    possible: Floats
    change: Floats
    predicted_change: Floats
    effective: Floats
    mean_ratio: Floats
    predictions: NDArray[Any]
    summary: Mapping[str, float]


def kinds_of(names: Sequence[str]) -> NDArray[Any]:
    """Return the kind of each sensor."""
    return np.array([name.rpartition(" ")[0] for name in names])


def own_forces(kinds: NDArray[Any]) -> NDArray[Any]:
    """Return True for the sensors that measure the actions themselves, bool[C]."""
    return kinds == "qfrc_actuator"


def choose(folder: Folder) -> Choice:
    """Choose the step size of each correction and target by the first states and stream."""
    chosen: Choice = {}
    for correction in CORRECTIONS:
        best = np.argmin(_tried(folder, correction), axis=0)
        for target, at in zip(folder.robot.checked, best, strict=True):
            chosen[correction, target] = folder.scale.step_sizes[at]
    return chosen


def overall(folder: Folder) -> float:
    """Choose one step size of IR for all targets, by the first states and stream."""
    best = np.argmin(_tried(folder, "IR").mean(axis=1))
    return folder.scale.step_sizes[int(best)]


def _tried(folder: Folder, correction: str) -> Floats:
    """Return the mean logarithm of errors with each step size, [step sizes, targets]."""
    count = folder.scale.choosing
    returns, tried = _returns(folder)[:count], []
    for size in folder.scale.step_sizes:
        predictions = folder.read(compared(FIRST, correction, size))["predictions"][:count]
        tried.append(_log_errors(predictions, returns, all_states(count))[:, 0])
    return np.array(tried)


def _returns(folder: Folder) -> Floats:
    """Return the held-out returns of the questions in the comparison."""
    return scaled_returns(folder.held_out, folder.calibration)[:, :, :, :: folder.scale.apart]


def comparison(folder: Folder, chosen: Choice) -> list[dict[str, Any]]:
    """Compare corrections by the other states and streams, a row for each target and correction.

    The error of a target is the geometric mean over its questions. Ratios to the error of IR are
    means over streams of paired logarithms. The share of the change is the slope of a line through
    0 that fits predicted changes to true ones: the mean differences from the behaviour. All
    intervals are over states. "none" gives the answers about the behaviour for every target.
    """
    count, targets = folder.scale.choosing, folder.robot.checked
    returns = _returns(folder)[count:]
    weights = np.concatenate([all_states(len(returns)), drawn(len(returns))])
    names = list(sensors(folder.robot, folder.calibration))[:: folder.scale.apart]
    foreign = ~own_forces(kinds_of(names))
    logs: dict[str, Floats] = {}  # [streams, targets, weights]
    shares: dict[str, Floats] = {}
    for correction in (*CORRECTIONS, "none"):
        found, slopes = [], []
        for seed in OTHERS:
            none = _chosen(folder, chosen, seed, "IR", targets[:1])[count:]
            none = np.repeat(none, len(targets), axis=1)
            own = none
            if correction != "none":
                own = _chosen(folder, chosen, seed, correction, targets)[count:]
            found.append(_log_errors(own, returns, weights))
            some = np.s_[:, :, foreign]
            slopes.append(_slopes((own - none)[some], returns[:, :, :, foreign], weights))
        logs[correction], shares[correction] = np.array(found), np.mean(slopes, axis=0)
    rows = []
    for t, target in enumerate(targets):
        for correction, own in logs.items():
            over = own[:, t] - logs["IR"][:, t]
            ratio, share = np.exp(over.mean(axis=0)), shares[correction][t]
            row = {
                "target": target,
                "correction": correction,
                "step_size": chosen.get((correction, target), chosen["IR", targets[0]]),
                "error": float(np.exp(own[:, t, 0].mean())),
            }
            for name, values in (("ratio", ratio), ("change", share)):
                if name == "change" and distance_of(target) is None:
                    values = np.full_like(values, np.nan)  # a target that does not push
                low, high = interval(values[1:])
                row |= {name: float(values[0]), f"{name}_low": low, f"{name}_high": high}
            for seed, one in zip(OTHERS, over, strict=True):
                row[f"ratio_on_stream_{seed}"] = float(np.exp(one[0]))
            rows.append(row)
    return rows


def _chosen(
    folder: Folder, chosen: Choice, seed: int, correction: str, targets: list[str]
) -> NDArray[Any]:
    """Return the predictions with the step size that was chosen for each target."""
    pieces = [compared(seed, correction, chosen[correction, target]) for target in targets]
    own = [folder.read(piece)["predictions"][:, [t]] for t, piece in enumerate(pieces)]
    return np.concatenate(own, axis=1)


def _slopes(predicted: NDArray[Any], returns: Floats, weights: Floats) -> Floats:
    """Return the slopes of predicted changes over true ones, [targets, weights].

    The square of a true change is the product of those by the first and by the second rollouts,
    whose chances are independent, so that chance does not lower the slope.
    """
    shares = weights / weights.sum(axis=1, keepdims=True)
    unit = np.sqrt(np.maximum(returns[:, :, 0].var(axis=(0, 1)), TINY))
    first, second = np.moveaxis(returns - returns[:, :, :1], 1, 0)[:2]
    one, two, own = (np.tensordot(shares, part, 1) / unit for part in (first, second, predicted))
    square = (one * two).sum(axis=(2, 3))
    product = (own * (one + two) / 2.0).sum(axis=(2, 3))
    return (product / np.where(np.abs(square) > TINY, square, np.inf)).T


def _log_errors(predictions: NDArray[Any], returns: Floats, weights: Floats) -> Floats:
    """Return the mean logarithm of the errors of each target's questions, [targets, weights]."""
    return np.log(errors(sums(predictions, returns), weights)).mean(axis=(2, 3)).T


def find(folder: Folder) -> Findings:
    """Judge the horde of all questions by the states that did not choose its step size."""
    robot, scale, calibration = folder.robot, folder.scale, folder.calibration
    names = list(sensors(robot, calibration))
    horde = folder.read("horde")
    held = slice(scale.choosing, scale.states)
    returns = scaled_returns(folder.held_out, calibration)[held]
    own = horde["predictions"][held, : len(robot.checked)]
    unit = np.sqrt(np.maximum(returns[:, :, 0].var(axis=(0, 1)), TINY))
    seconds = float(folder.read(f"stream {FIRST}")["seconds"])
    return Findings(
        kinds=kinds_of(names),
        names=names,
        corrected=_explained(own, returns),
        uncorrected=_explained(np.repeat(own[:, :1], own.shape[1], axis=1), returns),
        possible=1.0 - by_chance(returns),
        change=(returns - returns[:, :, :1]).mean(axis=(0, 1)) / unit,
        predicted_change=(own - own[:, :1]).mean(axis=0) / unit,
        effective=horde["effective"],
        mean_ratio=horde["mean_ratio"],
        predictions=horde["predictions"][scale.states :],
        summary={
            "questions": horde["predictions"][0].size,
            "policies": len(robot.targets),
            "sensors": len(names),
            "channels": len(robot.channels),
            "checked questions": own[0].size,
            "steps": scale.steps,
            "updates": scale.steps // scale.update_every,
            "step size": float(horde["step_size"]),
            "paused": int(horde["paused"]),
            "seconds of simulation": seconds,
            "seconds of learning": float(horde["seconds"]),
            "seconds of processors": float(horde["processor"]),
            "steps a second": scale.steps / float(horde["seconds"]),
        },
    )


def _explained(predictions: NDArray[Any], returns: Floats) -> Explained:
    found, count = sums(predictions, returns), len(returns)
    left = errors(found, all_but_one(count))
    return Explained(
        found=1.0 - errors(found, all_states(count))[0],
        stderr=np.sqrt((count - 1) * left.var(axis=0)),
        draws=1.0 - errors(found, drawn(count, 200)),
    )
