"""Commands about logs: `gvf learn` and `gvf diagnose`, with a question file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.cli.options import add_command, add_engine, place_of_options

if TYPE_CHECKING:
    from gvf.answers import Answer

UNANSWERED = 3
"""The exit status if the log does not answer a question."""
LEARN = """\
Answer questions about a log: what would have happened if another policy had acted?

LOG is a Parquet file or a folder of them, a CSV or .npz file, or the id of a Minari dataset.
QUESTION.toml says what is asked; `gvf show question` prints a commented one to begin with.

Every correction learns with every step size from parts of the log, and the episodes that were held
out judge which is best, or that the log cannot tell. What wins learns from the whole log, and a
bootstrap over episodes gives an interval to every prediction. The folder DIR then has

  report.html            a page: what the log is, whether it supports the questions, what won and by
                         how much, the value of the policy, predictions along episodes, and maps
  predictions.parquet    a row for each question and each step of the log: verdict, the log's own
                         names of episodes and times, row, state, prediction, low, high
  NAME.gvf               the learner of each question; in Python, gvf.load reads it
  cells/                 what is done so far, so that the same command goes on after Ctrl-C

A log or a question with a mistake is refused with one line, and nothing is written."""

LEARN_EXAMPLES = """\
examples:
  gvf show question > question.toml           begin with this, and edit the file
  gvf learn log.parquet question.toml
  gvf learn log.parquet question.toml --out answers/monday
  gvf learn log.parquet question.toml --trust             policies and cumulants of your own modules
  gvf learn log.parquet question.toml --engine ray --address auto

  gvf learn examples/logs/cartpole.parquet examples/logs/question.toml      from a clone of gvf

exit status: 0 if the log answers all questions, 3 if it does not answer one, 2 for a mistake in the
log or in the question, and 130 after Ctrl-C. With status 3 all files are there, and tell what can
be told: the value of the policy, by several estimators.
"""

DIAGNOSE = """\
Tell whether a log supports the questions, and which correction suits it, without answering them.

It looks at the ratios rho = pi / mu of all transitions: how many transitions of the target the log
is worth (the effective sample size), how heavy the tail of the ratios is, and whether held-out
episodes will be able to tell which correction and step size are best. It prints a table, and writes
a page if --out names a file."""

DIAGNOSE_EXAMPLES = """\
examples:
  gvf diagnose log.parquet question.toml
  gvf diagnose log.parquet question.toml --out diagnosis.html
"""


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    learn = add_command(
        commands,
        "learn",
        _learn,
        "answer questions about a log, with intervals",
        LEARN,
        LEARN_EXAMPLES,
    )
    _add_both(learn)
    add_engine(learn)
    learn.add_argument(
        "--out",
        metavar="DIR",
        help="the folder of the answer (default: gvf-answers/LOG-QUESTION)",
    )
    diagnose = add_command(
        commands,
        "diagnose",
        _diagnose,
        "tell whether a log supports questions",
        DIAGNOSE,
        DIAGNOSE_EXAMPLES,
    )
    _add_both(diagnose)
    diagnose.add_argument("--out", metavar="FILE", help="the page to write (default: none)")


def _add_both(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "log", metavar="LOG", help="a Parquet, CSV or .npz file, a folder, or a Minari dataset"
    )
    parser.add_argument(
        "question", metavar="QUESTION.toml", help="the file that says what is asked"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="allow what the question file names to run code: modules and TorchScript files",
    )


def _learn(options: argparse.Namespace) -> int:
    from gvf.answers import answer, load, write

    plan = load(options.question, trust=options.trust)
    name = Path(options.log.rstrip("/")).name.partition(".")[0]
    out = Path(options.out or f"gvf-answers/{name}-{plan.name}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder")
    result = answer(plan, options.log, out, workers=place_of_options(options))
    files = write(result, out)
    print(_answer_text(result))
    print(*files, sep="\n")
    return 0 if all(part.sure for part in result.answers) else UNANSWERED


def _answer_text(result: Answer) -> str:
    """Return the answers as text."""
    return f"\n{result!r}\n"


def _diagnose(options: argparse.Namespace) -> int:
    from gvf.answers import diagnose, load, prepare
    from gvf.answers.answer_page import diagnosis_page
    from gvf.answers.support_of_log import warnings_of_material
    from gvf.common.files import write_text

    out = None if options.out is None else Path(options.out)
    if out is not None and out.suffix != ".html":
        raise ValueError(f"--out {out}: the name of the page must end in .html")
    material = prepare(load(options.question, trust=options.trust), options.log)
    supports, warned = diagnose(material), warnings_of_material(material)
    print()
    if material.source == "estimated" or warned:
        print(f"The ratios are {material.ratios_from}.", *warned, sep="\n  warning: ", end="\n\n")
    for support in supports:
        print(support, end="\n\n")
    if out is not None:
        write_text(out, diagnosis_page(material, supports))
        print(out)
    sys.stdout.flush()
    return 0
