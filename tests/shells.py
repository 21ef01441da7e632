"""Completion in a shell, as a user has it."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path


@cache
def completion(shell: str) -> str:
    """The script that `gvf completion` prints for a shell."""
    command = [sys.executable, "-m", "gvf", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(shell: str, *words: str) -> list[str]:
    """Ask a shell what it makes of words, the last of which is not whole."""
    script, line = completion(shell), " ".join(words)
    if shell == "bash":
        script += f"COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_TYPE=9\n"
        script += '_python_argcomplete gvf; printf "%s\\n" "${COMPREPLY[@]}"\n'
    else:
        script += f"complete -C '{line}'\n"
    # The script calls the command `gvf` of this Python.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0].strip() for line in done.stdout.splitlines()]
