"""The picture and the tables of the page about interpolation, from interpolation.csv."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from experiments.interpolation.sweep import ENDS, Point
from experiments.tables import read_rows, with_interval, write_table
from gvf.common.colours import SPARE_COLOURS
from gvf_lab.catalogue import study_of
from gvf_lab.study import Study

FAMILIES = {"Interpolated": "IR", "BC-Interpolated": "BC-IR"}
"""The methods in between, each with its end at beta = 1; at beta = 0 both are IS."""


def write(folder: Path) -> None:
    """Write the tables, the answer and the picture."""
    points = [read_point(row) for row in read_rows(folder / "interpolation.csv")]
    write_table(folder / "errors.markdown", error_lines(points))
    write_table(folder / "widths.markdown", width_lines(points))
    answer = "\n".join(answer_lines(points)) + "\n"
    (folder / "answer.markdown").write_text(answer, encoding="utf-8")
    draw(points, folder / "interpolation.png")


def read_point(row: dict[str, str]) -> Point:
    """Return the point of a row of the file."""
    types = get_type_hints(Point)
    return Point(**{name: types[name](text) for name, text in row.items()})


def families(points: list[Point]) -> Iterator[tuple[str, str, list[Point]]]:
    """Iterate over case, family and its points from beta = 0 to 1, ends included."""
    for case in dict.fromkeys(point.case for point in points):
        mine = [point for point in points if point.case == case]
        for family, end in FAMILIES.items():
            names = ("IS", end)
            path = [p for p in mine if p.method in names or p.method.split("(")[0] == family]
            yield case, family, sorted(path, key=lambda point: point.beta)


def inside(path: list[Point]) -> Point:
    """Return the best of the methods in between, by the runs that choose."""
    return min((p for p in path if p.method not in ENDS), key=lambda point: point.chosen_error)


def error_lines(points: list[Point]) -> list[list[str]]:
    """Return the table of errors, with a row for each case and family."""
    lines: list[list[str]] = []
    for case, family, path in families(points):
        if not lines:
            betas = [f"β = {point.beta:g}" for point in path]
            betas[0], betas[-1] = "IS (β = 0)", "IR, BC-IR (β = 1)"
            lines = [["case", "family", *betas, "best inside / better end", "verdict"]]
        best, lowest = inside(path), min(point.error for point in path)
        errors = []
        for point in path:
            text = f"{point.error:.4f} ± {point.stderr:.4f}"
            errors.append(f"**{text}**" if point.error == lowest else text)
        ratio = f"β = {best.beta:g}: {with_interval(best.ratio, best.low, best.high)}"
        lines.append([case, family, *errors, f"{ratio} of {best.better_end}", best.verdict])
    return lines


def width_lines(points: list[Point]) -> list[list[str]]:
    """Return the table of usable ranges of step sizes, relative to that of IR."""
    lines: list[list[str]] = []
    for case, family, path in families(points):
        if not lines:
            betas = [f"β = {point.beta:g}" for point in path[1:-1]]
            lines = [["case", "family", "IR: from, to", "IS (β = 0)", *betas]]
        wide = next(p for p in points if p.case == case and p.method == "IR")
        cells = [with_interval(p.width, p.width_low, p.width_high, 2) for p in path[:-1]]
        lines.append([case, family, f"{wide.smallest:.2g}, {wide.largest:.2g}", *cells])
    return lines


def answer_lines(points: list[Point]) -> list[str]:
    """Say in a sentence or two how often interpolation wins and loses, and by how much."""
    best = {case: min((inside(p) for c, _, p in families(points) if c == case),
                      key=lambda point: point.chosen_error)
            for case in dict.fromkeys(point.case for point in points)}  # fmt: skip
    by_verdict: dict[str, list[Point]] = {"beats both": [], "loses": [], "undecided": []}
    for point in best.values():
        by_verdict[point.verdict].append(point)
    wins, losses, ties = by_verdict.values()
    text = [
        f"Of {len(best)} cases, the best method in between beats both ends in {len(wins)} and loses"
        f" to the better end in {len(losses)}; undecided: {len(ties)}. Its error over that of the"
        " better end, with a 95 % interval:",
        "",
    ]
    for name, cases in by_verdict.items():
        for p in sorted(cases, key=lambda point: point.ratio):
            ratio = with_interval(p.ratio, p.low, p.high)
            text.append(f"- {name}: {p.case}, `{p.method}`, {ratio} of {p.better_end}")
    return [*text, "", *against_ir(points), "", *grids(points)]


def against_ir(points: list[Point]) -> Iterator[str]:
    """Write, for each method in between, in how many cases it beats IR or loses to it."""
    yield "Against IR alone, over the same cases:"
    yield ""
    for name in dict.fromkeys(point.method for point in points if point.method not in ENDS):
        mine = [point for point in points if point.method == name]
        better = sum(point.to_ir_high < 1.0 for point in mine)
        worse = sum(point.to_ir_low > 1.0 for point in mine)
        least, most = (pick(point.to_ir for point in mine) for pick in (min, max))
        yield (
            f"- `{name}` has the smaller error in {better} of {len(mine)} and the larger one in "
            f"{worse}; from {least:.3f} to {most:.3f} of IR's"
        )


def grids(points: list[Point]) -> Iterator[str]:
    """Write how far the best step sizes are from the edges, and how fine the grids are."""
    between = [point for point in points if point.method not in ENDS]
    margins = []
    for point in points:
        study = study_of(point.study)
        assert isinstance(study, Study)
        sizes = study.step_sizes
        margins += [np.log2(point.step_size / sizes[0]), np.log2(sizes[-1] / point.step_size)]
    least, most = (100 * (pick(point.coarser for point in between) - 1) for pick in (min, max))
    yield (
        f"The grids are wide: every best step size is {min(margins):.1f} doublings or more from an "
        "edge, and no usable one is at an edge. They are fine: with every other step size left "
        f"out, errors in between would change by {least:+.1f} to {most:+.1f} %."
    )


LOOKS: dict[str, dict[str, Any]] = {
    "Interpolated": {"color": SPARE_COLOURS[0], "marker": "o", "markersize": 7,
                     "linestyle": "solid", "markerfacecolor": "white"},
    "BC-Interpolated": {"color": SPARE_COLOURS[1], "marker": "D", "markersize": 3.5,
                        "linestyle": (0, (4, 2))},
}  # fmt: skip
"""The looks of the two families; the colours of IR and IS stay theirs."""
COLUMNS = 4
SHOWN = 1.5
"""The upper end of panels, as a multiple of the error of the better end."""


def draw(points: list[Point], file: Path) -> None:
    """Draw the error against beta, with a panel for each case."""
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(point.case for point in points))
    rows = -(-(len(cases) + 1) // COLUMNS)
    figure = Figure(figsize=(11, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS).ravel()
    # The chain has three panels, so the last place of their row is free for the legend.
    places = dict(zip(cases, [*panels[:3], *panels[4:]], strict=False))
    handles: dict[str, Any] = {}
    for case, family, path in families(points):
        _curve(places[case], family, path, handles)
    for case, panel in places.items():
        mine = [point for point in points if point.case == case]
        handles["the better end"] = _furnish(panel, mine)
    for panel in panels:
        if panel not in places.values():
            panel.axis("off")
    runs = sorted({point.runs for point in points})
    note = (
        "bands: 95 % intervals of the ratio\nto the better end, paired, over the\n"
        f"{runs[0]} to {runs[-1]} runs that judge"
    )
    panels[COLUMNS - 1].legend(
        handles.values(), handles, loc="center left", frameon=False, fontsize=9,
        title=note, title_fontsize=8.5, alignment="left",
    )  # fmt: skip
    figure.supxlabel(r"$β$: draw in proportion to $ρ^β$, weigh by $ρ^{1-β}$", fontsize=10)
    figure.supylabel("error: mean |V − v| over states and the run", fontsize=10)
    figure.savefig(file, dpi=130)


def _curve(panel: Any, family: str, path: list[Point], handles: dict[str, Any]) -> None:
    """Draw a family's errors, with the intervals of their ratios to the better end."""
    beta = [point.beta for point in path]
    low = [point.error / point.ratio * point.low for point in path]
    high = [point.error / point.ratio * point.high for point in path]
    panel.fill_between(beta, low, high, color=LOOKS[family]["color"], alpha=0.18, linewidth=0)
    (line,) = panel.plot(beta, [point.error for point in path], linewidth=1.3, **LOOKS[family])
    handles[f"{family}(β)"] = line


def _furnish(panel: Any, points: list[Point]) -> Any:
    """Draw the better end as a line, name the ends, and set the scale."""
    end = next(point for point in points if point.method == point.better_end)
    line = panel.axhline(end.error, color="#444444", linewidth=0.9, linestyle="dotted", zorder=1)
    domain, pair, *gap = points[0].case.split(", ")
    panel.set_title("\n".join((", ".join((domain, *gap)), pair)), fontsize=9)
    betas = sorted({point.beta for point in points})
    panel.set_xticks(betas, ["0\nIS", *(f"{beta:g}" for beta in betas[1:-1]), "1\nIR, BC-IR"])
    least = min(point.error for point in points)
    panel.set_ylim(least - 0.1 * end.error, SHOWN * end.error)
    for point in points:
        if point.beta == 0.0 and point.error > SHOWN * end.error:
            text = f"IS is above: {point.error:.3f}"
            panel.text(
                0.98, 0.97, text, transform=panel.transAxes, fontsize=8, ha="right", va="top"
            )
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    return line
