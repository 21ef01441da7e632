"""Progress of long work on standard error: a bar in a terminal, otherwise a line now and then.

A thread writes the lines, so they also come during a single step of many minutes. They come every
:data:`EVERY` seconds, and later whenever a tenth of the time so far has passed, so that the lines
of a week fit on a screen or two.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

EVERY = 10.0
"""Seconds before the first line, and between lines at first."""
SPARSE = 0.1
"""The share of the time so far that passes between later lines."""


class Progress:
    """A count of the steps of some work, and the time that it takes; call it to count steps.

    Attributes:
        title: the name of the work.
        total: the number of its steps, or None if that is not known.
        done: the number of steps done so far.

    Args:
        before: the number of steps that were done before it began.
        left: a function that estimates the seconds left, for steps that take different times.
    """

    def __init__(
        self,
        title: str,
        total: int | None,
        before: int = 0,
        left: Callable[[], float] | None = None,
    ) -> None:
        self.title, self.total, self.done = title, total, before
        self._before, self._left, self._began = before, left, time.monotonic()
        self.changed: Callable[[], object] = lambda: None
        """A function that is called after every count."""

    def __call__(self, count: int = 1) -> None:
        """Count steps that were done."""
        self.done += count
        self.changed()

    @property
    def seconds(self) -> float:
        """The seconds since it began."""
        return time.monotonic() - self._began

    @property
    def times(self) -> str:
        """The time so far, and an estimate of the time left, in words."""
        now, left = self.done - self._before, float("inf")
        if self._left is not None:
            left = self._left()
        elif self.total is not None and now:
            left = self.seconds * (self.total - self.done) / now
        known = left < float("inf") and self.done != self.total
        return f"{duration(self.seconds)} so far" + f", about {duration(left)} left" * known

    @property
    def line(self) -> str:
        """A line for a file or a pipe."""
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.title}: {self.done:,}{of}, {self.times}"


@contextmanager
def progress_of(
    title: str,
    total: int | None,
    before: int = 0,
    *,
    show: bool | None = None,
    left: Callable[[], float] | None = None,
    transient: bool = False,
) -> Iterator[Progress]:
    """Show the progress of the work in a block; it gives a function that counts what was done.

    Args:
        title: the name of the work.
        total: the number of its steps, or None if that is not known.
        before: the number of steps that are done already.
        show: False to show nothing. By default work that is done before the first line shows
            nothing in a file or a pipe; True adds a line at the end.
        left: a function that estimates the seconds left, for steps that take different times.
        transient: True if the bar disappears at the end.

    Example:
        >>> from gvf.common.progress import progress_of
        >>> with progress_of("adding", 3) as advance:
        ...     for number in range(3):
        ...         advance()
        >>> advance.line
        'adding: 3 of 3, 1 s so far'
    """
    progress = Progress(title, total, before, left)
    if show is False:
        yield progress
    elif sys.stderr.isatty():
        with _bar(progress, transient):
            yield progress
    else:
        with _lines(progress):
            yield progress
        if show:
            _write(progress)


@contextmanager
def _lines(progress: Progress) -> Iterator[None]:
    over = Event()

    def write() -> None:
        while not over.wait(max(EVERY, SPARSE * progress.seconds)):
            _write(progress)

    thread = Thread(target=write, daemon=True, name="gvf-progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _write(progress: Progress) -> None:
    print(progress.line, file=sys.stderr, flush=True)


@contextmanager
def _bar(progress: Progress, transient: bool) -> Iterator[None]:
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Times(rich.ProgressColumn):
        max_refresh = 0.5

        def render(self, task: rich.Task) -> Text:
            return Text(progress.times, style="dim")

    columns = (rich.BarColumn(), rich.MofNCompleteColumn(), Times())
    title = rich.TextColumn("{task.description}")
    with rich.Progress(title, *columns, console=Console(stderr=True), transient=transient) as bar:
        row = bar.add_task(progress.title, total=progress.total, completed=progress.done)
        progress.changed = lambda: bar.update(row, total=progress.total, completed=progress.done)
        yield


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
