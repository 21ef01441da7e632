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

RUN = """\
Run a study: one of those that `gvf list` shows, or your own from a .toml file.

A study is made of tasks. A task is one run, with one pair of policies and one gap between updates;
all methods and step sizes learn side by side in it. Each task leaves one Parquet file, and only
tasks without a file are run. So you can stop at any time (Ctrl-C) and give the same command again
to go on, and you can add runs to a finished study. Results are the same to the last bit with every
engine and every number of workers."""

RUN_EXAMPLES = """\
examples:
  gvf run quick-check                        a small study, which takes seconds
  gvf run four-rooms-gap --dry-run           tell how many tasks there are and how long they take
  gvf run four-rooms-gap --runs 5            do the first 5 runs ...
  gvf run four-rooms-gap                     ... and later all the others
  gvf run four-rooms-gap --protocol authors  with the settings of the authors' code
  gvf run markov-step-size --engine ray --address auto

one task, or one part of it (a method with a step size), by the names that `gvf show` prints:
  gvf run quick-check --only quick-check/hard/hard/gap-1/run-0
  gvf run quick-check --only quick-check/hard/hard/gap-1/run-0/IR/0.5

a study of your own:
  gvf show quick-check > mine.toml           begin with one that exists, and edit the file
  gvf run mine.toml                          run it
  gvf plot mine.toml                         draw its results
  gvf run mine.toml --set domain=CartPole-v1 --set 'methods=["IR", "my_module:SquareRoot"]'

A domain is one of ours, the id of a Gymnasium environment, or "module:attribute". A method is a
name, or a table such as {correction = "VTrace", clip = "0.5 max"}. Modules of your own are looked
for beside the .toml file and in the current folder; with Ray they are sent to the cluster.
"""

PLOT = """\
Draw the results of a study: errors against step sizes and against the number of updates, and
learning curves. Bands are one standard error over runs. Each picture is left as PNG and SVG, with
its numbers as CSV. Runs that are not finished are left out."""


def add(commands: Any) -> None:
    """Add the commands to a parser's subparsers."""
    run = add_command(commands, "run", _run, "run a study", RUN, RUN_EXAMPLES)
    _add_study(run)
    _add_changes(run)
    run.add_argument(
        "--runs", type=int, metavar="N", help="the number of runs (default: the study's own)"
    )
    add_engine(run)
    add_out(run)
    how_much = run.add_mutually_exclusive_group()
    how_much.add_argument(
        "--dry-run",
        action="store_true",
        help="run nothing; tell how many tasks are left and how long they will take",
    )
    how_much.add_argument(
        "--only",
        metavar="NAME",
        help="run only the task of this name; or only this part, and print its errors instead of "
        "storing them (`gvf show` prints examples of such names)",
    )

    plot = add_command(
        commands,
        "plot",
        _plot,
        "draw the results of a study",
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
        "list the studies, and how much of each is done",
        "List the studies that gvf knows: the paper's, those in .toml files of this folder, and\n"
        "those that have results. The table tells how many tasks of each are done, how many rows\n"
        "a task has (pairs of a method and a step size), and what the study shows.",
        "examples:\n  gvf list\n  gvf list --json > studies.json\n",
    )
    listing.add_argument("--json", action="store_true", help="print JSON, for programs")
    _add_protocol(listing)
    add_out(listing)

    show = add_command(
        commands,
        "show",
        _show,
        "print the settings of a study, or a question about a log",
        "Print all settings of a study as TOML, in a form that `gvf run` takes back. Lines above\n"
        "them tell how much of it is done, and give examples of the names of tasks and of parts.\n"
        "`gvf show question` prints a commented question about a log, for `gvf learn`.",
        "examples:\n  gvf show quick-check\n  gvf show quick-check > mine.toml\n"
        "  gvf show question > question.toml\n",
    )
    _add_study(show)
    _add_changes(show)
    add_out(show)

    clean = add_command(
        commands,
        "clean",
        _clean,
        "delete stored results",
        "Delete the results of one study, or of all, with their logs. You are asked first.\n"
        "Pictures and pages stay.",
        "examples:\n  gvf clean quick-check\n  gvf clean --out elsewhere --yes\n",
    )
    clean.add_argument(
        "study", nargs="?", metavar="STUDY", help="a name or a .toml file (default: all studies)"
    )
    add_out(clean)
    clean.add_argument("--yes", action="store_true", help="delete without asking")


def _add_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="a name (see `gvf list`) or a .toml file")
    _add_protocol(parser)


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        choices=("paper", "authors"),
        help="paper: the settings in the paper's text (default); authors: those of their code",
    )


def _add_changes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, written as in TOML, as in --set runs=5 (may be repeated)",
    )


def find(
    given: str,
    protocol: str | None = None,
    runs: int | None = None,
    changes: Sequence[str] = (),
    out: str | Path = "",
) -> BaseStudy:
    """Find a study by a known name, a TOML file, or the name of one with results in a folder.

    Example:
        >>> from gvf.cli.studies import find
        >>> find("quick-check", runs=2, changes=["seed=3"]).seed
        3
    """
    from gvf.common.names import look_in, nearest
    from gvf.paper import studies as catalogue
    from gvf.study import load
    from gvf.study.store import latest

    look_in(Path.cwd())
    files = {path.stem: path for path in Path.cwd().glob("*.toml")}
    stored = latest(out) if out else {}
    if given.endswith(".toml"):
        study: BaseStudy = load(given).under(protocol)
    elif given in catalogue.CATALOGUE:
        study = catalogue.get(given, protocol or "paper")
    elif given in files:
        study = load(files[given]).under(protocol)
    elif given in stored:
        study = load(stored[given]).with_(name=given).under(protocol)
    else:
        own = [name for name, path in files.items() if _is_study(path)]
        names = dict.fromkeys([*own, *catalogue.CATALOGUE, *stored])
        hint = nearest(given, names, "`gvf list` shows all")
        raise ValueError(f"unknown study: {given!r}; {hint}")
    if changes:
        study = study.with_(**_changes(changes))
    if runs is not None:
        if runs < 1:
            raise ValueError(f"--runs must be at least 1, got {runs}")
        study = study.with_(runs=runs)
    return study


def _changes(given: Sequence[str]) -> dict[str, Any]:
    """Parse the settings given with --set. A value that is not TOML is taken as text."""
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
    from gvf.report.study import edges, show
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
    whole = chosen is None and "sensitivity" in study.pictures
    _print_notes([*done.unfit, *(edges(show(study, given.out)) if whole else ())])
    print(f"{given.only or study.name}: {done.text}; results in {done.folder}")
    return 0


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"gvf: note: {note}", file=sys.stderr)


def _plot(given: argparse.Namespace) -> int:
    from gvf.report.study import edges, finished, leave, show

    study = find(given.study, given.protocol, None, given.set, given.out)
    there = finished(study, given.out)
    if there.runs < study.runs:
        print(f"{study.name}: {there.runs} of {study.runs} runs are finished", file=sys.stderr)
    shown = show(there, given.out)
    for one in shown:
        for path in leave(one, given.out):
            print(path)
    _print_notes(edges(shown))
    return 0


def _run_cell(study: BaseStudy, given: argparse.Namespace) -> int:
    part = study.part(given.only)
    if given.engine != "local" or given.address or given.workers:
        raise ValueError(
            "a single one is computed here, on one processor: leave out --engine, --address and "
            "--workers"
        )
    part.study.check()
    measured = part.study.compute(part, lambda: False)
    part.study.finished(part)
    (method,) = part.study.methods
    choices = part.study.choices(method)
    if len(choices) == 1:
        for name, meaning in part.study.measures.items():
            value = measured[name][0]
            shown = " ".join(map(str, value)) if getattr(value, "ndim", 0) else str(value)
            print(f"{name}: {shown} ({meaning})")
        return 0
    print(*part.study.keys, *(f"{name} ({why})" for name, why in part.study.measures.items()))
    for row, choice in enumerate(choices):
        print(choice, *(measured[name][row] for name in part.study.measures))
    return 0


def _dry_run(study: BaseStudy, given: argparse.Namespace) -> int:
    from collections import Counter

    from gvf.common.progress import duration
    from gvf.study.local import processors
    from gvf.study.progress import costs, gap_of
    from gvf.study.store import Store

    study.check()
    store = Store(study, given.out)
    missing = [task for task in study.tasks() if not store.path(task).exists()]
    tasks = sum(1 for _ in study.tasks())
    done = tasks - len(missing)
    print(f"{study.name}: {tasks} tasks of {study.count()} rows, {done} done already")
    if missing:
        known, logged = costs(store)
        workers = min(given.workers or processors(), len(missing))
        left = known.total(Counter(map(gap_of, missing))) / workers
        source = "those done before" if logged else "a short probe"
        print(f"to do: {len(missing)}, about {duration(left)} with {workers} at once (by {source})")
    print(f"results: {store.folder}")
    return 0


def _known(given: argparse.Namespace) -> Iterator[tuple[str, str, BaseStudy | str]]:
    """Yield each study's name, a description, and the study or the error in its file."""
    from gvf.common.names import look_in
    from gvf.paper import studies as catalogue
    from gvf.study import load
    from gvf.study.store import latest

    for name, entry in catalogue.CATALOGUE.items():
        yield name, entry.shows, entry.make(given.protocol or "paper")
    look_in(Path.cwd())
    files = {str(path.name): path for path in sorted(Path.cwd().glob("*.toml")) if _is_study(path)}
    named = {Path(name).stem for name in files} | {*catalogue.CATALOGUE}
    files |= {name: path for name, path in latest(given.out).items() if name not in named}
    for name, path in files.items():
        try:
            with redirect_stdout(sys.stderr):  # a user's module may print, and the list may be JSON
                study = load(path)
            study = study if name.endswith(".toml") else study.with_(name=name)
            first = ", ".join(study.methods[:4]) + (", ..." if len(study.methods) > 4 else "")
            yield name, f"{first} in {study.domain}", study
        except ValueError as error:
            yield name, "", str(error)


def _is_study(path: Path) -> bool:
    """Return True if a TOML file is about a study."""
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
                "rows": study.count(),
                "tasks": sum(1 for _ in study.tasks()),
                "done": Store(study, given.out).count(),
            }
        )
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    wide = max(len(row["name"]) for row in rows)
    print(f"{'study':{wide}}  {'done/tasks':>10}  {'rows':>5}  shows")
    for row in rows:
        done = f"{row['done']}/{row['tasks']}"
        print(f"{row['name']:{wide}}  {done:>10}  {row['rows']:>5}  {row['shows']}")
    return 0


def _show(given: argparse.Namespace) -> int:
    from gvf.study.store import Store

    if given.study == "question":
        from gvf.answers.toml import example

        print(example(), end="")
        return 0
    from gvf.study.toml import as_toml

    study = find(given.study, given.protocol, None, given.set, given.out)
    store = Store(study, given.out)
    tasks = list(study.tasks())
    print(
        f"# {len(tasks)} tasks of {study.count()} rows, {store.count()} done; "
        f"results: {store.folder}"
    )
    print(f"# names, for `gvf run ... --only NAME`: {tasks[0].name!r} is a task,")
    print(f"#   {next(tasks[0].parts())!r} one method and step size of it")
    print(as_toml(study))
    return 0


def _clean(given: argparse.Namespace) -> int:
    from gvf.common.names import nearest
    from gvf.study import load
    from gvf.study.store import stored

    found = stored(given.out)
    if given.study is not None:
        name = load(given.study).name if given.study.endswith(".toml") else given.study
        if name not in found:
            raise ValueError(f"no results of {name!r} in {given.out}; {nearest(name, found)}")
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
