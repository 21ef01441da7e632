"""Checks of arguments of neural learners and lanes: networks, optimisers, devices, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from gvf.common.checks import brief, whole


def check_options(optimiser: object, target_every: object, clip: object) -> None:
    """Raise an error for options that would fail later, or silently do nothing."""
    if isinstance(optimiser, torch.optim.Optimizer) or not callable(optimiser):
        raise TypeError(
            "optimiser must be a function that makes one, such as "
            f"functools.partial(torch.optim.Adam, lr=1e-3), got {brief(optimiser)}"
        )
    if target_every is not None:
        whole("target_every", target_every, 1)
    if clip is not None:
        if not isinstance(clip, int | float | np.number):
            raise TypeError(f"clip must be a positive number or None, got {brief(clip)}")
        if not clip > 0.0:
            raise ValueError(f"clip must be a positive number, or None for none, got {clip}")


def check_network(network: Any, what: str) -> nn.Module:
    """Return the network; raise an error if it cannot be trained."""
    if not isinstance(network, nn.Module):
        raise TypeError(f"{what} must be a torch.nn.Module, got {brief(network)}")
    if not any(weights.requires_grad for weights in network.parameters()):
        raise ValueError(f"{what} has no parameters to train: {brief(network)}")
    return network


def check_precision(trunk: nn.Module) -> None:
    """Raise ValueError if weights have half precision."""
    for weights in trunk.parameters():
        if weights.is_floating_point() and weights.itemsize < 4:
            raise ValueError(
                "weights of a trunk must be float32 or float64, got "
                f"{str(weights.dtype).removeprefix('torch.')}; to compute in bfloat16, keep "
                "float32 and choose mixed_precision=True"
            )


def check_states(states: object) -> None:
    """Raise ValueError if states have fields, which tensors do not have."""
    if isinstance(states, np.ndarray) and states.dtype.names is not None:
        raise ValueError(
            f"a network takes arrays, and these states have the fields "
            f"{', '.join(states.dtype.names)}; wrap the environment in "
            "gymnasium.wrappers.FlattenObservation"
        )


def check_optimiser(optimiser: object) -> None:
    """Raise an error if the result of an optimiser function is not a usable optimiser."""
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(f"optimiser must make a torch.optim.Optimizer, and made {brief(optimiser)}")
    if isinstance(optimiser, torch.optim.LBFGS):
        raise ValueError(
            "LBFGS evaluates the loss several times in a step, and here a step has one gradient; "
            "use an optimiser such as torch.optim.Adam"
        )


def as_device(device: str | torch.device) -> torch.device:
    """Return a device; raise ValueError if it is not available."""
    try:
        device_of_name = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f'device must be "cpu" or "cuda", got {device!r}') from None
    if device_of_name.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f'PyTorch finds no GPU here for device={str(device)!r}; choose "cpu"')
    return device_of_name
