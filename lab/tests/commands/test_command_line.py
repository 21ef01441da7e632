"""The laboratory's commands within `gvf`: names, completion, and how soon they start."""

import shutil
import subprocess
import sys
from importlib import import_module

import pytest
from shells import completed

from gvf.cli import main
from gvf_lab import catalogue, charts, paper


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gvf", "rep"], {"reproduce"}),
        (["gvf", "study", ""], {"list", "show", "run", "plot", "clean"}),
        (["gvf", "study", "run", "qui"], {"quick-check"}),
        (["gvf", "study", "run", "quick-check", "--pro"], {"--protocol"}),
        (["gvf", "study", "show", "quick-check", "--pro"], {"--protocol"}),
        (["gvf", "study", "run", "--engine", ""], {"local", "ray"}),
        (["gvf", "reproduce", "markov-var"], {"markov-variance", "markov-variance-all"}),
        (["gvf", "reproduce", "--protocol", ""], {"paper", "authors", "both"}),
        (["gvf", "reproduce", "--rec"], {"--record"}),
        (["gvf", "show", "q"], {"question"}),
    ],
)
def test_a_shell_completes(shell: str, words: list[str], expected: set[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert set(completed(shell, *words)) == expected


def test_the_names_in_help_and_completion_are_those_of_figures_and_studies() -> None:
    assert set(catalogue.FIGURES) == set(paper.FIGURES) | set(charts.FIGURES)


def test_the_commands_are_added_without_importing_what_they_run() -> None:
    program = (
        "import sys, gvf_lab.commands\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
        "print(*[name for name in sys.modules if name.startswith('gvf_lab.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    packages, rooms = map(set, map(str.split, done.stdout.splitlines()))
    assert not packages & {"gymnasium", "matplotlib", "numba", "numpy", "pyarrow", "rich"}
    assert {name.split(".")[1] for name in rooms} == {"catalogue", "commands", "environments"}


def test_a_figure_imports_only_what_it_needs() -> None:
    program = (
        "import sys\n"
        "from gvf_lab.commands.reproduce import _figure\n"
        "figure = _figure('markov-step-size')\n"
        "figure.study('paper', 'quick'), figure.claims\n"
        "print(*[name for name in sys.modules if name.startswith('gvf_lab.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    names = set(done.stdout.split())
    assert "gvf_lab.paper.markov_chain_figures" in names, done.stderr
    assert not {name.split(".")[1] for name in names} & {"racing", "report", "theory"}
    assert not [name for name in names if name.startswith("gvf_lab.charts.")]
    figures = {name for name in names if name.endswith("_figures")}
    assert figures == {"gvf_lab.paper.markov_chain_figures"}


def test_the_page_has_the_figures_in_the_order_of_the_paper() -> None:
    places = [figure.where[:6] for figure in paper.FIGURES.values() if figure.main]
    assert places == sorted(places)
    assert places[-4:] == ["Fig. 3", "Fig. 4", "Fig. 4", "Fig. 4"]


@pytest.mark.parametrize("name", catalogue.STUDIES)
def test_a_study_has_the_name_of_the_catalogue(name: str) -> None:
    assert catalogue.named_study(name).name == catalogue.study_of(name).name == name


@pytest.mark.parametrize("module", catalogue.MODULES)
def test_the_catalogue_has_every_figure_and_study_of_a_module(module: str) -> None:
    figures = import_module(f"gvf_lab.{module}")
    rows = [row for group in catalogue.GROUPS for row in group.rows if row.module == module]
    names = [name for row in rows for name in row.names.split()]
    assert sorted(figure.id for figure in figures.FIGURES) == sorted(names)
    others = catalogue.OTHER_STUDIES.get(module, "").split()
    assert {study.name for study in getattr(figures, "STUDIES", ())} - {*names} == {*others}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "--report", "out", "--runs", "3"], "--runs means nothing beside --report"),
        (["reproduce", "markov-vtrace", "--report"], "FIGURE means nothing beside --report"),
        (["reproduce", "--record", "--seed", "3"], "--seed means nothing beside --record"),
        (["reproduce", "--record", "racing-step-size", "quick-check"], "leave out quick-check"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
