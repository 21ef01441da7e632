"""Episodes found in tables of any cut, against a reader that goes row by row."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.log import tables as sources

Rows = list[dict[str, Any]]


def random_rows(rng: np.random.Generator, episodes: int) -> Rows:
    """A log with episodes of 1 to 9 steps, which end in both ways."""
    rows: Rows = []
    for number in range(episodes):
        steps = int(rng.integers(1, 10))
        terminated = bool(rng.random() < 0.6)
        states = rng.normal(size=(steps + 1, 2))
        for t in range(steps):
            last = t == steps - 1
            rows.append(
                {
                    "obs_0": states[t, 0],
                    "obs_1": states[t, 1],
                    "next_obs_0": states[t + 1, 0],
                    "next_obs_1": states[t + 1, 1],
                    "action": int(rng.integers(3)),
                    "reward": rng.normal(),
                    "terminated": last and terminated,
                    "truncated": last and not terminated,
                    "pscore": rng.uniform(0.1, 1.0),
                    "episode": 3 * number + 5,
                    "step": t,
                    "sensor": rng.normal(),
                }
            )
    return rows


def by_hand(rows: Rows, derived: bool) -> Rows:
    """The transitions of a log, row by row: what the reader must give."""
    found: Rows = []
    number = -1
    for i, row in enumerate(rows):
        first = i == 0 or rows[i - 1]["terminated"] or rows[i - 1]["truncated"]
        last = row["terminated"] or row["truncated"]
        single = first and last
        number += first and not (derived and single and not row["terminated"])
        after = [row["next_obs_0"], row["next_obs_1"]]
        truncated = row["truncated"]
        if derived:
            if last and not row["terminated"]:
                continue
            after = [np.nan, np.nan]
            if not row["terminated"]:
                after = [rows[i + 1]["obs_0"], rows[i + 1]["obs_1"]]
                truncated = rows[i + 1]["truncated"]
        found.append(
            {
                "state": [row["obs_0"], row["obs_1"]],
                "action": row["action"],
                "reward": row["reward"],
                "next_state": after,
                "terminated": row["terminated"],
                "truncated": truncated,
                "behaviour_probability": row["pscore"],
                "sensor": row["sensor"],
                "episode": number,
            }
        )
    return found


def same(found: gvf.Transitions, expected: Rows) -> None:
    assert len(found) == len(expected)
    for name in expected[0]:
        column = np.array([row[name] for row in expected])
        np.testing.assert_array_equal(found[name], column, err_msg=name)


def write(rows: Rows, folder: Path, rng: np.random.Generator) -> None:
    """Write rows to files and row groups that cut episodes anywhere."""
    folder.mkdir()
    cuts = [0, *sorted(rng.choice(len(rows) - 1, 11, replace=False) + 1), len(rows)]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        table = pa.Table.from_pylist(rows[start:stop])
        path = folder / f"part-{number}.parquet"
        pq.write_table(table, path, row_group_size=int(rng.integers(1, 9)))


GIVEN = ("next_obs_0", "next_obs_1")
NAMED = ("episode", "step")


@pytest.mark.parametrize("left_out", [(), GIVEN, NAMED, GIVEN + NAMED, (*GIVEN, "episode")])
@pytest.mark.parametrize("seed", range(3))
def test_a_folder_of_files_is_read_as_by_hand(
    seed: int, left_out: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    full = random_rows(rng, 40)
    rows = [{k: v for k, v in row.items() if k not in left_out} for row in full]
    write(rows, tmp_path / "log", rng)
    expected = by_hand(full, derived="next_obs_0" in left_out)
    monkeypatch.setattr(sources, "BATCH", 7)
    log = gvf.read_log(tmp_path / "log", quiet=True, in_memory=False)
    same(gvf.Transitions.concatenate(log), expected)
    assert max(map(len, log)) <= 8
    memory = gvf.read_log(tmp_path / "log", quiet=True)
    same(memory.transitions(), expected)
    assert len(log) == len(expected)
    numbers = sorted({row["episode"] for row in expected})
    assert len(log.episodes) == len(numbers)
    parts = [[row for row in expected if row["episode"] == n] for n in numbers]
    for one in (log, memory):
        for position, (episode, part) in enumerate(zip(one.episodes, parts, strict=True)):
            same(episode, part)
            if position % 9 == 0:
                same(one.episodes[position], part)
        chosen = one.select([17, 3, 4, 30])
        same(chosen.transitions(), parts[3] + parts[4] + parts[17] + parts[30])
        np.testing.assert_array_equal(chosen.numbers, [3, 4, 17, 30])
        same(chosen.episodes[2], parts[17])


TABLE: dict[str, Any] = {
    "obs": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "action": [0, 1, 0, 1, 0, 1],
    "next_obs": [1.0, 2.0, 9.0, 4.0, 5.0, 9.0],
}


def ends(log: gvf.Log) -> list[tuple[int, bool]]:
    """The length of each episode, and True if the task ended it."""
    return list(zip(log.lengths.tolist(), log.terminated.tolist(), strict=True))


DONE = [False, False, True, False, False, True]


@pytest.mark.parametrize("meaning", ["terminated", "truncated"])
def test_done_has_the_meaning_that_is_said(meaning: Any) -> None:
    log = gvf.read_log({**TABLE, "done": DONE}, ends=meaning, quiet=True)
    assert ends(log) == [(3, meaning == "terminated")] * 2


@pytest.mark.parametrize("named", ["terminated", "truncated"])
def test_done_may_be_named_as_either(named: str) -> None:
    more: dict[str, Any] = {named: "done"}
    if named == "truncated":
        more["ends"] = "terminated"
    log = gvf.read_log({**TABLE, "done": DONE}, quiet=True, **more)
    assert ends(log) == [(3, named == "terminated")] * 2


def test_done_alone_is_refused_with_the_ways_out() -> None:
    with pytest.raises(
        ValueError, match=r"'done' does not say why .*ends=\"terminated\".*ends=\"tru"
    ):
        gvf.read_log({**TABLE, "done": DONE}, quiet=True)


@pytest.mark.parametrize("both", [True, False])
def test_done_beside_truncated_is_clear(both: bool) -> None:
    truncated = [False, False, True, False, False, False]
    done = [False, False, both, False, False, True]
    log = gvf.read_log({**TABLE, "done": done, "truncated": truncated}, quiet=True)
    assert ends(log) == [(3, False), (3, True)]


@pytest.mark.parametrize("meaning", ["terminated", "truncated"])
def test_numbers_of_episodes_need_a_meaning_of_their_ends(meaning: Any) -> None:
    numbered = {**TABLE, "episode": [7, 7, 7, 2, 2, 2]}
    with pytest.raises(ValueError, match="only episode tells where episodes end, not why"):
        gvf.read_log(numbered, quiet=True)
    log = gvf.read_log(numbered, ends=meaning, quiet=True)
    assert ends(log) == [(3, meaning == "terminated")] * 2


def test_an_episode_without_its_end_was_cut_if_only_terminated_is_known() -> None:
    numbered = {**TABLE, "episode": [7, 7, 7, 2, 2, 2], "terminated": [0, 0, 0, 0, 0, 1]}
    assert ends(gvf.read_log(numbered, quiet=True)) == [(3, False), (3, True)]


def test_episodes_begin_where_the_step_does() -> None:
    counted = {**TABLE, "step": [0, 1, 2, 0, 1, 2], "terminated": [0, 0, 0, 0, 0, 1]}
    assert ends(gvf.read_log(counted, quiet=True)) == [(3, False), (3, True)]


def test_a_stream_without_ends_is_one_episode_if_it_is_said() -> None:
    stream = {"obs": [0.0, 1.0, 2.0], "action": [0, 0, 0]}
    with pytest.raises(ValueError, match="no column tells where episodes end"):
        gvf.read_log(stream, quiet=True)
    log = gvf.read_log(stream, ends="truncated", quiet=True)
    assert ends(log) == [(2, False)]


def test_a_number_may_return_after_an_end() -> None:
    restarted = {**TABLE, "episode": [0, 0, 0, 0, 0, 0], "stream": [0, 0, 0, 1, 1, 1]}
    log = gvf.read_log({**restarted, "terminated": DONE}, quiet=True)
    assert ends(log) == [(3, True)] * 2
    again = {**TABLE, "episode": [0, 1, 1, 0, 0, 0], "terminated": [1, 0, 1, 0, 0, 1]}
    assert ends(gvf.read_log(again, quiet=True)) == [(1, True), (2, True), (3, True)]


def test_streams_have_several_episodes_and_stop_anywhere() -> None:
    streams = {**TABLE, "stream": [0, 0, 0, 0, 1, 1], "terminated": [0, 1, 0, 0, 0, 1]}
    streams |= {"next_obs": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "truncated": [False] * 6}
    log = gvf.read_log(streams, quiet=True)
    assert ends(log) == [(2, True), (2, False), (2, True)]
    np.testing.assert_array_equal(log.transitions().stream, streams["stream"])
    assert "by terminated and truncated, where stream changes" in log.describe()


def test_episodes_without_a_transition_are_left_out() -> None:
    table = {"s": [0, 1, 2, 3], "a": [0, 0, 0, 0], "episode": [0, 1, 1, 2]}
    log = gvf.read_log({**table, "terminated": [0, 0, 1, 0]}, quiet=True)
    assert ends(log) == [(2, True)]
    np.testing.assert_array_equal(log.transitions().episode, [0, 0])
    assert "left out: 2 episodes with no other row" in log.describe()
    with pytest.raises(ValueError, match="no row has a next state"):
        gvf.read_log({"s": [0], "a": [0], "terminated": [0]}, quiet=True)


def test_hive_folders_give_a_column(tmp_path: Path) -> None:
    for number in (2, 10):
        (tmp_path / f"episode={number}").mkdir()
        table = pa.table({"obs": [number * 1.0, 1.0], "a": [0, 1], "terminated": [False, True]})
        pq.write_table(table, tmp_path / f"episode={number}" / "data.parquet")
    log = gvf.read_log(tmp_path, quiet=True)
    np.testing.assert_array_equal(log.transitions().state, [2.0, 1.0, 10.0, 1.0])


def test_a_part_of_a_log_in_files_is_loaded_with_its_columns(tmp_path: Path) -> None:
    walks = [{"s": [n, n + 1], "a": [1], "terminated": True} for n in range(20)]
    gvf.read_log(walks, quiet=True).to_parquet(tmp_path / "log.parquet")
    log = gvf.read_log(tmp_path / "log.parquet", in_memory=False, quiet=True)
    part = log.with_columns(lambda batch: {"twice": 2 * batch.state}).select([3, 5])
    loaded = part.loaded()
    assert (part.in_memory, loaded.in_memory) == (False, True)
    (tmp_path / "log.parquet").unlink()
    np.testing.assert_array_equal(loaded.transitions().twice, [6, 10])
    np.testing.assert_array_equal(loaded.episodes[1].state, [5])
    np.testing.assert_array_equal(loaded.numbers, part.numbers)
    assert loaded.loaded() is loaded
