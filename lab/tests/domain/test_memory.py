"""The memory of domains: what is kept, for how long, and made once."""

import threading
from typing import Any

import numpy as np
import pytest

from gvf_lab.domain.array_memory import Memory


def test_different_arrays_are_made_at_the_same_time() -> None:
    memory, meeting = Memory(), threading.Barrier(2, timeout=10)

    def make() -> dict[str, Any]:
        meeting.wait()  # breaks, if one waits for the other to finish
        return {"x": np.zeros(1)}

    threads = [
        threading.Thread(target=memory.get, args=("x", {"n": n}, make), kwargs={"file": False})
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not meeting.broken


def test_memory_forgets_what_was_used_longest_ago() -> None:
    memory, made = Memory(limit=2000), []

    def get(number: int) -> None:
        def make() -> dict[str, Any]:
            made.append(number)
            return {"x": np.zeros(100)}

        memory.get("x", {"n": number}, make, file=False)

    for number in (0, 1, 0, 2, 0, 1):
        get(number)
    assert made == [0, 1, 2, 1]


def test_a_failure_is_not_remembered() -> None:
    memory = Memory()
    with pytest.raises(ZeroDivisionError):
        memory.get("x", {"n": 0}, lambda: {"x": np.array(1 // 0)}, file=False)
    assert memory.get("x", {"n": 0}, lambda: {"x": np.ones(1)}, file=False)["x"] == 1
