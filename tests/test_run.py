"""`gvf run` and its neighbours as a user has them: stopped, killed, resumed, on Ray, mistyped."""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gvf.cli import main
from gvf.cli.studies import find
from gvf.common.progress import progress_bar
from gvf.paper import studies as catalogue
from gvf.study import Interrupted, Study, VarianceStudy, load, local, run_task, run_variance
from gvf.study.engine import run
from gvf.study.progress import Account, Costs, costs, spent
from gvf.study.store import Store
from gvf.study.toml import as_toml

STUDY = Study(
    "sweep", "four-rooms", ("IR", "IS", "WIS-Optimal", "Sarsa"), (0.0, 0.5, 8.0, 60.0),
    pairs=(("down", "random-state"),), steps=10_000, warm_up=100, window=500, gaps=(1, 4),
    points=20, runs=15,
)  # fmt: skip
"""Thirty tasks of some hundredths of a second; one of its step sizes diverges."""

needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.glob("results/**/*.parquet")
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(STUDY, folder).done == 30
    return digests(folder)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(as_toml(STUDY))
    assert load(path) == STUDY
    return path


def start(toml: Path, out: Path, workers: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gvf", "run", toml, "--out", out, "--workers", str(workers), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def beside_progress(errors: str) -> str:
    """Return the lines on stderr that are neither progress nor Ray's own log."""
    return re.sub(r"^(sweep: .* left|\[\S+ \S+ [EW] .*\.cc:.*)\n", "", errors, flags=re.MULTILINE)


STOPPED = "gvf: stopped; what is done is kept: the same command goes on\n"


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_number_of_workers_changes_no_bit(
    tmp_path: Path, undisturbed: dict[str, str], workers: int
) -> None:
    run(STUDY, tmp_path, workers=workers)
    assert digests(tmp_path) == undisturbed


@needs_posix
@pytest.mark.parametrize("seed", range(10))
def test_stopped_or_killed_at_two_random_moments_and_resumed(
    tmp_path: Path, toml: Path, undisturbed: dict[str, str], seed: int
) -> None:
    rng = random.Random(seed)
    out = tmp_path / "out"
    for stop in rng.sample([signal.SIGINT, signal.SIGKILL], 2):
        process = start(toml, out, workers=rng.choice([1, 2, 3]))
        # At the start, or when so many more results are there, give or take a moment.
        wanted = len(digests(out)) + rng.choice([0, 1, 2, 4, 6, 9])
        deadline = time.monotonic() + 30
        while len(list(out.glob("**/*.parquet"))) < wanted and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.8) if wanted == 0 else rng.uniform(0, 0.05))
        process.send_signal(stop)
        process.communicate(timeout=30)
        assert digests(out).items() <= undisturbed.items()
    assert len(digests(out)) < 30
    process = start(toml, out, workers=rng.choice([1, 2, 4]))
    told, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert beside_progress(errors) == ""
    assert re.match(r"sweep: (\d+ of 30 tasks done before|30 tasks done in) ", told)
    assert digests(out) == undisturbed


@needs_posix
def test_an_interrupt_is_one_line_and_keeps_what_is_done(tmp_path: Path, toml: Path) -> None:
    out = tmp_path / "out"
    process = start(toml, out, workers=1)
    while len(list(out.glob("**/*.parquet"))) < 2 and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=30)
    assert (process.returncode, told, beside_progress(errors)) == (130, "", STOPPED)
    assert 2 <= len(digests(out)) < 30


DEAF = """
import sys, time
from gvf.cli import main
from gvf.study import task

def deaf(*_):
    print("begun", flush=True)
    time.sleep(60)

task.run_task = deaf
sys.exit(main(["run", *sys.argv[1:], "--workers", "1"]))
"""


@needs_posix
def test_an_interrupt_does_not_wait_for_a_task_that_does_not_listen(
    tmp_path: Path, toml: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF, toml, "--out", tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, beside_progress(errors)) == (130, STOPPED)


def test_two_processes_at_once_do_no_harm(
    tmp_path: Path, toml: Path, undisturbed: dict[str, str]
) -> None:
    both = [start(toml, tmp_path / "out", workers=2) for _ in range(2)]
    for process in both:
        assert beside_progress(process.communicate(timeout=60)[1]) == ""
        assert process.returncode == 0
    assert digests(tmp_path / "out") == undisturbed


def test_closing_the_results_ends_the_task_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(range(200))  # many lanes: a long task whose walk is soon over
    quick = next(STUDY.tasks())
    long = next(STUDY.with_(steps=100_000, step_sizes=many).tasks())
    began, interrupted = threading.Event(), threading.Event()

    def noted(task, stop):
        if task == long:
            began.set()
        try:
            return run_task(task, stop)
        except Interrupted:
            interrupted.set()
            raise

    monkeypatch.setattr("gvf.study.task.run_task", noted)
    results = local.results([quick, long], workers=1)
    assert next(results).task == quick
    assert began.wait(30)
    results.close()
    assert interrupted.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gvf-worker")]


def test_a_task_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(task, stop):
        raise RuntimeError("broken")

    monkeypatch.setattr("gvf.study.task.run_task", fail)
    with pytest.raises(RuntimeError, match="broken") as caught:
        run(STUDY, tmp_path)
    assert caught.value.__notes__ == [f"in task {next(STUDY.tasks()).name}"]


# Ray


@pytest.fixture
def ray():
    ray = pytest.importorskip("ray")
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_ray_on_one_machine_gives_the_same_bits(
    tmp_path: Path, undisturbed: dict[str, str], ray
) -> None:
    assert run(STUDY, tmp_path, engine="ray", workers=2).done == 30
    assert digests(tmp_path) == undisturbed
    assert run(STUDY, tmp_path, engine="ray", workers=2).done == 0
    assert not ray.is_initialized()


@pytest.mark.skipif(sys.platform != "linux", reason="finds the node's processes in /proc")
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_that_loses_a_node_gives_the_same_bits(
    tmp_path: Path, undisturbed: dict[str, str], ray
) -> None:
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    (raylet,) = nodes[0].all_processes["raylet"]
    lost: list[int] = []

    def lose_a_node() -> None:
        while len(list(tmp_path.glob("**/*.parquet"))) < 4:
            time.sleep(0.01)
        lost.append(len(list(tmp_path.glob("**/*.parquet"))))
        # As when the power goes: its workers too, whatever they are at.
        pid = raylet.process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        cluster.remove_node(nodes[0], allow_graceful=False)

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    try:
        assert run(STUDY, tmp_path, engine="ray", address=cluster.address).done == 30
        thread.join()
        assert 4 <= lost[0] < 30
        assert digests(tmp_path) == undisturbed
    finally:
        cluster.shutdown()


@needs_posix
def test_an_interrupt_under_ray_keeps_what_is_done(
    tmp_path: Path, toml: Path, undisturbed: dict[str, str]
) -> None:
    pytest.importorskip("ray")
    out = tmp_path / "out"
    process = start(toml, out, 2, "--engine", "ray")
    while len(list(out.glob("**/*.parquet"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all processes that it started
    told, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert (process.returncode, told, beside_progress(errors)) == (130, "", STOPPED)
    kept = digests(out)
    assert 3 <= len(kept) < 30
    assert kept.items() <= undisturbed.items()
    assert run(STUDY, out).skipped == len(kept)
    assert digests(out) == undisturbed


def test_without_ray_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["run", "quick-check", "--engine", "ray"]) == 2
    assert 'pip install "gvf[ray]"' in capsys.readouterr().err


# What can be asked

TASK = "quick-check/hard/hard/gap-1/run-3"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["run", "quik-check"],
            "unknown study: 'quik-check'; did you mean 'quick-check'? (`gvf list` shows all)\n",
        ),
        (
            ["run", "four-room-gap"],
            "unknown study: 'four-room-gap'; did you mean 'four-rooms-gap'? (`gvf list` shows all)",
        ),
        (["show", "nope"], "unknown study: 'nope'; known are 'markov-step-size', "),
        (["plot", "nope"], "' and 12 more (`gvf list` shows all)\n"),
        (["run", "quick-check", "--set", 'methods=["Vtrace"]'], "did you mean 'V-trace(1.0)' or "),
        (
            ["run", "quick-check", "--set", 'pairs=[["hrd", "hard"]]'],
            "'hrd'; did you mean 'hard'? Known are 'easy', 'hard', 'hardest'\n",
        ),
        (["run", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (["run", "quick-check", "--runs", "0"], "--runs must be at least 1, got 0"),
        (["run", "quick-check", "--workers", "0"], "workers must be at least 1, got 0"),
        (["run", "quick-check", "--address", "auto"], "choose the engine 'ray'"),
        (["clean", "quick-check"], "no results of 'quick-check' in gvf-results; known are none"),
        (["clean", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (
            ["run", "quick-check", "--only", "x"],
            "nothing in study 'quick-check' with 10 runs is called 'x'; a task is called, for "
            "example, 'quick-check/easy/easy/gap-1/run-0', and a part 'quick-check/easy/easy/gap-1/"
            "run-0/IR/0.0'",
        ),
        (
            ["run", "quick-check", "--only", f"{TASK}/IRR/0.5"],
            f"unknown part of {TASK}: 'IRR/0.5'; did you mean 'IR/0.5'",
        ),
        (["run", "quick-check", "--only", f"{TASK}/IR/9"], "'IR/3.5' and 60 more\n"),
        (
            ["run", "quick-check", "--only", f"{TASK}/IR/0.5", "--workers", "2"],
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
        (["reproduc"], "unknown command: 'reproduc'; did you mean 'reproduce'? (`gvf --help` "),
        (["--versoin"], "unknown option: '--versoin'; did you mean '--version'? Known are "),
        (
            ["run", "quick-check", "--dryrun"],
            "unknown option: '--dryrun'; did you mean '--dry-run'?",
        ),
        (
            ["list", "--protocol=papr"],
            "unknown --protocol: 'papr'; did you mean 'paper'? Known are ",
        ),
        (["list", "all", "of", "them"], "too many arguments: all of them\n"),
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
    assert main(["run", "mine.toml"]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert not (tmp_path / "gvf-results").exists()


TIMES = r"\d+ s \(\d+ s of processor time\)"


def test_what_was_done_now_and_what_before_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for runs, told in (
        (1, rf"3 tasks done in {TIMES}"),
        (1, r"all 3 tasks done before \(\d+ s of processor time\)"),
        (2, rf"3 of 6 tasks done before \(\d+ s of processor time\); 3 done now in {TIMES}"),
    ):
        assert main(["run", "quick-check", "--runs", str(runs)]) == 0
        line = rf"quick-check: {told}; results in gvf-results/results/quick-check/paper-\w+\n"
        assert re.fullmatch(line, capsys.readouterr().out)


def test_a_task_alone_is_the_same_file_in_the_same_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for told in (rf"done in {TIMES}", r"done before \(\d+ s of processor time\)"):
        assert main(["run", "quick-check", "--only", TASK]) == 0
        line = rf"{TASK}: {told}; results in gvf-results/results/quick-check/paper-\w+\n"
        assert re.fullmatch(line, capsys.readouterr().out)
    alone = digests(tmp_path / "gvf-results")
    assert len(alone) == 1
    assert main(["run", "quick-check", "--runs", "4", "--out", "whole"]) == 0
    assert alone.items() <= digests(tmp_path / "whole").items()


def test_a_part_alone_is_printed_and_not_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "quick-check", "--only", f"{TASK}/IS/0.5"]) == 0
    told = re.findall(r"^(\w+): ([-+.e\d ]+) \(.*\)$", capsys.readouterr().out, re.MULTILINE)
    assert not (tmp_path / "gvf-results").exists()
    assert main(["run", "quick-check", "--only", TASK]) == 0
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
    assert main(["run", str(toml), "--only", "sweep/hard/hard/run-1/BC-IR"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "iteration l1 (variance of the update's L1 norm) l2 (variance of its L2 norm) "
        "scalar (variance of its signed sum)"
    )
    study = load(toml)
    assert isinstance(study, VarianceStudy)
    expected = run_variance(study.part("sweep/hard/hard/run-1/BC-IR"))["BC-IR"]
    printed = [[float(number) for number in line.split()] for line in lines[1:]]
    assert printed == [[0, *expected[0]], [7, *expected[1]]]


def test_a_damaged_file_is_a_line_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quick-check", "--runs", "1"]) == 0
    path = next(Path().glob("gvf-results/**/hard/**/run-0.parquet"))
    path.write_bytes(b"")
    capsys.readouterr()
    assert main(["run", "quick-check", "--runs", "1"]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(
        r"gvf: warning: \S*run-0.parquet is damaged \(.*\); it is set aside .*\n", err
    )
    assert "2 of 3 tasks done before (" in out
    assert "; 1 done now in " in out


def test_the_list_counts_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quick-check", "--runs", "1"]) == 0
    capsys.readouterr()
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(catalogue.CATALOGUE)
    assert all(len(line) <= 100 for line in lines)
    assert re.search(r"^quick-check +3/30 +68 ", lines[-1])
    assert main(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(catalogue.CATALOGUE)
    assert (rows[-1]["done"], rows[-1]["tasks"], rows[-1]["rows"]) == (3, 30, 68)


def test_the_list_has_files_of_this_folder_and_whatever_has_results(
    toml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = tmp_path / "elsewhere" / "away.toml"
    away.parent.mkdir()
    away.write_text(as_toml(STUDY.with_(runs=2, steps=1000)))
    assert main(["run", str(away), "--runs", "1"]) == 0
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n")
    Path("broken.toml").write_text('domain = "four-rooms"\nmethods = ["XY"]\n')
    capsys.readouterr()
    assert main(["list"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()[1 + len(catalogue.CATALOGUE) :]
    methods = "IR, IS, WIS-Optimal, Sarsa in four-rooms"
    assert [line.split(maxsplit=3) for line in lines] == [
        ["sweep.toml", "0/30", "16", methods], ["away", "2/2", "16", methods],
    ]  # fmt: skip
    assert re.fullmatch(r"gvf: broken.toml is left out: \S+: unknown method: 'XY'; .*\n", err)
    assert main(["show", "away"]) == 0
    assert as_toml(STUDY.with_(runs=1, steps=1000)) in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@pytest.mark.parametrize("name", catalogue.CATALOGUE)
def test_what_show_prints_can_be_run(
    name: str, protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", name, "--protocol", protocol]) == 0
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
    assert main(["run", name, "--dry-run", "--runs", "2"]) == 0
    told = capsys.readouterr().out
    assert re.search(r": \d tasks of \d+ rows, 0 done already\n", told)
    assert re.search(r"to do: \d, about \d+ s with \d at once \(by a short probe\)\n", told)
    assert not (tmp_path / "gvf-results").exists()
    assert main(["run", name, "--runs", "1"]) == 0
    assert main(["run", name, "--dry-run", "--runs", "2"]) == 0
    assert "(by those done before)" in capsys.readouterr().out


def test_costs_follow_the_gap(tmp_path: Path) -> None:
    run(STUDY.with_(runs=3), tmp_path)
    known, logged = costs(Store(STUDY, tmp_path))
    assert logged
    assert known.total({1: 1}) > known.total({4: 1}) > 0
    assert Costs().total({1: 2, 4: 3}) == 5


def test_the_remaining_time_is_that_of_the_work_left(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = list(STUDY.with_(runs=2).tasks())
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr("gvf.study.progress.time.perf_counter", lambda: next(clock))
    account = Account(tasks)
    account.add(tasks[0], 4.0)
    assert account.remaining == pytest.approx(30.0)
    account.add(tasks[1], 1.0)
    assert account.remaining == pytest.approx(30.0)


def test_counts_begin_with_what_was_done_before(monkeypatch: pytest.MonkeyPatch) -> None:
    run(STUDY.with_(runs=2), "out")
    accounts = []

    class Told(Account):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            accounts.append((self, self.done, self.tasks))

    monkeypatch.setattr("gvf.study.progress.Account", Told)
    again = run(STUDY.with_(runs=3), "out")
    ((account, before, tasks),) = accounts
    assert (before, account.done, tasks) == (4, 6, 6)
    assert (again.skipped, again.done) == (4, 2)
    logged = spent(Store(STUDY, "out"))
    assert again.cpu_seconds + again.cpu_seconds_before == pytest.approx(sum(logged.values()), 0.01)


def test_the_bar_labels_its_times_and_counts_what_was_done_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(STUDY.with_(runs=2), "out")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    run(STUDY.with_(runs=15), "out", workers=1)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r"sweep \S+ +4/30 0:00:0\d elapsed, first tasks at work", shown)
    assert re.search(r"\d+/30 0:00:\d\d elapsed, \S+ tasks/\w+, about .* left", shown)


def test_a_bar_of_any_loop_labels_its_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar() as shown:
        list(shown.track(range(3), description="counting"))
    told = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r"counting \S+ 3/3 0:00:00 elapsed, 0:00:00 left", told)


def test_clean_asks_and_deletes_results_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["run", "quick-check", "--runs", "1"])
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
            assert main(["clean", "quick-check"]) == 0
        assert len(digests(tmp_path / "gvf-results")) == left
    assert "quick-check in gvf-results: 5 files, " in capsys.readouterr().out
    left = [path for path in (tmp_path / "gvf-results").glob("**/*") if path.is_file()]
    assert sorted(left) == kept
    assert main(["clean"]) == 0
    assert "nothing to delete" in capsys.readouterr().out


def test_clean_takes_a_file_and_deletes_what_it_made(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = STUDY.with_(runs=1, steps=1000)
    toml.write_text('name = "other"\n' + as_toml(few))
    assert main(["run", str(toml)]) == 0
    assert main(["run", "quick-check", "--runs", "1"]) == 0
    assert Path("gvf-results/results/other").exists()
    capsys.readouterr()
    assert main(["clean", str(toml), "--yes"]) == 0
    assert capsys.readouterr().out.startswith("other in gvf-results: 4 files, ")
    for folder in ("results", "logs"):
        assert [path.name for path in Path("gvf-results", folder).iterdir()] == ["quick-check"]
    assert main(["clean", str(toml)]) == 2
    assert (
        "no results of 'other' in gvf-results; known are 'quick-check'" in capsys.readouterr().err
    )


@needs_posix
def test_nobody_reading_on_is_no_error() -> None:
    command = f"{sys.executable} -m gvf list | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
