"""The two simulators, TORCS and Gymnasium's CarRacing, behind one interface.

Both are Gymnasium environments with the same observation (a grey picture), action (steering),
reward (progress) and information. Both skip drawing while ``draw`` is off, and both ``replay``
actions. TORCS comes from the package ``torcs_lockstep``, CarRacing from :mod:`.car_racing`. Each is
imported only when it is made, so recordings can be read without either.
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
    """The settings of one simulator.

    Attributes:
        environment: its Gymnasium id.
        entry_point: "module:attribute", which makes the environment.
        near: the largest distance to the middle that is near, in half-widths of the road.
        start: the number of steps at the start of an episode in which the car gets up to speed.
        stretch: the number of steps from which evaluation states are chosen. In TORCS it is about a
            lap. In CarRacing it is a third of a lap, because replays are slow and every episode has
            another track.
        episode: the largest number of steps in an episode of a recording; None if unlimited.
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
"""Both simulators, by name."""


def get(name: str) -> Simulator:
    """Return one of :data:`SIMULATORS`; the error for an unknown name lists them.

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
    """Make TORCS, ``gvf/Torcs-v0``, which is ``torcs_lockstep.Torcs`` with these options.

    If that package or TORCS itself is missing, the error says how to install it.

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
