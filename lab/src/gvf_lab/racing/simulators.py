"""The two simulators, TORCS and Gymnasium's CarRacing, behind one interface.

Both are Gymnasium environments with the same observation (a grey picture), action (steering),
reward (progress) and information. Both skip drawing while ``draw`` is off, and both ``replay``
actions. TORCS comes from the package ``torcs_lockstep``, CarRacing from :mod:`.car_racing`. Each is
imported only when it is made, so recordings can be read without either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gvf.common.part_names import known

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
        stretch: the number of steps from which evaluation states are chosen. In TORCS it is a
            whole episode. In CarRacing it is a third of a lap, because replays are slow and every
            episode has another track.
        episode: the largest number of steps in an episode of a recording.
        tracks: the tracks that episodes take in turn; none if the seed of a reset chooses one.
    """

    environment: str
    entry_point: str
    near: float
    start: int
    stretch: int
    episode: int
    tracks: tuple[str, ...] = ()


SIMULATORS = {
    "torcs": Simulator(
        "gvf/Torcs-v0",
        "gvf_lab.racing.simulators:torcs",
        near=0.1,
        start=30,
        stretch=2500,
        episode=2500,
        tracks=("e-track-1", "e-track-4", "g-track-1"),
    ),
    "car-racing": Simulator(
        "gvf/CarRacing-v0",
        "gvf_lab.racing.car_racing:CarRacing",
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
        >>> from gvf_lab.racing import simulators
        >>> simulators.get("torcs").near
        0.1
    """
    return SIMULATORS[known(name, SIMULATORS, "simulator")]


def make(name: str, **options: Any) -> Any:
    """Make the environment of a simulator, without Gymnasium's wrappers."""
    module, attribute = get(name).entry_point.split(":")
    return getattr(import_module(module), attribute)(**options)


def roads(name: str, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options of the environments that episodes take in turn, one for each track.

    If the options name a track, it is the only one.

    Example:
        >>> from gvf_lab.racing import simulators
        >>> [road["track"] for road in simulators.roads("torcs", {"speed": 10})]
        ['e-track-1', 'e-track-4', 'g-track-1']
        >>> simulators.roads("torcs", {"track": "forza"})
        [{'track': 'forza'}]
    """
    tracks = () if "track" in options else get(name).tracks
    return [{**options, "track": track} for track in tracks] or [dict(options)]


def torcs(**options: Any) -> Any:
    """Make TORCS, ``gvf/Torcs-v0``, which is ``torcs_lockstep.Torcs`` with these options.

    If that package or TORCS itself is missing, the error says how to install it.

    Example:
        >>> from gvf_lab.racing.simulators import torcs
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
