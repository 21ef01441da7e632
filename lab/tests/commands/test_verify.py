"""`gvf verify`, as a user has it."""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gvf.cli import main
from gvf_lab import theory
from gvf_lab.commands import verify as command
from gvf_lab.theory import Finding, FindingRow


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put findings of our own in place of the experiments."""

    def put(*rows: FindingRow) -> None:
        def verify(*, seed: int) -> Iterator[Finding]:
            rows_here = tuple(replace(row, claim=f"{row.claim} {seed}") for row in rows)
            yield Finding("Theorem 0.1", "a | b", rows_here, lambda figure: None)

        monkeypatch.setattr(theory, "verify", verify)

    return put


GOOD = FindingRow("claim", 1.0, 1.0, 0.1, "5 s.e.", "an error of 0.2")
BAD = replace(GOOD, measured=2.0)


def test_the_exit_status_tells_whether_all_rows_hold(
    quick: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    quick(GOOD, GOOD)
    assert main(["verify"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^all 2 rows hold, seed 0, \d+ s$", told, re.MULTILINE)
    assert "VIOLATED" not in told
    quick(GOOD, BAD)
    assert main(["verify", "--seed", "7"]) == 1
    told = capsys.readouterr().out
    assert re.search(r"claim 7 +1 +1 +0 +0.1 +holds\n +tolerance: 5 s.e.; detects: an error", told)
    assert re.search(r"claim 7 +1 +2 +1 +0.1 +VIOLATED\n", told)
    assert told.count("detects: an error of 0.2") == 2
    assert re.search(r"^1 of 2 rows VIOLATED, seed 7, ", told, re.MULTILINE)


def test_on_a_terminal_there_is_a_table(
    quick: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    quick(GOOD, BAD)
    assert main(["verify"]) == 1
    # A line that is drawn over, as by the spinner, counts as one of its own.
    told = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out.replace("\r", "\n"))
    assert re.search(
        r"^Theorem 0.1: a \| b +predicted +measured +apart +tolerance", told, re.MULTILINE
    )
    assert re.search(r"^claim 0 +1 +2 +1 +0.1 +VIOLATED", told, re.MULTILINE)
    assert "tolerance: 5 s.e.; detects: an error of 0.2" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--plots", "taken"], "taken: File exists"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("")
    monkeypatch.setattr(command, "_run", lambda *_, **__: pytest.fail("it ran"))
    assert main(["verify", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"gvf: {told}\n")


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verify(*, seed: int) -> Iterator[Finding]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(theory, "verify", verify)
    assert main(["verify"]) == 130
    assert capsys.readouterr().err == "gvf: stopped\n"
