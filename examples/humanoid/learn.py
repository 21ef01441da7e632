"""Learning: one horde for all questions, and small ones that compare corrections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gvf
from examples.humanoid.robot import CONTINUATIONS, Calibration, Robot
from gvf.common.arrays import Arrays

CORRECTIONS = {
    correction.name: correction
    for correction in (
        gvf.corrections.IR(),
        gvf.corrections.EmphaticIR(),
        gvf.corrections.WISMinibatch(),
        gvf.corrections.VTrace(1.0),
        gvf.corrections.IS(),
    )
}
BATCH = 16


@dataclass(frozen=True)
class Scale:
    """The sizes of everything that takes time.

    Attributes:
        steps: the number of steps of a stream.
        calibration: the number of steps of the run that scales sensors and features.
        states: the number of held-out states.
        choosing: the number of these by which step sizes are chosen; the others give results.
        rollouts: the number of rollouts of a target from a state.
        longest: the number of steps of a rollout.
        window: the number of transitions in the window.
        update_every: the number of steps between updates.
        step_sizes: step sizes, as multiples of 1 / (mean squared length of feature vectors).
        apart: one sensor in so many is in the comparison of corrections.
        stretch: the number of steps over which predictions are drawn.
        workers: the number of processes.
    """

    steps: int = 100_000
    calibration: int = 5_000
    states: int = 100
    choosing: int = 30
    rollouts: int = 2
    longest: int = 150
    window: int = 50_000
    update_every: int = 8
    step_sizes: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    apart: int = 6
    stretch: int = 400
    workers: int = 2


FULL = Scale()
QUICK = Scale(
    steps=600,
    calibration=400,
    states=6,
    choosing=2,
    longest=20,
    window=500,
    step_sizes=(0.3, 1.0),
    apart=60,
    stretch=50,
    workers=1,
)


def sensors(robot: Robot, calibration: Calibration) -> gvf.SignalBank:
    """Return the cumulants: the channels that vary."""
    channels = robot.channels
    return gvf.SignalBank(calibration.sensors, [channels[i] for i in calibration.varying])


def answers(
    robot: Robot,
    scale: Scale,
    stream: Arrays,
    calibration: Calibration,
    states: NDArray[Any],
    targets: Mapping[str, gvf.policies.Policy],
    cumulants: Mapping[str, Any],
    correction: gvf.corrections.Correction,
    step_size: float,
    threads: int,
) -> dict[str, NDArray[Any]]:
    """Learn the answers to the questions of all combinations from a stream, and predict.

    Returns:
        The predictions for states, [states, targets, cumulants, continuations]; the seconds that
        learning took, and those of all processors together; the effective sample size and the mean
        ratio of each policy in the window at the end; and the number of questions that are paused.
    """
    questions = gvf.question_grid(targets, cumulants, CONTINUATIONS)
    horde = gvf.Horde(
        questions,
        gvf.features.Dense(calibration.size, calibration.features),
        gvf.updates.TD(step_size / calibration.length),
        correction,
        behaviour=robot.behaviour,
        window=scale.window,
        batch_size=BATCH,
        update_every=scale.update_every,
        dtype="float32",
        threads=threads,
        seed=0,
    )
    start = np.array([perf_counter(), process_time()])
    report = horde.learn([gvf.Transitions(**stream)], progress=False)
    seconds, processor = np.array([perf_counter(), process_time()]) - start
    shape = (len(states), len(targets), len(cumulants), len(CONTINUATIONS))
    return {
        "predictions": horde.predict(states).reshape(shape),
        "seconds": seconds,
        "processor": processor,
        "effective": report.effective_sample_size,
        "mean_ratio": report.mean_ratio,
        "paused": np.array(len(report.paused)),
    }
