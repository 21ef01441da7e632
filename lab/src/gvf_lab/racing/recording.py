"""Recorded streams: the behaviour drives once, and all learners on all machines read the file.

A recording has each frame once, in order, and for every transition t the number of its first frame,

    state = frames[first[t]],    next state = frames[first[t] + 1],

with the action as drawn and its log density under the behaviour. The last frame of an episode
starts no transition. Reading needs NumPy and pyarrow; only :func:`record` needs a simulator, in
which :mod:`.driving` drives. :mod:`.rollouts` stores its results in the same kind of file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gvf import Transitions
from gvf.common.arrays import Floats
from gvf.common.checks import set_frozen
from gvf.common.files import replaced
from gvf.common.version import __version__
from gvf_lab.racing.driving import View, behaviour_steps
from gvf_lab.racing.simulators import FRAME

_DTYPES = {
    "first": np.int64,
    "action": np.float64,
    "log_mu": np.float64,
    "lateral": np.float64,
    "angle": np.float32,
    "speed": np.float32,
    "distance": np.float32,
}
_OF_A_FRAME = ("lateral", "angle", "speed", "distance")
_ROWS = 1024  # rows of a row group, 8 MB of frames

Frames = NDArray[np.uint8]
Progress = Callable[[int, int], None]
"""A function that is called with the amount done and the total."""


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """A stream of the behaviour: F frames, T transitions.

    Args:
        frames: uint8[F, 64, 128].
        first: int64[T], increasing, the number of the frame that is transition t's state; the
            frame after it is the next state.
        action: float64[T], the steering before it is clipped to [-1, 1].
        log_mu: float64[T], the log density of the action under the behaviour.
        lateral: float64[F], distance to the middle in half-widths of the road, left positive.
        angle: float32[F], direction of the road minus that of the car, in radians.
        speed: float32[F], in m/s.
        distance: float32[F], along the road, in m.
        settings: the arguments and versions that made it, in types of JSON.

    Example:
        >>> import numpy as np
        >>> from gvf_lab.racing.recording import Recording
        >>> recording = Recording(
        ...     frames=np.zeros((3, 64, 128), np.uint8), first=[0, 1], action=[0.1, 0.2],
        ...     log_mu=[1.0, 1.2], lateral=[0.3, 0.2, 0.1], angle=[0, 0, 0], speed=[15, 15, 15],
        ...     distance=[0.0, 1.5, 3.0], settings={"simulator": "torcs"},
        ... )
        >>> recording
        Recording(2 transitions, 3 frames, torcs, hash 9e39...)
        >>> recording.transitions(1).next_lateral
        array([0.1])
    """

    frames: Frames
    first: NDArray[np.int64]
    action: Floats
    log_mu: Floats
    lateral: Floats
    angle: NDArray[np.float32]
    speed: NDArray[np.float32]
    distance: NDArray[np.float32]
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            set_frozen(self, **{name: np.asarray(getattr(self, name), dtype)})
        transitions = len(self.first)
        for name in ("action", "log_mu"):
            _check_length(name, getattr(self, name), transitions, "transitions")
        check_frames(self.frames)
        for name in _OF_A_FRAME:
            _check_length(name, getattr(self, name), len(self.frames), "frames")
        bounded = np.concatenate([[-1], self.first, [len(self.frames) - 1]])
        if transitions and not (np.diff(bounded) > 0).all():
            raise ValueError(
                f"first must increase from 0 or more to at most {len(self.frames) - 2}, so that "
                "every transition has its next frame"
            )

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the numbers, in hexadecimal, without settings and compression."""
        return digest({"frames": self.frames, **{name: getattr(self, name) for name in _DTYPES}})

    @property
    def ended(self) -> NDArray[np.bool_]:
        """True for transitions that the next one does not follow, bool[T]."""
        return np.diff(self.first, append=-1) != 1

    def transitions(self, start: int = 0, stop: int | None = None) -> Transitions:
        """Return the transitions start, ..., stop - 1, for a learner or a window.

        Returns:
            The columns ``state``, ``next_state`` (uint8[m, 64, 128], views within an episode),
            ``action``, ``behaviour_log_probability``, ``next_lateral``, and ``truncated``, which is
            True at the ends of episodes.
        """
        chosen = slice(start, stop)
        first = self.first[chosen]
        following = first + 1
        whole = len(first) and int(first[-1]) - int(first[0]) == len(first) - 1
        at = int(first[0]) if whole else 0
        return Transitions(
            state=self.frames[at : at + len(first)] if whole else self.frames[first],
            action=self.action[chosen],
            next_state=self.frames[at + 1 : at + 1 + len(first)]
            if whole
            else self.frames[following],
            behaviour_log_probability=self.log_mu[chosen],
            next_lateral=self.lateral[following],
            truncated=self.ended[chosen],
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one compressed file, which is complete when it appears at ``path``."""
        columns: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in _OF_A_FRAME}
        for name in ("action", "log_mu"):  # nan for a frame that starts no transition
            columns[name] = np.full(len(self.frames), np.nan)
            columns[name][self.first] = getattr(self, name)
        write(path, "recording", self.frames, columns, self.settings, self.hash)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file back, and check its hash.

        Raises:
            ValueError: if the file is no recording, or is damaged.
        """
        frames, columns, settings, expected = read(path, "recording")
        first = np.flatnonzero(~np.isnan(columns["action"]))
        for name in ("action", "log_mu"):
            columns[name] = columns[name][first]
        recording = cls(frames=frames, first=first, settings=settings, **columns)
        check_hash(path, recording.hash, expected)
        return recording

    @classmethod
    def join(cls, parts: Sequence[Recording]) -> Self:
        """Join recordings in order; the first frame of a part begins an episode."""
        starts = np.cumsum([0, *(len(part.frames) for part in parts[:-1])])
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("frames", "action", "log_mu", *_OF_A_FRAME)
        }
        return cls(
            first=np.concatenate(
                [part.first + start for part, start in zip(parts, starts, strict=True)]
            ),
            settings={**parts[0].settings, "parts": [part.settings for part in parts]},
            **columns,
        )

    def __repr__(self) -> str:
        simulator = self.settings.get("simulator", "unknown simulator")
        return (
            f"Recording({len(self)} transitions, {len(self.frames)} frames, {simulator}, "
            f"hash {self.hash[:4]}...)"
        )


def record(
    simulator: str, steps: int, *, seed: int = 0, progress: Progress | None = None, **options: Any
) -> Recording:
    """Drive the behaviour and record its stream; the same arguments give the same recording.

    Args:
        simulator: "torcs" or "car-racing".
        steps: the number of transitions of :func:`gvf_lab.racing.driving.behaviour_steps`.
        seed: the seed of goals, noise and, in CarRacing, tracks.
        progress: a function that is called now and then with the transitions done and ``steps``.
        **options: options of the environment; ``track="g-track-1"`` makes it the only track.
    """
    drive = behaviour_steps(simulator, steps, seed=seed, **options)
    # Two frames a transition are enough, and memory that is never written takes no space.
    frames = np.empty((2 * steps, *FRAME), np.uint8)
    infos: list[Mapping[str, Any]] = []
    first, actions, log_mu = np.empty(steps, np.int64), np.empty(steps), np.empty(steps)

    def keep(view: View) -> None:
        frames[len(infos)] = view.frame
        infos.append(view.info)

    with closing(drive):  # also when it is interrupted
        for t, step in enumerate(drive):
            if not infos or infos[-1] is not step.before.info:
                keep(step.before)
            first[t], actions[t], log_mu[t] = len(infos) - 1, step.action, step.log_mu
            keep(step.after)
            if progress is not None and ((t + 1) % 100 == 0 or t + 1 == steps):
                progress(t + 1, steps)
    columns = {name: np.array([info[name] for info in infos]) for name in _OF_A_FRAME}
    settings = {"simulator": simulator, "steps": steps, "seed": seed, **described(options)}
    return Recording(frames[: len(infos)], first, actions, log_mu, settings=settings, **columns)


def described(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options and versions, for the settings of a recording or evaluation set."""
    return {"options": dict(options), "versions": {"gvf": __version__, "numpy": np.__version__}}


def check_frames(frames: NDArray[Any]) -> None:
    """Raise an error unless these are images, uint8[m, 64, 128]."""
    if frames.dtype != np.uint8 or frames.shape[1:] != FRAME:
        raise ValueError(
            f"frames must be uint8 of shape (m, {FRAME[0]}, {FRAME[1]}), got {frames.dtype} of "
            f"shape {frames.shape}"
        )


def _check_length(name: str, values: NDArray[Any], count: int, what: str) -> None:
    if values.shape != (count,):
        raise ValueError(f"{name} has shape {values.shape} for {count} {what}")


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Compute the SHA-256 of arrays by name, in hexadecimal, the same on every machine."""
    sha = hashlib.sha256()
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        sha.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
        sha.update(little.data)
    return sha.hexdigest()


def check_hash(path: str | os.PathLike[str], actual: str, expected: str) -> None:
    """Raise an error if the hash of a file's content is not the one that was written."""
    if actual != expected:
        raise ValueError(
            f"{path} is damaged: its content has hash {actual[:12]}..., and it should be "
            f"{expected[:12]}...; copy or make it again"
        )


def write(
    path: str | os.PathLike[str],
    kind: str,
    frames: Frames,
    columns: Mapping[str, NDArray[Any]],
    settings: Mapping[str, Any],
    expected: str,
) -> None:
    """Write frames [m, 64, 128] and columns [m] as one Parquet file, which is never incomplete.

    The file has the difference of each pixel from its left neighbour (modulo 256). This compresses
    better than the pixel itself or its difference from the frame before.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = {"kind": kind, "hash": expected, "settings": json.dumps(dict(settings))}
    pixels = FRAME[0] * FRAME[1]
    fields = [(name, pa.from_numpy_dtype(column.dtype)) for name, column in columns.items()]
    schema = pa.schema([("frame", pa.binary(pixels)), *fields], metadata=notes)
    options: dict[str, Any] = {"compression": "zstd", "compression_level": 9}
    with (
        replaced(path) as unfinished,
        pq.ParquetWriter(unfinished, schema, use_dictionary=False, **options) as writer,
    ):
        for start in range(0, len(frames), _ROWS):
            piece = frames[start : start + _ROWS].copy()
            piece[:, :, 1:] -= frames[start : start + _ROWS, :, :-1]
            arrays = [column[start : start + _ROWS] for column in columns.values()]
            images = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(pixels), len(piece), [None, pa.py_buffer(piece)]
            )
            writer.write_table(pa.Table.from_arrays([images, *arrays], schema=schema))


def hash_of(path: str | os.PathLike[str]) -> str:
    """Return the hash that was written into a file, without reading its frames."""
    import pyarrow.parquet as pq

    return (pq.read_schema(path).metadata or {})[b"hash"].decode()


def read(
    path: str | os.PathLike[str], kind: str
) -> tuple[Frames, dict[str, NDArray[Any]], dict[str, Any], str]:
    """Read a file of :func:`write`: its frames, columns, settings, and the hash to check."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with pq.ParquetFile(path) as file:
            notes = {k.decode(): v.decode() for k, v in (file.schema_arrow.metadata or {}).items()}
            if notes.get("kind") != kind:
                raise ValueError(f"{path} is a Parquet file, but holds no {kind} of driving")
            names = [name for name in file.schema_arrow.names if name != "frame"]
            frames = np.empty((file.metadata.num_rows, *FRAME), np.uint8)
            pieces: list[pa.RecordBatch] = []
            start = 0
            for batch in file.iter_batches(_ROWS):
                images = batch.column("frame")
                pixels = np.frombuffer(images.buffers()[1], np.uint8)
                pixels = pixels.reshape(-1, *FRAME)[images.offset : images.offset + len(images)]
                np.cumsum(pixels, axis=2, dtype=np.uint8, out=frames[start : start + len(images)])
                start += len(images)
                pieces.append(batch.select(names))
            columns = pa.Table.from_batches(pieces) if pieces else file.schema_arrow.empty_table()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"the {kind} in {path} cannot be read: {error}") from error
    arrays = {name: columns.column(name).to_numpy() for name in names}
    return frames, arrays, json.loads(notes["settings"]), notes["hash"]
