# SPDX-License-Identifier: GPL-2.0-or-later

"""The files that TORCS reads when it starts: one car, alone on one track.

The race is a practice without end, fuel consumption or damage. Sound, boards, mirror and map are
off. :mod:`torcs_lockstep.child` writes these files and starts TORCS with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from torcs_lockstep.exchange import HEIGHT, WIDTH

ROBOT = "lockstep"
"""The name of the bridge as a driver."""
BARE_SCREEN = {
    "enable mirror": 0,
    "driver board": 0,
    "driver counter": 0,
    "leader board": 0,
    "debug info": 0,
    "G graph": 0,
    "arcade": 0,
    "map mode": 1,
}
EFFECTS = {"smoke value": 0, "skid value": 0, "fov factor": 2.0, "wheel rendering": "simple"}
GRID = {
    "rows": 1,
    "distance to start": 100,
    "distance between columns": 20,
    "offset within a column": 10,
    "initial speed": 0.0,
    "initial height": 0.2,
}
PRACTICE = {
    "laps": 1_000_000,
    "type": "practice",
    "starting order": "drivers list",
    "restart": "no",
    "display mode": "normal",
    "display results": "no",
    "fuel consumption factor": 0.0,
    "damage factor": 0.0,
    "invalidate best lap on wall touch": "no",
    "invalidate best lap on corner cutting": "no",
    "corner cutting time penalty": "no",
    "Starting Grid": GRID,
}


@dataclass(frozen=True)
class Race:
    """One car on one track.

    Attributes:
        track: the name of the track.
        kind: the kind of the track, "road" or "oval".
        car: the name of the car.
        camera: the number of the camera's list in TORCS, and its number in that list.
        ticks: the number of steps of the physics in one action.
        speed: the speed to keep, in m/s.

    Example:
        >>> from torcs_lockstep.race import Race
        >>> sorted(Race("e-track-1", "road", "car1-trb1", (0, 4), 50, 15.0).files())
        ['config/graph.xml', 'config/raceengine.xml', 'config/screen.xml', 'config/sound.xml',
         'drivers/lockstep/lockstep.xml', 'race.xml']
    """

    track: str
    kind: str
    car: str
    camera: tuple[int, int]
    ticks: int
    speed: float

    def files(self) -> dict[str, str]:
        """Return the texts of the files, by path."""
        documents = {
            **self._config(),
            f"drivers/{ROBOT}/{ROBOT}.xml": {"Robots": {"index": {"1": self._driver()}}},
            "race.xml": self._practice(),
        }
        return {name: xml(content) for name, content in documents.items()}

    def _config(self) -> dict[str, Any]:
        head_list, number = self.camera
        screen = {"camera head list": head_list, "camera": number, **BARE_SCREEN}
        return {
            "config/raceengine.xml": {
                "Modules": {"track": "track", "simu": "simuv2", "graphic": "ssggraph"}
            },
            "config/sound.xml": {"Sound Settings": {"state": "disabled", "volume": 0}},
            "config/screen.xml": {"Screen Properties": {"x": WIDTH, "y": HEIGHT, "bpp": 24}},
            "config/graph.xml": {
                "Graphic": EFFECTS,
                "Display Mode": {"number of screens": 1, "0": screen},
            },
        }

    def _driver(self) -> dict[str, Any]:
        names = dict.fromkeys(("name", "desc", "team", "author"), ROBOT)
        colours = {"red": 1.0, "green": 0.0, "blue": 0.0}
        return {**names, "race number": 1, **colours, "car name": self.car}

    def _practice(self) -> dict[str, Any]:
        return {
            "Header": {"name": ROBOT, "description": ROBOT, "priority": 1},
            "Tracks": {"maximum number": 1, "1": {"name": self.track, "category": self.kind}},
            "Races": {"1": {"name": "Practice"}},
            "Practice": PRACTICE,
            "Drivers": {
                "maximum number": 1,
                "focused module": ROBOT,
                "focused idx": 1,
                "1": {"idx": 1, "module": ROBOT},
            },
        }


def xml(content: Mapping[str, Any]) -> str:
    """Write a parameter file of TORCS: sections of texts, numbers and further sections.

    Example:
        >>> from torcs_lockstep.race import xml
        >>> print(xml({"Header": {"name": "Practice", "priority": 1}}))
        <?xml version="1.0" encoding="UTF-8"?>
        <params name="lockstep" type="param" mode="mw">
        <section name="Header">
        <attstr name="name" val="Practice"/>
        <attnum name="priority" val="1"/>
        </section>
        </params>
    """

    def lines(section: Mapping[str, Any]) -> list[str]:
        found = []
        for name, value in section.items():
            if isinstance(value, Mapping):
                found += [f"<section name={quoteattr(name)}>", *lines(value), "</section>"]
            else:
                kind = "attstr" if isinstance(value, str) else "attnum"
                found.append(f"<{kind} name={quoteattr(name)} val={quoteattr(str(value))}/>")
        return found

    head = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<params name="lockstep" type="param" mode="mw">',
    ]
    return "\n".join([*head, *lines(content), "</params>"])
