"""Completion in a shell, as a user has it."""

import subprocess
import sys
import time
from functools import cache


@cache
def completion(shell: str) -> str:
    """The script that `gvf completion` prints for a shell."""
    command = [sys.executable, "-m", "gvf", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(shell: str, *words: str) -> list[str]:
    """Ask a shell what it makes of words, the last of which is not whole."""
    script = completion(shell)
    if shell == "bash":
        array = " ".join(f"'{word}'" for word in words)
        script += f"COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _gvf\n"
        script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    else:
        script += f"complete -C '{' '.join(words)}'\n"
    began = time.perf_counter()
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.perf_counter() - began < 5  # no Python is started, even on a busy machine
    return [line.split("\t")[0] for line in done.stdout.splitlines()]
