"""Gymnasium, or a stand-in where it is not installed.

Acting in an environment needs Gymnasium, which comes with gvf. Learning from recorded data does
not, and may happen on a machine that has little besides NumPy and PyTorch: there everything can be
imported, and only what really needs an environment says that it is missing.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium as gym
else:
    try:
        import gymnasium as gym
    except ModuleNotFoundError:

        class _Environment:
            """A base class for environments that cannot be made here."""

            def __class_getitem__(cls, parameters: Any) -> type:
                return cls

            def __init__(self, *given: Any, **named: Any) -> None:
                gym.make  # noqa: B018 (says what is missing)

        class _Missing:
            """Says what is missing when it is asked for anything."""

            Env = _Environment

            def register(self, *given: Any, **named: Any) -> None:
                """There is nothing to register with."""

            def __getattr__(self, name: str) -> Any:
                raise ModuleNotFoundError(
                    "this needs Gymnasium, which is not installed here: pip install gymnasium",
                    name="gymnasium",
                )

        gym = _Missing()

__all__ = ["gym", "is_environment", "is_space"]


def is_environment(value: Any) -> bool:
    """Whether it is an environment of Gymnasium, single or vector."""
    if isinstance(gym, ModuleType):
        return isinstance(value, gym.Env | gym.vector.VectorEnv)
    return False


def is_space(value: Any) -> bool:
    """Whether it is a space of Gymnasium."""
    return isinstance(gym, ModuleType) and isinstance(value, gym.Space)
