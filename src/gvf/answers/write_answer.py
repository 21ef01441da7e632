"""The files of an answer: predictions, learners, and the page.

    predictions.parquet    question, verdict, the log's own names of episodes and times, row, the
                           state, prediction, low, high
    <question>.gvf         the learner, for gvf.load
    report.html            the page

Each is written beside and renamed, so a file is always complete.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.answer import Answer
from gvf.answers.answer_page import page
from gvf.common.arrays import Array
from gvf.common.files import replaced, write_text
from gvf.judging import Outcome
from gvf.log.arrow import as_arrow

MOST_DIMENSIONS = 64
"""States of more numbers, such as images, are not written beside their predictions."""
OWN = ("question", "verdict", "prediction", "low", "high")
"""The columns of the predictions, beside those of the log."""
NOTES = b"gvf answer"
"""The key of the file's metadata under which verdicts and values are stored, as JSON."""
_COUNTS = {
    "row": "the row of the log as it was read, counted from 0 by gvf",
    "episode": "the episode of the log as it was read, counted from 0 by gvf",
    "step": "the step of the episode, counted from 0 by gvf",
}


def write(answer: Answer, folder: Path) -> list[Path]:
    """Write the files of an answer into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "predictions.parquet"]
    write_predictions(answer, files[0])
    for name, result in zip(file_names(answer), answer.answers, strict=True):
        result.learner.save(folder / name)
        files.append(folder / name)
    report = folder / "report.html"
    write_text(report, page(answer, [path.name for path in files]))
    return [*files, report]


def file_names(answer: Answer) -> list[str]:
    """Return the name of each question's learner file; no two are the same."""
    names: list[str] = []
    for result in answer.answers:
        stem = re.sub(r"\W+", "-", result.question.name).strip("-") or "question"
        taken = sum(
            re.fullmatch(rf"{re.escape(stem)}(-\d+)?\.gvf", name) is not None for name in names
        )
        names.append(f"{stem}-{taken + 1}.gvf" if taken else f"{stem}.gvf")
    return names


def write_predictions(answer: Answer, path: Path) -> None:
    """Write a row for each question and each transition of the log, in order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    with replaced(path) as unfinished:
        try:
            for columns in _rows(answer):
                table = pa.table(columns)
                if writer is None:
                    schema = table.schema.with_metadata({NOTES: json.dumps(_notes(answer))})
                    writer = pq.ParquetWriter(unfinished, schema, compression="zstd")
                writer.write_table(table.replace_schema_metadata(writer.schema.metadata))
        finally:
            if writer is not None:
                writer.close()


def _notes(answer: Answer) -> dict[str, Any]:
    """Return what the file tells about itself: verdicts, values, and what was counted by us."""
    log = answer.material.log
    questions = {
        result.question.name: {
            "verdict": result.verdict.outcome,
            "sentence": str(result.verdict),
            "correction": result.chosen.name,
            "level": answer.plan.level,
            "values": {name: [_finite(x) for x in value] for name, value in result.values.items()},
        }
        for result in answer.answers
    }
    return {
        "questions": questions,
        "names of episodes": [_renamed(name) for name in log.ids],
        "times": log.times and _renamed(log.times),
        "counted": {name: _COUNTS[count] for name, count in log.counted.items()},
    }


def _finite(number: float) -> float | None:
    """Return a number, or None if JSON has no word for it."""
    return number if math.isfinite(number) else None


def _rows(answer: Answer) -> Iterator[dict[str, Any]]:

    clocks = answer.material.log.clocks
    names, verdicts = [result.question.name for result in answer.answers], [*Outcome]
    for number, result in enumerate(answer.answers):
        verdict = verdicts.index(result.verdict.outcome)
        for batch, keys in answer.material.log.keyed():
            key_columns = {
                name: as_arrow(column, clocks.get(name)) for name, column in keys.items()
            }
            predicted, low, high = result.predict(batch.state)
            yield {
                "question": _coded(number, names, len(batch)),
                "verdict": _coded(verdict, verdicts, len(batch)),
                **{_renamed(name): column for name, column in key_columns.items()},
                **_states(answer, batch.state, keys),
                "prediction": predicted,
                "low": low,
                "high": high,
            }


def _coded(number: int, names: Sequence[str], count: int) -> Any:
    """Return a column that is one of several names in all rows."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(np.full(count, number, np.int32)), [*names])


def _renamed(name: str) -> str:
    """Return the name of a column of the log, another one if it has that of a prediction."""
    return f"log {name}" if name in OWN else name


def _states(answer: Answer, states: Array, keys: Container[str]) -> dict[str, Array]:
    """Return the dimensions of states that are no keys as columns, if they are few numbers."""
    names = answer.material.facts.names
    if states.dtype.names or len(names) > MOST_DIMENSIONS:
        return {}
    flat = states.reshape(len(states), -1)
    columns = {name: flat[:, i] for i, name in enumerate(names) if name not in keys}
    return {f"state {name}" if name in OWN else name: part for name, part in columns.items()}
