"""The command `gvf`.

`parser` makes the parser, and `main` runs a command line. A command adds its own parser and names
the function to run. That function imports the rest of the library only when the command runs. An
error that a user can mend is one line and exit status 2.
"""

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gvf.cli import answers, completion, record, reproduce, studies, theory
from gvf.cli.options import Parser
from gvf.common.interrupt import leave
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


def parser() -> Parser:
    """Return the parser of the command line.

    Example:
        >>> from gvf.cli import parser
        >>> parser().prog
        'gvf'
    """
    example = "".join(f"  {line}" if line.strip() else line for line in EXAMPLE.splitlines(True))
    root = Parser(
        prog="gvf",
        description=DESCRIPTION,
        epilog="Try:\n\n"
        "  gvf run quick-check      run a small study, which takes seconds\n"
        "  gvf plot quick-check     draw its results\n"
        "  gvf list                 list the studies of the paper, and yours\n"
        "  gvf reproduce            redraw the paper's figures and judge its claims, in minutes\n"
        "  gvf verify               check the paper's theorems by experiment\n"
        "  gvf learn LOG QUESTION   answer questions about a log; `gvf show question` prints one\n"
        "  gvf record CartPole-v1   let a policy act, and write a log to learn from\n"
        "  gvf run --help           learn to stop and resume a study, and to write your own\n\n"
        "A study is a grid of methods and step sizes, run many times. A figure of the paper shows\n"
        "the results of a study.\n\n"
        f"From Python, the sampler alone:\n\n{example}\n"
        "For whole learners, start with the README's example or examples/quickstart.py.",
    )
    root.set_defaults(command=lambda _: root.print_help() or 0, parser=root)
    root.add_argument("--version", action="version", version=f"gvf {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    answers.add(commands)
    reproduce.add(commands)
    studies.add(commands)
    theory.add(commands)
    record.add(commands)
    completion.add(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process if None); return the exit status.

    Example:
        >>> from gvf.cli import main
        >>> main([])  # doctest: +ELLIPSIS
        usage: gvf ...
    """
    given = argparse.Namespace()
    try:
        with _heard(), warnings.catch_warnings():
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = _show_warning
            given, rest = parser().parse_known_args(arguments)
            if rest:
                given.parser.refuse(rest)
            return given.command(given)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, BrokenPipeError):
            return _leave_quietly()
        print(f"gvf: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        resumes = "; what is done is kept: the same command goes on" if "engine" in given else ""
        print(f"gvf: stopped{resumes}", file=sys.stderr)
        if signal.getsignal(signal.SIGINT) is leave:
            # Exit at once, since a task that is still compiling cannot be stopped.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)
        return 130


@contextmanager
def _heard() -> Iterator[None]:
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


def _one_line(error: Exception) -> str:
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    return " ".join(message.split())


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"gvf: warning: {message}", file=sys.stderr)


def _leave_quietly() -> int:
    """End without an error if the output is closed, as in ``gvf list | head -1``."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
