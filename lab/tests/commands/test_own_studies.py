"""Commands on studies of what users bring: their files, worlds and corrections."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from own_code import EXAMPLES, write
from study_runs import CHAIN, command, digests

from gvf.cli import main
from gvf_lab.report.study_pages import plot
from gvf_lab.study import load, run
from gvf_lab.study.study_file import as_toml

pytestmark = pytest.mark.usefixtures("apart")

QUICK = ["steps=300", "warm_up=50", "evaluation_states=4", "gaps=[4]", "step_sizes=[0.1, 0.4]"]
"""The examples, in a second or two."""


# The examples


def example(name: str) -> Path:
    """A copy of the examples, with the study of one of them cut down."""
    folder = Path("lab")
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    study = load(folder / f"{name}.toml")
    changes = dict(one.split("=") for one in QUICK)
    small = study.with_(
        runs=3, measure_every=10, points=3, **{key: json.loads(v) for key, v in changes.items()}
    )
    (folder / f"{name}.toml").write_text(as_toml(small))
    return folder / f"{name}.toml"


@pytest.mark.parametrize("name", ["cartpole", "pendulum"])
def test_the_examples_run_are_killed_and_go_on_to_the_same_bits(name, tmp_path):
    toml = example(name)
    assert main(["study", "run", str(toml), "--out", "whole"]) == 0
    whole = digests(Path("whole"))
    assert len(whole) == 3
    process = subprocess.Popen(command("study", "run", toml, "--out", "cut", "--workers", "1"))
    while not list(Path("cut").glob("**/*.parquet")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 1 <= len(digests(Path("cut"))) <= 3
    assert main(["study", "run", str(toml), "--out", "cut", "--workers", "2"]) == 0
    assert digests(Path("cut")) == whole


def test_an_example_is_drawn_by_one_command(capsys):
    toml = example("pendulum")
    assert main(["study", "run", str(toml), "--set", "gaps=[4, 16]"]) == 0
    assert main(["study", "plot", str(toml), "--set", "gaps=[4, 16]"]) == 0
    drawn = [Path(line) for line in capsys.readouterr().out.splitlines()[1:]]
    names = ("sensitivity", "updates", "learning-curves")
    assert [path.name for path in drawn] == [
        f"{n}.{kind}" for n in names for kind in ("png", "svg", "csv")
    ]
    assert all(path.stat().st_size > 100 for path in drawn)
    lines = drawn[2].read_text().splitlines()
    assert lines[0] == "protocol,panel,series,x,y,stderr,runs,step_size"
    assert len(lines) == 1 + 5 * 2 * 2
    assert {line.split(",")[2] for line in lines[1:]} == {
        "IR", "IS", "WIS-Minibatch", "V-trace(1.0)", "square root"
    }  # fmt: skip
    assert "#117733" in drawn[1].read_text()
    assert main(["reproduce", "--report", "gvf-results"]) == 0
    page = Path("gvf-results/report.html").read_text()
    assert "<h3>pendulum: sensitivity to the step size</h3>" in page
    (block,) = [line for line in page.splitlines() if 'id="data-pendulum-learning-curves"' in line]
    data = json.loads(block.partition(">")[2].removesuffix("</script>"))
    assert len(data["rows"]) == 5 * 2 * 3
    assert data["axes"]["x"] == "steps"


@pytest.mark.skipif(os.name != "posix", reason="Ray is tested where it runs best")
def test_a_ray_worker_that_has_never_seen_a_module_gets_its_text(tmp_path):
    pytest.importorskip("ray")
    toml = example("cartpole")
    # Somewhere else, through a module that the named one imports.
    text = (toml.parent / "worlds.py").read_text()
    (toml.parent / "corrections_of_mine.py").write_text(
        "from worlds_of_mine import SquareRoot\n\n\nclass Root(SquareRoot):\n    label = 'root'\n"
    )
    (toml.parent / "worlds_of_mine.py").write_text(text)
    (toml.parent / "worlds.py").unlink()
    study = toml.read_text().replace("worlds:cartpole", "worlds_of_mine:cartpole")
    toml.write_text(study.replace("worlds:SquareRoot", "corrections_of_mine:Root"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    given = command("study", "run", toml.resolve(), "--out", tmp_path / "ray", "--engine", "ray")
    done = subprocess.run([*given, "--workers", "2"], cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert main(["study", "run", str(toml), "--out", "threads"]) == 0
    assert digests(tmp_path / "ray") == digests(Path("threads"))
    assert len(digests(Path("threads"))) == 3


# What is stored


def test_what_does_not_fit_is_named_with_its_reason(capsys):
    text = 'domain = "markov-chain"\nmethods = ["IR"]\nstep_sizes = [0.5]\nupdates = 20\nruns = 1\n'
    assert main(["study", "run", str(write("mine.toml", text))]) == 0
    assert capsys.readouterr().err == ""
    write("mine.toml", text + "points = 7\nseed = 3\n")
    assert main(["study", "run", "mine.toml"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("gvf: note: 3 results in gvf-results/results/mine/paper-")
    assert "points was 100, and is 7 now; seed was 0, and is 3 now" in told
    assert told.count("\n") == 1
    write("mine.toml", text + "batch_size = 3\n")
    assert main(["study", "plot", "mine.toml"]) == 2
    told = capsys.readouterr().err
    assert "there is no finished run of 'mine'" in told
    assert "batch_size was 16, and is 3 now" in told


def test_results_of_other_code_do_not_mix(capsys):
    module = write("my_code.py", (EXAMPLES / "worlds.py").read_text())
    text = 'domain = "markov-chain"\nmethods = [{correction = "my_code:SquareRoot"}]\n'
    toml = write("mine.toml", text + "step_sizes = [0.5]\nupdates = 20\nruns = 1\n")

    def again() -> str:
        done = subprocess.run(
            command("study", "run", toml), capture_output=True, text=True, check=True
        )
        return done.stdout + done.stderr

    assert "3 tasks done in" in again()
    module.write_text("# A comment.\n\n" + module.read_text())
    assert "all 3 tasks done before" in again()
    module.write_text(module.read_text().replace("/ out.size", "/ out.size / 2"))
    told = again()
    assert "3 tasks done in" in told
    assert "code was" in told


def test_a_finished_part_is_drawn_while_the_rest_runs(capsys):
    run(CHAIN, "out", tasks=[task for task in CHAIN.tasks() if task.run == 0])
    write("chain.toml", as_toml(CHAIN))
    assert main(["study", "plot", "chain.toml", "--out", "out"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == "chain: 1 of 2 runs are finished"
    assert len(plot(CHAIN, "out")) == 6


def test_a_best_step_size_that_is_the_last_of_the_grid_is_told(capsys):
    """Small step sizes learn little in 20 updates, so the largest is the best."""
    one = CHAIN.with_(pairs=(("easy", "easy"),), step_sizes=(0.0, 1e-3, 1e-2))
    told = "0.01 is the largest of the step sizes: a larger one may be better"
    for study, notes in (
        (one, [f"IR: {told}", f"IS: {told}"]),
        (
            CHAIN.with_(methods=("IR",), step_sizes=one.step_sizes),
            [f"IR: {told} (in 2 of 3 panels)"],
        ),
        (one.with_(step_sizes=(1e-3, 0.5, 1e9)), []),
        (one.with_(step_sizes=(0.01,)), []),
        (one.with_(methods=("IR",), step_sizes=(0.0, 1e9)), []),  # nothing is smaller than 0
        (
            one.with_(methods=("IR",), step_sizes=(0.5, 1e9)),
            ["IR: 0.5 is the smallest of the step sizes: a smaller one may be better"],
        ),
    ):
        write("chain.toml", as_toml(study))
        for word in ("run", "plot"):
            assert main(["study", word, "chain.toml", "--out", "out"]) == 0
            lines = [line for line in capsys.readouterr().err.splitlines() if "step size" in line]
            assert lines == [f"gvf: note: {note}" for note in notes]


def test_the_list_has_the_studies_of_this_folder(capsys):
    write("chain.toml", as_toml(CHAIN))
    write("other.toml", '[tool]\nname = "no study"\n')
    write("broken.toml", 'domain = "nowhere:x"\nmethods = ["IR"]\n')
    run(CHAIN.with_(name="before"), "gvf-results")
    assert main(["study", "list"]) == 0
    told = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1] for line in told.out.splitlines()}
    assert rows["chain.toml"] == "0/6"
    assert rows["before"] == "6/6"
    assert "other.toml" not in rows
    assert told.err.startswith("gvf: broken.toml is left out: ")


def test_another_world_has_other_pairs(capsys):
    assert main(["study", "run", "quick-check", "--set", "domain=star", "--set", "runs=1"]) == 0
    assert main(["study", "show", "quick-check", "--set", "domain=FrozenLake-v1"]) == 2
    assert "WIS-Optimal needs the whole window" in capsys.readouterr().err


def test_a_name_means_the_file_of_this_folder_as_it_is_now(capsys):
    write("mine.toml", as_toml(CHAIN))
    assert main(["study", "run", "mine"]) == 0
    write("mine.toml", as_toml(CHAIN.with_(seed=3)))
    assert main(["study", "show", "mine"]) == 0
    assert "seed = 3" in capsys.readouterr().out
    assert main(["study", "run", "mine"]) == 0
    assert "6 tasks done in" in capsys.readouterr().out
    # The report shows the last, once.
    assert main(["reproduce", "--report", "gvf-results"]) == 0
    page = Path("gvf-results/report.html").read_text()
    assert page.count('<article id="mine-sensitivity">') == 1
    (seed,) = {made["seed"] for made in data_of(page, "mine-sensitivity")["made"].values()}
    assert seed == 3


def data_of(page: str, figure: str) -> dict:
    (block,) = [line for line in page.splitlines() if f'id="data-{figure}"' in line]
    return json.loads(block.partition(">")[2].removesuffix("</script>"))


def test_what_was_run_elsewhere_is_drawn_and_listed_from_here(capsys):
    write("sub/mine_there.py", (EXAMPLES / "worlds.py").read_text())
    text = 'domain = "markov-chain"\nmethods = ["mine_there:SquareRoot"]\n'
    write("sub/mine.toml", text + "step_sizes = [0.5, 1]\nupdates = 20\nruns = 1\n")
    for words in (
        "study run sub/mine.toml",
        "study plot mine",
        "reproduce --report",
        "study list",
    ):
        done = subprocess.run(command(*words.split()), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "left out" not in done.stderr
    assert "mine " in done.stdout


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("runs", "--set takes KEY=VALUE"),
        ("run=3", "unknown setting: 'run'; did you mean 'runs'"),
        ("methods=[IR]", "is not TOML"),
        ("steps=many", "steps must be a whole number, got 'many'"),
    ],
)
def test_a_setting_that_cannot_be_is_told(given, told, capsys):
    assert main(["study", "run", "quick-check", "--set", given]) == 2
    assert told in capsys.readouterr().err
    assert not Path("gvf-results").exists()
