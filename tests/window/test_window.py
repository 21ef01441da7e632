"""Window against a deque of dicts, and what it says about bad input."""

import copy
import pickle
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from columns import assert_same

from gvf import Transitions, Window
from gvf.window import window as window_module

CAPACITIES = [1, 2, 5, 64, 100]


def row(t: int) -> dict[str, Any]:
    """The t-th transition: one of each kind of data."""
    return {
        "state": np.array([t, t + 0.25, -t, 0.5], np.float32),
        "action": t % 7,
        "reward": t / 3,
        "image": np.full((2, 3), t % 256, np.uint8),
        "terminated": t % 5 == 0,
        "count": np.int16(t % 1000),
    }


def stack(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.array([each[name] for each in rows]) for name in rows[0]}


@contextmanager
def unchanged(window: Window) -> Iterator[None]:
    """The window holds afterwards what it held before, to the type and the next slot."""
    before, columns = window.checkpoint(), {n: c.copy() for n, c in window.columns.items()}
    yield
    assert_same(window.checkpoint(), before)
    assert_same(window.columns, columns)


def some_window(filled: int, capacity: int = 3) -> Window:
    window = Window(capacity)
    for t in range(filled):
        window.append(state=[t / 2, t / 3], action=t, reward=t / 4)
    return window


# --- The ring of columns -------------------------------------------------------------------------


def test_the_tth_transition_goes_to_slot_t_mod_n_and_stays_until_overwritten():
    window = Window(4)
    for t in range(11):
        slot = window.append(**row(t))
        assert (type(slot), slot) == (int, t % 4)
        assert len(window) == min(t + 1, 4)
        present = range(max(0, t - 3), t + 1)
        batch = window[[age % 4 for age in present]]
        assert_same(batch.columns, stack([row(age) for age in present]))
        assert window.oldest_first.tolist() == [age % 4 for age in present]


def test_any_arrays_keep_their_shape_and_type():
    window = Window(3)
    window.append(**row(1))
    types = {name: (column.dtype, column.shape) for name, column in window.columns.items()}
    assert types == {
        "state": (np.float32, (3, 4)),
        "action": (np.int64, (3,)),
        "reward": (np.float64, (3,)),
        "image": (np.uint8, (3, 2, 3)),
        "terminated": (np.bool_, (3,)),
        "count": (np.int16, (3,)),
    }
    at_once = Window(3)
    at_once.extend(**stack([row(1)]))
    assert_same(at_once.checkpoint(), window.checkpoint())
    assert_same(window[[0, 0]].columns, stack([row(1), row(1)]))


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_extend_equals_repeated_append(capacity):
    at_once, one_by_one, t = Window(capacity), Window(capacity), 0
    for m in (1, capacity // 2, capacity, 0, capacity + 1, 3 * capacity + 2, 2):
        rows = [row(t + i) for i in range(m)]
        empty = {name: column[:0] for name, column in stack([row(0)]).items()}
        slots = at_once.extend(**(stack(rows) if m else empty))
        assert (slots.dtype, slots.shape) == (np.int64, (m,))
        assert slots.tolist() == [one_by_one.append(**each) for each in rows]
        assert_same(at_once.checkpoint(), one_by_one.checkpoint())
        t += m


def test_slots_may_have_any_shape_and_come_in_any_order():
    window = some_window(5)
    draws = np.array([[0, 2, 2, 1], [1, 1, 0, 0]])
    batch = window[draws]
    assert batch.state.shape == (2, 4, 2)
    np.testing.assert_array_equal(batch.action, [[3, 2, 2, 4], [4, 4, 3, 3]])
    assert window[np.array([2, 0], np.int32)].action.tolist() == [2, 3]
    assert window[np.array([2], np.uint8)].action.tolist() == [2]
    assert len(window[np.array([], np.int64)]) == 0


def test_iterating_gives_the_transitions_one_by_one_oldest_first():
    window = some_window(5)
    batches = list(window)
    assert [batch.action.tolist() for batch in batches] == [[2], [3], [4]]
    assert all(isinstance(batch, Transitions) and len(batch) == 1 for batch in batches)
    assert list(Window(3)) == []


def test_what_goes_in_and_what_comes_out_are_copies():
    window, state = Window(2), np.zeros(3)
    window.append(state=state)
    window.extend(state=state[None])
    state[:] = 1.0
    window[[0, 1]].state[:] = 2.0
    window.checkpoint()["column/state"][:] = 3.0
    window.columns.clear()
    assert window[[0, 1]].state.tolist() == [[0.0] * 3] * 2


def test_the_columns_may_be_given_in_another_order():
    window = some_window(1)
    window.append(reward=1.0, state=[2.0, 3.0], action=4)
    window.extend(action=[5], reward=[6.0], state=[[7.0, 8.0]])
    assert window[[1, 2]].reward.tolist() == [1.0, 6.0]
    assert window[[1, 2]].state.tolist() == [[2.0, 3.0], [7.0, 8.0]]


def test_an_empty_and_a_filled_window_describe_themselves():
    assert repr(Window(3)) == "Window(0 of 3: )"
    assert repr(some_window(5)) == "Window(3 of 3: state float64[2], action int64, reward float64)"


# --- Types that meet -----------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [0, np.int32(0), np.uint8(0), np.int64(0)])
@pytest.mark.parametrize("fraction", [0.5, np.float64(0.5), np.array(0.5)])
def test_an_integer_column_that_meets_a_fraction_becomes_float64(whole, fraction):
    for insert in (
        lambda window: window.append(reward=fraction),
        lambda window: window.extend(reward=[fraction]),
    ):
        window = Window(3)
        window.append(reward=whole)
        window.append(reward=whole + 1)
        insert(window)
        assert window.columns["reward"].dtype == np.float64
        assert window[[0, 1, 2]].reward.tolist() == [0.0, 1.0, 0.5]
        window.append(reward=0.25)
        assert window[[0]].reward.tolist() == [0.25]


def test_a_whole_number_in_a_float_column_leaves_its_type():
    window = Window(3)
    window.append(reward=0.5, state=np.zeros(2, np.float32), terminated=1)
    window.append(reward=1, state=np.array([1, 2]), terminated=True)
    types = {name: column.dtype for name, column in window.columns.items()}
    assert types == {"reward": np.float64, "state": np.float32, "terminated": np.int64}
    assert window[[1]].state.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (False, 7),
        (False, 0.5),
        (np.uint8(200), -1),
        (np.uint8(1), 300),
        (np.int8(1), np.int64(300)),
        (np.int32(1), 2**40),
        (np.int32(1), np.int64(2**40)),
        (np.int64(1), np.uint64(2**63)),
        (1, 2**70),
        (1, 1 + 2j),
        (np.zeros(2, np.int32), np.array([2**40, 1])),
        (np.zeros(2, bool), np.array([2, 0])),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_a_number_beyond_its_column_is_kept_whole_or_refused(first, second, many):
    window = Window(2)
    for t in range(3):  # full: whatever goes wrong would harm a transition that is there
        window.append(before=float(t), value=first, after=float(t))
    insertion = {"before": 9.0, "value": second, "after": 9.0}
    before = window.checkpoint()
    try:
        if many:
            window.extend(**{name: [value] for name, value in insertion.items()})
        else:
            window.append(**insertion)
    except (ValueError, TypeError, OverflowError):
        assert_same(window.checkpoint(), before)
    else:
        assert window[[1]].value[0].tolist() == np.asarray(second).tolist()
        assert window[[0]].value[0].tolist() == np.asarray(first).tolist()
        assert window[[0, 1]].before.tolist() == window[[0, 1]].after.tolist() == [2.0, 9.0]


# --- A hundred thousand operations ---------------------------------------------------------------


class Pair:
    """A window and a deque of dicts that go through the same operations and must agree."""

    def __init__(self, capacity: int, seed: int, path: Path) -> None:
        self.window, self.rows = Window(capacity), deque[dict[str, Any]](maxlen=capacity)
        self.inserted, self.capacity, self.path = 0, capacity, path
        self.chance = random.Random(seed)
        self.saved: Any = None

    def next_row(self) -> dict[str, Any]:
        return row(self.chance.randrange(100_000))

    @property
    def slots(self) -> list[int]:
        """The filled slots, oldest first."""
        oldest = self.inserted - len(self.rows)
        return [(oldest + age) % self.capacity for age in range(len(self.rows))]

    def append(self) -> None:
        new = self.next_row()
        assert self.window.append(**new) == self.inserted % self.capacity
        self.rows.append(new)
        self.inserted += 1

    def extend(self) -> None:
        longest = self.chance.choice([2, 5, 5 * self.capacity // 2 + 1])
        new = [self.next_row() for _ in range(self.chance.randint(1, longest))]
        slots = self.window.extend(**stack(new))
        assert slots.tolist() == [(self.inserted + i) % self.capacity for i in range(len(new))]
        self.rows.extend(new)
        self.inserted += len(new)

    def get(self) -> None:
        if self.rows:
            ages = self.chance.choices(range(len(self.rows)), k=self.chance.choice([1, 2, 9]))
            slots = self.slots
            batch = self.window[[slots[age] for age in ages]]
            assert_same(batch.columns, stack([self.rows[age] for age in ages]))

    def look(self) -> None:
        assert len(self.window) == len(self.rows)
        assert self.window.oldest_first.tolist() == self.slots
        if self.rows:
            assert_same(self.window[self.window.oldest_first].columns, stack(list(self.rows)))

    def fail(self) -> None:
        if not self.rows:
            return
        bad, unfilled = self.next_row(), len(self.rows)
        change = self.chance.randrange(4)
        if change == 0:
            bad["image"] = np.zeros((3, 2), np.uint8)
        elif change == 1:
            del bad["reward"]
        elif change == 2:
            bad["extra"] = 1.0
        else:
            with pytest.raises(IndexError):
                self.window[[0, unfilled]]
            return
        before = self.window.checkpoint()
        with pytest.raises(ValueError, match=r"image|reward|extra"):
            self.window.append(**bad)
        with pytest.raises(ValueError, match=r"image|reward|extra"):
            self.window.extend(**stack([bad]))
        assert_same(self.window.checkpoint(), before)

    def checkpoint(self) -> None:
        self.saved = self.window.checkpoint(), self.rows.copy(), self.inserted

    def restore(self) -> None:
        if self.saved:
            arrays, rows, self.inserted = self.saved
            self.rows = rows.copy()
            self.window.restore(arrays)

    def save_and_load(self) -> None:
        self.window.save(self.path)
        self.window = Window.load(self.path)


OPERATIONS = (
    [Pair.append] * 150
    + [Pair.get] * 60
    + [Pair.extend] * 15
    + [Pair.look] * 5
    + [Pair.fail] * 5
    + [Pair.checkpoint, Pair.restore]
)


@pytest.mark.parametrize("thousands", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("capacity", CAPACITIES)
def test_mixed_operations_agree_with_the_oracle(capacity, thousands, tmp_path):
    pair = Pair(capacity, seed=capacity, path=tmp_path / "window.npz")
    chance = random.Random(capacity)
    for _ in range(-(-thousands // len(CAPACITIES))):
        for operation in chance.choices(OPERATIONS, k=1000):
            operation(pair)
        pair.save_and_load()
    pair.look()


# --- To disk and back ----------------------------------------------------------------------------


@pytest.mark.parametrize("filled", [0, 1, 3, 4, 5, 8, 11])
def test_a_loaded_window_is_the_same_and_goes_on_at_the_same_slot(filled, tmp_path):
    window = Window(4)
    for t in range(filled):
        window.append(**row(t))
    window.save(tmp_path / "window.npz")
    loaded = Window.load(str(tmp_path / "window.npz"))
    assert (loaded.capacity, len(loaded), repr(loaded)) == (4, len(window), repr(window))
    for t in range(20, 27):
        assert_same(loaded.checkpoint(), window.checkpoint())
        assert loaded.oldest_first.tolist() == window.oldest_first.tolist()
        assert loaded.append(**row(t)) == window.append(**row(t)) == (filled + t - 20) % 4
    assert [path.name for path in tmp_path.iterdir()] == ["window.npz"]


def test_the_checkpoint_of_an_empty_window_empties_another():
    window = some_window(5)
    window.restore(Window(3).checkpoint())
    assert (len(window), window.columns, repr(window)) == (0, {}, "Window(0 of 3: )")
    assert window[np.array([], int)].columns == {}
    assert window.append(other=1.0) == 0
    assert window[[0]].columns == {"other": np.array([1.0])}


def test_a_window_is_saved_under_exactly_the_given_name(tmp_path):
    some_window(2).save(tmp_path / "checkpoint")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    assert len(Window.load(tmp_path / "checkpoint")) == 2


def test_a_save_that_fails_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    path = tmp_path / "window.npz"
    some_window(2).save(path)

    def write_half(file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(window_module.np, "savez", write_half)
    with pytest.raises(OSError, match="disk full"):
        some_window(3).save(path)
    assert len(Window.load(path)) == 2
    assert [found.name for found in tmp_path.iterdir()] == ["window.npz"]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copied_window_does_the_same_as_the_original(clone):
    window = some_window(4)
    twin = clone(window)
    new = {"state": [8.0, 9.0], "action": 7, "reward": 0.5}
    assert twin.append(**new) == 1
    assert (twin[[1]].action.tolist(), window[[1]].action.tolist()) == ([7], [1])
    assert (twin[[1]].state.tolist(), window[[1]].state.tolist()) == ([[8.0, 9.0]], [[0.5, 1 / 3]])
    window.append(**new)
    assert_same(twin.checkpoint(), window.checkpoint())
    assert_same(twin[[0, 1, 2]].columns, window[[0, 1, 2]].columns)


# --- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [0, -3])
def test_a_capacity_below_1_is_named(capacity):
    with pytest.raises(ValueError, match=f"capacity must be at least 1, got {capacity}"):
        Window(capacity)


@pytest.mark.parametrize("filled", [1, 3, 5])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": [0.0, 1.0], "action": 1}, "reward"),
        ({"state": [0.0, 1.0], "action": 1, "reward": 1.0, "extra": 2.0}, "extra"),
        ({"state": [0.0, 1.0], "action": 1, "rewards": 1.0}, "rewards"),
        ({}, "state, action, reward"),
        ({"state": [0.0, 1.0, 2.0], "action": 1, "reward": 1.0}, r"'state' .*\(2,\).*\(3,\)"),
        ({"state": 0.0, "action": 1, "reward": 1.0}, r"'state' .*\(2,\).*\(\)"),
        ({"state": [[0.0], [1.0]], "action": 1, "reward": 1.0}, r"'state' .*\(2,\).*\(2, 1\)"),
        ({"state": [0.0, 1.0], "action": [1], "reward": 1.0}, r"'action' .*\(\).*\(1,\)"),
        ({"state": [0.0, 1.0], "action": 1, "reward": [1.0, 2.0]}, r"'reward' .*\(\).*\(2,\)"),
        # The action would need a wider column, and only then comes what is wrong.
        ({"state": [0.0, 1.0], "action": 0.5, "reward": [1.0, 2.0]}, r"'reward' .*\(\).*\(2,\)"),
    ],
)
def test_columns_that_do_not_fit_are_named_and_nothing_changes(filled, columns, message):
    window = some_window(filled)
    with unchanged(window), pytest.raises(ValueError, match=message):
        window.append(**columns)
    several = {name: [value, value] for name, value in columns.items()}
    with unchanged(window), pytest.raises(ValueError, match=message):
        window.extend(**several)


def test_columns_of_unequal_length_are_refused():
    window = some_window(2)
    with unchanged(window), pytest.raises(ValueError, match=r"equally many.*action \(2,\)"):
        window.extend(state=[[0.0, 1.0]], action=[1, 2], reward=[1.0])
    with unchanged(window), pytest.raises(ValueError, match=r"one row a transition.*action \(\)"):
        window.extend(state=[[0.0, 1.0]], action=1, reward=[1.0])


@pytest.mark.parametrize("bad", [None, {"x": None}, object()])
def test_python_objects_are_refused_at_the_first_insertion(bad):
    window = Window(3)
    with unchanged(window), pytest.raises(TypeError, match="action"):
        window.append(state=1.0, action=bad)
    with unchanged(window), pytest.raises(TypeError, match="action"):
        window.extend(state=[1.0], action=[bad])
    assert window.columns == {}


@pytest.mark.parametrize("bad", [None, "oops", {"x": 1}, object()])
def test_what_is_no_number_is_refused_in_a_column_of_numbers(bad):
    window = some_window(5)
    with unchanged(window), pytest.raises((TypeError, ValueError), match="action"):
        window.append(state=[0.0, 1.0], action=bad, reward=1.0)
    with unchanged(window), pytest.raises((TypeError, ValueError), match="action"):
        window.extend(state=[[0.0, 1.0]], action=[bad], reward=[1.0])


def test_a_transition_without_columns_is_refused():
    window = Window(3)
    with unchanged(window), pytest.raises(ValueError, match="at least one column"):
        window.append()
    with unchanged(window), pytest.raises(ValueError, match="at least one column"):
        window.extend()


@pytest.mark.parametrize(
    ("filled", "slots", "named"),
    [
        (0, [0], "0"),
        (0, [-1], "-1"),
        (2, [2], "2"),
        (2, [0, 1, 2], "2"),
        (2, [[0, 1], [2, 0]], "2"),
        (2, [-1], "-1"),  # the last slot, which is not filled
        (2, [0, -2], "-2"),
        (2, [3], "3"),
        (2, [-4], "-4"),
        (3, [3], "3"),
        (5, [0, 7], "7"),
        (5, [-4], "-4"),
    ],
)
def test_slots_that_are_not_filled_are_an_index_error(filled, slots, named):
    window = some_window(filled)
    with unchanged(window), pytest.raises(IndexError, match=named):
        window[slots]


@pytest.mark.parametrize("slots", [[0.0], [0.5], ["state"], [True, False, True], [None]])
@pytest.mark.parametrize("filled", [2, 5])
def test_slots_that_are_no_whole_numbers_are_an_index_error(slots, filled):
    with pytest.raises((IndexError, TypeError), match="slots must be integers"):
        some_window(filled)[slots]


def test_a_checkpoint_of_another_capacity_is_refused():
    window = some_window(2)
    with unchanged(window), pytest.raises(ValueError, match="capacity is 4, this window's 3"):
        window.restore(some_window(2, capacity=4).checkpoint())


def test_a_checkpoint_that_does_not_fit_together_changes_nothing():
    window, broken = some_window(2), some_window(3).checkpoint()
    broken["column/action"] = broken["column/action"][:1]
    with unchanged(window), pytest.raises(ValueError, match="action"):
        window.restore(broken)


# Structured columns


FIELDS = np.dtype([("door", np.bool_), ("place", np.float64, (2,)), ("inner", [("n", np.int16)])])


def structured(count: int) -> np.ndarray:
    states = np.zeros(count, FIELDS)
    states["door"] = np.arange(count) % 2
    states["place"] = np.arange(2 * count).reshape(count, 2) / 7
    states["inner"]["n"] = np.arange(count)
    return states


def test_a_column_may_have_fields(tmp_path):
    window, states = Window(5), structured(12)
    window.append(state=states[0], reward=0.0)
    window.append(state={"door": False, "place": [0.0, 0.0], "inner": {"n": np.int16(1)}}, reward=1)
    window.extend(state=states[2:4], reward=[2.0, 3.0])
    assert window[[0, 3, 1]].state["inner"]["n"].tolist() == [0, 3, 1]
    assert repr(window) == (
        "Window(4 of 5: state {door bool, place float64[2], inner {n int16}}, reward float64)"
    )
    window.save(tmp_path / "window")
    again = Window.load(tmp_path / "window")
    for one in (window, again, pickle.loads(pickle.dumps(window)), copy.deepcopy(window)):
        one.extend(state=states[4:], reward=np.arange(4.0, 12.0))
        kept = one[one.oldest_first]
        assert np.array_equal(kept.state, states[7:])
        # Joined batches go back in, however they lie in memory.
        both = Transitions.concatenate([kept, kept])
        one.extend(**both.columns)
        assert np.array_equal(one[one.oldest_first].state, states[7:])
        assert kept.state["place"].flags.aligned


def test_a_checkpoint_has_zeros_between_the_fields():
    window = Window(1000)
    window.extend(state=structured(1000))
    np.full(50_000, 255, np.uint8)  # freed at once: what is allocated next is not zero
    between = window.checkpoint()["column/state"].view(np.uint8).reshape(1000, -1)[:, 1:8]
    assert not between.any()


def test_other_fields_are_refused_and_nothing_changes():
    window = Window(3)
    window.extend(state=structured(2))
    for bad in (np.zeros(2, [("door", bool)]), np.zeros(2), {"door": [1], "place": [[0.0, 1.0]]}):
        with unchanged(window), pytest.raises(TypeError, match="column 'state' holds"):
            window.extend(state=bad)
