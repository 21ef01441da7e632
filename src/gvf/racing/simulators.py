"""The two cars, behind one interface: the real TORCS, and Gymnasium's CarRacing.

Both are Gymnasium environments with the same observation (a grey picture), action (steering),
reward (progress) and information, both leave out the drawing where ``draw`` is off, and both
``replay`` actions. TORCS is a package of its own, ``torcs_lockstep``; :mod:`.car_racing` is ours.
Each is imported only where one is made, so that recordings are read without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gvf.common.names import known

FRAME = HEIGHT, WIDTH = 64, 128
"""The shape of a picture."""


@dataclass(frozen=True)
class Simulator:
    """Settings of one of the cars: how to make and drive it, and what is near the middle.

    Attributes:
        environment: its Gymnasium id.
        entry_point: "module:attribute", which makes the environment.
        near: the largest distance to the middle that is near, in half-widths of the road.
        start: steps at the beginning of an episode, in which the car gets up to speed.
        stretch: steps from which states to be evaluated are chosen; in TORCS about a lap, in
            CarRacing, which is slow to replay and has a track for every episode, a third of one.
        episode: steps after which a recording begins again, on another track; None for never.
    """

    environment: str
    entry_point: str
    near: float
    start: int
    stretch: int
    episode: int | None


SIMULATORS = {
    "torcs": Simulator(
        "gvf/Torcs-v0",
        "gvf.racing.simulators:torcs",
        near=0.1,
        start=30,
        stretch=2200,
        episode=None,
    ),
    "car-racing": Simulator(
        "gvf/CarRacing-v0",
        "gvf.racing.car_racing:CarRacing",
        near=0.1,
        start=30,
        stretch=250,
        episode=1000,
    ),
}
"""Both, by name."""


def get(name: str) -> Simulator:
    """One of :data:`SIMULATORS`, or an error that lists them.

    Example:
        >>> from gvf.racing import simulators
        >>> simulators.get("torcs").near
        0.1
    """
    return SIMULATORS[known(name, SIMULATORS, "simulator")]


def make(name: str, **options: Any) -> Any:
    """Make the environment of a simulator, without Gymnasium's wrappers."""
    module, attribute = get(name).entry_point.split(":")
    return getattr(import_module(module), attribute)(**options)


def torcs(**options: Any) -> Any:
    """Make the real TORCS, ``gvf/Torcs-v0``: ``torcs_lockstep.Torcs`` with these options.

    Where that package or TORCS itself is missing, the error says how to install it.

    Example:
        >>> from gvf.racing.simulators import torcs
        >>> env = torcs(track="e-track-1")  # doctest: +SKIP
    """
    try:
        from torcs_lockstep import Torcs
    except ModuleNotFoundError as error:
        if error.name != "torcs_lockstep":
            raise
        raise ModuleNotFoundError(
            "TORCS needs the package torcs-lockstep, which is not installed: `pip install ./torcs` "
            "in a clone of gvf; gvf/CarRacing-v0 has the same observation, action and info, and "
            "needs no TORCS",
            name=error.name,
        ) from None
    return Torcs(**options)
