"""Logs from the files of real libraries, from tables and from lists of episodes."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.log import log as reader
from gvf.log.episode_lists import Episodes

FILES = Path(__file__).parent / "files"
EXPECTED = dict(np.load(FILES / "expected.npz"))
CUT = (EXPECTED["truncated"] | (np.arange(64) == 63)).nonzero()[0]
"""The last rows of episodes that were cut, whose next states a table without them cannot tell."""


def without_cut_rows() -> dict[str, np.ndarray[Any, Any]]:
    """The columns expected of a table without next states, by hand."""
    expected = {name: column.copy() for name, column in EXPECTED.items()}
    expected["next_state"][expected["terminated"]] = np.nan
    expected["truncated"][:] = False
    expected["truncated"][CUT - 1] = True
    return {name: np.delete(column, CUT, axis=0) for name, column in expected.items()}


def whole() -> dict[str, np.ndarray[Any, Any]]:
    """The columns expected of a source with next states."""
    expected = {name: column.copy() for name, column in EXPECTED.items()}
    expected["truncated"][-1] = True
    return expected


def check(log: gvf.Log, expected: dict[str, np.ndarray[Any, Any]]) -> None:
    found = read_through(log)
    for name, column in expected.items():
        if name == "behaviour_probability" and name not in log.columns:
            np.testing.assert_allclose(np.exp(found["behaviour_log_probability"]), column)
        else:
            np.testing.assert_array_equal(found[name], column, err_msg=name)
    assert len(log) == len(expected["action"])
    assert len(log.episodes) == 6


def read_through(log: gvf.Log) -> gvf.Transitions:
    """All transitions, from the batches."""
    return gvf.Transitions.concatenate(log)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    ("file", "derived"),
    [
        ("pandas.parquet", True),
        ("pandas.csv", True),
        ("duckdb.parquet", True),
        ("d4rl.npz", True),
        ("polars.parquet", False),
    ],
)
def test_a_file_of_a_real_library_gives_its_transitions(
    file: str, derived: bool, in_memory: bool
) -> None:
    log = gvf.read_log(FILES / file, quiet=True, in_memory=in_memory)
    assert log.in_memory is in_memory
    expected = without_cut_rows() if derived else whole()
    if file == "pandas.csv":  # decimal numbers are read in double precision
        found = read_through(log)
        np.testing.assert_allclose(found.state, expected.pop("state"), rtol=1e-6)
        np.testing.assert_allclose(found.next_state, expected.pop("next_state"), rtol=1e-6)
    check(log, expected)


def test_columns_that_are_not_recognised_are_kept() -> None:
    log = gvf.read_log(FILES / "duckdb.parquet", quiet=True)
    found = read_through(log)
    np.testing.assert_array_equal(found.twice, 2 * found.state[:, 0])
    assert log.meanings["behaviour_probability"] == ("pscore",)
    assert log.meanings["episode"] == ("trajectory",)
    assert found.trajectory[0] == "ep-0"
    question = gvf.GVF(gvf.policies.Uniform(2), "twice", 0.9)
    np.testing.assert_array_equal(question.cumulants(found), found.twice)


class Stream:
    """A table that only speaks the Arrow interface, as those of pandas, polars and DuckDB do."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_any_table_that_speaks_arrow_is_read() -> None:
    table = pq.read_table(FILES / "pandas.parquet")
    check(gvf.read_log(Stream(table), quiet=True), without_cut_rows())


def test_a_dict_of_arrays_and_transitions_are_read() -> None:
    given = {**EXPECTED, "episode": EXPECTED["episode"] + 7}
    check(gvf.read_log(given, quiet=True), whole())
    check(gvf.read_log(gvf.Transitions(**given), quiet=True), whole())


def episodes() -> list[dict[str, Any]]:
    """Episodes with one state more than steps, and an end for the last one."""
    parts = []
    for number in range(6):
        rows = EXPECTED["episode"] == number
        parts.append(
            {
                "observations": np.concatenate(
                    [EXPECTED["state"][rows], EXPECTED["next_state"][rows][-1:]]
                ),
                "actions": EXPECTED["action"][rows],
                "rewards": EXPECTED["reward"][rows],
                "terminated": bool(EXPECTED["terminated"][rows][-1]),
                "pscore": EXPECTED["behaviour_probability"][rows],
            }
        )
    return parts


def test_a_list_of_episodes_is_read() -> None:
    check(gvf.read_log(episodes(), quiet=True), whole())
    check(gvf.read_log(episodes(), quiet=True, in_memory=False), whole())


def test_a_dict_with_one_state_more_is_an_episode() -> None:
    log = gvf.read_log(episodes()[0], quiet=True)
    assert len(log.episodes) == 1
    np.testing.assert_array_equal(
        read_through(log).next_state, EXPECTED["next_state"][EXPECTED["episode"] == 0]
    )


def test_a_single_episode_may_have_names_of_its_own() -> None:
    log = gvf.read_log({"x": [0, 1, 2], "u": [1, 1], "over": True}, state="x", action="u",
                   terminated="over", quiet=True)  # fmt: skip
    np.testing.assert_array_equal(read_through(log).next_state, [1, 2])


def test_episodes_of_a_log_are_a_log() -> None:
    log = gvf.read_log(FILES / "polars.parquet", quiet=True)
    again = gvf.read_log(list(log.episodes), quiet=True)
    np.testing.assert_array_equal(again.transitions().next_state, log.transitions().next_state)
    np.testing.assert_array_equal(again.transitions().episode, log.transitions().episode)


def test_episodes_with_as_many_states_as_steps_derive_the_next_ones() -> None:
    shorter = [{**one, "observations": one["observations"][:-1]} for one in episodes()]
    check(gvf.read_log(shorter, quiet=True), without_cut_rows())


class Dataset:
    """A stand-in for a Minari dataset, with the parts of it that are used."""

    spec = SimpleNamespace(dataset_id="cartpole/short-v0")

    def __init__(self, shifted: bool = True, parts: list[dict[str, Any]] | None = None) -> None:
        self._parts = []
        for one in episodes() if parts is None else parts:
            chance = one["pscore"]
            steps = len(one["actions"])
            ended = np.arange(steps) == steps - 1
            self._parts.append(
                SimpleNamespace(
                    id=len(self._parts),
                    observations=one["observations"],
                    actions=one["actions"],
                    rewards=one["rewards"],
                    terminations=ended & one["terminated"],
                    truncations=ended & (not one["terminated"]),
                    infos={"action_prob": np.append(np.nan, chance) if shifted else chance},
                )
            )
        self.episode_indices = np.arange(len(self._parts))
        self.storage = self

    def get_episode_metadata(self, indices: Any) -> Iterator[dict[str, int]]:
        return ({"total_steps": len(self._parts[i].actions)} for i in indices)

    def iterate_episodes(self, indices: Any) -> Iterator[Any]:
        return (self._parts[i] for i in indices)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("shifted", [True, False])
def test_probabilities_in_infos_belong_to_the_step_before_their_entry(
    shifted: bool, in_memory: bool
) -> None:
    log = gvf.read_log(Dataset(shifted), quiet=True, in_memory=in_memory)
    check(log, whole())
    assert ("entry t + 1" in log.describe()) is shifted


def test_infos_of_two_lengths_are_refused() -> None:
    mixed = Dataset()
    mixed._parts[2].infos["action_prob"] = mixed._parts[2].infos["action_prob"][1:]
    with pytest.raises(ValueError, match=r"episode 2 has .* entries of 'infos/action_prob', and"):
        gvf.read_log(mixed, quiet=True)


def test_infos_whose_last_entry_is_missing_are_refused() -> None:
    turned = Dataset()
    for part in turned._parts:
        part.infos["action_prob"] = np.roll(part.infos["action_prob"], -1)
    with pytest.raises(ValueError, match="the last entry of 'infos/action_prob' is NaN"):
        gvf.read_log(turned, quiet=True)


def test_dict_observations_are_structured_states() -> None:
    walk = {
        "observation": {"place": np.arange(6.0).reshape(3, 2), "door": [0, 1, 1]},
        "action": [0, 1],
        "terminated": True,
    }
    log = gvf.read_log([walk, walk], quiet=True)
    np.testing.assert_array_equal(log.episodes[1].next_state["place"], [[2.0, 3.0], [4.0, 5.0]])
    np.testing.assert_array_equal(log.episodes[1].state["door"], [0, 1])


def test_whole_numbers_stay_whole() -> None:
    log = gvf.read_log({"s": [0, 1, 2], "a": [1, 0, 1], "terminated": [0, 0, 1]}, quiet=True)
    found = read_through(log)
    assert (found.state.dtype.kind, found.next_state.dtype.kind) == ("i", "i")
    np.testing.assert_array_equal(found.next_state, [1, 2, 2])


def test_named_columns_win(tmp_path: Path) -> None:
    table = {"v": [1, 2], "x": [3, 4], "obs": [5, 6], "b": [0, 1], "p": [0.5, 0.25]}
    pq.write_table(pa.table({**table, "end": [False, True]}), tmp_path / "log.parquet")
    log = gvf.read_log(
        tmp_path / "log.parquet", state=["x", "v"], action="b", behaviour_probability="p",
        terminated="end", quiet=True,
    )  # fmt: skip
    found = read_through(log)
    np.testing.assert_array_equal(found.state, [[3, 1], [4, 2]])
    np.testing.assert_array_equal(found.behaviour_probability, [0.5, 0.25])
    np.testing.assert_array_equal(found.obs, [5, 6])


def test_a_learner_learns_from_a_log(tmp_path: Path) -> None:
    question = gvf.GVF(gvf.policies.Fixed([0.1, 0.9]), "reward", 0.9)
    expected = whole()
    batch = gvf.Transitions(**expected)
    path = tmp_path / "log.parquet"
    gvf.read_log(batch, quiet=True).to_parquet(path)
    states = expected["state"]
    found = []
    for source in (
        batch,
        gvf.read_log(path, quiet=True),
        gvf.read_log(path, quiet=True, in_memory=False),
    ):
        for correction in (gvf.corrections.IR(), gvf.corrections.EmphaticIR(0.5)):
            learner = gvf.Learner(
                question, gvf.features.Dense(4), gvf.updates.TD(0.1), correction, seed=0
            )
            learner.fit(source, order="log")
            found.append(learner.predict(states))
    for i in (2, 4):
        np.testing.assert_array_equal(found[i], found[0])
        np.testing.assert_array_equal(found[i + 1], found[1])


def test_the_table_tells_what_was_understood(capsys: pytest.CaptureFixture[str]) -> None:
    log = gvf.read_log(FILES / "duckdb.parquet")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == log.describe() + "\n"
    lines = {line.split()[0]: " ".join(line.split()) for line in told.err.splitlines()}
    first = told.err.splitlines()[0]
    assert first.endswith("61 transitions in 6 episodes of 3 to 14 steps, in memory")
    assert lines["state"] == "state s float32[4] -2.123 to 1.393 by its name"
    assert lines["next_state"].endswith("the state of the following row")
    assert lines["behaviour_probability"].startswith("behaviour_probability pscore float64 0.4 to")
    assert lines["episode"].endswith("where trajectory changes")
    assert lines["terminated"] == "terminated terminated bool 3 of 6 episodes"
    assert lines["twice"].endswith("kept")
    assert lines["ends:"] == "ends: terminated and truncated"
    assert "(3 in all)" in lines["left"]


def test_the_table_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    gvf.read_log(FILES / "pandas.csv", quiet=True)
    assert capsys.readouterr().err == ""


def test_a_missing_next_state_after_the_end_is_no_harm() -> None:
    table = pa.table(
        {
            "obs": [[1.0, 2.0], [3.0, 4.0]],
            "next_obs": [[3.0, 4.0], None],
            "action": [0, 1],
            "terminated": [False, True],
        }
    )
    found = gvf.read_log(table, quiet=True).transitions()
    np.testing.assert_array_equal(found.next_state, [[3.0, 4.0], [np.nan, np.nan]])


def test_episodes_are_read_from_any_step_to_any_other() -> None:
    source = Episodes(episodes(), "episodes", {})
    for start, stop in ((0, 64), (3, 4), (5, 40), (20, 64)):
        batches = list(source.batches(["actions"], start, stop))
        found = np.concatenate([batch["actions"] for batch in batches])
        np.testing.assert_array_equal(found, EXPECTED["action"][start:stop])


def test_a_large_log_is_read_from_its_file_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST_IN_MEMORY", 2000)
    log = gvf.read_log(FILES / "pandas.parquet", quiet=True)
    assert not log.in_memory
    assert "read from its file in every pass" in log.describe()
    assert "ranges: of the first 61 transitions" in log.describe()
    monkeypatch.setattr(reader, "LARGEST_IN_MEMORY", 20_000)
    assert gvf.read_log(FILES / "pandas.parquet", quiet=True).in_memory
