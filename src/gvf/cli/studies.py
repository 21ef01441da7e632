"""Commands about studies: `gvf run`, `gvf list`, `gvf show`, `gvf clean`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.cli.options import add_command, add_engine, add_out

if TYPE_CHECKING:
    from gvf.study.engine import Summary
    from gvf.study.store import AnyStudy

RUN = """\
Run a study: one of those that `gvf list` shows, or your own from a .toml file.

Each task (one pair of policies, one gap, one run) leaves one Parquet file. Only missing ones are
computed, so that stopping (Ctrl-C) and going on later loses nothing, and more runs can be added to
a finished study. Results do not depend on the engine or the number of workers, to the last bit."""

RUN_EXAMPLES = """\
examples:
  gvf run quick-check
  gvf run four-rooms-gap --dry-run           how much is it?
  gvf run four-rooms-gap --runs 5            first a few runs ...
  gvf run four-rooms-gap                     ... then all the rest
  gvf run four-rooms-gap --protocol authors  as in the authors' code
  gvf run markov-step-size --engine ray --address auto
  gvf run quick-check --only quick-check/hard/hard/gap-1/run-0         one task alone
  gvf run quick-check --only quick-check/hard/hard/gap-1/run-0/IR/0.5  one cell of it, printed

  gvf show quick-check > mine.toml           begin with one that exists, change it,
  gvf run mine.toml                          and run your own
"""


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    run = add_command(commands, "run", _run, "run a study", RUN, RUN_EXAMPLES)
    _add_study(run)
    run.add_argument("--runs", type=int, metavar="N", help="how many runs (default: the study's)")
    add_engine(run)
    add_out(run)
    how_much = run.add_mutually_exclusive_group()
    how_much.add_argument(
        "--dry-run", action="store_true", help="only say how much there is to do, and how long"
    )
    how_much.add_argument(
        "--only",
        metavar="NAME",
        help="only the task of this name, or the cell, whose errors are printed and not stored "
        "(`gvf show` tells how they are called)",
    )

    listing = add_command(
        commands, "list", _list, "list the known studies", "List the known studies."
    )
    listing.add_argument("--json", action="store_true", help="for programs")
    _add_protocol(listing)
    add_out(listing)

    show = add_command(
        commands,
        "show",
        _show,
        "show a study's settings",
        "Show all settings of a study, as TOML that `gvf run` takes.",
        "example:\n  gvf show quick-check > mine.toml\n",
    )
    _add_study(show)
    add_out(show)

    clean = add_command(
        commands,
        "clean",
        _clean,
        "delete stored results",
        "Delete the stored results of a study, or of all studies, after asking.",
        "examples:\n  gvf clean quick-check\n  gvf clean --out elsewhere --yes\n",
    )
    clean.add_argument(
        "study", nargs="?", metavar="STUDY", help="its name or .toml file (default: all)"
    )
    add_out(clean)
    clean.add_argument("--yes", action="store_true", help="do not ask")


def _add_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="a name (see `gvf list`) or a .toml file")
    _add_protocol(parser)


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        choices=("paper", "authors"),
        help="the paper's text (default), or its authors' code",
    )


def find(given: str, protocol: str | None = None, runs: int | None = None) -> AnyStudy:
    """The study that a user means: a known name, or a TOML file.

    Example:
        >>> from gvf.cli.studies import find
        >>> find("quick-check", runs=2).runs
        2
    """
    from gvf.study import Study, catalogue, load

    if given.endswith(".toml"):
        study: AnyStudy = load(given)
        if protocol is not None and isinstance(study, Study):
            study = replace(study, protocol=protocol)
    elif given in catalogue.CATALOGUE:
        study = catalogue.get(given, protocol or "paper")
    else:
        names = ", ".join(catalogue.CATALOGUE)
        raise ValueError(f"unknown study: {given!r}; known are {names}, or name a .toml file")
    if runs is not None:
        if runs < 1:
            raise ValueError(f"--runs must be at least 1, got {runs}")
        study = replace(study, runs=runs)
    return study


def _run(given: argparse.Namespace) -> int:
    from gvf.study.engine import run

    study = find(given.study, given.protocol, given.runs)
    if given.dry_run:
        return _dry_run(study, given)
    chosen = None
    if given.only is not None:
        chosen = [task for task in study.tasks() if task.name == given.only]
        if not chosen:
            return _run_cell(study, given)
    done = run(
        study,
        given.out,
        workers=given.workers,
        engine=given.engine,
        address=given.address,
        tasks=chosen,
    )
    print(f"{given.only or study.name}: {_told(done)}; results in {done.folder}")
    return 0


def _told(done: Summary) -> str:
    from gvf.study.progress import duration

    if done.tasks == 1:
        return f"done in {duration(done.seconds)}" if done.done else "there already"
    if not done.done:
        return f"all {done.tasks} tasks were there already"
    told = f"{done.done} of {done.tasks} tasks in {duration(done.seconds)}"
    if done.skipped:
        told += f", {done.skipped} {'was' if done.skipped == 1 else 'were'} there already"
    return told


def _run_cell(study: AnyStudy, given: argparse.Namespace) -> int:
    from gvf.study import RacingTask, Task, run_task, run_variance
    from gvf.study.variance import NORMS

    cell = study.cell(given.only)
    if given.engine != "local" or given.address or given.workers:
        raise ValueError(
            "a single cell is computed here, on one processor: leave out --engine, --address and "
            "--workers"
        )
    if isinstance(cell, Task | RacingTask):
        if isinstance(cell, Task):
            (outcome,) = run_task(cell)
        else:
            from gvf.study.racing_task import run_racing

            (outcome,) = run_racing(cell)
        print(f"error: {outcome.error[0]} (mean over the run)")
        print(f"final: {outcome.final[0]} (the last one measured)")
        print(f"curve: {' '.join(map(str, outcome.curve[0]))} (means over equal parts of the run)")
    else:
        (variance,) = run_variance(cell).values()
        print("iteration", *(f"var({norm})" for norm in NORMS))
        for iteration, row in zip(cell.study.iterations, variance, strict=True):
            print(iteration, *row)
    return 0


def _dry_run(study: AnyStudy, given: argparse.Namespace) -> int:
    from collections import Counter

    from gvf.study.cost import costs, gap_of
    from gvf.study.local import processors
    from gvf.study.progress import duration
    from gvf.study.store import Store

    store = Store(study, given.out)
    missing = [task for task in study.tasks() if not store.path(task).exists()]
    tasks = sum(1 for _ in study.tasks())
    done = tasks - len(missing)
    print(f"{study.name}: {tasks} tasks of {lanes(study)} lanes, {done} done already")
    if missing:
        known, logged = costs(store)
        workers = min(given.workers or processors(), len(missing))
        left = known.total(Counter(map(gap_of, missing))) / workers
        source = "those done before" if logged else "a short probe"
        print(f"to do: {len(missing)}, about {duration(left)} with {workers} at once (by {source})")
    print(f"results: {store.folder}")
    return 0


def lanes(study: AnyStudy) -> int:
    """How many (method, step size) a task of a study has; of update variance, methods."""
    from gvf.study import VarianceStudy

    if isinstance(study, VarianceStudy):
        return len(study.methods)
    return sum(len(study.lanes(method)) for method in study.methods)


def _list(given: argparse.Namespace) -> int:
    from gvf.study import catalogue
    from gvf.study.store import Store

    protocol = given.protocol or "paper"
    rows = []
    for name, entry in catalogue.CATALOGUE.items():
        study = entry.make(protocol)
        rows.append(
            {
                "name": name,
                "shows": entry.shows,
                "domain": study.domain,
                "protocol": protocol,
                "runs": study.runs,
                "lanes": lanes(study),
                "tasks": sum(1 for _ in study.tasks()),
                "done": Store(study, given.out).count(),
            }
        )
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    wide = max(len(row["name"]) for row in rows)
    print(f"{'study':{wide}}  {'done/tasks':>10}  {'lanes':>5}  shows")
    for row in rows:
        done = f"{row['done']}/{row['tasks']}"
        print(f"{row['name']:{wide}}  {done:>10}  {row['lanes']:>5}  {row['shows']}")
    return 0


def _show(given: argparse.Namespace) -> int:
    from gvf.study.store import Store
    from gvf.study.toml import as_toml

    study = find(given.study, given.protocol)
    store = Store(study, given.out)
    tasks = list(study.tasks())
    print(
        f"# {len(tasks)} tasks of {lanes(study)} lanes, {store.count()} done; "
        f"results: {store.folder}"
    )
    print(f"# names, for `gvf run ... --only NAME`: {tasks[0].name!r} is a task,")
    print(f"#   {next(tasks[0].cells())!r} a cell of it")
    print(as_toml(study))
    return 0


def _clean(given: argparse.Namespace) -> int:
    from gvf.study import load
    from gvf.study.store import stored

    found = stored(given.out)
    if given.study is not None:
        name = load(given.study).name if given.study.endswith(".toml") else given.study
        if name not in found:
            there = ", ".join(found) or "none"
            raise ValueError(f"no results of {name!r} in {given.out}; there are: {there}")
        found = {name: found[name]}
    if not found:
        print(f"nothing to delete: no results in {given.out}")
        return 0
    for name, folders in found.items():
        files = [path for folder in folders for path in folder.glob("**/*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{Path(given.out) / name}: {len(files)} files, {size:.1f} MB")
    if not given.yes and not _agrees():
        print("nothing was deleted")
        return 0
    for folders in found.values():
        for folder in folders:
            shutil.rmtree(folder)
        if not any(folders[0].parent.iterdir()):
            folders[0].parent.rmdir()
    print("deleted")
    return 0


def _agrees() -> bool:
    print("Delete? [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print("(nobody answers; to delete without being asked, add --yes)")
    return answer.strip().lower() in ("y", "yes")
