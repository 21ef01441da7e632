"""Shards of a horde in the workers of a Ray cluster.

The driver, which is the user's process, evaluates transitions once, as a horde of one process does
(:mod:`gvf.horde.signals`), and cuts them into pieces. A worker has a :class:`gvf.horde.shard.Shard`
with some of the groups. It gets the features, which all need and which go into Ray's object store
once, and the ratios, masses and signals of its own groups. The functions of the user are called by
the driver only; an update and a correction are sent.

Groups do not depend on each other, so all bits of the state are those of one process: the pieces
are those of all questions together, a group has the random stream that it has in one process, and
every worker has the one that uniform draws share.

Rows are sent ahead, up to a limit for each worker, so that no worker waits for another. The driver
keeps a checkpoint of all workers, and the rows since then. A worker that dies is begun anew from
the checkpoint and takes these rows in again, with the same bits. This costs the driver as much
memory as a horde of one process needs, and the rows of :data:`CHECKPOINT_EVERY` steps.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.horde.layout import Ints, Layout
from gvf.horde.shard import Shard, ShardOptions, axis_of
from gvf.horde.signals import ManyRows
from gvf.jobs import RayCluster, ray_cluster

CHECKPOINT_EVERY = 4096
"""The number of steps between two checkpoints of the workers."""
_AHEAD = 8
"""The number of batches that are sent to a worker before it has taken in the first of them."""
_DEATHS = 10
"""The number of deaths between two checkpoints after which the driver gives up."""
_FEATURES = ("x", "x_next")


class ShardPlace(NamedTuple):
    """The place of a shard among all groups of a horde."""

    layout: Layout
    """The layout of its groups."""
    groups: slice
    """Its groups."""
    places: slice
    """Its places."""

    def columns(self, axis: str) -> Ints:
        """Return the cumulants or the continuations that it needs, as columns of those of all."""
        layout = self.layout
        cumulants, continuations = np.split(layout.signal_columns, [len(layout.cumulants)])
        return cumulants if axis == "cumulants" else continuations - continuations[0]

    def rows(self, rows: ManyRows) -> ManyRows:
        """Return the part of rows that it needs, without the features."""
        numbers = np.full(len(rows.largest), -1)
        numbers[self.layout.signal_columns] = np.arange(len(self.layout.signal_columns))
        known = [numbers[piece.missing] for piece in rows.pieces]
        cut = zip(rows.pieces, known, strict=True)
        return rows._replace(
            columns={
                "cumulant": np.take(rows.columns["cumulant"], self.columns("cumulants"), 1),
                "continuation": np.take(
                    rows.columns["continuation"], self.columns("continuations"), 1
                ),
            },
            inputs=rows.inputs[:, self.groups],
            p=rows.p[self.groups],
            largest=rows.largest[self.layout.signal_columns],
            pieces=tuple(piece._replace(missing=some[some >= 0]) for piece, some in cut),
        )


def places_of_shards(layout: Layout, count: int) -> list[ShardPlace]:
    """Divide groups into at most so many shards with about as many questions each."""
    starts = layout.starts
    wanted = np.linspace(0, starts[-1], count + 1)
    edges = np.unique(np.abs(starts[:, None] - wanted).argmin(axis=0))
    return [
        ShardPlace(
            layout.part(first, last), slice(first, last), slice(int(starts[first]), starts[last])
        )
        for first, last in pairwise(edges.tolist())
    ]


def split(arrays: Arrays, places: list[ShardPlace]) -> list[dict[str, NDArray[Any]]]:
    """Return the state of each shard from that of all groups; the first has the features."""
    parts: list[dict[str, NDArray[Any]]] = [{} for _ in places]
    for name, array in arrays.items():
        axis = axis_of(name)
        for i, place in enumerate(places):
            if axis in ("cumulants", "continuations"):
                parts[i][name] = np.take(array, place.columns(axis), 1)
            elif axis == "streams":
                parts[i][name] = np.append(array[place.groups], array[-1:], axis=0)
            elif axis is not None:
                parts[i][name] = array[place.groups if axis == "groups" else place.places]
            elif i == 0 or not _is_feature(name):
                parts[i][name] = array
    return parts


def merged(parts: list[dict[str, NDArray[Any]]], places: list[ShardPlace]) -> Arrays:
    """Return the state of all groups from that of each shard."""
    out: dict[str, NDArray[Any]] = {}
    for name, first in parts[0].items():
        axis = axis_of(name)
        if axis in ("cumulants", "continuations"):
            columns = [place.columns(axis) for place in places]
            out[name] = np.empty((len(first), 1 + max(map(np.max, columns))), first.dtype)
            for part, some in zip(parts, columns, strict=True):
                out[name][:, some] = part[name]
        elif axis == "streams":
            out[name] = np.concatenate([*(part[name][:-1] for part in parts), first[-1:]])
        elif axis is not None:
            out[name] = np.concatenate([part[name] for part in parts])
        else:
            out[name] = first.copy()
    return out


def _is_feature(name: str) -> bool:
    return name in [f"window/column/{column}" for column in _FEATURES]


class RayShard:
    """A shard in a process of its own.

    Args:
        layout: the layout of its groups.
        options: the options of the horde.
        arrays: the state to begin with.
    """

    def __init__(self, layout: Layout, options: ShardOptions, arrays: Arrays) -> None:
        self._shard = Shard.restored(layout, options, arrays)

    def learn(self, features: dict[str, Array], rows: ManyRows) -> None:
        """Learn from rows; those of another process cannot be written to."""
        columns = {**features, **{name: column.copy() for name, column in rows.columns.items()}}
        self._shard.learn(
            rows._replace(columns=columns, inputs=rows.inputs.copy(), p=rows.p.copy())
        )

    def predict(self, x: Array) -> Floats:
        """Return the values of features [m, ...] at the places of these groups, [m, g]."""
        return self._shard.predict(x)

    def weights_of(self, places: Ints) -> Array:
        """Return the weights at some of the places of these groups, [places, size]."""
        return self._shard.weights_of(places)

    def summary(self, largest: Floats) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report for these groups."""
        return self._shard.summary(largest)

    def state_dict(self, features: bool) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state, with or without the features in the window."""
        arrays = self._shard.state_dict()
        return {name: a for name, a in arrays.items() if features or not _is_feature(name)}


class RayShards:
    """The shards of a horde in the workers of a Ray cluster, as one shard.

    They begin with the first features. Until then the shard that is given stays here.

    Args:
        shard: a shard with all groups, whose state the workers begin with.
        cluster: the cluster, with the number of workers; by default one for each processor.
    """

    def __init__(self, shard: Shard, cluster: RayCluster) -> None:
        self._ray = ray_cluster.import_ray()
        self.layout, self.options = shard.layout, shard.options
        self._cluster = cluster
        self.steps, self.steps_per_call = shard.steps, shard.steps_per_call
        self._local: Shard | None = shard
        self._places: list[ShardPlace] = []
        self._actors: list[Any] = []
        self._ahead: list[deque[Any]] = []  # the calls of each worker that may not have ended
        # All rows since the checkpoint: the features, and the part of each worker.
        self._rows: list[tuple[Any, list[ManyRows]]] = []
        self._arriving: list[Any] = []  # the next checkpoint
        self._covered = self._since = self._deaths = 0
        if shard.weights is not None:
            self._begin_workers(shard)

    @property
    def updates(self) -> int:
        """The number of updates that have been due."""
        return self.options.updates_in(self.steps)

    def begin(self, x: Array) -> None:
        """Begin the workers, with weights for features like these, if there are none."""
        if self._local is not None:
            self._local.begin(x)
            self._begin_workers(self._local)

    def _begin_workers(self, shard: Shard) -> None:
        """Begin the workers with the state of a shard, and drop it."""
        ray = self._ray
        ray_cluster.connect(ray, self._cluster.workers, self._cluster.address)
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._places = places_of_shards(self.layout, self._cluster.workers or processors)
        self._checkpoint = split(shard.state_dict(), self._places)
        self.steps_per_call = shard.steps_per_call
        self._sent = ray.put(replace(self.options, steps_per_call=shard.steps_per_call))
        self._actors = [self._make_worker(i) for i in range(len(self._places))]
        self._ahead = [deque() for _ in self._actors]
        self._local = None

    def _make_worker(self, i: int) -> Any:
        """Make a worker from its part of the checkpoint."""
        features = {name: a for name, a in self._checkpoint[0].items() if _is_feature(name)}
        kind = self._ray.remote(RayShard).options(scheduling_strategy="SPREAD", max_restarts=0)
        arrays = {**features, **self._checkpoint[i]}
        return kind.remote(self._places[i].layout, self._sent, arrays)

    def learn(self, rows: ManyRows) -> None:
        """Send rows to all workers, and wait for those that are too far behind."""
        features = self._ray.put({name: rows.columns[name] for name in _FEATURES})
        parts = [place.rows(rows) for place in self._places]
        try:
            for actor, ahead, part in zip(self._actors, self._ahead, parts, strict=True):
                ahead.append(actor.learn.remote(features, part))
        except BaseException:  # an interrupt: some have the rows, so all begin anew without them
            for actor in self._actors:
                self._ray.kill(actor)
            raise
        # From here on an interrupt changes nothing.
        self._rows.append((features, parts))
        self.steps += rows.p.shape[1]
        self._since += rows.p.shape[1]
        if self._since >= CHECKPOINT_EVERY and not self._arriving:
            self._ask_for_checkpoint()
        for i in range(len(self._actors)):
            self._wait(i, _AHEAD)
        if self._arriving:
            arrived, _ = self._ray.wait(
                self._arriving, num_returns=len(self._arriving), timeout=0, fetch_local=False
            )
            if len(arrived) == len(self._arriving):
                self._keep_checkpoint()

    def _wait(self, i: int, ahead: int) -> None:
        """Wait until at most so many calls of a worker have not ended."""
        try:
            while len(self._ahead[i]) > ahead:
                self._ray.get(self._ahead[i][0])
                self._ahead[i].popleft()
        except self._ray.exceptions.RayActorError as error:
            self._revive(i, error)
            self._wait(i, ahead)

    def _ask_for_checkpoint(self) -> None:
        self._arriving = [a.state_dict.remote(i == 0) for i, a in enumerate(self._actors)]
        self._covered, self._since = len(self._rows), 0

    def _keep_checkpoint(self) -> bool:
        """Keep the checkpoint that was asked for; return False if a worker died before."""
        checkpoint = []
        for i in range(len(self._actors)):
            try:
                arrays = self._ray.get(self._arriving[i])
            except self._ray.exceptions.RayActorError as error:
                self._revive(i, error)
                return False
            # Copies, because the object store is small and may end before the driver.
            checkpoint.append({name: array.copy() for name, array in arrays.items()})
        self._checkpoint, self._arriving, self._deaths = checkpoint, [], 0
        del self._rows[: self._covered]
        return True

    def _revive(self, i: int, error: Exception) -> None:
        """Begin a worker anew from the checkpoint, and send it all rows since then."""
        ray, ahead = self._ray, self._ahead[i]
        if self._arriving:  # the rows since the checkpoint before are still there
            self._arriving, self._since = [], CHECKPOINT_EVERY
        while True:
            self._deaths += 1
            if self._deaths > _DEATHS:
                raise RuntimeError(
                    f"the workers of the horde have died {_DEATHS} times since the last checkpoint"
                ) from error
            with suppress(Exception):
                ray.kill(self._actors[i])  # it may only be out of reach
            self._actors[i] = self._make_worker(i)
            ahead.clear()
            try:
                for features, parts in self._rows:
                    ahead.append(self._actors[i].learn.remote(features, parts[i]))
                    if len(ahead) > _AHEAD:
                        ray.get(ahead[0])
                        ahead.popleft()
                return
            except ray.exceptions.RayActorError as again:
                error = again
            except BaseException:  # an interrupt: it does not have all rows
                ray.kill(self._actors[i])
                raise

    def _ask(self, i: int, method: str, *arguments: Any) -> Any:
        """Return the answer of a worker, after all rows."""
        while True:
            self._wait(i, 0)
            try:
                return self._ray.get(getattr(self._actors[i], method).remote(*arguments))
            except self._ray.exceptions.RayActorError as error:
                self._revive(i, error)

    def predict(self, x: Array) -> Floats:
        """Return the values of features [m, ...] at all places, [m, G]."""
        sent = self._ray.put(x)
        answers = [self._ask(i, "predict", sent) for i in range(len(self._actors))]
        return np.concatenate(answers, axis=1)

    def weights_of(self, places: Ints) -> Array:
        """Return copies of the weights at some places, [places, size]."""
        if self._local is not None:
            return self._local.weights_of(places)
        out = np.empty((len(places), self.options.weights.size), self.options.weights.dtype)
        for i, (_, _, own) in enumerate(self._places):
            is_here = (places >= own.start) & (places < own.stop)
            if is_here.any():
                out[is_here] = self._ask(i, "weights_of", places[is_here] - own.start)
        return out

    def summary(self, largest: Floats) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report: those of groups [groups], and those of places [G]."""
        if self._local is not None:
            return self._local.summary(largest)
        parts = [
            self._ask(i, "summary", largest[place.layout.signal_columns])
            for i, place in enumerate(self._places)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def state_dict(self) -> Arrays:
        """Return copies of all arrays of the state, which are those of one process."""
        if self._local is not None:
            return self._local.state_dict()
        while True:
            for i in range(len(self._actors)):
                self._wait(i, 0)
            self._ask_for_checkpoint()
            if self._keep_checkpoint():
                return merged(self._checkpoint, self._places)

    def gathered(self) -> Shard:
        """Return a shard of this process in the same state."""
        return self._local or Shard.restored(self.layout, self.options, self.state_dict())

    def __reduce__(self) -> Any:
        return RayShards, (self.gathered(), self._cluster)
