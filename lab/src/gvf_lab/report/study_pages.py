"""Pictures of any study, without a paper behind it.

    sensitivity        error of every step size, a curve for each method
    updates            error of the best step size, against the number of updates
    learning-curves    error while learning, at the best step size
    variance           variance of updates, while learning

A study lists its pictures (``study.pictures``). All have bands of one standard error over runs, and
one panel for each pair of question and behaviour and for each gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gvf.common.grid_edge import edge_text
from gvf_lab.figure.figure import Axes, Figure, Point, write_csv
from gvf_lab.figure.picture import save
from gvf_lab.figure.points import (
    NORM_PANELS,
    learning_curves,
    points_by_iteration,
    points_by_step_size,
    points_by_updates,
)
from gvf_lab.report.exhibit import STUDIES, Provenance, Version
from gvf_lab.study.base_study import BaseStudy, NamedStudy
from gvf_lab.study.results import Results
from gvf_lab.study.run_study import spent
from gvf_lab.study.store import Store, StoreError

MOST_COLUMNS = 4
"""The largest number of panels side by side."""
LOGARITHMIC_RATIO = 20.0
"""The ratio of the largest x to the smallest from which x has a logarithmic scale."""


@dataclass(frozen=True)
class Picture:
    """A kind of picture of a study.

    Attributes:
        title: a short description.
        caption: the description in a sentence.
        x: the function from a study to the label of the x axis.
        read: the function from results to points.
        y_log: True if y is drawn on a logarithmic scale.
        panels: the titles of panels whose own names do not say what they show.
    """

    title: str
    caption: str
    x: Callable[[Any], str]
    read: Callable[[Results], Sequence[Point]]
    y_log: bool = False
    panels: Mapping[str, str] = field(default_factory=dict)

    def axes(self, study: BaseStudy, rows: Sequence[Point]) -> Axes:
        """Return the axes; the scale of x follows from the points."""
        x = sorted(row.x for row in rows if row.x > 0)
        return Axes(
            self.x(study),
            study.quantity,
            x_log=bool(x)
            and x[-1] >= LOGARITHMIC_RATIO * x[0]
            and self.read is not learning_curves,
            y_log=self.y_log,
        )


PICTURES = {
    "sensitivity": Picture(
        "sensitivity to the step size",
        "Error averaged over the run, for every step size.",
        lambda study: "step size",
        points_by_step_size,
    ),
    "updates": Picture(
        "errors against the number of updates, at the best step sizes",
        "Error averaged over the run, at each method's best step size.",
        lambda study: "updates in a run",
        points_by_updates,
    ),
    "learning-curves": Picture(
        "learning curves, at the best step sizes",
        "Error while learning, at each method's best step size.",
        lambda study: study.curve_unit,
        learning_curves,
    ),
    "variance": Picture(
        "variance of updates",
        "Variance of the update's L1 norm, and trace of its covariance, while learning.",
        lambda study: "iteration of WIS-Optimal",
        points_by_iteration,
        y_log=True,
        panels=NORM_PANELS,
    ),
}
"""All pictures, by name."""


def finished(study: BaseStudy, out: str | Path) -> BaseStudy:
    """Return the study with its first finished runs only; raise an error if there are none."""
    store = Store(study, out)
    runs = study.runs
    for task in study.tasks():
        if task.run < runs and not store.path(task).exists():
            runs = task.run
    if runs == 0:
        others = "".join(f". {other}" for other in store.unfit())
        raise StoreError(
            f"there is no finished run of {study.name!r} in {Path(out)}; `gvf study run` makes them"
            f"{others}"
        )
    return study if runs == study.runs else study.with_(runs=runs)


def study_versions(study: BaseStudy, out: str | Path) -> list[Version]:
    """Return one figure for each picture of a study whose results are under a folder.

    Unfinished runs are left out.
    """
    study = finished(study, out)
    store = Store(study, out)
    results = Results.read(store)
    provenance = {study.protocol: how_made(store)}
    versions = []
    for name in study.pictures:
        picture = PICTURES[name]
        rows = picture.read(results)
        figure = Figure(
            NamedStudy(f"{study.name}-{name}", picture.title, lambda protocol: study),
            title=f"{study.name}: {picture.title}",
            where="",
            axes=picture.axes(study, rows),
            read=picture.read,
            panels=picture.panels,
            notes={study.protocol: picture.caption},
            part=STUDIES,
        )
        colours = {method.name: method.colour for method in study.own if method.colour}
        versions.append(
            Version(
                figure,
                rows,
                provenance=provenance,
                place=(study.name, name),
                results={study.protocol: results},
                colours=colours,
                columns=columns_of(study),
            )
        )
    return versions


def columns_of(study: BaseStudy) -> int | None:
    """Return one column for each gap, if there are several gaps and pairs and it fits the page."""
    return len(study.gaps) if len(study.pairs) > 1 and 1 < len(study.gaps) <= MOST_COLUMNS else None


def how_made(store: Store) -> Provenance:
    """Return the provenance of a study's results, from its log."""
    log = list(store.logged())
    last = log[-1] if log else {}
    return Provenance(
        scale="",
        runs=store.study.runs,
        seed=store.study.seed,
        command=f"gvf study plot {store.study.name}",
        version=last.get("version", ""),
        machine=last.get("host", ""),
        finished=last.get("finished", ""),
        seconds=round(sum(spent(store).values()), 1),
    )


def write_pictures(version: Version, out: str | Path) -> list[Path]:
    """Write the points and the picture of a figure, and return the files."""
    folder, name = version.place
    place = Path(out) / folder
    place.mkdir(parents=True, exist_ok=True)
    write_csv(version.rows, place / f"{name}.csv")
    save(version.draw(), place, name)
    return [place / f"{name}.{kind}" for kind in ("png", "svg", "csv")]


def edges(versions: Sequence[Version]) -> list[str]:
    """Return a sentence for each method whose best step size is the last of the grid.

    Args:
        versions: the pictures of a study; that of the step sizes is judged, if there is one.
    """
    grids: dict[tuple[str, str], list[Point]] = {}
    for row in (
        row for version in versions if version.place[1] == "sensitivity" for row in version.rows
    ):
        grids.setdefault((row.series, row.panel), []).append(row)
    counts: Counter[str] = Counter()
    for (method, _), rows in grids.items():
        best = min(rows, key=lambda row: row.y)
        if best.y < float("inf") and (text := edge_text(best.x, [row.x for row in rows])):
            counts[f"{method}: {text}"] += 1
    panels = len({panel for _, panel in grids})
    return [
        text + f" (in {count} of {panels} panels)" * (panels > 1) for text, count in counts.items()
    ]


def plot(study: BaseStudy, out: str | Path) -> list[Path]:
    """Draw all pictures of a study from its results under a folder, and return the files.

    Example:
        >>> import tempfile
        >>> from gvf_lab.report.study_pages import plot
        >>> from gvf_lab.study import Study, run
        >>> study = Study("s", "markov-chain", ("IR", "IS"), (0.5, 1.0), updates=20, runs=2)
        >>> folder = tempfile.mkdtemp()
        >>> _ = run(study, folder)
        >>> [path.name for path in plot(study, folder)]
        ['sensitivity.png', 'sensitivity.svg', 'sensitivity.csv',
         'learning-curves.png', 'learning-curves.svg', 'learning-curves.csv']
    """
    return [path for version in study_versions(study, out) for path in write_pictures(version, out)]
