"""CUDA graphs: a function on a GPU, recorded once and replayed from then on.

An update of small networks is hundreds of operations, each of which Python has to start. A graph
starts them all at once. It repeats the same operations at the same addresses, so the inputs are
copied to fixed places first.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

FIRST = 3
"""The number of calls before the recording, in which libraries and optimisers allocate memory."""


class Graph:
    """A function of tensors on a GPU that changes other tensors in place and returns nothing.

    The first calls, and calls with inputs of another form, run the function itself. If it cannot be
    recorded, a warning says why, and all calls run it. The function is an argument of each call, so
    that its object can keep the graph without a cycle, and frees it at once when it ends.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._inputs: list[Tensor] = []
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, function: Callable[..., None], *inputs: Tensor) -> None:
        """Call a function, or replay its recording.

        Args:
            function: the same function in every call. It must do the same operations in every call,
                and never wait for the GPU.
            inputs: its arguments.
        """
        self._calls += 1
        if self._calls == FIRST + 1:
            self._record(function, inputs)
        if self._graph is None or _form(inputs) != _form(self._inputs):
            self._run_aside(function, inputs)
            return
        for mine, array in zip(self._inputs, inputs, strict=True):
            mine.copy_(array, non_blocking=True)
        self._graph.replay()

    @property
    def recorded(self) -> bool:
        """True if calls replay a recording."""
        return self._graph is not None

    def _run_aside(self, function: Callable[..., None], inputs: tuple[Tensor, ...]) -> None:
        # PyTorch asks that the calls before a recording are not made on the default stream.
        stream, main = torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            function(*inputs)
        main.wait_stream(stream)

    def _record(self, function: Callable[..., None], inputs: tuple[Tensor, ...]) -> None:
        self._inputs = [tensor.clone() for tensor in inputs]
        graph = torch.cuda.CUDAGraph()
        try:
            with _without_collections(), torch.cuda.graph(graph):
                function(*self._inputs)
        except RuntimeError as error:
            torch.cuda.synchronize()
            warnings.warn(f"updates are not recorded as a CUDA graph: {error}", stacklevel=4)
        else:
            self._graph = graph


@contextmanager
def _without_collections() -> Iterator[None]:
    """Collect garbage now and not before the end; another graph must not be freed meanwhile."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def can_be_recorded(optimiser: torch.optim.Optimizer) -> bool:
    """Return True if an optimiser's step can be part of a graph.

    Example:
        >>> import torch
        >>> from gvf_lab.racing.cuda_graph import can_be_recorded
        >>> weights = [torch.nn.Parameter(torch.zeros(1))]
        >>> can_be_recorded(torch.optim.Adam(weights)), can_be_recorded(torch.optim.Rprop(weights))
        (True, True)
        >>> can_be_recorded(torch.optim.Adafactor(weights))
        False
    """
    return isinstance(optimiser, torch.optim.SGD) or "capturable" in optimiser.defaults


def _form(tensors: list[Tensor] | tuple[Tensor, ...]) -> list[tuple[torch.Size, torch.dtype]]:
    return [(tensor.shape, tensor.dtype) for tensor in tensors]
