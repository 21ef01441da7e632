"""Save results of the library and the laboratory, and compare them after a change.

    python tools/same_results.py save                  write .same_results/<commit>.json.gz
    python tools/same_results.py compare [--quick]     against the baseline; status 1 if one differs

A case is data, in ``same_cases/cases.json``, and keeps its name for ever. ``same_cases/library.py``
and ``same_cases/laboratory.py`` turn a case into calls of the present API, so they change when a
name changes. ``same_cases/base`` names the commit whose results are the baseline.

Equal results are equal bytes only on one processor and with one set of versions. The baseline names
both. If they are not those of this machine, or if there is no baseline, ``compare`` first makes one
from the base commit, in a worktree with a cache of compiled kernels of its own. ``--quick`` does a
fixed part of the cases.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import os
import platform
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tools" / "same_cases"
SAVED = ROOT / ".same_results"
PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "pyarrow", "torch", "gymnasium")
TOGETHER = 24
"""The number of neighbouring cases that a process takes at a time; they share compiled kernels."""
KEPT_KERNELS = 4
"""The number of sources whose compiled kernels are kept."""
SHOWN = 40
"""The number of differing cases that are printed in full."""
LINES = 4
"""The number of outputs of a differing case that are printed."""

Case = dict[str, Any]
Results = dict[str, dict[str, Any]]


def expand(families: Mapping[str, Any], *, quick: bool = False) -> list[Case]:
    """Return the cases of families: all combinations of the tables that they name.

    A table maps words to values, or lists words that are values. ``"quick": n`` makes every n-th
    case quick, 0 makes none, and a list names the words of those that are. ``"together": n`` gives
    a process n neighbouring cases at a time; those that take long stand first, one at a time.
    """
    tables, cases = families["tables"], list[Case]()
    for family in families["families"]:
        choices = []
        for argument, table in family["each"].items():
            words = tables[table]
            pairs = words.items() if isinstance(words, dict) else ((word, word) for word in words)
            choices.append([(word, argument, value) for word, value in pairs])
        for number, combination in enumerate(product(*choices)):
            words = [word for word, _, _ in combination]
            rule = family["quick"]
            if isinstance(rule, list):
                is_quick = any(word in rule for word in words)
            else:
                is_quick = rule > 0 and number % rule == 0
            if is_quick or not quick:
                arguments = {argument: value for _, argument, value in combination}
                name = " / ".join([family["name"], *words])
                case = {"name": name, "kind": family["kind"], "arguments": arguments}
                cases.append(case | {"together": family.get("together", TOGETHER)})
    return cases


def machine() -> dict[str, str]:
    """Return what bits depend on besides the code: the processor, Python and the packages."""
    facts = {"processor": _processor(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "absent"
    return facts


def _processor() -> str:
    """Return the model of the processor, with the vector instructions that compilers choose by."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    flags = hashlib.sha256(fields.get("flags", "").encode()).hexdigest()[:8]
    names = ("vendor_id", "cpu family", "model", "model name")
    return " ".join([*(fields.get(name, "") for name in names), "flags", flags])


def commit_of(folder: Path) -> str:
    """Return the commit of a checkout, with "-dirty" if it was changed."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def _environment(shared: str) -> dict[str, str]:
    """Return the environment of the processes that do cases."""
    paths = [str(path) for path in (ROOT / "src", ROOT / "lab" / "src") if path.is_dir()]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([*paths, str(CASES)]),
        "NUMBA_CACHE_DIR": str(_cache_folder()),
        "GVF_CACHE_DIR": str(Path(shared, "cache")),
        "SAME_RESULTS_FOLDER": shared,
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }


def _cache_folder() -> Path:
    """Return the folder of kernels that were compiled from this source, and from no other."""
    digest = hashlib.sha256()
    for path in sorted((*(ROOT / "src").rglob("*.py"), *(ROOT / "lab").rglob("*.py"))):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return ROOT / ".numba_cache" / f"same-{digest.hexdigest()[:16]}"


def _batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Yield neighbouring cases of one family, at most as many as its cases may be together."""
    for _, family in groupby(cases, key=lambda case: case["kind"]):
        members = list(family)
        together = members[0].get("together", TOGETHER)
        for start in range(0, len(members), together):
            yield members[start : start + together]


def _forget_old_kernels() -> None:
    """Remove the kernels of earlier sources, except the latest few."""
    folders = sorted((ROOT / ".numba_cache").glob("same-*"), key=lambda path: path.stat().st_mtime)
    for folder in folders[:-KEPT_KERNELS]:
        shutil.rmtree(folder, ignore_errors=True)


def results_of(cases: Sequence[Case], workers: int) -> Results:
    """Do cases in processes of their own, and return their outputs by name."""
    waiting: queue.SimpleQueue[list[Case]] = queue.SimpleQueue()
    for batch in _batches(cases):
        waiting.put(batch)
    results: Results = {}
    seconds: dict[str, float] = {}
    _forget_old_kernels()
    with tempfile.TemporaryDirectory() as shared:
        threads = [
            threading.Thread(target=_serve, args=(waiting, shared, results, seconds))
            for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            threads[0].join(10.0)
            _say(f"{len(results)} of {len(cases)} cases done")
        for thread in threads:
            thread.join()
    _say("", end="\n")
    families: dict[str, float] = {}
    for name, took in seconds.items():
        family = name.partition(" / ")[0]
        families[family] = families.get(family, 0.0) + took
    print("seconds:", ", ".join(f"{family} {took:.0f}" for family, took in families.items()))
    return {case["name"]: results[case["name"]] for case in cases}


def _say(text: str, end: str = "\r") -> None:
    if sys.stderr.isatty():
        print(f"{text:<60}", end=end, file=sys.stderr, flush=True)


def _serve(waiting: Any, shared: str, results: Results, seconds: dict[str, float]) -> None:
    """Give batches of cases to a process, and start another one if it dies."""
    worker: subprocess.Popen[str] | None = None
    while True:
        try:
            batch = waiting.get_nowait()
        except queue.Empty:
            break
        for case in batch:
            worker = worker or _start(shared)
            line = _ask(worker, case)
            if line:
                name, outputs, took = json.loads(line)
                results[name], seconds[name] = outputs, took
            else:  # a crash in compiled code, or no import at all
                status = f"the process ended with status {_end(worker)}"
                results[case["name"]] = {"error": {"text": "crash", "line": status}}
                worker = None
    if worker is not None:
        _end(worker)


def _ask(worker: subprocess.Popen[str], case: Case) -> str:
    """Send a case to a process and return its line, or "" if it died."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(json.dumps(case) + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return ""
    return worker.stdout.readline()


def _end(worker: subprocess.Popen[str]) -> int:
    """Let a process end, and return its status."""
    with contextlib.suppress(BrokenPipeError):
        worker.communicate()
    return worker.wait()


def _start(shared: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CASES / "worker.py")],
        cwd=shared,
        env=_environment(shared),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def differences(before: Results, now: Results) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each case that differs, with lines that say how.

    A case of the baseline that is not done now is missing. A case that only the present code has is
    not compared.
    """
    for name, old in before.items():
        if name not in now:
            yield name, ["missing: the case is in the baseline, and was not done now"]
            continue
        lines = list(_differing_outputs(old, now[name]))
        if lines:
            yield name, lines


def _differing_outputs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*old, *new)):
        a, b = old.get(name), new.get(name)
        if a is None or b is None:
            text = f"only {'before' if b is None else 'now'}"
            yield f"{name}: {text}{_line(a or b)}"
        elif name == "error":
            if a["text"] != b["text"]:
                yield f"error: {a['line']} -> {b['line']}"
        elif "text" in a and "text" in b:
            if a["text"] != b["text"]:
                yield f"{name}: {_first_difference(a['text'], b['text'])}"
        elif a.get("sha256") != b.get("sha256"):
            shapes = f"{a.get('shape')} {a.get('numbers')} -> {b.get('shape')} {b.get('numbers')}"
            yield f"{name}: {shapes}"


def _line(output: Any) -> str:
    return f": {output['line']}" if output and "line" in output else ""


def _first_difference(old: str, new: str) -> str:
    """Return the first lines in which two texts differ."""
    lines, others = old.splitlines(), new.splitlines()
    for number, (a, b) in enumerate(zip(lines, others, strict=False), 1):
        if a != b:
            return f"line {number}: {a[:100]!r} -> {b[:100]!r}"
    return f"{len(lines)} lines -> {len(others)} lines"


def write(path: Path, results: Results) -> None:
    """Write results, with the machine and the commit, into a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "commit": commit_of(ROOT), "results": results}
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))
    unfinished.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Read a file of results."""
    return json.loads(gzip.decompress(path.read_bytes()))


def cases_here(*, quick: bool, only: str = "*") -> list[Case]:
    """Return the cases of this checkout whose names match a pattern."""
    families = json.loads((CASES / "cases.json").read_text(encoding="utf-8"))
    return [case for case in expand(families, quick=quick) if fnmatch(case["name"], only)]


def save(path: Path, *, quick: bool, workers: int) -> int:
    """Do the cases and save their results."""
    began = time.perf_counter()
    results = results_of(cases_here(quick=quick), workers)
    write(path, results)
    errors = {name: out["error"]["line"] for name, out in results.items() if "error" in out}
    kinds: dict[str, list[str]] = {}
    for name, line in errors.items():
        kinds.setdefault(line, []).append(name)
    for line, names in kinds.items():
        print(f"error in {len(names)} cases, such as {names[0]}: {line}")
    took = time.perf_counter() - began
    print(f"{path}: {len(results)} cases, {len(errors)} of them errors, {took:.0f} s")
    return 0


def baseline(*, quick: bool, workers: int) -> dict[str, Any]:
    """Return the results of the base commit on this machine; make them if there are none."""
    base = (CASES / "base").read_text(encoding="utf-8").strip()
    facts = hashlib.sha256(json.dumps(machine(), sort_keys=True).encode()).hexdigest()[:8]
    names = [f"{base[:12]}-{facts}.json.gz", *([f"{base[:12]}-{facts}-quick.json.gz"] * quick)]
    for path in (tree / SAVED.name / name for tree in _worktrees() for name in names):
        if path.exists():
            return read(path)
    chosen = SAVED / names[-1]
    print(f"no baseline of this machine: making {chosen.name} from commit {base[:12]}", flush=True)
    with tempfile.TemporaryDirectory() as parent:
        tree = Path(parent, "base")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), base], check=True)
        try:
            command = [sys.executable, str(tree / "tools" / "same_results.py"), "save"]
            more = ["--out", str(chosen), "--workers", str(workers)]
            subprocess.run([*command, *more, *(["--quick"] if quick else [])], check=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    return read(chosen)


def _worktrees() -> list[Path]:
    """Return the checkouts of this repository, this one first; one baseline serves them all."""
    command = ["git", "-C", str(ROOT), "worktree", "list", "--porcelain"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    trees = [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]
    return [ROOT, *(tree for tree in trees if tree != ROOT)]


def compare(*, quick: bool, workers: int, against: Path | None, only: str = "*") -> int:
    """Do the cases, compare them with the baseline, and return 1 if one differs."""
    began = time.perf_counter()
    before = read(against) if against else baseline(quick=quick, workers=workers)
    if before["machine"] != machine():
        changed = {k: (v, machine().get(k)) for k, v in before["machine"].items()}
        print("other machine or versions:", {k: v for k, v in changed.items() if v[0] != v[1]})
        return 2
    now = results_of(cases_here(quick=quick, only=only), workers)
    old = {name: out for name, out in before["results"].items() if fnmatch(name, only)}
    if quick:
        names = {case["name"] for case in cases_here(quick=False)}
        old = {name: outputs for name, outputs in old.items() if name in now or name not in names}
    count = 0
    for name, lines in differences(old, now):
        count += 1
        if count <= SHOWN:
            more = [f"and {len(lines) - LINES} more outputs"] if len(lines) > LINES else []
            print(name, *(f"    {line}" for line in [*lines[:LINES], *more]), sep="\n")
    if count > SHOWN:
        print(f"... and {count - SHOWN} more cases")
    new = sum(name not in before["results"] for name in now)
    took = time.perf_counter() - began
    print(
        f"{count} of {len(old)} cases differ from commit {before['commit']}; {new} cases are not "
        f"in the baseline; {took:.0f} s"
    )
    return 1 if count else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("save", "compare"))
    parser.add_argument("--quick", action="store_true", help="do a fixed part of the cases")
    parser.add_argument("--out", type=Path, help="save: the file (default: .same_results/...)")
    parser.add_argument("--against", type=Path, help="compare: a file instead of the baseline")
    parser.add_argument("--only", default="*", help="compare: cases that match, as 'horde / *'")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if options.command == "compare":
        return compare(
            quick=options.quick,
            workers=options.workers,
            against=options.against,
            only=options.only,
        )
    facts = hashlib.sha256(json.dumps(machine(), sort_keys=True).encode()).hexdigest()[:8]
    name = f"{commit_of(ROOT)}-{facts}{'-quick' if options.quick else ''}.json.gz"
    out = options.out or SAVED / name
    return save(out.resolve(), quick=options.quick, workers=options.workers)


if __name__ == "__main__":
    sys.exit(main())
