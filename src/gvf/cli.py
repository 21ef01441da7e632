"""The command `gvf`: what a user types in a shell.

`parser` says what can be typed, `main` runs it. A command will be one function that adds its own
parser and names the function to run; the work itself stays in the rooms of the library, imported
only when the command runs.
"""

import argparse
from collections.abc import Sequence

from gvf import __version__

EXAMPLE = """\
import gvf
import numpy as np

ratios = np.array([0.0, 0.5, 2.0])         # rho = pi(a|s) / mu(a|s), one for each transition
ring = gvf.RatioRing(capacity=1000, seed=0)
ring.extend(ratios)
slots = ring.sample(16)                    # drawn in proportion to rho: never the first
"""

DESCRIPTION = """\
Off-policy prediction: learn what would happen under a target policy pi from the experience of a
behaviour policy mu. Importance resampling draws each mini-batch in proportion to the ratios
rho = pi / mu, and then learns from it as if it came from pi.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Example:
        >>> from gvf.cli import parser
        >>> parser().prog
        'gvf'
    """
    example = "".join(f"  {line}" if line.strip() else line for line in EXAMPLE.splitlines(True))
    root = argparse.ArgumentParser(
        prog="gvf",
        description=DESCRIPTION,
        epilog=f"From Python, the sampler alone:\n\n{example}\n"
        "For whole learners, start with the README's example or examples/quickstart.py.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"gvf {__version__}")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process if None); return the exit status.

    Example:
        >>> from gvf.cli import main
        >>> main([])  # doctest: +ELLIPSIS
        usage: gvf ...
    """
    root = parser()
    root.parse_args(arguments)
    root.print_help()
    return 0
