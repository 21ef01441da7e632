"""The files that the runs of a racing study share: a stream, states with returns, a film.

They are made once, which needs the simulator, and stored in the cache under the name of the
simulator and their size. A machine without a simulator can use copies of them in its own cache.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gvf.common.cache import default_folder
from gvf.common.progress import progress_bar
from gvf.racing.recording import Recording, record
from gvf.racing.rollouts import EvaluationSet, evaluation, film
from gvf.racing.study import RacingStudy
from gvf.study.progress import EVERY

GENERATION = 1
"""Part of the folder's name; raise it when the same seeds give other frames or returns."""
STREAM_SEED, EVALUATION_SEED, FILM_SEED = 10, 11, 12
"""Seeds of the stream, of the evaluation states, and of the film."""
FILM_FRAMES = 300
"""The number of steps of the film's drive."""


@dataclass(frozen=True)
class Material:
    """The recordings and returns that all runs of a study share.

    Attributes:
        stream: the behaviour's stream, from which networks learn.
        states: states with returns, with which predictions are compared.
        film: one drive in order, with returns.
    """

    stream: Recording
    states: EvaluationSet
    film: EvaluationSet


def folder() -> Path:
    """Return the folder of recordings, returns and checkpoints."""
    return default_folder() / f"racing-{GENERATION}"


def files(study: RacingStudy) -> dict[str, Path]:
    """Return the paths of a study's stream, states and film, whether or not they exist.

    Example:
        >>> from gvf.racing import RacingStudy
        >>> from gvf.racing.material import files
        >>> study = RacingStudy("mine", step_sizes=(1e-3,))
        >>> [path.name for path in files(study).values()]
        ['torcs-stream-38000', 'torcs-states-100x5', 'torcs-film-300']
    """
    names = {
        "stream": f"{study.stream}",
        "states": f"{study.evaluation_states}x{study.rollouts}",
        "film": f"{FILM_FRAMES}",
    }
    return {kind: folder() / f"{study.simulator}-{kind}-{size}" for kind, size in names.items()}


def take(study: RacingStudy) -> Material:
    """Take a study's material from the cache, and make missing files in the simulator."""
    size = (study.stream, study.evaluation_states, study.rollouts)
    return _take(study.simulator, *size, tuple(files(study).values()))


@cache
def _take(
    simulator: str, steps: int, states: int, rollouts: int, paths: tuple[Path, ...]
) -> Material:
    def kept(path: Path, kind: Any, make: Callable[..., Any], *size: int, seed: int) -> Any:
        if path.exists():
            return kind.load(path)
        try:
            with _bar(path.name) as tell:
                made = make(simulator, *size, seed=seed, progress=tell)
        except _not_installed() as error:
            missing = ", ".join(str(path) for path in paths if not path.exists())
            raise FileNotFoundError(
                f"{missing}: not there, and cannot be made here. Make them where the simulator is "
                "(`gvf record`) and copy them to this place, or use another one (`--simulator "
                f"car-racing`). What is missing: {error}"
            ) from error
        made.save(path)
        return made

    stream, evaluated, shown = paths
    return Material(
        kept(stream, Recording, record, steps, seed=STREAM_SEED),
        kept(evaluated, EvaluationSet, evaluation, states, rollouts, seed=EVALUATION_SEED),
        kept(shown, EvaluationSet, film, FILM_FRAMES, seed=FILM_SEED),
    )


def _not_installed() -> tuple[type[Exception], ...]:
    """Return the errors that mean that a simulator, or Gymnasium itself, is missing."""
    try:
        from gymnasium.error import DependencyNotInstalled
    except ImportError:
        return (ImportError,)
    return (ImportError, DependencyNotInstalled)


def film_of(study: RacingStudy) -> EvaluationSet | None:
    """Return the film of a study if it is in the cache, else None."""
    path = files(study)["film"]
    return EvaluationSet.load(path) if path.exists() else None


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, total) that shows progress: a bar in a terminal, else lines."""
    began = last = time.monotonic()
    if sys.stderr.isatty():
        with progress_bar(transient=True) as shown:
            row = shown.add_task(title, total=None)
            yield lambda done, total: shown.update(row, completed=done, total=total)
        return

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            speed = done / (last - began)
            print(f"{title}: {done} of {total}, {speed:.0f}/s", file=sys.stderr, flush=True)

    yield tell
