"""The log's own names of episodes and its times, by which other tables join the log."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.log import tables as sources

ROWS: dict[str, Any] = {
    "obs": [0, 1, 2, 0, 1, 3, 4],
    "action": [1, 0, 1, 0, 1, 0, 1],
    "reward": [0.0] * 7,
    "terminated": [False, False, True, False, True, False, False],
    "pscore": [0.5] * 7,
}
"""Three episodes; the last one is cut, so its last row is no transition."""
NAMES = ["z", "z", "z", "b", "b", "a long name", "a long name"]
CLOCK = pa.array(
    [datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=7 * row) for row in range(7)],
    pa.timestamp("us", "Europe/Paris"),
)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], str | None]] = {
    "text": ({"episode": NAMES}, {}, ["episode"], None),
    "numbers": ({"episode": pa.array([7] * 3 + [3] * 2 + [900] * 2, pa.int16())}, {},
                ["episode"], None),
    "named": ({"patient": NAMES, "day": [3, 4, 5, 9, 10, 1, 2]},
              {"episode": "patient", "time": "day"}, ["patient"], "day"),
    "times": ({"episode": CLOCK.take(pa.array([0, 0, 0, 3, 3, 5, 5])), "timestamp": CLOCK}, {},
              ["episode"], "timestamp"),
    "several": ({"site": ["A"] * 3 + ["B"] * 4, "visit": [2, 2, 2, 2, 2, 1, 1]},
                {"episode": ["site", "visit"]}, ["site", "visit"], None),
    "streams": ({"env_id": [0, 0, 0, 0, 0, 1, 1], "step": [0, 1, 2, 0, 1, 0, 1]}, {},
                ["env_id"], "step"),
    "streams and names": ({"env_id": [4, 4, 4, 4, 4, 9, 9], "ep": [1, 1, 1, 0, 0, 1, 1]}, {},
                          ["env_id", "ep"], None),
    "none": ({}, {}, [], None),
    "time in the state": ({"episode": NAMES, "t": [3, 4, 5, 9, 10, 1, 2]},
                          {"state": ["obs", "t"], "time": "t"}, ["episode"], "t"),
}  # fmt: skip


@pytest.fixture(params=[True, False], ids=["memory", "passes"])
def in_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(sources, "BATCH", 2)
    return request.param


@pytest.fixture(params=[*CASES])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, ...]:
    """A table, the options that read it, its columns of names, and that of times."""
    columns, options, names, times = CASES[request.param]
    table = pa.table({**ROWS, **columns})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=3)
    return table, tmp_path / "log.parquet", options, names, times


def keys_of(log: gvf.Log) -> dict[str, np.ndarray[Any, Any]]:
    """The keys of all transitions."""
    parts = [keys for _, keys in log.keyed()]
    assert sum(len(part["row"]) for part in parts) == len(log)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def agree(log: gvf.Log, table: pa.Table, rows: list[int], names: list[str], times: Any) -> None:
    """Check that the keys are those of some rows of the table, in values and types."""
    keys = keys_of(log)
    assert keys["row"].tolist() == rows
    for name in [*names, *([times] if times else [])]:
        expected = table[name].to_numpy()[rows]
        assert keys[name].tolist() == expected.tolist()
        assert keys[name].dtype.kind == ("U" if expected.dtype == object else expected.dtype.kind)
        assert keys[name].dtype.kind in "UM" or keys[name].dtype == expected.dtype
    assert list(log.ids) == names
    assert log.times == times


def test_the_keys_are_the_logs_own(case, in_memory: bool) -> None:
    table, path, options, names, times = case
    log = gvf.read_log(path, in_memory=in_memory, quiet=True, **options)
    agree(log, table, [0, 1, 2, 3, 4, 5], names, times)
    for name in names:
        assert log.ids[name].tolist() == table[name].to_numpy()[[0, 3, 5]].tolist()


def test_parts_of_a_log_keep_them(case, in_memory: bool) -> None:
    table, path, options, names, times = case
    log = gvf.read_log(path, in_memory=in_memory, quiet=True, **options)
    agree(log.select([2, 0]), table, [0, 1, 2, 5], names, times)
    rows = [keys_of(part)["row"].tolist() for part in log.split(0.4, seed=1)]
    assert sorted(rows[0] + rows[1]) == [0, 1, 2, 3, 4, 5]
    for part, own in zip(log.split(0.4, seed=1), rows, strict=True):
        agree(part.loaded(), table, own, names, times)
    more = log.with_columns(lambda batch: {"twice": 2 * batch.reward})
    agree(more, table, [0, 1, 2, 3, 4, 5], names, times)
    same = gvf.behaviour.Counts(features=lambda states: np.zeros(len(states), int))
    estimated = gvf.estimate_behaviour(log, progress=False, model=same, folds=2).log
    agree(estimated, table, [0, 1, 2, 3, 4, 5], names, times)


def test_a_written_log_keeps_them(case, in_memory: bool, tmp_path: Path) -> None:
    table, path, options, names, times = case
    log = gvf.read_log(path, in_memory=in_memory, quiet=True, **options).select([0, 2])
    for file in ("first.parquet", "second.parquet"):
        log.to_parquet(tmp_path / file)
        log = gvf.read_log(tmp_path / file, in_memory=in_memory, quiet=True)
    there, back = table.take([0, 1, 2, 5]), pq.read_table(tmp_path / "second.parquet")
    for name in [*names, *([times] if times else [])]:
        assert back[name].combine_chunks().equals(there[name].combine_chunks())
    # A file of ours has what was counted as columns of its own.
    agree(log, back, [0, 1, 2, 3], names or ["episode"], times or "step")


def test_what_the_log_does_not_have_is_counted() -> None:
    keys = keys_of(gvf.read_log(ROWS, quiet=True, ends="truncated"))
    assert {name: column.tolist() for name, column in keys.items()} == {
        "row": [0, 1, 2, 3, 4, 5], "episode": [0, 0, 0, 1, 1, 2], "step": [0, 1, 2, 0, 1, 0],
    }  # fmt: skip
    streams = gvf.read_log({**ROWS, **CASES["streams"][0]}, quiet=True)
    assert [*keys_of(streams)] == ["env_id", "step", "row", "episode"]
    assert keys_of(streams)["episode"].tolist() == [0, 0, 0, 1, 1, 2]


def test_counts_are_not_called_like_columns_of_the_log() -> None:
    others = {"row": [9] * 7, "step": [8] * 7}
    log = gvf.read_log({**ROWS, **others}, time=None, quiet=True)
    assert log.counted == {"row number": "row", "episode": "episode", "step number": "step"}
    keys = next(iter(log.keyed()))[1]
    assert keys["row number"].tolist() == [0, 1, 2, 3, 4, 5]
    assert keys["step number"].tolist() == [0, 1, 2, 0, 1, 0]


def test_episodes_of_a_list_keep_what_they_call_themselves() -> None:
    walks = [
        {"episode": name, "obs": [0, 1, 2], "action": [1, 1], "t": [5, 6], "terminated": True}
        for name in ("p9", "p10", "p9")
    ]
    log = gvf.read_log(walks, quiet=True)
    assert log.ids["episode"].tolist() == ["p9", "p10", "p9"]
    assert keys_of(log)["t"].tolist() == [5, 6] * 3
    assert log.numbers.tolist() == [0, 1, 2]


def test_an_episode_in_pieces_keeps_its_name(tmp_path: Path) -> None:
    table = {**ROWS, "episode": ["a"] * 5 + ["b"] * 2, "step": [0, 1, 2, 6, 7, 0, 1]}
    table["terminated"] = [False] * 4 + [True] + [False] * 2
    log = gvf.read_log(table, ends="truncated", gaps="cut", quiet=True)
    assert log.ids["episode"].tolist() == ["a", "a", "b"]
    assert keys_of(log)["row"].tolist() == [0, 1, 3, 4, 5]
    log.to_parquet(tmp_path / "log.parquet")
    back = gvf.read_log(tmp_path / "log.parquet", quiet=True)
    assert back.ids["episode"].tolist() == ["a", "a", "b"]
    assert keys_of(back)["step"].tolist() == [0, 1, 6, 7, 0]


def test_an_episode_without_a_transition_takes_its_name_along() -> None:
    """The last row of an episode that was cut has no next state, and here it is the only one."""
    table = {**ROWS, "episode": ["z", "z", "z", "gone", "b", "c", "c"]}
    log = gvf.read_log(table, quiet=True)
    assert log.ids["episode"].tolist() == ["z", "b", "c"]
    assert keys_of(log)["episode"].tolist() == ["z", "z", "z", "b", "c"]


def test_a_trimmed_log_keeps_them() -> None:
    probability = [0.5, 0.001, 0.5, 0.5, 0.5, 0.5, 0.5]
    table = {**ROWS, "episode": NAMES, "pscore": probability, "t": [1, 2, 3, 1, 2, 1, 2]}
    log = gvf.read_log(table, quiet=True)
    trimmed = gvf.check_support(log, gvf.policies.Uniform(2)).trim(largest_ratio=10.0).log
    assert trimmed.ids["episode"].tolist() == ["z", "z", "b", "a long name"]
    keys = keys_of(trimmed)
    assert keys["episode"].tolist() == ["z", "z", "b", "b", "a long name"]
    assert keys["t"].tolist() == [1, 3, 1, 2, 1]


def test_rows_of_several_episodes_mixed_are_refused() -> None:
    with pytest.raises(ValueError, match="row 2: episode z goes on after another one"):
        gvf.read_log({**ROWS, "episode": ["z", "b", "z", "b", "b", "c", "c"]}, ends="truncated")
    mixed = {**ROWS, "site": ["A", "B", "A", "B", "B", "A", "A"], "visit": [1, 2, 1, 2, 2, 3, 3]}
    with pytest.raises(ValueError, match=r"row 2: episode \('A', 1\) goes on after another one"):
        gvf.read_log(mixed, episode=["site", "visit"], ends="truncated")


def test_a_missing_part_of_a_name_is_refused() -> None:
    table = {**ROWS, "site": ["A", "A", "A", "", "A", "B", "B"], "visit": [1] * 7}
    with pytest.raises(ValueError, match="row 3: column 'site' is missing; rows without it"):
        gvf.read_log(table, episode=["site", "visit"], ends="truncated")


def test_names_that_are_given_when_a_file_of_ours_is_read_win(tmp_path: Path) -> None:
    log = gvf.read_log({**ROWS, "episode": NAMES, "ward": [1, 1, 1, 2, 2, 3, 3]}, quiet=True)
    log.to_parquet(tmp_path / "log.parquet")
    again = gvf.read_log(tmp_path / "log.parquet", episode="ward", quiet=True)
    assert list(again.ids) == ["ward"]
