"""The command `gvf reproduce`: the paper's figures and the verdicts on its claims."""

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

from gvf.cli import add_command, add_engine, complete_with, place_of_options
from gvf.common.version import __version__
from gvf_lab import catalogue
from gvf_lab.catalogue import FIGURES, figure_list
from gvf_lab.commands.results_folder import DEFAULT_OUT, add_out

if TYPE_CHECKING:
    from gvf_lab.report.exhibit import Exhibit, Version

REPRODUCE = """\
Run the paper's experiments, redraw its figures over the published curves, and judge the claims that
the paper makes about them. The result is a page, report.html. Without FIGURE, all figures of the
main text are made, except that of the racing car.

The page shows the whole paper. gvf carries results at the paper's scale: they stand beside the
figures that you make, and in place of those that you do not.

The scale "quick" takes minutes: it has few runs and coarse grids. The scale "paper" has the paper's
own runs and grids, and takes about a quarter of an hour for the main text on two cores, and two
hours for the appendix. Only missing results are computed, so you can stop at any time (Ctrl-C) and
give the same command again to go on."""

REPRODUCE_EXAMPLES = (
    figure_list()
    + """
examples:
  gvf reproduce                                     the main text, at the scale "quick"
  gvf reproduce markov-step-size --scale paper      one figure, with all runs
  gvf reproduce markov-step-size --protocol both    once by the paper, once by its authors' code
  gvf reproduce --seed 1 --out fresh                other random numbers, in a folder of their own
  gvf reproduce --scale paper --engine ray --address auto
  gvf reproduce racing-step-size --scale paper --device cuda

judge again: the page from the results in a folder, and from studies of your own, without a run:
  gvf reproduce --report                            of ./gvf-results; an empty folder shows what is
                                                    shipped alone
  gvf reproduce --report fresh                      of another folder

record only: what the racing car's networks learn from, a stream of images for every run, returns
of the target policy, and a short film; files in the cache, and those that exist are kept:
  gvf reproduce --record                            for the scale "quick": takes minutes
  gvf reproduce --record --scale paper              for all runs: takes an hour, and 1.5 GB
  gvf reproduce --record racing-tuning-adam         the stream on which optimisers are compared
Copied to the cache of another machine, they are all that `gvf reproduce racing-step-size` needs
there besides PyTorch: no simulator and no Gymnasium. A machine that does one run
(`gvf study run --only`) needs only the stream of that run.
"""
)

OF_RACING = ("simulator", "device")
"""The options that are settings of the racing car."""
OF_RUNS = ("protocol", "runs", "seed", "device", "workers", "engine", "address", "out")
"""The options that only mean something where figures are made."""
NAMED = 3
"""The number of failing claims of a figure that the terminal names."""


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
    complete_with(
        reproduce.add_argument(
            "figures", nargs="*", metavar="FIGURE", help="the figures to make, see below"
        ),
        lambda: FIGURES,
    )
    reproduce.add_argument(
        "--scale",
        choices=("quick", "paper"),
        default="quick",
        help="quick: few runs and coarse grids (default); paper: the paper's runs and grids",
    )
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
    reproduce.add_argument(
        "--simulator",
        choices=("torcs", "car-racing"),
        help="the racing car's simulator: torcs (default), or car-racing of Gymnasium",
    )
    reproduce.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="where the racing car's networks learn (default: cpu)",
    )
    add_engine(reproduce)
    add_out(reproduce)
    instead = reproduce.add_mutually_exclusive_group()
    instead.add_argument(
        "--report",
        nargs="?",
        const=DEFAULT_OUT,
        metavar="DIR",
        help="run nothing; draw and judge again from the results in a folder (default: "
        "./gvf-results), and write its page",
    )
    instead.add_argument(
        "--record",
        action="store_true",
        help="learn nothing; record what a study of the racing car learns from (default: "
        "racing-step-size)",
    )


def _reproduce(options: argparse.Namespace) -> int:
    if options.report is not None:
        _refuse_beside(options, "--report", *OF_RUNS, "figures", "scale", "simulator")
        return _judge_again(Path(options.report))
    if options.record:
        _refuse_beside(options, "--record", *OF_RUNS)
        return _record_streams(options)
    return _make_figures(options)


def _refuse_beside(options: argparse.Namespace, option: str, *names: str) -> None:
    """Raise an error if an argument was written that means nothing beside an option."""
    for name in names:
        if getattr(options, name) not in (options.parser.get_default(name), []):
            argument = "FIGURE" if name == "figures" else f"--{name}"
            raise ValueError(f"{argument} means nothing beside {option}: leave one of them out")


def _record_streams(options: argparse.Namespace) -> int:
    from gvf_lab import paper
    from gvf_lab.racing import RacingStudy
    from gvf_lab.racing.recorded_inputs import Material, load_or_record

    name, *others = options.figures or ["racing-step-size"]
    if others:
        raise ValueError(f"--record records for one study at a time: leave out {others[0]}")
    changes = {} if options.simulator is None else {"simulator": options.simulator}
    if name in paper.FIGURES:
        study = paper.get(name).study("paper", options.scale)
    else:  # other studies have one scale
        study = catalogue.study_of(name)
    if not isinstance(study, RacingStudy):
        raise ValueError(f"{name} records nothing; racing-step-size does")
    for file in Material(study.with_(**changes)).files():
        hash = load_or_record(file).hash
        print(f"{file.path}  {file.path.stat().st_size / 1e6:.1f} MB, hash {hash}", flush=True)
    return 0


def _make_figures(options: argparse.Namespace) -> int:
    from gvf.common.progress import duration
    from gvf_lab import paper
    from gvf_lab.study.run_study import run

    began = time.perf_counter()
    if options.runs is not None and options.runs < 1:
        raise ValueError(f"--runs must be at least 1, got {options.runs}")
    figures = [_figure(id) for id in dict.fromkeys(options.figures)]
    figures = figures or [
        figure for figure in paper.FIGURES.values() if figure.main and not figure.on_request
    ]
    for name in racing_options(options):
        if not any(name in figure.study("paper").settings for figure in figures):
            raise ValueError(f"--{name} is about the racing car: name racing-step-size with it")
    protocols = ("paper", "authors") if options.protocol == "both" else (options.protocol,)
    place = place_of_options(options)
    # Every study is made before the first runs, so that errors are reported at once.
    studies = [
        (figure, protocol, study_of(figure, protocol, options))
        for figure in figures
        for protocol in protocols
    ]
    _refuse_other_seeds(options)
    now = before = 0
    for number, (figure, protocol, study) in enumerate(studies, 1):
        done = run(study, options.out, workers=place)
        now, before = now + done.done, before + done.skipped
        heading = f"[{number}/{len(studies)}] {figure.id}, protocol {protocol}"
        print(f"{heading}: {done.text}", file=sys.stderr)
        _record(figure, protocol, study, options)
    exhibits = _build(Path(options.out), command_of(options))
    _summarise(exhibits, Path(options.out))
    took = duration(time.perf_counter() - began)
    print(f"{now} tasks done now, {before} before; this command took {took}")
    return 0


def _figure(id: str) -> Any:
    """Return a figure of the paper or a chart, by its id."""
    from gvf_lab import charts, paper

    return charts.FIGURES[id] if id in charts.FIGURES else paper.get(id)


def _refuse_other_seeds(options: argparse.Namespace) -> None:
    """Raise an error if the folder has figures of another seed, since claims compare figures."""
    from gvf_lab.report.exhibit import recorded

    for figure in (_figure(id) for id in FIGURES if (Path(options.out) / id).is_dir()):
        seed = figure.study("paper").seed if options.seed is None else options.seed
        for provenance in recorded(figure, Path(options.out) / figure.id).values():
            if provenance.seed != seed:
                raise ValueError(
                    f"{options.out} has {figure.id} with seed {provenance.seed}, not {seed}: name "
                    "another folder with --out, so that results of two seeds do not mix"
                )


def racing_options(options: argparse.Namespace) -> dict[str, str]:
    """Return the options about the racing car that were used."""
    values = {name: getattr(options, name) for name in OF_RACING}
    return {name: value for name, value in values.items() if value is not None}


def study_of(figure: Any, protocol: str, options: argparse.Namespace, scale: str = "") -> Any:
    """Return the study of a figure, with the options that apply to it."""
    plain = figure.study(protocol)
    changes: dict[str, Any] = {
        name: value for name, value in racing_options(options).items() if name in plain.settings
    }
    if options.seed is not None:
        changes["seed"] = options.seed
    runs = None if scale else options.runs
    return figure.study(protocol, scale or options.scale, runs, **changes)


def _record(figure: Any, protocol: str, study: Any, options: argparse.Namespace) -> None:
    from gvf_lab.report.build import machine, record
    from gvf_lab.report.exhibit import Provenance, commit, fingerprint, recorded
    from gvf_lab.study.run_study import spent
    from gvf_lab.study.store import Store

    store = Store(study, options.out)
    hashes = fingerprint(store)
    before = recorded(figure, Path(options.out) / figure.id).get(protocol)
    if before is not None and before.results == hashes["results"]:
        return  # nothing has changed, and the record says by which code and when it was made
    full = study == study_of(figure, protocol, options, "paper")
    racing = {name: getattr(study, name) for name in OF_RACING if name in study.settings}
    provenance = Provenance(
        scale="paper" if full else options.scale,
        runs=study.runs,
        seed=study.seed,
        command=command_of(options, figure.id, protocol),
        version=__version__,
        machine=machine(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(sum(spent(store).values()), 1),
        options=racing,
        stream=_streams(store),
        commit=commit(),
        **hashes,
    )
    record(figure, Path(options.out), protocol, provenance)


def _streams(store: Any) -> str:
    """Return the hashes of the recorded streams behind the results, in the order of the runs."""
    logged = {name: value for line in store.logged() for name, value in line.items()}
    names = (f"stream-{run}" for run in range(store.study.runs))
    return " ".join(logged[name][:12] for name in names if name in logged)


def command_of(options: argparse.Namespace, *figure_and_protocol: str) -> str:
    """Return the command line; with a figure and a protocol, the one that makes only these."""
    figures, protocol = options.figures, options.protocol
    if figure_and_protocol:
        figures, protocol = [figure_and_protocol[0]], figure_and_protocol[1]
    words = ["gvf", "reproduce", *figures, "--scale", options.scale, "--protocol", protocol]
    if options.runs is not None:
        words += ["--runs", str(options.runs)]
    if options.seed is not None:
        words += ["--seed", str(options.seed)]
    words += [
        word for name, value in racing_options(options).items() for word in (f"--{name}", value)
    ]
    if options.out != DEFAULT_OUT:
        words += ["--out", options.out]
    return shlex.join(words)


def _judge_again(out: Path) -> int:
    from gvf.common.part_names import look_in

    look_in(Path.cwd())
    if not out.is_dir() and str(out) != DEFAULT_OUT:
        raise ValueError(f"no folder {out}: `gvf reproduce --out {out}` fills one")
    out.mkdir(exist_ok=True)
    _summarise(_build(out, shlex.join(["gvf", "reproduce", "--report", str(out)])), out)
    return 0


def _build(out: Path, command: str) -> list[Exhibit]:
    from gvf_lab.report.build import build

    print("drawing and judging ...", file=sys.stderr)
    return build(out, command)


def _summarise(exhibits: Sequence[Exhibit], out: Path) -> None:
    """Print the number of figures by origin, verdicts and matching curves, and the page's path."""
    from gvf_lab.report.build import CHARTS, PAGE
    from gvf_lab.report.sentence_verdicts import counted
    from gvf_lab.report.verdict_tables import published_curves

    now = [exhibit.made for exhibit in exhibits if exhibit.made is not None]
    shipped = [exhibit.shipped for exhibit in exhibits if exhibit.shipped is not None]
    nothing = f"no figures were made in {out}: `gvf reproduce --out {out}` makes them"
    print(_count(now) if now else nothing)
    for version in now:
        failing = [verdict for verdict in counted(version) if verdict.verdict == "fails"]
        for verdict in failing[:NAMED]:
            print(f"  fails: {verdict.sentence} [{version.figure.id}, protocol {verdict.protocol}]")
        if failing[NAMED:]:
            more = len(failing) - NAMED
            print(f"  fails: {more} more of {version.figure.id}, all on the page")
    must, good, others, alike = published_curves(now)
    if must or others:
        print(
            f"published curves (protocol authors): {good} of {must} that must match do, and "
            f"{alike} of {others} others"
        )
    if shipped:
        print(f"shipped with gvf, at the paper's scale: {_count(shipped)}")
        counts = Counter(next(iter(exhibit.versions), "absent") for exhibit in exhibits)
        absent = f", {counts['absent']} not shipped yet" if counts["absent"] else ""
        print(f"the page has {counts['now']} made now and {counts['shipped']} shipped{absent}")
    for page in (PAGE, CHARTS):
        if (out / page).exists():
            print(f"report: {out / page}")


def _count(versions: Sequence[Version]) -> str:
    """Count figures and the verdicts on their claims that count."""
    from gvf_lab.report.sentence_verdicts import counted

    counts = Counter(verdict.verdict for version in versions for verdict in counted(version))
    judged = (
        f"; of {counts.total()} claims {counts['holds']} hold, {counts['fails']} fail, "
        f"{counts['undecided']} are undecided"
    )
    if counts["not judged"]:
        judged += f", {counts['not judged']} not judged for want of another figure"
    plural = "" if len(versions) == 1 else "s"
    return f"{len(versions)} figure{plural}{judged if counts else ''}"
