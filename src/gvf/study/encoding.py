"""Encoding: a task's result as a Parquet file, and the settings that tell results apart.

The configuration of a task is all that determines its result; where it is equal, so are the bytes.
Its digest without what tells tasks apart is the study's *variant*.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf import domain as domains
from gvf.common import code
from gvf.common.names import is_reference
from gvf.common.version import __version__
from gvf.study.base import BaseStudy, Columns, Task

if TYPE_CHECKING:
    import pyarrow as pa

ADDS_TASKS = {"name", "runs", "pairs", "gaps", "own"}
"""Attributes of a study that say which tasks it has, and nothing about any one of them."""
PLACE = ("question", "behaviour", "gap", "run")
"""The columns that tell tasks apart."""
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
}
"""The columns of every file, and their types; what does not apply to a study is null."""


def settings(study: BaseStudy) -> dict[str, Any]:
    """All that the results of a study's tasks depend on, but for what tells the tasks apart.

    Example:
        >>> from gvf.study import Study
        >>> from gvf.study.encoding import settings
        >>> settings(Study("mine", "four-rooms", ("IR",), (1,), runs=3))["step_sizes"]
        [1.0]
    """
    plain: dict[str, Any] = {"generation": study.generation}
    for field in fields(study):  # pyright: ignore[reportArgumentType]
        if field.name not in ADDS_TASKS:
            value = getattr(study, field.name)
            # 1 and 1.0 are the same step size.
            plain_one = float if "float" in str(field.type) else lambda v: v
            is_many = isinstance(value, tuple)
            plain[field.name] = [plain_one(v) for v in value] if is_many else plain_one(value)
    # A method's colour is no part of its results.
    plain["methods"] = [replace(study.method(name), colour="").plain() for name in study.methods]
    if used := references(study):
        plain["code"] = code.digest(used)
    return plain


def references(study: BaseStudy) -> set[str]:
    """The references in a study, and behind the name of its domain: what is not gvf's own."""
    named = {name for name in (study.kind, study.update) if is_reference(name)}
    named -= {name for name in named if name.startswith("gvf.")}
    for method in study.own:
        named |= {*method.references()}
    return named | {*domains.references(study.domain)}


def configuration(task: Task, shared: Mapping[str, Any] | None = None) -> str:
    """All that determines a task's result, as JSON: where it is equal, so is the result."""
    place = {name: getattr(task, name) for name in PLACE}
    return canonical({**(shared or settings(task.study)), **place})


def variant(study: BaseStudy) -> str:
    """Eight letters that are the same for the same settings: a column, and a folder's name."""
    # What depends on nobody's code is the same for ever.
    return _variant(study) if references(study) else _remembered_variant(study)


def _variant(study: BaseStudy) -> str:
    return hashlib.sha256(canonical(settings(study)).encode()).hexdigest()[:8]


_remembered_variant = lru_cache(maxsize=8)(_variant)


def encode(task: Task, measured: Columns) -> bytes:
    """A task's result as the bytes of its Parquet file: the same for the same result.

    The columns are ``COLUMNS``: a row for each choice of each method, with what tells it apart from
    all other rows, and what was measured.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    study: BaseStudy = task.study
    keys = _keys(study)
    rows = len(keys["method"])
    place = {"study": study.name, "protocol": study.protocol, "variant": variant(study)}
    place |= {name: getattr(task, name) for name in PLACE}
    columns = {}
    for name, kind in (COLUMNS | _others(measured)).items():
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
    # Bytes of like significance together: smaller and faster than what Parquet does by itself.
    kinds = COLUMNS | _others(measured)
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
    """A hash of what tells rows apart and of what was measured.

    The checksums of Parquet itself leave out headers and dictionaries.
    """
    import pyarrow as pa

    digest = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        listed = pa.types.is_list(column.type)  # whose items have other names once they are read
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


def _others(measured: Columns) -> dict[str, str]:
    """What a study of a user's own measures besides, and its types."""
    names = [name for name in measured if name not in COLUMNS]
    return {name: "list" if np.ndim(measured[name]) > 1 else "float64" for name in names}


@lru_cache(maxsize=8)
def _keys(study: BaseStudy) -> dict[str, pa.Array]:
    """The key columns that all tasks of a study share: the method and its choices."""
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
    """A column, from values [rows], lists [rows, m], or None."""
    import pyarrow as pa

    if values is None:
        return pa.nulls(rows, _type(kind))
    if kind != "list":
        return pa.array(values, _type(kind))
    ends = np.arange(rows + 1) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values.ravel()))


def canonical(value: Any) -> str:
    """Write settings as JSON in which equal settings are equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
