"""The store: one Parquet file for each task of a study, whole or not there.

    <out>/<study>/<protocol>-<digest>/<question>/<behaviour>/gap-<g>/run-<r>.parquet

The digest is that of all settings that the tasks of a study share. Results of different settings so
live in different folders and never meet, and what only adds tasks (runs, pairs, gaps) may change: a
finished study grows. A file has one row for each lane of each method, the task's configuration in
its metadata, and nothing that varies, so that equal results are equal bytes. When, where and how
fast it was made goes to ``log.jsonl`` beside.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import gvf
from gvf.study.racing import RacingStudy, RacingTask
from gvf.study.study import Study, Task
from gvf.study.task import Outcome, RacingOutcome
from gvf.study.variance import NORMS, VarianceStudy, VarianceTask

if TYPE_CHECKING:
    import pyarrow as pa

AnyStudy = Study | VarianceStudy | RacingStudy
AnyTask = Task | VarianceTask | RacingTask
AnyResult = Sequence[Outcome] | Mapping[str, np.ndarray]
"""What :func:`gvf.study.run_task`, `run_racing` and :func:`gvf.study.run_variance` return."""

DEFAULT_OUT = Path("gvf-results")
"""The folder of results, unless another one is named."""
GENERATION = {"continuous-four-rooms, authors": 2}
"""Of a domain under a protocol, 1 where nothing is said: part of every configuration, to be raised
when the same study gives other numbers than before."""
ADDS_TASKS = {"name", "runs", "pairs", "gaps"}
"""Attributes of a study that say which tasks it has, and nothing about any one of them."""
STALE = 3600.0
"""Seconds after which a file that was never finished is taken for dead: writing takes a moment."""


class StoreError(OSError):
    """Results cannot be read or written; the message says where, and what to do."""


def settings(study: AnyStudy) -> dict[str, Any]:
    """All that the results of a study's tasks depend on, but for what tells the tasks apart.

    Example:
        >>> from gvf.study import Study
        >>> from gvf.study.store import settings
        >>> settings(Study("mine", "four-rooms", ("IR",), (1,), runs=3))["step_sizes"]
        [1.0]
    """
    where = f"{study.domain}, {getattr(study, 'protocol', 'paper')}"
    plain: dict[str, Any] = {"generation": GENERATION.get(where, 1)}
    for field in fields(study):
        if field.name not in ADDS_TASKS:
            value = getattr(study, field.name)
            # 1 and 1.0 are the same step size.
            plain_one = float if "float" in str(field.type) else lambda v: v
            is_many = isinstance(value, tuple)
            plain[field.name] = [plain_one(v) for v in value] if is_many else plain_one(value)
    return plain


def configuration(task: AnyTask) -> str:
    """All that determines a task's result, as JSON: where it is equal, so is the result."""
    place = {field.name: getattr(task, field.name) for field in fields(task)}
    del place["study"]
    return _canonical(settings(task.study) | place)


def encode(task: AnyTask, result: AnyResult) -> bytes:
    """A task's result as the bytes of its Parquet file: the same for the same result.

    Columns: question, behaviour, gap, run, method, step_size (null for WIS-TD(0)), u0 and eta (null
    for all others), error, final, curve (a list); film (a list), where predictions are shown. Of a
    task of update variance: question, behaviour, run, method, iteration, l1, l2, scalar.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(task, VarianceTask):
        assert isinstance(result, Mapping)
        columns = _variance_columns(task, result)
    else:
        assert not isinstance(result, Mapping)
        columns = _columns(result)
    rows = len(columns["method"])
    place = {
        field.name: pa.array([getattr(task, field.name)] * rows)
        for field in fields(task)
        if field.name != "study"
    }
    table = pa.table(place | columns)
    metadata = {
        "gvf.configuration": configuration(task),
        "gvf.seed": str(task.study.seed),
        "gvf.task": task.name,
        "gvf.version": gvf.__version__,
    }
    file = io.BytesIO()
    # Bytes of like significance together: smaller and faster than what Parquet does by itself.
    lists = ("curve", "film")
    split = [f"{name}.list.element" if name in lists else name for name in _measured(table)]
    options: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": ["question", "behaviour", "method"],
        "column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
        "write_page_checksum": True,
    }
    pq.write_table(table.replace_schema_metadata(metadata), file, **options)
    return file.getvalue()


def _columns(outcomes: Sequence[Outcome]) -> dict[str, pa.Array]:
    import pyarrow as pa

    lanes = [lane for outcome in outcomes for lane in outcome.lanes]
    pairs = [lane if isinstance(lane, tuple) else (None, None) for lane in lanes]
    single = [None if isinstance(lane, tuple) else lane for lane in lanes]
    shown = [outcome.film for outcome in outcomes if isinstance(outcome, RacingOutcome)]
    return {
        "method": pa.array([outcome.method for outcome in outcomes for _ in outcome.lanes]),
        "step_size": pa.array(single, pa.float64()),
        "u0": pa.array([u0 for u0, _ in pairs], pa.float64()),
        "eta": pa.array([eta for _, eta in pairs], pa.float64()),
        "error": pa.array(np.concatenate([outcome.error for outcome in outcomes])),
        "final": pa.array(np.concatenate([outcome.final for outcome in outcomes])),
        "curve": _lists(np.concatenate([outcome.curve for outcome in outcomes])),
        **({"film": _lists(np.concatenate(shown))} if shown else {}),
    }


def _lists(rows: np.ndarray) -> pa.Array:
    """A column of lists, from an array [lanes, m]."""
    import pyarrow as pa

    ends = np.arange(len(rows) + 1) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(rows.ravel()))


def _variance_columns(task: VarianceTask, variance: Mapping[str, np.ndarray]) -> dict[str, Any]:
    import pyarrow as pa

    iterations, values = task.study.iterations, np.concatenate(list(variance.values()))
    return {
        "method": pa.array([method for method in variance for _ in iterations]),
        "iteration": pa.array([iteration for _ in variance for iteration in iterations]),
        **{norm: pa.array(values[:, i].copy()) for i, norm in enumerate(NORMS)},
    }


def _measured(table: pa.Table) -> list[str]:
    """The columns that hold what was measured: hardly a number occurs twice."""
    return [
        name for name in table.column_names if name in {"error", "final", "curve", "film", *NORMS}
    ]


@dataclass(frozen=True)
class Store:
    """The results of one study under a folder.

    Example:
        >>> from gvf.study import Study, run_task
        >>> from gvf.study.store import Store, encode
        >>> import tempfile
        >>> study = Study("mine", "markov-chain", ("IR",), (0.5, 1), updates=20, runs=1)
        >>> store = Store(study, tempfile.mkdtemp())
        >>> missing, damaged = store.survey()
        >>> for task in missing:
        ...     store.save(task, encode(task, run_task(task)))
        >>> len(missing), store.read().num_rows
        (3, 6)
    """

    study: AnyStudy
    out: str | Path = DEFAULT_OUT

    @cached_property
    def folder(self) -> Path:
        """Where the results of this study with these settings are."""
        digest = hashlib.sha256(_canonical(settings(self.study)).encode()).hexdigest()[:8]
        protocol = getattr(self.study, "protocol", "both")  # where they do not differ
        return Path(self.out) / self.study.name / f"{protocol}-{digest}"

    def path(self, task: AnyTask) -> Path:
        """Where a task's result is, or will be."""
        return self.folder / (task.name.removeprefix(f"{self.study.name}/") + ".parquet")

    def survey(self, tasks: Iterable[AnyTask] | None = None) -> tuple[list[AnyTask], list[Path]]:
        """Those of these tasks (by default all) without a result, and the files that were damaged.

        A damaged file is named in a warning and set aside under the name ``*.damaged``; its task is
        missing.
        """
        missing, damaged = [], []
        for task in self.study.tasks() if tasks is None else tasks:
            table, trouble = self._examine(task)
            if table is None:
                missing.append(task)
            if trouble:
                damaged.append(self._set_aside(self.path(task), trouble))
        return missing, damaged

    def _set_aside(self, path: Path, trouble: str) -> Path:
        aside = path.with_name(path.name + ".damaged")
        try:
            path.replace(aside)
        except FileNotFoundError:
            pass  # another process has just done so
        except OSError as error:
            raise StoreError(f"{path} {trouble}, and cannot be renamed: {error.strerror}") from None
        warnings.warn(
            f"{path} {trouble}; it is set aside as {aside.name} and will be computed again",
            RuntimeWarning,
            stacklevel=4,
        )
        return aside

    def count(self) -> int:
        """How many results there are, by their names alone: quick, and nothing is opened."""
        return sum(self.path(task).exists() for task in self.study.tasks())

    def prepare(self) -> None:
        """Make the folder, and refuse now what could not be written after the first task."""
        beside = self.folder / f".{uuid.uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            beside.touch()
            beside.unlink()
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def save(self, task: AnyTask, content: bytes) -> None:
        """Write a task's file beside its place and rename it: at every moment whole or not there.

        Processes that save the same task at once do no harm: their bytes are the same.
        """
        path = self.path(task)
        # A name of its own, since another process may be writing the same result.
        beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with beside.open("xb") as file:
                    file.write(content)
                beside.replace(path)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise _cannot_write(path, error) from error

    def log(self, **facts: Any) -> None:
        """Append a line to the log: whatever varies from one time to the next."""
        path = self.folder / "log.jsonl"
        line = json.dumps(facts) + "\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # In one piece, so that lines of several processes do not mix.
            with path.open("ab", buffering=0) as file:
                file.write(line.encode())
        except OSError as error:
            raise _cannot_write(path, error) from error

    def logged(self) -> Iterator[dict[str, Any]]:
        """The lines of the log; those that are not whole are passed over."""
        try:
            lines = (self.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return
        for line in lines:
            try:
                facts = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(facts, dict):
                yield facts

    def read(self, *, partial: bool = False) -> pa.Table:
        """All results in one table, in the order of the study's tasks; see :func:`encode`.

        Args:
            partial: whether a study that is not finished may be read; otherwise it is an error.
        """
        import pyarrow as pa

        tables, absent = [], []
        for task in self.study.tasks():
            table, trouble = self._examine(task)
            if trouble:
                warnings.warn(f"{self.path(task)} {trouble}", RuntimeWarning, stacklevel=2)
            if table is None:
                absent.append(task.name)
            else:
                tables.append(table.replace_schema_metadata(None))
        if absent and not (partial and tables):
            raise StoreError(
                f"{self.folder} has no result of {absent[0]}"
                + (f" and {len(absent) - 1} other tasks" if len(absent) > 1 else "")
                + f"; `gvf run` of {self.study.name!r} computes what is missing"
            )
        return pa.concat_tables(tables)

    def sweep(self) -> None:
        """Remove what processes that were killed while writing have left behind."""
        for path in self.folder.glob("**/.*.part"):
            try:
                if time.time() - path.stat().st_mtime > STALE:
                    path.unlink()
            except OSError:
                pass  # gone, or not ours to remove: no harm either way

    def _examine(self, task: AnyTask) -> tuple[pa.Table | None, str]:
        """A task's result, or None; and what is wrong with its file, or nothing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path(task)
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None, ""
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
        try:
            table = pq.read_table(
                pa.BufferReader(content), page_checksum_verification=True, use_threads=False
            )
        except Exception as error:
            return None, f"is damaged ({str(error).splitlines()[0] if str(error) else error!r})"
        metadata = table.schema.metadata or {}
        if metadata.get(b"gvf.configuration") != configuration(task).encode():
            return None, "is not the result of this task with these settings"
        return table, ""


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _cannot_write(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"no space left to write {path}: free some, or name another folder with --out; what is "
            "done is kept, and the same command goes on from there"
        )
    return StoreError(
        f"cannot write {path}: {error.strerror or error}; name another folder with --out, or make "
        "this one writable"
    )


def stored(out: str | Path) -> dict[str, list[Path]]:
    """The folders of results under `out`, by name of study."""
    found: dict[str, list[Path]] = {}
    for folder in sorted(Path(out).glob("*/*")):
        if folder.is_dir() and re.fullmatch(r"[a-z]+-[0-9a-f]{8}", folder.name):
            found.setdefault(folder.parent.name, []).append(folder)
    return found
