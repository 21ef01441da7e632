"""The files of an answer: predictions, learners, and the page.

    predictions.parquet    question, episode, step, the state, prediction, low, high
    <question>.gvf         the learner, for gvf.load
    report.html            the page

Each is written beside and renamed, so a file is always complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.answer import Answer
from gvf.answers.page import page
from gvf.common.arrays import Array
from gvf.common.files import replaced, write_text

MOST_DIMENSIONS = 64
"""States of more numbers, such as images, are not written beside their predictions."""
OWN = ("question", "episode", "step", "prediction", "low", "high")
"""The columns of the predictions, beside those of the states."""


def write(answer: Answer, folder: Path) -> list[Path]:
    """Write the files of an answer into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "predictions.parquet"]
    write_predictions(answer, files[0])
    for name, one in zip(file_names(answer), answer.answers, strict=True):
        one.learner.save(folder / name)
        files.append(folder / name)
    report = folder / "report.html"
    write_text(report, page(answer, [path.name for path in files]))
    return [*files, report]


def file_names(answer: Answer) -> list[str]:
    """Return the name of each question's learner file; no two are the same."""
    names: list[str] = []
    for one in answer.answers:
        stem = re.sub(r"\W+", "-", one.question.name).strip("-") or "question"
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
                    writer = pq.ParquetWriter(unfinished, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()


def _rows(answer: Answer) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    names = [one.question.name for one in answer.answers]
    for number, one in enumerate(answer.answers):
        start = -1, 0
        for batch in answer.material.log:
            steps = _steps(batch.episode, *start)
            start = int(batch.episode[-1]), int(steps[-1])
            coded = pa.array(np.full(len(batch), number, np.int32))
            predicted, low, high = one.predict(batch.state)
            yield {
                "question": pa.DictionaryArray.from_arrays(coded, names),
                "episode": batch.episode,
                "step": steps,
                **states(answer, batch.state),
                "prediction": predicted,
                "low": low,
                "high": high,
            }


def _steps(episode: Array, before: int, step: int) -> Array:
    """Count the rows of each episode from 0, after row `step` of episode `before`."""
    new = np.diff(episode, prepend=before) != 0
    starts = np.flatnonzero(new)
    latest = np.concatenate([[-1 - step], starts])[np.cumsum(new)]
    return np.arange(len(episode)) - latest


def states(answer: Answer, states: Array) -> dict[str, Array]:
    """Return the dimensions of states as columns, if they are few numbers."""
    names = answer.material.facts.names
    if states.dtype.names or len(names) > MOST_DIMENSIONS:
        return {}
    flat = states.reshape(len(states), -1)
    return {(f"state {name}" if name in OWN else name): flat[:, i] for i, name in enumerate(names)}
