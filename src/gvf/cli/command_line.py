"""The command line: all commands in one parser, and how a command starts and ends.

A command adds its own parser and names the function to run. That function imports the rest of the
library only when the command runs. An error that a user can mend is one line and exit status 2.
"""

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from gvf.cli import completion, learn_and_diagnose, record_command, show_command
from gvf.cli.options import Parser
from gvf.common.distribution import how_to_install
from gvf.common.interrupts import leave
from gvf.common.version import __version__

EXAMPLE = """\
import gvf
import numpy as np

ratios = np.array([0.0, 0.5, 2.0])         # rho = pi(a|s) / mu(a|s), one for each transition
ring = gvf.RatioRing(capacity=1000, seed=0)
ring.extend(ratios)
slots = ring.sample(16)                    # drawn in proportion to rho: never the first
"""

DESCRIPTION = """\
Off-policy prediction: learn what would happen under a target policy pi from the experience of a
behaviour policy mu. Importance resampling draws each mini-batch in proportion to the ratios
rho = pi / mu, and then learns from it as if it came from pi.
"""


LABORATORY = ("reproduce", "verify", "study")
"""The commands that the distribution gvf-lab adds."""
FORMER_COMMANDS = {
    "run": "gvf study run",
    "plot": "gvf study plot",
    "list": "gvf study list",
    "clean": "gvf study clean",
    "report": "gvf reproduce --report",
    "record-racing": "gvf reproduce --record",
}
"""The names that commands had before, each with the present one."""

LIBRARY_EXAMPLES = """\
Try:

  gvf record CartPole-v1          let a policy act, and write a log to learn from
  gvf show question               print a commented question about a log
  gvf learn LOG QUESTION          answer questions about a log, with intervals
  gvf diagnose LOG QUESTION       tell whether a log supports the questions
"""
LABORATORY_EXAMPLES = """\
  gvf reproduce                   redraw the paper's figures and judge its claims, in minutes
  gvf verify                      check the paper's theorems by experiment
  gvf study run quick-check       run a small study, which takes seconds

A study is a grid of methods and step sizes, run many times. A figure of the paper shows the results
of a study.
"""


def parser() -> Parser:
    """Return the parser of the command line.

    Example:
        >>> from gvf.cli import parser
        >>> parser().prog
        'gvf'
    """
    points = entry_points(group="gvf.commands")
    without = (
        f"The paper's figures, theorems and studies come with the laboratory, gvf-lab:\n"
        f"{how_to_install('gvf-lab')}\n"
    )
    python = "".join(f"  {line}" if line.strip() else line for line in EXAMPLE.splitlines(True))
    root = Parser(
        prog="gvf",
        description=DESCRIPTION,
        epilog=f"{LIBRARY_EXAMPLES}{LABORATORY_EXAMPLES if points else without}\n"
        f"From Python, the sampler alone:\n\n{python}\n"
        "For whole learners, start with the README's example or examples/quickstart.py.",
    )
    root.set_defaults(command=lambda _: root.print_help() or 0, parser=root)
    root.add_argument("--version", action="version", version=f"gvf {__version__}")
    root.answers = {
        **{
            name: f"`gvf {name}` comes with the laboratory, gvf-lab; {how_to_install('gvf-lab')}"
            for name in LABORATORY
        },
        **{old: f"`gvf {old}` is now `{new}`" for old, new in FORMER_COMMANDS.items()},
    }
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    learn_and_diagnose.add(commands)
    record_command.add(commands)
    show_command.add(commands)
    completion.add(commands)
    for point in points:
        point.load()(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process if None); return the exit status.

    Example:
        >>> from gvf.cli import main
        >>> main([])  # doctest: +ELLIPSIS
        usage: gvf ...
    """
    options = argparse.Namespace()
    try:
        with _interruptible(), warnings.catch_warnings():
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = _show_warning
            root = parser()
            completion.answer_shell(root)
            options, rest = root.parse_known_args(arguments)
            if rest:
                options.parser.refuse(rest)
            return options.command(options)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, BrokenPipeError):
            return _leave_quietly()
        print(f"gvf: {_in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        resumes = "; what is done is kept: the same command goes on" if "engine" in options else ""
        print(f"gvf: stopped{resumes}", file=sys.stderr)
        if signal.getsignal(signal.SIGINT) is leave:
            # Exit at once, since a task that is still compiling cannot be stopped.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)
        return 130


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make Ctrl-C a KeyboardInterrupt inside this block, so that a command can end in order."""
    if signal.getsignal(signal.SIGINT) is not leave:
        yield  # the program that called this one handles Ctrl-C
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _leave_if_lost
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, leave)


def _leave_if_lost(lost: Any) -> None:
    """Exit if Ctrl-C was raised in a callback, which cannot pass the exception on."""
    if lost.exc_type is KeyboardInterrupt:
        leave()
    sys.__unraisablehook__(lost)


def _in_one_line(error: Exception) -> str:
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    return " ".join(message.split())


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"gvf: warning: {message}", file=sys.stderr)


def _leave_quietly() -> int:
    """End without an error if the output is closed, as in ``gvf study list | head -1``."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
