"""Commands about the paper: `gvf reproduce`, `gvf record-racing`, `gvf report`."""

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
from gvf.common.version import __version__

if TYPE_CHECKING:
    from gvf.report.exhibit import Exhibit

REPRODUCE = """\
Run the paper's experiments, redraw its figures over the published curves, and judge the claims that
the paper makes about them. The result is a page, report.html. Without FIGURE, all figures of the
main text are made, except that of the racing car.

The page shows the whole paper. gvf carries results at the paper's scale: they stand beside the
figures that you make, and in place of those that you do not. `gvf report` in an empty folder shows
them alone.

The scale "quick" takes minutes: it has few runs and coarse grids. The scale "paper" has the paper's
own runs and grids, and takes about a quarter of an hour for the main text on two cores, and two
hours for the appendix. Only missing results are computed, so you can stop at any time (Ctrl-C) and
give the same command again to go on."""

REPRODUCE_EXAMPLES = """\
figures of the main text:
  four-rooms-learning-curves, four-rooms-gap, four-rooms-step-size       Fig. 1
  continuous-incremental, continuous-rmsprop                             Fig. 2
  markov-step-size, markov-vtrace, markov-variance                       Fig. 4
the racing car (needs PyTorch, and TORCS, Gymnasium's CarRacing or recorded streams):
  racing-step-size                                                       Fig. 3
  racing-momentum                                                        a sentence on Fig. 3
figures of the appendix, the authors' code and their talk, and one of ours:
  four-rooms-targets, four-rooms-step-size-often,
  markov-step-size-all, markov-vtrace-all, markov-variance-all,
  continuous-sgd-all, continuous-rmsprop-all, continuous-incremental-all,
  continuous-sgd-step-size-all
emphatic methods on the paper's domains, of ours; by emphasis: states count by it in errors:
  emphatic-rooms, emphatic-rooms-by-emphasis                             beside Fig. 1
  emphatic-tiles, emphatic-tiles-by-emphasis                             beside Fig. 2 left
  emphatic-rmsprop, emphatic-rmsprop-by-emphasis                         beside Fig. 2 right
  emphatic-chain, emphatic-chain-by-emphasis                             beside Fig. 4

charts of Ghiassian and Sutton (2021), on a page of their own, charts.html:
  collision-online, rooms-online, high-variance-rooms-online             eleven online algorithms
  collision-window, rooms-window, high-variance-rooms-window             mini-batches of 16
  collision-window-1, rooms-window-1, high-variance-rooms-window-1       mini-batches of 1
  rooms-active, high-variance-rooms-active       of 1, only while a question is active

examples:
  gvf reproduce                                     the main text, at the scale "quick"
  gvf reproduce markov-step-size --scale paper      one figure, with all runs
  gvf reproduce markov-step-size --protocol both    once by the paper, once by its authors' code
  gvf reproduce --seed 1 --out fresh                other random numbers, in a folder of their own
  gvf reproduce --scale paper --engine ray --address auto
  gvf reproduce racing-step-size --scale paper --device cuda
"""

RECORD = """\
Record what the racing car's networks learn from: a stream of images for every run, returns of the
target policy from states that are in no stream, and a short film. Nothing is learned yet. The
recordings are files in the cache, and those that exist are kept.

Copied to the cache of another machine, they are all that `gvf reproduce racing-step-size` needs
there besides PyTorch: no simulator and no Gymnasium. A machine that does one run (`gvf run --only`)
needs only the stream of that run."""

NAMED = 3
"""The number of failing claims of a figure that the terminal names."""
DEFAULT_OUT = "gvf-results"
"""The default folder of results."""

OPTIONS = ("simulator", "device")
"""The settings of the racing car that are options of `gvf reproduce`."""

REPORT = """\
Draw and judge again from the results in a folder, and write its page, report.html: the paper's
figures that were made there, and studies of your own. Nothing is run.

The page also shows the results at the paper's scale that come with gvf. If the folder is empty, it
shows them alone. Charts have a page of their own, charts.html."""


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    reproduce = add_command(
        commands,
        "reproduce",
        _reproduce,
        "redraw the paper's figures and judge its claims",
        REPRODUCE,
        REPRODUCE_EXAMPLES,
    )
    reproduce.add_argument(
        "figures", nargs="*", metavar="FIGURE", help="the figures to make, see below"
    )
    _add_scale(reproduce)
    reproduce.add_argument(
        "--protocol",
        choices=("paper", "authors", "both"),
        default="paper",
        help="paper: the settings in the paper's text (default); authors: those with which the "
        "published curves come out; both: one after the other",
    )
    reproduce.add_argument(
        "--runs", type=int, metavar="N", help="the number of runs (default: that of the scale)"
    )
    reproduce.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="the seed of everything random, the racing car's streams included (default: 0); a "
        "folder holds the figures of one seed",
    )
    _add_simulator(reproduce)
    reproduce.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="where the racing car's networks learn (default: cpu)",
    )
    add_engine(reproduce)
    add_out(reproduce)

    recording = add_command(
        commands,
        "record-racing",
        _record_material,
        "record the images that the racing car learns from",
        RECORD,
        "examples:\n"
        '  gvf record-racing                     for the scale "quick": takes minutes\n'
        "  gvf record-racing --scale paper       for all runs: takes an hour, and 1.5 GB\n"
        "  gvf record-racing racing-tuning-adam  the stream on which optimisers are compared\n",
    )
    recording.add_argument(
        "study",
        nargs="?",
        default="racing-step-size",
        metavar="STUDY",
        help="a study of the racing car (default: racing-step-size)",
    )
    _add_scale(recording)
    _add_simulator(recording)

    report = add_command(
        commands,
        "report",
        _report,
        "draw and judge again from stored results",
        REPORT,
        "example:\n  gvf report gvf-results\n",
    )
    report.add_argument(
        "out",
        nargs="?",
        default=DEFAULT_OUT,
        metavar="DIR",
        help="the folder of results (default: ./gvf-results)",
    )


def _add_scale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scale",
        choices=("quick", "paper"),
        default="quick",
        help="quick: few runs and coarse grids (default); paper: the paper's runs and grids",
    )


def _add_simulator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--simulator",
        choices=("torcs", "car-racing"),
        help="the racing car's simulator: torcs (default), or car-racing of Gymnasium",
    )


def _record_material(given: argparse.Namespace) -> int:
    from gvf import paper
    from gvf.paper import studies
    from gvf.racing import RacingStudy
    from gvf.racing.material import Material, take

    options = {} if given.simulator is None else {"simulator": given.simulator}
    if given.study in paper.FIGURES:
        study = paper.get(given.study).study("paper", given.scale)
    else:  # other studies have one scale
        study = studies.get(given.study)
    if not isinstance(study, RacingStudy):
        raise ValueError(f"{given.study} records nothing; racing-step-size does")
    for file in Material(study.with_(**options)).files():
        hash = take(file).hash
        print(f"{file.path}  {file.path.stat().st_size / 1e6:.1f} MB, hash {hash}", flush=True)
    return 0


def _reproduce(given: argparse.Namespace) -> int:
    from gvf import paper
    from gvf.common.progress import duration
    from gvf.study.engine import run

    began = time.perf_counter()
    if given.runs is not None and given.runs < 1:
        raise ValueError(f"--runs must be at least 1, got {given.runs}")
    wanted = [_figure(id) for id in dict.fromkeys(given.figures)]
    wanted = wanted or [
        figure for figure in paper.FIGURES.values() if figure.main and not figure.on_request
    ]
    options = options_of(given)
    for name in options:
        if not any(name in figure.study("paper").settings for figure in wanted):
            raise ValueError(f"--{name} is about the racing car: name racing-step-size with it")
    protocols = ("paper", "authors") if given.protocol == "both" else (given.protocol,)
    # Every study is made before the first runs, so that errors are reported at once.
    todo = [
        (figure, protocol, study_of(figure, protocol, given))
        for figure in wanted
        for protocol in protocols
    ]
    _refuse_other_seeds(given)
    now = before = 0
    for number, (figure, protocol, study) in enumerate(todo, 1):
        done = run(
            study, given.out, workers=given.workers, engine=given.engine, address=given.address
        )
        now, before = now + done.done, before + done.skipped
        heading = f"[{number}/{len(todo)}] {figure.id}, protocol {protocol}"
        print(f"{heading}: {done.text}", file=sys.stderr)
        _record(figure, protocol, study, given)
    shown = _build(Path(given.out), command_of(given))
    _summarise(shown, Path(given.out))
    took = duration(time.perf_counter() - began)
    print(f"{now} tasks done now, {before} before; this command took {took}")
    return 0


def _figure(id: str) -> Any:
    """Return a figure of the paper or a chart, by its id."""
    from gvf import charts, paper
    from gvf.common.names import known

    figures = paper.FIGURES | charts.FIGURES
    return figures[known(id, figures, "figure", "`gvf reproduce --help` shows all")]


def _refuse_other_seeds(given: argparse.Namespace) -> None:
    """Raise an error if the folder has figures of another seed, since claims compare figures."""
    from gvf import charts, paper
    from gvf.report.evidence import recorded

    for figure in (*paper.FIGURES.values(), *charts.FIGURES.values()):
        seed = figure.study("paper").seed if given.seed is None else given.seed
        for made in recorded(figure, Path(given.out) / figure.id).values():
            if made.seed != seed:
                raise ValueError(
                    f"{given.out} has {figure.id} with seed {made.seed}, not {seed}: name another "
                    "folder with --out, so that results of two seeds do not mix"
                )


def options_of(given: argparse.Namespace) -> dict[str, str]:
    """Return the options about the racing car that were given."""
    said = {"simulator": given.simulator, "device": given.device}
    return {name: value for name, value in said.items() if value is not None}


def study_of(figure: Any, protocol: str, given: argparse.Namespace, scale: str = "") -> Any:
    """Return the study of a figure, with the given options that apply to it."""
    plain = figure.study(protocol)
    options: dict[str, Any] = {
        name: said for name, said in options_of(given).items() if name in plain.settings
    }
    if given.seed is not None:
        options["seed"] = given.seed
    return figure.study(protocol, scale or given.scale, None if scale else given.runs, **options)


def _record(figure: Any, protocol: str, study: Any, given: argparse.Namespace) -> None:
    from gvf.report.build import machine, record
    from gvf.report.evidence import commit, fingerprint, recorded
    from gvf.report.exhibit import Provenance
    from gvf.study.progress import spent
    from gvf.study.store import Store

    store = Store(study, given.out)
    found = fingerprint(store)
    before = recorded(figure, Path(given.out) / figure.id).get(protocol)
    if before is not None and before.results == found["results"]:
        return  # nothing has changed, and the record says by which code and when it was made
    full = study == study_of(figure, protocol, given, "paper")
    options = {name: getattr(study, name) for name in OPTIONS if name in study.settings}
    made = Provenance(
        scale="paper" if full else given.scale,
        runs=study.runs,
        seed=study.seed,
        command=command_of(given, figure.id, protocol),
        version=__version__,
        machine=machine(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(sum(spent(store).values()), 1),
        options=options,
        stream=_streams(store),
        commit=commit(),
        **found,
    )
    record(figure, Path(given.out), protocol, made)


def _streams(store: Any) -> str:
    """Return the hashes of the recorded streams behind the results, in the order of the runs."""
    logged = {name: said for line in store.logged() for name, said in line.items()}
    names = (f"stream-{run}" for run in range(store.study.runs))
    return " ".join(logged[name][:12] for name in names if name in logged)


def command_of(given: argparse.Namespace, *figure_and_protocol: str) -> str:
    """Return the command line; with a figure and a protocol, the one that makes only these."""
    figures, protocol = given.figures, given.protocol
    if figure_and_protocol:
        figures, protocol = [figure_and_protocol[0]], figure_and_protocol[1]
    words = ["gvf", "reproduce", *figures, "--scale", given.scale, "--protocol", protocol]
    if given.runs is not None:
        words += ["--runs", str(given.runs)]
    if given.seed is not None:
        words += ["--seed", str(given.seed)]
    words += [word for name, value in options_of(given).items() for word in (f"--{name}", value)]
    if given.out != DEFAULT_OUT:
        words += ["--out", given.out]
    return shlex.join(words)


def _report(given: argparse.Namespace) -> int:
    from gvf.common.names import look_in

    look_in(Path.cwd())
    out = Path(given.out)
    if not out.is_dir() and given.out != DEFAULT_OUT:
        raise ValueError(f"no folder {given.out}: `gvf reproduce --out {given.out}` fills one")
    out.mkdir(exist_ok=True)
    _summarise(_build(out, shlex.join(["gvf", "report", given.out])), out)
    return 0


def _build(out: Path, command: str) -> list[Exhibit]:
    from gvf.report.build import build

    print("drawing and judging ...", file=sys.stderr)
    return build(out, command)


def _summarise(shown: Sequence[Exhibit], out: Path) -> None:
    """Print the number of figures by origin, verdicts and matching curves, and the page's path."""
    from gvf.report.build import CHARTS, PAGE
    from gvf.report.sentences import counted
    from gvf.report.tables import published_curves, versions

    every = [versions(one) for one in shown]
    made, shipped = (
        [one[origin] for one in every if origin in one] for origin in ("now", "shipped")
    )
    nothing = f"no figures were made in {out}: `gvf reproduce --out {out}` makes them"
    print(_count(made) if made else nothing)
    for one in made:
        failing = [verdict for verdict in counted(one) if verdict.verdict == "fails"]
        for verdict in failing[:NAMED]:
            print(f"  fails: {verdict.sentence} [{one.figure.id}, protocol {verdict.protocol}]")
        if failing[NAMED:]:
            print(f"  fails: {len(failing) - NAMED} more of {one.figure.id}, all on the page")
    must, good, others, alike = published_curves(made)
    if must or others:
        print(
            f"published curves (protocol authors): {good} of {must} that must match do, and "
            f"{alike} of {others} others"
        )
    if shipped:
        print(f"shipped with gvf, at the paper's scale: {_count(shipped)}")
        counts = Counter(next(iter(one), "absent") for one in every)
        absent = f", {counts['absent']} not shipped yet" if counts["absent"] else ""
        print(f"the page has {counts['now']} made now and {counts['shipped']} shipped{absent}")
    for page in (PAGE, CHARTS):
        if (out / page).exists():
            print(f"report: {out / page}")


def _count(shown: Sequence[Exhibit]) -> str:
    """Count figures and the verdicts on their claims that count."""
    from gvf.report.sentences import counted

    counts = Counter(verdict.verdict for one in shown for verdict in counted(one))
    judged = (
        f"; of {counts.total()} claims {counts['holds']} hold, {counts['fails']} fail, "
        f"{counts['undecided']} are undecided"
    )
    if counts["not judged"]:
        judged += f", {counts['not judged']} not judged for want of another figure"
    return f"{len(shown)} figure{'' if len(shown) == 1 else 's'}{judged if counts else ''}"
