"""Encoding: a task's result as a Parquet file, and the settings that identify it.

A task's configuration is all that determines its result: equal configurations give equal bytes. The
study's *variant* is the digest of the settings that all its tasks share.
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

from gvf.common import user_code as code
from gvf.common.part_names import is_reference
from gvf.common.version import __version__
from gvf_lab import domain as domains
from gvf_lab.study.base_study import BaseStudy, Columns, Task

if TYPE_CHECKING:
    import pyarrow as pa

ADDS_TASKS = {"name", "runs", "pairs", "gaps", "own"}
"""Attributes that decide which tasks a study has, and do not change any one of them."""
WRITTEN = {
    *("domain", "simulator", "protocol", "device", "seed", "methods", "update", "optimiser"),
    *("step_size", "step_sizes", "trace_decays", "etas", "betas", "zetas", "xi_max", "u0", "mu"),
    *("steps", "updates", "iterations", "warm_up", "gap", "buffer", "window", "batch_size"),
    *("batches", "error", "measure_every", "points", "evaluation_states", "rollouts"),
}
"""The settings that stored results name even where they are the default.

All others are left out at their default, so that a new setting changes no digest: results that were
stored before it still belong to their study."""
PLACE = ("question", "behaviour", "gap", "run")
"""The columns that identify a task within its study."""
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


def settings(study: BaseStudy) -> dict[str, Any]:
    """Return the settings that the results depend on and that all tasks of the study share.

    Example:
        >>> from gvf_lab.study import Study
        >>> from gvf_lab.study.encoding import settings
        >>> settings(Study("mine", "four-rooms", ("IR",), (1,), runs=3))["step_sizes"]
        [1.0]
    """
    plain: dict[str, Any] = {"generation": study.generation}
    for field in fields(study):  # pyright: ignore[reportArgumentType]
        value = getattr(study, field.name)
        written = field.name in WRITTEN or value != field.default
        if field.name not in ADDS_TASKS and written:
            # 1 and 1.0 are the same step size.
            plain_one = float if "float" in str(field.type) else lambda v: v
            is_many = isinstance(value, tuple)
            plain[field.name] = [plain_one(v) for v in value] if is_many else plain_one(value)
    # A method's colour does not change its results.
    plain["methods"] = [replace(study.method(name), colour="").plain() for name in study.methods]
    if used := references(study):
        plain["code"] = code.digest(used)
    return plain


def references(study: BaseStudy) -> set[str]:
    """Return a study's references to code that is not ours, including those of its domain."""
    named = {name for name in (study.kind, study.update) if is_reference(name)}
    named -= {name for name in named if name.startswith(("gvf.", "gvf_lab."))}
    for method in study.own:
        named |= {*method.references()}
    return named | {*domains.references(study.domain)}


def configuration(task: Task, shared: Mapping[str, Any] | None = None) -> str:
    """Return all that determines a task's result, as JSON: equal texts mean equal results."""
    place = {name: getattr(task, name) for name in PLACE}
    return canonical({**(shared or settings(task.study)), **place})


def variant(study: BaseStudy) -> str:
    """Return eight hexadecimal digits that depend only on the settings; they name a folder."""
    # A user's code may change, so the digest is cached only for studies without any.
    return _variant(study) if references(study) else _remembered_variant(study)


def _variant(study: BaseStudy) -> str:
    return hashlib.sha256(canonical(settings(study)).encode()).hexdigest()[:8]


_remembered_variant = lru_cache(maxsize=8)(_variant)


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


def canonical(value: Any) -> str:
    """Write settings as JSON in which equal settings are equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
