"""Pictures: the points of a figure as curves, ready for print.

Every protocol and pair of policies has a panel. All panels have the same axes, and the legend is
outside them. :mod:`gvf_lab.figure.draw_panel` draws one panel, :mod:`gvf_lab.figure.style` has the
looks of methods. Pictures do not use pyplot and ignore the user's settings: equal points give equal
bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.files import replaced
from gvf.common.plot_style import house_style, render
from gvf_lab.figure import draw_panel
from gvf_lab.figure.draw_panel import Curve, curves
from gvf_lab.figure.figure import Axes, Point
from gvf_lab.figure.points import summary
from gvf_lab.figure.style import GREY, Style, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

LONGEST_LABEL = 34
"""Letters of the longest name that fits beside a panel."""
SHORT_LABEL = 20
"""Letters of the longest name that fits a column of 1.5 inches in a legend below the panels."""


def draw(
    rows: Iterable[Point],
    axes: Axes,
    *,
    published: Iterable[Point] = (),
    title: str = "",
    remarks: Mapping[str, str] | None = None,
    columns: int | None = None,
    colours: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
) -> Figure:
    """Draw points.

    Args:
        rows: our points, with one panel for every protocol and panel that they name.
        axes: the axes.
        published: points to draw under ours, each in the panel of its protocol.
        title: the line above the panels.
        remarks: a short remark on each protocol, above its panels.
        columns: the number of columns; by default as many as fit a page. One column fits a phone.
        colours: the colours of series that should not have their default.
        names: the titles of panels whose own names do not say what they show.

    Example:
        >>> from gvf_lab.figure import Axes, Point
        >>> from gvf_lab.figure.picture import draw
        >>> rows = [Point("paper", "main", "IR", x, x**2, 0.1, 25, x) for x in (0.0, 1.0, 2.0)]
        >>> figure = draw(rows, Axes("step size", "error"))
        >>> [len(panel.lines) for panel in figure.axes], figure.axes[0].get_xlabel()
        ([1], 'step size')
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ours = curves(rows)
    if not ours:
        raise ValueError("there is nothing to draw: rows is empty")
    panels = sorted({key[:2]: None for key in ours}, key=lambda panel: panel[0] != "paper")
    theirs = {key: curve for key, curve in curves(published).items() if key[:2] in panels}
    looks = styles((series for _, _, series in (*ours, *theirs)), colours)
    phases = {name: position / len(looks) for position, name in enumerate(looks)}
    low, top = draw_panel.limits([*ours.values(), *theirs.values()], axes)
    handles = _legend(ours, looks, bool(theirs), top)
    longest = max(len(handle.get_label()) for handle in handles)
    layout = _Layout.of(panels, len(handles), columns, longest)
    with house_style():
        figure = Figure(figsize=layout.size, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(layout.rows, layout.columns, squeeze=False, sharex=True, sharey=True)
        for number, (place, panel) in enumerate(zip(grid.flat, panels, strict=False)):
            draw_panel.set_up(place, axes, (low, top), layout.height)
            here = {key[2]: curve for key, curve in ours.items() if key[:2] == panel}
            beneath = {key[2]: curve for key, curve in theirs.items() if key[:2] == panel}
            for name, curve in beneath.items():
                label = "" if name in here else name
                draw_panel.draw_published(place, curve, looks[name], axes, top, phases[name], label)
            for name, curve in here.items():
                draw_panel.draw_ours(place, curve, looks[name], axes, top, phases[name])
            draw_panel.label_few_decades(place, axes)
            draw_panel.head(place, *_words(panel, panels, here, remarks or {}, names or {}))
            if layout.columns > 1:
                place.label_outer()
                if number + layout.columns >= len(panels):  # no panel below this one
                    place.tick_params(labelbottom=True)
                    place.set_xlabel(axes.x)
            else:
                place.tick_params(labelbottom=True)
        for place in grid.flat[len(panels) :]:
            place.remove()
        if title:
            figure.suptitle(title, fontweight="bold")
        where = "outside right center" if layout.beside else "outside lower center"
        figure.legend(handles=handles, loc=where, ncols=layout.across)
    return figure


def sensitivity(
    errors: Mapping[str, ArrayLike],
    step_sizes: Sequence[float],
    *,
    y: str = "error",
    y_top: float | None = None,
    x_log: bool = False,
) -> Figure:
    """Draw the error against the step size, for your own methods or ours.

    Args:
        errors: the errors of each method, by name: [runs, step_sizes]; inf if a run diverged.
        step_sizes: the step sizes in ascending order.
        y: the label of the y axis.
        y_top: the end of the y axis; None: chosen from the curves.
        x_log: True if step sizes are drawn on a logarithmic scale.

    Returns:
        A matplotlib figure; ``figure.savefig("sensitivity.png")`` saves it.

    Example:
        >>> import numpy as np
        >>> from gvf_lab.figure import sensitivity
        >>> errors = {"IR": np.full((10, 3), 0.1), "mine": [[0.3, 0.2, np.inf]]}
        >>> figure = sensitivity(errors, [0.1, 0.2, 0.4], x_log=True)
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['IR', 'mine']
    """
    sizes = np.asarray(step_sizes, dtype=float)
    if sizes.ndim != 1 or not sizes.size or not (np.diff(sizes) > 0).all():
        raise ValueError(f"step_sizes must be numbers in ascending order, got {step_sizes}")
    rows = []
    for name, values in errors.items():
        array = np.asarray(values, dtype=float)
        if array.ndim != 2 or array.shape[1] != sizes.size or not len(array):
            raise ValueError(
                f"errors[{name!r}] must be [runs, {sizes.size}], a column for each step size, "
                f"and has shape {array.shape}"
            )
        if np.isnan(array).any():
            run, choice = np.argwhere(np.isnan(array))[0]
            raise ValueError(
                f"errors[{name!r}][{run}, {choice}] is nan: a run that diverged has inf"
            )
        rows += (
            Point("", "main", name, size, mean, stderr, len(array), size)
            for size, mean, stderr in zip(sizes.tolist(), *summary(array), strict=True)
        )
    return draw(rows, Axes("step size", y, x_log=x_log, y_top=y_top))


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a picture as ``<name>.png`` and ``<name>.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        with replaced(folder / f"{name}.{kind}") as unfinished:
            unfinished.write_bytes(render(figure, kind))


@dataclass(frozen=True)
class _Layout:
    """The arrangement of panels and legend; lengths in inches."""

    rows: int
    columns: int
    size: tuple[float, float]
    height: float
    beside: bool
    across: int

    @classmethod
    def of(
        cls, panels: Sequence[tuple[str, str]], entries: int, columns: int | None, longest: int
    ) -> _Layout:
        """Arrange panels and legend: beside a single panel, else below the panels in columns.

        Names too long to fit beside a panel go below it, one above the other.
        """
        narrow = columns == 1
        if columns is None:
            kinds = len({panel for _, panel in panels})
            columns = min(len(panels) if kinds == 1 else kinds, 3)
        rows = math.ceil(len(panels) / columns)
        if len(panels) == 1 and not narrow and longest <= LONGEST_LABEL:
            return cls(1, 1, (6.3, 3.4), 2.6, True, 1)
        width = {1: 4.2, 2: 7.6}.get(columns, 9.4)
        height = 2.7 if columns < 3 else 2.4
        across = max(1, int(width / (1.5 if longest <= SHORT_LABEL else 0.5 + 0.075 * longest)))
        below = 0.3 + 0.17 * math.ceil(entries / across)
        return cls(rows, columns, (width, rows * height + below), height - 0.7, False, across)


def _words(
    panel: tuple[str, str],
    panels: Sequence[tuple[str, str]],
    here: Mapping[str, Curve],
    remarks: Mapping[str, str],
    names: Mapping[str, str],
) -> tuple[str, str]:
    """Return a panel's title and its remarks, without the words that all panels share."""
    protocol, name = panel
    words = []
    if len({name for _, name in panels}) > 1:
        words.append(names.get(name, name.replace("/", " / ")))
    if len({protocol for protocol, _ in panels}) > 1:
        words.append(f"protocol {protocol}")
    words += [remarks[protocol]] if remarks.get(protocol) else []
    words.append(draw_panel.runs_of(here))
    first = words.pop(0) if len(panels) > 1 else ""
    return first, ", ".join(words)


def _legend(
    ours: Mapping[tuple[str, str, str], Curve],
    looks: Mapping[str, Style],
    published: bool,
    top: float,
) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = []
    for name, look in looks.items():
        mine = [curve for key, curve in ours.items() if key[2] == name]
        if mine:
            inside = any((curve.y <= top).any() for curve in mine)
            label = name if inside else f"{name} (off the axis)"
            handles.append(Line2D([], [], **look.ours, label=label))
    if published:
        handles.append(Line2D([], [], color=GREY, linewidth=0.8, label="published"))
    return handles
