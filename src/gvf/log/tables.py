"""Sources of a log: tables in memory, Parquet files and lists of episodes, read in batches of rows.

Every source gives the same thing, columns of NumPy by their names in the source, a batch of rows at
a time. So :mod:`gvf.log.log` reads a dictionary of arrays and a folder of Parquet files larger than
memory in the same way. :mod:`gvf.log.episode_lists` has the sources that come episode by episode.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Array
from gvf.common.distribution import how_to_install
from gvf.common.fields import as_column
from gvf.links import stream_order
from gvf.log.arrow import as_numpy, is_known
from gvf.transition import Transitions

BATCH = 65_536
"""The largest number of rows in a batch."""
BATCH_BYTES = 2**25
"""The size of a batch beyond which it has fewer rows, as of images."""
NOTES = b"gvf log"
"""The key of a Parquet file's metadata under which :meth:`gvf.Log.to_parquet` stores its notes."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_EXTRA = f"a Minari dataset needs Minari, which is not installed; {how_to_install('gvf[minari]')}"


class Source(ABC):
    """A table that is read in batches of rows.

    Args:
        name: the name of the source, for people.
        names: the names of its columns.
        rows: the number of its rows.
        size: about how many bytes its columns take in memory.
    """

    left_out: Mapping[str, str] = {}
    """Columns of types that cannot be arrays, each with the reason."""
    notes: Mapping[str, str] = {}
    """Facts that the source tells about itself."""
    meanings: Mapping[str, str | None] = {}
    """The columns of meanings, if the source tells them."""
    ids: Sequence[str] | None = None
    """The columns with the names of episodes, if the source tells them."""
    clocks: Mapping[str, Any] = {}
    """The types of columns of points in time, which may have a time zone, for Arrow."""

    def __init__(self, name: str, names: Sequence[str], rows: int, size: int) -> None:
        self.name, self.names, self.rows, self.size = name, tuple(names), rows, size
        if not rows:
            raise ValueError(f"{name} has no rows")

    @abstractmethod
    def batches(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[dict[str, Array]]:
        """Yield some columns of the rows start, ..., stop - 1, in order."""

    def numbers(self, rows: Any) -> Any:
        """Return the numbers of rows, [m], in the table that the user has."""
        return rows

    def row_text(self, row: int) -> str:
        """Return the place of a row in words, for messages."""
        return f"row {row}"

    @property
    def batch_rows(self) -> int:
        """The number of rows in a batch."""
        return max(1, min(BATCH, BATCH_BYTES * self.rows // max(self.size, 1)))


class ColumnSource(Source):
    """A mapping of arrays, each with one row for each step.

    Args:
        columns: the arrays.
        name: the name of the source, for people.
        order: the order of the rows; None for that of the arrays.

    Example:
        >>> from gvf.log.tables import ColumnSource
        >>> source = ColumnSource({"obs": [1, 2, 3], "a": [0, 1, 0]}, "a dict")
        >>> [batch["obs"] for batch in source.batches(["obs"], 1)]
        [array([2, 3])]
    """

    def __init__(
        self, columns: Mapping[str, Any], name: str, order: NDArray[np.intp] | None = None
    ) -> None:
        self._order = order
        self.columns = {key: as_column(value, f"column {key!r}") for key, value in columns.items()}
        single = [key for key, column in self.columns.items() if column.ndim == 0]
        if single:
            raise ValueError(f"column {single[0]!r} of {name} is one value; give one for each row")
        lengths = {key: len(column) for key, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            lengths_text = ", ".join(f"{key} {length}" for key, length in lengths.items())
            raise ValueError(
                f"the columns of {name} differ in their number of rows: {lengths_text}"
            )
        size = sum(column.nbytes for column in self.columns.values())
        super().__init__(name, list(columns), next(iter(lengths.values()), 0), size)
        if order is not None:
            self.columns = {key: column[order] for key, column in self.columns.items()}

    def numbers(self, rows: Any) -> Any:
        """Return the numbers of rows in the arrays, before they were put into order."""
        return rows if self._order is None else self._order[rows]

    def row_text(self, row: int) -> str:
        """Return the place of a row in the arrays."""
        return super().row_text(int(self.numbers(row)))

    def batches(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[dict[str, Array]]:
        """Yield some columns of the rows start, ..., stop - 1, in order."""
        stop = self.rows if stop is None else stop
        for first in range(start, stop, self.batch_rows):
            rows = slice(first, min(first + self.batch_rows, stop))
            yield {name: self.columns[name][rows] for name in columns}


class ArrowTable(Source):
    """A table of Arrow in memory, from any library that shares its tables in this form."""

    def __init__(self, table: Any, name: str) -> None:
        self._table = table
        self.left_out, self.clocks = _left_out(table.schema), _clocks(table.schema)
        names = [key for key in table.column_names if key not in self.left_out]
        super().__init__(name, names, table.num_rows, table.nbytes)

    def batches(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[dict[str, Array]]:
        """Yield some columns of the rows start, ..., stop - 1, in order."""
        stop = self.rows if stop is None else stop
        chosen = self._table.select(list(columns)).slice(start, stop - start)
        row = start
        for batch in chosen.to_batches(max_chunksize=self.batch_rows):
            yield _arrays(batch, self.row_text, row)
            row += batch.num_rows


class Parquet(Source):
    """A Parquet file, or a folder of them that together may be larger than memory.

    Files are read in the natural order of their names, so that part-10 follows part-9. Folders such
    as ``episode=3`` give the column ``episode``.

    Raises:
        ValueError: if a file is damaged or cut off, or lacks a column that another one has.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds

        files = [path] if path.is_file() else _files(path)
        options: dict[str, Any] = {"format": "parquet"}
        if path.is_dir():
            options |= {"partitioning": "hive", "partition_base_dir": str(path)}
        size = 0
        self._fragments: list[Any] = []
        self._starts = [0]
        for file in files:
            try:
                opened = ds.dataset(str(file), **options)
                (fragment,) = opened.get_fragments()
                groups = [fragment.metadata.row_group(i) for i in range(fragment.num_row_groups)]
            except (pa.ArrowInvalid, OSError) as error:
                raise ValueError(_damaged(file, error)) from error
            if not self._fragments:
                self._schema = opened.schema
            _check_same(self._schema, opened.schema, file, files[0])
            self._fragments.append((file, fragment, [group.num_rows for group in groups]))
            self._starts.append(self._starts[-1] + sum(group.num_rows for group in groups))
            size += sum(map(_size, groups))
        self.left_out, self.clocks = _left_out(self._schema), _clocks(self._schema)
        stored = (self._schema.metadata or {}).get(NOTES)
        if stored is not None:
            known = json.loads(stored)
            self.notes, self.meanings = known["notes"], known["columns"]
            self.ids = known.get("ids")
        names = [name for name in self._schema.names if name not in self.left_out]
        super().__init__(str(path), names, self._starts[-1], size)

    def row_text(self, row: int) -> str:
        """Return the row in its file, and the file if there are several."""
        if len(self._fragments) == 1:
            return f"row {row}"
        at = bisect_right(self._starts, row) - 1
        return f"row {row - self._starts[at]} of {self._fragments[at][0].name}"

    def batches(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[dict[str, Array]]:
        """Yield some columns of the rows start, ..., stop - 1, in order."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        # A row group may be large, so it is not loaded as a whole.
        options = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        stop = self.rows if stop is None else stop
        for (file, fragment, groups), first in zip(self._fragments, self._starts, strict=False):
            begins = first + np.cumsum([0, *groups])
            wanted = np.flatnonzero((begins[1:] > start) & (begins[:-1] < stop))
            if not len(wanted):
                continue
            row = int(begins[wanted[0]])
            try:
                for batch in fragment.subset(row_group_ids=wanted.tolist()).to_batches(
                    schema=self._schema,
                    columns=list(columns),
                    batch_size=self.batch_rows,
                    batch_readahead=1,
                    fragment_scan_options=options,
                ):
                    skip = max(start - row, 0)
                    inside = batch.slice(skip, max(min(stop - row, batch.num_rows) - skip, 0))
                    if inside.num_rows:
                        yield _arrays(inside, self.row_text, row + skip)
                    row += batch.num_rows
                    if row >= stop:
                        break
            except (pa.ArrowInvalid, OSError) as error:
                raise ValueError(_damaged(file, error)) from error


def opened(source: Any) -> Any:
    """Open a source: return a :class:`Source`, or else an iterable of episodes or a mapping.

    Raises:
        ValueError: if there is no such file, or it cannot be read.
        TypeError: if nothing here reads such an object.
    """
    if isinstance(source, str | os.PathLike):
        return _file(source)
    if isinstance(source, Transitions):
        if "stream" not in source:
            return source.columns
        return ColumnSource(source.columns, "a Transitions", stream_order(source))
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa

        return ArrowTable(
            pa.table(source), f"a table of {type(source).__module__.partition('.')[0]}"
        )
    if hasattr(source, "iterate_episodes") or isinstance(source, Mapping):
        return source
    if isinstance(source, Sequence):
        return source
    hint = "; a LazyFrame is read after .collect()" if hasattr(source, "collect") else ""
    raise TypeError(
        f"cannot read a {type(source).__name__} as a log; give the name of a Parquet, CSV or .npz "
        "file or of a Minari dataset, a table (pandas, polars, DuckDB, Arrow), a dict of arrays, "
        f"or a list of episodes{hint}"
    )


def _file(source: str | os.PathLike[str]) -> Any:
    """Open a file, a folder, or a Minari dataset by its id."""
    path = Path(source)
    if path.is_dir():
        if (path / "metadata.json").exists() or (path / "data" / "metadata.json").exists():
            folder = path if (path / "metadata.json").exists() else path / "data"
            return minari().MinariDataset(folder)
        return Parquet(path)
    if not path.exists():
        if isinstance(source, str) and not path.suffix:
            return _minari_dataset(source)
        raise FileNotFoundError(f"there is no file {path}")
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return Parquet(path)
    if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return _csv(path, "\t" if ".tsv" in name else ",")
    if name.endswith(".npz"):
        try:
            with np.load(path) as arrays:
                return dict(arrays)
        except (OSError, ValueError) as error:
            raise ValueError(_damaged(path, error)) from error
    raise ValueError(f"{path}: the name of a log ends in .parquet, .csv, .tsv or .npz")


def minari() -> Any:
    """Import Minari, or raise an error that says how to install it."""
    try:
        return import_module("minari")
    except ImportError as error:
        raise ModuleNotFoundError(_EXTRA) from error


def _minari_dataset(id: str) -> Any:
    try:
        return minari().load_dataset(id)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"there is no file or folder {id}, and {error}") from error
    except (FileNotFoundError, ValueError) as error:
        raise FileNotFoundError(
            f"there is no file or folder {id}, and no Minari dataset of that name here "
            f"(minari download {id})"
        ) from error


def _csv(path: Path, delimiter: str) -> ArrowTable:
    import pyarrow as pa
    import pyarrow.csv

    try:
        options = pyarrow.csv.ParseOptions(delimiter=delimiter)
        return ArrowTable(pyarrow.csv.read_csv(path, parse_options=options), str(path))
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(_damaged(path, error)) from error


def _files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder in natural order."""

    def natural(path: Path) -> list[tuple[int, str]]:
        return [(int(word or 0), rest) for word, rest in re.findall(r"(\d*)(\D*)", str(path))]

    paths = [*folder.rglob("*.parquet"), *folder.rglob("*.pq")]
    hidden = [any(part[0] in "._" for part in path.relative_to(folder).parts) for path in paths]
    files = sorted(
        (path for path, skip in zip(paths, hidden, strict=True) if not skip), key=natural
    )
    if not files:
        raise FileNotFoundError(f"the folder {folder} has no .parquet file")
    return files


def _size(group: Any) -> int:
    """Return the size in memory of a row group's columns, in bytes."""
    columns = [group.column(i) for i in range(group.num_columns)]
    return sum(
        column.num_values * _WIDTHS[column.physical_type]
        if column.physical_type in _WIDTHS
        else column.total_uncompressed_size
        for column in columns
    )


def _check_same(first: Any, other: Any, file: Path, first_file: Path) -> None:
    missing = [name for name in first.names if name not in other.names]
    if missing:
        raise ValueError(f"{file} has no column {missing[0]!r}, which {first_file.name} has")
    for name in first.names:
        if first.field(name).type != other.field(name).type:
            raise ValueError(
                f"column {name!r} is {other.field(name).type} in {file}, and "
                f"{first.field(name).type} in {first_file.name}"
            )


def _left_out(schema: Any) -> dict[str, str]:
    return {entry.name: f"its type is {entry.type}" for entry in schema if not is_known(entry.type)}


def _clocks(schema: Any) -> dict[str, Any]:
    return {entry.name: entry.type for entry in schema if str(entry.type).startswith("timestamp")}


def _arrays(batch: Any, row_text: Any, row: int) -> dict[str, Array]:
    return {
        name: as_numpy(column, name, lambda at: row_text(row + at))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def _damaged(path: Path, error: Exception) -> str:
    reason = str(error).partition("\n")[0].rstrip(".")
    return f"{path} cannot be read; it is damaged, cut off, or something else: {reason}"
