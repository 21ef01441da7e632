"""`gvf study run` and its neighbours, as a user has them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from study_runs import STUDY, digests, needs_posix

from gvf.cli import main
from gvf_lab import catalogue
from gvf_lab.commands.study_commands import find
from gvf_lab.study import VarianceStudy, load, run_variance
from gvf_lab.study.store import Store
from gvf_lab.study.study_file import as_toml

pytestmark = pytest.mark.usefixtures("own_folder")

TASK = "quick-check/hard/hard/gap-1/run-3"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["study", "run", "quik-check"],
            "unknown study: 'quik-check'; did you mean 'quick-check'? (`gvf study list` shows "
            "all)\n",
        ),
        (
            ["study", "run", "four-room-gap"],
            "unknown study: 'four-room-gap'; did you mean 'four-rooms-gap'? (`gvf study list` ",
        ),
        (
            ["study", "show", "nope"],
            "unknown study: 'nope'; known are 'four-rooms-learning-curves', ",
        ),
        (["study", "plot", "nope"], "' and 37 more (`gvf study list` shows all)\n"),
        (
            ["study", "run", "quick-check", "--set", 'methods=["Vtrace"]'],
            "did you mean 'V-trace(1.0)' or ",
        ),
        (
            ["study", "run", "quick-check", "--set", 'pairs=[["hrd", "hard"]]'],
            "'hrd'; did you mean 'hard'? Known are 'easy', 'hard', 'hardest'\n",
        ),
        (["study", "run", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (["study", "run", "quick-check", "--runs", "0"], "--runs must be at least 1, got 0"),
        (["study", "run", "quick-check", "--workers", "0"], "workers must be at least 1, got 0"),
        (["study", "run", "quick-check", "--address", "auto"], "choose the engine 'ray'"),
        (
            ["study", "clean", "quick-check"],
            "no results of 'quick-check' in gvf-results; known are none",
        ),
        (["study", "clean", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (
            ["study", "run", "quick-check", "--only", "x"],
            "nothing in study 'quick-check' with 10 runs is called 'x'; a task is called, for "
            "example, 'quick-check/easy/easy/gap-1/run-0', and a part 'quick-check/easy/easy/gap-1/"
            "run-0/IR/0.0'",
        ),
        (
            ["study", "run", "quick-check", "--only", f"{TASK}/IRR/0.5"],
            f"unknown part of {TASK}: 'IRR/0.5'; did you mean 'IR/0.5'",
        ),
        (["study", "run", "quick-check", "--only", f"{TASK}/IR/9"], "'IR/3.5' and 60 more\n"),
        (
            ["study", "run", "quick-check", "--only", f"{TASK}/IR/0.5", "--workers", "2"],
            "a single one is computed here, on one processor: leave out --engine, --address and",
        ),
    ],
)
def test_a_mistake_is_one_clear_line_and_status_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gvf: ")
    assert err.count("\n") == 1
    assert len(err) < 400
    assert told in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["reproduc"], "unknown command: 'reproduc'; did you mean 'reproduce'? Known "),
        (["--versoin"], "unknown option: '--versoin'; did you mean '--version'? Known are "),
        (
            ["study", "run", "quick-check", "--dryrun"],
            "unknown option: '--dryrun'; did you mean '--dry-run'?",
        ),
        (
            ["study", "list", "--protocol=papr"],
            "unknown --protocol: 'papr'; did you mean 'paper'? Known are ",
        ),
        (["study", "list", "all", "of", "them"], "too many arguments: all of them\n"),
        (["completion", "bahs"], "unknown shell: 'bahs'; did you mean 'bash'? Known are "),
    ],
)
def test_a_mistyped_command_or_option_is_answered_with_the_one_that_was_meant(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: gvf ")
    assert told in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("domain = ", "is not TOML"),
        ('domain = "four-rooms"', "mine.toml: methods is missing; needed are domain and methods"),
        (
            'domain = "moon"\nmethods = ["IR"]\nstep_sizes = [1]',
            "unknown domain: 'moon'; known are 'markov-chain', ",
        ),
        (
            'domain = "four-rooms"\nmethods = ["XY"]\nstep_sizes = [1]',
            "unknown method: 'XY'; known are 'IR', 'BC-IR', ",
        ),
        (
            'domain = "four-rooms"\nmethods = ["IR"]\nstepsizes = [1]',
            "'stepsizes'; did you mean 'step_sizes'",
        ),
        ('domain = "four-rooms"\nmethods = ["IR"]\nsteps = "9"', "steps must be a whole number"),
        (
            'domain = "continuous-four-rooms"\nmethods = ["WIS-Optimal"]\nstep_sizes = [1]',
            "WIS-Optimal needs the whole window",
        ),
        (
            'name = "../x"\ndomain = "four-rooms"\nmethods = ["IR"]\nstep_sizes = [1]',
            "a study cannot be called '../x'",
        ),
    ],
)
def test_a_wrong_file_says_what_is_wrong_before_anything_runs(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    assert main(["study", "run", "mine.toml"]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert not (tmp_path / "gvf-results").exists()


TIMES = r"(?:\d+ min )?\d+ s \(\d+ s of processor time\)"  # a busy machine compiles slowly


def test_what_was_done_now_and_what_before_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for runs, told in (
        (1, rf"3 tasks done in {TIMES}"),
        (1, r"all 3 tasks done before \(\d+ s of processor time\)"),
        (2, rf"3 of 6 tasks done before \(\d+ s of processor time\); 3 done now in {TIMES}"),
    ):
        assert main(["study", "run", "quick-check", "--runs", str(runs)]) == 0
        line = rf"quick-check: {told}; results in gvf-results/results/quick-check/paper-\w+\n"
        assert re.fullmatch(line, capsys.readouterr().out)


def test_a_task_alone_is_the_same_file_in_the_same_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for told in (rf"done in {TIMES}", r"done before \(\d+ s of processor time\)"):
        assert main(["study", "run", "quick-check", "--only", TASK]) == 0
        line = rf"{TASK}: {told}; results in gvf-results/results/quick-check/paper-\w+\n"
        assert re.fullmatch(line, capsys.readouterr().out)
    alone = digests(tmp_path / "gvf-results")
    assert len(alone) == 1
    assert main(["study", "run", "quick-check", "--runs", "4", "--out", "whole"]) == 0
    assert alone.items() <= digests(tmp_path / "whole").items()


def test_a_part_alone_is_printed_and_not_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "run", "quick-check", "--only", f"{TASK}/IS/0.5"]) == 0
    told = re.findall(r"^(\w+): ([-+.e\d ]+) \(.*\)$", capsys.readouterr().out, re.MULTILINE)
    assert not (tmp_path / "gvf-results").exists()
    assert main(["study", "run", "quick-check", "--only", TASK]) == 0
    task = next(task for task in find("quick-check").tasks() if task.name == TASK)
    table = pq.read_table(Store(task.study).path(task))
    (row,) = (r for r in table.to_pylist() if (r["method"], r["step_size"]) == ("IS", 0.5))
    assert {name: [float(v) for v in values.split()] for name, values in told} == {
        "error": [row["error"]], "final": [row["final"]], "curve": row["curve"],
        "curve_steps": row["curve_steps"],
    }  # fmt: skip


def test_a_part_of_update_variance_is_printed(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml.write_text('kind = "variance"\niterations = [0, 7]\nbatches = 9\nbuffer = 99\nruns = 2')
    assert main(["study", "run", str(toml), "--only", "sweep/hard/hard/run-1/BC-IR"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "iteration l1 (variance of the update's L1 norm) l2 (variance of its L2 norm) "
        "scalar (variance of its signed sum) trace (trace of its covariance)"
    )
    study = load(toml)
    assert isinstance(study, VarianceStudy)
    expected = run_variance(study.part("sweep/hard/hard/run-1/BC-IR"))["BC-IR"]
    printed = [[float(number) for number in line.split()] for line in lines[1:]]
    assert printed == [[0, *expected[0]], [7, *expected[1]]]


def test_a_damaged_file_is_a_line_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "quick-check", "--runs", "1"]) == 0
    path = next(Path().glob("gvf-results/**/hard/**/run-0.parquet"))
    path.write_bytes(b"")
    capsys.readouterr()
    assert main(["study", "run", "quick-check", "--runs", "1"]) == 0
    out, err = capsys.readouterr()
    (line,) = (line for line in err.splitlines() if "step sizes" not in line)
    assert re.fullmatch(
        r"gvf: warning: \S*run-0.parquet is damaged \(.*\); it is set aside .*", line
    )
    assert "2 of 3 tasks done before (" in out
    assert "; 1 done now in " in out


def test_the_list_counts_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "quick-check", "--runs", "1"]) == 0
    capsys.readouterr()
    assert main(["study", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(catalogue.STUDIES)
    assert all(len(line) <= 100 for line in lines)
    assert re.search(r"^quick-check +3/30 +68 ", lines[-1])
    assert main(["study", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(catalogue.STUDIES)
    assert (rows[-1]["done"], rows[-1]["tasks"], rows[-1]["rows"]) == (3, 30, 68)


def test_the_list_has_files_of_this_folder_and_whatever_has_results(
    toml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = tmp_path / "elsewhere" / "away.toml"
    away.parent.mkdir()
    away.write_text(as_toml(STUDY.with_(runs=2, steps=1000)))
    assert main(["study", "run", str(away), "--runs", "1"]) == 0
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n")
    Path("broken.toml").write_text('domain = "four-rooms"\nmethods = ["XY"]\n')
    capsys.readouterr()
    assert main(["study", "list"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()[1 + len(catalogue.STUDIES) :]
    methods = "IR, IS, WIS-Optimal, Sarsa in four-rooms"
    assert [line.split(maxsplit=3) for line in lines] == [
        ["sweep.toml", "0/30", "16", methods], ["away", "2/2", "16", methods],
    ]  # fmt: skip
    assert re.fullmatch(r"gvf: broken.toml is left out: \S+: unknown method: 'XY'; .*\n", err)
    assert main(["study", "show", "away"]) == 0
    assert as_toml(STUDY.with_(runs=1, steps=1000)) in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@pytest.mark.parametrize("name", catalogue.STUDIES)
def test_what_show_prints_can_be_run(
    name: str, protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "show", name, "--protocol", protocol]) == 0
    shown = capsys.readouterr().out
    path = tmp_path / f"{name}.toml"
    path.write_text(shown)
    study = find(str(path))
    assert study == find(name, protocol)
    task, cell = re.findall(r"'(.*?)'", "".join(shown.splitlines(True)[1:3]))
    assert task in [task.name for task in study.tasks()]
    assert study.part(cell).name == task


@pytest.mark.parametrize("name", ["quick-check", "markov-variance"])
def test_a_dry_run_estimates_and_does_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "run", name, "--dry-run", "--runs", "2"]) == 0
    told = capsys.readouterr().out
    assert re.search(r": \d tasks of \d+ rows, 0 done already\n", told)
    assert re.search(r"to do: \d, about \d+ s with \d at once \(by a short probe\)\n", told)
    assert not (tmp_path / "gvf-results").exists()
    assert main(["study", "run", name, "--runs", "1"]) == 0
    assert main(["study", "run", name, "--dry-run", "--runs", "2"]) == 0
    assert "(by those done before)" in capsys.readouterr().out


def test_clean_asks_and_deletes_results_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["study", "run", "quick-check", "--runs", "1"])
    kept = [tmp_path / "gvf-results" / place / "mine.png"
            for place in ("quick-check", "results/quick-check")]  # fmt: skip
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    for answer, left in (("", 3), ("n\n", 3), ("y\n", 0)):
        read, write = os.pipe()
        os.write(write, answer.encode())
        os.close(write)
        with os.fdopen(read) as stdin, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", stdin)
            assert main(["study", "clean", "quick-check"]) == 0
        assert len(digests(tmp_path / "gvf-results")) == left
    assert "quick-check in gvf-results: 5 files, " in capsys.readouterr().out
    left = [path for path in (tmp_path / "gvf-results").glob("**/*") if path.is_file()]
    assert sorted(left) == kept
    assert main(["study", "clean"]) == 0
    assert "nothing to delete" in capsys.readouterr().out


def test_clean_takes_a_file_and_deletes_what_it_made(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = STUDY.with_(runs=1, steps=1000)
    toml.write_text('name = "other"\n' + as_toml(few))
    assert main(["study", "run", str(toml)]) == 0
    assert main(["study", "run", "quick-check", "--runs", "1"]) == 0
    assert Path("gvf-results/results/other").exists()
    capsys.readouterr()
    assert main(["study", "clean", str(toml), "--yes"]) == 0
    assert capsys.readouterr().out.startswith("other in gvf-results: 4 files, ")
    for folder in ("results", "logs"):
        assert [path.name for path in Path("gvf-results", folder).iterdir()] == ["quick-check"]
    assert main(["study", "clean", str(toml)]) == 2
    assert (
        "no results of 'other' in gvf-results; known are 'quick-check'" in capsys.readouterr().err
    )


@needs_posix
def test_nobody_reading_on_is_no_error() -> None:
    command = f"{sys.executable} -m gvf study list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
