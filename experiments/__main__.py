"""Run the programs of a page of the documentation.

    python -m experiments PAGE [PART ...]      measures, and writes docs/PAGE
    python -m experiments PAGE --analyse       tables and pictures only, from the numbers there
    python -m experiments PAGE --quick         a small measure of seconds
    python -m experiments PAGE --draw          the pictures of the page's own Python blocks

Numbers, tables and pictures of a small measure go into a folder that is thrown away.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib import import_module
from pathlib import Path

from experiments.page_blocks import BLOCK, run_page

ROOT = Path(__file__).resolve().parent
DOCS = ROOT.parent / "docs"
PAGES = sorted(file.parent.name for file in ROOT.glob("*/sweep.py"))
"""The pages whose numbers a program measures."""


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


def draw(page: str, docs: Path = DOCS) -> None:
    """Run the blocks of a page in the folder of its pictures, which they write."""
    path = docs / f"{page}.md"
    if not path.exists() or not BLOCK.search(path.read_text(encoding="utf-8")):
        raise SystemExit(f"{path} has no Python blocks")
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    run_page(path, folder)


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("page", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to measure")
    parser.add_argument("--quick", action="store_true", help="a small measure, not kept")
    parser.add_argument("--draw", action="store_true", help="only the page's own pictures")
    parser.add_argument("--analyse", action="store_true", help="only tables and pictures")
    options = parser.parse_args()
    if options.draw:
        draw(options.page)
        return
    if options.page not in PAGES:
        parser.error(f"no page {options.page!r}: there are {', '.join(PAGES)}")
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(options.page, Path(folder), options.parts, quick=True)
            names = sorted(file.name for file in Path(folder).iterdir() if file.is_file())
            print(f"{options.page}, quick: {', '.join(names)}")
        return
    run(options.page, DOCS / options.page, options.parts, measured=options.analyse)


if __name__ == "__main__":
    main()
