"""Pictures that go with a figure: learning curves, and a film with what was predicted.

A figure names those that it has (``Figure.more``); each is drawn from the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from gvf.paper.figure import Axes
from gvf.paper.reading import against_steps, best_lane
from gvf.report.picture import draw, looked_after
from gvf.report.style import styles
from gvf.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTIONS = {
    "learning-curves": "Error while learning, at each method's best learning rate. "
    "Bands: one standard error.",
    "film": "A drive that no learner has seen. Above, what the driver sees; below, the return of "
    "the target policy from there (grey) and what networks predict from the image, at each "
    "method's best learning rate (mean over runs).",
}
"""What each of them shows."""
FRAMES = 7
"""Of the film that are shown."""


def more(names: Iterable[str], results: Results) -> dict[str, Figure]:
    """Pictures by name; one for which something is missing is left out."""
    drawn = {name: DRAWN[name](results) for name in names}
    return {name: picture for name, picture in drawn.items() if picture is not None}


def learning_curves(results: Results) -> Figure:
    """Error against updates."""
    return draw(against_steps(results), Axes(results.study.curve_unit, results.study.quantity))


def film(results: Results) -> Figure | None:
    """Frames, returns, and predictions."""
    from gvf.racing.material import film_of

    study = results.study
    shown = film_of(study)
    predicted = results.cell(study.methods[0])["film"]
    if shown is None or predicted.shape[-1] != len(shown):
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    looks = styles(study.methods)
    seconds = 0.1 * shown.settings["every"] * np.arange(len(shown))
    with looked_after():
        figure = Figure(figsize=(9.4, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, FRAMES, height_ratios=(1, 4.5))
        chosen = np.linspace(0, len(shown.frames) - 1, FRAMES).round().astype(int)
        for place, frame in enumerate(chosen):
            picture = figure.add_subplot(grid[0, place])
            picture.imshow(shown.frames[frame], cmap="gray", vmin=0, vmax=255)
            picture.set(xticks=[], yticks=[])
            picture.grid(False)
            picture.set_title(f"{seconds[frame]:.0f} s", fontsize=7.5)
        axes = figure.add_subplot(grid[1, :])
        axes.fill_between(seconds, shown.value, color="#d9d9d9", linewidth=0, label="return")
        for name, look in looks.items():
            cell = results.cell(name)
            mean = cell["film"][:, best_lane(cell)].mean(axis=0)
            style = {key: look.ours[key] for key in ("color", "linestyle", "linewidth")}
            axes.plot(seconds, np.clip(mean, -0.5, 1.5), label=name, **style)
        axes.set(xlabel="time (s)", ylabel="value", xlim=(0, seconds[-1]))
        figure.legend(loc="outside right center")
    return figure


DRAWN: dict[str, Callable[[Results], Figure | None]] = {
    "learning-curves": learning_curves,
    "film": film,
}
"""How each of them is drawn."""
