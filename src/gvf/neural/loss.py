"""The loss of semi-gradient TD(0), and what else the learner and the lanes share.

    1/2 sum_i w_i (c_i + gamma_i v(s'_i) - v(s_i))^2,    v(s'_i) taken as fixed,

whose gradient is ``-sum_i w_i delta_i grad v(s_i)``: the update of :class:`gvf.TD`, with the
gradient of a network in the place of features. The weights w of a correction contain the 1 / k.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from operator import index
from typing import Any

import torch
from torch import Tensor


def td_loss(
    values: Tensor, next_values: Tensor, cumulant: Tensor, continuation: Tensor, weights: Tensor
) -> Tensor:
    """The loss, summed over all that is given; tensors [..., k] that broadcast.

    Example:
        >>> import torch
        >>> from gvf.neural.loss import td_loss
        >>> one = torch.ones(2)
        >>> td_loss(0 * one, 2 * one, one, 0.5 * one, torch.tensor([0.5, 1.0]))
        tensor(3.)
    """
    error = torch.addcmul(cumulant, continuation, next_values.detach()) - values
    return 0.5 * (weights * error * error).sum()


def flat_values(outputs: Tensor, dtype: torch.dtype) -> Tensor:
    """A network's outputs [m] or [m, 1] as values [m], in the type in which errors are computed."""
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        outputs = outputs.squeeze(1)
    if outputs.ndim != 1:
        raise ValueError(
            "a network must map states [m, ...] to values [m] or [m, 1]; "
            f"this one gives {list(outputs.shape)}"
        )
    return outputs.to(dtype)


def as_input(values: Any, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Arrays or tensors on the device; fractions in the network's type, integers as they are."""
    tensor = torch.as_tensor(values)
    floating = tensor.is_floating_point()
    return tensor.to(device, dtype if floating else None, non_blocking=True)


def precision(device: torch.device, mixed: bool) -> AbstractContextManager[object]:
    """A context in which layers compute in bfloat16, if mixed."""
    # Casts that were kept would be those of another lane, or of weights that have changed.
    if mixed:
        return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
    return nullcontext()


def check_options(target_every: int | None, clip: float | None) -> None:
    """Refuse what would fail later, or silently do nothing."""
    if target_every is not None and index(target_every) < 1:
        raise ValueError(f"target_every must be at least 1, or None for none, got {target_every}")
    if clip is not None and not clip > 0.0:
        raise ValueError(f"clip must be a positive number, or None for none, got {clip}")
