"""Ctrl-C: at once in the command `gvf`, and after work in progress in learners.

In the command it is one line and exit status 130 at any time, never a traceback. The command
imports NumPy, Numba and Gymnasium before :func:`gvf.cli.main` can catch an interrupt. The package
therefore imports this module first, and from then on an interrupt ends the process at once. No work
is lost, because none has begun. Other programs keep their own handling of Ctrl-C.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def leave(*_: object) -> None:
    """End the process at once.

    An exception would not do: in a callback, as imports and compilers have them, Python prints its
    traceback and then ignores it.
    """
    if os.isatty(2):
        os.write(2, b"\x1b[?25h\r")  # show the cursor, which a progress bar may have hidden
    os.write(2, b"gvf: stopped\n")
    os._exit(130)


def is_command(program: str, started: list[str]) -> bool:
    """Return True if a process is the command `gvf`: the installed script, or ``python -m gvf``.

    Args:
        program: the ``sys.argv[0]`` of the process; "-m" while Python looks for a module to run.
        started: the ``sys.orig_argv`` of the process.

    Example:
        >>> from gvf.common.interrupts import is_command
        >>> is_command("/usr/bin/gvf", []), is_command("-m", ["python", "-m", "gvf", "list"])
        (True, True)
        >>> is_command("train.py", []), is_command("-m", ["python", "-m", "robot.train"])
        (False, False)
    """
    if program == "-m":
        return started[started.index("-m") + 1 :][:1] == ["gvf"] if "-m" in started else False
    return os.path.splitext(os.path.basename(program))[0] == "gvf"


# A background process whose shell set it to ignore interrupts continues to ignore them.
_is_command = is_command("".join(sys.argv[:1]), sys.orig_argv)
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)


_thread = threading.local()
"""The function of each thread that is True once its work should stop."""


@contextmanager
def interrupted_by(stop: Callable[[], bool]) -> Iterator[None]:
    """Let a function tell the work of this thread, which hears no Ctrl-C itself, that it came."""
    _thread.stop = stop
    try:
        yield
    finally:
        del _thread.stop


def _never() -> bool:
    return False


@contextmanager
def postponed_interrupt() -> Iterator[Callable[[], bool]]:
    """Postpone Ctrl-C to the end of this context; give a function that is True once it came.

    A second Ctrl-C is raised at once, since the first has no effect while a source waits for data.
    In a thread that does jobs for another (:mod:`gvf.jobs`), an interrupt of that one counts.
    """
    if threading.current_thread() is not threading.main_thread():
        stop = getattr(_thread, "stop", _never)
        yield stop
        if stop():
            raise KeyboardInterrupt
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield _never  # a background process whose shell set it to ignore interrupts
        return
    interrupts: list[int] = []

    def note(number: int, frame: object) -> None:
        if interrupts:
            raise KeyboardInterrupt
        interrupts.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(interrupts)
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt
