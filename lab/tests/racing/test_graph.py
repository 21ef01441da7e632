"""Graphs with a stand-in for CUDA: what is called when. Real ones are tried in test_cuda."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf_lab.racing.cuda_graph import FIRST, Graph  # noqa: E402


class Machine:
    """A GPU that only counts: its function adds a number to a total."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: bool = False) -> None:
        self.total, self.calls, self.replays, self.refuses = torch.zeros(()), 0, 0, refuses
        self.graph, self.at_recording = Graph(), lambda: None

        class Stream:
            def wait_stream(self, other: object) -> None: ...

        class Recorded:
            replay = self.replay

        for name, there in (
            ("Stream", Stream), ("current_stream", Stream), ("stream", lambda _: nullcontext()),
            ("synchronize", lambda: None), ("CUDAGraph", Recorded), ("graph", self.recording),
        ):  # fmt: skip
            monkeypatch.setattr(torch.cuda, name, there)

    def call(self, numbers: Any) -> None:
        self.graph(self.add, numbers)

    def replay(self) -> None:
        self.replays += 1
        self.total += self.graph._inputs[0].sum()

    def add(self, numbers: Any) -> None:
        self.calls += 1
        self.total += numbers.sum()

    @contextmanager
    def recording(self, graph: object) -> Iterator[None]:
        """Nothing is computed while a graph is recorded."""
        self.at_recording()
        before, self.total = self.total, torch.zeros(())
        try:
            yield
            if self.refuses:
                raise RuntimeError("operation not permitted when stream is capturing")
        finally:
            self.total = before


def test_a_function_is_recorded_after_some_calls_and_gets_every_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    for number in range(FIRST + 4):
        assert machine.graph.recorded == (number > FIRST)
        machine.call(torch.full((2,), float(number)))
    assert machine.total == 2 * sum(range(FIRST + 4))
    assert (machine.calls, machine.replays) == (FIRST + 1, 4)  # one call is the recording


def test_inputs_of_another_form_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    for size in (2, 2, 2, 2, 2, 3, 2):
        machine.call(torch.ones(size))
    machine.call(torch.ones(2, dtype=torch.int64))
    assert machine.total == 17
    assert (machine.calls, machine.replays) == (FIRST + 1 + 2, 3)


def test_a_function_that_cannot_be_recorded_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, refuses=True)
    for _ in range(FIRST):
        machine.call(torch.ones(2))
    with pytest.warns(UserWarning, match="not recorded as a CUDA graph: operation not permitted"):
        machine.call(torch.ones(2))
    for _ in range(3):
        machine.call(torch.ones(2))
    assert not machine.graph.recorded
    assert machine.total == 2 * (FIRST + 4)
    assert machine.replays == 0


class Cycle:
    """An object that only a collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.filterwarnings("ignore:updates are not recorded")
def test_garbage_is_collected_before_a_recording_and_not_during_it(
    monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    machine, old_graph = Machine(monkeypatch, refuses), weakref.ref(Cycle())
    machine.at_recording = lambda: seen.append((gc.isenabled(), old_graph()))
    seen: list[Any] = []
    for _ in range(FIRST + 2):
        machine.call(torch.ones(2))
    assert seen == [(False, None)]
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    gc.disable()
    try:
        for _ in range(FIRST + 1):
            machine.call(torch.ones(2))
        assert machine.graph.recorded
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_who_has_a_graph_is_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Owner:
        def __init__(self) -> None:
            self.graph = Graph()

        def step(self, numbers: Any) -> None: ...

    owner, machine = Owner(), Machine(monkeypatch)
    machine.graph = owner.graph
    for _ in range(FIRST + 2):
        owner.graph(owner.step, torch.ones(2))
    assert owner.graph.recorded
    freed = weakref.ref(owner)
    gc.disable()  # a collector would free it from a cycle, at any time
    try:
        del owner
        assert freed() is None
    finally:
        gc.enable()
