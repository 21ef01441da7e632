"""A small network for vectors: dense layers with ReLU between them.

Any other :class:`torch.nn.Module` that maps states [m, ...] to values [m] or [m, 1] works too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn


def mlp(inputs: int, hidden: Sequence[int] = (64, 64)) -> nn.Module:
    """Make a network of dense layers with ReLU between them: states [m, inputs] to values [m].

    Initial weights are PyTorch's defaults; for reproducible ones call ``torch.manual_seed(0)``
    first.

    Args:
        inputs: the number of inputs.
        hidden: the size of each hidden layer.

    Returns:
        The network.

    Example:
        >>> import torch
        >>> from gvf.neural import mlp
        >>> mlp(2, hidden=(8,))(torch.zeros(5, 2)).shape
        torch.Size([5])
    """
    return ValueNetwork(*dense_layers((inputs, *hidden, 1)))


def dense_layers(sizes: Sequence[int]) -> list[nn.Module]:
    """Make dense layers of these sizes, with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return layers[:-1]


class ValueNetwork(nn.Sequential):
    """A sequence of layers, the last one dense, from states of any number type to values [m]."""

    def forward(self, states: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the values of states [m, ...], of the type of the weights: [m]."""
        last = self[-1]
        assert isinstance(last, nn.Linear)
        return super().forward(states.to(last.weight.dtype)).squeeze(-1)
