"""Figure 3 of the paper: networks that predict from the images of a racing car's driver.

The question is how soon the car comes near the middle of the road if it steers a little to the
left. The paper does not state the steps, window, mini-batch, optimiser or learning rates. The notes
list our choices, and the documentation's page about this figure gives the reasons.
"""

from __future__ import annotations

import numpy as np

from gvf.common.arrays import Array
from gvf.figure.claim import Claim
from gvf.figure.companion import LEARNING_CURVES
from gvf.figure.figure import Axes, Figure
from gvf.figure.reading import against_step_size
from gvf.figure.statistics import USABLE_FACTOR, times
from gvf.racing.film import FILM
from gvf.racing.study import RacingStudy
from gvf.study.base import NamedStudy
from gvf.study.results import Results, resampling

RATES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Learning rates, from too small to too large."""
STEP_SIZE = NamedStudy(
    "racing-step-size",
    "error against learning rate, from images (Fig. 3)",
    lambda protocol: RacingStudy("racing-step-size", step_sizes=RATES),
)
"""The study of the figure."""
OTHERS = ("BC-IR", "IS", "V-trace(1.0)")
"""The methods with which the paper compares IR."""
RUNS = 10
"""The paper's number of runs."""
NOTES = (
    "The paper states neither steps, window, mini-batch, optimiser nor rates. Chosen, at the scale "
    "paper: 38,000 steps of .1 s at 15 m/s, of which run r sees the 20,000 from number 2,000 r on "
    "(runs overlap); n = 15,000, k = 16, after 5,000 steps an update every 3 steps, 5,000 in all; "
    "Adam; near the middle is within .1 half-widths of the road. The error is averaged over the "
    "run, over 100 states with returns of 5 rollouts each."
)
QUICK = {
    "runs": 2,
    "stream": 9000,
    "steps": 8000,
    "apart": 1000,
    "warm_up": 2000,
    "gap": 10,
    "step_sizes": (3e-4, 3e-3, 3e-2),
    "measure_every": 50,
    "points": 12,
    "evaluation_states": 50,
    "rollouts": 3,
}
"""Settings of the scale "quick": the same networks and images, fewer of everything else."""


def remark(study: RacingStudy) -> str:
    """Return the end of the title: the simulator, and the number of runs if less than 10."""
    name = {"torcs": "TORCS", "car-racing": "Gymnasium's CarRacing"}[study.simulator]
    few = study.simulator == "torcs" and study.runs < RUNS
    return f"{name}, only {study.runs} of {RUNS} runs" if few else name


def _better_than(other: str) -> Claim:
    slug = "v-trace-1" if other == "V-trace(1.0)" else other.lower()
    return Claim(
        f"ir-better-than-{slug}",
        f"IR does better than {other}.",
        f"error of {other} over that of IR, averaged over the run, best learning rates",
        times(other, "IR"),
        least=1.0,
    )


def _best(results: Results) -> Array:
    others = np.stack([results.best(other) for other in OTHERS])
    return others.min(axis=0) / results.best("IR")


def _steadier(results: Results) -> Array:
    """Compute the spread over runs of IS over that of IR, second largest over learning rates.

    The second largest, because the paper mentions two rates, and because the largest of several
    ratios is large by chance alone.
    """
    plain, ours = (_spread(results, method) for method in ("IS", "IR"))
    with np.errstate(invalid="ignore"):
        times_more = np.where(np.isinf(plain) & np.isinf(ours), 1.0, plain / ours)
    return np.sort(times_more, axis=1)[:, -2:].min(axis=1)


def _spread(results: Results, method: str) -> Array:
    """Compute the standard deviation over runs, [1 + B, L]; infinite where a run diverged."""
    error = results.of(method).error
    there = np.isfinite(error)
    # Differences from the mean, so that squares lose no digits where runs hardly differ.
    middle = np.where(there, error, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    apart = np.where(there, error - middle, 0.0)
    weights = resampling(results.runs)
    variance = weights @ apart**2 - (weights @ apart) ** 2
    return np.where(weights @ ~there > 0, np.inf, np.sqrt(np.maximum(variance, 1e-300)))


def _at_the_largest(results: Results) -> Array:
    """Compute BC-IR's error over IR's, at the largest rate that IR can use."""
    ours, theirs = results.errors("IR"), results.errors("BC-IR")
    usable = ours <= USABLE_FACTOR * ours.min(axis=1, keepdims=True)
    largest = usable.shape[1] - 1 - usable[:, ::-1].argmax(axis=1)
    row = np.arange(len(ours))
    return theirs[row, largest] / ours[row, largest]


def _worse_above(results: Results) -> Array:
    """Compute the error at the largest rate over the best at others, smallest over methods."""
    errors = [results.errors(method) for method in results.study.methods]
    return np.stack([error[:, -1] / error[:, :-1].min(axis=1) for error in errors]).min(axis=0)


FIGURES = (
    Figure(
        STEP_SIZE,
        "Racing car: sensitivity to the learning rate",
        "Fig. 3",
        Axes("learning rate", "mean squared return error", x_log=True),
        against_step_size,
        quick=QUICK,
        on_request=True,
        remark=remark,
        companions=(LEARNING_CURVES, FILM),
        notes={"paper": NOTES, "authors": f"No code was released: as in the text. {NOTES}"},
        claims=(
            Claim(
                "ir-best",
                "IR is the best of IR, BC-IR, IS and V-trace(1.0).",
                "smallest error of the others over that of IR, averaged over the run, best rates",
                _best,
                least=1.0,
            ),
            *map(_better_than, (*OTHERS, "WIS-Minibatch")),
            Claim(
                "is-unstable-where-ir-is-not",
                "At two learning rates or more IS varies from run to run where IR does not.",
                "standard deviation over runs, IS over IR, at the rate where it is second largest",
                _steadier,
                least=USABLE_FACTOR,
            ),
            Claim(
                "bc-ir-worse-at-the-largest-rate",
                "BC-IR does worse than IR at the largest learning rate.",
                "error of BC-IR over that of IR, at the largest rate within twice IR's best error",
                _at_the_largest,
                least=1.0,
            ),
            Claim(
                "all-worse-above",
                "Every method gets worse above its best learning rates.",
                "error at the largest rate over the best at smaller ones, where this is least",
                _worse_above,
                least=1.0,
            ),
        ),
    ),
)
