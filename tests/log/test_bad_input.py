"""Logs that cannot be right: one line, with row and column, and nothing is written."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gvf

GOOD: dict[str, Any] = {
    "obs_0": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "obs_1": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "action": [0, 1, 0, 1, 0, 1],
    "reward": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "terminated": [False, False, True, False, False, False],
    "truncated": [False, False, False, False, False, True],
    "episode": [0, 0, 0, 1, 1, 1],
    "step": [0, 1, 2, 0, 1, 2],
    "pscore": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
}
NAN = float("nan")


def with_(column: str, row: int, value: Any) -> dict[str, Any]:
    """The good log with one value changed."""
    values = [*GOOD[column]]
    values[row] = value
    return {**GOOD, column: values}


CASES = [
    (with_("obs_1", 3, NAN), r"row 3: column 'obs_1' is NaN or missing.*on_nan=\"keep\""),
    (with_("reward", 4, NAN), "row 4: column 'reward' is NaN or missing"),
    (with_("pscore", 2, NAN), "row 2: column 'pscore' is NaN or missing"),
    (with_("pscore", 2, 1.5), "row 2: column 'pscore' is 1.5; a probability is between 0 and 1"),
    (with_("pscore", 1, -0.1), "row 1: column 'pscore' is -0.1; a probability is between 0 and 1"),
    (with_("pscore", 5, 0.0), "row 5: column 'pscore' is 0.0; the action was taken"),
    ({**GOOD, "pscore": np.log(GOOD["pscore"])}, "behaviour_log_probability=\"pscore\""),
    ({**GOOD, "step": [0, 1, 2, 0, 3, 4]}, "row 4: column 'step' jumps from 0 to 3, so rows are"),
    (with_("step", 2, 0), "row 2: column 'step' is 0 after 1 in the same episode: sort the table"),
    (with_("episode", 2, 9), "row 1: an episode ends here, and neither terminated nor truncated"),
    (with_("episode", 5, 0), "row 4: an episode ends here"),
    (with_("terminated", 1, True), "row 1: terminated is set, but the episode 0 goes on in row 2"),
    (with_("terminated", 2, 2), "row 2: column 'terminated' is 2; it must be true or false"),
    (with_("episode", 3, NAN), "row 3: column 'episode' is missing"),
    ({**GOOD, "reward": GOOD["reward"][:-1]}, "differ in their number of rows: .*reward 5"),
    ({**GOOD, "action": ["left"] * 6}, "row 0: column 'action', the action, is .*number them 0"),
    ({k: v for k, v in GOOD.items() if "obs" not in k}, "no column looks like the state"),
    ({name: [] for name in GOOD}, "has no rows"),
    ({**GOOD, "pscore": np.full((6, 2), 0.5)}, "column 'pscore' has 2 numbers in a row"),
    ([1, 2], "episode 0 is 1; give mappings"),
    ([], "no episodes"),
    ({**GOOD, "logp": [0.0, -1.0, 0.5, 0.0, 0.0, 0.0]}, "row 2: column 'logp' is 0.5; the log"),
    ({**GOOD, "logp": [0.0, -np.inf, 0.0, 0.0, 0.0, 0.0]}, "row 1: column 'logp' is -inf; the ac"),
    ({**GOOD, "next_obs_0": GOOD["obs_0"]}, r"the state float64\[2\], the next state float64\[1\]"),
    (np.zeros(3), "cannot read a ndarray as a log"),
    ("nowhere.parquet", "there is no file nowhere.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "said"), CASES, ids=[said[:30] for _, said in CASES])
def test_an_impossible_log_is_refused_in_one_line(log: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=said) as refused:
        gvf.read_log(log, quiet=True)
    assert "\n" not in str(refused.value)


def test_the_good_log_is_good() -> None:
    assert len(gvf.read_log(GOOD, quiet=True)) == 5


def test_a_gap_is_a_cut_if_it_is_said() -> None:
    log = gvf.read_log({**GOOD, "step": [0, 1, 2, 0, 5, 6]}, gaps="cut", quiet=True)
    np.testing.assert_array_equal(log.transitions().state[:, 0], [0, 1, 2, 4])
    np.testing.assert_array_equal(log.transitions().truncated, [False, False, False, True])


def test_a_time_that_is_no_time_can_be_turned_off() -> None:
    log = gvf.read_log({**GOOD, "step": [3, 1, 2, 0, 1, 9]}, time=None, quiet=True)
    np.testing.assert_array_equal(log.transitions().step, [3, 1, 2, 0, 1])


def test_only_the_time_of_the_first_row_begins_an_episode() -> None:
    table = {"s": [0, 1, 2, 0, 1], "a": [0] * 5, "terminated": [0, 0, 0, 0, 1]}
    log = gvf.read_log({**table, "time": [3, 5, 9, 3, 4]}, quiet=True)
    np.testing.assert_array_equal(log.lengths, [2, 2])
    with pytest.raises(ValueError, match="row 3: column 'time' is 4 after 9, and no column tells"):
        gvf.read_log({**table, "time": [3, 5, 9, 4, 6]}, quiet=True)


def test_a_break_in_given_next_states_is_a_gap() -> None:
    table = {"s": [0, 1, 5, 6], "a": [0] * 4, "next_s": [1, 2, 6, 7], "terminated": [0, 0, 0, 1]}
    with pytest.raises(ValueError, match="row 1: the next state is not the state of row 2"):
        gvf.read_log(table, quiet=True)
    log = gvf.read_log(table, gaps="cut", quiet=True)
    np.testing.assert_array_equal(log.lengths, [2, 2])
    np.testing.assert_array_equal(log.terminated, [False, True])


def test_rows_of_an_episode_that_are_apart_are_refused() -> None:
    table = {"s": [0, 1, 2, 3], "a": [0] * 4, "episode": [0, 1, 0, 1]}
    with pytest.raises(ValueError, match="row 2: episode 0 goes on after another one: sort"):
        gvf.read_log(table, ends="terminated", quiet=True)


def test_interleaved_streams_are_refused() -> None:
    table = {"s": [0, 1, 2, 3], "a": [0] * 4, "stream": [0, 1, 0, 1], "terminated": [0, 0, 1, 1]}
    with pytest.raises(ValueError, match=r"row 2: episode 0 goes on after another one"):
        gvf.read_log(table, quiet=True)


def test_nan_is_kept_for_learners_that_skip_it() -> None:
    log = gvf.read_log(with_("obs_0", 1, NAN), on_nan="keep", quiet=True)
    question = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
    learner = gvf.Learner(
        question, gvf.features.Dense(2), gvf.updates.TD(0.1), on_nan="skip", seed=0
    )
    assert learner.fit(log, order="log").missing == 2


def test_densities_may_be_larger_than_1() -> None:
    density = {**GOOD, "action": [0.1] * 6, "pscore": [3.0] * 6}
    assert gvf.read_log(density, quiet=True).transitions().behaviour_probability.max() == 3.0


def test_lists_of_different_lengths_are_refused() -> None:
    table = pa.table(
        {"obs": [[1.0, 2.0], [1.0], [1.0, 2.0]], "a": [0, 0, 0], "terminated": [0, 0, 1]}
    )
    with pytest.raises(ValueError, match="row 1: column 'obs' has a list of 1, and 2 before"):
        gvf.read_log(table, quiet=True)


def test_lists_that_change_between_files_are_refused(tmp_path: Path) -> None:
    for number, size in enumerate((2, 3)):
        obs = pa.array([[1.0] * size] * 2, pa.list_(pa.float64()))
        table = pa.table({"obs": obs, "a": [0, 0], "terminated": [False, True]})
        pq.write_table(table, tmp_path / f"part-{number}.parquet")
    said = r"row 0 of part-1.parquet: column 'obs' has the shape \(3,\), and \(2,\) before"
    with pytest.raises(ValueError, match=said):
        gvf.read_log(tmp_path, quiet=True).transitions()


def test_missing_values_of_a_table_are_nan() -> None:
    table = pa.table({"obs": [1.0, None, 3.0], "a": [0, 0, 0], "terminated": [False, False, True]})
    with pytest.raises(ValueError, match="row 1: column 'obs' is NaN or missing"):
        gvf.read_log(table, quiet=True)
    ends = pa.table({"obs": [1.0, 2.0], "a": [0, 0], "terminated": [False, None]})
    with pytest.raises(ValueError, match="row 1: column 'terminated' is missing"):
        gvf.read_log(ends, quiet=True)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_truncated_parquet_file_is_named(tmp_path: Path, in_memory: bool) -> None:
    pq.write_table(pa.table(GOOD), tmp_path / "part-0.parquet")
    whole = (tmp_path / "part-0.parquet").read_bytes()
    (tmp_path / "part-1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"part-1.parquet cannot be read; .*cut off") as refused:
        gvf.read_log(tmp_path, quiet=True, in_memory=in_memory)
    assert "\n" not in str(refused.value)


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    table = pa.table({"obs": np.random.default_rng(0).normal(size=1000), "a": [0] * 1000,
                      "terminated": np.arange(1000) == 999})  # fmt: skip
    pq.write_table(table, path, write_page_checksum=True)
    damaged = bytearray(path.read_bytes())
    damaged[10:60] = bytes(50)
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"log.parquet cannot be read"):
        gvf.read_log(path, quiet=True).transitions()


def test_files_that_differ_in_their_columns_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table(GOOD), tmp_path / "part-0.parquet")
    pq.write_table(pa.table(GOOD).drop(["pscore"]), tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1.parquet has no column 'pscore', which part-0"):
        gvf.read_log(tmp_path, quiet=True)


def test_a_row_of_a_folder_is_named_with_its_file(tmp_path: Path) -> None:
    pq.write_table(pa.table(GOOD), tmp_path / "part-0.parquet")
    pq.write_table(pa.table(with_("pscore", 4, 2.0)), tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match=r"row 4 of part-1.parquet: column 'pscore' is 2.0"):
        gvf.read_log(tmp_path, quiet=True)


def test_a_column_of_another_type_is_left_out_and_named(tmp_path: Path) -> None:
    table = pa.table({**GOOD, "photo": [b"x"] * 6})
    assert (
        "left out: column 'photo', because its type is binary"
        in gvf.read_log(table, quiet=True).describe()
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reward": [0.0]}, "episode 1 has 1 entries of 'reward' for 2 steps"),
        ({"obs": [0, 1]}, "episode 1 has 2 entries of 'obs' for 2 steps; there should be one more"),
        ({"action": None}, "episode 1 has no 'action', which episode 0 has"),
    ],
)
def test_an_episode_that_differs_is_named(changed: dict[str, Any], said: str) -> None:
    one = {"obs": [0, 1, 2], "action": [0, 1], "reward": [0.0, 1.0], "terminated": True}
    other = {k: v for k, v in {**one, **changed}.items() if v is not None}
    with pytest.raises(ValueError, match=said):
        gvf.read_log([one, other], quiet=True)


def test_minari_is_asked_for_if_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "minari", None)
    with pytest.raises(ModuleNotFoundError, match=r"no file or folder .*pip install .*\[minari\]"):
        gvf.read_log("D4RL/door/human-v2", quiet=True)


def test_text_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.npz").write_bytes(b"nothing")
    (tmp_path / "log.txt").write_text("nothing")
    for name, said in (("log.npz", "cannot be read"), ("log.txt", "ends in .parquet, .csv")):
        with pytest.raises(ValueError, match=said):
            gvf.read_log(tmp_path / name, quiet=True)
