"""Words change nothing: other sentences give the same verdicts, statuses and files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain_logs import QUESTION, walks, write

from gvf import findings
from gvf.answers import answer, diagnose, load, prepare, remarks
from gvf.answers.support_of_log import findings_of, findings_of_material
from gvf.cli import main
from gvf.common import errors
from gvf.common.version import __version__
from gvf.judging import Verdict

ESTIMATED = QUESTION.replace('"goes right"', '"estimated"') + '\n[behaviour]\nkind = "estimated"\n'
NEVER = QUESTION.replace(
    'policy = {kind = "favour", action = 1, probability = 0.7}',
    'policy = {kind = "fixed", probabilities = [0.2, 0.5, 0.3]}',
)
CASES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "best": (120, QUESTION, {}),
    "few episodes": (9, QUESTION, {}),
    "an action that is never taken": (60, NEVER, {}),
    "an estimated behaviour": (60, ESTIMATED, {"action_prob": None}),
    "no event": (60, QUESTION, {"reward": 0.0}),
    "a wrong behaviour": (120, QUESTION, {"action_prob": 0.9}),
}


def nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every sentence by one that says nothing."""
    for code in findings.SENTENCES:
        monkeypatch.setitem(findings.SENTENCES, code, lambda *_: "best, cannot tell k-hat")
    kinds = [kind for kind in vars(remarks).values() if hasattr(kind, "warns")]
    assert len(kinds) >= 7
    for kind in [*kinds, Verdict]:
        monkeypatch.setattr(kind, "__str__", lambda _: "cannot tell which is best at position 0")


def outcome(episodes: int, text: str, changes: dict[str, Any], out: Path) -> dict[str, Any]:
    """Answer and diagnose; return codes, statuses, and the files apart from their words."""
    columns = walks(episodes)
    for name, value in changes.items():
        if value is None:
            del columns[name]
        else:
            columns[name][:] = value
    out.mkdir()
    log = write(out / "log.parquet", columns)
    asked = out / "asked.toml"
    asked.write_text(text)
    command = [str(log), str(asked)]
    material = prepare(load(asked), log, quiet=True)
    answered = answer(load(asked), log, out / "answer", progress=False, quiet=True)
    (one,) = answered.answers
    status = main(["learn", *command, "--out", str(out / "answer")])
    (support,) = diagnose(material)
    predictions = pq.read_table(out / "answer" / "predictions.parquet")
    notes = json.loads(predictions.schema.metadata[b"gvf answer"])
    for question in notes["questions"].values():
        del question["sentence"]
    page = (out / "answer" / "report.html").read_text()
    return {
        "outcome": one.verdict.outcome,
        "codes": [finding.code for finding in one.verdict.findings],
        "sure": one.sure,
        "remarks": [(type(remark), remark.warns) for remark in one.remarks],
        "support": [finding.code for finding in findings_of(one.ratios, one.support)],
        "material": [finding.code for finding in findings_of_material(material)],
        "doubts": [finding.code for finding in support.findings],
        "recommended": support.diagnosis.recommendation.name,
        "status": status,
        "diagnosed": main(["diagnose", *command, "--out", str(out / "page.html")]),
        "files": sorted(path.name for path in (out / "answer").rglob("*")),
        "predictions": predictions.to_pydict(),
        "notes": notes,
        "badges": re.findall(r'class="badge [\w-]+"', page),
        "images": len(re.findall("<img|<svg", page)),
    }


@pytest.mark.parametrize("case", CASES)
def test_other_sentences_change_no_decision(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outcome(*CASES[case], tmp_path / "before")
    nonsense(monkeypatch)
    after = outcome(*CASES[case], tmp_path / "after")
    assert before["badges"]
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_equal(after[name], before[name], err_msg=name)


def test_the_place_of_a_row_does_not_depend_on_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = walks()
    columns["action"][7] = -1
    log, asked = write(tmp_path / "log.parquet", columns), tmp_path / "asked.toml"
    asked.write_text(QUESTION)
    monkeypatch.setattr(
        errors, "_written_part", lambda part, in_file, placed: f"[{part}]" if placed else "words"
    )
    assert main(["learn", str(log), str(asked), "--out", str(tmp_path / "out")]) == 2
    assert "row 7: question 'goes right': wordswords" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_answer_of_another_version_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, asked = write(tmp_path / "log.parquet", walks(20)), tmp_path / "asked.toml"
    asked.write_text(QUESTION.replace("replicates = 39", "replicates = 0"))
    out = tmp_path / "out"
    command = ["learn", str(log), str(asked), "--out", str(out)]
    assert main(command) in (0, 3)
    assert (out / "cells" / "gvf-version.txt").read_text().strip() == __version__
    assert main(command) in (0, 3)
    capsys.readouterr()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    (out / "cells" / "gvf-version.txt").write_text("0.0.9\n")
    assert main(command) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gvf: ")]
    assert "0.0.9" in line
    assert __version__ in line
    (out / "cells" / "gvf-version.txt").unlink()
    assert main(command) == 2
    assert "an unknown version" in capsys.readouterr().err
    assert len(before) == len(list(out.rglob("*"))) + 1
