"""Commands about studies: `gvf run`, `gvf plot`, `gvf list`, `gvf show`, `gvf clean`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.cli.options import add_command, add_engine, add_out

if TYPE_CHECKING:
    from gvf.study.base import BaseStudy
    from gvf.study.engine import Summary

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
  gvf run mine.toml                          run your own,
  gvf plot mine.toml                         and look at it
  gvf run mine.toml --set domain=CartPole-v1 --set 'methods=["IR", "my_module:SquareRoot"]'

A domain is one of ours, the id of a Gymnasium environment, or "module:attribute"; a method is a
name, or a table such as {correction = "VTrace", clip = "0.5 max"}. Modules of your own are looked
for beside the .toml file and in the current folder; with Ray their text is sent along.
"""

PLOT = """\
Draw what a study has found: sensitivity to the step size, errors against the number of updates,
learning curves, each with bands of one standard error over runs, as PNG, SVG and CSV. Runs that are
not finished are left out."""


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    run = add_command(commands, "run", _run, "run a study", RUN, RUN_EXAMPLES)
    _add_study(run)
    _add_changes(run)
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

    plot = add_command(
        commands,
        "plot",
        _plot,
        "draw a study's results",
        PLOT,
        "examples:\n  gvf plot mine.toml\n  gvf plot quick-check --out elsewhere\n",
    )
    _add_study(plot)
    _add_changes(plot)
    add_out(plot)

    listing = add_command(
        commands,
        "list",
        _list,
        "list the known studies",
        "List the known studies: ours, those in .toml files of this folder, those with results.",
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
    _add_changes(show)
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


def _add_changes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a setting, as in TOML (may be repeated)",
    )


def find(
    given: str,
    protocol: str | None = None,
    runs: int | None = None,
    changes: Sequence[str] = (),
    out: str | Path = "",
) -> BaseStudy:
    """The study that a user means: a known name, a TOML file, or one with results in a folder.

    Example:
        >>> from gvf.cli.studies import find
        >>> find("quick-check", runs=2, changes=["seed=3"]).seed
        3
    """
    from gvf.names import look_in, nearest
    from gvf.study import catalogue

    look_in(Path.cwd())
    files, stored = {path.stem: path for path in Path.cwd().glob("*.toml")}, _stored(out)
    if given.endswith(".toml"):
        study: BaseStudy = _load(given).under(protocol)
    elif given in catalogue.CATALOGUE:
        study = catalogue.get(given, protocol or "paper")
    elif given in files:
        study = _load(files[given]).under(protocol)
    elif given in stored:
        study = _load(stored[given]).with_(name=given).under(protocol)
    else:
        names = dict.fromkeys([*catalogue.CATALOGUE, *files, *stored])
        raise ValueError(f"unknown study: {given!r}; {nearest(given, names)}, or name a .toml file")
    if changes:
        study = study.with_(**_changes(changes))
    if runs is not None:
        if runs < 1:
            raise ValueError(f"--runs must be at least 1, got {runs}")
        study = study.with_(runs=runs)
    return study


def _load(path: str | Path) -> BaseStudy:
    """A study from a TOML file, of any kind that there is."""
    import gvf.racing  # noqa: F401 (adds its kind)
    from gvf.study import load

    return load(path)


def _stored(out: str | Path) -> dict[str, Path]:
    """The latest files of studies that have results under a folder, by name."""
    from gvf.study.store import studies

    if not out:
        return {}
    return {path.parent.name: path for path in sorted(studies(out), key=_time)}


def _time(path: Path) -> float:
    return path.stat().st_mtime


def _changes(given: Sequence[str]) -> dict[str, Any]:
    """What was said with --set; a word that is no TOML is text."""
    changes: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not key.strip().isidentifier():
            raise ValueError(f"--set takes KEY=VALUE, as in --set runs=5, got {one!r}")
        try:
            changes |= tomllib.loads(f"{key} = {value}")
        except tomllib.TOMLDecodeError:
            if set(value) & set("[]{}\"'"):
                raise ValueError(f"--set {one}: {value!r} is not TOML") from None
            changes[key.strip()] = value
    return changes


def _run(given: argparse.Namespace) -> int:
    from gvf.study.engine import run

    study = find(given.study, given.protocol, given.runs, given.set, given.out)
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
    for other in done.unfit:
        print(f"gvf: note: {other}", file=sys.stderr)
    print(f"{given.only or study.name}: {_told(done)}; results in {done.folder}")
    return 0


def _plot(given: argparse.Namespace) -> int:
    from gvf.report.study import finished, plot

    study = find(given.study, given.protocol, None, given.set, given.out)
    there = finished(study, given.out)
    if there.runs < study.runs:
        print(f"{study.name}: {there.runs} of {study.runs} runs are finished", file=sys.stderr)
    for path in plot(there, given.out):
        print(path)
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


def _run_cell(study: BaseStudy, given: argparse.Namespace) -> int:
    cell = study.cell(given.only)
    if given.engine != "local" or given.address or given.workers:
        raise ValueError(
            "a single cell is computed here, on one processor: leave out --engine, --address and "
            "--workers"
        )
    cell.study.check()
    measured = cell.study.compute(cell, lambda: False)
    (method,) = cell.study.methods
    lanes = cell.study.lanes(method)
    if len(lanes) == 1:
        for name, meaning in cell.study.measures.items():
            value = measured[name][0]
            shown = " ".join(map(str, value)) if getattr(value, "ndim", 0) else str(value)
            print(f"{name}: {shown} ({meaning})")
        return 0
    print(*cell.study.keys, *(f"{name} ({why})" for name, why in cell.study.measures.items()))
    for row, lane in enumerate(lanes):
        print(lane, *(measured[name][row] for name in cell.study.measures))
    return 0


def _dry_run(study: BaseStudy, given: argparse.Namespace) -> int:
    from collections import Counter

    from gvf.study.local import processors
    from gvf.study.progress import costs, duration, gap_of
    from gvf.study.store import Store

    study.check()
    store = Store(study, given.out)
    missing = [task for task in study.tasks() if not store.path(task).exists()]
    tasks = sum(1 for _ in study.tasks())
    done = tasks - len(missing)
    print(f"{study.name}: {tasks} tasks of {study.count()} lanes, {done} done already")
    if missing:
        known, logged = costs(store)
        workers = min(given.workers or processors(), len(missing))
        left = known.total(Counter(map(gap_of, missing))) / workers
        source = "those done before" if logged else "a short probe"
        print(f"to do: {len(missing)}, about {duration(left)} with {workers} at once (by {source})")
    print(f"results: {store.folder}")
    return 0


def _known(given: argparse.Namespace) -> Iterator[tuple[str, str, BaseStudy | str]]:
    """All studies, with what each shows; or, of a file that cannot be read, why."""
    from gvf.names import look_in
    from gvf.study import catalogue

    for name, entry in catalogue.CATALOGUE.items():
        yield name, entry.shows, entry.make(given.protocol or "paper")
    look_in(Path.cwd())
    files = {str(path.name): path for path in sorted(Path.cwd().glob("*.toml")) if _is_study(path)}
    named = {Path(name).stem for name in files} | {*catalogue.CATALOGUE}
    files |= {name: path for name, path in _stored(given.out).items() if name not in named}
    for name, path in files.items():
        try:
            with redirect_stdout(sys.stderr):  # what a module prints is not part of the list
                study = _load(path)
            study = study if name.endswith(".toml") else study.with_(name=name)
            first = ", ".join(study.methods[:4]) + (", ..." if len(study.methods) > 4 else "")
            yield name, f"{first} in {study.domain}", study
        except ValueError as error:
            yield name, "", str(error)


def _is_study(path: Path) -> bool:
    """Whether a TOML file is about a study, and not about something else."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "methods" in given or "kind" in given or {"domain", "step_sizes"} <= {*given}


def _list(given: argparse.Namespace) -> int:
    from gvf.study.store import Store

    rows = []
    for name, shows, study in _known(given):
        if isinstance(study, str):
            print(f"gvf: {name} is left out: {study}", file=sys.stderr)
            continue
        rows.append(
            {
                "name": name,
                "shows": shows,
                "domain": study.domain,
                "protocol": given.protocol or "paper",
                "runs": study.runs,
                "lanes": study.count(),
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

    study = find(given.study, given.protocol, None, given.set, given.out)
    store = Store(study, given.out)
    tasks = list(study.tasks())
    print(
        f"# {len(tasks)} tasks of {study.count()} lanes, {store.count()} done; "
        f"results: {store.folder}"
    )
    print(f"# names, for `gvf run ... --only NAME`: {tasks[0].name!r} is a task,")
    print(f"#   {next(tasks[0].cells())!r} a cell of it")
    print(as_toml(study))
    return 0


def _clean(given: argparse.Namespace) -> int:
    from gvf.study.store import stored

    found = stored(given.out)
    if given.study is not None:
        name = _load(given.study).name if given.study.endswith(".toml") else given.study
        if name not in found:
            there = ", ".join(found) or "none"
            raise ValueError(f"no results of {name!r} in {given.out}; there are: {there}")
        found = {name: found[name]}
    if not found:
        print(f"nothing to delete: no results in {given.out}")
        return 0
    for name, folders in found.items():
        places = [*folders, *(Path(given.out) / place / name for place in ("logs", "damaged"))]
        files = [path for place in places for path in place.glob("**/*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{name} in {given.out}: {len(files)} files, {size:.1f} MB")
    if not given.yes and not _agrees():
        print("nothing was deleted")
        return 0
    for folders in found.values():
        for folder in folders:
            shutil.rmtree(folder)
        if not any(folders[0].parent.iterdir()):
            folders[0].parent.rmdir()
    for name in found:
        for place in ("logs", "damaged"):
            shutil.rmtree(Path(given.out) / place / name, ignore_errors=True)
    print("deleted")
    return 0


def _agrees() -> bool:
    print("Delete? [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print("(nobody answers; to delete without being asked, add --yes)")
    return answer.strip().lower() in ("y", "yes")
