"""What wins: ties, replicates that diverge, and a log with few events."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_logs import QUESTION, STATES, walks, write

from gvf.answers import answer, cells, load
from gvf.answers.answer_page import page
from gvf.answers.remarks import Diverged, Faster, FewEvents, Tied, Unfinished
from gvf.estimate import Estimate
from gvf.judging import Comparison

ALONE: Any = {"workers": 1, "progress": False}


def answered(folder: Path, text: str):
    (folder / "asked.toml").write_text(text)
    return answer(load(folder / "asked.toml"), folder / "log.parquet", folder, quiet=True, **ALONE)


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    write(tmp_path / "log.parquet", walks(60))
    return tmp_path


@pytest.fixture
def diverging(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, float | None], int]:
    """How many replicates of a correction and a step size diverge, to be filled in."""
    lost: dict[tuple[str, float | None], int] = {}
    real = cells.intervals

    def intervals(material, listed, found, level):
        made = real(material, listed, found, level)
        diverged = made.diverged.copy()
        diverged[0, 1 : 1 + lost.get((listed[0].method, listed[0].step_size), 0)] = True
        return replace(made, diverged=diverged)

    monkeypatch.setattr("gvf.answers.cells.intervals", intervals)
    return lost


def order(made) -> list[tuple[str, float]]:
    """The candidates by their scores."""
    (one,) = made.answers
    listed = [score for score in one.judgement.scores if score.standing != "reference"]
    return [(score.learner, made.plan.step_sizes[score.lane]) for score in listed]


def test_a_candidate_whose_replicates_diverge_cannot_win(logged: Path, diverging) -> None:
    plain = answered(logged, QUESTION)
    first = order(plain)[0]
    assert (plain.answers[0].method, plain.answers[0].step_size) == first
    assert plain.answers[0].remarks == ()
    diverging[first] = 1
    made = answered(logged, QUESTION)
    (one,) = made.answers
    left = [one for one in order(made) if not (one[0] == first[0] and one[1] >= first[1])]
    assert (one.method, one.step_size) == left[0]
    names = [f"{name}, step size {size:g}" for name, size in (first, left[0])]
    assert one.remarks == (Diverged((names[0],), 1, 39, names[1]),)
    told = f"1 of the 39 replicates of {names[0]} diverged, so {names[1]} was taken instead"
    assert f"  warning: {told}" in repr(made)
    assert told[1:] in page(made, [])
    assert (
        one.learner.predict(np.arange(STATES)).tolist()
        == one.predict(np.arange(STATES))[0].tolist()
    )


def test_larger_steps_of_what_diverged_are_not_tried(logged: Path, diverging) -> None:
    text = QUESTION.replace('"IR", "IS"', '"IR"').replace("[0.02, 0.2]", "[0.01, 0.2, 0.3]")
    sizes = [size for _, size in order(answered(logged, text))]
    assert sizes == [0.2, 0.3, 0.01]
    diverging["IR", 0.2] = 2
    (one,) = answered(logged, text).answers
    assert one.step_size == 0.01
    assert one.remarks[0] == Diverged(("IR, step size 0.2",), 2, 39, "IR, step size 0.01")


@pytest.mark.parametrize("count", [1, 39])
def test_a_candidate_with_one_replicate_that_diverges_is_not_kept_as_the_last(
    logged: Path, diverging, count: int
) -> None:
    text = QUESTION.replace('"IR", "IS"', '"IR"').replace("[0.02, 0.2]", "[0.2]")
    diverging["IR", 0.2] = count
    with pytest.raises(ValueError, match="question 'goes right': replicates of all corrections"):
        answered(logged, text)


@pytest.fixture
def tied(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """All step sizes of a correction are tied."""
    monkeypatch.setattr("gvf.judging.comparison.TIE", 1e9)
    return monkeypatch


def test_a_tie_is_broken_towards_the_smaller_step(logged: Path, tied: pytest.MonkeyPatch) -> None:
    tied.setattr("gvf.answers.winners.DRIFT", 1e9)
    tied.setattr("gvf.answers.winners.FAR", 1e9)
    made = answered(logged, QUESTION)
    (one,) = made.answers
    best = one.judgement.best
    assert best.lane == 1
    assert (one.chosen.lane, one.step_size) == (0, 0.02)
    assert one.chosen.learner == best.learner
    assert one.remarks == (Tied(best.name, one.chosen.name),)
    told = f"{one.chosen.name} was taken: chance decides between it and {best.name}"
    assert f"\n  {told}" in repr(made)
    assert told in page(made, [])


@pytest.mark.usefixtures("tied")
def test_a_larger_step_is_taken_if_learning_is_not_finished(logged: Path) -> None:
    """As long as it is not known to be worse."""
    made = answered(logged, QUESTION)
    (one,) = made.answers
    assert (one.chosen.lane, one.step_size, one.epochs) == (1, 0.2, 4)
    slow = one.chosen.name.replace("0.2", "0.02")
    assert one.remarks[0] == Faster(slow, one.chosen.name)
    assert not one.judgement.compare(one.chosen.name, slow).low > 0.0
    assert f"\n  {one.chosen.name} was taken: learning with {slow} is not finished" in repr(made)


def test_a_larger_step_that_is_worse_is_not_taken(logged: Path, tied: pytest.MonkeyPatch) -> None:
    tied.setattr(Comparison, "compare", lambda *_: Estimate(1.0, 0.5, 1.5))
    (one,) = answered(logged, QUESTION).answers
    assert one.step_size == 0.02
    assert [type(remark) for remark in one.remarks] == [Tied, Unfinished]


def test_a_larger_step_that_diverges_is_not_taken(
    logged: Path, tied: pytest.MonkeyPatch, diverging
) -> None:
    first = answered(logged, QUESTION).answers[0].chosen.learner
    diverging[first, 0.2] = 1
    (one,) = answered(logged, QUESTION).answers
    assert (one.method, one.step_size) == (first, 0.02)
    assert [type(remark) for remark in one.remarks] == [Diverged, Unfinished]


def test_few_events_leave_no_intervals_and_say_so(tmp_path: Path) -> None:
    columns = walks(60)
    reward = np.zeros(len(columns["reward"]))
    reward[[3, 70]] = 1.0
    write(tmp_path / "log.parquet", {**columns, "reward": reward})
    made = answered(tmp_path, QUESTION)
    (one,) = made.answers
    (remark,) = one.remarks
    assert isinstance(remark, FewEvents)
    assert remark.events.count == 2
    assert one.intervals is None
    assert np.isnan(one.predict([0, 1])[1]).all()
    told = f"no intervals: 2 rewards in {len(reward)} rows"
    assert told in repr(made)
    assert told[1:] in page(made, [])


def test_candidates_that_all_diverge_are_refused(logged: Path) -> None:
    with pytest.raises(ValueError, match="all corrections have diverged with all step sizes"):
        answered(logged, QUESTION.replace("[0.02, 0.2]", "[1e9, 1e10]"))
