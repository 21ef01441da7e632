"""One computation gives the point, the replicates, the interval and the files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain_logs import QUESTION, STATES, walks, write

import gvf
from gvf.answers import answer, cells, load, prepare
from gvf.answers import write as write_files
from gvf.answers.cells import Cell
from gvf.cli import main

ALONE: Any = {"workers": 1, "progress": False}
CORRECTIONS = ("IR", "BC-IR", "IS", "WIS-Minibatch", "WIS-Buffer", "V-trace(1)", "LSTD", "LSTD",
               "Expected Sarsa")  # fmt: skip


def random_question(rng: np.random.Generator) -> str:
    """A question with random settings."""
    correction = str(rng.choice(CORRECTIONS))
    features = rng.choice(['kind = "one-hot"', 'kind = "tiles"\ntiles = 2\ntilings = 3'])
    return f"""
[[question]]
name = "right"
policy = {{kind = "favour", action = 1, probability = {rng.uniform(0.3, 0.9):.3f}}}
continuation = {rng.choice([0.0, 0.6, 0.95])}
[log]
state = {'["u"]' if "tiles" in features else '"s"'}
[features]
{features}
[learn]
corrections = ["{correction}"]
step_sizes = [{rng.choice([0.003, 0.03, 0.1, 0.3])}]
epochs = {rng.integers(1, 4)}
batch_size = {rng.choice([1, 4, 16])}
every = {rng.choice([1, 3])}
{rng.choice(["", "window = 7", 'order = "drawn"'])}
[judge]
folds = 2
[intervals]
replicates = 19
level = {rng.choice([0.5, 0.9, 0.95])}
"""


@pytest.mark.parametrize("seed", range(20))
def test_no_point_lies_outside_of_its_interval(tmp_path: Path, seed: int) -> None:
    """For random logs, settings and corrections; and page, file and Python say the same."""
    rng = np.random.default_rng(seed)
    columns = walks(int(rng.integers(8, 30)), seed)
    state = columns.pop("obs")
    columns |= {"s": state, "u": state + 0.1 * rng.random(len(state))}
    columns["reward"] = columns["reward"] * rng.normal(size=len(state)) * rng.choice([0.1, 100])
    columns["reward"] += rng.normal(size=len(state))
    write(tmp_path / "log.parquet", columns)
    (tmp_path / "asked.toml").write_text(random_question(rng))
    made = answer(
        load(tmp_path / "asked.toml"), tmp_path / "log.parquet", tmp_path, quiet=True, **ALONE
    )
    write_files(made, tmp_path)
    (one,) = made.answers
    assert one.intervals is not None
    table = pq.read_table(tmp_path / "predictions.parquet")
    point, low, high = (table[name].to_numpy() for name in ("prediction", "low", "high"))
    assert np.isfinite(point).all()
    assert ((low <= point) & (point <= high)).all()
    states = made.material.log.transitions().state
    np.testing.assert_array_equal(point, one.predict(states)[0])
    np.testing.assert_array_equal(point, one.intervals.predict(states).point)
    np.testing.assert_array_equal(point, one.learner.predict(states))
    again = gvf.load(tmp_path / "right.gvf")
    np.testing.assert_array_equal(point, again.predict(states))
    assert again.steps == len(made.material.log)
    again.fit(made.material.log, progress=False)


def test_the_learner_has_replicate_0_and_its_updates(found) -> None:
    (one,) = found.answers
    np.testing.assert_array_equal(one.learner.weights, one.intervals.weights[0, :, 0])
    assert one.learner.updates == one.intervals.updates > 0
    assert len(one.learner.window) == len(found.material.log)


def test_without_intervals_the_learner_of_the_whole_log_answers(
    folder: Path, tmp_path: Path
) -> None:
    text = QUESTION.replace("replicates = 39", "replicates = 0")
    (tmp_path / "asked.toml").write_text(text)
    made = answer(
        load(tmp_path / "asked.toml"), folder / "log.parquet", tmp_path, quiet=True, **ALONE
    )
    (one,) = made.answers
    learner = cells.learner(made.material, 0, one.method, one.step_size)
    learner.fit(made.material.log, epochs=4, seed=0, progress=False)
    predicted, low, high = one.predict(np.arange(STATES))
    np.testing.assert_array_equal(predicted, learner.predict(np.arange(STATES)))
    assert np.isnan(low).all()
    assert np.isnan(high).all()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("kind", ["judge", "final"])
def test_window_and_order_act_where_there_are_no_intervals(
    folder: Path, kind: str, in_memory: bool
) -> None:
    log = gvf.read_log(folder / "log.parquet", in_memory=in_memory, quiet=True)
    plan = load(folder / "asked.toml")
    learn = {**plan.learn, "window": 50, "order": "log"}
    asked = prepare(replace(plan, learn=learn, replicates=0), log, quiet=True)
    step_size = None if kind == "judge" else 0.2
    arrays = cells.compute(Cell(kind, 0, "IR", step_size), asked)
    rest = log.select(np.flatnonzero(cells.folds(asked))) if kind == "judge" else log
    expected = gvf.Learner(
        asked.questions[0],
        gvf.features.OneHot(STATES),
        gvf.updates.TD([0.02, 0.2] if kind == "judge" else 0.2),
        window=50,
        seed=np.random.SeedSequence(0, spawn_key=(int(kind == "judge"),)),
    )
    expected.fit(rest, epochs=4, order="log", progress=False)
    if kind == "judge":
        held, _ = cells.held_out(arrays)
        out = log.select(np.flatnonzero(cells.folds(asked) == 0)).transitions()
        np.testing.assert_array_equal(held.predicted, expected.predict(out.state))
    else:
        learner = cells.learned(Cell(kind, 0, "IR", step_size), asked, arrays)
        np.testing.assert_array_equal(learner.weights, expected.weights)
        assert isinstance(learner, gvf.Learner)
        assert learner.window.capacity == 50


def test_with_intervals_all_draw_from_the_whole_log(folder: Path) -> None:
    plan = load(folder / "asked.toml")
    asked = prepare(
        replace(plan, learn={**plan.learn, "window": 50}), folder / "log.parquet", quiet=True
    )
    held, _ = cells.held_out(cells.compute(Cell("judge", 0, "IR"), asked))
    bare = prepare(plan, folder / "log.parquet", quiet=True)
    expected, _ = cells.held_out(cells.compute(Cell("judge", 0, "IR"), bare))
    np.testing.assert_array_equal(held.predicted, expected.predicted)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("order", ["log", "shuffled"])
def test_an_order_of_passes_is_refused_with_intervals(
    capsys: pytest.CaptureFixture[str], order: str
) -> None:
    write(Path("log.parquet"), walks(20))
    text = QUESTION.replace("epochs = 4", f'epochs = 1\norder = "{order}"')
    Path("asked.toml").write_text(text)
    assert main(["learn", "log.parquet", "asked.toml"]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert f"order = '{order}' in [learn], and intervals draw from the whole log" in told
    assert "say replicates = 0 in [intervals]" in told
    Path("asked.toml").write_text(text.replace("replicates = 39", "replicates = 0"))
    assert main(["learn", "log.parquet", "asked.toml"]) in (0, 3)


def test_a_log_beyond_memory_has_a_small_window_and_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gvf.answers.cells.WINDOW", 100)
    (tmp_path / "asked.toml").write_text(QUESTION)
    sizes = []
    for episodes in (60, 600):
        log = gvf.read_log(
            write(tmp_path / f"{episodes}.parquet", walks(episodes)), in_memory=False, quiet=True
        )
        out = tmp_path / str(episodes)
        made = answer(load(tmp_path / "asked.toml"), log, out, quiet=True, **ALONE)
        write_files(made, out)
        (one,) = made.answers
        assert one.learner.window.capacity == 100
        judge = cells.learner(made.material, 0, "IR", [0.1])
        assert isinstance(judge, gvf.Learner)
        assert judge.window.capacity == 100
        sizes.append((out / "goes-right.gvf").stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 100
