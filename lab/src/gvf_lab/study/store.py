"""The store: one Parquet file for each task of a study, always complete or absent.

    <out>/results/<study>/<protocol>-<digest>/<question>/<behaviour>/gap-<g>/run-<r>.parquet
    <out>/logs/<study>/<protocol>-<digest>.jsonl, .toml

All files below ``results`` are Parquet with the same columns, so that pandas, polars and DuckDB can
read the whole folder. The digest is that of all settings that the tasks of a study share, so
results of different settings are in different folders. Settings that only add tasks (runs, pairs,
gaps) are not part of it, so a finished study can grow. A file's metadata has the task's
configuration, the version of gvf and nothing that varies, so equal results are equal bytes; those
of another version than 0.1, say, are refused by all of 0.2. The log has the time, the machine and
the duration of each task.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.common import user_code as code
from gvf.common.files import replaced
from gvf.common.version import __version__
from gvf.jobs import set_aside
from gvf_lab.study.base_study import BaseStudy, Task
from gvf_lab.study.encoding import checksum
from gvf_lab.study.settings import PLACE, canonical, configuration, references, settings, variant
from gvf_lab.study.study_file import BESIDE, as_toml

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_OUT = Path("gvf-results")
"""The default folder of results."""
STALE_SECONDS = 3600.0
"""Seconds after which an unfinished file counts as abandoned; writing one takes much less."""


class StoreError(OSError):
    """The error if results cannot be read or written; its message says where and what to do."""


@dataclass(frozen=True)
class Store:
    """The results of one study under a folder.

    Example:
        >>> from gvf_lab.study import Study
        >>> from gvf_lab.study.encoding import encode
        >>> from gvf_lab.study.store import Store
        >>> import tempfile
        >>> study = Study("mine", "markov-chain", ("IR",), (0.5, 1), updates=20, runs=1)
        >>> store = Store(study, tempfile.mkdtemp())
        >>> missing, damaged = store.survey()
        >>> for task in missing:
        ...     store.save(task, encode(task, study.compute(task, lambda: False)))
        >>> len(missing), store.read().num_rows
        (3, 6)
    """

    study: BaseStudy
    out: str | Path = DEFAULT_OUT

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that the results depend on; see :func:`settings`."""
        return settings(self.study)

    @property
    def _variant(self) -> str:
        return f"{self.study.protocol}-{variant(self.study)}"

    @cached_property
    def folder(self) -> Path:
        """The folder of this study's results with these settings."""
        return Path(self.out) / "results" / self.study.name / self._variant

    @cached_property
    def log_path(self) -> Path:
        """The path of this study's log with these settings."""
        return Path(self.out) / "logs" / self.study.name / f"{self._variant}.jsonl"

    def path(self, task: Task) -> Path:
        """Return the path of a task's result."""
        return self.folder / (task.name.removeprefix(f"{self.study.name}/") + ".parquet")

    def survey(self, tasks: Iterable[Task] | None = None) -> tuple[list[Task], list[Path]]:
        """Return the tasks without a result, and the damaged files; by default for all tasks.

        A warning names each damaged file. The file moves to the folder ``damaged``, and its task
        counts as missing.
        """
        missing, damaged = [], []
        for task in self.study.tasks() if tasks is None else tasks:
            table, trouble = self._examine(task)
            aside = self._set_aside(task, trouble) if trouble else None
            if aside is not None:
                damaged.append(aside)
            if aside is not None or (table is None and not trouble):
                missing.append(task)
        return missing, damaged

    def _set_aside(self, task: Task, trouble: str) -> Path | None:
        """Move a damaged file and return its new path, or None if it was repaired meanwhile."""
        path = self.path(task)
        aside = Path(self.out) / "damaged" / path.relative_to(Path(self.out) / "results")
        try:
            moved = set_aside(path, aside, lambda file: self._examine(task, file)[0] is not None)
        except OSError as error:
            why = error.strerror or error
            raise StoreError(f"{path} {trouble}, and cannot be renamed: {why}") from None
        if moved is not None:
            warnings.warn(
                f"{path} {trouble}; it is set aside as {aside} and will be computed again",
                RuntimeWarning,
                stacklevel=4,
            )
        return moved

    def count(self) -> int:
        """Count the results by the names of their files, without opening any."""
        return sum(self.path(task).exists() for task in self.study.tasks())

    def prepare(self) -> None:
        """Make the folders, and raise an error now if nothing can be written there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log_path.parent.mkdir(parents=True, exist_ok=True)
            # The study is stored too, so that it can be drawn and listed without its own file.
            written = as_toml(self.study.with_(runs=max(self.study.runs, self._runs_before())))
            places = "".join(f"{BESIDE}{place}\n" for place in code.folders(references(self.study)))
            self._write(self.log_path.with_suffix(".toml"), f"{places}{written}\n".encode())
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def _runs_before(self) -> int:
        """Return the stored number of runs, so that a command for fewer runs does not lower it."""
        try:
            text = self.log_path.with_suffix(".toml").read_text(encoding="utf-8")
            return int(tomllib.loads(text).get("runs", 0))
        except (OSError, ValueError, TypeError):
            return 0

    def save(self, task: Task, content: bytes) -> None:
        """Write a task's file elsewhere and rename it, so that it is never incomplete.

        Several processes may save the same task at once, since their bytes are the same.
        """
        path = self.path(task)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, content)
        except OSError as error:
            raise _cannot_write(path, error) from error

    @property
    def _unfinished(self) -> Path:
        return Path(self.out) / ".unfinished"

    def _write(self, path: Path, content: bytes) -> None:
        self._unfinished.mkdir(exist_ok=True)
        with replaced(path, self._unfinished) as unfinished, unfinished.open("xb") as file:
            file.write(content)

    def log(self, **facts: Any) -> None:
        """Append a line to the log, which keeps what varies between equal runs."""
        path = self.log_path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # A line that a power cut or a full disk left incomplete ends here.
            line = ("\n" if _ends_within_a_line(path) else "") + json.dumps(facts) + "\n"
            # One unbuffered write, so that lines of several processes do not mix.
            with path.open("ab", buffering=0) as file:
                file.write(line.encode())
        except OSError as error:
            raise _cannot_write(path, error) from error

    def logged(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the log, without incomplete ones."""
        try:
            lines = self.log_path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return
        for line in lines:
            try:
                facts = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(facts, dict):
                yield facts

    def fact(self, name: str) -> Any:
        """Return a fact that the results have in common, or None if the log does not have it."""
        return next((line[name] for line in self.logged() if name in line), None)

    def read(self, *, partial: bool = False) -> pa.Table:
        """Read all results into one table, with each task's rows together; see :func:`encode`.

        Args:
            partial: True if an unfinished study may be read; otherwise it raises an error.
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
            others = "".join(f". {other}" for other in self.unfit())
            raise StoreError(
                f"{self.folder} has no result of {absent[0]}"
                + (f" and {len(absent) - 1} other tasks" if len(absent) > 1 else "")
                + f"; `gvf study run` of {self.study.name!r} computes what is missing{others}"
            )
        return pa.concat_tables(tables)

    def unfit(self) -> list[str]:
        """List the stored results that do not fit this study's settings, with the reason."""
        lines = []
        for folder in sorted(self.folder.parent.glob("*")):
            first = next(folder.glob("**/*.parquet"), None) if folder != self.folder else None
            if first is None or not folder.name.startswith(f"{self.study.protocol}-"):
                continue
            number = sum(1 for _ in folder.glob("**/*.parquet"))
            lines.append(f"{number} results in {folder} do not fit: {self._why(first)}")
        return lines

    def _why(self, path: Path) -> str:
        import pyarrow.parquet as pq

        try:
            metadata = pq.read_schema(path).metadata or {}
            before = json.loads(metadata[b"gvf.configuration"])
        except Exception:
            return "they cannot be read"
        here = json.loads(canonical(self.settings))
        differ = [
            f"{key} was {_brief(before.get(key))}, and is {_brief(here.get(key))} now"
            for key in sorted({*here, *before} - {*PLACE})
            if here.get(key) != before.get(key)
        ]
        return "; ".join(differ) or "their configuration is written in another way"

    def sweep(self) -> None:
        """Remove unfinished files of processes that were killed while writing."""
        for path in self._unfinished.glob("*"):
            try:
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()
            except OSError:
                pass  # gone already, or not ours to remove

    def _examine(self, task: Task, path: Path | None = None) -> tuple[pa.Table | None, str]:
        """Return a task's result or None, and the fault of its file or ""."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = path or self.path(task)
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
            metadata = table.schema.metadata or {}
            whole = metadata.get(b"gvf.checksum") == checksum(table).encode()
        except Exception as error:
            return None, f"is damaged ({str(error).splitlines()[0] if str(error) else error!r})"
        version = metadata.get(b"gvf.version", b"").decode(errors="replace")
        if _series(version) not in ("", _series(__version__)):
            raise StoreError(
                f"{path} is of gvf {version}, and this is gvf {__version__}: use that version, or "
                "another folder (--out)"
            )
        if metadata.get(b"gvf.configuration") != configuration(task, self.settings).encode():
            return None, "is not the result of this task with these settings"
        if not whole:
            return None, "is damaged (its numbers are not those that were written)"
        return table, ""


def _series(version: str) -> str:
    """Return the part of a version that says which files it reads, or "" if it is no version."""
    numbers = re.match(r"\d+\.\d+", version)
    return numbers[0] if numbers else ""


def _brief(value: Any) -> str:
    text = "not there" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:40]} ... {text[-15:]}"


def _ends_within_a_line(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False  # there is no file, or it is empty


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


_VARIANT = re.compile(r"[a-z]+-[0-9a-f]{8}").fullmatch


def stored(out: str | Path) -> dict[str, list[Path]]:
    """Return the folders of results under `out`, by study."""
    folders: dict[str, list[Path]] = {}
    for folder in sorted((Path(out) / "results").glob("*/*")):
        if folder.is_dir() and _VARIANT(folder.name):
            folders.setdefault(folder.parent.name, []).append(folder)
    return folders


def latest(out: str | Path) -> dict[str, Path]:
    """Return the TOML file of each study under `out`, by name: that of its latest settings."""
    files = sorted((Path(out) / "logs").glob("*/*.toml"), key=lambda path: path.stat().st_mtime)
    return {path.parent.name: path for path in files}
