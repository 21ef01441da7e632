"""Figures of the paper: what they run and show."""

import math
from itertools import product

import numpy as np
import pytest

from gvf_lab import catalogue, paper
from gvf_lab.figure import Figure
from gvf_lab.racing import RacingStudy
from gvf_lab.study import Study
from gvf_lab.study.results import MethodResults, Results

FIGURES = list(paper.FIGURES.values())
VTRACE = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
ROOMS_METHODS = frozenset(
    {"IR", "BC-IR", "IS", "WIS-Minibatch", "WIS-Buffer", "WIS-Optimal", *VTRACE, "Sarsa"}
)
BATCHES = frozenset({"IR", "IS", "WIS-Minibatch", "V-trace(1.0)"})
ONE_BY_ONE = BATCHES | {"WIS-TD(0)", "IR+WIS-TD(0)"}
EMPHATIC = frozenset({"Emphatic IR", "Emphatic IS", "Emphatic WIS-Minibatch"})
WITH_EMPHASIS = {"IR", "IS", "WIS-Minibatch"} | EMPHATIC
CHAIN_METHODS = ROOMS_METHODS - set(VTRACE) | {"Expected Sarsa", "On-policy"}
SHOWN = {
    "four-rooms-learning-curves": ROOMS_METHODS,
    "four-rooms-gap": ROOMS_METHODS,
    "four-rooms-step-size": ROOMS_METHODS,
    "four-rooms-targets": {"IR", "IS", "WIS-Minibatch", *VTRACE},
    "four-rooms-step-size-often": BATCHES,
    "continuous-incremental": ONE_BY_ONE,
    "continuous-rmsprop": BATCHES,
    "racing-step-size": BATCHES | {"BC-IR"},
    "racing-momentum": {"IR", "BC-IR", "IS"},
    "markov-step-size": CHAIN_METHODS,
    "markov-vtrace": {"IS", *VTRACE},
    "markov-variance": {"IR", "IS", "WIS-Minibatch"},
    "markov-step-size-all": CHAIN_METHODS,
    "markov-vtrace-all": {"IS", *VTRACE},
    "markov-variance-all": {"IR", "IS", "WIS-Minibatch"},
    "continuous-sgd-all": BATCHES,
    "continuous-rmsprop-all": BATCHES,
    "continuous-incremental-all": ONE_BY_ONE,
    "continuous-sgd-step-size-all": BATCHES,
    "emphatic-rooms": WITH_EMPHASIS,
    "emphatic-rooms-by-emphasis": WITH_EMPHASIS,
    "emphatic-tiles": WITH_EMPHASIS,
    "emphatic-tiles-by-emphasis": WITH_EMPHASIS,
    "emphatic-rmsprop": WITH_EMPHASIS,
    "emphatic-rmsprop-by-emphasis": WITH_EMPHASIS,
    "emphatic-chain": WITH_EMPHASIS,
    "emphatic-chain-by-emphasis": WITH_EMPHASIS,
}
"""Figures, and the methods that they must show; a figure of ours need not stand here."""
MAIN = {
    "four-rooms-learning-curves", "four-rooms-gap", "four-rooms-step-size",
    "continuous-incremental", "continuous-rmsprop", "racing-step-size",
    "markov-step-size", "markov-vtrace", "markov-variance",
}  # fmt: skip
SERIES = {
    "IR", "BC-IR", "IS", "NormIS", "WIS-Minibatch", "WIS-Buffer", "WIS-Optimal", *VTRACE,
    "Sarsa", "Expected Sarsa", "On-policy", "WIS-TD(0)", "IR+WIS-TD(0)", *EMPHATIC,
}  # fmt: skip
"""All names of series, everywhere."""
RUNS = {"chain": 100, "emphatic": 25, "four": 25, "continuous": 25, "racing": 10, "markov": 100}
"""Of the paper, by the first of these words that is in a figure's name."""


def test_the_figures_are_those_of_the_paper() -> None:
    assert set(SHOWN) <= set(paper.FIGURES)
    assert len(SHOWN) == 27
    assert {figure.id for figure in FIGURES if figure.main} == MAIN
    # They take longer than all others, and a simulator.
    asked_for = [figure.id for figure in FIGURES if figure.on_request]
    assert asked_for == ["racing-step-size", "racing-momentum"]
    assert all(id == figure.id for id, figure in paper.FIGURES.items())
    assert set(paper.FIGURES) <= set(catalogue.STUDIES)


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_a_figure_has_a_study_at_every_scale(figure: Figure, protocol: str) -> None:
    whole, quick = (figure.study(protocol, scale) for scale in ("paper", "quick"))
    assert whole == catalogue.study_of(figure.id, protocol)
    if figure.id in SHOWN:
        assert whole.runs == next(runs for word, runs in RUNS.items() if word in figure.id)
    assert 2 <= quick.runs <= whole.runs
    assert (quick.name, quick.methods, quick.pairs) == (whole.name, whole.methods, whole.pairs)
    assert len(list(quick.tasks())) <= len(list(whole.tasks()))
    assert figure.study(protocol, "quick", runs=3).runs == 3
    methods = {"IS" if method == "NormIS" else method for method in whole.methods}
    assert methods >= SHOWN.get(figure.id, set())
    if isinstance(whole, Study):
        assert isinstance(quick, Study)
        assert whole.protocol == quick.protocol == protocol
        assert set(quick.gaps) <= set(whole.gaps)
        # Claims compare the ends of the sweep.
        assert max(quick.gaps) == max(whole.gaps)
        if whole.domain == "continuous-four-rooms":
            drawn = "NormIS" if protocol == "authors" else "IS"
            assert {"IS", "NormIS"} & set(whole.methods) == {drawn}
    if isinstance(whole, RacingStudy):
        assert isinstance(quick, RacingStudy)
        assert set(quick.step_sizes) <= set(whole.step_sizes)
        assert len(quick.step_sizes) >= 3
        assert (whole.updates, whole.evaluation_states) == (20_000, 300)
        assert whole.window == whole.steps
        assert len(whole.step_sizes) >= (5 if figure.main else 3)
        # Every track of TORCS has the same number of whole episodes.
        assert quick.steps % 7500 == whole.steps % 7500 == 0


def test_options_are_attributes_of_the_study() -> None:
    study = paper.get("racing-step-size").study("paper", "quick", 3, simulator="car-racing")
    assert isinstance(study, RacingStudy)
    assert (study.simulator, study.runs, study.device) == ("car-racing", 3, "cpu")


def test_series_have_the_names_that_were_agreed_on() -> None:
    made = {
        method
        for figure in FIGURES
        for protocol in ("paper", "authors")
        for method in figure.study(protocol).methods
    }
    assert made == SERIES


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_a_figure_says_what_it_is(figure: Figure) -> None:
    assert figure.title
    assert figure.axes.x
    assert figure.axes.y
    assert set(figure.notes) == {"paper", "authors"}
    ids = [claim.id for claim in figure.claims]
    assert len(ids) == len(set(ids))
    for claim in figure.claims:
        assert claim.sentence.endswith(".")
        assert claim.measure
        assert claim.least < claim.most
        assert math.isfinite(claim.least) or math.isfinite(claim.most)
        assert set(claim.needs) <= set(paper.FIGURES) - {figure.id}


@pytest.mark.parametrize(
    "name", [name for name in paper.__all__ if name not in ("FIGURES", "SCALES")]
)
def test_a_public_name_has_an_example(name: str) -> None:
    # Its own: `inspect.getdoc` would take that of a base class.
    assert ">>>" in (getattr(paper, name).__doc__ or "")


def test_what_is_unknown_is_named_among_what_is_known() -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown figure: 'four-rooms'; did you mean 'four-rooms-gap' or 'four-rooms-"
        r"targets' or 'four-rooms-step-size'\? \(`gvf reproduce --help` shows all\)",
    ):
        paper.get("four-rooms")
    with pytest.raises(ValueError, match=r"unknown scale: 'full'; known are 'quick', 'paper'"):
        paper.get("four-rooms-gap").study("paper", "full")
    with pytest.raises(ValueError, match=r"unknown protocol: 'ours'"):
        paper.get("four-rooms-gap").study("ours")


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_the_panels_of_a_figure_are_those_of_its_pairs(figure: Figure) -> None:
    study = figure.study("paper", "quick").with_(runs=2)
    cells = {}
    for key in product(study.pairs, study.gaps, study.methods):
        ones = np.ones((2, len(study.choices(key[2])), 1))
        lists = ("curve", "curve_steps", "film")
        columns = {name: ones if name in lists else ones[:, :, 0] for name in study.measures}
        cells[key] = MethodResults(study.choices(key[2]), columns)
    panels = {row.panel for row in figure.read(Results(study, "paper", cells))}
    if figure.id == "four-rooms-targets":
        assert panels == {"down/random-state", "favoured-down/random-state"}
    elif not figure.id.endswith("-all"):
        kinds = {"scalar", "trace"} if figure.id == "markov-variance" else set()
        assert panels == {"main"} | kinds
    elif figure.id.startswith("markov"):
        pairs = {"easy", "hard", "hardest"}
        traces = figure.id == "markov-variance-all"
        assert panels == pairs | ({f"{pair}, trace" for pair in pairs} if traces else set())
    else:
        assert panels == {
            f"{target}/{behaviour}"
            for target in ("down", "favoured-down")
            for behaviour in ("uniform", "random-state", "random-state-weight")
        }
    assert {published.panel for published in figure.published} <= panels
