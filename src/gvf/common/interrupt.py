"""Ctrl-C in the command `gvf`: one line and exit status 130 at every moment, never a traceback.

The command imports NumPy, Numba and Gymnasium before :func:`gvf.cli.main` can catch anything. The
package imports this module first of all, and from then on an interrupt ends the process at once.
Nothing is lost, since nothing was begun. In other programs Ctrl-C stays what it is.
"""

import os
import signal
import sys


def leave(*_: object) -> None:
    """End the process at once.

    This is no exception, since one that comes up in a callback is printed, with its traceback, and
    lost; imports and compilers have such callbacks.
    """
    if os.isatty(2):
        os.write(2, b"\x1b[?25h\r")  # show the cursor, which a progress bar has hidden
    os.write(2, b"gvf: stopped\n")
    os._exit(130)


def is_command(program: str, started: list[str]) -> bool:
    """Return True if a process is the command `gvf`: the installed script, or ``python -m gvf``.

    Args:
        program: the process's ``sys.argv[0]``, "-m" while Python looks for a module to run.
        started: its ``sys.orig_argv``.

    Example:
        >>> from gvf.common.interrupt import is_command
        >>> is_command("/usr/bin/gvf", []), is_command("-m", ["python", "-m", "gvf", "list"])
        (True, True)
        >>> is_command("train.py", []), is_command("-m", ["python", "-m", "robot.train"])
        (False, False)
    """
    if program == "-m":
        return started[started.index("-m") + 1 :][:1] == ["gvf"] if "-m" in started else False
    return os.path.splitext(os.path.basename(program))[0] == "gvf"


# A process that its shell has told to ignore interrupts, in the background, goes on ignoring them.
_is_command = is_command("".join(sys.argv[:1]), sys.orig_argv)
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)
