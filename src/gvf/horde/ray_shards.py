"""A horde on a Ray cluster: its groups are spread over processes that all get the same rows.

The driver, which is the user's process, evaluates transitions as a horde of one process does:
ratios, signals and features. It puts these rows into Ray's object store once, and every worker
takes them in. A worker has the window, and the rings and weights of some groups. Groups do not
depend on each other, so all bits of the state are those of one process:

- A group has the random stream that it has in one process, and every worker has the one that
  uniform draws share.
- The chunk is that of all questions together.

Rows are sent ahead, up to a limit for each worker, so that no worker waits for another. The
functions of the user are called by the driver only; an update and a correction are sent.

The driver keeps a checkpoint of all workers, and the rows since then. A worker that dies is begun
anew from the checkpoint and takes these rows in again, with the same bits. This costs the driver as
much memory as a horde of one process needs, and the rows of :data:`CHECKPOINT_EVERY` steps.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Arrays, Floats
from gvf.features import Dense
from gvf.horde.horde_core import Core, HordeOptions, HordeRows
from gvf.horde.layout import Ints, Layout
from gvf.jobs import ray_cluster
from gvf.learners.linear_values import Form
from gvf.learners.saved_state import group

CHECKPOINT_EVERY = 4096
"""The number of steps between two checkpoints of the workers."""
_AHEAD = 8
"""The number of batches that are sent to a worker before it has taken in the first of them."""
_DEATHS = 10
"""The number of deaths between two checkpoints after which the driver gives up."""
_SAME = {
    *("own/since", "own/chunk", "own/form", "own/left_out", "own/estimated"),
    "own/outside",
    *("pauses/last", "pauses/largest", "draws/place", "draws/steps", "watch/longest"),
}
"""The arrays of a core that are the same in all workers, besides the window."""


class Share:
    """Some neighbouring groups of a horde, in a process of their own.

    Args:
        layout: the layout of these groups.
        options: the options of the horde.
        groups: the groups among those of the horde.
        form: the form of the features.
        arrays: the state to begin with; only the streams if nothing has been observed.
    """

    def __init__(
        self, layout: Layout, options: HordeOptions, groups: slice, form: Form, arrays: Arrays
    ) -> None:
        self._groups, self._core = groups, Core(layout, options)
        self._core.traces = []  # the driver has them
        if "draws/steps" in arrays:
            self._core.restore(dict(arrays))
        else:
            self._core.start(form)
            self._core.draws.streams[:] = arrays["draws/streams"]

    def learn(self, rows: HordeRows) -> None:
        """Take in rows with the numbers of all groups."""
        groups = self._groups
        self._core.learn(
            rows._replace(inputs=rows.inputs[:, groups].copy(), p=rows.p[groups].copy())
        )

    def predict(self, x: Array) -> Floats:
        """Return the values of features [m, ...] at the places of these groups, [m, g]."""
        return self._core.predict(x)

    def weights(self, places: Ints) -> Array:
        """Return the weights at some of the places of these groups, [places, size]."""
        return self._core.weights(places)

    def summary(self) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report for these groups."""
        return self._core.summary()

    def arrays(self, window: bool) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state, with or without the window."""
        left_out = ("courses/",) if window else ("courses/", "window/")  # the driver has courses
        arrays = self._core.arrays()
        return {name: a for name, a in arrays.items() if not name.startswith(left_out)}


class SpreadCore(Core):
    """The core of a horde whose groups learn in the workers of a Ray cluster.

    Args:
        core: the core of one process, whose state the workers begin with.
    """

    def __init__(self, core: Core) -> None:
        self.layout, self.options, self.form = core.layout, core.options, core.form
        self.evaluator, self.traces, self.endless = core.evaluator, core.traces, core.endless
        self.courses = core.courses
        self._ray = ray_cluster.import_ray()
        self._steps, self.left_out = core.steps, core.left_out
        self.estimated = core.estimated
        self.outside, self.uncounted = core.outside, core.uncounted
        self._local: Core | None = core  # until the workers begin
        self._actors: list[Any] = []
        self._ahead: list[deque[Any]] = []  # the calls of each worker that may not have ended
        self._rows: list[Any] = []  # all rows since the checkpoint
        self._arriving: list[Any] = []  # the next checkpoint
        self._covered = self._since = self._deaths = 0
        if core.form:
            self._begin()

    @property
    def steps(self) -> int:
        """The number of transitions observed."""
        return self._steps

    def start(self, form: Form) -> None:
        """Begin the workers, once the form of the features is known."""
        assert self._local is not None
        self._local.start(form)
        self.form = self._local.form
        self._begin()

    def _begin(self) -> None:
        """Begin the workers with the state of the core of this process, and drop it."""
        core, layout, options, ray = self._local, self.layout, self.options, self._ray
        assert core is not None
        ray_cluster.connect(ray, options.workers, options.address)
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._edges = _edges(layout.starts, options.workers or processors)
        arrays = core.arrays() if self._steps else {"draws/streams": core.draws.streams}
        self._kept = split(arrays, layout, self._edges)
        # A worker needs no function of the user, and the chunk of all questions.
        self._sent = ray.put(
            replace(
                options,
                features=Dense(options.features.size),
                behaviour=None,
                steps_per_call=core.steps_per_call,
                workers=None,
                address=None,
            )
        )
        self._actors = [self._make_worker(i) for i in range(len(self._kept))]
        self._ahead = [deque() for _ in self._actors]
        self._local = None

    def _make_worker(self, i: int) -> Any:
        """Make a worker from its part of the checkpoint."""
        groups = slice(*self._edges[i : i + 2].tolist())
        window = {f"window/{name}": a for name, a in group(self._kept[0], "window").items()}
        (form,) = self.form
        return (
            self._ray.remote(Share)
            .options(scheduling_strategy="SPREAD", max_restarts=0)
            .remote(
                self.layout.part(groups.start, groups.stop),
                self._sent,
                groups,
                form,
                {**self._kept[i], **window},
            )
        )

    def learn(self, rows: HordeRows) -> None:
        """Send rows to all workers, and wait for those that are too far behind."""
        sent = self._ray.put(rows)
        try:
            for actor, ahead in zip(self._actors, self._ahead, strict=True):
                ahead.append(actor.learn.remote(sent))
        except BaseException:  # an interrupt: some have the rows, so all begin anew without them
            for actor in self._actors:
                self._ray.kill(actor)
            raise
        # From here on an interrupt changes nothing.
        self._rows.append(sent)
        self._steps += rows.p.shape[1]
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
        self._arriving = [a.arrays.remote(i == 0) for i, a in enumerate(self._actors)]
        self._covered, self._since = len(self._rows), 0

    def _keep_checkpoint(self) -> bool:
        """Keep the checkpoint that was asked for; return False if a worker died before."""
        kept = []
        for i in range(len(self._actors)):
            try:
                arrays = self._ray.get(self._arriving[i])
            except self._ray.exceptions.RayActorError as error:
                self._revive(i, error)
                return False
            # Copies, because the object store is small and may end before the driver.
            kept.append({name: array.copy() for name, array in arrays.items()})
        self._kept, self._arriving, self._deaths = kept, [], 0
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
                for sent in self._rows:
                    ahead.append(self._actors[i].learn.remote(sent))
                    if len(ahead) > _AHEAD:
                        ray.get(ahead[0])
                        ahead.popleft()
                return
            except ray.exceptions.RayActorError as again:
                error = again
            except BaseException:  # an interrupt: it does not have all rows
                ray.kill(self._actors[i])
                raise

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Return the answers of all workers, after all rows."""
        return [self._ask_one(i, method, *arguments) for i in range(len(self._actors))]

    def _ask_one(self, i: int, method: str, *arguments: Any) -> Any:
        while True:
            self._wait(i, 0)
            try:
                return self._ray.get(getattr(self._actors[i], method).remote(*arguments))
            except self._ray.exceptions.RayActorError as error:
                self._revive(i, error)

    def predict(self, x: Array) -> Floats:
        """Return the values of features [m, ...] at all places, [m, G]."""
        return np.concatenate(self._ask("predict", self._ray.put(x)), axis=1)

    def weights(self, places: Ints) -> Array:
        """Return copies of the weights at some places, [places, size]."""
        if self._local is not None:
            return self._local.weights(places)
        out = np.empty((len(places), self.options.features.size), self.options.dtype)
        for i, (first, last) in enumerate(pairwise(self.layout.starts[self._edges].tolist())):
            is_here = (places >= first) & (places < last)
            if is_here.any():
                out[is_here] = self._ask_one(i, "weights", places[is_here] - first)
        return out

    def summary(self) -> dict[str, NDArray[Any]]:
        """Return the numbers of a report: those of groups [groups], and those of places [G]."""
        if self._local is not None:
            return self._local.summary()
        parts = self._ask("summary")
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the state, which are those of one process."""
        if self._local is not None:
            return self._local.arrays()
        while True:
            for i in range(len(self._actors)):
                self._wait(i, 0)
            self._ask_for_checkpoint()
            if self._keep_checkpoint():
                break
        arrays = merged(self._kept) | {
            "own/left_out": np.array(self.left_out),
            "own/estimated": np.array(self.estimated),
            "own/outside": np.array([self.outside, self.uncounted]),
        }
        engine = {name: arrays.pop(name) for name in list(arrays) if name.startswith("engine/")}
        arrays |= {f"courses/{name}": a for name, a in self.courses.arrays().items()}
        for g, trace in enumerate(self.traces):
            arrays |= {f"trace {g}/{name}": a for name, a in trace.checkpoint().items()}
        return arrays | engine

    @classmethod
    def restored(
        cls, layout: Layout, options: HordeOptions, arrays: dict[str, NDArray[Any]]
    ) -> Core:
        """Make a core of one process, from which the workers begin."""
        return Core.restored(layout, options, arrays)

    def gathered(self) -> Core:
        """Return a core of this process in the same state."""
        return self._local or Core.restored(self.layout, self.options, self.arrays())

    def __reduce__(self) -> Any:
        return SpreadCore, (self.gathered(),)


def _edges(starts: Ints, count: int) -> Ints:
    """Choose the first groups of at most so many shares with about as many questions each.

    Args:
        starts: the first place of each group, and the number of places.
        count: the number of shares.
    """
    wanted = np.linspace(0, starts[-1], count + 1)
    return np.unique(np.abs(starts[:, None] - wanted).argmin(axis=0))


def split(arrays: Arrays, layout: Layout, edges: Ints) -> list[dict[str, NDArray[Any]]]:
    """Return the arrays of each share of a core.

    The first has the window, and none has traces and courses.
    """
    parts: list[dict[str, NDArray[Any]]] = [{} for _ in edges[1:]]
    for name, array in arrays.items():
        for i, (first, last) in enumerate(pairwise(edges.tolist())):
            if name.startswith(("trace ", "courses/")) or (name.startswith("window/") and i > 0):
                continue
            if name in _SAME or name.startswith("window/"):
                parts[i][name] = array
            elif name == "draws/streams":
                parts[i][name] = np.append(array[first:last], array[-1:], axis=0)
            elif len(array) == layout.groups:
                parts[i][name] = array[first:last]
            else:
                assert len(array) == len(layout), name
                parts[i][name] = array[layout.starts[first] : layout.starts[last]]
    return parts


def merged(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a core from those of its shares, without the traces."""
    out: dict[str, NDArray[Any]] = {}
    for name, array in parts[0].items():
        if name in _SAME or name.startswith("window/"):
            out[name] = array.copy()
        elif name == "draws/streams":
            out[name] = np.concatenate([*(part[name][:-1] for part in parts), array[-1:]])
        else:
            out[name] = np.concatenate([part[name] for part in parts])
    return out
