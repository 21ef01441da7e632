"""Logs written and read back, and split by episodes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.log import tables as sources

FILES = Path(__file__).parent / "files"


def same(one: gvf.Log, other: gvf.Log, *, but: str = "") -> None:
    """Check that two logs have the same transitions."""
    first, second = one.transitions(), other.transitions()
    assert set(first.columns) - {but} == set(second.columns) - {but}
    for name in first.columns:
        if name != but:
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    np.testing.assert_array_equal(one.lengths, other.lengths)
    np.testing.assert_array_equal(one.terminated, other.terminated)


@pytest.mark.parametrize("file", ["pandas.parquet", "duckdb.parquet", "d4rl.npz", "polars.parquet"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_log_is_read_back_as_it_was(
    file: str, in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BATCH", 11)
    log = gvf.read_log(FILES / file, quiet=True, in_memory=in_memory)
    log.to_parquet(tmp_path / "log.parquet")
    back = gvf.read_log(tmp_path / "log.parquet", quiet=True)
    same(log, back, but="step")
    steps = np.concatenate([np.arange(length) for length in log.lengths])
    np.testing.assert_array_equal(back.transitions().step, steps)
    back.to_parquet(tmp_path / "again.parquet")
    same(back, gvf.read_log(tmp_path / "again.parquet", quiet=True))


STATES: list[Any] = [
    np.arange(24, dtype=np.uint8).reshape(4, 2, 3),
    {"lidar": np.arange(8.0).reshape(4, 2), "door": [0, 1, 1, 0]},
    [[0.5], [1.5], [2.5], [3.5]],
    [3, 1, 4, 1],
]


@pytest.mark.parametrize("states", STATES, ids=["image", "dict", "vector", "number"])
def test_states_of_every_shape_are_read_back(states: Any, tmp_path: Path) -> None:
    given = {"state": states, "action": [0, 1, 1], "reward": [0.0, 1.0, 2.0], "terminated": True}
    log = gvf.read_log([given], quiet=True)
    log.to_parquet(tmp_path / "log.parquet")
    back = gvf.read_log(tmp_path / "log.parquet", quiet=True)
    same(log, back, but="step")
    assert back.transitions().state.dtype == log.transitions().state.dtype


def test_a_part_of_a_log_is_written(tmp_path: Path) -> None:
    log = gvf.read_log(FILES / "polars.parquet", quiet=True)
    part = log.select([1, 4])
    part.to_parquet(tmp_path / "log.parquet")
    back = gvf.read_log(tmp_path / "log.parquet", quiet=True)
    np.testing.assert_array_equal(back.transitions().state, part.transitions().state)
    np.testing.assert_array_equal(back.lengths, log.lengths[[1, 4]])


def test_the_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = gvf.read_log(FILES / "polars.parquet", quiet=True)
    (tmp_path / "log.parquet").write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        log.to_parquet(tmp_path / "log.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]
    assert (tmp_path / "log.parquet").read_text() == "old"


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_split_is_by_whole_episodes(in_memory: bool) -> None:
    log = gvf.read_log(FILES / "polars.parquet", quiet=True, in_memory=in_memory)
    train, held_out = log.split(0.34, seed=5)
    assert len(held_out.episodes) == 2
    assert sorted([*train.numbers, *held_out.numbers]) == list(range(6))
    assert len(train) + len(held_out) == len(log)
    for part in (train, held_out):
        assert set(part.transitions().episode) == set(part.numbers)
        assert part.in_memory is in_memory
        for number, episode in zip(part.numbers, part.episodes, strict=True):
            np.testing.assert_array_equal(episode.state, log.episodes[int(number)].state)
    again = log.split(0.34, seed=5)
    np.testing.assert_array_equal(again[1].numbers, held_out.numbers)
    others = [log.split(0.34, seed=seed)[1].numbers.tolist() for seed in range(10)]
    assert len({tuple(numbers) for numbers in others}) > 3


def test_both_parts_of_a_split_have_an_episode() -> None:
    log = gvf.read_log(FILES / "polars.parquet", quiet=True)
    for share in (0.001, 0.999):
        assert all(len(part.episodes) for part in log.split(share))
    with pytest.raises(ValueError, match="share must be between 0 and 1"):
        log.split(1.0)
    with pytest.raises(ValueError, match="one episode cannot be split"):
        log.select([2]).split()
    with pytest.raises(IndexError, match="episodes are 0 to 5"):
        log.select([6])


def test_episodes_are_a_sequence() -> None:
    episodes = gvf.read_log(FILES / "polars.parquet", quiet=True).episodes
    np.testing.assert_array_equal(episodes[-1].state, episodes[5].state)
    assert [len(one) for one in episodes[1:3]] == [len(episodes[1]), len(episodes[2])]
    with pytest.raises(IndexError):
        episodes[6]
