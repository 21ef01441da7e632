"""The command `gvf study`: list, show, run, plot and clean studies."""

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

from gvf.cli import add_command, add_commands, add_engine, complete_with, place_of_options
from gvf_lab.catalogue import STUDIES
from gvf_lab.commands.results_folder import add_out

if TYPE_CHECKING:
    from gvf_lab.study.base_study import BaseStudy

RUN = """\
Run a study: one of those that `gvf study list` shows, or your own from a .toml file.

A study is made of tasks. A task is one run, with one pair of policies and one gap between updates;
all methods and step sizes learn side by side in it. Each task leaves one Parquet file, and only
tasks without a file are run. So you can stop at any time (Ctrl-C) and give the same command again
to go on, and you can add runs to a finished study. Results are the same to the last bit with every
engine and every number of workers."""

RUN_EXAMPLES = """\
examples:
  gvf study run quick-check                        a small study, which takes seconds
  gvf study run four-rooms-gap --dry-run           how many tasks there are, how long they take
  gvf study run four-rooms-gap --runs 5            do the first 5 runs ...
  gvf study run four-rooms-gap                     ... and later all the others
  gvf study run four-rooms-gap --protocol authors  with the settings of the authors' code
  gvf study run markov-step-size --engine ray --address auto

one task, or one part of it (a method with a step size), by the names that `gvf study show` prints:
  gvf study run quick-check --only quick-check/hard/hard/gap-1/run-0
  gvf study run quick-check --only quick-check/hard/hard/gap-1/run-0/IR/0.5

a study of your own:
  gvf study show quick-check > mine.toml           begin with one that exists, and edit the file
  gvf study run mine.toml                          run it
  gvf study plot mine.toml                         draw its results
  gvf study run mine.toml --set domain=CartPole-v1 --set 'methods=["IR", "my_module:SquareRoot"]'

A domain is one of ours, the id of a Gymnasium environment, or "module:attribute". A method is a
name, or a table such as {correction = "VTrace", clip = "0.5 max"}. Modules of your own are looked
for beside the .toml file and in the current folder; with Ray they are sent to the cluster.
"""

PLOT = """\
Draw the results of a study: errors against step sizes and against the number of updates, and
learning curves. Bands are one standard error over runs. Each picture is left as PNG and SVG, with
its numbers as CSV. Runs that are not finished are left out."""


STUDY = """\
A study is a grid of methods, step sizes and gaps (steps between updates), run many times. Each
figure of the paper shows the results of a study, and your own is a .toml file."""

STUDY_EXAMPLES = """\
examples:
  gvf study list                          the studies of the paper, and yours
  gvf study run quick-check               run a small one, which takes seconds
  gvf study plot quick-check              draw its results
  gvf study show quick-check > mine.toml  begin a study of your own
  gvf study run --help                    learn to stop and resume a study, and to write your own
"""


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    group = add_commands(
        commands, "study", "run studies: methods, step sizes, many runs", STUDY, STUDY_EXAMPLES
    )
    _add_list(group)
    _add_show(group)
    _add_run(group)
    _add_plot(group)
    _add_clean(group)


def _add_run(commands: Any) -> None:
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
        "storing them (`gvf study show` prints examples of such names)",
    )


def _add_plot(commands: Any) -> None:
    plot = add_command(
        commands,
        "plot",
        _plot,
        "draw the results of a study",
        PLOT,
        "examples:\n  gvf study plot mine.toml\n  gvf study plot quick-check --out elsewhere\n",
    )
    _add_study(plot)
    _add_changes(plot)
    add_out(plot)


def _add_list(commands: Any) -> None:
    listing = add_command(
        commands,
        "list",
        _list,
        "list the studies, and how much of each is done",
        "List the studies that gvf knows: the paper's, those in .toml files of this folder, and\n"
        "those that have results. The table tells how many tasks of each are done, how many rows\n"
        "a task has (pairs of a method and a step size), and what the study shows.",
        "examples:\n  gvf study list\n  gvf study list --json > studies.json\n",
    )
    listing.add_argument("--json", action="store_true", help="print JSON, for programs")
    _add_protocol(listing)
    add_out(listing)


def _add_show(commands: Any) -> None:
    show = add_command(
        commands,
        "show",
        _show,
        "print the settings of a study",
        "Print all settings of a study as TOML, in a form that `gvf study run` takes back. Lines\n"
        "above them tell how much of it is done, and give examples of the names of tasks and of\n"
        "parts.",
        "examples:\n  gvf study show quick-check\n  gvf study show quick-check > mine.toml\n",
    )
    _add_study(show)
    _add_changes(show)
    add_out(show)


def _add_clean(commands: Any) -> None:
    clean = add_command(
        commands,
        "clean",
        _clean,
        "delete stored results",
        "Delete the results of one study, or of all, with their logs. You are asked first.\n"
        "Pictures and pages stay.",
        "examples:\n  gvf study clean quick-check\n  gvf study clean --out elsewhere --yes\n",
    )
    study = clean.add_argument(
        "study", nargs="?", metavar="STUDY", help="a name or a .toml file (default: all studies)"
    )
    complete_with(study, lambda: STUDIES)
    add_out(clean)
    clean.add_argument("--yes", action="store_true", help="delete without asking")


def _add_study(parser: argparse.ArgumentParser) -> None:
    study = parser.add_argument(
        "study", metavar="STUDY", help="a name (see `gvf study list`) or a .toml file"
    )
    complete_with(study, lambda: STUDIES)
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
    word: str,
    protocol: str | None = None,
    runs: int | None = None,
    changes: Sequence[str] = (),
    out: str | Path = "",
) -> BaseStudy:
    """Find a study by a known name, a TOML file, or the name of one with results in a folder.

    Example:
        >>> from gvf_lab.commands.study_commands import find
        >>> find("quick-check", runs=2, changes=["seed=3"]).seed
        3
    """
    from gvf.common.part_names import look_in, nearest
    from gvf_lab import catalogue
    from gvf_lab.study import load
    from gvf_lab.study.store import latest

    look_in(Path.cwd())
    files = {path.stem: path for path in Path.cwd().glob("*.toml")}
    stored = latest(out) if out else {}
    if word.endswith(".toml"):
        study: BaseStudy = load(word).under(protocol)
    elif word in STUDIES:
        study = catalogue.study_of(word, protocol or "paper")
    elif word in files:
        study = load(files[word]).under(protocol)
    elif word in stored:
        study = load(stored[word]).with_(name=word).under(protocol)
    else:
        own_studies = [name for name, path in files.items() if _is_study(path)]
        names = dict.fromkeys([*own_studies, *STUDIES, *stored])
        hint = nearest(word, names, "`gvf study list` shows all")
        raise ValueError(f"unknown study: {word!r}; {hint}")
    if changes:
        study = study.with_(**_changes(changes))
    if runs is not None:
        if runs < 1:
            raise ValueError(f"--runs must be at least 1, got {runs}")
        study = study.with_(runs=runs)
    return study


def _changes(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse the settings given with --set. A value that is not TOML is taken as text."""
    changes: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip().isidentifier():
            raise ValueError(f"--set takes KEY=VALUE, as in --set runs=5, got {assignment!r}")
        try:
            changes |= tomllib.loads(f"{key} = {value}")
        except tomllib.TOMLDecodeError:
            if set(value) & set("[]{}\"'"):
                raise ValueError(f"--set {assignment}: {value!r} is not TOML") from None
            changes[key.strip()] = value
    return changes


def _run(options: argparse.Namespace) -> int:
    from gvf_lab.report.study_pages import edges, study_versions
    from gvf_lab.study.run_study import run

    study = find(options.study, options.protocol, options.runs, options.set, options.out)
    if options.dry_run:
        return _dry_run(study, options)
    chosen = None
    if options.only is not None:
        chosen = [task for task in study.tasks() if task.name == options.only]
        if not chosen:
            return _run_cell(study, options)
    done = run(
        study,
        options.out,
        workers=place_of_options(options),
        tasks=chosen,
    )
    whole = chosen is None and "sensitivity" in study.pictures
    _print_notes([*done.unfit, *(edges(study_versions(study, options.out)) if whole else ())])
    print(f"{options.only or study.name}: {done.text}; results in {done.folder}")
    return 0


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"gvf: note: {note}", file=sys.stderr)


def _plot(options: argparse.Namespace) -> int:
    from gvf_lab.report.study_pages import edges, finished, study_versions, write_pictures

    study = find(options.study, options.protocol, None, options.set, options.out)
    done = finished(study, options.out)
    if done.runs < study.runs:
        print(f"{study.name}: {done.runs} of {study.runs} runs are finished", file=sys.stderr)
    versions = study_versions(done, options.out)
    for version in versions:
        for path in write_pictures(version, options.out):
            print(path)
    _print_notes(edges(versions))
    return 0


def _run_cell(study: BaseStudy, options: argparse.Namespace) -> int:
    part = study.part(options.only)
    if options.engine != "local" or options.address or options.workers:
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
            text = " ".join(map(str, value)) if getattr(value, "ndim", 0) else str(value)
            print(f"{name}: {text} ({meaning})")
        return 0
    print(*part.study.keys, *(f"{name} ({why})" for name, why in part.study.measures.items()))
    for row, choice in enumerate(choices):
        print(choice, *(measured[name][row] for name in part.study.measures))
    return 0


def _dry_run(study: BaseStudy, options: argparse.Namespace) -> int:
    from collections import Counter

    from gvf.common.progress import duration
    from gvf.jobs import processors
    from gvf_lab.study.run_study import costs, gap_of
    from gvf_lab.study.store import Store

    study.check()
    store = Store(study, options.out)
    missing = [task for task in study.tasks() if not store.path(task).exists()]
    tasks = sum(1 for _ in study.tasks())
    done = tasks - len(missing)
    print(f"{study.name}: {tasks} tasks of {study.count()} rows, {done} done already")
    if missing:
        known, logged = costs(store)
        workers = min(options.workers or processors(), len(missing))
        left = known.total(Counter(map(gap_of, missing))) / workers
        source = "those done before" if logged else "a short probe"
        print(f"to do: {len(missing)}, about {duration(left)} with {workers} at once (by {source})")
    print(f"results: {store.folder}")
    return 0


def _known(options: argparse.Namespace) -> Iterator[tuple[str, str, BaseStudy | str]]:
    """Yield each study's name, a description, and the study or the error in its file."""
    from gvf.common.part_names import look_in
    from gvf_lab import catalogue
    from gvf_lab.study import load
    from gvf_lab.study.store import latest

    for name in STUDIES:
        entry = catalogue.named_study(name)
        yield name, entry.shows, entry.make(options.protocol or "paper")
    look_in(Path.cwd())
    files = {str(path.name): path for path in sorted(Path.cwd().glob("*.toml")) if _is_study(path)}
    named = {Path(name).stem for name in files} | {*STUDIES}
    files |= {name: path for name, path in latest(options.out).items() if name not in named}
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
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "methods" in keys or "kind" in keys or {"domain", "step_sizes"} <= {*keys}


def _list(options: argparse.Namespace) -> int:
    from gvf_lab.study.store import Store

    rows = []
    for name, shows, study in _known(options):
        if isinstance(study, str):
            print(f"gvf: {name} is left out: {study}", file=sys.stderr)
            continue
        rows.append(
            {
                "name": name,
                "shows": shows,
                "domain": study.domain,
                "protocol": options.protocol or "paper",
                "runs": study.runs,
                "rows": study.count(),
                "tasks": sum(1 for _ in study.tasks()),
                "done": Store(study, options.out).count(),
            }
        )
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    wide = max(len(row["name"]) for row in rows)
    print(f"{'study':{wide}}  {'done/tasks':>10}  {'rows':>5}  shows")
    for row in rows:
        done = f"{row['done']}/{row['tasks']}"
        print(f"{row['name']:{wide}}  {done:>10}  {row['rows']:>5}  {row['shows']}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from gvf_lab.study.store import Store
    from gvf_lab.study.study_file import as_toml

    study = find(options.study, options.protocol, None, options.set, options.out)
    store = Store(study, options.out)
    tasks = list(study.tasks())
    print(
        f"# {len(tasks)} tasks of {study.count()} rows, {store.count()} done; "
        f"results: {store.folder}"
    )
    print(f"# names, for `gvf study run ... --only NAME`: {tasks[0].name!r} is a task,")
    print(f"#   {next(tasks[0].parts())!r} one method and step size of it")
    print(as_toml(study))
    return 0


def _clean(options: argparse.Namespace) -> int:
    from gvf.common.part_names import nearest
    from gvf_lab.study import load
    from gvf_lab.study.store import stored

    folders_of = stored(options.out)
    if options.study is not None:
        name = load(options.study).name if options.study.endswith(".toml") else options.study
        if name not in folders_of:
            raise ValueError(
                f"no results of {name!r} in {options.out}; {nearest(name, folders_of)}"
            )
        folders_of = {name: folders_of[name]}
    if not folders_of:
        print(f"nothing to delete: no results in {options.out}")
        return 0
    for name, folders in folders_of.items():
        places = [*folders, *(Path(options.out) / place / name for place in ("logs", "damaged"))]
        files = [path for place in places for path in place.glob("**/*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{name} in {options.out}: {len(files)} files, {size:.1f} MB")
    if not options.yes and not _agrees():
        print("nothing was deleted")
        return 0
    for folders in folders_of.values():
        for folder in folders:
            shutil.rmtree(folder)
        if not any(folders[0].parent.iterdir()):
            folders[0].parent.rmdir()
    for name in folders_of:
        for place in ("logs", "damaged"):
            shutil.rmtree(Path(options.out) / place / name, ignore_errors=True)
    print("deleted")
    return 0


def _agrees() -> bool:
    print("Delete? [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print("(nobody answers; to delete without being asked, add --yes)")
    return answer.strip().lower() in ("y", "yes")
