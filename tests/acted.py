"""Logs of policies that are known, for tests of estimated behaviours."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import gvf

needs_scikit_learn = pytest.mark.skipif(
    find_spec("sklearn") is None, reason="scikit-learn is not installed: gvf[sklearn]"
)


def table_log(
    mu: gvf.policies.Policy, states: int, *, episodes: int, steps: int, seed: int = 0
) -> gvf.Log:
    """A log of a policy in states drawn at random."""
    rng = np.random.default_rng(seed)
    visited = rng.integers(states, size=(episodes, steps + 1))
    walks = [{"state": s, "action": mu.sample(s[:-1], rng=rng)} for s in visited]
    return gvf.read_log(walks, ends="truncated", quiet=True)


def vector_log(
    mu: gvf.policies.Policy, *, episodes: int, steps: int, seed: int = 0, d: int = 2
) -> gvf.Log:
    """A log of a policy in normally distributed states of d dimensions."""
    rng = np.random.default_rng(seed)
    walks: list[Any] = []
    for _ in range(episodes):
        states = rng.normal(size=(steps + 1, d))
        actions = mu.sample(states[:-1], rng=rng)
        walks.append({"state": states, "action": actions, "reward": states[:-1, 0]})
    return gvf.read_log(walks, ends="truncated", quiet=True)


def logits(states: Any) -> Any:
    """Log odds of three actions that are linear in two numbers."""
    return np.asarray(states) @ np.array([[0.0, 1.0, -0.5], [0.0, 0.3, 0.8]]) + [0.0, -0.4, 0.2]


def softly(states: Any) -> Any:
    """Probabilities of these actions."""
    powers = np.exp(logits(states))
    return powers / powers.sum(axis=1, keepdims=True)


def shown(value: Any) -> str:
    """What is printed, in one line."""
    return " ".join(repr(value).split())
