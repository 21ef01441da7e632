"""Logs of single decisions: every row is an episode of one step that ends."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.common.errors import OptionError

ROWS = 2000
CLICK, COST = 0.3, 0.1


def decisions(**more: Any) -> dict[str, Any]:
    """A recommender of three items in two places: item 2 is clicked in place 1 alone."""
    rng = np.random.default_rng(5)
    place, item = rng.integers(2, size=ROWS), rng.choice(3, ROWS, p=[0.5, 0.3, 0.2])
    columns = {
        "timestamp": np.arange(ROWS)[::-1],
        "place": place,
        "item": item,
        "click": ((item == 2) & (place == 1)).astype(float),
        "pscore": np.array([0.5, 0.3, 0.2])[item],
    }
    return columns | more


def read(source: Any, **options: Any) -> gvf.Log:
    given: dict[str, Any] = {
        "steps": "single", "state": "place", "action": "item", "reward": "click"
    }  # fmt: skip
    return gvf.read_log(source, quiet=True, **(given | options))


def test_every_row_is_an_episode_that_ends() -> None:
    log = read(decisions())
    assert len(log) == len(log.episodes) == ROWS
    batch = log.transitions()
    np.testing.assert_array_equal(batch.state, decisions()["place"])
    np.testing.assert_array_equal(batch.episode, np.arange(ROWS))
    np.testing.assert_array_equal(batch.timestamp, decisions()["timestamp"])
    assert batch.terminated.all()
    assert not batch.truncated.any()
    assert log.terminated.all()


@pytest.mark.parametrize("in_memory", [True, False])
def test_files_and_tables_are_read_alike(tmp_path: Path, in_memory: bool) -> None:
    table = pa.table(decisions())
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=300)
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    expected = read(decisions()).transitions()
    for source in (table, tmp_path / "log.parquet", tmp_path / "log.csv"):
        log = read(source, in_memory=in_memory)
        batch = gvf.Transitions.concatenate(log)
        for name in expected.columns:
            np.testing.assert_array_equal(batch[name], expected[name], err_msg=name)
        part = log.select([5, 700]).transitions()
        np.testing.assert_array_equal(part.timestamp, [ROWS - 6, ROWS - 701])


def test_next_states_of_real_numbers_are_unknown() -> None:
    log = read(decisions(age=np.linspace(0.0, 1.0, ROWS)), state=["place", "age"])
    assert log.transitions().state.shape == (ROWS, 2)
    assert np.isnan(log.transitions().next_state).all()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    log = read(decisions())
    log.to_parquet(tmp_path / "log.parquet")
    for steps in ("sequence", "single"):
        again = gvf.read_log(tmp_path / "log.parquet", steps=steps, quiet=True).transitions()
        for name in log.columns:
            np.testing.assert_array_equal(again[name], log.transitions()[name], err_msg=name)


def test_a_file_of_a_sequence_may_be_read_as_single_decisions(tmp_path: Path) -> None:
    walk = {"obs": [0, 1, 2], "action": [1, 0], "reward": [0.0, 1.0]}
    gvf.read_log([walk] * 3, ends="truncated", quiet=True).to_parquet(tmp_path / "log.parquet")
    log = gvf.read_log(tmp_path / "log.parquet", steps="single", episode=None, quiet=True)
    assert {*log.meanings} == {"state", "action", "reward", "time"}
    batch = log.transitions()
    np.testing.assert_array_equal(batch.state, [0, 1] * 3)
    np.testing.assert_array_equal(batch.next_state, [0, 1] * 3)
    assert batch.terminated.all()


@pytest.mark.parametrize("continuation", [0.0, 0.9, 1.0])
def test_a_continuation_has_no_effect(continuation: float) -> None:
    log = read(decisions())
    question = gvf.GVF(gvf.policies.Always(2, actions=3), "reward", continuation)
    learner = gvf.LSTDLearner(
        question, gvf.features.OneHot(2), gvf.corrections.IR(), regulariser=1e-9
    )
    learner.fit(log)
    np.testing.assert_allclose(learner.predict([0, 1]), [0.0, 1.0], atol=1e-6)


def test_dose_is_a_real_valued_action() -> None:
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(size=(2, 4000))
    table = {"age": age, "dose": dose, "gain": dose * age}
    log = gvf.read_log(
        table, steps="single", state=["age"], action="dose", reward="gain", quiet=True
    )
    assert log.transitions().action.dtype == np.float64
    estimated = gvf.estimate_behaviour(log, model="gaussian", folds=2, progress=False).log
    question = gvf.GVF(gvf.policies.Gaussian(0.7, 0.1), "reward", 1.0)
    learner = gvf.LSTDLearner(
        question, gvf.features.TileCoder([0.0], [1.0], tiles=4), gvf.corrections.WISBuffer()
    )
    learner.fit(estimated)
    np.testing.assert_allclose(learner.predict([[0.3], [0.8]]), [0.21, 0.56], atol=0.06)


def test_the_table_tells_of_decisions_not_of_episodes() -> None:
    text = read(decisions(done=np.ones(ROWS), next_state=np.zeros(ROWS))).describe()
    assert text.startswith("a dict: 2,000 single decisions, in memory\n")
    assert "ends: every row ends its episode" in text
    assert "left out: column 'next_state', because nothing follows a single decision here" in text
    for word in ("truncated", "next states", "\n  next_state", "\n  episode", "1 steps"):
        assert word not in text, word
    kept = [line.split() for line in text.splitlines() if "timestamp" in line or "done" in line]
    assert [(words[0], words[-1]) for words in kept] == [("timestamp", "kept"), ("done", "kept")]


def test_columns_of_sequences_are_kept_as_they_are() -> None:
    """They would make one episode of all, cut it, or be ambiguous in a log of sequences."""
    done = np.arange(ROWS) % 2
    log = read(decisions(step=np.zeros(ROWS), done=done, env_id=done))
    np.testing.assert_array_equal(log.transitions().done, done)
    np.testing.assert_array_equal(log.transitions().step, 0)
    np.testing.assert_array_equal(log.transitions().env_id, done)
    assert len(log.episodes) == ROWS


def test_ids_of_decisions_are_kept() -> None:
    ids = np.array([f"r{number:05}" for number in np.random.default_rng(0).permutation(ROWS)])
    log = read(decisions(request=ids), episode="request")
    np.testing.assert_array_equal(log.transitions().request, ids)
    assert "\n  episode" in log.describe()
    for more in ({}, {"time": "timestamp"}):
        log = read(decisions(request=ids), episode="request", **more)
        ((_, keys),) = log.keyed()
        assert list(keys) == ["request", "timestamp", "row"]
        np.testing.assert_array_equal(keys["request"], ids)
        np.testing.assert_array_equal(keys["row"], np.arange(ROWS))
        assert "the order of rows" not in log.describe()


AFTER = np.zeros(ROWS, int)
TWICE = np.arange(ROWS) // 2
TWICE[:7] = [9, 8, 7, 6, 5, 4, 8]
BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "a next state that is named": (
        {"after": AFTER},
        {"next_state": "after"},
        'next_state="after": nothing follows a single decision, so leave this out; or leave out '
        'steps="single" if rows follow each other',
        'next_state = "after" in [log]: nothing follows a single decision, so leave this out; or '
        'leave out steps = "single" in [log] if rows follow each other',
    ),
    "an end that is named": (
        {},
        {"terminated": "click"},
        'terminated="click": nothing follows a single decision',
        'terminated = "click" in [log]: nothing follows',
    ),
    "ends": (
        {},
        {"ends": "truncated"},
        'every single decision ends its episode: leave out ends="truncated"',
        'every single decision ends its episode: leave out ends = "truncated" in [log]',
    ),
    "several rows an episode": (
        {"session": TWICE},
        {"episode": "session"},
        'row 6: episode 8 has a row before this one, and with steps="single" every row is an '
        "episode of its own: leave that out if the rows of an episode follow each other, or read "
        "with episode=None if column 'session' is no episode",
        'row 6: episode 8 has a row before this one, and with steps = "single" in [log] every row '
        "is an episode of its own: leave that out if the rows of an episode follow each other, or "
        "read with episode = false in [log] if column 'session' is no episode",
    ),
    "episodes by their name": (
        {"trajectory_id": AFTER},
        {},
        "row 1: episode 0 has a row before this one",
        "or read with episode = false in [log] if column 'trajectory_id' is no episode",
    ),
    "a missing id": (
        {"request": [*map(str, range(ROWS - 1)), ""]},
        {"episode": "request"},
        "row 1999: column 'request' is missing; rows without it belong nowhere",
        "row 1999: column 'request' is missing",
    ),
    "a probability of 0": (
        {"pscore": np.r_[[0.5] * 3, 0.0, [0.5] * (ROWS - 4)]},
        {},
        "row 3: column 'pscore' is 0.0; the action was taken",
        "row 3: column 'pscore' is 0.0",
    ),
    "a context of text": (
        {"place": np.where(np.arange(ROWS) == 4, "top", "1")},
        {},
        "row 4: column 'place', the state, is 'top', and must be a number",
        "row 4: column 'place', the state, is 'top', and must be a number",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_contradicts_single_decisions_is_refused(what: str) -> None:
    columns, options, message, in_file = BAD[what]
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        read(decisions(**columns), **options)
    assert "\n" not in str(refused.value)
    text = refused.value.in_file if isinstance(refused.value, OptionError) else message
    assert in_file in text
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_false_ids_are_none() -> None:
    assert len(read(decisions(trajectory_id=AFTER), episode=None)) == ROWS


def test_a_list_of_episodes_has_no_single_decisions() -> None:
    walk = {"obs": [0, 1, 2], "action": [1, 1], "terminated": True}
    with pytest.raises(ValueError, match="is for a table with a row for each decision"):
        gvf.read_log([walk, walk], steps="single", quiet=True)
    del walk["terminated"]
    with pytest.raises(ValueError, match="differ in their number of rows: obs 3, action 2"):
        gvf.read_log(walk, steps="single", quiet=True)


def test_steps_are_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="steps must be one of 'sequence', 'single'; got 'one'"):
        read(decisions(), steps="one")
