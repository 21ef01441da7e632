"""The command `gvf show`: files to begin with."""

from __future__ import annotations

import argparse
from typing import Any

from gvf.cli.options import add_command, complete_with

SHOW = """\
Print a file to begin with. `gvf show question` prints a commented question about a log, which
`gvf learn` and `gvf diagnose` take back."""

FILES = ("question",)


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    show = add_command(
        commands,
        "show",
        _show,
        "print a commented question about a log",
        SHOW,
        "example:\n  gvf show question > question.toml\n",
    )
    file = show.add_argument("file", metavar="FILE", help="what to print: question")
    complete_with(file, lambda: FILES)


def _show(options: argparse.Namespace) -> int:
    if options.file not in FILES:
        raise ValueError(
            f"`gvf show question` prints a question; settings of a study: `gvf study show "
            f"{options.file}`"
        )
    from gvf.answers.question_file import example

    print(example(), end="")
    return 0
