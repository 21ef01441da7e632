"""The film: a drive that no learner has seen, with its returns and the networks' predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gvf_lab.figure.figure import Companion
from gvf_lab.figure.picture import house_style
from gvf_lab.figure.points import best_choice
from gvf_lab.figure.style import styles
from gvf_lab.racing.recorded_inputs import film_of
from gvf_lab.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRAMES = 7
"""The number of frames that are shown."""


def draw_film(results: Results) -> Figure | None:
    """Draw frames, returns and predictions; return None if the cache does not have this film."""
    study = results.study
    film = film_of(study)
    predicted = results.of(study.methods[0])["film"]
    if film is None or predicted.shape[-1] != len(film):
        return None
    if results.store is not None and results.store.fact("film") not in (None, film.hash):
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    looks = styles(study.methods)
    seconds = 0.1 * film.settings["every"] * np.arange(len(film))
    with house_style():
        figure = Figure(figsize=(9.4, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, FRAMES, height_ratios=(1, 4.5))
        chosen = np.linspace(0, len(film.frames) - 1, FRAMES).round().astype(int)
        for place, frame in enumerate(chosen):
            picture = figure.add_subplot(grid[0, place])
            picture.imshow(film.frames[frame], cmap="gray", vmin=0, vmax=255)
            picture.set(xticks=[], yticks=[])
            picture.grid(False)
            picture.set_title(f"{seconds[frame]:.0f} s", fontsize=7.5)
        axes = figure.add_subplot(grid[1, :])
        axes.fill_between(seconds, film.value, color="#d9d9d9", linewidth=0, label="return")
        for name, look in looks.items():
            measured = results.of(name)
            mean = measured["film"][:, best_choice(measured)].mean(axis=0)
            style = {key: look.ours[key] for key in ("color", "linestyle", "linewidth")}
            axes.plot(seconds, np.clip(mean, -0.5, 1.5), label=name, **style)
        axes.set(xlabel="time (s)", ylabel="value", xlim=(0, seconds[-1]))
        figure.legend(loc="outside right center")
    return figure


FILM = Companion(
    "film",
    "A drive that no learner has seen. Above, what the driver sees; below, the return of the "
    "target policy from there (grey) and what networks predict from the image, at each method's "
    "best learning rate (mean over runs).",
    draw_film,
)
