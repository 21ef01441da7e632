"""Encoding: a task's result as a Parquet file; equal results give equal bytes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.version import __version__
from gvf_lab.study.base_study import BaseStudy, Columns, Task
from gvf_lab.study.settings import PLACE, configuration, variant

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {
    "study": "string",
    "protocol": "string",
    "variant": "string",
    "question": "string",
    "behaviour": "string",
    "gap": "int64",
    "run": "int64",
    "method": "string",
    "step_size": "float64",
    "u0": "float64",
    "eta": "float64",
    "iteration": "int64",
    "error": "float64",
    "final": "float64",
    "curve": "list",
    "curve_steps": "list",
    "film": "list",
    "l1": "float64",
    "l2": "float64",
    "scalar": "float64",
    "trace": "float64",
}
"""The columns of every file, with their types; a column that does not apply is null.

Other key columns and measured columns follow them."""


def encode(task: Task, measured: Columns) -> bytes:
    """Encode a task's result as a Parquet file: equal results give equal bytes.

    The columns are ``COLUMNS``. Each choice of each method has one row, with the columns that
    identify it and those that were measured.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    study: BaseStudy = task.study
    keys = _keys(study)
    rows = len(keys["method"])
    place = {"study": study.name, "protocol": study.protocol, "variant": variant(study)}
    place |= {name: getattr(task, name) for name in PLACE}
    columns = {}
    kinds = COLUMNS | _others(keys) | _others(measured)
    for name, kind in kinds.items():
        if name in keys:
            columns[name] = keys[name]
        elif place.get(name) is not None:
            columns[name] = pa.repeat(pa.scalar(place[name], _type(kind)), rows)
        else:
            columns[name] = _column(measured.get(name), kind, rows)
    table = pa.table(columns)
    metadata = {
        "gvf.checksum": checksum(table),
        "gvf.configuration": configuration(task),
        "gvf.seed": str(study.seed),
        "gvf.task": task.name,
        "gvf.version": __version__,
    }
    file = io.BytesIO()
    # Storing bytes of equal significance together is smaller and faster than Parquet's default.
    lists = [name for name in measured if kinds[name] == "list" and name != "curve_steps"]
    plain = [name for name in measured if kinds[name] == "float64"]
    split = [*(f"{name}.list.element" for name in lists), *plain]
    words = ["study", "protocol", "variant", "question", "behaviour", "method"]
    options: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": [*words, "curve_steps.list.element"],
        "column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
        "write_page_checksum": True,
    }
    pq.write_table(table.replace_schema_metadata(metadata), file, **options)
    return file.getvalue()


def checksum(table: pa.Table) -> str:
    """Compute a hash of all columns.

    Parquet's own checksums leave out headers and dictionaries.
    """
    import pyarrow as pa

    digest = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        listed = pa.types.is_list(column.type)  # reading a file renames the items of a list
        kind = f"list {column.type.value_type}" if listed else f"{column.type}"
        digest.update(f"{name} {kind} {len(column)} {column.null_count}\n".encode())
        if column.null_count == len(column):
            continue
        if listed:
            digest.update(column.offsets.to_numpy().tobytes())
            column = column.flatten()
        if pa.types.is_string(column.type):
            words = column.dictionary_encode()
            digest.update(repr(words.dictionary.to_pylist()).encode())
            column = words.indices
        digest.update(column.to_numpy(zero_copy_only=False).tobytes())
    return digest.hexdigest()


def _others(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of those columns that are not in ``COLUMNS``, by name."""
    names = [name for name in columns if name not in COLUMNS]
    return {name: "list" if np.ndim(columns[name]) > 1 else "float64" for name in names}


@lru_cache(maxsize=8)
def _keys(study: BaseStudy) -> dict[str, pa.Array]:
    """Return the key columns that all tasks of a study share: the method and its choices."""
    import pyarrow as pa

    choices = [(method, choice) for method in study.methods for choice in study.choices(method)]
    keys = [study.key(choice) for _, choice in choices]
    columns = {name: [key.get(name) for key in keys] for name in study.keys}
    columns["method"] = [method for method, _ in choices]
    types = {name: _type(COLUMNS.get(name, "float64")) for name in columns}
    return {name: pa.array(values, types[name]) for name, values in columns.items()}


def _type(kind: str) -> pa.DataType:
    import pyarrow as pa

    types = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
    return types.get(kind) or pa.list_(pa.float64())


def _column(values: Any, kind: str, rows: int) -> pa.Array:
    """Make a column from values [rows], lists [rows, m], or None."""
    import pyarrow as pa

    if values is None:
        return pa.nulls(rows, _type(kind))
    if kind != "list":
        return pa.array(values, _type(kind))
    ends = np.arange(rows + 1) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values.ravel()))
