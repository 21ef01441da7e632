"""A window of images, each kept once.

In a stream the next state of a transition is the state of the following one, and images are large.
So slot i holds one frame, its state, and

    next state of slot i = frame of slot i + 1,

around the ring. The newest slot is an exception, and so is a slot at the end of an episode: their
next states are kept apart until the slots are overwritten. The frames themselves are compared, so
transitions may come in any order, and consecutive ones need the least memory. The interface is that
of :class:`gvf.Window`, which keeps the other columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gvf.common import checkpoint
from gvf.transition import Transitions, describe_columns
from gvf.window.window import Window, _as_slots

Frames = NDArray[np.uint8]
_PIECE = 1024  # frames compared at a time, so that the comparison needs little memory


class FrameWindow:
    """A :class:`gvf.Window` whose columns ``state`` and ``next_state`` are images, uint8[...].

    The same calls give the same transitions with less memory: one frame a transition, one for the
    newest, and one for each end of an episode in the window. A call that fails leaves the window
    unchanged.

    Args:
        capacity: the number of transitions to keep, n.
        memory_map: a file for the frames, instead of memory. It is created or overwritten, so
            every window needs its own.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> from gvf.window.frame_window import FrameWindow
        >>> film = np.arange(5, dtype=np.uint8).repeat(6).reshape(5, 2, 3)
        >>> window = FrameWindow(3)
        >>> window.extend(state=film[:-1], next_state=film[1:], action=[0.1, 0.2, 0.3, 0.4])
        array([0, 1, 2, 0])
        >>> batch = window[[0, 2]]
        >>> batch.state[:, 0, 0], batch.next_state[:, 0, 0], batch.action
        (array([3, 2], dtype=uint8), array([4, 3], dtype=uint8), array([0.4, 0.3]))
        >>> window
        FrameWindow(3 of 3: state uint8[2, 3], next_state uint8[2, 3], action float64; 4 frames)
    """

    def __init__(self, capacity: int, *, memory_map: str | os.PathLike[str] | None = None) -> None:
        self._rest = Window(capacity)
        self.is_taken = False  # True once a learner owns the window
        self.capacity = self._rest.capacity
        self._path = None if memory_map is None else Path(memory_map)
        self._names: tuple[str, ...] = ()
        self._frames: Frames = np.zeros(0, np.uint8)
        self._head_frame: Frames = np.zeros(0, np.uint8)  # the newest slot's next state
        self._aside: dict[int, Frames] = {}  # next states that no other slot holds
        self._is_aside = np.zeros(self.capacity, bool)
        self._newest = -1

    def __len__(self) -> int:
        return len(self._rest)

    @property
    def place(self) -> NDArray[np.int64]:
        """Capacity, head and filled slots, int64[3]; rings of masses share it."""
        return self._rest.place

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The other columns [capacity, ...] in slot order; rows beyond ``len`` are not filled."""
        return self._rest.columns

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """The shape of one frame, set by the first insertion; () before."""
        return self._frames.shape[1:]

    @property
    def oldest_first(self) -> NDArray[np.int64]:
        """The filled slots in order of age, int64[len]."""
        return self._rest.oldest_first

    def append(self, transition: Mapping[str, Any] | None = None, /, **columns: Any) -> int:
        """Insert one transition, one value a column, and return its slot."""
        transition_columns = {**(transition or {}), **columns}
        state, next_state, others = self._split(transition_columns)
        states, next_states = np.asarray(state)[None], np.asarray(next_state)[None]
        self._check(states, next_states)
        frames = self._room(states)
        slot = self._rest.append(others)
        self._names, self._frames = self._names or tuple(transition_columns), frames
        self._write(slot, states, next_states)
        return slot

    def extend(self, /, **columns: Any) -> NDArray[np.int64]:
        """Insert m transitions, columns [m, ...], oldest first, and return their slots int64[m].

        The result is the same as with m calls of ``append``; if m > capacity, only the last ones
        stay.
        """
        batch = Transitions(**columns)
        states, next_states, others = self._split(batch.columns)
        self._check(states, next_states)
        frames = self._room(states)
        slots = self._rest.extend(**others)
        self._names, self._frames = self._names or tuple(columns), frames
        rows, begin = len(slots), max(len(slots) - self.capacity, 0)
        turn = begin + self.capacity - int(slots[begin]) if rows else 0
        for piece in (slice(begin, turn), slice(turn, rows)):
            if piece.start < rows:
                self._write(int(slots[piece.start]), states[piece], next_states[piece])
        return slots

    def __getitem__(self, slots: Any) -> Transitions:
        """Return copies of the transitions in slots int[k], as columns [k, ...]."""
        slots = self._filled(slots)
        columns = self._rest[slots].columns
        columns["state"], columns["next_state"] = self._take(slots)
        return Transitions(**{name: columns[name] for name in self._names})

    def gather(self, slots: Any, *, state: Frames, next_state: Frames) -> tuple[Frames, Frames]:
        """Copy the frames of slots, int[k], into existing arrays [k, ...].

        With arrays in pinned memory a batch then needs only the copy to the device.

        Example:
            >>> import numpy as np
            >>> from gvf.window.frame_window import FrameWindow
            >>> window = FrameWindow(2)
            >>> film = np.arange(3, dtype=np.uint8)[:, None]
            >>> _ = window.extend(state=film[:-1], next_state=film[1:], action=[0, 1])
            >>> before, after = np.empty((2, 3, 1), np.uint8)
            >>> _ = window.gather([1, 0, 1], state=before, next_state=after)
            >>> before[:, 0], after[:, 0]
            (array([1, 0, 1], dtype=uint8), array([2, 1, 2], dtype=uint8))
        """
        slots = self._filled(slots)
        expected = (*slots.shape, *self.frame_shape)
        for name, out in (("state", state), ("next_state", next_state)):
            if out.shape != expected or out.dtype != np.uint8:
                raise ValueError(
                    f"{name} must be uint8 of shape {expected} for these slots, got {out.dtype} "
                    f"of shape {out.shape}"
                )
        return self._take(slots, state, next_state)

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the transitions, oldest first, each a batch of 1."""
        return (self[[slot]] for slot in self.oldest_first)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint beside ``path``, then rename it to ``path``."""
        checkpoint.write(path, "window of frames", self.checkpoint())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, memory_map: str | os.PathLike[str] | None = None
    ) -> Self:
        """Read a checkpoint: the slots, the data and the next slot are the same as before."""
        _, arrays = checkpoint.read(path, "window of frames")
        window = cls(int(arrays["ring"][0]), memory_map=memory_map)
        window.restore(arrays)
        return window

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the window's state, for :meth:`restore`."""
        if not self._names:
            return self._rest.checkpoint()
        aside = np.array(sorted(self._aside), np.int64)
        frames = [self._aside[slot] for slot in aside.tolist()] + [self._head_frame]
        return {
            **self._rest.checkpoint(),
            "frames/names": np.array(self._names),
            "frames/state": self._frames[: len(self)].copy(),
            "frames/aside": aside,
            "frames/next_state": np.stack(frames),
        }

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore a checkpoint of a window of the same capacity."""
        others = {k: v for k, v in arrays.items() if not k.startswith("frames/")}
        rest = Window(self.capacity)
        rest.restore(others)
        if rest.columns and "frames/names" not in arrays:
            raise ValueError("the checkpoint is of a gvf.Window, and this is a gvf.FrameWindow")
        restored = FrameWindow(self.capacity, memory_map=self._path)
        restored._rest = self._rest
        if rest.columns:
            restored._names = tuple(arrays["frames/names"].tolist())
            restored._frames = restored._room(arrays["frames/state"])
        if len(rest):
            restored._frames[: len(rest)] = arrays["frames/state"]
            *aside, restored._head_frame = arrays["frames/next_state"].copy()
            # Copied one by one, so that each can be freed without the others.
            pairs = zip(arrays["frames/aside"].tolist(), aside, strict=True)
            restored._aside = {slot: frame.copy() for slot, frame in pairs}
            restored._is_aside[arrays["frames/aside"]] = True
            restored._newest = int(rest.oldest_first[-1])
        self._rest.restore(others)
        self.__dict__.update(restored.__dict__ | {"is_taken": self.is_taken})

    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return self.checkpoint()

    def __setstate__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.__init__(int(arrays["ring"][0]))
        self.restore(arrays)

    def __repr__(self) -> str:
        sample = {name: self._frames[:1] for name in self._names} | self.columns
        columns_text = describe_columns({name: sample[name] for name in self._names})
        frames = len(self) + len(self._aside) + 1 if len(self) else 0
        return f"FrameWindow({len(self)} of {self.capacity}: {columns_text}; {frames} frames)"

    def _split(self, columns: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        others = dict(columns)
        try:
            state, next_state = others.pop("state"), others.pop("next_state")
        except KeyError as missing:
            raise ValueError(
                f"a window of frames needs the column {missing.args[0]!r}; got "
                f"{', '.join(columns) or 'no columns'}"
            ) from None
        if not others:
            raise ValueError(
                "a window of frames needs a column besides state and next_state, for example "
                "action=..."
            )
        return state, next_state, others

    def _check(self, states: Frames, next_states: Frames) -> None:
        for name, frames in (("state", states), ("next_state", next_states)):
            if frames.dtype != np.uint8 or frames.ndim < 2:
                raise TypeError(
                    f"column {name!r} must be frames, arrays of uint8, got {frames.dtype} of shape "
                    f"{frames.shape[1:]} a transition; numbers go to a gvf.Window"
                )
        shape = self.frame_shape if self._names else states.shape[1:]
        for name, frames in (("state", states), ("next_state", next_states)):
            if frames.shape[1:] != shape:
                raise ValueError(
                    f"column {name!r} has shape {shape} a transition, got {frames.shape[1:]}"
                )

    def _room(self, states: Frames) -> Frames:
        """Return the frames of the window, allocated at the first insertion."""
        if len(self._frames):
            return self._frames
        shape = (self.capacity, *states.shape[1:])
        if self._path is None:
            return np.zeros(shape, np.uint8)
        return np.memmap(self._path, np.uint8, "w+", shape=shape)

    def _filled(self, slots: Any) -> NDArray[np.int64]:
        slots = _as_slots(slots)
        outside = (slots < 0) | (slots >= len(self))
        if outside.any():
            raise IndexError(f"slot {slots[outside].flat[0]} is not filled: {self!r}")
        return slots

    def _write(self, slot: int, states: Frames, next_states: Frames) -> None:
        """Write rows from a slot on; they must not reach past the end of the ring."""
        rows = len(states)
        # This comes first, because the newest slot may be overwritten below.
        if self._newest >= 0 and not np.array_equal(self._head_frame, states[0]):
            self._put_aside(self._newest, self._head_frame)
        for overwritten in np.flatnonzero(self._is_aside[slot : slot + rows]) + slot:
            self._is_aside[overwritten] = False
            del self._aside[int(overwritten)]
        self._frames[slot : slot + rows] = states
        for start in range(0, rows - 1, _PIECE):
            stop = min(start + _PIECE, rows - 1)
            differ = next_states[start:stop] != states[start + 1 : stop + 1]
            for row in np.flatnonzero(differ.reshape(stop - start, -1).any(axis=1)) + start:
                self._put_aside(slot + int(row), next_states[row])
        self._newest, self._head_frame = slot + rows - 1, np.array(next_states[-1])

    def _put_aside(self, slot: int, frame: Frames) -> None:
        self._aside[slot] = np.array(frame)
        self._is_aside[slot] = True

    def _take(
        self,
        slots: NDArray[np.int64],
        state: Frames | None = None,
        next_state: Frames | None = None,
    ) -> tuple[Frames, Frames]:
        following = slots + 1
        following[following == self.capacity] = 0
        # The slots are known to be filled, and "clip" avoids a copy that "raise" makes.
        state = self._frames.take(slots, 0, state, "clip")
        next_state = self._frames.take(following, 0, next_state, "clip")
        for at in np.argwhere(self._is_aside[slots] | (slots == self._newest)):
            slot = int(slots[tuple(at)])
            next_state[tuple(at)] = self._head_frame if slot == self._newest else self._aside[slot]
        return state, next_state
