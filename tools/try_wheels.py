"""Install the built distributions in a fresh environment, first the library alone, and try them.

    python tools/try_wheels.py FOLDER_OF_WHEELS FRESH_ENVIRONMENT CONSTRAINTS

What is tried is that the library works without the laboratory, is small, and has its types; and
that the laboratory adds its commands and carries its evidence.
"""

import subprocess
import sys
from pathlib import Path

LARGEST = 1_000_000
"""The largest size of the library's wheel, in bytes."""
LIBRARY = """
from importlib.resources import files
from importlib.util import find_spec
import numpy as np
import gvf
assert find_spec("gvf_lab") is None
assert (files("gvf") / "py.typed").is_file()
ring = gvf.RatioRing(capacity=10, seed=0)
ring.extend(np.array([0.0, 2.0]))
assert set(ring.sample(9)) == {1}
"""
BOTH = """
from importlib.resources import files
import gvf, gvf_lab
assert (files("gvf_lab") / "py.typed").is_file()
evidence = [path.name for path in (files("gvf_lab") / "evidence").iterdir()]
assert len(evidence) > 10, evidence
assert gvf_lab.domain.get("markov-chain").truth("hard").values.max() < 1
"""


def main(folder: Path, environment: Path, constraints: Path) -> None:
    """Try the two wheels of a folder."""
    (library,), (laboratory,) = folder.glob("gvf-*.whl"), folder.glob("gvf_lab-*.whl")
    for wheel in (library, laboratory):
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    if library.stat().st_size > LARGEST:
        sys.exit(f"the library's wheel is larger than {LARGEST:,} bytes")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python, command = environment / "bin" / "python", environment / "bin" / "gvf"

    def run(*arguments: object) -> None:
        # Not here, where `import gvf` could find the source.
        subprocess.run([*map(str, arguments)], check=True, cwd=environment)

    install = (python, "-m", "pip", "install", "--quiet", "--constraint", constraints)
    run(*install, library)
    run(python, "-c", LIBRARY)
    run(command, "--version")
    run(*install, laboratory)
    run(python, "-c", BOTH)
    run(command, "verify", "--help")


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:]))
