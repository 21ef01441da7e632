"""The names of all figures and studies as plain data, for `--help` and for completion.

Both must start at once, so that nothing here imports a study; a test compares the names with the
figures and studies themselves.
"""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Figures under one heading of `gvf reproduce --help`."""

    heading: str
    rows: tuple[tuple[str, str], ...]
    """Names of figures, divided by spaces, and where they stand."""


GROUPS = (
    Group(
        "figures of the main text:",
        (
            ("four-rooms-learning-curves four-rooms-gap four-rooms-step-size", "Fig. 1"),
            ("continuous-incremental continuous-rmsprop", "Fig. 2"),
            ("markov-step-size markov-vtrace markov-variance", "Fig. 4"),
        ),
    ),
    Group(
        "the racing car (needs PyTorch, and TORCS, Gymnasium's CarRacing or recorded streams):",
        (
            ("racing-step-size", "Fig. 3"),
            ("racing-momentum", "a sentence on Fig. 3"),
        ),
    ),
    Group(
        "figures of the appendix, the authors' code and their talk, and one of ours:",
        (
            ("four-rooms-targets four-rooms-step-size-often", ""),
            ("markov-step-size-all markov-vtrace-all markov-variance-all", ""),
            ("continuous-sgd-all continuous-rmsprop-all continuous-incremental-all", ""),
            ("continuous-sgd-step-size-all", ""),
        ),
    ),
    Group(
        "emphatic methods on the paper's domains, of ours; by emphasis: states count by it in "
        "errors:",
        (
            ("emphatic-rooms emphatic-rooms-by-emphasis", "beside Fig. 1"),
            ("emphatic-tiles emphatic-tiles-by-emphasis", "beside Fig. 2 left"),
            ("emphatic-rmsprop emphatic-rmsprop-by-emphasis", "beside Fig. 2 right"),
            ("emphatic-chain emphatic-chain-by-emphasis", "beside Fig. 4"),
        ),
    ),
    Group(
        "\ncharts of Ghiassian and Sutton (2021), on a page of their own, charts.html:",
        (
            (
                "collision-online rooms-online high-variance-rooms-online",
                "online algorithms",
            ),
            ("collision-window rooms-window high-variance-rooms-window", "mini-batches of 16"),
            ("collision-window-1 rooms-window-1", "mini-batches of 1"),
            ("high-variance-rooms-window-1", "mini-batches of 1"),
            ("rooms-active high-variance-rooms-active", "of 1, only while active"),
        ),
    ),
)
FIGURES = tuple(name for group in GROUPS for names, _ in group.rows for name in names.split())
"""All figures."""
STUDIES = (
    *FIGURES,
    "racing-tuning-momentum",
    "racing-tuning-rmsprop",
    "racing-tuning-adam",
    "interpolation-chain",
    "interpolation-rooms",
    "interpolation-tiles",
    "quick-check",
)
"""All studies that are known by name."""


def figure_list() -> str:
    """Return the list of figures for `gvf reproduce --help`.

    Example:
        >>> from gvf_lab.commands.figure_names import figure_list
        >>> figure_list().splitlines()[2]
        '  continuous-incremental, continuous-rmsprop                             Fig. 2'
    """
    lines = []
    for group in GROUPS:
        lines.append(group.heading)
        for names, place in group.rows:
            lines.append(f"  {', '.join(names.split()):69}  {place}".rstrip())
    return "\n".join(lines) + "\n"
