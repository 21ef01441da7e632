"""Classes that a user might have, of which some can be described and some cannot."""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gvf


class Outer:
    @dataclass(frozen=True)
    class Inner:
        values: Any
        scale: float = field(default=1.0, kw_only=True)
        total: float = field(init=False, default=0.0)

    @staticmethod
    def static(transitions: Any) -> Any:
        return transitions.reward


class Plain(gvf.policies.DiscretePolicy):
    """Neither a dataclass nor one with a method, but it keeps what it is given."""

    def __init__(self, actions: int, *, options: Any = None) -> None:
        self.actions, self.options = actions, options

    def probabilities(self, states: Any) -> Any:
        return np.full((len(states), self.actions), 1 / self.actions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.actions}, options={self.options})"


class Secretive(Plain):
    """Keeps more than it is given."""

    def __init__(self, actions: int) -> None:
        super().__init__(actions)
        self._cache: list[int] = []


class Named(list[int]):
    """Holds more than its attributes."""

    def __init__(self, name: str) -> None:
        self.name = name


OPAQUE = threading.Lock()


def run_python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
