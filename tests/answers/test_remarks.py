"""Checks of an answer: whether it depends on its features, and whether learning is finished."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_logs import QUESTION, STATES, walks, write

import gvf
from gvf.answers import answer, cells, load, prepare
from gvf.answers import build_question as parts
from gvf.answers.answer_page import page
from gvf.answers.cells import Cell
from gvf.answers.remarks import FeaturesMatter, Unfinished
from gvf.cli import main

ALONE: Any = {"workers": 1, "progress": False}


def text(correction: str, features: str) -> str:
    asked = QUESTION.replace('["IR", "IS"]', f'["{correction}"]').replace("[0.02, 0.2]", "[0.05]")
    return f'{asked}\n[log]\nstate = ["u"]\n[features]\n{features}\n'


def remarks(folder: Path, correction: str, features: str, columns=None):
    write(folder / "log.parquet", walks_of_numbers() if columns is None else columns)
    (folder / "asked.toml").write_text(text(correction, features))
    made = answer(load(folder / "asked.toml"), folder / "log.parquet", folder, quiet=True, **ALONE)
    return made, made.answers[0].remarks


def walks_of_numbers() -> dict[str, np.ndarray]:
    """Walks of the chain, with states as real numbers."""
    columns = walks(200)
    state = columns.pop("obs")
    return {"u": state + 0.25, **columns}


POOR = 'kind = "tiles"\ntiles = 1\ntilings = 1\nlow = 0\nhigh = 5'
RICH = 'kind = "tiles"\ntiles = 5\ntilings = 1\nlow = 0\nhigh = 5'


@pytest.mark.parametrize("correction", ["LSTD", "IR"])
def test_features_that_matter_are_said(tmp_path: Path, correction: str) -> None:
    made, found = remarks(tmp_path, correction, POOR)
    (remark,) = found
    (one,) = made.answers
    assert isinstance(remark, FeaturesMatter)
    assert one.intervals is not None
    assert remark.states == "first states"
    first, _ = cells.looked_at(made.material)
    mean = one.intervals.mean(first)
    assert (remark.value, remark.half_width) == (mean.point, (mean.high - mean.low) / 2)
    assert abs(remark.richer - remark.value) > remark.half_width
    assert remark.features == "4 tilings of 1 tiles"
    told = "features are too poor for this interval: the mean over first states is "
    assert f"  warning: the {told}" in repr(made)
    assert told in page(made, [])


@pytest.mark.parametrize(("high", "warned"), [(5, False), (2, True)])
def test_states_outside_the_bounds_of_the_tiles_are_said(tmp_path: Path, high, warned) -> None:
    narrow = f'kind = "tiles"\ntiles = 2\ntilings = 1\nlow = 0\nhigh = {high}'
    made, _ = remarks(tmp_path, "LSTD", narrow)
    share = float((walks_of_numbers()["u"][walks_of_numbers()["action"] >= 0] > high).mean())
    assert made.material.outside == pytest.approx(share, abs=0.1)
    assert (made.material.outside > 0.2) is warned
    told = f"{100 * made.material.outside:.0f} % of the states are outside the bounds"
    assert (f"  warning: {told}" in repr(made)) is warned
    assert (told in page(made, [])) is warned
    question, log = str(tmp_path / "asked.toml"), str(tmp_path / "log.parquet")
    with redirect_stdout(StringIO()) as printed:
        assert main(["diagnose", log, question]) == 0
    assert (f"  warning: {told}" in printed.getvalue()) is warned


@pytest.mark.parametrize("correction", ["LSTD", "IR"])
def test_features_that_suffice_are_not_remarked(tmp_path: Path, correction: str) -> None:
    assert remarks(tmp_path, correction, RICH)[1] == ()


def test_richer_features_learn_as_the_others_do(tmp_path: Path) -> None:
    """With the same step in predictions: tilings times four, a step size a quarter."""
    write(tmp_path / "log.parquet", walks_of_numbers())
    (tmp_path / "asked.toml").write_text(text("IR", POOR))
    asked = prepare(load(tmp_path / "asked.toml"), tmp_path / "log.parquet", quiet=True)
    found = cells.compute(Cell("richer", 0, "IR", 0.05, 0, 4), asked)
    features = gvf.features.TileCoder([0.0], [5.0], tiles=1, tilings=4)
    learner = gvf.Learner(
        asked.questions[0],
        features,
        gvf.updates.TD(0.05 / 4),
        gvf.corrections.IR(),
        window=len(asked.log),
    )
    expected = gvf.bootstrap(learner, asked.log, replicates=19, epochs=4, seed=0, progress=False)
    first, sample = cells.looked_at(asked)
    np.testing.assert_array_equal(found["first"], expected.predict(first).point)
    np.testing.assert_array_equal(found["sample"], expected.predict(sample).point)
    whole = asked.log.transitions()
    np.testing.assert_array_equal(first, whole.state[np.diff(whole.episode, prepend=-1) == 1])


def test_richer_features() -> None:
    class Facts:
        sample = np.random.default_rng(0).random((100, 2))
        bounds = np.zeros(2), np.ones(2)

    facts: object = Facts()
    coder = gvf.features.TileCoder([0, 0], [1, 1], tiles=[2, 3], tilings=5)
    made = parts.richer(coder, facts, 4)  # pyright: ignore[reportArgumentType]
    assert isinstance(made, gvf.features.TileCoder)
    assert (made.tilings, made.tiles.tolist()) == (20, [2, 3])
    dense = parts.richer(gvf.features.Dense(3), facts, 4)  # pyright: ignore[reportArgumentType]
    assert isinstance(dense, gvf.features.TileCoder)
    assert dense.tilings == 16
    assert parts.richer(gvf.features.OneHot(3), facts, 4) is None  # pyright: ignore[reportArgumentType]
    many = gvf.features.TileCoder([0] * 6, [1] * 6, tiles=8, tilings=4)
    assert parts.richer(many, facts, 4) is None  # pyright: ignore[reportArgumentType]


def test_least_squares_is_compared_with_as_many_features_as_it_can_solve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gvf.answers.winners.MOST_SOLVED", 2)
    _, (remark,) = remarks(tmp_path, "LSTD", POOR)
    assert isinstance(remark, FeaturesMatter)
    assert remark.features.startswith("2 tilings")
    monkeypatch.setattr("gvf.answers.winners.MOST_SOLVED", 1)
    assert remarks(tmp_path, "LSTD", POOR)[1] == ()


def learned(folder: Path, size: float, epochs: str, log: int = 80):
    """Answer a question about the chain by one step size."""
    write(folder / "log.parquet", walks(log))
    asked = QUESTION.replace('["IR", "IS"]', '["IR"]').replace("[0.02, 0.2]", f"[{size}]")
    (folder / "asked.toml").write_text(asked.replace("epochs = 4", epochs))
    return answer(load(folder / "asked.toml"), folder / "log.parquet", folder, quiet=True, **ALONE)


def test_learning_that_is_not_finished_is_said(tmp_path: Path) -> None:
    made = learned(tmp_path, 0.003, "epochs = 2")
    (one,) = made.answers
    (remark,) = one.remarks
    assert isinstance(remark, Unfinished)
    assert one.intervals is not None
    assert one.epochs == remark.epochs == 2
    sample = cells.looked_at(made.material)[1]
    assert remark.drift == one.intervals.drift(sample).mean() > 0.1
    solved = gvf.LSTDLearner(
        made.material.questions[0], gvf.features.OneHot(STATES), gvf.corrections.IR()
    )
    solved.fit(made.material.log, order="log", progress=False)
    point, _, high = one.intervals.predict(sample)
    away = np.abs(one.intervals.replicate(sample).mean(axis=1) - solved.predict(sample))
    assert remark.distance == pytest.approx((away / (high - point)).mean())
    told = "earning is not finished after 2 epochs: predictions still moved by "
    assert f"  warning: l{told}" in repr(made)
    assert told in page(made, [])


def test_a_drift_of_many_half_widths_is_written_in_words() -> None:
    """The half width is close to nothing where all replicates nearly agree."""
    assert "after 1 epoch: predictions still moved by 1000 % of" in str(Unfinished(1, 10.0, None))
    told = str(Unfinished(8, 444_368.82, 10.1))
    assert "moved by more than 1,000 % of the half width of their intervals" in told
    assert "are more than 1,000 % away from what learning tends to" in told


def test_learning_far_from_what_it_tends_to_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least squares tells what the change in the second half of learning does not."""
    monkeypatch.setattr("gvf.answers.winners.DRIFT", 1e9)
    (remark,) = learned(tmp_path, 0.003, "epochs = 2").answers[0].remarks
    assert isinstance(remark, Unfinished)
    assert remark.distance is not None
    assert remark.distance > 0.25
    monkeypatch.setattr("gvf.answers.winners.FAR", 1e9)
    assert learned(tmp_path, 0.003, "epochs = 2").answers[0].remarks == ()
    monkeypatch.undo()
    monkeypatch.setattr("gvf.answers.cells.FEW_FEATURES", STATES - 1)
    (remark,) = learned(tmp_path, 0.003, "epochs = 2").answers[0].remarks
    assert isinstance(remark, Unfinished)
    assert remark.distance is None


@pytest.mark.parametrize("most", [64, 4])
def test_learning_goes_on_until_it_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("gvf.answers.cells.EPOCHS", 1)
    monkeypatch.setattr("gvf.answers.winners.MOST_EPOCHS", most)
    made = learned(tmp_path, 0.03, "")
    (one,) = made.answers
    if most == 64:
        assert one.epochs in (8, 16, 32)
        assert one.remarks == ()
        half = learned(tmp_path, 0.03, f"epochs = {one.epochs // 2}")
        assert [type(remark) for remark in half.answers[0].remarks] == [Unfinished]
    else:
        assert one.epochs == 4
        assert [type(remark) for remark in one.remarks] == [Unfinished]
    learner = cells.learner(made.material, 0, "IR", 0.03)
    expected = gvf.bootstrap(
        learner, made.material.log, replicates=39, epochs=one.epochs, seed=0, progress=False
    )
    assert one.intervals is not None
    np.testing.assert_array_equal(one.intervals.weights, expected.weights)
    assert f"in {one.epochs} passes" in page(made, [])


def test_learning_that_goes_on_is_not_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicates that were tried are the first cell of all replicates."""
    monkeypatch.setattr("gvf.answers.winners.TOGETHER", 20)
    real, done = cells.compute, []
    monkeypatch.setattr(
        "gvf.answers.cell_jobs.compute",
        lambda cell, *rest: (done.append(cell), real(cell, *rest))[1],
    )
    learned(tmp_path, 0.2, "epochs = 20")
    assert [cell.part for cell in done if cell.kind == "replicates"] == [0, 20]
    assert [cell.kind for cell in done if cell.kind != "judge"] == [
        "replicates", "solved", "replicates",
    ]  # fmt: skip
    assert len(set(done)) == len(done)


def test_what_learning_tends_to_is_solved_for_if_that_is_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "log.parquet", walks_of_numbers())
    (tmp_path / "asked.toml").write_text(text("IR", POOR.replace("tilings = 1", "tilings = 3")))
    asked = prepare(load(tmp_path / "asked.toml"), tmp_path / "log.parquet", quiet=True)
    cell, terms = Cell("solved", 0, "IR", 0.05), 9 * len(asked.log)
    for most, quick in ((terms, True), (terms - 1, False)):
        monkeypatch.setattr("gvf.answers.cells.FEW_TERMS", most)
        assert cells.can_solve(cell, asked) == quick


def test_the_cost_of_least_squares_is_told_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "log.parquet", walks_of_numbers())
    many = "tiles = 100\ntilings = 8"
    (tmp_path / "asked.toml").write_text(text("LSTD", many))

    def stop(*_: object) -> None:
        raise InterruptedError

    def told(quiet: bool = False) -> str:
        plan = load(tmp_path / "asked.toml")
        with pytest.raises(InterruptedError):
            answer(plan, tmp_path / "log.parquet", tmp_path, quiet=quiet, **ALONE)
        return capsys.readouterr().err

    monkeypatch.setattr("gvf.answers.cell_jobs.compute", stop)
    assert "LSTD solves" not in told()
    monkeypatch.setattr("gvf.answers.cells.COSTLY_SECONDS", 0.0)
    material = prepare(load(tmp_path / "asked.toml"), tmp_path / "log.parquet", quiet=True)
    costly = cells.cost(material)
    assert costly is not None
    tiles = material.features(material.log.transitions().state)
    assert costly.features == len(np.unique(tiles)) < material.features.size == 808
    assert costly.solutions == 2 + 39 + 1
    assert f"warning: LSTD solves equations of {costly.features} features 42 times" in told()
    assert told(quiet=True) == ""
    (tmp_path / "asked.toml").write_text(text("IR", many))
    assert "LSTD" not in told()


def test_the_estimate_of_the_cost_grows_with_the_cube_of_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gvf.answers.cells.COSTLY_SECONDS", 0.0)
    write(tmp_path / "log.parquet", walks(40))
    (tmp_path / "asked.toml").write_text(QUESTION.replace('["IR", "IS"]', '["LSTD"]'))
    made = prepare(load(tmp_path / "asked.toml"), tmp_path / "log.parquet", quiet=True)
    ticks = iter([0.0, 2.0] * 2)  # two seconds for the equations that are timed
    monkeypatch.setattr("gvf.answers.cells.time.perf_counter", lambda: next(ticks))
    for timed, cube in ((STATES, 1.0), (2, 15.625)):
        monkeypatch.setattr("gvf.answers.cells.FEW_TIMED", timed)
        costly = cells.cost(made)
        assert costly is not None
        assert (costly.features, costly.seconds) == (STATES, 42 * 2.0 * cube)
