"""Studies with users' own domains, corrections and files, and with bad input."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from own_corrections import FollowOn, SquareRoot
from test_run import digests

import gvf
from gvf import domain as domains
from gvf.cli import main
from gvf.domain import Domain, Signals, Trajectory
from gvf.report.study import plot
from gvf.study import Method, Results, Store, Study, VarianceStudy, load, run, run_task
from gvf.study.encoding import checksum
from gvf.study.toml import as_toml

EXAMPLES = Path(__file__).parents[1] / "examples" / "studies"
QUICK = ["steps=300", "warm_up=50", "evaluation_states=4", "gaps=[4]", "step_sizes=[0.1, 0.4]"]
"""The examples, in a second or two."""


@pytest.fixture(autouse=True)
def apart(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "open-studies"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# Methods


@pytest.mark.parametrize(
    ("given", "name", "made"),
    [
        ("IR", "IR", gvf.IR()),
        ("V-trace(0.5 max)", "V-trace(0.5 max)", gvf.VTrace(4.0)),
        ("V-trace(0.25)", "V-trace(0.25)", gvf.VTrace(0.25)),
        ("VTrace(clip=0.25 max)", "V-trace(0.25 max)", gvf.VTrace(2.0)),
        ("VTrace", "V-trace(1.0)", gvf.VTrace(1.0)),
        ({"correction": "VTrace", "clip": 3}, "V-trace(3.0)", gvf.VTrace(3.0)),
        ({"correction": "VTrace", "clip": "max"}, "V-trace(max)", gvf.VTrace(8.0)),
        ({"correction": "IR", "update": "tdrc"}, "IR+tdrc", gvf.IR()),
        ({"correction": "IR", "update": {"rule": "tdc", "ratio": 0.5}}, "IR+tdc(0.5)", gvf.IR()),
        ({"correction": "IS", "name": "plain", "colour": "#123456"}, "plain", gvf.IS()),
        ("own_corrections:SquareRoot", "SquareRoot", SquareRoot()),
        (SquareRoot(), "SquareRoot", SquareRoot()),
        (SquareRoot, "SquareRoot", SquareRoot()),
        (gvf.Interpolated(0.3), "Interpolated(0.3)", gvf.Interpolated(0.3)),
    ],
)
def test_a_method_is_meant_in_many_ways(given, name, made):
    method = Method.of(given)
    assert method.name == name
    assert method.make(8.0) == made
    assert Method.of(method.plain()) == method
    assert Method.of(json.loads(json.dumps(method.plain()))) == method


@dataclass(frozen=True)
class Local(gvf.Correction):
    weigh = gvf.IS.weigh


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("WISS-Minibatch", "unknown method: 'WISS-Minibatch'; did you mean 'WIS-Minibatch'"),
        ("V-trace(x)", "'x' is not a number"),
        ("V-trace(1, 2)", "has the parameters"),
        ({"clip": 1.0}, "a method needs a correction"),
        ({"correction": "VTrace", "klip": 1.0}, "parameter of VTrace: 'klip'; did you mean 'clip'"),
        ({"correction": "VTrace", "clip": "half"}, "share of the largest ratio"),
        ({"correction": "VTrace", "clip": True}, "clip must be a number"),
        ({"correction": "VTrace", "clip": -1.0}, "VTrace: clip must be"),
        ({"correction": "NormIS"}, "needs its parameter 'max_ratio'"),
        ({"correction": "IR", "update": "tdr"}, "unknown update: 'tdr'; did you mean 'tdrc'"),
        ({"correction": "IR", "name": 3}, "name of a method must be text"),
        ("nowhere:SquareRoot", "there is no module 'nowhere'"),
        ("own_corrections:SquareRoots", "no 'SquareRoots'; did you mean 'SquareRoot'?"),
        ("own_corrections:np", "not a subclass of gvf.Correction"),
        (3, "a method is a name"),
    ],
)
def test_what_is_no_method_is_told(given, told):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (looked at below)
        Method.of(given)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_class_that_workers_could_not_find_is_refused():
    @dataclass(frozen=True)
    class Inside(gvf.Correction):
        weigh = gvf.IS.weigh

    assert Method.of(Local()).make(1.0) == Local()
    with pytest.raises(ValueError, match="define it at the top of a module"):
        Method.of(Inside())


def test_names_of_methods_must_not_clash():
    given = {"domain": "markov-chain", "step_sizes": (1.0,), "updates": 5}
    with pytest.raises(ValueError, match="two are called 'IR'; give one of them a name"):
        Study("s", methods=("IR", {"correction": "IS", "name": "IR"}), **given)
    with pytest.raises(ValueError, match="methods has something twice: 'IR'"):
        Study("s", methods=("IR", {"correction": "IR"}), **given)
    with pytest.raises(ValueError, match="methods must name at least one"):
        Study("s", methods=(), **given)
    with pytest.raises(ValueError, match="masses that change as it learns"):
        Study("s", methods=("own_corrections:Prioritised(0.5)",), **given)


def test_a_method_of_ones_own_gives_the_same_as_what_it_equals():
    study = Study(
        "s", "four-rooms", (SquareRoot(), "Interpolated(0.5)", {"correction": "IR", "name": "x"}),
        (0.5,), pairs=(("down", "random-state"),), steps=500, window=200, gaps=(4,), runs=1,
    )  # fmt: skip
    root, half, other = run_task(next(study.tasks()))
    np.testing.assert_allclose(root.error, half.error, rtol=1e-9)
    assert other.method == "x"
    assert abs(other.error[0] - half.error[0]) > 1e-4


def test_a_study_survives_being_written_to_a_file():
    study = Study(
        "mine", "markov-chain",
        ("IR", {"correction": "VTrace", "clip": "0.3 max"}, SquareRoot(),
         {"correction": "IR", "update": {"rule": "tdc", "ratio": 0.5}, "colour": "#123456"}),
        (0.5, 1.0), updates=20, runs=2,
    )  # fmt: skip
    assert load(write("mine.toml", as_toml(study))) == study


# Worlds


class Weighted(Domain):
    """Three states that lead anywhere; the first counts most."""

    name = "weighted"
    behaviours = {"uniform": gvf.Uniform(2)}  # noqa: RUF012
    questions = {"left": gvf.GVF(gvf.Fixed([0.8, 0.2]), "reward", 0.5)}  # noqa: RUF012
    pairs = (("left", "uniform"),)
    features, initial_weights = gvf.OneHot(3), np.zeros(3)
    counts: np.ndarray | None = np.array([4.0, 1.0, 0.0])
    active = False

    def walk(self, policy, questions, steps, seed):
        rng = np.random.default_rng(seed)
        state = rng.integers(3, size=steps + 1)
        action, mu = policy.act(state[:-1], rng=rng)
        seen = gvf.Transitions(
            state=state[:-1], action=action, reward=state[1:], behaviour_probability=mu
        )
        here = state[:-1] != 1 if self.active else None
        signals = {}
        for name in questions:
            ratio, cumulant, continuation = self.questions[name].evaluate(seen)
            ratio = ratio if here is None else np.where(here, ratio, 0.0)
            signals[name] = Signals(ratio, cumulant, continuation, here)
        x, x_next = self.features(state[:-1]), self.features(state[1:])
        return Trajectory(x, x_next, action, state[1:], signals)

    def truth(self, question, behaviour, *, states=3, seed=0):
        return gvf.TrueValues(np.arange(3), np.full(3, 2.0), np.zeros(3), self.counts)


class Alike(Weighted):
    name, counts = "alike", None


class Partly(Weighted):
    name, counts, active = "partly", np.array([1.0, 0.0, 1.0]), True


GRID = {"methods": ("IR", "IS"), "step_sizes": (0.5,), "steps": 400, "window": 100, "runs": 1}


@pytest.mark.parametrize("error", ["absolute", "root mean square"])
def test_states_count_as_much_as_the_truth_says(error):
    """The error with weights 4, 1 and 0 is that over four copies of the first and one second."""

    class Copies(Weighted):
        name, counts = "copies", None

        def truth(self, question, behaviour, *, states=3, seed=0):
            return gvf.TrueValues(np.array([0, 0, 0, 0, 1]), np.full(5, 2.0), np.zeros(5))

    study = Study("s", "test_open_studies:Weighted", error=error, **GRID)
    task = next(study.tasks())
    weighted = run_task(task)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domains, "get", lambda name, protocol="paper": Copies())
        copies = run_task(task)
        patch.setattr(domains, "get", lambda name, protocol="paper": Alike())
        alike = run_task(task)
    for one, same, other in zip(weighted, copies, alike, strict=True):
        np.testing.assert_allclose(one.error, same.error, rtol=1e-12)
        np.testing.assert_allclose(one.curve, same.curve, rtol=1e-12)
        assert abs(one.error - other.error).min() > 1e-3


def test_nothing_is_learned_where_a_question_is_not_asked():
    study = Study("s", "test_open_studies:Partly", **GRID)
    from gvf.study.task import SharedInputs

    bench = SharedInputs(next(study.tasks()))
    asked = bench.off_policy.signals["left"]
    assert asked.active is not None
    assert 0 < asked.active.mean() < 1
    drawn = bench.draws(gvf.IR())
    assert asked.active[drawn.rows[drawn.rows >= 0]].all()
    assert all(np.isfinite(outcome.error).all() for outcome in run_task(next(study.tasks())))
    for method in ("Sarsa", {"correction": "OnPolicy", "name": "as if on-policy"}):
        with pytest.raises(ValueError, match="not asked in every state"):
            run_task(next(study.with_(methods=(method,)).tasks()))


def test_a_world_is_found_by_reference_by_entry_point_and_by_id(monkeypatch):
    assert domains.get("test_open_studies:Weighted").name == "weighted"
    points = [EntryPoint("my-world", "test_open_studies:Alike", "gvf.domains")]
    monkeypatch.setattr(
        domains, "entry_points",
        lambda group, name=None: [p for p in points if name in (None, p.name)],
    )  # fmt: skip
    assert domains.get("my-world").name == "alike"
    assert "'my-world'" in told_by(domains.get, "my-wrld")
    assert domains.get("FrozenLake-v1").name == "FrozenLake-v1"
    assert run(Study("s", "my-world", **GRID), "out").done == 1


def test_what_is_carried_begins_anew_where_an_episode_is_cut():
    from gvf.correction.trace import carried
    from gvf.domain import GymnasiumDomain

    world = GymnasiumDomain("CartPole-v1", arguments={"max_episode_steps": 7})
    path = world.walk(world.behaviour("uniform"), ["favour-0"], 40, np.random.SeedSequence(0))
    asked = path.signals["favour-0"]
    assert path.ended is not None
    assert path.ended.nonzero()[0].tolist() == [6, 13, 20, 27, 34]
    trace = carried(FollowOn(), asked.ratio, asked.continuation, path.ended)[1]
    begins = np.concatenate([[0], path.ended.nonzero()[0] + 1])
    np.testing.assert_array_equal(trace[begins], 1.0)
    assert (carried(FollowOn(), asked.ratio, asked.continuation)[1][begins[1:]] != 1.0).any()


def told_by(function, *given) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (looked at below)
        function(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Level(Weighted):
    """One dense feature, which is 2 everywhere: the weight 1 is a value of 2."""

    name, counts = "level", None
    features, initial_weights = gvf.Dense(1, lambda s: np.full((len(s), 1), 2.0)), np.ones(1)
    questions = {"left": gvf.GVF(gvf.Fixed([0.8, 0.2]), lambda t: 0 * t.reward + 1.0, 0.5)}  # noqa: RUF012


def test_a_single_dense_feature_counts_with_its_level():
    (outcome,) = run_task(next(Study("s", "test_open_studies:Level", **GRID | ONE).tasks()))
    assert outcome.final[0] == 0.0  # 1 + .5 * 2 = 2, from the start


class Elsewhere(Weighted):
    """Values are known in the first state only; the reward is such that others diverge."""

    name, counts = "elsewhere", None

    def truth(self, question, behaviour, *, states=1, seed=0):
        return gvf.TrueValues(np.zeros(1, np.int64), np.zeros(1), np.zeros(1))

    def walk(self, policy, questions, steps, seed):
        path = super().walk(policy, questions, steps, seed)
        asked = path.signals["left"]
        odd = np.where(path.x[:, 0] == 2, 1e308, 0.0)
        changed = Signals(np.ones(steps), odd, np.zeros(steps), None)
        assert asked.active is None
        return Trajectory(path.x, path.x_next, path.action, path.next_state, {"left": changed})


ONE = {"methods": ({"correction": "OnPolicy", "name": "plain"},), "step_sizes": (1.0,)}


def test_a_lane_that_diverges_where_nobody_looks_has_diverged():
    sizes = {"methods": ({"correction": "OnPolicy", "name": "plain"},), "step_sizes": (0.5, 1e3)}
    study = Study("s", "test_open_studies:Elsewhere", **GRID | sizes)
    (outcome,) = run_task(next(study.tasks()))
    assert np.isfinite(outcome.final[0])
    assert np.isinf(outcome.final[1])


class Redrawn(Weighted):
    """Every run has weights of its own to start with."""

    name = "redrawn"

    def for_run(self, run, seed):
        mine = Redrawn()
        mine.initial_weights = np.full(3, 100.0 * run)
        return mine


def test_a_world_may_differ_from_run_to_run():
    study = Study("s", "test_open_studies:Redrawn", **GRID | {"runs": 2, "step_sizes": (0.0,)})
    first, second = (run_task(task)[0] for task in study.tasks())
    assert (first.final[0], second.final[0]) == (2.0, 98.0)


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


def command(*given: object) -> list[str]:
    return [sys.executable, "-m", "gvf", *map(str, given)]


@pytest.mark.parametrize("name", ["cartpole", "pendulum"])
def test_the_examples_run_are_killed_and_go_on_to_the_same_bits(name, tmp_path):
    toml = example(name)
    assert main(["run", str(toml), "--out", "whole"]) == 0
    whole = digests(Path("whole"))
    assert len(whole) == 3
    process = subprocess.Popen(command("run", toml, "--out", "cut", "--workers", "1"))
    while not list(Path("cut").glob("**/*.parquet")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 1 <= len(digests(Path("cut"))) <= 3
    assert main(["run", str(toml), "--out", "cut", "--workers", "2"]) == 0
    assert digests(Path("cut")) == whole


def test_an_example_is_drawn_by_one_command(capsys):
    toml = example("pendulum")
    assert main(["run", str(toml), "--set", "gaps=[4, 16]"]) == 0
    assert main(["plot", str(toml), "--set", "gaps=[4, 16]"]) == 0
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
    assert main(["report", "gvf-results"]) == 0
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
    given = command("run", toml.resolve(), "--out", tmp_path / "ray", "--engine", "ray")
    done = subprocess.run([*given, "--workers", "2"], cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert main(["run", str(toml), "--out", "threads"]) == 0
    assert digests(tmp_path / "ray") == digests(Path("threads"))
    assert len(digests(Path("threads"))) == 3


# What is stored

CHAIN = Study(
    "chain", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=20, steps=200, points=4, runs=2
)


def test_the_results_folder_is_one_table_for_any_tool():
    run(CHAIN, "out")
    run(VarianceStudy("v", iterations=(0, 5), batches=20, buffer=100, runs=1), "out")
    main(["plot", "chain", "--out", "out"])
    folder = Path("out/results")
    assert {path.suffix for path in folder.glob("**/*") if path.is_file()} == {".parquet"}
    table = ds.dataset(folder, format="parquet").to_table()
    assert table.num_rows == 2 * 3 * 4 + 3 * 8 * 2
    assert set(table["study"].to_pylist()) == {"chain", "v"}
    schemas = {pq.read_schema(path).remove_metadata() for path in folder.glob("**/*.parquet")}
    assert len(schemas) == 1
    row = next(row for row in table.to_pylist() if row["study"] == "chain")
    assert (row["protocol"], row["method"], row["step_size"]) == ("paper", "IR", 0.5)
    assert row["curve_steps"] == [2.5, 7.5, 12.5, 17.5]
    for tool in ("pandas", "polars", "duckdb"):
        read_with(tool, folder, table.num_rows)


def read_with(tool: str, folder: Path, rows: int) -> None:
    try:
        module = __import__(tool)
    except ModuleNotFoundError:
        return
    if tool == "duckdb":
        assert len(module.sql(f"SELECT * FROM '{folder}/**/*.parquet'").fetchall()) == rows
    else:
        assert len(module.read_parquet(str(folder))) == rows


def test_results_are_read_by_their_keys_wherever_rows_stand():
    run(CHAIN, "out")
    store = Store(CHAIN, "out")
    before = Results.read(store)
    for task in CHAIN.tasks():
        path = store.path(task)
        table = pq.read_table(path)
        order = np.random.default_rng(task.run).permutation(table.num_rows)
        shuffled = table.take(order)
        metadata = {**table.schema.metadata, b"gvf.checksum": checksum(shuffled)}
        pq.write_table(shuffled.replace_schema_metadata(metadata), path)
    after = Results.read(store)
    assert list(after.by_method) == list(before.by_method)
    for key, cell in before.by_method.items():
        for name in ("error", "final", "curve", "curve_steps"):
            np.testing.assert_array_equal(after.by_method[key][name], cell[name])


def test_what_does_not_fit_is_named_with_its_reason(capsys):
    text = 'domain = "markov-chain"\nmethods = ["IR"]\nstep_sizes = [0.5]\nupdates = 20\nruns = 1\n'
    assert main(["run", str(write("mine.toml", text))]) == 0
    assert capsys.readouterr().err == ""
    write("mine.toml", text + "points = 7\nseed = 3\n")
    assert main(["run", "mine.toml"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("gvf: note: 3 results in gvf-results/results/mine/paper-")
    assert "points was 100, and is 7 now; seed was 0, and is 3 now" in told
    assert told.count("\n") == 1
    write("mine.toml", text + "batch_size = 3\n")
    assert main(["plot", "mine.toml"]) == 2
    told = capsys.readouterr().err
    assert "there is no finished run of 'mine'" in told
    assert "batch_size was 16, and is 3 now" in told


def test_results_of_other_code_do_not_mix(capsys):
    module = write("my_code.py", (EXAMPLES / "worlds.py").read_text())
    text = 'domain = "markov-chain"\nmethods = [{correction = "my_code:SquareRoot"}]\n'
    toml = write("mine.toml", text + "step_sizes = [0.5]\nupdates = 20\nruns = 1\n")

    def again() -> str:
        done = subprocess.run(command("run", toml), capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    assert "3 tasks done in" in again()
    module.write_text("# A comment.\n\n" + module.read_text())
    assert "all 3 tasks done before" in again()
    module.write_text(module.read_text().replace("/ out.size", "/ out.size / 2"))
    told = again()
    assert "3 tasks done in" in told
    assert "code was" in told


def test_two_modules_of_one_name_are_not_mixed_up():
    text = 'domain = "markov-chain"\nmethods = ["twice_there:SquareRoot"]\nstep_sizes = [1]\n'
    for folder in ("one", "same", "other"):
        write(f"{folder}/twice_there.py", (EXAMPLES / "worlds.py").read_text())
        write(f"{folder}/s.toml", text)
    write("other/twice_there.py", (EXAMPLES / "worlds.py").read_text() + "\nODD = 3\n")
    assert load("one/s.toml").methods == load("same/s.toml").methods == ("square root",)
    told = told_by(load, "other/s.toml")
    assert "another one of that name is in use, from" in told


def test_results_of_an_earlier_layout_are_named():
    old = Path("out/chain/paper-12345678/easy")
    old.mkdir(parents=True)
    (told,) = Store(CHAIN, "out").unfit()
    assert told.startswith("out/chain has results of an earlier version")


def test_a_finished_part_is_drawn_while_the_rest_runs(capsys):
    run(CHAIN, "out", tasks=[task for task in CHAIN.tasks() if task.run == 0])
    write("chain.toml", as_toml(CHAIN))
    assert main(["plot", "chain.toml", "--out", "out"]) == 0
    assert capsys.readouterr().err == "chain: 1 of 2 runs are finished\n"
    assert len(plot(CHAIN, "out")) == 6


def test_the_list_has_the_studies_of_this_folder(capsys):
    write("chain.toml", as_toml(CHAIN))
    write("other.toml", '[tool]\nname = "no study"\n')
    write("broken.toml", 'domain = "nowhere:x"\nmethods = ["IR"]\n')
    run(CHAIN.with_(name="before"), "gvf-results")
    assert main(["list"]) == 0
    told = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1] for line in told.out.splitlines()}
    assert rows["chain.toml"] == "0/6"
    assert rows["before"] == "6/6"
    assert "other.toml" not in rows
    assert told.err.startswith("gvf: broken.toml is left out: ")


def test_another_world_has_other_pairs(capsys):
    assert main(["run", "quick-check", "--set", "domain=star", "--set", "runs=1"]) == 0
    assert main(["show", "quick-check", "--set", "domain=FrozenLake-v1"]) == 2
    assert "WIS-Optimal needs the whole window" in capsys.readouterr().err


def test_a_name_means_the_file_of_this_folder_as_it_is_now(capsys):
    write("mine.toml", as_toml(CHAIN))
    assert main(["run", "mine"]) == 0
    write("mine.toml", as_toml(CHAIN.with_(seed=3)))
    assert main(["show", "mine"]) == 0
    assert "seed = 3" in capsys.readouterr().out
    assert main(["run", "mine"]) == 0
    assert "6 tasks done in" in capsys.readouterr().out
    # The report shows the last, once.
    assert main(["report", "gvf-results"]) == 0
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
    for given in (["run", "sub/mine.toml"], ["plot", "mine"], ["report"], ["list"]):
        done = subprocess.run(command(*given), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "left out" not in done.stderr
    assert "mine " in done.stdout


# Bad input

SANE = {
    "domain": '"markov-chain"', "methods": '["IR"]', "step_sizes": "[0.5]", "updates": "5",
    "runs": "1",
}  # fmt: skip
BAD_WORLDS = """
import gvf
import numpy as np

def boom(): raise RuntimeError("no display")

def no_support(): return gvf.GymnasiumDomain("CartPole-v1",
    behaviours={"left": gvf.Always(0, 2)}, questions={"right": gvf.GVF(gvf.Always(1, 2))})

def endless(): return gvf.GymnasiumDomain("Pendulum-v1",
    questions={"ever": gvf.GVF(gvf.Gaussian(0.0, 1.0), "reward", 1.0)})

def no_cumulant(): return gvf.GymnasiumDomain("CartPole-v1",
    questions={"far": gvf.GVF(gvf.Uniform(2), "distance", 0.9)})

def odd_name(): return gvf.GymnasiumDomain("CartPole-v1",
    questions={"a/b": gvf.GVF(gvf.Uniform(2), "reward", 0.9)})

def pendulum(): return gvf.GymnasiumDomain("Pendulum-v1")

class Short(gvf.Domain):
    name = "short"
    behaviours, questions = {"b": gvf.Uniform(2)}, {"q": gvf.GVF(gvf.Uniform(2))}
    pairs, features, initial_weights = (("q", "b"),), gvf.OneHot(2), np.zeros(2)
    rows = 3
    def walk(self, policy, questions, steps, seed):
        x, ones = np.zeros((self.rows, 1), np.int32), np.ones(steps)
        signals = {"q": gvf.domain.Signals(ones, ones, 0 * ones)}
        return gvf.domain.Trajectory(x, x, np.zeros(steps, int), np.zeros(steps, int), signals)
    def truth(self, question, behaviour, *, states=1, seed=0):
        return gvf.TrueValues(np.arange(2), np.zeros(2), np.zeros(2))

class Raises(Short):
    def walk(self, policy, questions, steps, seed): raise KeyError("sensor")

class Untrue(Short):
    def walk(self, policy, questions, steps, seed):
        self.rows = steps
        return super().walk(policy, questions, steps, seed)
    def truth(self, question, behaviour, *, states=1, seed=0):
        return gvf.TrueValues(np.arange(2), np.zeros(1), np.zeros(2))

table = gvf.domain.TabularDomain(name="t", behaviours={"left": gvf.Always(0, 2)},
    questions={"right": gvf.GVF(gvf.Always(1, 2))}, features=gvf.OneHot(1),
    model=gvf.Model(np.ones((1, 2, 1)), np.zeros((1, 2, 1), int), np.zeros((1, 2, 1)),
                    np.zeros(1, bool)))
"""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"domain": '"CartPol-v1"'}, "unknown domain: 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ({"domain": '"nowhere:x"'}, "there is no module 'nowhere'"),
        ({"domain": '"bad_worlds:nothing"'}, "the module has no 'nothing'"),
        ({"domain": '"bad_worlds:np"'}, "neither a gvf.Domain nor a function that makes one"),
        ({"domain": '"broken_module:x"'}, "cannot be imported: ZeroDivisionError"),
        ({"domain": '"leaves:x"'}, "cannot be imported: SystemExit: 0"),
        ({"domain": '"needs_more:x"'}, "the module needs 'not_installed_at_all'"),
        ({"domain": '"bad_worlds:boom"'}, "no display"),
        ({"domain": '"bad_worlds:no_support"'}, "behaviour 'left' in CartPole-v1"),
        ({"domain": '"bad_worlds:table"'}, "behaviour 'left' never takes action 1"),
        ({"domain": '"bad_worlds:endless"'}, "use a smaller continuation"),
        ({"domain": '"bad_worlds:no_cumulant"'}, "distance"),
        ({"domain": '"bad_worlds:odd_name"'}, "'a/b' cannot be the name of a question"),
        ({"domain": '"gvf/Torcs-v9"'}, "gvf/Torcs-v9"),
        ({"domain": '"bad_worlds:Short"'}, "x of a trajectory must be int32[50, a]"),
        ({"domain": '"bad_worlds:Raises"'}, "KeyError('sensor')"),
        ({"domain": '"bad_worlds:Untrue"'}, "values of the truth must be float64[2]"),
        ({"domain": '"bad_worlds:pendulum"', "methods": '["Sarsa"]'}, "has a continuum of them"),
        ({"domain": '"Pendulum-v1"', "methods": '["Expected Sarsa"]'}, "a continuum of them"),
        ({"methods": '["bad_weights:Below"]'}, "the mass of Below must be from 0"),
        ({"methods": '[{correction = "IR", update = "json:dumps"}]'}, "json:dumps"),
        ({"methods": "[]"}, "methods must name at least one"),
        ({"step_sizes": "[]"}, "IR needs step_sizes"),
        ({"step_sizes": "[0.5, 0.5]"}, "step_sizes has something twice: 0.5"),
        ({"pairs": '[["hard", "nope"]]'}, "unknown behaviour of markov-chain in pairs: 'nope'"),
        ({"methods": '["IR", {correction = "IS", name = "IR"}]'}, "two are called 'IR'"),
        ({"methods": '["ISS"]'}, "did you mean 'IS'"),
        ({"methods": '["bad_weights:Short"]'}, "must write a number into every out[i]"),
        ({"methods": '"IR"'}, "methods must be a list of methods"),
        ({"name": '"logs"'}, "a study cannot be called 'logs'"),
        ({"stepsizes": "[1]"}, "unknown key: 'stepsizes'; did you mean 'step_sizes'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(changes, told, capsys):
    write("bad_worlds.py", BAD_WORLDS)
    write("broken_module.py", "1 / 0\n")
    write("leaves.py", "raise SystemExit(0)\n")
    write("needs_more.py", "import not_installed_at_all\n")
    write(
        "bad_weights.py",
        "from dataclasses import dataclass\nimport gvf\n\n\n@dataclass(frozen=True)\n"
        "class Short(gvf.Correction):\n    @staticmethod\n"
        "    def weigh(inputs, p, means, parameters, out):\n        out[0] = 1.0\n\n\n"
        "@dataclass(frozen=True)\nclass Below(gvf.Correction):\n    weigh = gvf.IS.weigh\n\n"
        "    @staticmethod\n    def mass(inputs, parameters):\n        return -1.0\n",
    )
    given = SANE | changes
    if given["domain"] != SANE["domain"]:
        given |= {"updates": "0", "steps": "100"}
    write("bad.toml", "".join(f"{key} = {value}\n" for key, value in given.items()))
    for name in ("bad_worlds", "bad_weights"):
        sys.modules.pop(name, None)
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]
    assert main(["run", "bad.toml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gvf: ")
    assert captured.err.count("\n") == 1
    assert told in captured.err
    assert not Path("gvf-results").exists()


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
    assert main(["run", "quick-check", "--set", given]) == 2
    assert told in capsys.readouterr().err
    assert not Path("gvf-results").exists()
