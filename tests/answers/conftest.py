"""A log, a question and their answer, which the tests of answers share."""

from pathlib import Path

import pytest
from chain_logs import QUESTION, walks, write

from gvf.answers import answer, load
from gvf.answers import write as write_files


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log and a question, and their answer in "out"."""
    folder = tmp_path_factory.mktemp("answers")
    write(folder / "log.parquet", walks())
    (folder / "asked.toml").write_text(QUESTION)
    return folder


@pytest.fixture(scope="session")
def found(folder: Path):
    plan = load(folder / "asked.toml")
    made = answer(
        plan, folder / "log.parquet", folder / "out", workers=1, progress=False, quiet=True
    )
    write_files(made, folder / "out")
    return made
