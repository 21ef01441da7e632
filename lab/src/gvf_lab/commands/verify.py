"""The command `gvf verify`: the paper's theorems, checked by experiment."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.cli import add_command

if TYPE_CHECKING:
    from gvf_lab.theory import Finding

VERIFY = """\
Check every formal result of the paper, and our own about emphatic resampling, by an experiment with
this library's draws and weights. It takes seconds.

Each row of the table is one claim: what the theory predicts, what was measured, how far apart the
two are, and how far they may be. Where nothing is sampled ("exact"), they may differ by 1e-12 of
the numbers compared; otherwise by 5 standard errors of the simulation. A row that compares many
numbers shows the worst. Each row also tells the smallest error that it would notice.

The exit status is 0 if all rows hold, and 1 if one is violated."""

VERIFY_EXAMPLES = """\
examples:
  gvf verify
  gvf verify --seed 1              other simulations; the verdict should be the same
  gvf verify --plots theory        pictures and theory/table.markdown
"""


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    verify = add_command(
        commands,
        "verify",
        _verify,
        "check the paper's theorems by experiment",
        VERIFY,
        VERIFY_EXAMPLES,
    )
    verify.add_argument(
        "--plots", type=Path, metavar="DIR", help="draw each result too, into this folder"
    )
    verify.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the seed of the simulations (default: 0)"
    )


def _verify(options: argparse.Namespace) -> int:
    """Run `gvf verify`; return 0 if all rows hold, and 1 if one is violated."""
    if options.seed < 0:
        raise ValueError(f"--seed must be at least 0, got {options.seed}")
    if options.plots is not None:
        options.plots.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    findings = list(_run(options.seed))
    if options.plots is not None:
        _draw(findings, options.plots)
    rows = [row for finding in findings for row in finding.rows]
    violated = sum(not row.holds for row in rows)
    verdict = (
        f"{violated} of {len(rows)} rows VIOLATED" if violated else f"all {len(rows)} rows hold"
    )
    print(f"{verdict}, seed {options.seed}, {time.perf_counter() - began:.0f} s")
    if options.plots is not None:
        print(f"pictures and table.markdown: {options.plots}")
    return 1 if violated else 0


def _run(seed: int) -> Iterator[Finding]:
    """Run the experiments, and print each finding as soon as it is known."""
    from gvf_lab.theory import verify
    from gvf_lab.theory.finding import NUMBERS, text_line

    if sys.stdout.isatty():
        yield from _run_on_terminal(verify(seed=seed))
        return
    print(text_line("", NUMBERS, ""))
    for finding in verify(seed=seed):
        print(f"\n{finding.text}", flush=True)
        yield finding
    print()


def _run_on_terminal(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Print each finding as a table in colour, under a spinner."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gvf_lab.theory.finding import NUMBERS

    console = Console()
    with console.status("running the theory ..."):
        for finding in findings:
            table_of_finding = Table(box=None, pad_edge=False, width=min(console.width, 120))
            table_of_finding.add_column(
                Text(f"{finding.result}: {finding.title}", style="bold"), ratio=1
            )
            for name, width in zip(NUMBERS, (12, 10, 8, 9), strict=True):
                table_of_finding.add_column(Text(name, style="dim"), justify="right", width=width)
            table_of_finding.add_column(width=8)
            for row in finding.rows:
                claim = Text.assemble(row.claim, (f"\n{row.remark}", "dim"))
                word = Text(row.verdict, style="green" if row.holds else "bold red")
                table_of_finding.add_row(claim, *map(Text, row.cells), word)
            console.print(table_of_finding)
            console.print()
            yield finding


def _draw(findings: list[Finding], folder: Path) -> None:
    """Write all pictures, and the table in Markdown."""
    from gvf_lab.theory.finding import markdown_table

    for finding in findings:
        finding.save_picture(folder)
    (folder / "table.markdown").write_text(markdown_table(findings), encoding="utf-8")
