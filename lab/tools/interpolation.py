"""Test whether `Interpolated(beta)` ever beats both of its ends, and write the results.

    python lab/tools/interpolation.py gvf-results        writes docs/interpolation/*

Existing results are not computed again. The first half of the runs chooses each method's step size,
the better end, and the better of the methods in between. The second half gives the errors, and
their ratios with paired 95 % intervals, so that the selection does not bias them.
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from gvf.common.arrays import Floats
from gvf.common.colours import SPARE_COLOURS
from gvf.common.quantiles import tail_of
from gvf_lab.catalogue import study_of
from gvf_lab.study import NAMED, Store, Study, run
from gvf_lab.study.results import Results, resampling, standard_error

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interpolation"
STUDIES = ("interpolation-chain", "interpolation-rooms", "interpolation-tiles")
DOMAINS = {
    "markov-chain": "chain",
    "four-rooms": "rooms",
    "continuous-four-rooms": "tiles",
}
ENDS = ("IS", "IR", "BC-IR")
FAMILIES = {"Interpolated": "IR", "BC-Interpolated": "BC-IR"}
"""The methods in between, each with its end at beta = 1; at beta = 0 both are IS."""
USABLE = 1.5
"""The largest error of a usable step size, as a multiple of the best."""

Interval = tuple[float, float, float]
"""A statistic and the ends of its 95 % interval."""


@dataclass(frozen=True)
class Point:
    """One method in one case: a row of the file of numbers.

    Attributes:
        study: the study's name.
        case: domain, pair and gap, in words.
        method: the method's name.
        beta: the exponent of the ratio in the draw.
        step_size: the best step size in the first half of the runs.
        error: the mean error over the second half.
        stderr: the standard error of `error`.
        runs: the number of runs in the second half.
        better_end: the best of IS, IR and BC-IR in the first half.
        ratio: the ratio of the error to that of the better end.
        low: the lower end of the interval of `ratio`.
        high: the upper end.
        to_ir: the ratio of the error to that of IR.
        to_ir_low: the lower end of the interval of `to_ir`.
        to_ir_high: the upper end.
        verdict: "beats both" if the intervals of the ratios to all three ends are below 1,
            "loses" if that to the better end is above 1, else "undecided"; empty for an end.
        smallest: the smallest usable step size, over all runs.
        largest: the largest usable step size.
        width: largest / smallest, divided by the same of IR.
        width_low: the lower end of the interval of `width`.
        width_high: the upper end.
        chosen_error: the mean error over the first half, which chose.
        coarser: the error without every other step size, divided by the error with all.
    """

    study: str
    case: str
    method: str
    beta: float
    step_size: float
    error: float
    stderr: float
    runs: int
    better_end: str
    ratio: float
    low: float
    high: float
    to_ir: float
    to_ir_low: float
    to_ir_high: float
    verdict: str
    smallest: float
    largest: float
    width: float
    width_low: float
    width_high: float
    chosen_error: float
    coarser: float


def main() -> None:
    """Run missing studies, judge, and write numbers, tables and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", nargs="?", default="gvf-results", help="the folder of results")
    parser.add_argument("--workers", type=int, help="tasks at once; by default one a processor")
    options = parser.parse_args()
    points: list[Point] = []
    for name in STUDIES:
        study = study_of(name)
        print(run(study, options.out, workers=options.workers))
        points += judged(Results.read(Store(study, options.out), "paper"))
    PAGE.mkdir(exist_ok=True)
    write_numbers(points)
    write_errors(points)
    write_widths(points)
    write_answer(points)
    draw(points)


def judged(results: Results) -> Iterator[Point]:
    """Judge every method of every case of a study."""
    study = results.study
    assert isinstance(study, Study)
    for pair in study.pairs:
        for gap in study.gaps:
            errors = {name: results.of(name, gap, pair).error for name in study.methods}
            case = ", ".join((DOMAINS[study.domain], _pair(*pair), *([f"gap {gap}"] * (gap > 1))))
            yield from _case(study, case, errors)


def _pair(question: str, behaviour: str) -> str:
    return question if question == behaviour else f"{question} / {behaviour}"


def _case(study: Study, case: str, errors: dict[str, Floats]) -> Iterator[Point]:
    """Judge the methods of one case by their errors [runs, step sizes]."""
    half, sizes = study.runs // 2, np.array(study.step_sizes)
    chosen = {name: _best(error[:half], name, case) for name, error in errors.items()}
    judge = {name: error[half:, chosen[name]] for name, error in errors.items()}
    first = {name: float(error[:half, chosen[name]].mean()) for name, error in errors.items()}
    end = min(ENDS, key=lambda name: first[name])
    ranges = {name: usable(error, sizes) for name, error in errors.items()}
    for name, error in errors.items():
        to = {
            other: _interval(_means(judge[name]) / _means(judge[other]), study.runs - half)
            for other in ENDS
        }
        smallest, largest = ranges[name]
        widths = (largest / smallest) / (ranges["IR"][1] / ranges["IR"][0])
        coarser = error[half:, 2 * int(np.argmin(_mean(error[:half, ::2])))]
        yield Point(
            study.name,
            case,
            name,
            _beta(name),
            float(sizes[chosen[name]]),
            float(judge[name].mean()),
            float(standard_error(judge[name])),
            study.runs - half,
            end,
            *to[end],
            *to["IR"],
            "" if name in ENDS else _verdict(list(to.values()), to[end]),
            float(smallest[0]),
            float(largest[0]),
            *_interval(widths, study.runs),
            first[name],
            float(coarser.mean() / judge[name].mean()),
        )


def _beta(name: str) -> float:
    return getattr(NAMED[name].make(1.0), "beta", 0.0 if name == "IS" else 1.0)


def _verdict(to_all: list[Interval], to_better: Interval) -> str:
    if all(high < 1.0 for _, _, high in to_all):
        return "beats both"
    return "loses" if to_better[1] > 1.0 else "undecided"


def _mean(error: Floats) -> Floats:
    """Compute the mean over runs; infinite if a run diverged."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num(error.mean(axis=0), nan=np.inf, posinf=np.inf)


def _best(error: Floats, name: str, case: str) -> int:
    """Return the position of the best step size, which must not be at the edge of the grid."""
    best = int(np.argmin(_mean(error)))
    if best in (0, error.shape[1] - 1):
        raise SystemExit(f"the best step size of {name} is at the edge of the grid: {case}")
    return best


def _means(error: Floats) -> Floats:
    """Compute the mean over runs [R], then that of every bootstrap sample, [1 + B]."""
    return resampling(len(error)) @ error


def _interval(values: Floats, runs: int) -> Interval:
    """Return a statistic and its interval from its bootstrap samples [1 + B]."""
    tail = tail_of(runs)
    low, high = np.quantile(values[1:], (tail, 1 - tail), method="inverted_cdf")
    return float(values[0]), float(low), float(high)


def usable(error: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Compute the smallest and the largest usable step size, [1 + B] each, from errors [R, sizes].

    If the error crosses the bound between two step sizes of the grid, the crossing is interpolated
    in the logarithms of both.
    """
    finite = np.isfinite(error)
    weights = resampling(len(error))
    with np.errstate(over="ignore"):
        mean = weights @ np.where(finite, error, 0.0)
    mean[weights @ ~finite > 0] = np.inf
    bound = USABLE * mean.min(axis=1, keepdims=True)
    within, row = mean <= bound, np.arange(len(mean))
    first, last = within.argmax(axis=1), mean.shape[1] - 1 - within[:, ::-1].argmax(axis=1)
    if first.min() == 0 or last.max() == mean.shape[1] - 1:
        raise SystemExit("usable step sizes reach the edge of the grid")
    ends = []
    for inside, outside in ((first, first - 1), (last, last + 1)):
        below, above = mean[row, inside], mean[row, outside]
        with np.errstate(divide="ignore"):
            share = np.log(bound[:, 0] / below) / np.log(above / below)
        ends.append(sizes[inside] * (sizes[outside] / sizes[inside]) ** share)
    return ends[0], ends[1]


def write_numbers(points: list[Point]) -> None:
    """Write all numbers, one row for each method of each case."""
    with (PAGE / "interpolation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [field.name for field in fields(Point)]
        writer.writerow(names)
        for point in points:
            values = (getattr(point, name) for name in names)
            writer.writerow(f"{v:.6g}" if isinstance(v, float) else v for v in values)


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


def write_errors(points: list[Point]) -> None:
    """Write a table of errors, with a row for each case and family."""
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
        ratio = f"β = {best.beta:g}: {best.ratio:.3f} ({best.low:.3f} to {best.high:.3f})"
        lines.append([case, family, *errors, f"{ratio} of {best.better_end}", best.verdict])
    _write("errors", lines)


def write_widths(points: list[Point]) -> None:
    """Write a table of usable ranges of step sizes, relative to that of IR."""
    lines: list[list[str]] = []
    for case, family, path in families(points):
        if not lines:
            betas = [f"β = {point.beta:g}" for point in path[1:-1]]
            lines = [["case", "family", "IR: from, to", "IS (β = 0)", *betas]]
        wide = next(p for p in points if p.case == case and p.method == "IR")
        cells = [f"{p.width:.2f} ({p.width_low:.2f} to {p.width_high:.2f})" for p in path[:-1]]
        lines.append([case, family, f"{wide.smallest:.2g}, {wide.largest:.2g}", *cells])
    _write("widths", lines)


def write_answer(points: list[Point]) -> None:
    """Write in a sentence or two how often interpolation wins and loses, and by how much."""
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
            ratio = f"{p.ratio:.3f} ({p.low:.3f} to {p.high:.3f})"
            text.append(f"- {name}: {p.case}, `{p.method}`, {ratio} of {p.better_end}")
    text += ["", *against_ir(points), "", *grids(points)]
    (PAGE / "answer.markdown").write_text("\n".join(text) + "\n", encoding="utf-8")


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


def _write(name: str, lines: list[list[str]]) -> None:
    """Write a table in Markdown."""
    lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    (PAGE / f"{name}.markdown").write_text(text + "\n", encoding="utf-8")


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


def draw(points: list[Point]) -> None:
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
    figure.savefig(PAGE / "interpolation.png", dpi=130)


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


if __name__ == "__main__":
    main()
