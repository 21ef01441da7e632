"""The driving network: from camera images to values.

It is that of Bojarski et al. (2016, "End to End Learning for Self-Driving Cars"): five convolutions
without padding, then dense layers of 100, 50, 10 and 1. After the convolutions, a grey image of
64 x 128 has become 64 maps of 1 x 9 (in their work, 66 x 200 became 1 x 18).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from gvf.neural.network_kernels import ValueNetwork, dense_layers

_CONVOLUTIONS = ((24, 5, 2), (36, 5, 2), (48, 5, 2), (64, 3, 1), (64, 3, 1))
"""The number of maps, the width of the kernel and the stride of each convolution."""
_DENSE = (64 * 1 * 9, 100, 50, 10, 1)


def driving_network(*, convolution: Literal["native", "unfold"] = "native") -> nn.Module:
    """Make the driving network: frames [m, 64, 128] of numbers 0 to 255 to values [m].

    Frames may be uint8 or floating point; the network normalises each to mean 0 and standard
    deviation 1. Initial weights are those of He et al. (2015), which preserve the size of a signal
    through all nine layers. PyTorch's defaults shrink it a thousandfold, which delays learning.

    Args:
        convolution: the implementation of convolutions. ``"native"`` is PyTorch's, the fastest for
            one network. ``"unfold"`` uses a matrix product, which becomes a batched product for a
            stack of lanes. Both have the same weights and, up to rounding, the same values.

    Returns:
        The network.

    Example:
        >>> import torch
        >>> from gvf_lab.racing.driving_network import driving_network
        >>> network = driving_network()
        >>> network(torch.zeros(3, 64, 128, dtype=torch.uint8)).shape
        torch.Size([3])
        >>> sum(weights.numel() for weights in network.parameters())
        193419
    """
    if convolution not in ("native", "unfold"):
        raise ValueError(f"convolution must be 'native' or 'unfold', got {convolution!r}")
    kind = nn.Conv2d if convolution == "native" else _UnfoldedConv2d
    layers: list[nn.Module] = [_Frames()]
    maps = 1
    for after, width, stride in _CONVOLUTIONS:
        layers += [kind(maps, after, width, stride), nn.ReLU()]
        maps = after
    network = ValueNetwork(*layers, nn.Flatten(), *dense_layers(_DENSE))
    _initialise(network)
    if convolution == "native":  # its kernels are faster with maps last in memory
        network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return network


def _initialise(network: nn.Module) -> None:
    """Set He et al.'s weights and biases of 0; shrink the last layer, so that values are near 0."""
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
    with torch.no_grad():
        layers[-1].weight.mul_(0.1)


class _Frames(nn.Module):
    """A layer from frames [m, h, w] of numbers 0 to 255 to images [m, 1, h, w] of mean 0, sd 1."""

    def forward(self, frames: Tensor) -> Tensor:
        images = frames.unsqueeze(1)
        spread, mean = torch.std_mean(images, dim=(2, 3), keepdim=True, correction=0)
        return (images - mean) / (spread + 1)  # finite for a frame of one grey too


class _UnfoldedConv2d(nn.Conv2d):
    """A convolution without padding, as a matrix product of patches and weights.

    For a stack of lanes this is one batched product; ``Conv2d`` would be a grouped convolution.
    """

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (rows, columns), (down, right) = self.kernel_size, self.stride
        # Maps are last in memory throughout, as the products need them.
        patches = x.permute(0, 2, 3, 1).unfold(1, rows, down).unfold(2, columns, right)
        m, h, w = patches.shape[:3]
        y = nn.functional.linear(patches.reshape(m * h * w, -1), self.weight.flatten(1), self.bias)
        return y.unflatten(0, (m, h, w)).permute(0, 3, 1, 2)
