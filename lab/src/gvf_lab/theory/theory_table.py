"""Findings as text: a table for the shell, and a table for Markdown pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gvf_lab.theory.finding import Finding, FindingRow

COLUMNS = ("predicted", "measured", "apart", "tolerance")


def cells(row: FindingRow) -> tuple[str, str, str, str]:
    """Format the numbers of a row: predicted, measured, apart, tolerance.

    Example:
        >>> from gvf_lab.theory import FindingRow
        >>> from gvf_lab.theory.theory_table import cells
        >>> cells(FindingRow("a mean", 0.5, 0.52, 0.03, "5 s.e.", "0.06"))
        ('0.5', '0.52', '0.02', '0.03')
    """
    sign = "" if row.relation == "=" else f"{row.relation} "
    return (
        f"{sign}{row.predicted:.5g}",
        f"{row.measured:.5g}",
        f"{abs(row.measured - row.predicted):.2g}",
        f"{row.tolerance:.2g}",
    )


def verdict(row: FindingRow) -> str:
    """Return the word for whether a row holds."""
    return "holds" if row.holds else "VIOLATED"


def remark(row: FindingRow) -> str:
    """Describe the source of a row's tolerance, and the error that it detects."""
    return f"tolerance: {row.basis}; detects: {row.detects}"


def heading() -> str:
    """Return the heading of the columns of :func:`plain`."""
    return _line("", COLUMNS, "")


def plain(finding: Finding) -> str:
    """Write a finding as lines of text, under its name and title."""
    lines = [f"{finding.result}: {finding.title}"]
    for row in finding.rows:
        lines += [_line(row.claim, cells(row), verdict(row)), f"    {remark(row)}"]
    return "\n".join(lines)


def _line(claim: str, numbers: Sequence[str], word: str) -> str:
    predicted, measured, apart, tolerance = numbers
    line = f"  {claim:<62}{predicted:>12}{measured:>11}{apart:>9}{tolerance:>10}  {word}"
    return line.rstrip()


def markdown(findings: Iterable[Finding]) -> str:
    """Write all findings as one Markdown table."""
    lines = [
        "| claim | predicted | measured | apart | tolerance | verdict | detects |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for finding in findings:
        lines.append(f"| **{finding.result}** | | | | | | |")
        for row in finding.rows:
            *numbers, tolerance = cells(row)
            within = f"{tolerance} ({row.basis})"
            texts = (row.claim, *numbers, within, verdict(row), row.detects)
            lines.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |")
    return "\n".join(lines) + "\n"
