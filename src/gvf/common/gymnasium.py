"""Gymnasium, or a stand-in if it is not installed.

Acting in an environment needs Gymnasium, which is installed with gvf. Learning from recorded data
does not, and may happen on a machine with little besides NumPy and PyTorch. Everything can be
imported there; only a call that needs an environment raises an error.
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

            def __init__(self, *arguments: Any, **named: Any) -> None:
                gym.make  # noqa: B018 (says what is missing)

        class _Missing:
            """A stand-in for Gymnasium, all of whose other attributes raise an error."""

            Env = _Environment

            def register(self, *arguments: Any, **named: Any) -> None:
                """Do nothing, because there is no registry."""

            def __getattr__(self, name: str) -> Any:
                raise ModuleNotFoundError(
                    "this needs Gymnasium, which is not installed here: pip install gymnasium",
                    name="gymnasium",
                )

        gym = _Missing()

__all__ = ["gym", "is_environment", "is_space"]


def is_environment(value: Any) -> bool:
    """Return True if a value is an environment of Gymnasium, single or vector."""
    if isinstance(gym, ModuleType):
        return isinstance(value, gym.Env | gym.vector.VectorEnv)
    return False


def is_space(value: Any) -> bool:
    """Return True for a space of Gymnasium."""
    return isinstance(gym, ModuleType) and isinstance(value, gym.Space)
