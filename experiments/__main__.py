"""Run the programs of a page of the documentation.

python -m experiments PAGE [PART ...]      measures, and writes docs/PAGE
python -m experiments PAGE --analyse       tables and pictures only, from the numbers there
python -m experiments PAGE --quick         seconds: fewer logs, runs and steps, into a folder
that is thrown away
"""

from __future__ import annotations

import argparse
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PAGES = sorted(folder.parent.name for folder in ROOT.glob("*/sweep.py"))


def run(
    page: str,
    folder: Path,
    parts: list[str] | None = None,
    *,
    quick: bool = False,
    measured: bool = False,
) -> None:
    """Measure a page's numbers into a folder, and make tables and pictures of them.

    Args:
        page: the name of the page.
        folder: the folder of CSV files, tables and pictures.
        parts: the parts to measure, by default all; a page's sweep says which there are.
        quick: True for a small measure, which shows that all of it works.
        measured: True if the folder has the numbers, and only tables and pictures are wanted.
    """
    if not measured:
        import_module(f"experiments.{page}.sweep").measure(folder, parts or (), quick)
    import_module(f"experiments.{page}.analysis").write(folder)


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("page", choices=PAGES, metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to measure")
    parser.add_argument("--quick", action="store_true", help="a small measure, not kept")
    parser.add_argument("--analyse", action="store_true", help="only tables and pictures")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(options.page, Path(folder), options.parts, quick=True)
            names = sorted(file.name for file in Path(folder).iterdir() if file.is_file())
            print(f"{options.page}, quick: {', '.join(names)}")
        return
    run(options.page, ROOT.parent / "docs" / options.page, options.parts, measured=options.analyse)


if __name__ == "__main__":
    main()
