"""The laboratory's commands within `gvf`: names, completion, and how soon they start."""

import shutil
import subprocess
import sys

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
