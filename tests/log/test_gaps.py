"""Missing rows: an error, a cut, or kept, as the user says; and no false alarm where none is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.log import record_log
from gvf.log import tables as sources
from gvf.log.episode_bounds import Spacing

Columns = dict[str, Any]
NAN = float("nan")


def walks(rng: np.random.Generator, episodes: int = 12) -> Columns:
    """Columns of episodes of 3 to 12 steps, half of them cut."""
    parts: list[Columns] = []
    for number in range(episodes):
        steps = int(rng.integers(3, 13))
        states = rng.normal(size=(steps + 1, 2))
        last = np.arange(steps) == steps - 1
        parts.append({
            "obs_0": states[:-1, 0], "obs_1": states[:-1, 1],
            "next_obs_0": states[1:, 0], "next_obs_1": states[1:, 1],
            "action": rng.integers(2, size=steps), "reward": rng.normal(size=steps),
            "terminated": last & (number % 2 == 0), "truncated": last & (number % 2 == 1),
            "episode": np.full(steps, number), "stream": np.full(steps, number // 6),
            "step": np.arange(steps), "time": np.cumsum(rng.exponential(size=steps)),
        })  # fmt: skip
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def without(columns: Columns, rows: Any) -> Columns:
    """The columns without some rows."""
    return {name: np.delete(column, rows, axis=0) for name, column in columns.items()}


def pieces(columns: Columns, gone: Any) -> list[list[int]]:
    """The rows of each episode that is left if some rows are gone, by their numbers before."""
    parts: list[list[int]] = []
    for row in range(len(columns["action"])):
        if row in gone:
            continue
        follows = parts and parts[-1][-1] == row - 1
        if follows and columns["episode"][row - 1] == columns["episode"][row]:
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts


KEYS = {
    "ids": ("episode",),
    "ids and times": ("episode", "time"),
    "streams": ("stream", "episode"),
    "times": ("time",),
    "nothing": (),
}


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("known", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("seed", range(3))
def test_next_states_show_missing_rows_whatever_else_is_known(
    seed: int, known: tuple[str, ...], in_memory: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    columns = walks(rng)
    if known == ("time",):  # by which an episode begins again
        columns["time"] -= np.repeat(columns["time"][columns["step"] == 0],
                                     np.bincount(columns["episode"]))  # fmt: skip
    unknown = {"episode", "time", "stream", "step"} - {*known}
    ended = columns["terminated"] | columns["truncated"]
    gone = rng.choice(np.flatnonzero(~ended & (columns["step"] > 0)), 8, replace=False)
    table = {n: c for n, c in without(columns, gone).items() if n not in unknown}
    whole = pa.table(table)
    for part in range(3):
        pq.write_table(whole.slice(25 * part, 25 if part < 2 else None), tmp_path / f"{part}.pq")
    monkeypatch.setattr(sources, "BATCH", 7)
    with pytest.raises(ValueError, match=r"^row \d+ of [012].pq.*: the next state is not the st"):
        gvf.read_log(tmp_path, quiet=True, in_memory=in_memory)
    log = gvf.read_log(tmp_path, gaps="cut", quiet=True, in_memory=in_memory)
    expected = pieces(columns, gone)
    assert log.lengths.tolist() == [len(part) for part in expected]
    ends = np.array([part[-1] for part in expected])
    np.testing.assert_array_equal(log.terminated, columns["terminated"][ends])
    batch = gvf.Transitions.concatenate(log)
    rows = np.concatenate(expected)
    np.testing.assert_array_equal(batch.next_state[:, 0], columns["next_obs_0"][rows])
    np.testing.assert_array_equal(batch.reward, columns["reward"][rows])
    count = len(expected) - 12
    assert f"gaps: episodes were cut in {count} places with missing rows" in log.describe()
    if known != ("time",):
        assert len(gvf.read_log(tmp_path, gaps="keep", quiet=True).episodes) == 12


def test_the_row_the_episode_and_the_ways_out_are_named() -> None:
    columns = walks(np.random.default_rng(0))
    table = {n: c for n, c in without(columns, [1]).items() if n not in ("stream", "step")}
    names = [f"patient {n}" for n in table["episode"]]
    with pytest.raises(ValueError, match="row 0") as refused:
        gvf.read_log({**table, "episode": names}, quiet=True)
    assert str(refused.value) == (
        "row 0 of episode patient 0: the next state is not the state of row 1, and no column says "
        'that an episode ends: rows are missing: read with gaps="cut" to cut episodes there, or '
        'with gaps="keep" if none is missing'
    )
    bare = {n: c for n, c in table.items() if n not in ("episode", "time")}
    with pytest.raises(ValueError, match=r"missing, not in order, or of several streams without"):
        gvf.read_log(bare, quiet=True)


def test_a_gap_is_no_end_of_the_task() -> None:
    table = {"s": [0, 1, 3, 4], "a": [0] * 4, "next_s": [1, 2, 4, 5], "episode": [0] * 4}
    log = gvf.read_log(table, ends="terminated", gaps="cut", quiet=True)
    assert (log.lengths.tolist(), log.terminated.tolist()) == ([2, 2], [False, True])
    lost = {**table, "episode": [0, 0, 1, 1], "terminated": [0, 0, 0, 1], "truncated": [0] * 4}
    with pytest.raises(ValueError, match=r"row 1: an episode ends here, .*gaps=\"cut\" if they"):
        gvf.read_log(lost, quiet=True)
    assert gvf.read_log(lost, gaps="cut", quiet=True).terminated.tolist() == [False, True]


def test_interleaved_streams_are_noticed_without_a_column() -> None:
    table = {"s": [0, 9, 1, 8, 2, 7], "a": [0] * 6, "next_s": [1, 8, 2, 7, 3, 6]}
    for ends in ("terminated", "truncated"):
        with pytest.raises(ValueError, match=r"row 0: .*of several streams without a column"):
            gvf.read_log(table, ends=ends, quiet=True)  # pyright: ignore[reportArgumentType]


SECONDS = np.timedelta64(1, "s")
REGULAR: dict[str, Callable[[Any], Any]] = {
    "seconds": lambda step: 1_700_000_000 + 60 * step,
    "a frame": lambda step: 0.02 * step,
    "dates": lambda step: np.datetime64("2024-02-27") + 14 * step * np.timedelta64(1, "D"),
    "dates and times": lambda step: np.datetime64("2024-02-27T12:00:00") + 30 * step * SECONDS,
}


@pytest.mark.parametrize("batch", [5, 65_536])
@pytest.mark.parametrize("time", REGULAR.values(), ids=REGULAR)
def test_a_hole_in_regular_times_is_a_gap(
    time: Callable[[Any], Any], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BATCH", batch)
    steps = np.tile(np.arange(10), 6)
    columns = {"s": np.arange(60), "a": [0] * 60, "patient": np.arange(60) // 10, "when": steps}
    columns["when"] = time(steps)
    options: Any = {"episode": "patient", "time": "when", "quiet": True}
    table = without(columns, [13, 14, 38])
    for ends in ("terminated", "truncated"):
        with pytest.raises(
            ValueError, match=r"row 13: column 'when' goes on by .*a multiple of it here: "
        ):
            gvf.read_log(table, ends=ends, **options)
        log = gvf.read_log(table, ends=ends, gaps="cut", **options)
        ended = ends == "terminated"
        lengths = [10, 3, 5, 10, 8, 1, 10, 10]
        left = np.array(lengths) - [not ended, 1, not ended, not ended, 1, *[not ended] * 3]
        assert log.lengths.tolist() == [n for n in left if n]
        assert "gaps: episodes were cut in 2 places" in log.describe()
        assert (
            gvf.read_log(table, ends=ends, gaps="keep", **options).lengths.sum() == left.sum() + 2
        )
    assert len(gvf.read_log(columns, ends="terminated", **options)) == 60


@pytest.mark.parametrize(
    "times",
    [
        np.cumsum(np.random.default_rng(0).exponential(size=60)),
        np.arange(60) + np.random.default_rng(0).uniform(-0.2, 0.2, 60),  # of a busy computer
        np.cumsum(np.resize([14, 14, 14, 28, 14], 60)),  # a visit is left out now and then
        np.cumsum([7] * 30 + [10] + [7] * 29),  # not a multiple
        np.cumsum([7] * 30 + [3] + [7] * 29),
        np.cumsum([7] * 30 + [17] + [7] * 29),
        np.float32(1e5) + np.float32(0.02) * np.arange(60, dtype=np.float32).cumsum(),
        [f"{hour:02}:00" for hour in range(60)],
    ],
)
def test_irregular_times_tell_of_no_missing_row(times: Any) -> None:
    columns = {"s": np.arange(60), "a": [0] * 60, "episode": [0] * 60, "time": times}
    assert len(gvf.read_log(columns, ends="truncated", quiet=True)) == 59


def test_the_usual_time_is_that_of_the_first_rows() -> None:
    spacing = Spacing()
    for number, times in enumerate(([1.0] * 50, [2.0] * 5, [], [1.0] * 3)):
        spacing.add(np.array(times), 100 * number + np.arange(len(times)))
    assert spacing.unit == 1.0
    np.testing.assert_array_equal(spacing.holes, 100 + np.arange(5))
    spacing.add(np.array([2.0] * 2), np.array([400, 401]))
    assert len(spacing.holes) == 0  # more than one in ten


def test_times_that_were_irregular_once_stay_so() -> None:
    spacing = Spacing()
    for times in ([1.0] * 50, [1.4], [1.0] * 50 + [3.0]):
        spacing.add(np.array(times), np.arange(len(times)))
    assert len(spacing.holes) == 0


def test_next_states_that_follow_are_believed_more_than_times() -> None:
    times = np.delete(np.arange(61), 30)
    columns = {"s": np.arange(60), "next_s": np.arange(1, 61), "time": times, "a": [0] * 60}
    assert len(gvf.read_log(columns, ends="truncated", quiet=True)) == 60


def test_without_next_states_and_times_no_missing_row_is_seen() -> None:
    columns = {"s": [0, 1, 3, 4], "a": [0] * 4, "episode": [0] * 4}
    assert len(gvf.read_log(columns, ends="truncated", quiet=True)) == 3


def test_nothing_joins_rows_over_a_gap() -> None:
    columns = walks(np.random.default_rng(1))
    gone = np.flatnonzero(columns["step"] == 1)
    table = {n: c for n, c in without(columns, gone).items() if n not in ("time", "stream", "step")}
    log = gvf.read_log(
        {**table, "pscore": np.full(len(table["action"]), 0.5)}, gaps="cut", quiet=True
    )
    target = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
    assert len(log.episodes) == 24
    for options in ({"n_step": 3}, {"correction": gvf.corrections.EmphaticIR()}):
        first, second = (
            gvf.Learner(
                target,
                gvf.features.Dense(2),
                gvf.updates.TD(0.1),
                seed=0,
                batch_size=1,
                **options,  # pyright: ignore[reportArgumentType]
            )
            for _ in range(2)
        )
        first.fit(log, order="log", progress=False)
        for episode in log.episodes:
            second.fit(gvf.read_log(episode, quiet=True), order="log", progress=False)
        np.testing.assert_array_equal(first.window.columns["x"], second.window.columns["x"])
        np.testing.assert_array_equal(first.buffer.inputs, second.buffer.inputs)


def test_a_log_with_gaps_that_were_kept_is_trimmed() -> None:
    table = {"s": [0, 1, 5, 6, 2], "a": [0] * 5, "next_s": [1, 2, 6, 7, 3], "pscore": [0.5] * 5}
    log = gvf.read_log({**table, "terminated": [0, 0, 0, 0, 1]}, gaps="keep", quiet=True)
    target = gvf.policies.Function(lambda s: np.where(s[:, None] == 2, [1.0, 0], [0.5, 0.5]), 2)
    assert gvf.check_support(log, target).trim(largest_ratio=1.5).log.lengths.tolist() == [4]


# No false alarms.


def test_what_this_library_writes_has_no_gap(tmp_path: Path) -> None:
    for number, env in enumerate(
        (gym.make("CartPole-v1"), gym.make("Pendulum-v1"), gym.make("FrozenLake-v1"))
    ):
        discrete = isinstance(env.action_space, gym.spaces.Discrete)
        policy = gvf.policies.Gaussian(0.0, 1.0)
        if isinstance(env.action_space, gym.spaces.Discrete):
            policy = gvf.policies.Uniform(int(env.action_space.n))
        record_log(env, policy, 500, tmp_path / f"{number}.parquet", seed=1)
        log = gvf.read_log(tmp_path / f"{number}.parquet", quiet=True)
        assert len(log) == 500
        half = log.select(range(0, len(log.episodes), 2)) if discrete else log
        half.to_parquet(tmp_path / "half.parquet")
        again = gvf.read_log(tmp_path / "half.parquet", quiet=True)
        np.testing.assert_array_equal(again.lengths, half.lengths)


@pytest.mark.parametrize("mode", [*gym.vector.AutoresetMode])
def test_streams_of_a_vector_environment_have_no_gap(mode: gym.vector.AutoresetMode) -> None:
    env = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3, autoreset_mode=mode)
    batch = gvf.Transitions.concatenate(gvf.collect(env, gvf.policies.Uniform(2), 600, seed=0))
    log = gvf.read_log(batch, quiet=True)
    assert len(log) == len(batch)
    lengths = np.array([len(one) for one in log.episodes])
    assert lengths.mean() > 10


@pytest.mark.parametrize("digits", [(2, 2), (2, None), (None, 3), (3, 1)])
@pytest.mark.parametrize("known", [("episode",), ("step", "episode"), ()])
def test_rounded_digits_are_no_gap(
    digits: tuple[int | None, int | None], known: tuple[str, ...], tmp_path: Path
) -> None:
    columns = walks(np.random.default_rng(2))
    columns = {n: c for n, c in columns.items() if n not in {"episode", "stream", "step", "time"}
               - {*known}}  # fmt: skip
    for name, decimals in zip(("obs", "next_obs"), digits, strict=True):
        for i in range(2):
            if decimals is not None:
                columns[f"{name}_{i}"] = columns[f"{name}_{i}"].round(decimals)
    pyarrow.csv.write_csv(pa.table(columns), tmp_path / "log.csv")
    log = gvf.read_log(tmp_path / "log.csv", quiet=True)
    assert len(log.episodes) == 12
    # And what is missing is still seen.
    pyarrow.csv.write_csv(pa.table(without(columns, [1])), tmp_path / "log.csv")
    with pytest.raises(ValueError, match=r"row 0|row 1: column 'step' jumps"):
        gvf.read_log(tmp_path / "log.csv", quiet=True)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_other_precisions_are_no_gap(kind: Any) -> None:
    columns = walks(np.random.default_rng(3))
    table = {n: columns[n] for n in ("action", "terminated", "truncated", "episode")}
    state = np.stack([columns["obs_0"], columns["obs_1"]], 1).astype(kind)
    after = np.stack([columns["next_obs_0"], columns["next_obs_1"]], 1)
    log = gvf.read_log({**table, "state": state, "next_state": after}, quiet=True)
    assert len(log.episodes) == 12


def test_a_nan_may_be_any_number() -> None:
    columns = walks(np.random.default_rng(4))
    ended = columns["terminated"] | columns["truncated"]
    broken = columns | {"obs_0": np.where(columns["step"] == 2, NAN, columns["obs_0"])}
    for name in ("next_obs_0", "next_obs_1"):
        broken[name] = np.where(ended, NAN, columns[name])
    for left in ({"stream", "step", "time"}, {"stream", "step", "time", "episode"}):
        table = {n: c for n, c in broken.items() if n not in left}
        assert len(gvf.read_log(table, on_nan="keep", quiet=True).episodes) == 12
    # The other dimension still tells of a missing row.
    with pytest.raises(ValueError, match="row 0"):
        gvf.read_log(without(table, [1]), on_nan="keep", quiet=True)


def test_observations_with_names_and_images_are_compared() -> None:
    rng = np.random.default_rng(5)
    images = rng.integers(256, size=(9, 4, 4, 3), dtype=np.uint8)
    states = {"image": images, "speed": rng.normal(size=9)}
    first, after = ({n: c[part] for n, c in states.items()} for part in (slice(8), slice(1, 9)))
    table = {"state": first, "next_state": after, "action": np.zeros(8, int), "episode": [0] * 8}
    assert gvf.read_log(table, ends="truncated", quiet=True).lengths.tolist() == [8]
    after["image"] = after["image"].copy()
    after["image"][3, 1, 2, 0] += 1
    with pytest.raises(ValueError, match="row 3 of episode 0: the next state"):
        gvf.read_log(table, ends="truncated", quiet=True)
    assert gvf.read_log(table, ends="truncated", gaps="cut", quiet=True).lengths.tolist() == [4, 4]


def test_the_choices_are_named() -> None:
    with pytest.raises(ValueError, match="gaps must be one of 'error', 'cut', 'keep'"):
        gvf.read_log({"s": [0, 1], "a": [0, 0]}, gaps="join", quiet=True)  # pyright: ignore[reportArgumentType]


def missing(table: dict[str, Any], **options: Any) -> list[str]:
    """What the table of a log tells about missing rows."""
    log = gvf.read_log(table, ends="truncated", quiet=True, **options)
    return [line for line in log.describe().split("\n") if line.startswith("missing rows: ")]


def test_the_table_tells_if_missing_rows_would_not_be_seen() -> None:
    columns: dict[str, Any] = {"s": np.arange(20), "a": [0] * 20}
    none = (
        "missing rows: would not be seen, since the log has no next states, counts no steps, and "
    )
    assert missing(columns) == [none + "has no times"]
    irregular = np.cumsum(np.arange(20) % 3 + 0.3)
    assert missing({**columns, "time": irregular}) == [none + "its times are irregular"]
    assert missing({**columns, "time": irregular}, gaps="keep") == []
    assert missing({**columns, "time": 0.5 * np.arange(20)}) == []
    assert missing({**columns, "step": np.arange(20)}) == []
    assert missing({**columns, "next_s": np.arange(1, 21)}) == []
    assert missing({**columns, "terminated": [True] * 20}) == []  # nothing follows any row


def test_the_table_tells_where_only_times_show_that_rows_may_be_missing() -> None:
    """Next states follow everywhere if states are constant."""
    columns: dict[str, Any] = {"s": np.zeros(40), "a": [0] * 40, "next_s": np.zeros(40)}
    when = 0.5 * np.arange(43)
    table = {**columns, "time": np.delete(when, [7, 20, 21])}
    place = "maybe some; column 'time' goes on by a multiple of its usual amount in "
    assert missing(table) == [f"missing rows: {place}2 places, though next states follow there"]
    table["next_s"] = np.where(np.arange(40) == 6, 1.0, 0.0)  # seen, and cut
    assert missing(table, gaps="cut") == [
        f"missing rows: {place}1 place, though next states follow there"
    ]
