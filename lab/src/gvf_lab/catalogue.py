"""The catalogue: the names of all figures and studies, each with the module that has it.

It is plain data, so `gvf reproduce --help` starts at once, and a module is imported when one of its
figures or studies is asked for. A new figure is a row here, a `Figure` in a module and its claims
in the TOML file beside that.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from gvf.common.part_names import known

if TYPE_CHECKING:
    from gvf_lab.figure.figure import Figure
    from gvf_lab.study.base_study import BaseStudy, NamedStudy


class Row(NamedTuple):
    """Figures of one line of `gvf reproduce --help`."""

    names: str
    """Names of figures, divided by spaces."""
    place: str
    """The place of the figures in the paper."""
    module: str
    """The module that has them."""


class Group(NamedTuple):
    """Figures under one heading of `gvf reproduce --help`."""

    heading: str
    page: str
    """"paper" or "charts"."""
    rows: tuple[Row, ...]


ROOMS = "paper.four_rooms_figures"
TILES = "paper.continuous_four_rooms_figures"
CAR = "racing.racing_figure"
CHAIN = "paper.markov_chain_figures"
EMPHATIC = "paper.emphatic_figures"
CHARTS = "charts.chart_figures"
MODULES = (ROOMS, TILES, CAR, CHAIN, EMPHATIC, CHARTS)
"""The modules with figures, in the order of the pages."""
GROUPS = (
    Group(
        "figures of the main text:",
        "paper",
        (
            Row("four-rooms-learning-curves four-rooms-gap four-rooms-step-size", "Fig. 1", ROOMS),
            Row("continuous-incremental continuous-rmsprop", "Fig. 2", TILES),
            Row("markov-step-size markov-vtrace markov-variance", "Fig. 4", CHAIN),
        ),
    ),
    Group(
        "the racing car (needs PyTorch, and TORCS, Gymnasium's CarRacing or recorded streams):",
        "paper",
        (
            Row("racing-step-size", "Fig. 3", CAR),
            Row("racing-momentum", "a sentence on Fig. 3", CAR),
        ),
    ),
    Group(
        "figures of the appendix, the authors' code and their talk, and one of ours:",
        "paper",
        (
            Row("four-rooms-targets four-rooms-step-size-often", "", ROOMS),
            Row("markov-step-size-all markov-vtrace-all markov-variance-all", "", CHAIN),
            Row("continuous-sgd-all continuous-rmsprop-all continuous-incremental-all", "", TILES),
            Row("continuous-sgd-step-size-all", "", TILES),
        ),
    ),
    Group(
        "emphatic methods on the paper's domains, of ours; by emphasis: states count by it in "
        "errors:",
        "paper",
        (
            Row("emphatic-rooms emphatic-rooms-by-emphasis", "beside Fig. 1", EMPHATIC),
            Row("emphatic-tiles emphatic-tiles-by-emphasis", "beside Fig. 2 left", EMPHATIC),
            Row("emphatic-rmsprop emphatic-rmsprop-by-emphasis", "beside Fig. 2 right", EMPHATIC),
            Row("emphatic-chain emphatic-chain-by-emphasis", "beside Fig. 4", EMPHATIC),
        ),
    ),
    Group(
        "\ncharts of Ghiassian and Sutton (2021), online algorithms and mini-batches from a window,"
        "\non a page of their own, charts.html:",
        "charts",
        (
            Row("collision-online collision-window collision-window-1", "", CHARTS),
            Row("rooms-online rooms-window rooms-window-1 rooms-active", "", CHARTS),
            Row("high-variance-rooms-online high-variance-rooms-window", "", CHARTS),
            Row("high-variance-rooms-window-1 high-variance-rooms-active", "", CHARTS),
        ),
    ),
)
"""All figures."""
OTHER_STUDIES = {
    CAR: "racing-tuning-momentum racing-tuning-rmsprop racing-tuning-adam",
    ROOMS: "interpolation-rooms",
    TILES: "interpolation-tiles",
    CHAIN: "interpolation-chain quick-check",
}
"""The studies that belong to no figure, by module."""

_MODULE_OF_FIGURE = {
    name: row.module for group in GROUPS for row in group.rows for name in row.names.split()
}
_MODULE_OF_STUDY = _MODULE_OF_FIGURE | {
    name: module for module, names in OTHER_STUDIES.items() for name in names.split()
}
FIGURES = tuple(_MODULE_OF_FIGURE)
"""The names of all figures."""
STUDIES = tuple(_MODULE_OF_STUDY)
"""The names of all studies; every figure has the name of its study."""


class Figures(MutableMapping[str, "Figure"]):
    """The figures of pages by name, in their order; each is imported when it is asked for.

    Example:
        >>> from gvf_lab.catalogue import Figures
        >>> charts = Figures("charts")
        >>> len(charts), charts["rooms-online"].title
        (11, 'Rooms: online algorithms with traces')
    """

    def __init__(self, *pages: str) -> None:
        names = {
            name
            for group in GROUPS
            if group.page in pages
            for row in group.rows
            for name in row.names.split()
        }
        ordered = sorted(FIGURES, key=lambda name: MODULES.index(_MODULE_OF_FIGURE[name]))
        self._figures: dict[str, Figure | None] = {name: None for name in ordered if name in names}

    def __getitem__(self, name: str) -> Figure:
        figure = self._figures[name] or figure_of(name)
        self._figures[name] = figure
        return figure

    def __setitem__(self, name: str, figure: Figure) -> None:
        self._figures[name] = figure

    def __delitem__(self, name: str) -> None:
        del self._figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)


def figure_of(name: str) -> Figure:
    """Return a figure by name."""
    module = _MODULE_OF_FIGURE[known(name, FIGURES, "figure", "`gvf reproduce --help` shows all")]
    figures: tuple[Figure, ...] = _imported(module).FIGURES
    return next(figure for figure in figures if figure.id == name)


def named_study(name: str) -> NamedStudy:
    """Return the entry of a study: a function of the protocol.

    Example:
        >>> from gvf_lab.catalogue import named_study
        >>> named_study("markov-step-size").shows
        'error against step size, hard pair (Fig. 4 left)'
    """
    name = known(name, STUDIES, "study", "`gvf study list` shows all")
    if name in FIGURES:
        return figure_of(name).source
    studies: tuple[NamedStudy, ...] = _imported(_MODULE_OF_STUDY[name]).STUDIES
    return next(study for study in studies if study.name == name)


def study_of(name: str, protocol: str = "paper") -> BaseStudy:
    """Return a study by name, under a protocol.

    Example:
        >>> from gvf_lab.catalogue import study_of
        >>> study = study_of("four-rooms-gap")
        >>> study.runs, len(study.gaps), len(study.step_sizes)
        (25, 21, 31)
    """
    return named_study(name).make(known(protocol, ("paper", "authors"), "protocol"))


def _imported(module: str):
    return import_module(f"gvf_lab.{module}")


def figure_list() -> str:
    """Return the list of figures for `gvf reproduce --help`.

    Example:
        >>> from gvf_lab.catalogue import figure_list
        >>> figure_list().splitlines()[2]
        '  continuous-incremental, continuous-rmsprop                             Fig. 2'
    """
    lines = []
    for group in GROUPS:
        lines.append(group.heading)
        lines += (
            f"  {', '.join(row.names.split()):69}  {row.place}".rstrip() for row in group.rows
        )
    return "\n".join(lines) + "\n"
