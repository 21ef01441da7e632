"""The loss of semi-gradient TD(0), and conversions of its inputs and outputs.

    1/2 sum_i w_i (c_i + gamma_i v(s'_i) - v(s_i))^2,    v(s'_i) taken as fixed

Its gradient is ``-sum_i w_i delta_i grad v(s_i)``: the update of :class:`gvf.updates.TD`, with the
gradient of a network instead of features. The weights w of a correction contain the 1 / k.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from gvf.common.checks import brief
from gvf.common.fields import as_states
from gvf.neural.network_checks import check_states


def td_loss(
    values: Tensor, next_values: Tensor, cumulant: Tensor, continuation: Tensor, weights: Tensor
) -> Tensor:
    """Compute the loss, summed over all elements of tensors [..., k] that broadcast.

    Example:
        >>> import torch
        >>> from gvf.neural.tensors import td_loss
        >>> one = torch.ones(2)
        >>> td_loss(0 * one, 2 * one, one, 0.5 * one, torch.tensor([0.5, 1.0]))
        tensor(3.)
    """
    error = torch.addcmul(cumulant, continuation, next_values.detach()) - values
    return 0.5 * (weights * error * error).sum()


def flat_values(network: Callable[[Tensor], Tensor], states: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute a network's values [m] of states [m, ...], in the given type."""
    outputs = outputs_of(network, states)
    if outputs.shape not in ((len(states),), (len(states), 1)):
        raise ValueError(
            "a network must map states [m, ...] to values [m] or [m, 1]; "
            f"this one gives {list(outputs.shape)} for states {list(states.shape)} "
            "(a single state needs an axis in front too: [state])"
        )
    return outputs.flatten().to(dtype)


def outputs_of(network: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """Compute a network's outputs for states [m, ...]; an error about integers gets a note."""
    try:
        return network(states)
    except RuntimeError as error:
        if not states.is_floating_point():
            error.add_note(
                f"The states are integers ({states.dtype}) and reach the network as they are; if "
                "it computes with fractions, give it fractions: [[0.0, 0.0]], not [[0, 0]]."
            )
        raise


def as_batch(states: Any) -> Tensor:
    """Return states [m, ...] as a tensor, on their present device."""
    states = as_states(states)
    check_states(states)
    tensor = torch.as_tensor(states)
    if tensor.ndim == 0:
        raise ValueError(f"states must be a batch [m, ...], got the single number {brief(states)}")
    return tensor


def as_input(values: Any, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Move values to the device; floating-point values also to the given type."""
    tensor = torch.as_tensor(values)
    floating = tensor.is_floating_point()
    return tensor.to(device, dtype if floating else None, non_blocking=True)


def precision(device: torch.device, mixed: bool) -> AbstractContextManager[object]:
    """Return a context in which layers compute in bfloat16, if mixed."""
    # No cache, because it could hold casts of another lane or of weights that have changed.
    if mixed:
        return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
    return nullcontext()
