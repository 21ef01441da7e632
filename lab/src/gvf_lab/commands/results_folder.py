"""The folder of results, which all commands of the laboratory share."""

from __future__ import annotations

import argparse

DEFAULT_OUT = "gvf-results"
"""The folder that is used unless --out names another."""


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the folder of results."""
    parser.add_argument(
        "--out",
        default=DEFAULT_OUT,
        metavar="DIR",
        help=f"the folder of results (default: ./{DEFAULT_OUT})",
    )
