"""The meanings of columns by their names."""

import pytest

import gvf
from gvf.log.column_meanings import meaning_of, recognise


@pytest.mark.parametrize(
    ("names", "meaning"),
    [
        ("state States s obs Obs observation observations context", "state"),
        ("next_state next_obs nextObservation new_obs observation_next s_prime", "next_state"),
        ("action actions a", "action"),
        ("reward rewards r", "reward"),
        ("terminated terminations", "terminated"),
        ("truncated truncations timeout timeouts TimeLimit.truncated", "truncated"),
        ("done dones terminal terminals is_terminal", "done"),
        ("episode episode_id eps_id episode_index trajectory_id", "episode"),
        ("step t time timestep timestamp frame_index", "time"),
        ("stream env_id", "stream"),
        (
            "behaviour_probability behavior_probability behavior_prob action_prob pscore "
            "propensity infos/action_prob",
            "behaviour_probability",
        ),
        (
            "behaviour_log_probability action_logp action_log_prob action_log_probs "
            "sample_log_prob infos/action_log_probs logp",
            "behaviour_log_probability",
        ),
        # The first is the probability of an outcome in FrozenLake.
        ("prob speed obs_x state_of_health id", None),
    ],
)
def test_names_in_use_are_known(names: str, meaning: str | None) -> None:
    assert {name: meaning_of(name) for name in names.split()} == dict.fromkeys(
        names.split(), meaning
    )


def test_numbered_columns_are_joined_in_the_order_of_their_numbers() -> None:
    names = [f"obs_{i}" for i in (10, 2, 9, 1, 0, 3, 4, 8, 5, 6, 7)]
    part = recognise(names, {}).parts["state"]
    assert part.columns == tuple(f"obs_{i}" for i in range(11))
    assert part.is_matrix


def test_numbers_may_begin_with_1_and_need_no_underscore() -> None:
    parts = recognise(["state2", "state1", "next_state_1", "next_state_2"], {}).parts
    assert parts["state"].columns == ("state1", "state2")
    assert parts["next_state"].columns == ("next_state_1", "next_state_2")


@pytest.mark.parametrize("numbers", [(0, 1, 3), (1, 3), (2, 3)])
def test_a_missing_number_is_told(numbers: tuple[int, ...]) -> None:
    missing = {(0, 1, 3): 2, (1, 3): 2, (2, 3): 1}[numbers]
    with pytest.raises(ValueError, match=f"but number {missing} is missing"):
        recognise([f"obs_{i}" for i in numbers], {})


def test_two_columns_of_one_meaning_are_refused_until_one_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"'obs' and 'state' both look like the state.*state=.obs."
    ):
        recognise(["obs", "state", "a"], {})
    reading = recognise(["obs", "context", "a"], {"state": "obs"})
    assert reading.parts["state"].columns == ("obs",)
    assert reading.kept == {"context": "context"}


def test_a_column_whose_name_is_taken_is_left_out() -> None:
    reading = recognise(["obs", "state", "a"], {"state": "obs"})
    assert reading.kept == {}
    assert list(reading.left_out) == ["state"]


def test_none_turns_a_meaning_off() -> None:
    reading = recognise(["obs", "t", "a"], {"time": None})
    assert "time" not in reading
    assert reading.kept == {"t": "t"}


def test_a_column_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r'state="velocty": there is no column .velocty.; did you '
    ):
        recognise(["velocity", "a"], {"state": "velocty"})


def test_a_meaning_that_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="no option 'states'; did you mean 'state'"):
        recognise(["x"], {"states": "x"})


def test_done_beside_terminated_adds_nothing() -> None:
    reading = recognise(["obs", "done", "terminated"], {})
    assert "done" not in reading
    assert reading.kept == {"done": "done"}


def test_entries_of_infos_are_kept_without_the_prefix() -> None:
    assert recognise(["obs", "infos/x_position"], {}).kept == {"x_position": "infos/x_position"}
    both = recognise(["obs", "infos/speed", "speed"], {}).kept
    assert both == {"infos/speed": "infos/speed", "speed": "speed"}


def test_a_meaning_needs_a_column() -> None:
    decisions = {"action": [0, 1], "reward": [0.0, 1.0]}
    with pytest.raises(ValueError, match=r"^state=\[\] names no column; name at least one$"):
        gvf.read_log(decisions, state=[], steps="single", quiet=True)
