"""Ctrl-C in the command `gvf`: one line and exit status 130 at every moment, never a traceback.

The command imports NumPy, Numba and Gymnasium before `gvf.cli.main` can catch anything. The package
imports this module first, and from then on an interrupt ends the process at once: nothing is lost,
since nothing was begun. In other programs Ctrl-C stays what it is.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def _is_command(program: str) -> bool:
    """Whether a process with this ``sys.argv[0]`` is the command `gvf`.

    It is the installed script, or "-m" while Python looks for the module of ``python -m gvf``.
    """
    return program == "-m" or os.path.splitext(os.path.basename(program))[0] == "gvf"


def _leave(*_: object) -> None:
    # Not an exception: within an import it can be swallowed, or printed and ignored.
    os.write(2, b"gvf: stopped\n")
    os._exit(130)


@contextmanager
def heard() -> Iterator[None]:
    """Make Ctrl-C a KeyboardInterrupt again inside this block, for who catches it."""
    guarded = signal.getsignal(signal.SIGINT) is _leave
    if guarded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if guarded:
            signal.signal(signal.SIGINT, _leave)


# Where a shell has told a process in the background to ignore interrupts, it goes on ignoring them.
if _is_command("".join(sys.argv[:1])) and (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _leave)
