"""Pictures of how reliable an estimated behaviour is, and of how well one covers a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gvf.common.colours import METHOD_COLOURS
from gvf.common.files import replaced
from gvf.common.plot_style import house_style, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gvf.behaviour.reliability import Reliability
    from gvf.behaviour.support import StateGroup, Support

_TARGET, _BEHAVIOUR, _IDEAL = METHOD_COLOURS["IR"], METHOD_COLOURS["IS"], "#8a8f98"
_LINES = tuple(METHOD_COLOURS[name] for name in ("IS", "IR", "WIS-Minibatch", "V-trace(1.0)"))
_MOST_STATES = 40
_SMALLEST = 1e-4
"""The cover at the left end of the picture; smaller ones are drawn there."""
_SEEN = 0.002
"""The least share of lost mass that shows in a picture."""


def reliability_picture(reliability: Reliability, axes: Any = None) -> Figure:
    """Draw what was observed over what was estimated."""
    import matplotlib.pyplot as plt

    with house_style():
        if axes is None:
            _, axes = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
        axes.plot([0, 1], [0, 1], color=_IDEAL, linewidth=1, label="perfect")
        low, high = reliability.observed - reliability.low, reliability.high - reliability.observed
        bars = None if np.isnan(low).all() else np.maximum([low, high], 0.0)
        axes.errorbar(
            *(reliability.expected, reliability.observed, bars),
            fmt="o-",
            color=_TARGET,
            linewidth=1.2,
            markersize=3.5,
            elinewidth=0.9,
            label="estimated" if bars is None else "estimated, 95 % interval over episodes",
        )
        labels = {
            "probability": ("estimated probability", "share of rows with the action"),
            "transform": ("level of the estimated density", "share of actions below it"),
        }
        x, y = labels[reliability.kind]
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=x, ylabel=y, aspect="equal")
        axes.set_title(
            f"calibration error {reliability.error.value:.3f}, "
            f"{reliability.by_chance:.3f} by chance",
            loc="left",
        )
        axes.legend(loc="upper left")
    return axes.figure


def support_picture(support: Support, axes: Any = None) -> Figure:
    """Draw the target's mass by cover on the first axes, the lost mass by state on the second."""
    import matplotlib.pyplot as plt

    with house_style():
        if axes is None:
            _, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
        left, right = np.ravel(axes)
        _draw_mass(left, support)
        _draw_states(right, support)
    return left.figure


def _draw_mass(axes: Axes, support: Support) -> None:
    cover = support.cover
    x = np.clip(cover.value.ravel(), _SMALLEST, 1.0)
    order = np.argsort(x)
    curves = [("target", cover.mass, _TARGET, "-")]
    if cover.behaviour_mass is not None:
        curves.append(("behaviour", cover.behaviour_mass, _BEHAVIOUR, "--"))
    for name, mass, colour, style in curves:
        share = 100 * np.cumsum(mass.ravel()[order]) / len(mass)
        at = np.unique(np.linspace(0, len(order) - 1, 2000).astype(int))
        axes.step(
            x[order][at], share[at], where="post", color=colour, linestyle=style,
            label=f"actions of the {name}",
        )  # fmt: skip
    axes.axvline(support.least, color=_IDEAL, linewidth=0.8)
    axes.annotate(
        f"hardly taken: below {support.least:g}",
        (support.least, 1.0),
        (3, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        fontsize="small",
        color="#555555",
        rotation=90,
    )
    words = "probability of the action by the behaviour"
    if not cover.discrete:
        words = "density of the behaviour / of the target"
    axes.set(xscale="log", xlim=(_SMALLEST, 1.0), ylim=(0, 105))
    if (cover.value < _SMALLEST).any():
        words += f"\n(those below {_SMALLEST:g} at the left end)"
    axes.set(xlabel=words, ylabel="actions with less, in %")
    axes.legend(loc="upper left")


def _draw_states(axes: Axes, support: Support) -> None:
    states = support.batch["state"]
    # The smallest threshold at which there is something to see.
    seen = [c for c, lost in support.lost.items() if lost.value > _SEEN]
    threshold = max(support.least, min(seen, default=max(support.lost)))
    axes.set(ylabel=f"target's mass below {threshold:g}, in %")
    if states.dtype.kind in "iu" and states.ndim == 1:
        groups = support.by_state(threshold)
        bars = sorted(groups[:_MOST_STATES], key=lambda group: group.middle)
        axes.bar(
            [f"{group.middle:.0f}" for group in bars],
            [100 * group.lost.value for group in bars],
            color=_TARGET,
            yerr=_bars(bars),
            ecolor="#222222",
        )
        more = f" (the worst {len(bars)} of {len(groups)})" if len(groups) > len(bars) else ""
        axes.set(xlabel=f"state{more}")
    else:
        dimensions = support.by_dimension(threshold)
        spread = [np.ptp([group.lost.value for group in groups]) for _, groups in dimensions]
        worst = np.argsort(spread)[::-1][: len(_LINES)]
        for j, colour in zip(sorted(worst), _LINES, strict=False):
            name, groups = dimensions[j]
            rows = np.array([group.rows for group in groups])
            places = (np.cumsum(rows) - rows / 2) / rows.sum()
            axes.errorbar(
                *(100 * places, [100 * group.lost.value for group in groups], _bars(groups)),
                fmt="o-",
                color=colour,
                elinewidth=0.9,
                markersize=3.5,
                label=name,
            )
        most = f", the {len(worst)} that matter most" if len(worst) < len(dimensions) else ""
        axes.set(xlim=(0, 100), xlabel=f"quantile of each dimension of the state, in %{most}")
        axes.legend()
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.0))
    axes.set_title("95 % intervals over episodes", loc="left")


def _bars(groups: list[StateGroup]) -> Any:
    """Return the lengths of error bars in %, [2, groups]; 0 where they are not known."""
    lost = np.array([[*group.lost] for group in groups])
    return 100 * np.nan_to_num(np.maximum([lost[:, 0] - lost[:, 1], lost[:, 2] - lost[:, 0]], 0))


def save(figure: Figure, path: Path) -> None:
    """Write a picture to a file whose name ends in .png or .svg, and close it."""
    import matplotlib.pyplot as plt

    kind = path.suffix.removeprefix(".").lower()
    if kind not in ("png", "svg"):
        raise ValueError(f"the name of a picture ends in .png or .svg, got {path}")
    with replaced(path) as unfinished:
        unfinished.write_bytes(render(figure, kind))
    plt.close(figure)
