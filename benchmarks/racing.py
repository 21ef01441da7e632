"""Benchmark of steps of the racing car: TORCS and CarRacing, drawn or not, and Gymnasium's game.

A step is .1 s of driving, and a drawn one ends with an image, 64 x 128 in grey. The time of drawing
depends on the view, so a drive along the road is timed, in TORCS a lap; for each part of it the
fastest of some rounds counts. Gymnasium's game needs 5 steps for the same time and draws an image,
96 x 96 in colour, in each. Simulators that are not installed are left out, and the table says so.
The module can also be run alone, without rich:

    python -m benchmarks.racing [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import DependencyNotInstalled

from benchmarks.measure import LIMITS, QUICK, Effort, Row
from gvf_lab.racing.simulators import make

TITLE = "The racing car: steps of .1 s, in each second, of one simulator"
PART = 50
"""The number of steps that are timed together."""
LAP, STRETCH = 2200, 100
"""The steps of a drive in TORCS, and in CarRacing, which looks the same everywhere."""
_PEER = "Gymnasium's CarRacing-v3"

Drive = Callable[[], Iterator[None]]
"""A generator function: the first ``next`` goes to the start, each other one drives a part."""


def rows(effort: Effort) -> list[Row]:
    """Measure steps a second of each simulator."""
    rounds = max(1, effort.rounds // 8)
    return [*_torcs(rounds), *_car_racing(rounds)]


def _torcs(rounds: int) -> Iterator[Row]:
    case = "TORCS, e-track-1"
    targets = {
        "step, drawn": LIMITS["racing"]["drawn"],
        "step, undrawn": None,
        "step of a replay": LIMITS["racing"]["replay"],
    }
    try:
        with closing(make("torcs", track="e-track-1")) as env:
            drives: dict[str, Drive] = {
                "step, drawn": lambda: _stepping(env, draw=True),
                "step, undrawn": lambda: _stepping(env, draw=False),
                "step of a replay": lambda: _replaying(env, actions),
            }
            actions = _actions(env)
            times = _fastest(drives, LAP // PART, rounds)
    except (DependencyNotInstalled, ModuleNotFoundError):
        yield Row(case, "not installed, left out", None, "")
        return
    for name, least in targets.items():
        speed = 1 / times[name]
        goal = {} if least is None else {"target": f">= {least:,} /s", "met": speed >= least}
        yield Row(case, name, speed, "/s", **goal)


def _car_racing(rounds: int) -> Iterator[Row]:
    case = "CarRacing"
    try:
        with ExitStack() as stack:
            env = stack.enter_context(closing(make("car-racing")))
            plain, rendered = (
                stack.enter_context(closing(gymnasium.make("CarRacing-v3", render_mode=mode)))
                for mode in (None, "rgb_array")
            )
            drives: dict[str, Drive] = {
                "step, drawn": lambda: _stepping(env, draw=True),
                "step, undrawn": lambda: _stepping(env, draw=False),
                f"{_PEER}, 5 steps": lambda: _peer(plain),
                f"{_PEER}, 5 steps and rgb_array": lambda: _peer(rendered),
            }
            times = _fastest(drives, STRETCH // PART, rounds)
    except ModuleNotFoundError:
        yield Row(case, "not installed, left out", None, "")
        return
    for name, time in times.items():
        ratio = time / times["step, drawn"] if name.startswith(_PEER) else None
        yield Row(case, name, 1 / time, "/s", ratio)


def _fastest(drives: Mapping[str, Drive], parts: int, rounds: int) -> dict[str, float]:
    """Measure the seconds a step of each drive."""
    best = {name: [math.inf] * parts for name in drives}
    for _ in range(rounds):
        for name, drive in drives.items():
            going = drive()
            next(going)
            for part in range(parts):
                start = perf_counter()
                next(going)
                best[name][part] = min(best[name][part], perf_counter() - start)
    return {name: sum(times) / (parts * PART) for name, times in best.items()}


def _stepping(env: Any, *, draw: bool) -> Iterator[None]:
    env.draw = draw
    _, info = env.reset(seed=0)
    while True:
        yield
        for _ in range(PART):
            *_, info = env.step(_along(info))


def _actions(env: Any) -> np.ndarray:
    """Compute the actions of a lap, float32[LAP, 1]."""
    env.draw = False
    _, info = env.reset(seed=0)
    actions = []
    for _ in range(LAP):
        actions.append(_along(info))
        *_, info = env.step(actions[-1])
    return np.array(actions)


def _replaying(env: Any, actions: np.ndarray) -> Iterator[None]:
    env.draw = False
    env.reset(seed=0)
    for start in range(0, len(actions), PART):
        yield
        env.replay(actions[start : start + PART])
    yield


def _along(info: dict[str, Any]) -> np.ndarray:
    """Steer along the road, towards its middle."""
    steer = (info["angle"] - info["lateral"] / 2) / info["steer_lock"]
    return np.array([steer], np.float32)


def _peer(env: gymnasium.Env[Any, Any]) -> Iterator[None]:
    """Drive straight on with a little gas, because the game does not say where the road is."""
    env.reset(seed=0)
    action = np.array([0.0, 0.02, 0.0], np.float32)
    while True:
        yield
        for _ in range(PART):
            for _ in range(5):
                env.step(action)
            if env.render_mode:
                env.render()


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.racing", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    for row in rows(QUICK if parser.parse_args().quick else Effort()):
        measured = "" if row.value is None else f"{row.value:8,.0f} {row.unit}"
        print(f"{row.case:18} {row.name:46} {measured}  {row.target}")


if __name__ == "__main__":
    main()
