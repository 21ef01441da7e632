"""Figure 3 of the paper: networks that predict from the images of a racing car's driver.

The question is how soon the car comes near the middle of the road if it steers a little to the
left. The paper does not state the steps, window, mini-batch, optimiser or learning rates. The notes
list our choices, and the documentation's page about this figure gives the reasons.

A prediction that does not depend on the image is a constant, so a learning rate is *usable* if the
error, averaged over the run, is below that of the best constant. Results have this error as a
column, and the figure shows it as a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.figure.families import ClaimFile
from gvf_lab.figure.figure import Axes, Companion, Figure, Point
from gvf_lab.figure.picture import draw
from gvf_lab.figure.points import NAN, learning_curves, points_by_step_size
from gvf_lab.figure.statistics import ends_at
from gvf_lab.racing.film import FILM
from gvf_lab.racing.racing_study import RacingStudy
from gvf_lab.study.base_study import NamedStudy
from gvf_lab.study.results import Results, resampling

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

RATES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Learning rates, from too small to too large."""
LARGE_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""Learning rates of SGD with momentum on the tuning stream: it bears larger ones than Adam."""
MOMENTUM_RATES = (3e-2, 1e-1, 3e-1)
"""IR's best learning rate with momentum on the tuning stream, and its neighbours."""
TUNING_SEED = 1
"""The seed of the tuning stream and its evaluation states; the figures' runs have seed 0."""
STEP_SIZE = NamedStudy(
    "racing-step-size",
    "error against learning rate, from images (Fig. 3)",
    lambda protocol: RacingStudy("racing-step-size", step_sizes=RATES),
)
"""The study of the figure."""
MOMENTUM = NamedStudy(
    "racing-momentum",
    "IR and BC-IR with SGD and momentum, from images",
    lambda protocol: RacingStudy(
        "racing-momentum",
        methods=("IR", "BC-IR", "IS"),
        step_sizes=MOMENTUM_RATES,
        optimiser="momentum",
    ),
)
"""BC-IR differs from IR by a factor, which Adam divides out and SGD with momentum does not."""


def _tuning(optimiser: str, rates: tuple[float, ...] = RATES) -> NamedStudy:
    name = f"racing-tuning-{optimiser}"
    return NamedStudy(
        name,
        f"{optimiser} on the tuning stream, from images",
        lambda protocol: RacingStudy(
            name,
            methods=("IR", "IS", "V-trace(1.0)"),
            step_sizes=rates,
            optimiser=optimiser,
            evaluation_states=100,
            runs=1,
            seed=TUNING_SEED,
        ),
    )


TUNING = (_tuning("momentum", LARGE_RATES), _tuning("rmsprop"), _tuning("adam"))
"""Optimisers compared on a stream that no other study uses."""
STUDIES = (STEP_SIZE, MOMENTUM, *TUNING)
"""All studies of the racing car that are known by name."""
CONSTANT = "best constant"
"""The name of the line that shows the error of the best constant prediction."""
RUNS = 10
"""The paper's number of runs."""
NOTES = (
    "The paper states neither steps, window, mini-batch, optimiser nor rates. Chosen, at the scale "
    "paper: each run has its own stream of 45,000 steps of .1 s at 15 m/s, over three tracks in "
    "turn; the window holds the whole stream; k = 16, after 25,000 steps an update every step, "
    "20,000 in all; Adam; near the middle is within .1 half-widths of the road. The error is "
    "averaged over the run, over 300 states with returns of 5 rollouts each. A mean over so few "
    "runs shows single peaks: a network's error can become very large for some hundreds of updates "
    "and recover, or never recover, and one such run moves the mean and its band. With ten runs "
    "the 95 % of an interval are nominal."
)
QUICK = {
    "runs": 2,
    "steps": 7500,
    "warm_up": 1500,
    "gap": 10,
    "step_sizes": (3e-4, 3e-3, 3e-2),
    "measure_every": 50,
    "points": 12,
    "evaluation_states": 60,
    "rollouts": 3,
}
"""Settings of the scale "quick": the same networks and images, fewer of everything else."""


def remark(study: RacingStudy) -> str:
    """Return the end of the title: the simulator, and the number of runs if less than 10."""
    name = {"torcs": "TORCS", "car-racing": "Gymnasium's CarRacing"}[study.simulator]
    few = study.simulator == "torcs" and study.runs < RUNS
    return f"{name}, only {study.runs} of {RUNS} runs" if few else name


def constant(results: Results) -> float:
    """Return the error of the best constant prediction, which all runs share."""
    return float(results.of(results.study.methods[0])["constant"][0, 0])


def with_constant(read: Callable[[Results], list[Point]]) -> Callable[[Results], list[Point]]:
    """Add the error of the best constant to the points of a reading, as a series of its own."""

    def both(results: Results) -> list[Point]:
        rows, level = read(results), constant(results)
        places = sorted({row.x for row in rows})
        ends = dict.fromkeys((places[0], places[-1]))
        return rows + [
            Point(results.protocol, rows[0].panel, CONSTANT, x, level, 0.0, results.runs, NAN)
            for x in ends
        ]

    return both


def _learning_curves(results: Results) -> Picture:
    rows = with_constant(learning_curves)(results)
    return draw(rows, Axes(results.study.curve_unit, results.study.quantity))


LEARNING_CURVES = Companion(
    "learning-curves",
    "Error while learning, at each method's best learning rate, and the error of the best constant "
    "prediction. Bands: one standard error.",
    _learning_curves,
)


def usable(results: Results, method: str) -> Array:
    """Return which learning rates are usable in every sample: bool[1 + B, L]."""
    return results.errors(method) < constant(results)


# Statistics that claims about the racing car name.


def difference_of_usable_rates(results: Results, method: str, other: str) -> Array:
    """Return the number of learning rates that a method can use, less that of another one."""
    return usable(results, method).sum(axis=1) - usable(results, other).sum(axis=1)


def ratio_of_factors_over_rates(results: Results, method: str, other: str) -> Array:
    """Return the largest over the smallest error of all rates, a method's over another one's."""
    first, second = (
        errors.max(axis=1) / errors.min(axis=1) for errors in map(results.errors, (method, other))
    )
    return first / second


def largest_error_ratio_of_rates(results: Results, method: str, other: str) -> Array:
    """Return the error of a method over that of another one, the largest of all rates."""
    return (results.errors(method) / results.errors(other)).max(axis=1)


def end_over_constant(results: Results, method: str) -> Array:
    """Return the error in the last tenth of the run over that of the best constant."""
    return ends_at(results, method) / constant(results)


def second_largest_spread_ratio(results: Results, method: str, other: str) -> Array:
    """Return one spread over runs over another, second largest over rates the other can use.

    The second largest, because the paper mentions two rates, and because the largest of several
    ratios is large by chance alone. At rates that the other cannot use neither method learns, so
    they do not count; 0 if it can use fewer than two.
    """
    first, second = (_spread(results, name) for name in (method, other))
    counted = np.where(usable(results, other), first / second, 0.0)
    return np.sort(counted, axis=1)[:, -2:].min(axis=1)


def _spread(results: Results, method: str) -> Array:
    """Compute the standard deviation over runs, [1 + B, L]; infinite where a run diverged."""
    error = results.of(method).error
    finite = np.isfinite(error)
    # Differences from the mean, so that squares lose no digits where runs hardly differ.
    middle = np.where(finite, error, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    apart = np.where(finite, error - middle, 0.0)
    weights = resampling(results.runs)
    variance = weights @ apart**2 - (weights @ apart) ** 2
    return np.where(weights @ ~finite > 0, np.inf, np.sqrt(np.maximum(variance, 1e-300)))


def error_ratio_at_largest_usable_rate(results: Results, method: str, other: str) -> Array:
    """Return an error ratio at the largest rate that the other can use; nan if there is none."""
    theirs, ours = results.errors(method), results.errors(other)
    can = usable(results, other)
    largest = can.shape[1] - 1 - can[:, ::-1].argmax(axis=1)
    row = np.arange(len(ours))
    return np.where(can.any(axis=1), theirs[row, largest] / ours[row, largest], np.nan)


CLAIMS = ClaimFile(__name__)
MOMENTUM_NOTES = (
    "BC-IR multiplies IR's step by the mean ratio of the window. Adam divides such a factor out, "
    "so the two are compared with SGD and momentum .9 here. The rest is as in racing-step-size."
)
_AXES = Axes("learning rate", "mean squared return error", x_log=True)

FIGURES = (
    Figure(
        STEP_SIZE,
        "Racing car: sensitivity to the learning rate",
        "Fig. 3",
        _AXES,
        with_constant(points_by_step_size),
        quick=QUICK,
        on_request=True,
        remark=remark,
        companions=(LEARNING_CURVES, FILM),
        notes={"paper": NOTES, "authors": f"No code was released: as in the text. {NOTES}"},
        claims_of=CLAIMS,
        world="Racing car",
    ),
    Figure(
        MOMENTUM,
        "Racing car: IR and BC-IR with SGD and momentum",
        "not in the paper",
        _AXES,
        with_constant(points_by_step_size),
        quick=QUICK | {"step_sizes": MOMENTUM_RATES},
        main=False,
        ours=True,
        on_request=True,
        remark=remark,
        companions=(LEARNING_CURVES,),
        notes={"paper": MOMENTUM_NOTES, "authors": MOMENTUM_NOTES},
        claims_of=CLAIMS,
        world="Racing car",
    ),
)
