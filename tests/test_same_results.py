"""The tool that compares results before and after a change sees what it should see."""

import json
import os
from copy import deepcopy
from pathlib import Path

import pytest

import gvf
from tools import same_results as tool

IR = {"name": "IR", "kind": "library.law", "arguments": {"correction": ["IR", {}]}}


def interpolated(beta: float) -> tool.Case:
    correction = ["Interpolated", {"beta": beta}]
    return {"name": "mine", "kind": "library.law", "arguments": {"correction": correction}}


@pytest.fixture(autouse=True)
def same_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path(os.environ.get("NUMBA_CACHE_DIR", tmp_path))
    monkeypatch.setattr(tool, "_cache_folder", lambda: folder)


def test_a_changed_number_is_seen_and_an_equal_one_is_not() -> None:
    before = tool.results_of([interpolated(0.5), IR], workers=1)
    now = tool.results_of([interpolated(0.5 + 1e-15), IR], workers=1)
    assert list(tool.differences(before, before)) == []
    ((name, lines),) = tool.differences(before, now)
    assert name == "mine"
    assert any(line.startswith("masses: [32] [") for line in lines)


def test_a_case_that_fails_gives_its_error_and_the_next_one_is_done() -> None:
    unknown = {"name": "unknown", "kind": "library.nothing", "arguments": {}}
    refused = {**IR, "name": "refused", "arguments": {"correction": ["VTrace", {"clip": -1.0}]}}
    results = tool.results_of([unknown, refused, IR], workers=1)
    assert results["unknown"]["error"]["text"] == "AttributeError"
    assert results["refused"]["error"]["text"] == "ValueError"
    assert results["IR"]["masses"]["shape"] == [32]
    other = deepcopy(results)
    other["refused"]["error"]["line"] = "ValueError: in other words"
    assert list(tool.differences(results, other)) == []
    other["IR"] = {"error": {"text": "TypeError", "line": "TypeError: planted"}}
    ((name, lines),) = tool.differences(results, other)
    assert name == "IR"
    assert lines[-1].endswith("TypeError: planted")


def test_a_crash_fails_only_its_own_case() -> None:
    crash = {"name": "crash", "kind": "os._exit", "arguments": {"status": 3}}
    results = tool.results_of([crash, IR], workers=1)
    assert results["crash"]["error"]["line"] == "the process ended with status 3"
    assert results["IR"]["masses"]["shape"] == [32]


def test_a_renamed_case_is_missing() -> None:
    text = {"table": {"text": "1\n2"}}
    ((name, lines),) = tool.differences({"old": text}, {"new": text})
    assert name == "old"
    assert lines[0].startswith("missing")


def test_a_changed_text_is_told_by_its_first_line() -> None:
    before, now = {"csv": {"table": {"text": "1\n2"}}}, {"csv": {"table": {"text": "1\n3"}}}
    assert list(tool.differences(before, now)) == [("csv", ["table: line 2: '2' -> '3'"])]


def test_names_of_cases_are_unique_and_quick_cases_are_some_of_them() -> None:
    whole = [case["name"] for case in tool.cases_here(quick=False)]
    quick = [case["name"] for case in tool.cases_here(quick=True)]
    assert len({*whole}) == len(whole)
    assert {*quick} < {*whole}


def test_every_correction_is_in_the_cases() -> None:
    tables = json.loads((tool.CASES / "cases.json").read_text(encoding="utf-8"))["tables"]
    public = {
        name for name in gvf.corrections.__all__ if _is_correction(getattr(gvf.corrections, name))
    }
    assert {name for name, _ in tables["corrections"].values()} == public - {"Correction"}


def _is_correction(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, gvf.corrections.Correction)


def test_a_saved_file_can_be_compared(tmp_path: Path) -> None:
    results = tool.results_of([IR], workers=1)
    tool.write(tmp_path / "results.json.gz", results)
    content = tool.read(tmp_path / "results.json.gz")
    assert content["results"] == results
    assert content["machine"] == tool.machine()
