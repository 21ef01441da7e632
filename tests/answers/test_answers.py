"""Answers: what is learned, judged and written; stopping and going on; engines."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain_logs import QUESTION, STATES, values, walks, write

import gvf
from gvf.answers import answer, cells, load, prepare
from gvf.answers import write as write_files
from gvf.answers.cell_jobs import CellJobs
from gvf.answers.cells import Cell
from gvf.cli import main
from gvf.jobs import RayCluster, Store, Threads
from gvf.judging.held_out import side_by_side

ALONE: Any = {"workers": 1, "progress": False}


@pytest.fixture
def asked(folder: Path):
    """The material of the question."""
    return prepare(load(folder / "asked.toml"), folder / "log.parquet", quiet=True)


def test_the_answer_is_near_the_truth_and_the_intervals_have_it(tmp_path: Path) -> None:
    write(tmp_path / "log.parquet", walks(120, seed=1))
    (tmp_path / "asked.toml").write_text(QUESTION.replace("epochs = 4\n", ""))
    found = answer(
        load(tmp_path / "asked.toml"), tmp_path / "log.parquet", tmp_path, quiet=True, **ALONE
    )
    (one,) = found.answers
    assert not one.remarks
    assert one.epochs is not None
    predicted, low, high = one.predict(np.arange(STATES))
    truth = values()
    assert np.abs(predicted - truth).max() < 0.15
    assert (low < high).all()
    # Five intervals of 95 % with known coverage would all hold 77 times in 100; this seed does.
    assert ((low <= truth) & (truth <= high)).all()
    assert f"{one.method}, step size {one.step_size}" == one.judgement.best.name
    assert one.judgement.constant.difference.low > 0
    assert one.ratios.window == len(found.material.log)


def test_held_out_episodes_are_not_learned_from(asked) -> None:
    cell = Cell("judge", 0, "IR", None, 1)
    held, candidates = cells.held_out(cells.compute(cell, asked))
    part = cells.folds(asked)
    assert np.abs(np.bincount(part) - len(part) / 2).max() <= 0.5
    rest = asked.log.select(np.flatnonzero(part != 1))
    learner = gvf.Learner(
        asked.questions[0],
        gvf.features.OneHot(STATES),
        gvf.updates.TD([0.02, 0.2]),
        gvf.corrections.IR(),
        window=len(asked.log),
        seed=np.random.SeedSequence(0, spawn_key=(2,)),
    )
    learner.fit(rest, epochs=4, seed=0, progress=False)
    out = asked.log.select(np.flatnonzero(part == 1)).transitions()
    np.testing.assert_array_equal(held.predicted, learner.predict(out.state))
    np.testing.assert_array_equal(held.cumulant, out.reward)
    assert [one.name for one in candidates] == ["IR, step size 0.02", "IR, step size 0.2"]


def test_the_judgement_joins_corrections_and_parts(found, asked) -> None:
    alone = [
        cells.held_out(cells.compute(Cell("judge", 0, name, None, 0), asked))
        for name in ("IR", "IS")
    ]
    held, candidates = side_by_side(alone)
    for at, (own, _) in enumerate(alone):
        np.testing.assert_array_equal(held.predicted[:, 2 * at : 2 * at + 2], own.predicted)
        np.testing.assert_array_equal(held.after[:, 2 * at : 2 * at + 2], own.after)
    assert [one.learner for one in candidates] == ["IR", "IR", "IS", "IS"]
    names = {score.name for score in found.answers[0].judgement.scores}
    assert names == {
        *(f"{name}, step size {size}" for name in ("IR", "IS") for size in (0.02, 0.2)),
        "a constant",
    }
    assert found.answers[0].judgement.episodes == 120
    assert found.answers[0].judgement.states == len(found.material.log)


def test_the_intervals_are_those_of_the_bootstrap(found) -> None:
    (one,) = found.answers
    learner = cells.learner(found.material, 0, one.method, one.step_size)
    assert isinstance(learner, gvf.Learner)
    expected = gvf.bootstrap(
        learner, found.material.log, replicates=39, epochs=4, seed=0, progress=False
    )
    np.testing.assert_array_equal(one.intervals.weights, expected.weights)
    states = np.arange(STATES)
    for a, b in zip(one.intervals.predict(states), expected.predict(states), strict=True):
        np.testing.assert_array_equal(a, b)


def test_replicates_do_not_depend_on_their_cells(asked) -> None:
    whole = cells.compute(Cell("replicates", 0, "IR", 0.02, 0, 6), asked)
    parts = [cells.compute(Cell("replicates", 0, "IR", 0.02, at, 3), asked) for at in (0, 3)]
    np.testing.assert_array_equal(
        whole["weights"], np.concatenate([part["weights"] for part in parts], axis=1)
    )


def test_predictions_have_a_row_for_each_step(found, folder: Path) -> None:
    table = pq.read_table(folder / "out" / "predictions.parquet")
    assert table.column_names == [
        "question", "verdict", "episode", "row", "step", "obs", "prediction", "low", "high",
    ]  # fmt: skip
    whole = found.material.log.transitions()
    columns = {name: table[name].to_numpy() for name in table.column_names[2:]}
    np.testing.assert_array_equal(columns["row"], np.arange(len(whole)))
    np.testing.assert_array_equal(columns["episode"], whole.episode)
    np.testing.assert_array_equal(columns["obs"], whole.state)
    starts = np.flatnonzero(np.diff(whole.episode, prepend=-1))
    assert (columns["step"][starts] == 0).all()
    assert (np.diff(columns["step"])[np.diff(whole.episode) == 0] == 1).all()
    predicted, low, high = found.answers[0].predict(whole.state)
    for name, expected in (("prediction", predicted), ("low", low), ("high", high)):
        np.testing.assert_array_equal(columns[name], expected)
    assert set(table["question"].to_pylist()) == {"goes right"}


def test_batches_of_a_log_make_no_difference(
    found, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gvf.answers.write_answer import write_predictions

    monkeypatch.setattr("gvf.log.tables.BATCH", 100)
    again = prepare(found.plan, folder / "log.parquet", quiet=True)
    assert len(list(again.log)) > 5
    assert again.digest == found.material.digest
    np.testing.assert_array_equal(again.ratios, found.material.ratios)
    write_predictions(replace(found, material=again), tmp_path / "again.parquet")
    expected = pq.read_table(folder / "out" / "predictions.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(expected)


def test_the_learner_is_read_back_and_learns_on(found, folder: Path) -> None:
    learner = gvf.load(folder / "out" / "goes-right.gvf")
    states = np.arange(STATES)
    np.testing.assert_array_equal(learner.predict(states), found.answers[0].learner.predict(states))
    learner.fit(found.material.log, progress=False)


def content(folder: Path) -> dict[str, bytes]:
    """The files of an answer, less the page, whose pictures need no test of their bytes here."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".parquet", ".gvf")
    }


def test_an_answer_goes_on_where_it_was_stopped_with_the_same_bits(
    found, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, log = load(folder / "asked.toml"), folder / "log.parquet"
    done, real = [], cells.compute

    def stopping(cell, *rest):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(cell)
        return real(cell, *rest)

    monkeypatch.setattr("gvf.answers.cell_jobs.compute", stopping)
    with pytest.raises(KeyboardInterrupt):
        answer(plan, log, tmp_path / "out", quiet=True, **ALONE)
    assert len(content(tmp_path / "out")) == 3
    first = list(done)
    done.clear()
    monkeypatch.setattr(
        "gvf.answers.cell_jobs.compute",
        lambda cell, *rest: (done.append(cell), real(cell, *rest))[1],
    )
    made = answer(plan, log, tmp_path / "out", workers=3, progress=False, quiet=True)
    write_files(made, tmp_path / "out")
    assert content(tmp_path / "out") == content(folder / "out")
    assert not {*first} & {*done}
    done.clear()
    answer(plan, log, tmp_path / "out", quiet=True, **ALONE)
    assert done == []


def test_a_damaged_cell_is_computed_again(
    found, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    material = found.material
    store = Store(folder / "out" / "cells")
    jobs = CellJobs(material, store, Threads(1), progress=False)
    cell = Cell("judge", 0, "IR", None, 0)
    path = store.path(jobs.job(cell))
    before = path.read_bytes()
    path.write_bytes(before[:1000])
    jobs.run([cell], "")
    assert "is damaged or incomplete; it is set aside" in capsys.readouterr().err
    assert path.read_bytes() == before
    shutil.rmtree(folder / "out" / "cells" / "damaged")


def test_a_cell_belongs_to_what_it_depends_on(asked, tmp_path: Path) -> None:
    cell = Cell("judge", 0, "IR", None, 0)

    def digest(material=asked, **changed: object) -> str:
        material = replace(material, plan=replace(asked.plan, **changed))
        return CellJobs(material, Store(tmp_path), Threads()).job(cell).digest

    before, plan = digest(), asked.plan
    named = replace(plan.questions[0], name="another name")
    longer = replace(plan.questions[0], continuation=0.8)
    same = [{"questions": (named,)}, {"replicates": 19}, {"methods": ("IR", "BC-IR")}]
    assert {digest(**changed) for changed in same} == {before}
    others = [
        {"questions": (longer,)}, {"seed": 1}, {"folds": 3}, {"step_sizes": (0.1,)},
        {"learn": {**plan.learn, "epochs": 5}}, {"features": {**plan.features, "states": 6}},
        {"behaviour": {"kind": "estimated"}},
    ]  # fmt: skip
    digests = {digest(**changed) for changed in others}
    assert len(digests) == len(others)
    assert before not in digests
    assert digest(replace(asked, digest="x")) != before


@pytest.mark.parametrize("method", ["LSTD", "ExpectedSarsa"])
def test_methods_without_step_sizes_or_ratios(folder: Path, tmp_path: Path, method: str) -> None:
    given = {"LSTD": '"LSTD"', "ExpectedSarsa": '"Expected Sarsa"'}[method]
    (tmp_path / "asked.toml").write_text(QUESTION.replace('["IR", "IS"]', f"[{given}]"))
    made = answer(
        load(tmp_path / "asked.toml"), folder / "log.parquet", tmp_path / "out", quiet=True, **ALONE
    )
    write_files(made, tmp_path / "out")
    (one,) = made.answers
    predicted, low, high = one.predict(np.arange(STATES))
    assert np.abs(predicted - values()).max() < 0.2
    assert (low < high).all()
    assert (one.step_size is None) == (method == "LSTD")
    told = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    drawn = "Squared errors of corrections against step sizes" in told
    assert drawn == (method != "LSTD")  # one correction without a step size makes no curve
    learner = gvf.load(tmp_path / "out" / "goes-right.gvf")
    np.testing.assert_array_equal(learner.predict(np.arange(STATES)), predicted)


def test_estimated_ratios_are_said_everywhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = QUESTION + '[behaviour]\nkind = "estimated"'
    (tmp_path / "asked.toml").write_text(text)
    out = tmp_path / "out"
    arguments = [str(folder / "log.parquet"), str(tmp_path / "asked.toml")]
    assert main(["learn", *arguments, "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "ratios ESTIMATED: the behaviour was fitted to the log" in told
    page = (out / "report.html").read_text("utf-8")
    assert "The ratios are estimated." in page
    assert "The estimated behaviour" in page
    assert gvf.load(out / "goes-right.gvf").report().estimated
    assert main(["diagnose", *arguments, "--out", str(tmp_path / "d.html")]) == 0
    assert "ESTIMATED" in capsys.readouterr().out
    assert "The ratios are estimated." in (tmp_path / "d.html").read_text("utf-8")


def test_a_log_beyond_memory_is_answered_without_intervals(folder: Path, tmp_path: Path) -> None:
    log = gvf.read_log(folder / "log.parquet", in_memory=False, quiet=True)
    made = answer(load(folder / "asked.toml"), log, tmp_path / "out", quiet=True, **ALONE)
    write_files(made, tmp_path / "out")
    assert made.answers[0].intervals is None
    assert "larger than memory, so there are no intervals" in (
        tmp_path / "out" / "report.html"
    ).read_text("utf-8")


@pytest.mark.slow
def test_ray_gives_the_same_bits(found, folder: Path, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    plan, log = load(folder / "asked.toml"), folder / "log.parquet"
    place = RayCluster(workers=2)
    try:
        made = answer(plan, log, tmp_path / "out", workers=place, progress=False, quiet=True)
    finally:
        ray.shutdown()
    write_files(made, tmp_path / "out")
    assert content(tmp_path / "out") == content(folder / "out")


def test_an_interrupt_ends_the_command_in_one_line_and_keeps_what_is_done(tmp_path: Path) -> None:
    write(tmp_path / "log.parquet", walks(400))
    text = QUESTION.replace("epochs = 4", "epochs = 400")
    (tmp_path / "asked.toml").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "gvf", "learn", "log.parquet", "asked.toml", "--out", "out"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("out/cells/*.gvf")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines()[-1] == ("gvf: stopped; what is done is kept: the same command goes on")
    kept = list(tmp_path.glob("out/*"))
    assert [path.name for path in kept] == ["cells"]
    assert not list(tmp_path.glob("out/cells/.gvf*"))


def test_the_shipped_example_is_the_file_of_its_script(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples" / "logs"
    subprocess.run(
        [sys.executable, str(examples / "make_log.py"), str(tmp_path / "again.parquet")], check=True
    )
    assert (examples / "cartpole.parquet").stat().st_size < 200_000
    again, shipped = (
        pq.read_table(path) for path in (tmp_path / "again.parquet", examples / "cartpole.parquet")
    )
    assert again.equals(shipped)


def test_the_shipped_example_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With less work than it asks for, to save time."""
    examples = Path(__file__).parents[2] / "examples" / "logs"
    text = (examples / "question.toml").read_text()
    small = text.replace('"IR", "WIS-Minibatch", "IS"]', '"IR"]\nepochs = 16')
    assert small != text
    small += "\n[judge]\nfolds = 2\n[intervals]\nreplicates = 19\n"
    (tmp_path / "question.toml").write_text(small)
    out = str(tmp_path / "out")
    log = str(examples / "cartpole.parquet")
    assert main(["learn", log, str(tmp_path / "question.toml"), "--out", out]) == 0
    told = capsys.readouterr().out
    assert "a steady hand: " in told
    assert "mostly to the right: " in told
    files = sorted(path.name for path in Path(out).iterdir() if path.is_file())
    assert files == [
        "a-steady-hand.gvf", "mostly-to-the-right.gvf", "predictions.parquet", "report.html",
    ]  # fmt: skip


def test_questions_of_similar_names_have_files_of_their_own(found, tmp_path: Path) -> None:
    from gvf.answers.write_answer import file_names

    one = found.answers[0]
    names = ["a b", "a/b", "a-b", "???"]
    several = [replace(one, question=replace(one.question, name=name)) for name in names]
    listed = file_names(replace(found, answers=tuple(several)))
    assert listed == ["a-b.gvf", "a-b-2.gvf", "a-b-3.gvf", "question.gvf"]


OWN = """
import numpy as np
def mostly_right(states):
    return np.tile([0.3, 0.7], (len(states), 1))
def left_the_chain(t):
    return t.terminated * (t.action == 1)
"""


@pytest.mark.usefixtures("own_modules")
def test_code_of_the_users_own_is_trusted_by_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "signals.py").write_text(OWN)
    text = QUESTION.replace(
        'policy = {kind = "favour", action = 1, probability = 0.7}',
        'policy = "signals:mostly_right"\ncumulant = "signals:left_the_chain"',
    )
    (tmp_path / "asked.toml").write_text(text)
    arguments = [str(folder / "log.parquet"), "asked.toml", "--out", "out"]
    assert main(["learn", *arguments]) == 2
    assert not Path("out").exists()
    assert main(["learn", *arguments, "--trust"]) == 0
    learner = gvf.load("out/goes-right.gvf", trust=["signals"])
    assert np.abs(learner.predict(np.arange(STATES)) - values()).max() < 0.2
    # Cells belong to the code: another function makes others.
    kept = {path.name for path in Path("out/cells").iterdir()}
    (tmp_path / "signals.py").write_text(OWN.replace("[0.3, 0.7]", "[0.35, 0.65]"))
    del sys.modules["signals"]
    assert main(["learn", *arguments, "--trust"]) == 0
    now = {path.name for path in Path("out/cells").iterdir()}
    assert kept < now
    assert len(now) == 2 * len(kept) - 1  # of the two, one is the version
