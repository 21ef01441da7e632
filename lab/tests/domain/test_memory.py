"""The memory of domains: what is kept, for how long, and made once."""

import importlib
import sys
import threading
from typing import Any

import numpy as np
import pytest
from own_code import write

import gvf
from gvf_lab.domain.array_memory import Memory, fingerprint


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


@pytest.mark.usefixtures("own_modules")
def test_a_fingerprint_is_of_the_code_and_of_its_arguments() -> None:
    text = "SCALE = 1\ndef scaled(states):\n    return SCALE * states\n"
    file = write("memory_policy.py", text)
    policy = gvf.policies.Function(importlib.import_module("memory_policy").scaled, actions=2)
    before = fingerprint({"policy": policy, "steps": 3})
    assert before is not None
    assert fingerprint({"policy": policy, "steps": 4}) != before
    file.write_text(text.replace("SCALE = 1", "SCALE = 2"))
    importlib.reload(sys.modules["memory_policy"])
    policy = gvf.policies.Function(sys.modules["memory_policy"].scaled, actions=2)
    assert fingerprint({"policy": policy, "steps": 3}) != before
    assert fingerprint([gvf.policies.Table([[0.5, 0.5]])]) != fingerprint(
        [gvf.policies.Table([[0.4, 0.6]])]
    )


def test_what_has_no_name_has_no_fingerprint() -> None:
    def local(states: Any) -> Any:
        return states

    assert fingerprint([1, {"f": local}]) is None
    module = type(sys)("without_a_file")
    exec("def f(states):\n    return states", module.__dict__)
    sys.modules["without_a_file"] = module
    try:
        assert fingerprint(module.f) is None
    finally:
        del sys.modules["without_a_file"]
