"""What TORCS is told before it starts: the files that it reads.

One car on one track, alone, for a practice that does not end: no fuel is used and no damage done.
:mod:`gvf.domain.racing.child` writes these files and starts TORCS on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from gvf.domain.racing.car import HEIGHT, WIDTH

ROBOT = "gvf"
"""The name of the driver that the bridge is."""


@dataclass(frozen=True)
class Race:
    """What TORCS is started with.

    Attributes:
        track: its name.
        kind: of the track, "road" or "oval".
        car: its name.
        camera: (list, number) in it, as TORCS counts them.
        ticks: steps of the physics for one action.
        speed: m/s to keep.

    Example:
        >>> from gvf.domain.racing.race import Race
        >>> sorted(Race("e-track-1", "road", "car1-trb1", (0, 4), 50, 15.0).files())
        ['config/graph.xml', 'config/raceengine.xml', 'config/screen.xml', 'config/sound.xml',
         'drivers/gvf/gvf.xml', 'race.xml']
    """

    track: str
    kind: str
    car: str
    camera: tuple[int, int]
    ticks: int
    speed: float

    def files(self) -> dict[str, str]:
        """What TORCS reads, by the name of the file: without sound, boards, mirror and map."""
        head_list, number = self.camera
        screen = {
            "camera head list": head_list,
            "camera": number,
            "enable mirror": 0,
            "driver board": 0,
            "driver counter": 0,
            "leader board": 0,
            "debug info": 0,
            "G graph": 0,
            "arcade": 0,
            "map mode": 1,
        }
        modules = {"track": "track", "simu": "simuv2", "graphic": "ssggraph"}
        effects = {
            "smoke value": 0,
            "skid value": 0,
            "fov factor": 2.0,
            "wheel rendering": "simple",
        }
        robot = {"name": ROBOT, "desc": ROBOT, "team": ROBOT, "author": ROBOT, "race number": 1}
        colours = {"red": 1.0, "green": 0.0, "blue": 0.0}
        grid = {
            "rows": 1,
            "distance to start": 100,
            "distance between columns": 20,
            "offset within a column": 10,
            "initial speed": 0.0,
            "initial height": 0.2,
        }
        practice = {
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
            "Starting Grid": grid,
        }
        drivers = {
            "maximum number": 1,
            "focused module": ROBOT,
            "focused idx": 1,
            "1": {"idx": 1, "module": ROBOT},
        }
        documents = {
            "config/raceengine.xml": {"Modules": modules},
            "config/sound.xml": {"Sound Settings": {"state": "disabled", "volume": 0}},
            "config/screen.xml": {"Screen Properties": {"x": WIDTH, "y": HEIGHT, "bpp": 24}},
            "config/graph.xml": {
                "Graphic": effects,
                "Display Mode": {"number of screens": 1, "0": screen},
            },
            f"drivers/{ROBOT}/{ROBOT}.xml": {
                "Robots": {"index": {"1": robot | colours | {"car name": self.car}}}
            },
            "race.xml": {
                "Header": {"name": ROBOT, "description": ROBOT, "priority": 1},
                "Tracks": {"maximum number": 1, "1": {"name": self.track, "category": self.kind}},
                "Races": {"1": {"name": "Practice"}},
                "Practice": practice,
                "Drivers": drivers,
            },
        }
        return {name: xml(content) for name, content in documents.items()}


def xml(content: Mapping[str, Any]) -> str:
    """A parameter file of TORCS: sections that hold texts, numbers and sections.

    Example:
        >>> from gvf.domain.racing.race import xml
        >>> print(xml({"Header": {"name": "gvf", "priority": 1}}))
        <?xml version="1.0" encoding="UTF-8"?>
        <params name="gvf" type="param" mode="mw">
        <section name="Header">
        <attstr name="name" val="gvf"/>
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

    head = ['<?xml version="1.0" encoding="UTF-8"?>', '<params name="gvf" type="param" mode="mw">']
    return "\n".join([*head, *lines(content), "</params>"])
