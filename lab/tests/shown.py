"""Versions of figures made by hand: curves, verdicts and where they come from."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from gvf_lab.figure import Axes, Match, Point, Verdict
from gvf_lab.paper import get
from gvf_lab.report.exhibit import Exhibit, Provenance, Version
from gvf_lab.report.page import page

NAMES = (
    "IR", "BC-IR", "IS", "NormIS", "WIS-Minibatch", "WIS-Buffer", "WIS-Optimal", "V-trace(1.0)",
    "V-trace(0.5 max)", "V-trace(0.9 max)", "Sarsa", "Expected Sarsa", "On-policy", "WIS-TD(0)",
    "IR+WIS-TD(0)",
)  # fmt: skip
SIX = [
    f"{target}/{behaviour}"
    for target in ("down", "favoured-down")
    for behaviour in ("uniform", "random-state", "random-state-weight")
]
PLAIN = Axes("step size", "error")
INF = math.inf


def rows(
    series=("IR", "IS"), *, protocols=("paper",), panels=("main",), points=30, stderr=0.02, runs=25
) -> list[Point]:
    """Curves over step sizes up to 1: they fall, rise, and diverge, the later ones sooner."""
    made = []
    for protocol, panel, (i, name) in itertools.product(protocols, panels, enumerate(series)):
        for x in np.linspace(0, 1, points).tolist():
            room = 1 - x * (1.05 + 0.15 * i)
            y = 0.1 + 0.5 * math.exp(-20 * x) + 0.02 / room if room > 0 else INF
            made.append(
                Point(protocol, panel, name, x, y, stderr if y < INF else math.nan, runs, x)
            )
    return made


def verdict(id: str, told: str, protocol: str = "paper", **changes: Any) -> Verdict:
    numbers = (1.234, 1.1, 1.4, 25)
    one = Verdict(id, f"Claim {id}.", *numbers, protocol, told, "a ratio", (1.0, None), "")
    return replace(one, **changes)


def made(protocol: str, scale: str = "paper", runs: int = 100) -> Provenance:
    command = f"gvf reproduce --protocol {protocol} --scale {scale} & co"
    return Provenance(scale, runs, 7, command, "1.2", "2 processors", "2025-11-20T10:11:12Z", 90.0)


def chain(scale: str = "paper", protocols=("paper", "authors")) -> Version:
    """The chain's step sizes, with a published curve, claims of each kind, and matches.

    Unlike the true ones, its results differ between the protocols.
    """
    figure, factor = get("markov-step-size"), {"paper": 1.0, "authors": 1.01}
    ours = [
        row._replace(x=12 * row.x, y=factor[row.protocol] * row.y)
        for row in rows(("IR", "IS"), protocols=protocols)
    ]
    theirs = [r for r in figure.published[0].rows(r.x for r in ours) if r.series in ("IR", "IS")]
    matches = [
        Match(protocol, "main", name, 70, within, worst)
        for protocol in protocols
        for name, within, worst in (("IR", 69, 2.5), ("IS", 20, INF))
    ]
    verdicts = [
        verdict(id, told, protocol, remark="The grid is <coarse>." if told == "fails" else "")
        for protocol in protocols
        for id, told in (("a", "holds"), ("b", "fails"), ("c", "undecided"))
    ]
    how = {protocol: made(protocol, scale) for protocol in protocols}
    return Version(figure, ours, theirs, matches, verdicts, how)


def six_panels() -> Version:
    ours = rows(("IR", "IS", "V-trace(1.0)"), panels=SIX, points=8)
    how = {"paper": made("paper", runs=25)}
    return Version(get("continuous-sgd-step-size-all"), ours, (), (), [verdict("d", "holds")], how)


def exhibits(shown: Iterable[Version | Exhibit]) -> list[Exhibit]:
    """Exhibits of versions that were made here, and exhibits as they are."""
    return [each if isinstance(each, Exhibit) else Exhibit(each.figure, each) for each in shown]


def write(shown, title="A <report>") -> str:
    told = {"command": "gvf reproduce", "version": "1.2", "machine": "2 processors"}
    return page(exhibits(shown), title=title, seconds=3723.0, **told)
