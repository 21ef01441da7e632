"""Calls that fail, or bring nothing, leave a learner as it was."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream
from own_corrections import FollowOn, Prioritised

import gvf
from gvf.common import checkpoint
from gvf.learners.update_loop import refreshing

DATA = chain_stream(CHAIN_BEHAVIOUR, 60, seed=2)


@dataclass(frozen=True)
class Contrary(gvf.corrections.Correction):
    """A correction that refreshes masses, and draws uniformly."""

    power: float = 0.7
    floor: float = 0.1
    weigh = Prioritised.weigh
    refresh = Prioritised.refresh


def make(update=None, correction=None, question=CHAIN, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 30, "seed": 0, **options}
    return gvf.Learner(
        question,
        gvf.features.OneHot(5),
        update or gvf.updates.TD(0.5),
        correction or gvf.corrections.IR(),
        **options,
    )


def test_an_empty_batch_changes_nothing():
    for update in (gvf.updates.TD(), gvf.updates.TD(0.5)):
        learner = make(update)
        learner.observe(DATA[:0])
        assert learner.steps == 0
        learner.observe(DATA)
        before = learner.report()
        learner.observe(DATA[:0])
        assert learner.report() == before


def broken(name, value):
    """A batch with a NaN in row 1, and a value that is refused in row 3."""
    columns = {name: column.copy() for name, column in DATA[:6].columns.items()}
    columns["care"] = np.ones(6)
    columns["reward"][1] = np.nan
    columns[name][3] = value
    return gvf.Transitions(**columns)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("action", 7, "at position 2"),
        ("state", 9, "outside"),
        ("state", 4, "at position 2 does not begin in the state where the one before it ended"),
        ("care", -1.0, "interest 'care' is -1.0 at position 2"),
    ],
)
def test_a_batch_with_gaps_that_fails_is_not_observed_at_all(name, value, message, tmp_path):
    question = replace(CHAIN, interest="care")
    learner, straight = (
        make(correction=gvf.corrections.EmphaticIR(), question=question, on_nan="skip")
        for _ in range(2)
    )
    whole = gvf.Transitions(**DATA.columns, care=np.ones(60))
    for one in (learner, straight):
        one.observe(whole[: whole.terminated.nonzero()[0][-1] + 1])
    with pytest.raises(ValueError, match=message) as refused:
        learner.observe(broken(name, value))
    assert refused.value.__notes__ == ["Positions do not count the rows left out for a NaN, [1]."]
    learner.save(tmp_path / "failed")
    straight.save(tmp_path / "straight")
    assert (tmp_path / "failed").read_bytes() == (tmp_path / "straight").read_bytes()


def test_a_batch_with_gaps_at_both_ends_and_in_between_is_cut_there():
    columns = {name: column.copy() for name, column in DATA.columns.items()}
    columns["reward"][[0, 1, 20, 58, 59]] = np.nan
    together, apart = (make(correction=FollowOn(), on_nan="skip") for _ in range(2))
    batch = gvf.Transitions(**columns)
    together.observe(batch)
    together.observe(DATA)
    for i in range(60):
        apart.observe(batch[i : i + 1])
    apart.observe(DATA)
    assert together.report() == apart.report()
    np.testing.assert_array_equal(together.weights, apart.weights)
    np.testing.assert_array_equal(together.buffer.inputs, apart.buffer.inputs)


@pytest.mark.parametrize("steps", [0, 40], ids=["new", "used"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays | {"own/rng": arrays["own/rng"][:-1]},
        lambda arrays: arrays | {"own/counts": np.zeros(5, np.int64)},
        lambda arrays: arrays | {"window/column/x": np.zeros((30, 2), np.int64)},
        lambda arrays: {k: v for k, v in arrays.items() if k != "buffer/trace/memory"},
    ],
    ids=["generator", "counts", "features", "trace"],
)
def test_a_file_that_cannot_be_loaded_changes_nothing(steps, damage, tmp_path):
    saved, learner = (make(gvf.updates.Sarsa(0.5), FollowOn()) for _ in range(2))
    saved.observe(DATA)
    saved.save(tmp_path / "whole")
    description, arrays = checkpoint.read(tmp_path / "whole", "learner")
    checkpoint.write(tmp_path / "damaged", "learner", damage(arrays), description)
    learner.observe(DATA[:steps])
    learner.save(tmp_path / "before")
    with pytest.raises(ValueError, match="does not hold what it should"):
        learner.load(tmp_path / "damaged")
    learner.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    learner.load(tmp_path / "whole")
    for one in (saved, learner):
        one.observe(DATA)
    np.testing.assert_array_equal(learner.weights, saved.weights)


@pytest.mark.parametrize(
    "arguments", [(gvf.updates.TD([0.1, 0.2]), Prioritised(0.7)), (None, Contrary())]
)
def test_a_learner_that_was_never_made_does_not_take_the_window(arguments):
    window = gvf.Window(30)
    with pytest.raises(ValueError, match="masses"):
        make(*arguments, window=window)
    make(window=window)


def test_no_name_makes_two_questions_the_same(tmp_path):
    def named(cumulant):
        return make(question=gvf.GVF(CHAIN.policy, cumulant, 0.9))

    named("what cannot be compared").save(tmp_path / "learner")
    with pytest.raises(ValueError, match=r"here 'reward'$"):
        named("reward").load(tmp_path / "learner", same_functions=True)


def test_a_kernel_that_refreshes_masses_is_compiled_once_for_all_learners():
    assert refreshing(Prioritised(0.7), dense=False) == refreshing(Prioritised(0.5), dense=False)
    assert refreshing(Prioritised(0.7), dense=False) != refreshing(Prioritised(0.7), dense=True)


def test_what_came_before_an_error_of_the_source_is_learned() -> None:
    question = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9)
    learner = gvf.Learner(
        question, gvf.features.OneHot(3), gvf.updates.TD(0.1), behaviour=gvf.policies.Uniform(2)
    )

    def log() -> Iterator[dict[str, Any]]:
        for i in range(100):
            yield {"state": i % 3, "action": 0, "reward": 1.0, "next_state": 0, "terminated": False}
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="the file ends here"):
        learner.learn(log())
    assert learner.steps == 100


# One transition that fails, in each part that can raise an error


class Fails:
    """A function that raises an error from a given call on, and is a good function before."""

    def __init__(self, function: Any) -> None:
        self.function, self.armed = function, False

    def __call__(self, *arguments: Any) -> Any:
        if self.armed:
            raise ValueError("this part fails")
        return self.function(*arguments)


def states_of(learner: Any) -> dict[str, bytes]:
    """The bits of all that a learner has, its generators and its window among them."""
    arrays = {name: array.tobytes() for name, array in learner.state_dict().items()}
    return arrays | {"states": repr(learner.states).encode()}


CORRECTIONS = [gvf.corrections.IR(), FollowOn(), gvf.corrections.PrioritisedIR()]
PARTS = ["target", "behaviour", "cumulant", "continuation", "features", "loop", "interest"]


@pytest.mark.parametrize("seen", [0, 25])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("part", PARTS)
def test_one_transition_that_fails_in_any_part_changes_nothing(
    part, correction, n_step, seen, monkeypatch
):
    parts = {
        "target": Fails(lambda s: np.tile([0.3, 0.7], (len(s), 1))),
        "behaviour": Fails(lambda s: np.tile([0.5, 0.5], (len(s), 1))),
        "cumulant": Fails(lambda t: t.reward),
        "continuation": Fails(lambda t: 0.9),
        "interest": Fails(lambda t: 1.0),
        "features": Fails(lambda s: np.eye(5)[s]),
    }
    question = gvf.GVF(
        gvf.policies.Function(parts["target"], actions=2), parts["cumulant"],
        parts["continuation"], interest=parts["interest"],
    )  # fmt: skip
    learner = gvf.Learner(
        question, gvf.features.Dense(5, parts["features"]), gvf.updates.TD(0.1), correction,
        behaviour=gvf.policies.Function(parts["behaviour"], actions=2), n_step=n_step,
        window=30, seed=0,
    )  # fmt: skip
    rows = [{name: c[i] for name, c in DATA.columns.items()} for i in range(seen + 1)]
    names = ("state", "action", "reward", "next_state", "terminated")
    rows = [{name: row[name] for name in names} for row in rows]
    for row in rows[:seen]:
        learner.observe(**row)
    before = states_of(learner)
    if part == "loop":  # the step before the first change of the window
        place = (learner.values, "experience") if seen else (learner.window, "make_room")
        monkeypatch.setattr(*place, _refuse)
    else:
        parts[part].armed = True
    fails = part != "interest" or correction.trace is not None
    if part == "loop" and seen == 0 and n_step == 3:
        fails = False  # the first row only waits
    if fails:
        with pytest.raises(ValueError, match="this part fails"):
            learner.observe(**rows[seen])
        assert states_of(learner) == before


def _refuse(columns: Any) -> None:
    raise ValueError("this part fails")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("action", 7, "7"),
        ("reward", float("nan"), "cumulant 'reward' is nan"),
        ("reward", "a lot", "text"),
        ("terminated", 0.5, "must be True or False"),
        ("state", 11, "state"),
        ("next_state", -1, "state"),
        ("behaviour_probability", 0.9, "is recorded as"),
        ("behaviour_probability", 0.0, "is recorded as"),
        ("next_state", 5, "state"),
    ],
)
def test_one_plain_transition_with_a_bad_value_changes_nothing(name, value, message):
    learners = [
        make(question=gvf.GVF(gvf.policies.Fixed([0.3, 0.7])), behaviour=gvf.policies.Uniform(2)),
        gvf.OnlineLearner(
            gvf.GVF(gvf.policies.Fixed([0.3, 0.7])), gvf.features.OneHot(5),
            gvf.online.TDLambda(0.1, 0.9), behaviour=gvf.policies.Uniform(2),
        ),
        gvf.LSTDLearner(
            gvf.GVF(gvf.policies.Fixed([0.3, 0.7])), gvf.features.OneHot(5),
            behaviour=gvf.policies.Uniform(2),
        ),
    ]  # fmt: skip
    row: dict[str, Any] = {
        "state": 1, "action": 1, "reward": 1.0, "next_state": 2, "terminated": False,
    }  # fmt: skip
    for learner in learners:
        learner.observe(**row)
        learner.observe(2, 0, 1.0, 1, False)
        before = states_of(learner)
        with pytest.raises(ValueError, match=message) as one:
            learner.observe(**row | {name: value})
        assert states_of(learner) == before
        batch = gvf.Transitions(**{key: [v] for key, v in (row | {name: value}).items()})
        with pytest.raises(ValueError, match=message) as together:
            learner.observe(batch)
        assert str(one.value).replace("'", "") == str(together.value).replace("'", "")
        learner.observe(**row)


@pytest.mark.parametrize("on_nan", ["error", "skip"])
def test_one_transition_at_a_time_is_the_same_as_a_batch_to_the_last_bit(on_nan):
    """Plain rows and others in turn: some have a NaN, some a recorded probability."""
    rng = np.random.default_rng(3)
    question = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
    tiles = gvf.features.TileCoder([0.0, 0.0], [1.0, 1.0], tiles=4, tilings=8)
    one, together = (
        gvf.Learner(
            question, tiles, gvf.updates.TD(0.1), behaviour=gvf.policies.Uniform(2), window=50,
            on_nan=on_nan, seed=0,
        )
        for _ in range(2)
    )  # fmt: skip
    for step in range(300):
        state = rng.random(2)
        if on_nan == "skip" and step % 7 == 3:
            state[0] = np.nan
        row: dict[str, Any] = {
            "state": state, "action": int(rng.integers(2)), "reward": float(rng.normal()),
            "next_state": rng.random(2), "terminated": bool(rng.random() < 0.1),
        }  # fmt: skip
        if step % 5 == 0:
            row["behaviour_probability"] = 0.5
        if step % 11 == 0:
            row["reward"] = np.float32(row["reward"])
        one.observe(**row)
        row["truncated"] = False
        together.observe(gvf.Transitions(**{name: [value] for name, value in row.items()}))
    assert states_of(one) == states_of(together)
    assert repr(one.report()) == repr(together.report())
    assert (one.report().missing > 0) == (on_nan == "skip")


def test_one_ratio_that_is_too_large_to_draw_by_is_refused_as_in_a_batch():
    learner = make(question=gvf.GVF(gvf.policies.Fixed([0.3, 0.7])), behaviour=None)
    with pytest.raises(ValueError, match="must be from 0 to 1e"):
        learner.observe(1, 1, 1.0, 2, False, behaviour_probability=1e-292)
    assert learner.steps == 0


def test_a_window_that_is_restored_by_itself_is_learned_from():
    """Compiled loops must not go on with the columns that it had before."""
    learner, other = make(), make()
    for one in (learner, other):
        one.observe(DATA[:20])
    learner.window.restore(other.window.checkpoint())
    for one in (learner, other):
        one.observe(DATA[20:])
    np.testing.assert_array_equal(learner.weights, other.weights)
    np.testing.assert_array_equal(learner.window.columns["x"], other.window.columns["x"])
