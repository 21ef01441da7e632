"""The window of frames against a plain window that keeps every image twice."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gvf import Transitions, Window
from gvf.window.frame_window import FrameWindow

SHAPE = (4, 6)
COLUMNS = ("state", "action", "next_state", "behaviour_log_probability")


def stream(rows: int, *, end: float, seed: int, shape: tuple[int, ...] = SHAPE) -> Transitions:
    """Transitions in episodes that end at random; ``end=1`` for ones that never follow on."""
    rng = np.random.default_rng(seed)
    frame = rng.integers(0, 256, shape, np.uint8)
    states, next_states = [], []
    for _ in range(rows):
        states.append(frame)
        frame = rng.integers(0, 256, shape, np.uint8)
        next_states.append(frame)
        if rng.random() < end:
            frame = rng.integers(0, 256, shape, np.uint8)
    return Transitions(
        state=np.array(states),
        action=rng.normal(size=rows),
        next_state=np.array(next_states),
        behaviour_log_probability=rng.normal(size=rows),
    )


def same(found: Transitions, expected: Transitions) -> bool:
    assert list(found.columns) == list(expected.columns)
    return all(
        found[name].dtype == expected[name].dtype and np.array_equal(found[name], expected[name])
        for name in expected.columns
    )


def check_every_slot(window: FrameWindow, oracle: Window) -> None:
    assert len(window) == len(oracle)
    assert np.array_equal(window.oldest_first, oracle.oldest_first)
    slots = np.arange(len(oracle))
    assert same(window[slots], oracle[slots])


@pytest.mark.parametrize("end", [0.0, 0.15, 1.0])
@pytest.mark.parametrize("capacity", [1, 2, 7, 20])
def test_every_slot_is_right_after_every_insertion_over_three_laps(
    capacity: int, end: float
) -> None:
    window, oracle = FrameWindow(capacity), Window(capacity)
    batch = stream(3 * capacity + 2, end=end, seed=capacity)
    for row in range(len(batch)):
        one = {name: batch[name][row] for name in COLUMNS}
        assert window.append(one) == oracle.append(one)
        check_every_slot(window, oracle)


@pytest.mark.parametrize("end", [0.0, 0.3])
def test_insertion_in_pieces_of_any_size_is_the_same_as_one_by_one(end: float) -> None:
    batch = stream(400, end=end, seed=3)
    window, oracle = FrameWindow(13), Window(13)
    rng, start = np.random.default_rng(4), 0
    while start < len(batch):
        piece = batch[start : start + int(rng.integers(0, 40))]
        start += len(piece)
        assert np.array_equal(window.extend(**piece.columns), oracle.extend(**piece.columns))
        if len(oracle):
            check_every_slot(window, oracle)


def test_frames_that_repeat_by_chance_are_still_right() -> None:
    """A new episode that happens to begin with the very last frame counts as going on."""
    rng = np.random.default_rng(5)
    pool = rng.integers(0, 256, (2, *SHAPE), np.uint8)
    window, oracle = FrameWindow(5), Window(5)
    for _ in range(200):
        one = {"state": pool[rng.integers(2)], "next_state": pool[rng.integers(2)], "action": 0.5}
        window.append(one)
        oracle.append(one)
        check_every_slot(window, oracle)


def test_slots_may_repeat_and_be_a_table() -> None:
    batch = stream(30, end=0.2, seed=6)
    window, oracle = FrameWindow(12), Window(12)
    window.extend(**batch.columns)
    oracle.extend(**batch.columns)
    slots = np.random.default_rng(7).integers(0, 12, (5, 9))
    assert same(window[slots], oracle[slots])


def test_gather_fills_the_arrays_it_is_given() -> None:
    batch = stream(30, end=0.2, seed=6)
    window = FrameWindow(12)
    window.extend(**batch.columns)
    slots = np.random.default_rng(8).integers(0, 12, 50)
    state, next_state = np.empty((2, 50, *SHAPE), np.uint8)
    filled = window.gather(slots, state=state, next_state=next_state)
    assert filled[0] is state
    assert filled[1] is next_state
    assert np.array_equal(state, window[slots].state)
    assert np.array_equal(next_state, window[slots].next_state)


@pytest.mark.parametrize("rows", [0, 5, 12, 31])
def test_checkpoint_restores_the_window_and_what_follows(rows: int, tmp_path: Path) -> None:
    batch = stream(60, end=0.2, seed=9)
    window, oracle = FrameWindow(12), Window(12)
    if rows:
        window.extend(**batch[:rows].columns)
        oracle.extend(**batch[:rows].columns)
    window.save(tmp_path / "window.npz")
    for again in (
        FrameWindow.load(tmp_path / "window.npz"),
        FrameWindow.load(tmp_path / "window.npz", memory_map=tmp_path / "frames"),
        pickle.loads(pickle.dumps(window)),
    ):
        reference = pickle.loads(pickle.dumps(oracle))
        if rows:
            check_every_slot(again, reference)
        for row in range(rows, 60):
            one = {name: batch[name][row] for name in COLUMNS}
            assert again.append(one) == reference.append(one)
            check_every_slot(again, reference)


def test_memory_map_holds_the_frames(tmp_path: Path) -> None:
    batch = stream(30, end=0.2, seed=10)
    window, oracle = FrameWindow(12, memory_map=tmp_path / "frames"), Window(12)
    window.extend(**batch.columns)
    oracle.extend(**batch.columns)
    check_every_slot(window, oracle)
    on_disk = np.fromfile(tmp_path / "frames", np.uint8).reshape(12, *SHAPE)
    assert np.array_equal(on_disk, oracle.columns["state"])


@pytest.mark.parametrize("end", [0.0, 0.01, 0.5, 1.0])
def test_memory_is_at_most_a_tenth_more_than_the_distinct_frames(end: float) -> None:
    capacity, shape = 300, (32, 64)
    batch = stream(3 * capacity, end=end, seed=11, shape=shape)
    distinct = len(np.unique(_rows(batch[-capacity:]), axis=0))
    tracemalloc.start()
    try:
        window = FrameWindow(capacity)
        for row in range(len(batch)):
            window.append({name: batch[name][row] for name in COLUMNS})
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    scalars = sum(column.nbytes for column in window.columns.values())
    assert held - scalars <= 1.1 * distinct * shape[0] * shape[1]


def _rows(batch: Transitions) -> NDArray[np.uint8]:
    return np.concatenate([batch.state, batch.next_state]).reshape(2 * len(batch), -1)


def test_what_went_in_may_be_changed_afterwards() -> None:
    frame = np.zeros(SHAPE, np.uint8)
    window = FrameWindow(4)
    window.append(state=frame, next_state=frame, action=0.0)
    frame[:] = 9
    window.append(state=frame, next_state=frame, action=0.0)
    frame[:] = 7
    batch = window[[0, 1]]
    assert batch.state[:, 0, 0].tolist() == [0, 9]
    assert batch.next_state[:, 0, 0].tolist() == [0, 9]


def test_a_call_that_fails_leaves_the_window_as_it_was() -> None:
    batch = stream(20, end=0.2, seed=12)
    window, oracle = FrameWindow(6), Window(6)
    good = {name: batch[name][3] for name in COLUMNS}
    window.extend(**batch[:3].columns)
    oracle.extend(**batch[:3].columns)
    for wrong, message in (
        ({**good, "state": good["state"].astype(float)}, "must be frames, arrays of uint8"),
        ({**good, "next_state": good["state"][:2]}, r"shape \(4, 6\) a transition, got \(2, 6\)"),
        ({**good, "action": "left"}, "holds"),
        ({name: good[name] for name in COLUMNS[:2]}, "needs the column 'next_state'"),
        ({name: good[name] for name in ("state", "next_state")}, "besides state and next_state"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            window.append(wrong)
        check_every_slot(window, oracle)
    with pytest.raises(IndexError, match="slot 5 is not filled"):
        window[[0, 5]]
    with pytest.raises(IndexError, match="slot -1 is not filled"):
        window.gather([-1], state=np.zeros((1, *SHAPE), np.uint8), next_state=good["state"][None])
    with pytest.raises(ValueError, match=r"next_state must be uint8 of shape \(1, 4, 6\)"):
        window.gather([0], state=good["state"][None], next_state=good["state"])
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        FrameWindow(0)


def test_a_slot_that_is_not_filled_is_shown_with_all_columns() -> None:
    window = FrameWindow(6)
    window.extend(**stream(3, end=0.2, seed=12).columns)
    with pytest.raises(IndexError, match=r"slot 5 .*: FrameWindow\(3 of 6: state uint8\[4, 6\]"):
        window[[0, 5]]


def test_the_shape_of_a_frame_is_known_from_the_first_insertion_on() -> None:
    window = FrameWindow(6)
    assert window.frame_shape == ()
    window.extend(**stream(3, end=0.2, seed=12).columns)
    assert window.frame_shape == SHAPE


def test_a_window_that_got_no_transitions_yet_can_be_restored() -> None:
    window, oracle = FrameWindow(6), Window(6)
    batch = stream(9, end=0.2, seed=12)
    window.extend(**batch[:0].columns)
    again = pickle.loads(pickle.dumps(window))
    again.extend(**batch.columns)
    oracle.extend(**batch.columns)
    check_every_slot(again, oracle)


def test_a_file_that_cannot_be_made_leaves_the_window_as_it_was(tmp_path: Path) -> None:
    batch = stream(9, end=0.2, seed=12)
    window, oracle = FrameWindow(6, memory_map=tmp_path / "later" / "frames"), Window(6)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="later"):
            window.append({name: batch[name][0] for name in COLUMNS})
        with pytest.raises(FileNotFoundError, match="later"):
            window.extend(**batch.columns)
        assert repr(window) == "FrameWindow(0 of 6: ; 0 frames)"
    (tmp_path / "later").mkdir()
    window.extend(**batch.columns)
    oracle.extend(**batch.columns)
    check_every_slot(window, oracle)


def test_a_first_insertion_that_fails_may_be_followed_by_one_of_another_shape() -> None:
    batch = stream(9, end=0.2, seed=12)
    window, oracle = FrameWindow(6), Window(6)
    picture = np.zeros((9, 9), np.uint8)
    with pytest.raises(TypeError, match="holds Python objects"):
        window.append(state=picture, next_state=picture, action=object())
    window.extend(**batch.columns)
    oracle.extend(**batch.columns)
    check_every_slot(window, oracle)


def test_a_restore_that_fails_leaves_the_window_as_it_was(tmp_path: Path) -> None:
    batch = stream(9, end=0.2, seed=12)
    full, window, oracle = FrameWindow(6), FrameWindow(6), Window(6)
    full.extend(**batch.columns)
    window.extend(**batch[:3].columns)
    oracle.extend(**batch[:3].columns)
    window._path = tmp_path / "nowhere" / "frames"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        window.restore(full.checkpoint())
    check_every_slot(window, oracle)


def test_windows_of_the_other_kind_are_refused(tmp_path: Path) -> None:
    batch = stream(9, end=0.2, seed=12)
    window, oracle = FrameWindow(6), Window(6)
    window.extend(**batch.columns)
    oracle.extend(**batch.columns)
    window.save(tmp_path / "frames.npz")
    oracle.save(tmp_path / "plain.npz")
    with pytest.raises(ValueError, match=r"plain.npz holds a window, not a window of frames"):
        FrameWindow.load(tmp_path / "plain.npz")
    with pytest.raises(ValueError, match=r"frames.npz holds a window of frames, not a window"):
        Window.load(tmp_path / "frames.npz")
    with pytest.raises(ValueError, match=r"is of a gvf.Window, and"):
        window.restore(oracle.checkpoint())
    with pytest.raises(ValueError, match=r"is of a gvf.FrameWindow, and"):
        oracle.restore(window.checkpoint())
    check_every_slot(window, oracle)
