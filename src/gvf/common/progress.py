"""A progress bar on standard error with labelled times, and durations in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(*, left: str = "", transient: bool = False) -> Progress:
    """Make a progress bar of rich: a title, the number done, and the times.

    Args:
        left: a format of rich for the time left, instead of rich's own estimate.
        transient: True if the bar disappears at the end.

    Example:
        >>> from gvf.common.progress import progress_bar
        >>> with progress_bar() as shown:
        ...     sum(shown.track(range(4), description="adding"))
        6
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    times = (TextColumn(left),) if left else (TimeRemainingColumn(), TextColumn("left"))
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        *times,
        console=Console(stderr=True),
        transient=transient,
    )


def duration(seconds: float) -> str:
    """Format a time in words.

    Example:
        >>> from gvf.common.progress import duration
        >>> duration(0.3), duration(75), duration(7300)
        ('1 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds == float("inf"):
        return "an unknown time"
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
