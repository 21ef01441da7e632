"""Commands about the paper: `gvf reproduce`, `gvf report`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.cli.options import add_command, add_engine, add_out

if TYPE_CHECKING:
    from gvf.report.shown import Shown

REPRODUCE = """\
Run the paper's microworld experiments, redraw its figures over the published curves, and judge what
it says about them. With no figure named: all of the main text.

The scale "quick" is a look within minutes: few runs, coarse grids. "paper" has the paper's numbers
of runs and its grids: under an hour for the main text on two cores, a night for the appendix. Only
missing results are computed, so that stopping (Ctrl-C) and going on later loses nothing."""

REPRODUCE_EXAMPLES = """\
figures of the main text:
  four-rooms-learning-curves, four-rooms-gap, four-rooms-step-size       Fig. 1
  continuous-incremental, continuous-rmsprop                             Fig. 2
  markov-step-size, markov-vtrace, markov-variance                       Fig. 4
of the appendix:
  markov-step-size-all, markov-vtrace-all, markov-variance-all, continuous-sgd-all,
  continuous-rmsprop-all, continuous-incremental-all, continuous-sgd-step-size-all

examples:
  gvf reproduce                                     the main text, at a quick scale
  gvf reproduce markov-step-size --scale paper      one figure, in full
  gvf reproduce markov-step-size --protocol both    also as in the authors' code
  gvf reproduce --scale paper --engine ray --address auto
"""

REPORT = """\
Rebuild pictures, verdicts and page from the results in a folder, without running anything."""


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    reproduce = add_command(
        commands, "reproduce", _reproduce, "redraw the paper", REPRODUCE, REPRODUCE_EXAMPLES
    )
    reproduce.add_argument("figures", nargs="*", metavar="FIGURE", help="(default: the main text)")
    reproduce.add_argument(
        "--scale",
        choices=("quick", "paper"),
        default="quick",
        help="few runs and coarse grids (default), or the paper's",
    )
    reproduce.add_argument(
        "--protocol",
        choices=("paper", "authors", "both"),
        default="paper",
        help="the paper's text (default), the settings of its authors' curves, or both",
    )
    reproduce.add_argument("--runs", type=int, metavar="N", help="(default: the scale's)")
    add_engine(reproduce)
    add_out(reproduce)

    report = add_command(
        commands,
        "report",
        _report,
        "rebuild pictures and page from stored results",
        REPORT,
        "example:\n  gvf report gvf-results\n",
    )
    report.add_argument(
        "out", nargs="?", default="gvf-results", metavar="DIR", help="(default: ./gvf-results)"
    )


def _reproduce(given: argparse.Namespace) -> int:
    from gvf import paper
    from gvf.study.engine import run
    from gvf.study.progress import duration

    began = time.perf_counter()
    if given.runs is not None and given.runs < 1:
        raise ValueError(f"--runs must be at least 1, got {given.runs}")
    wanted = [paper.get(id) for id in dict.fromkeys(given.figures)]
    wanted = wanted or [figure for figure in paper.FIGURES.values() if figure.main]
    protocols = ("paper", "authors") if given.protocol == "both" else (given.protocol,)
    # Every study is made before the first is run, so that what is wrong is said at once.
    todo = [
        (figure, protocol, figure.study(protocol, given.scale, given.runs))
        for figure in wanted
        for protocol in protocols
    ]
    for number, (figure, protocol, study) in enumerate(todo, 1):
        options = (given.workers, given.engine, given.address)
        done = run(study, given.out, workers=options[0], engine=options[1], address=options[2])
        told = f"{done.done} tasks in {duration(done.seconds)}" if done.done else "was there"
        print(f"[{number}/{len(todo)}] {figure.id}, protocol {protocol}: {told}", file=sys.stderr)
        _record(figure, protocol, study, given)
    shown = _build(Path(given.out), command_of(given))
    _summarise(shown, Path(given.out))
    print(f"in {duration(time.perf_counter() - began)}")
    return 0


def _record(figure: Any, protocol: str, study: Any, given: argparse.Namespace) -> None:
    import gvf
    from gvf.report.build import machine, record
    from gvf.report.shown import Made
    from gvf.study.store import Store

    spent = {
        line.get("task"): line.get("cpu_seconds", 0.0) for line in Store(study, given.out).logged()
    }
    full = study == figure.study(protocol, "paper")
    made = Made(
        scale="paper" if full else given.scale,
        runs=study.runs,
        seed=study.seed,
        command=command_of(given, figure.id, protocol),
        version=gvf.__version__,
        machine=machine(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(sum(spent.values()), 1),
    )
    record(figure, Path(given.out), protocol, made)


def command_of(given: argparse.Namespace, *figure_and_protocol: str) -> str:
    """The command that does this; or only what concerns one figure under one protocol."""
    figures, protocol = given.figures, given.protocol
    if figure_and_protocol:
        figures, protocol = [figure_and_protocol[0]], figure_and_protocol[1]
    words = ["gvf", "reproduce", *figures, "--scale", given.scale, "--protocol", protocol]
    if given.runs is not None:
        words += ["--runs", str(given.runs)]
    if given.out != "gvf-results":
        words += ["--out", given.out]
    return shlex.join(words)


def _report(given: argparse.Namespace) -> int:
    out = Path(given.out)
    if not out.is_dir():
        raise ValueError(f"no folder {given.out}: `gvf reproduce --out {given.out}` fills one")
    _summarise(_build(out, shlex.join(["gvf", "report", given.out])), out)
    return 0


def _build(out: Path, command: str) -> list[Shown]:
    from gvf.report.build import build

    print("drawing and judging ...", file=sys.stderr)
    return build(out, command)


def _summarise(shown: Sequence[Shown], out: Path) -> None:
    """What a user wants to know at the end: verdicts, matches, where to look."""
    from gvf.report.build import PAGE

    counts = Counter(verdict.verdict for one in shown for verdict in one.verdicts)
    print(
        f"{len(shown)} figures; of {counts.total()} claims {counts['holds']} hold, "
        f"{counts['fails']} fail, {counts['undecided']} are undecided"
    )
    for one in shown:
        for verdict in one.verdicts:
            if verdict.verdict == "fails":
                print(f"  fails: {verdict.sentence} [{one.figure.id}, protocol {verdict.protocol}]")
    matches = [match for one in shown for match in one.matches if match.protocol == "authors"]
    if matches:
        good = sum(match.matches for match in matches)
        print(f"{good} of {len(matches)} curves lie on the published ones (protocol authors)")
    print(f"report: {out / PAGE}")
