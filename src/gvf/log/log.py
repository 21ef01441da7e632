"""Logs: recorded transitions from files, tables and lists of episodes.

:func:`read_log` finds out what the columns mean (:mod:`gvf.log.column_meanings`), finds the
episodes (:mod:`gvf.log.episode_ends`), and returns a :class:`Log`, whose batches a learner takes. A
log that is small enough is kept in memory. A larger one is read anew in every pass, a batch at a
time; an episode may cross the borders of batches and files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array, Bools
from gvf.common.checks import check_choice
from gvf.common.errors import OptionError, option
from gvf.log.checked_rows import CheckedRows, Computed, OnNaN
from gvf.log.column_meanings import COUNTED, MEANINGS, Given, recognise
from gvf.log.column_table import described
from gvf.log.episode_bounds import Ends, Gaps, Steps
from gvf.log.episode_lists import Episodes, LogEpisodes, is_one_episode
from gvf.log.tables import ColumnSource, Source, opened
from gvf.transition import ESTIMATED, Transitions

LARGEST_IN_MEMORY = 2**30
"""The size in bytes beyond which a log is read from its file in every pass."""


def read_log(
    source: Any,
    *,
    steps: Steps = "sequence",
    ends: Ends | None = None,
    gaps: Gaps = "error",
    on_nan: OnNaN = "error",
    in_memory: bool | None = None,
    quiet: bool = False,
    **columns: Given,
) -> Log:
    """Read a log of transitions, and print what its columns are taken for.

    Names in common use are recognised: ``obs``, ``observation``, ``state`` or ``s`` for the state,
    ``action_prob``, ``pscore``, ``action_logp`` and others for the behaviour's probability.
    Numbered columns such as ``obs_0``, ``obs_1`` become one matrix. Columns that are not recognised
    are kept under their own names. A name that you give wins:
    ``read("log.parquet", state=["x", "v"], action="a", behaviour_probability="p")``.

    If the log has no next states, that of a row is the state of the following row. After a
    terminated step it is NaN (the state itself, if states are whole numbers). The last row of an
    episode that was cut is left out, because its next state is unknown.

    Args:
        source: the name of a Parquet file (or of a folder of them), of a CSV or ``.npz`` file, or
            of a Minari dataset; a Minari dataset; a table of pandas, polars, DuckDB or any library
            that shares its tables with Arrow; a dict of arrays; or a list of episodes, each a dict
            of arrays with T actions and T or T + 1 states.
        steps: "sequence" if rows follow each other in episodes. "single" if every row is a decision
            of its own, as of a recommender or a trial: every row is then an episode that ends, and
            needs no next state. Episodes and times are only kept, and episodes must all differ.
        ends: the meaning of the ends of episodes that the log leaves open: "terminated" if the task
            ended them, "truncated" if they were cut. A column ``done`` alone needs it, and so does
            a log whose episodes only have numbers.
        gaps: "cut" to cut episodes where rows are missing, "keep" to let them go on as if nothing
            were; by default it is an error. A row is missing where a next state is not the state of
            the following row, where a column that counts steps jumps, and, in a log without next
            states, where times go on by the same amount in at least nine of ten rows and by a
            multiple of it in the others. Without next states, counts and regular times no missing
            row can be seen.
        on_nan: "keep" to accept a NaN in states, actions, rewards and probabilities, for learners
            with ``on_nan="skip"``; by default it is an error.
        in_memory: True to keep the log in memory, False to read it anew in every pass; by default
            a log of at most 1 GiB is kept.
        quiet: True to print nothing. Otherwise the table of :meth:`Log.describe` is printed to
            standard error.
        **columns: the name of the column, or a list of names, for a meaning: ``state``, ``action``,
            ``reward``, ``next_state``, ``terminated``, ``truncated``, ``episode``, ``time``,
            ``stream``, ``behaviour_probability``, ``behaviour_log_probability``. None says that no
            column has this meaning.

    Raises:
        ValueError: if the log is damaged, unclear or impossible; the message names row and column.

    Example:
        >>> import gvf
        >>> log = gvf.read_log(
        ...     {
        ...         "obs": [0, 1, 2, 0, 1],
        ...         "action": [1, 1, 0, 1, 0],
        ...         "reward": [0.0, 0.0, 1.0, 0.0, 0.0],
        ...         "terminated": [False, False, True, False, False],
        ...         "pscore": [0.5, 0.5, 0.5, 0.5, 0.5],
        ...     },
        ...     quiet=True,
        ... )
        >>> log
        Log(4 transitions, 2 episodes: state int64, action int64, reward float64, ...)
        >>> log.episodes[0].next_state
        array([1, 2, 2])
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
        >>> learner = gvf.Learner(
        ...     question, gvf.features.OneHot(3), gvf.updates.TD(0.1), gvf.corrections.IR(), seed=0
        ... )
        >>> learner.fit(log).steps
        4
    """
    check_choice("steps", steps, Steps)
    if ends is not None:
        check_choice("ends", ends, Ends)
    check_choice("gaps", gaps, Gaps)
    check_choice("on_nan", on_nan, OnNaN)
    single = steps == "single"
    for name, value in {"ends": ends, "gaps": None if gaps == "error" else gaps}.items():
        if single and value is not None:
            raise OptionError(
                "every single decision ends its episode: leave out ", option(name, value)
            )
    contents = _source(opened(source), source, columns, single)
    if isinstance(contents, Episodes):
        reading = contents.reading
    else:
        ids = None if {"stream", "episode"} & columns.keys() else contents.ids
        reading = recognise(contents.names, columns, contents.meanings, ids, single=single)
    rows = CheckedRows(contents, reading, ends, on_nan, gaps)
    small = contents.size <= LARGEST_IN_MEMORY
    log = Log(rows, in_memory=small if in_memory is None else in_memory)
    if not quiet:
        print(log.describe(), file=sys.stderr)
    return log


def _source(contents: Any, source: Any, columns: Mapping[str, Given], single: bool) -> Source:
    """Return the source of what was opened: a table, or a list of episodes."""
    if isinstance(contents, Source):
        return contents
    name = str(source) if isinstance(source, str | os.PathLike) else f"a {type(source).__name__}"
    if isinstance(contents, Mapping):
        if not single and is_one_episode(contents, columns):
            return Episodes([contents], name, columns)
        return ColumnSource(contents, name)
    if single:
        raise OptionError(
            f"{name} comes episode by episode, and ",
            option("steps", "single"),
            " is for a table with a row for each decision",
        )
    if hasattr(contents, "iterate_episodes"):
        return Episodes(contents, f"Minari dataset {contents.spec.dataset_id}", columns)
    return Episodes(contents, f"{name} of {len(contents)} episodes", columns)


class LogSample(NamedTuple):
    """Some rows of a log; see :meth:`Log.sample`."""

    batch: Transitions
    """The rows, m of them, in the order of the log."""
    position: NDArray[np.int64]
    """Their positions in the log, [m]."""
    left_out: int
    """The number of rows of the whole log that are not usable."""


class Log:
    """A log of transitions, in episodes; :func:`gvf.read_log` makes one.

    ``len(log)`` is the number of transitions. Iterating yields :class:`gvf.Transitions` in order,
    so ``learner.fit(log)`` learns from it. Its columns are ``state``, ``action``, ``reward``,
    ``next_state``, ``terminated``, ``truncated``, the behaviour's probability, the log's further
    columns under their own names, and ``episode``, the number of the episode in the log as it was
    read. The last transition of an episode is always terminated or truncated.

    Example:
        >>> import gvf
        >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "reward": [0.0, 1.0], "terminated": True}
        >>> log = gvf.read_log([walk, walk, walk], quiet=True)
        >>> len(log), len(log.episodes), log.lengths
        (6, 3, array([2, 2, 2]))
        >>> log.episodes[1].reward
        array([0., 1.])
        >>> for batch in log:
        ...     print(batch)
        Transitions(6: state int64, action int64, reward float64, next_state int64, terminated bool,
                    truncated bool, episode int64)
    """

    numbers: NDArray[np.int64]
    """The numbers of the episodes in the log as it was read, int64[E], ascending."""
    in_memory: bool
    """True if the transitions are kept in memory."""

    def __init__(
        self, rows: CheckedRows, numbers: NDArray[np.int64] | None = None, *, in_memory: bool,
        whole: Transitions | None = None, computed: tuple[Computed, ...] = (),
    ) -> None:  # fmt: skip
        self._rows, self.in_memory, self._computed = rows, in_memory, computed
        self.numbers = np.arange(len(rows.bounds)) if numbers is None else numbers
        self._whole = whole
        if in_memory and whole is None:
            self._whole = Transitions.concatenate(self._streamed())

    @classmethod
    def from_transitions(
        cls,
        transitions: Transitions,
        name: str,
        ids: Mapping[str, Array] = MappingProxyType({}),
        times: str | None = None,
    ) -> Log:
        """Return the log of transitions that have all columns of a log, in memory.

        Args:
            transitions: the transitions, with ``terminated``, ``truncated`` and ``episode``. A new
                number, or one of the two ends, begins a new episode.
            name: the name of the log.
            ids: the names that the episodes had in a log before, [m] each, by column.
            times: the column of the transitions that has the log's times.

        Example:
            >>> import gvf
            >>> batch = gvf.Transitions(
            ...     state=[0, 4], action=[1, 1], next_state=[1, 5], terminated=[False, True],
            ...     truncated=[True, False], episode=[0, 1]
            ... )
            >>> gvf.Log.from_transitions(batch, "some rows").lengths
            array([1, 1])
        """
        columns = dict(transitions.columns)
        columns[COUNTED] = columns.pop("episode")
        source = ColumnSource({**columns, **ids}, name)
        meanings: dict[str, str | None] = {
            meaning: meaning if meaning in transitions else None for meaning in MEANINGS
        }
        meanings |= {"time": times, "done": None, "stream": None, "episode": COUNTED}
        reading = recognise(source.names, meanings, ids=[*ids])
        return cls(CheckedRows(source, reading, None, "keep", "keep"), in_memory=True)

    @property
    def source(self) -> str:
        """The name of the source."""
        return self._rows.source.name

    @property
    def notes(self) -> Mapping[str, str]:
        """Facts that the file tells about itself, such as environment and seed."""
        return self._rows.source.notes

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of its transitions."""
        return tuple(self._sample.columns)

    @property
    def meanings(self) -> dict[str, tuple[str, ...]]:
        """The columns of the source that have a meaning, by meaning.

        ``{"state": ("obs_0", "obs_1"), "action": ("a",)}``, for example.
        """
        return {name: part.columns for name, part in self._rows.reading.parts.items()}

    @cached_property
    def _sample(self) -> Transitions:
        """The first transitions, from which types are told."""
        return self._whole if self._whole is not None else next(self._streamed())

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of transitions of each episode, int64[E]."""
        bounds = self._rows.bounds
        return (bounds.last - bounds.first + 1)[self.numbers]

    @property
    def terminated(self) -> Bools:
        """True for episodes that the task ended, bool[E]; the others were cut."""
        return self._rows.bounds.terminated[self.numbers]

    def __len__(self) -> int:
        return int(self.lengths.sum())

    def __iter__(self) -> Iterator[Transitions]:
        if self._whole is None:
            return self._streamed()
        step = self._rows.source.batch_rows
        whole = self._whole
        return (whole[start : start + step] for start in range(0, len(whole), step))

    def _streamed(self) -> Iterator[Transitions]:
        chosen = None
        if len(self.numbers) < len(self._rows.bounds):
            chosen = np.zeros(len(self._rows.bounds), bool)
            chosen[self.numbers] = True
        bounds = self._rows.bounds
        start, stop = bounds.first[self.numbers[0]], bounds.last[self.numbers[-1]] + 1
        for batch in self._rows.batches(int(start), int(stop), chosen):
            for computed in self._computed:
                batch = computed.added_to(batch)
            yield batch

    @property
    def episodes(self) -> LogEpisodes:
        """The episodes as a sequence of :class:`gvf.Transitions`.

        ``log.episodes[3]`` is one of them. Iterating reads the log once, and needs memory for one
        batch and the longest episode.
        """
        return LogEpisodes(self)

    def transitions(self) -> Transitions:
        """Return all transitions as one batch, in memory."""
        return self._whole if self._whole is not None else Transitions.concatenate(self)

    def place(self, position: int) -> str:
        """Return the place of a transition in the source, in words, for messages.

        Example:
            >>> import gvf
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> gvf.read_log([walk] * 5, quiet=True).place(3)
            'step 1 of episode 1'
        """
        at = int(np.searchsorted(np.cumsum(self.lengths), position, "right"))
        first = self._rows.bounds.first[self.numbers[at]]
        return self._rows.source.row_text(int(first + position - self._starts[at]))

    @property
    def _starts(self) -> NDArray[np.int64]:
        """The position of the first transition of each episode, int64[E]."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def ids(self) -> dict[str, Array]:
        """The log's own names of its episodes, by the column that has them, [E] each.

        There are several if streams or several columns name an episode, and none if the log has no
        names. The types are those of the log. Two episodes have the same name if one was cut where
        rows are missing, or if only its stream has a name.

        Example:
            >>> import gvf
            >>> visits = {"obs": [0, 1, 0], "action": [1, 1, 1], "patient": ["Bo", "Bo", "Al"]}
            >>> log = gvf.read_log(visits, episode="patient", ends="terminated", quiet=True)
            >>> log.ids, log.numbers
            ({'patient': array(['Bo', 'Al'], dtype='<U2')}, array([0, 1]))
        """
        ids = self._rows.bounds.ids
        names = () if ids is None else ids.dtype.names or ()
        return {} if ids is None else {name: ids[name][self.numbers] for name in names}

    @property
    def times(self) -> str | None:
        """The column of the transitions that has the log's own times; None if it has none."""
        part = self._rows.reading.parts.get("time")
        kept = {name: column for column, name in self._rows.reading.kept.items()}
        return None if part is None else kept.get(part.columns[0])

    @property
    def clocks(self) -> Mapping[str, Any]:
        """The types of Arrow, with their time zones, of columns that are points in time."""
        return self._rows.source.clocks

    def keyed(self) -> Iterator[tuple[Transitions, dict[str, Array]]]:
        """Iterate over the transitions with the columns by which other tables join the log.

        They are the log's own names of episodes and its times, under their names in the log, and
        ``row``, the row of the log as it was read, from 0. What the log does not have is counted
        from 0: ``episode``, and the ``step`` of the episode. Where the log has another column
        called so, a count is called ``row number``, ``episode number`` or ``step number``.

        Example:
            >>> import gvf
            >>> visits = {"obs": [0, 1, 0], "action": [1, 1, 1], "patient": ["Bo", "Bo", "Al"]}
            >>> log = gvf.read_log(visits, episode="patient", ends="truncated", quiet=True)
            >>> for batch, keys in log.keyed():
            ...     print(batch.state, keys)
            [0] {'patient': array(['Bo'], dtype='<U2'), 'row': array([0]), 'step': array([0])}
        """
        ids, starts, times, counted = self.ids, self._starts, self.times, self.counted
        before = 0
        for batch in self:
            positions = before + np.arange(len(batch))
            before += len(batch)
            at = np.searchsorted(self.numbers, batch.episode)
            step = positions - starts[at]
            keys = {name: column[at] for name, column in ids.items()}
            if times is not None:
                keys[times] = batch[times]
            row = self._rows.source.numbers(self._rows.bounds.first[batch.episode] + step)
            counts = {"row": row, "episode": batch.episode, "step": step}
            yield batch, keys | {name: counts[of] for name, of in counted.items()}

    @property
    def counted(self) -> dict[str, str]:
        """The counts of :meth:`keyed`, "row", "episode" and "step", by the columns' names."""
        reading = self._rows.reading
        # With streams, the first of the names is that of the stream.
        has = {"episode": len(reading.ids) > ("stream" in reading), "step": self.times}
        taken = {*self._rows.source.names, *reading.ids}
        counts = [count for count in ("row", "episode", "step") if not has.get(count)]
        return {f"{count} number" if count in taken else count: count for count in counts}

    def select(self, positions: Any) -> Log:
        """Return the log of some episodes, by their positions in this log; their order stays.

        Example:
            >>> import gvf
            >>> walk = {"obs": [0, 1], "action": [1], "terminated": True}
            >>> gvf.read_log([walk] * 5, quiet=True).select([3, 1]).numbers
            array([1, 3])
        """
        chosen = np.unique(np.asarray(positions, np.int64))
        if not len(chosen):
            raise ValueError("select at least one episode")
        if chosen[0] < 0 or chosen[-1] >= len(self.numbers):
            raise IndexError(
                f"episodes are 0 to {len(self.numbers) - 1}; got {chosen[0]} to {chosen[-1]}"
            )
        whole = None
        if self._whole is not None:
            keep = np.zeros(len(self.numbers), bool)
            keep[chosen] = True
            whole = self._whole[np.repeat(keep, self.lengths)]
        return self._like(self.numbers[chosen], whole, self._computed)

    def loaded(self) -> Log:
        """Return the log with its transitions in memory, for a part of a log that stays in files.

        Example:
            >>> import gvf
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> large = gvf.read_log([walk] * 100, in_memory=False, quiet=True)
            >>> part, _ = large.split(0.9)
            >>> part.in_memory, part.loaded().in_memory
            (False, True)
        """
        if self.in_memory:
            return self
        return Log(self._rows, self.numbers, in_memory=True, computed=self._computed)

    def _like(
        self,
        numbers: NDArray[np.int64],
        whole: Transitions | None,
        computed: tuple[Computed, ...],
    ) -> Log:
        return Log(self._rows, numbers, in_memory=self.in_memory, whole=whole, computed=computed)

    def with_columns(
        self,
        compute: Callable[[Transitions], Mapping[str, Any]],
        *,
        origin: str = "computed",
    ) -> Log:
        """Return the log with further columns, computed from its transitions.

        The columns are kept in memory if the log is. Otherwise they are computed anew in every
        pass, a batch at a time.

        Args:
            compute: a function from transitions [m] to columns [m] by their names. A column that is
                there already is replaced, and None removes it. The columns must not depend on how
                the log is cut into batches.
            origin: a few words on where the columns come from, for :meth:`describe`.

        Example:
            >>> import gvf
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> log = gvf.read_log([walk] * 3, quiet=True)
            >>> log = log.with_columns(lambda batch: {"moved": batch.next_state - batch.state})
            >>> log.episodes[0].moved
            array([1, 1])
        """
        added = Computed(compute, origin)
        whole = None if self._whole is None else added.added_to(self._whole)
        return self._like(self.numbers, whole, (*self._computed, added))

    @property
    def origins(self) -> dict[str, str]:
        """The origins of the columns that were computed, by column."""
        origins: dict[str, str] = {}
        for computed in self._computed:
            origins |= dict.fromkeys(computed.compute(self._sample[:1]), computed.origin)
        return origins

    @property
    def has_estimates(self) -> bool:
        """True if the behaviour's probabilities are estimated; see :func:`estimate_behaviour`."""
        return ESTIMATED in self._sample

    def split(self, share: float = 0.2, *, seed: int = 0) -> tuple[Log, Log]:
        """Split the log by whole episodes at random: one part to learn from, one held out.

        Args:
            share: the share of the episodes that is held out; each part has at least one.
            seed: the seed of the choice. The same seed makes the same split.

        Returns:
            The log to learn from, and the held-out log.

        Example:
            >>> import gvf
            >>> walk = {"obs": [0, 1], "action": [1], "terminated": True}
            >>> train, held_out = gvf.read_log([walk] * 10, quiet=True).split(0.3, seed=1)
            >>> len(train.episodes), len(held_out.episodes)
            (7, 3)
        """
        count = len(self.numbers)
        if not 0 < share < 1:
            raise ValueError(f"share must be between 0 and 1, got {share}")
        if count < 2:
            raise ValueError("a log of one episode cannot be split by episodes")
        held_out = min(max(round(share * count), 1), count - 1)
        order = np.random.default_rng(seed).permutation(count)
        return self.select(order[held_out:]), self.select(order[:held_out])

    def sample(
        self,
        most: int,
        *,
        rng: np.random.Generator,
        usable: Callable[[Transitions], Bools],
        inspect: Callable[[Transitions, NDArray[np.int64]], None] | None = None,
    ) -> LogSample:
        """Return the usable rows of the log, or of a random sample if it has more than `most` rows.

        Args:
            most: the largest number of rows.
            rng: the generator of the choice; a log that is short enough draws nothing.
            usable: a function from transitions [m] to the rows that can be used, bool[m].
            inspect: a function that gets all usable rows of the log, batch by batch, with their
                positions.

        Example:
            >>> import gvf
            >>> import numpy as np
            >>> walk = {"obs": [0, 1, 2], "action": [1, 0], "terminated": True}
            >>> log = gvf.read_log([walk] * 50, quiet=True)
            >>> rows = log.sample(
            ...     3, rng=np.random.default_rng(0), usable=lambda batch: batch.action >= 0
            ... )
            >>> rows.position, rows.batch.state, rows.left_out
            (array([51, 63, 83]), array([1, 1, 1]), 0)
        """
        chosen = np.ones(len(self), bool)
        if len(self) > most:
            chosen[:] = False
            chosen[rng.choice(len(self), most, replace=False)] = True
        parts: list[Transitions] = []
        positions: list[NDArray[np.int64]] = []
        start = left_out = 0
        for batch in self:
            good = usable(batch)
            left_out += len(batch) - int(good.sum())
            if inspect is not None:
                inspect(batch[good], start + np.flatnonzero(good))
            good = good & chosen[start : start + len(batch)]
            parts.append(batch[good])
            positions.append(start + np.flatnonzero(good))
            start += len(batch)
        return LogSample(Transitions.concatenate(parts), np.concatenate(positions), left_out)

    def describe(self, *, behaviour: str = "") -> str:
        """Return a table of the columns: their meanings, types, ranges, and how they were found.

        Args:
            behaviour: the origin of the behaviour's probabilities, in words, if the log has none
                and they come from elsewhere. By default the table then says how to get them.
        """
        rows = self._rows
        return described(self, rows.source, rows.reading, rows.bounds, behaviour)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the log to one Parquet file, which :func:`gvf.read_log` reads back.

        The file has all columns, the log's own names of its episodes (:attr:`ids`), and ``step``,
        the position in the episode. It is complete when it appears.

        Example:
            >>> import gvf
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
            >>> with TemporaryDirectory() as folder:
            ...     gvf.read_log([walk], quiet=True).to_parquet(Path(folder, "log.parquet"))
            ...     gvf.read_log(Path(folder, "log.parquet"), quiet=True).transitions().next_state
            array([1, 2])
        """
        from gvf.log.write_log import write_parquet

        write_parquet(path, self)

    def to_minari(self, dataset_id: str, **options: Any) -> Any:
        """Store the log as a Minari dataset, with the behaviour's probabilities in its infos.

        Args:
            dataset_id: the id of the dataset, as in ``"cartpole/random-v0"``.
            **options: further arguments of ``minari.create_dataset_from_buffers``. Without ``env``,
                ``observation_space`` and ``action_space`` the spaces are made to fit the log.

        Returns:
            The dataset. Probabilities are entries of infos, at t + 1 for step t.
        """
        from gvf.log.write_log import write_minari

        return write_minari(dataset_id, self, options)

    def __repr__(self) -> str:
        columns = repr(self._sample[:1])[len("Transitions(1: ") : -1].split(", ")
        more = ", ..." if len(columns) > 3 else ""
        count = len(self.numbers)
        return (
            f"Log({len(self)} transitions, {count} episode{'s' * (count != 1)}: "
            f"{', '.join(columns[:3])}{more})"
        )
