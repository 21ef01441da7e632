"""What an answer leaves: verdicts, the value of the policy, and the log's own names and times."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain_logs import QUESTION, STATES, values, walks, write
from pages import Read

import gvf
from gvf.answers import answer, load, prepare
from gvf.answers.answer_page import page
from gvf.answers.answer_plots import tracks_of
from gvf.answers.remarks import FewEvents, Unfinished, written
from gvf.answers.write_answer import NOTES, write_predictions
from gvf.cli import main
from gvf.estimate import Estimate
from gvf.findings import Code, Finding
from gvf.intervals.events import Events
from gvf.judging import Estimator, Outcome, Verdict

FEW = Finding(Code.FEW_EPISODES, "stops", {"episodes": 3})

ALONE: Any = {"workers": 1, "progress": False}
DIGITS = np.random.default_rng(5).permutation(120)
"""Names of episodes that are in no order."""


def notes(path: Path) -> dict[str, Any]:
    return json.loads(pq.read_schema(path).metadata[NOTES])


def predictions(found, log: gvf.Log, path: Path) -> pa.Table:
    """The predictions of an answer for the transitions of another log."""
    material = replace(prepare(found.plan, log, quiet=True))
    write_predictions(replace(found, material=material), path)
    return pq.read_table(path)


def named(kind: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Walks with names of episodes and times, the options that read them, and their columns."""
    columns = walks()
    number = columns.pop("episode")
    step = np.concatenate([np.arange(n) for n in np.bincount(number)])
    clock = pa.array(
        [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=int(h)) for h in np.arange(len(step))],
        pa.timestamp("ms", "UTC"),
    )
    return {
        "text": ({**columns, "episode": [f"p{DIGITS[n]}" for n in number], "t": step}, {},
                 ["episode", "t"]),
        "numbers with gaps": ({**columns, "patient": pa.array(7 * DIGITS[number], pa.int32()),
                               "timestamp": clock}, {"episode": "patient"},
                              ["patient", "timestamp"]),
        "streams": ({**columns, "env_id": number // 40, "episode": number % 40, "step": step}, {},
                    ["env_id", "episode", "step"]),
        "several": ({**columns, "site": [f"site {n % 3}" for n in number], "visit": number // 3,
                     "question": step}, {"episode": ["site", "visit"], "time": "question"},
                    ["site", "visit", "log question"]),
        "rows": ({**columns, "episode": number, "row": 5 * step}, {}, ["episode"]),
    }[kind]  # fmt: skip


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("kind", ["text", "numbers with gaps", "streams", "several", "rows"])
def test_predictions_join_the_log_by_its_own_names(
    found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, in_memory: bool
) -> None:
    columns, options, keys = named(kind)
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "log.parquet")
    monkeypatch.setattr("gvf.log.tables.BATCH", 100)
    log = gvf.read_log(tmp_path / "log.parquet", in_memory=in_memory, quiet=True, **options)
    given = predictions(found, log, tmp_path / "predictions.parquet")
    row = "row number" if kind == "rows" else "row"
    counted = [row, "step"] if kind == "rows" else [row]
    assert given.column_names == [
        "question", "verdict", *keys, *counted, "obs", "prediction", "low", "high",
    ]  # fmt: skip
    for key in keys:
        assert given[key].type == table[key.removeprefix("log ")].type
    # Shuffle one side, so that only the keys bring the rows together.
    order = pa.array(np.random.default_rng(0).permutation(len(table)))
    if kind != "rows":
        there = table.rename_columns([f"log {n}" if f"log {n}" in keys else n for n in columns])
        joined = there.take(order).join(given.rename_columns(
            [f"our {name}" if name == "obs" else name for name in given.column_names]
        ), keys, join_type="inner")  # fmt: skip
        assert len(joined) == len(table)
        assert joined["our obs"].equals(joined["obs"])
        expected, _, _ = found.answers[0].predict(joined["obs"].to_numpy())
        np.testing.assert_array_equal(joined["prediction"].to_numpy(), expected)
    np.testing.assert_array_equal(given[row].to_numpy(), np.arange(len(table)))
    told = notes(tmp_path / "predictions.parquet")
    assert [*told["counted"]] == counted
    times = [told["times"]] if told["times"] else []
    assert told["names of episodes"] + times == keys


def test_rows_are_those_of_the_table_where_some_are_no_transitions(found, tmp_path: Path) -> None:
    columns = {name: column[:60] for name, column in walks().items()}
    columns["terminated"] = np.zeros(60, bool)
    log = gvf.read_log(columns, ends="truncated", quiet=True)
    given = predictions(found, log.select([1, 3, 4]), tmp_path / "predictions.parquet")
    assert len(given) < 60
    rows = given["row"].to_numpy()
    np.testing.assert_array_equal(given["obs"].to_numpy(), columns["obs"][rows])
    np.testing.assert_array_equal(given["episode"].to_numpy(), columns["episode"][rows])


def test_a_log_without_names_says_what_was_counted(found, tmp_path: Path) -> None:
    columns = walks()
    number = columns.pop("episode")
    given = predictions(found, gvf.read_log(columns, quiet=True), tmp_path / "predictions.parquet")
    np.testing.assert_array_equal(given["episode"].to_numpy(), number)
    told = notes(tmp_path / "predictions.parquet")
    assert told["names of episodes"] == []
    assert told["times"] is None
    assert [*told["counted"]] == ["row", "episode", "step"]
    assert "counted from 0 by gvf" in told["counted"]["episode"]


def test_the_page_calls_episodes_by_their_names(found, tmp_path: Path) -> None:
    def titles(columns: dict[str, Any], **options: Any) -> list[str]:
        log = gvf.read_log(columns, quiet=True, **options)
        material = prepare(found.plan, log, quiet=True)
        one = replace(found.answers[0], question=material.questions[0])
        return [axes.get_title("left").partition(":")[0] for axes in tracks_of(material, one).axes]

    longest = int(np.argsort(np.bincount(walks()["episode"]), kind="stable")[-1])
    assert titles(named("text")[0])[-1] == f"episode p{DIGITS[longest]}"
    columns, options, _ = named("several")
    expected = f"site site {longest % 3}, visit {longest // 3}"
    assert titles(columns, **options)[-1] == expected
    columns = walks()
    number = columns.pop("episode")
    assert titles(columns)[-1] == f"episode {longest}"
    # Episodes of one stream have the same name, and are told apart by where they begin.
    first = int(np.argmax(number == longest))
    assert titles({**columns, "env_id": number // 60})[-1] == (
        f"env_id {longest // 60} from row {first}"
    )


def test_the_verdict_is_beside_every_prediction(found, tmp_path: Path) -> None:
    one = found.answers[0]
    unsure = replace(one.judgement, findings=(FEW,))
    other = replace(one, question=replace(one.question, name="other"), judgement=unsure)
    both = replace(found, answers=(one, other))
    write_predictions(both, tmp_path / "predictions.parquet")
    table = pq.read_table(tmp_path / "predictions.parquet")
    pairs = zip(table["question"].to_pylist(), table["verdict"].to_pylist(), strict=True)
    assert {*pairs} == {("goes right", "tied"), ("other", "cannot tell")}
    told = notes(tmp_path / "predictions.parquet")["questions"]
    assert told["other"]["verdict"] == "cannot tell"
    assert told["other"]["sentence"] == "cannot tell: there are only 3 held-out episodes"
    assert told["other"]["level"] == 0.95
    assert told["goes right"]["verdict"] == "tied"
    assert told["goes right"]["correction"] == one.chosen.name
    assert told["goes right"]["values"]["learned"] == [*one.values[Estimator.LEARNED]]
    assert (one.sure, other.sure) == (True, False)


def test_verdicts_are_codes_and_sentences() -> None:
    assert [outcome.value for outcome in Outcome if outcome.sure] == ["best", "tied"]
    few = Finding(Code.FEW_EPISODES, "stops", {"episodes": 4})
    for verdict, sentence in (
        (Verdict(Outcome.BEST, "a", others=1), "a is best"),
        (Verdict(Outcome.BEST, "a"), "a, the only candidate, predicts better than a constant"),
        (Verdict(Outcome.TIED, "a", ("b",)), "a has the lowest error, and cannot be told from b"),
        (Verdict(Outcome.NO_BETTER, "a"), "a is not shown to predict better than a constant"),
        (
            Verdict(Outcome.CANNOT_TELL, "a", findings=(few, Finding(Code.OVERFLOW, "stops"))),
            "cannot tell: there are only 4 held-out episodes; products of ratios overflow",
        ),
        (Verdict(Outcome.ALL_DIVERGED, "a"), "all candidates have diverged"),
    ):  # fmt: skip
        assert str(verdict) == sentence


def test_the_learned_value_is_the_mean_of_first_states_in_memory_or_not(
    found, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = found.answers[0]
    columns = walks()
    first = columns["obs"][np.flatnonzero(np.diff(columns["episode"], prepend=-1))]
    assert (*one.values[Estimator.LEARNED],) == one.intervals.mean(first)
    truth = values()[first].mean()
    for interval in one.values.values():
        assert interval.low < interval.value < interval.high
    for name in (Estimator.LEARNED, Estimator.DOUBLY_ROBUST):
        assert one.values[name].low < truth < one.values[name].high
    monkeypatch.setattr("gvf.log.tables.BATCH", 100)  # episodes cross the borders of batches
    log = gvf.read_log(folder / "log.parquet", in_memory=False, quiet=True)
    made = answer(load(folder / "asked.toml"), log, tmp_path / "out", quiet=True, **ALONE)
    (large,) = made.answers
    expected = large.learner.predict(first).mean()
    assert large.values[Estimator.LEARNED].value == pytest.approx(expected, rel=1e-12)
    assert math.isnan(large.values[Estimator.LEARNED].low)
    assert "learned        " in repr(made)
    assert "(none)" in repr(made)
    write_predictions(made, tmp_path / "predictions.parquet")
    told = notes(tmp_path / "predictions.parquet")["questions"]["goes right"]
    assert told["values"]["learned"][1] is None


def test_a_log_that_cannot_tell_ends_with_status_3_and_says_what_it_can(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "few.parquet", walks(8))
    question, out = str(folder / "asked.toml"), str(tmp_path / "out")
    assert main(["learn", str(tmp_path / "few.parquet"), question, "--out", out]) == 3
    told = capsys.readouterr().out
    assert "goes right: cannot tell: there are only 8 held-out episodes" in told
    assert "the value of the policy, with 95 % intervals:" in told
    for name in ("learned", "doubly robust", "constant"):
        assert f"    {name:<13}  " in told
    assert "plain" not in told
    assert "the reasons why the log cannot tell hold for these values too" in told
    assert pq.read_table(tmp_path / "out" / "predictions.parquet")["verdict"][0].as_py() == (
        "cannot tell"
    )
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    assert "3 if it does not answer one" in capsys.readouterr().out


def decisions(count: int, chance: float) -> dict[str, Any]:
    """Single decisions whose rewards depend on the action, and not on the context."""
    rng = np.random.default_rng(1)
    action = rng.choice(2, size=count, p=[0.6, 0.4])
    return {
        "visit": [f"v{number}" for number in rng.permutation(count)],
        "obs": rng.integers(2, size=count), "action": action,
        "reward": 1.0 * (rng.random(count) < chance * (1 + action)),
        "terminated": np.ones(count, bool), "pscore": np.where(action, 0.4, 0.6),
    }  # fmt: skip


def test_single_decisions_have_the_estimates_of_off_policy_evaluation(tmp_path: Path) -> None:
    columns = decisions(1500, 0.2)
    text = QUESTION.replace('["IR", "IS"]', '["IR"]').replace("0.9\n", "0.0\n", 1)
    (tmp_path / "asked.toml").write_text(text + '[log]\nepisode = "visit"\n')
    write(tmp_path / "log.parquet", columns)
    made = answer(load(tmp_path / "asked.toml"), tmp_path / "log.parquet", tmp_path, **ALONE)
    (one,) = made.answers
    rho = np.where(columns["action"], 0.7 / 0.4, 0.3 / 0.6)
    plain = (rho * columns["reward"]).mean()
    assert one.values[Estimator.PLAIN].value == pytest.approx(plain, rel=1e-12)
    normalised = plain / rho.mean()
    assert one.values[Estimator.SELF_NORMALISED].value == pytest.approx(normalised, rel=1e-12)
    for interval in one.values.values():
        assert interval.low < 0.34 < interval.high
    assert one.judgement.verdict.outcome is Outcome.NO_BETTER
    assert not one.sure
    read = Read(page(made, []))
    assert "Predictions along episodes" not in read.texts["h3"]
    assert f"{one.question.name}: no better than a constant" in read.texts["span"]
    assert [*one.values] == ["learned", "doubly-robust", "plain", "self-normalised", "constant"]
    for name in one.values:
        assert name.replace("-", " ") in read.texts["th"]
        assert " ".join(written(one.values[name])) in " ".join(read.texts["span"])
    assert "Predictions by state are not shown to be better than the constant" in read.said("p")
    assert "equal ones" not in read.said("p")


def test_few_rewards_are_said(found) -> None:
    one = found.answers[0]
    few = replace(one, judgement=replace(one.judgement, rewards=7.04))
    said = Read(page(replace(found, answers=(few,)), [])).said("p")
    assert "The rewards are worth 7 equal ones, and below 20 the intervals are too short." in said
    assert "worth 7 equal ones" in repr(replace(found, answers=(few,)))
    assert math.isnan(one.judgement.rewards)


def test_a_verdict_knows_of_few_events_and_of_actions_that_the_log_never_has(found) -> None:
    one = found.answers[0]
    events = Events("goes right", "rewards", 4, 3000, 1.0)
    few = replace(one, remarks=(*one.remarks, FewEvents(events)))
    assert one.sure
    assert few.verdict.outcome is Outcome.CANNOT_TELL
    assert not few.sure
    assert "cannot tell: there are only 4 rewards in 3,000 rows" in repr(
        replace(found, answers=(few,))
    )
    for share, outcome in ((0.1, one.verdict.outcome), (0.2, Outcome.CANNOT_TELL)):
        lacking = replace(one, support=replace(one.support, untried={2: share}))
        assert lacking.verdict.outcome is outcome
    assert "the log never has 20 % of the target's actions" in str(lacking.verdict)


def test_an_answer_that_is_not_finished_is_not_sure(found) -> None:
    one = found.answers[0]
    slow = replace(one, remarks=(Unfinished(2, 0.3, None),))
    assert (one.sure, slow.sure) == (True, False)
    assert slow.verdict == one.verdict
    said = Read(page(replace(found, answers=(slow,)), []))
    assert f"{one.question.name}: not finished" in said.texts["span"]
    assert "Do not rely on it." in said.said("p")
    doubtful = replace(slow, judgement=replace(one.judgement, findings=(FEW,)))
    said = Read(page(replace(found, answers=(doubtful,)), []))
    assert f"{one.question.name}: cannot tell" in said.texts["span"]


def test_numbers_are_written_with_the_digits_that_they_have() -> None:
    assert written(Estimate(1234.5678, 1200.0, 1270.0)) == ("1,235", "1,200 to 1,270")
    assert written(Estimate(0.00123, 0.00111, 0.00135)) == ("0.00123", "0.00111 to 0.00135")
    assert written(Estimate(3.0, 3.0, 3.0)) == ("3", "of no width")
    assert written(Estimate(3.0, -np.inf, np.inf)) == ("3", "unknown")
    assert STATES == 5
