"""Logs as Parquet files and Minari datasets, and recordings: a policy acts, and a log is written.

A recording has the probability of each action, from the moment in which it was chosen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.arrays import Array
from gvf.common.files import replaced
from gvf.common.gymnasium import gym
from gvf.common.interrupts import postponed_interrupt
from gvf.common.version import __version__
from gvf.log.arrow import as_arrow
from gvf.log.column_meanings import COUNTED, MEANINGS
from gvf.log.tables import NOTES, minari
from gvf.policies import Policy
from gvf.stream import collect
from gvf.transition import Transitions

if TYPE_CHECKING:
    from gvf.log.log import Log


ROWS = 64
"""The number of transitions after which the progress is told, and Ctrl-C is heard."""
GROUP = 65_536
"""The number of transitions of a row group."""


def write_parquet(path: str | os.PathLike[str], log: Log) -> None:
    """Write a log to a Parquet file, a batch at a time."""
    with parquet_writer(path, log.notes, log.times, log.clocks) as write:
        for batch, keys in log.keyed():
            write(batch, {name: keys[name] for name in log.ids})


@contextmanager
def parquet_writer(
    path: str | os.PathLike[str],
    notes: Mapping[str, str],
    times: str | None = None,
    clocks: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Callable[..., None]]:
    """Give a function that writes batches; the file replaces `path` when the block ends.

    The batches have the column ``episode``, and come in order; `times` is their column of times,
    and `clocks` has the types of Arrow of columns that are points in time.
    The file has the column ``step`` as well, which counts the steps of an episode from 0, unless
    the batches have one of their own. A batch may come with columns of the episodes' own names. The
    file's count is called ``episode number`` if one of these is called ``episode``.

    Example:
        >>> import gvf
        >>> from gvf.log.write_log import parquet_writer
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> batch = gvf.Transitions(state=[3], action=[1], next_state=[4], terminated=[True],
        ...                         episode=[0])
        >>> with TemporaryDirectory() as folder:
        ...     with parquet_writer(Path(folder, "log.parquet"), {"seed": "0"}) as write:
        ...         write(batch)
        ...     gvf.read_log(Path(folder, "log.parquet"), quiet=True).notes
        {'seed': '0'}
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    episode, step = -1, 0  # of the latest row
    with replaced(path) as unfinished:
        try:

            def write(batch: Transitions, ids: Mapping[str, Array] = MappingProxyType({})) -> None:
                nonlocal writer, episode, step
                columns = dict(batch.columns)
                counts = _steps(batch.episode, episode, step)
                episode, step = int(batch.episode[-1]), int(counts[-1])
                if "step" not in columns:
                    columns["step"] = counts
                if "episode" in ids:
                    columns[COUNTED] = columns.pop("episode")
                columns |= ids
                arrays = [as_arrow(column, clocks.get(name)) for name, column in columns.items()]
                table = pa.Table.from_arrays(arrays, list(columns))
                if writer is None:
                    facts = {"notes": dict(notes), "columns": _meanings(columns, batch, times)}
                    facts |= {"ids": [*ids]} if ids else {}
                    schema = table.schema.with_metadata({NOTES: json.dumps(facts)})
                    writer = pq.ParquetWriter(unfinished, schema, compression="zstd")
                writer.write_table(table.replace_schema_metadata(writer.schema.metadata))

            yield write
        finally:
            if writer is not None:
                writer.close()


def _steps(episodes: Array, before: int, step: int) -> Array:
    """Count the rows of each episode from 0, after a row `step` of episode `before`."""
    new = np.diff(episodes, prepend=before) != 0
    starts = np.flatnonzero(new)
    at = np.arange(len(episodes))
    latest = np.concatenate([[-1 - step], starts])[np.cumsum(new)]
    return at - latest


def _meanings(
    columns: Mapping[str, Array], batch: Transitions, times: str | None
) -> dict[str, str | None]:
    """Return the column of each meaning, or None, so that reading does not guess."""
    meanings: dict[str, str | None] = {name: name if name in columns else None for name in MEANINGS}
    counted = None if "step" in batch else "step"
    episode = COUNTED if COUNTED in columns else "episode"
    return {**meanings, "episode": episode, "time": times or counted, "done": None}


def record_log(
    env: gym.Env[Any, Any],
    policy: Policy,
    steps: int,
    path: str | os.PathLike[str],
    *,
    seed: int | None = None,
    info: Iterable[str] = (),
    notes: Mapping[str, str] | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> None:
    """Let a policy act in an environment, and write its transitions to a Parquet file.

    After Ctrl-C the file has the steps so far, and then KeyboardInterrupt is raised. A second
    Ctrl-C stops at once, and no file is written.

    Args:
        env: a Gymnasium environment; not a vector environment.
        policy: the behaviour.
        steps: the number of transitions.
        path: the file, which :func:`gvf.read_log` reads.
        seed: the seed of the environment and of the actions.
        info: names of entries of ``info`` that become columns.
        notes: facts that are stored in the file.
        progress: a function that is called now and then with the number of new transitions.

    Example:
        >>> import gvf
        >>> import gymnasium as gym
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "log.parquet")
        ...     env, policy = gym.make("FrozenLake-v1"), gvf.policies.Uniform(4)
        ...     gvf.record_log(env, policy, 100, path, seed=0)
        ...     gvf.read_log(path, quiet=True)
        Log(100 transitions, 16 episodes: state int64, action int64, reward float64, ...)
    """
    facts = {"policy": repr(policy), "seed": str(seed), "gvf": __version__, **(notes or {})}
    stream = _numbered(collect(env, policy, steps, seed=seed, batch=ROWS, info=info))
    waiting: list[Transitions] = []
    with postponed_interrupt() as interrupted, parquet_writer(path, facts) as write:
        for batch in stream:
            waiting.append(batch)
            progress(len(batch))
            if interrupted():
                break
            if sum(map(len, waiting)) >= GROUP:
                ready, waiting = waiting, []
                write(Transitions.concatenate(ready))
        if waiting:
            write(Transitions.concatenate(waiting))


def _numbered(batches: Iterable[Transitions]) -> Iterator[Transitions]:
    """Add the number of each transition's episode."""
    before = 0
    for batch in batches:
        ended = np.cumsum(batch.terminated | batch.truncated)
        episode = before + np.concatenate([[0], ended[:-1]])
        before += int(ended[-1])
        yield Transitions(**batch.columns, episode=episode)


def write_minari(dataset_id: str, log: Log, options: dict[str, Any]) -> Any:
    """Store a log as a Minari dataset."""
    library = minari()
    spaced = {"observation_space", "action_space"} <= options.keys()
    if "env" not in options and not spaced:
        options = {**_spaces(log), **options}
    buffers = [_buffer(library, episode) for episode in log.episodes]
    return library.create_dataset_from_buffers(
        dataset_id, buffers, **{"jpeg_encoding": False, **options}
    )


def _buffer(library: Any, episode: Transitions) -> Any:
    columns = dict(episode.columns)
    states, after = columns.pop("state"), columns.pop("next_state")
    columns.pop("episode")
    steps = len(episode)
    observations = np.concatenate([states, after[-1:]])
    rewards = columns.pop("reward", np.zeros(steps))
    if "action" not in columns:
        raise ValueError("a Minari dataset needs actions, and this log has none")
    actions = columns.pop("action")
    ends = [columns.pop(name) for name in ("terminated", "truncated")]
    # Entry 0 is that of the reset, so the entry of step t is at t + 1.
    infos = {name: _entries(np.concatenate([_nothing(c), c])) for name, c in columns.items()}
    return library.data_collector.EpisodeBuffer(
        observations=_as_observations(observations),
        actions=actions,
        rewards=rewards,
        terminations=ends[0],
        truncations=ends[1],
        infos=infos or None,
    )


def _nothing(column: Array) -> Array:
    """Return one row that stands for no value: NaN where there is one."""
    return np.full_like(column[:1], np.nan if column.dtype.kind == "f" else 0)


def _entries(column: Array) -> Any:
    """Return entries of infos; Minari's Parquet files take single numbers only as a list."""
    return column.tolist() if column.ndim == 1 else column


def _as_observations(states: Array) -> Any:
    if states.dtype.names is None:
        return states
    return {name: _as_observations(states[name]) for name in states.dtype.names}


def _spaces(log: Log) -> dict[str, Any]:
    """Return spaces that have all states and actions of a log."""
    spaces: dict[str, Any] = {}
    for batch in log:
        for space, names in (("observation", ("state", "next_state")), ("action", ("action",))):
            columns = [batch[name] for name in names if name in batch]
            for column in columns:
                spaces[space] = _wider(spaces.get(space), column)
    return {f"{name}_space": _space(spaces[name]) for name in spaces}


def _wider(before: Any, column: Array) -> Any:
    """Return (type, shape, largest value) of a column and those before it."""
    if column.dtype.names is not None:
        earlier = before or {}
        return {name: _wider(earlier.get(name), column[name]) for name in column.dtype.names}
    largest = int(column.max()) if column.dtype.kind in "iu" else 0
    return (column.dtype, column.shape[1:], max(largest, before[2] if before else 0))


def _space(space: Any) -> Any:
    if isinstance(space, dict):
        return gym.spaces.Dict({name: _space(part) for name, part in space.items()})
    dtype, shape, largest = space
    if dtype.kind in "iu" and not shape:
        return gym.spaces.Discrete(largest + 1, dtype=dtype.type)
    low, high = (
        (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    )
    return gym.spaces.Box(low, high, shape, dtype.type)
