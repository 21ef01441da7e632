"""Pictures: the points of a figure as curves, as a good paper would print them.

There is a panel for every protocol and pair of policies, all with the same axes; the legend stands
outside of them. :mod:`gvf.figure.panel` draws one panel, :mod:`gvf.figure.style` knows how a method
looks. Nothing here touches pyplot or heeds a user's settings: equal points give equal files, byte
for byte.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.files import replaced
from gvf.figure import panel as draw_panel
from gvf.figure.figure import Axes, Point
from gvf.figure.panel import Curve, curves
from gvf.figure.reading import summary
from gvf.figure.style import GREY, Style, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

LONG = 34
"""Letters of the longest name that may stand beside a panel."""
NAMES = {"main": "L1 norm", "scalar": "signed sum"}
"""Of panels whose own names do not say what they show."""

LOOK: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.labelcolor": "#222222",
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8.5,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.titlesize": 10,
    "font.size": 8.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "svg.fonttype": "path",  # looks the same where the font is not installed
    "svg.hashsalt": "gvf",
    "xtick.color": "#555555",
    "xtick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.color": "#555555",
    "ytick.labelsize": 7.5,
    "ytick.major.width": 0.6,
    "ytick.minor.width": 0.4,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Use matplotlib's defaults with our changes, whatever the user has set."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)
        yield


def draw(
    rows: Iterable[Point],
    axes: Axes,
    *,
    published: Iterable[Point] = (),
    title: str = "",
    remarks: Mapping[str, str] | None = None,
    columns: int | None = None,
    colours: Mapping[str, str] | None = None,
) -> Figure:
    """Draw points.

    Args:
        rows: our points; there is a panel for every protocol and panel that they name.
        axes: what the axes say.
        published: points that belong under ours, each in the panel of the protocol that it names.
        title: a line above it all.
        remarks: a few words about each protocol, above its panels.
        columns: of panels; by default as many as fit a page. One column fits a phone.
        colours: of series that are to have another than their own.

    Example:
        >>> from gvf.figure import Axes, Point
        >>> from gvf.figure.picture import draw
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
                own = "" if name in here else name
                draw_panel.draw_published(place, curve, looks[name], axes, top, phases[name], own)
            for name, curve in here.items():
                draw_panel.draw_ours(place, curve, looks[name], axes, top, phases[name])
            draw_panel.head(place, *_words(panel, panels, here, remarks or {}))
            if layout.columns > 1:
                place.label_outer()
                if number + layout.columns >= len(panels):  # nothing below it
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
    """Draw how the error depends on the step size, for methods of your own or ours.

    Args:
        errors: of each method, by name: [runs, step_sizes]; inf where a run diverged.
        step_sizes: in ascending order.
        y: what the errors are, for the axis.
        y_top: where the axis ends; None: where curves are no longer of interest.
        x_log: whether step sizes are drawn on a logarithmic scale.

    Returns:
        A matplotlib figure: ``figure.savefig("sensitivity.png")`` keeps it.

    Example:
        >>> import numpy as np
        >>> from gvf.figure import sensitivity
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


def render(figure: Figure, kind: str) -> bytes:
    """A picture as the bytes of a file, "png" or "svg": equal pictures, equal bytes."""
    file = io.BytesIO()
    unsaid = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    with house_style():
        figure.savefig(file, format=kind, dpi=150, metadata=unsaid[kind])
    return file.getvalue()


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a picture as ``<name>.png`` and ``<name>.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        with replaced(folder / f"{name}.{kind}") as unfinished:
            unfinished.write_bytes(render(figure, kind))


@dataclass(frozen=True)
class _Layout:
    """Where panels and legend stand; lengths in inches."""

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
        """So many entries in the legend: beside a single panel, else below, several across.

        Names too long to stand beside a panel stand below it, one above the other.
        """
        narrow = columns == 1
        if columns is None:
            kinds = len({panel for _, panel in panels})
            columns = min(len(panels) if kinds == 1 else kinds, 3)
        rows = math.ceil(len(panels) / columns)
        if len(panels) == 1 and not narrow and longest <= LONG:
            return cls(1, 1, (6.3, 3.4), 2.6, True, 1)
        width = {1: 4.2, 2: 7.6}.get(columns, 9.4)
        height = 2.7 if columns < 3 else 2.4
        across = max(1, int(width / (1.5 if longest <= LONG else 0.5 + 0.075 * longest)))
        below = 0.3 + 0.17 * math.ceil(entries / across)
        return cls(rows, columns, (width, rows * height + below), height - 0.7, False, across)


def _words(
    panel: tuple[str, str],
    panels: Sequence[tuple[str, str]],
    here: Mapping[str, Curve],
    remarks: Mapping[str, str],
) -> tuple[str, str]:
    """What a panel shows, and what else there is to say: what all panels share goes unsaid."""
    protocol, name = panel
    words = []
    if len({name for _, name in panels}) > 1:
        words.append(NAMES.get(name, name.replace("/", " / ")))
    if len({protocol for protocol, _ in panels}) > 1:
        words.append(f"protocol {protocol}")
    words += [remarks[protocol]] if protocol in remarks else []
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
