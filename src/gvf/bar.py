"""A progress bar on standard error whose times say what they are: elapsed, and left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(*, left: str = "", transient: bool = False) -> Progress:
    """A bar of rich: a title, how many are done, and the times.

    Args:
        left: a format of rich that says how much time is left, instead of rich's own estimate.
        transient: whether it disappears when all is done.

    Example:
        >>> from gvf.bar import progress_bar
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
