"""The files of a racing study: a stream for each run, states with returns, and a film.

They are made once, which needs the simulator, and stored in the cache under the study's seed, the
simulator and their size. A machine without a simulator can use copies of them in its own cache; it
needs the streams of only those runs that it does. A stream is stored in parts of
:data:`PART` steps, so that no file is large.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gvf.common.progress import progress_of
from gvf_lab.cache import default_folder
from gvf_lab.racing.driving_rollouts import EvaluationSet, evaluation, film
from gvf_lab.racing.racing_study import RacingStudy
from gvf_lab.racing.recording import Recording, hash_of, record
from gvf_lab.study.base_study import seed_for

GENERATION = 2
"""Part of the folder's name; raise it when the same seeds give other frames or returns."""
PART = 15_000
"""The largest number of steps in one file of a stream, about 50 MB."""
FILM_FRAMES = 300
"""The number of steps of the film's drive."""
WORKERS = 2
"""The number of simulators that are used at once for returns."""


class File(NamedTuple):
    """A file of a study's material, whether or not it exists.

    Attributes:
        path: its place in the cache.
        kind: the class that reads it.
        make: a function that makes its content, given ``progress``.
    """

    path: Path
    kind: type[Recording] | type[EvaluationSet]
    make: Callable[..., Any]


@dataclass(frozen=True)
class Material:
    """The recordings and returns of one study.

    Example:
        >>> from gvf_lab.racing import RacingStudy
        >>> from gvf_lab.racing.recorded_inputs import Material
        >>> material = Material(RacingStudy("mine", step_sizes=(1e-3,)))
        >>> for file in (*material.stream_files(7), material.states_file, material.film_file):
        ...     print(file.path.name)
        torcs-stream-7-part-0-15000
        torcs-stream-7-part-1-15000
        torcs-stream-7-part-2-15000
        torcs-states-300x5
        torcs-film-300
    """

    study: RacingStudy

    def stream_files(self, run: int) -> list[File]:
        """Return the parts of a run's stream, in order."""
        parts = range(0, self.study.steps, PART)
        return [self._part(run, part, self.study.steps - start) for part, start in enumerate(parts)]

    def _part(self, run: int, part: int, left: int) -> File:
        steps, seed = min(PART, left), self._seed(run, "stream", part)

        def make(**options: Any) -> Recording:
            return record(self.study.simulator, steps, seed=seed, **options)

        return File(self._path(f"stream-{run}-part-{part}-{steps}"), Recording, make)

    @property
    def states_file(self) -> File:
        """The evaluation states."""
        states, rollouts = self.study.evaluation_states, self.study.rollouts

        def make(**options: Any) -> EvaluationSet:
            seed = self._seed(0, "states")
            return evaluation(
                self.study.simulator, states, rollouts, seed=seed, workers=WORKERS, **options
            )

        return File(self._path(f"states-{states}x{rollouts}"), EvaluationSet, make)

    @property
    def film_file(self) -> File:
        """The film."""

        def make(**options: Any) -> EvaluationSet:
            seed = self._seed(0, "film")
            return film(self.study.simulator, FILM_FRAMES, seed=seed, workers=WORKERS, **options)

        return File(self._path(f"film-{FILM_FRAMES}"), EvaluationSet, make)

    def files(self) -> Iterator[File]:
        """Yield all files that the study's runs need."""
        yield self.states_file
        yield self.film_file
        for run in range(self.study.runs):
            yield from self.stream_files(run)

    @cached_property
    def states(self) -> EvaluationSet:
        """States with returns, with which predictions are compared; no learner sees them."""
        return load_or_record(self.states_file)

    @cached_property
    def film(self) -> EvaluationSet:
        """One drive in order, with returns."""
        return load_or_record(self.film_file)

    def stream(self, run: int) -> Recording:
        """Return the stream from which a run learns."""
        return Recording.join([load_or_record(file) for file in self.stream_files(run)])

    def stream_hash(self, run: int) -> str:
        """Return the digest of the hashes of a stream's parts, which must be in the cache."""
        hashes = [hash_of(file.path) for file in self.stream_files(run)]
        return hashlib.sha256(" ".join(hashes).encode()).hexdigest()

    def facts(self) -> dict[str, str]:
        """Return the hashes of the files, by name; make those that are missing, where possible.

        A stream that cannot be made here is left out, since a machine may do some of the runs.
        """
        facts = {"states": self.states.hash, "film": self.film.hash}
        for run in range(self.study.runs):
            try:
                for file in self.stream_files(run):
                    if not file.path.exists():
                        load_or_record(file)
            except FileNotFoundError:
                continue
            facts[f"stream-{run}"] = self.stream_hash(run)
        return facts

    def _path(self, name: str) -> Path:
        return folder() / f"seed-{self.study.seed}" / f"{self.study.simulator}-{name}"

    def _seed(self, run: int, *purpose: object) -> int:
        return int(seed_for(self.study.seed, run, *purpose).generate_state(1)[0])


def folder() -> Path:
    """Return the folder of recordings, returns and checkpoints."""
    return default_folder() / f"racing-{GENERATION}"


def load_or_record(file: File) -> Any:
    """Take a file from the cache; make it in the simulator if it is missing."""
    if file.path.exists():
        return file.kind.load(file.path)
    try:
        with _bar(file.path.name) as tell:
            recorded = file.make(progress=tell)
    except _not_installed() as error:
        raise FileNotFoundError(
            f"{file.path}: not there, and cannot be made here. Make it where the simulator is "
            "(`gvf reproduce --record`) and copy it to this place, or use another one "
            f"(`--simulator car-racing`). What is missing: {error}"
        ) from error
    recorded.save(file.path)
    return recorded


def _not_installed() -> tuple[type[Exception], ...]:
    """Return the errors that mean that a simulator, or Gymnasium itself, is missing."""
    try:
        from gymnasium.error import DependencyNotInstalled
    except ImportError:
        return (ImportError,)
    return (ImportError, DependencyNotInstalled)


def film_of(study: RacingStudy) -> EvaluationSet | None:
    """Return the film of a study if it is in the cache, else None."""
    path = Material(study).film_file.path
    return EvaluationSet.load(path) if path.exists() else None


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, total) that shows progress: a bar in a terminal, else lines."""
    with progress_of(title, None, transient=True) as advance:

        def tell(done: int, total: int) -> None:
            advance.total = total
            advance(done - advance.done)

        yield tell
