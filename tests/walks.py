"""Walks: the files that a reader passes who follows a call from its source to its effect.

A walk has the functions of gvf that are entered, each where it is entered first. Left out are the
tools of ``gvf.common``, and what belongs to the function that calls it: parts of functions
(comprehensions, lambdas), private functions of a module, and methods of Python's own syntax, such
as ``len(rows)``. A file is passed if a function of it is in the walk. A turn back is a step to a
new function in a file that was passed before, and left: there the reader has to find the place
again. To come back to a function is none. Threads that begin in between belong to the walk.

A door is a function or class of another house that the walk calls directly: a reader takes its
docstring for it and does not enter.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import gvf

_HOUSE = f"{Path(gvf.__file__ or '').parent}/"


class Walk(NamedTuple):
    """A walk: files and functions in the order in which they were entered first, and doors.

    A door has its file, its name, and the file from which it was called first.
    """

    functions: list[tuple[str, str]]
    doors: list[tuple[str, str, str]]

    @property
    def files(self) -> list[str]:
        """The files passed."""
        return list(dict.fromkeys(file for file, _ in self.functions))

    @property
    def turns(self) -> list[tuple[str, str]]:
        """The functions for which the walk turns back to a file that it had left."""
        passed: set[str] = set()
        turns, here = [], ""
        for file, function in self.functions:
            if file != here and file in passed:
                turns.append((file, function))
            passed.add(file)
            here = file
        return turns

    def __str__(self) -> str:
        back = set(self.turns)
        return "\n".join(
            f"{'<- ' if step in back else '   '}{step[0]}: {step[1]}" for step in self.functions
        )


def walk_of(
    call: Callable[[], Any],
    *,
    begins: Callable[[FrameType], bool] = lambda frame: True,
    is_done: Callable[[], bool] = lambda: False,
    house: str = _HOUSE,
    next_door: str = "",
    with_private: bool = False,
    left_out: tuple[str, ...] = ("common/",),
) -> Walk:
    """Follow a call.

    Args:
        call: the call; a first one should have compiled and imported everything.
        begins: a function of frames that returns True where the walk begins.
        is_done: a function that returns True once the effect is there, which ends the walk.
        house: the folder whose files count.
        next_door: the folder of the house whose functions are doors.
        with_private: True if private functions, methods of syntax and parts of functions count too.
        left_out: how the names of files and folders begin that do not count.
    """
    functions: dict[tuple[str, str], None] = {}
    doors: dict[tuple[str, str], str] = {}
    state = {"begun": False, "done": False}

    def follow(frame: FrameType, event: str, _: Any) -> None:
        if state["done"] or event not in ("call", "return"):
            return
        state["begun"] = state["begun"] or (event == "call" and begins(frame))
        if not state["begun"]:
            return
        if event == "return":
            state["done"] = is_done()
            return
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        belongs = "<" in name or name.startswith("_") or ".__" in name
        if file.startswith(house):
            place = file.removeprefix(house)
            if (with_private or not belongs) and not place.startswith(left_out):
                functions.setdefault((place, name))
        elif next_door and file.startswith(next_door):
            caller = frame.f_back.f_code.co_filename if frame.f_back else ""
            place, room = file.removeprefix(next_door), caller.removeprefix(house)
            if caller.startswith(house) and not (
                place.startswith(left_out) or room.startswith(left_out)
            ):
                doors.setdefault((place, name.split(".")[0]), room)

    threading.setprofile(follow)
    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Walk(list(functions), [(*door, caller) for door, caller in doors.items()])
