"""What commands have in common: how one is added, and the options that many of them take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    help: str,
    description: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command to a parser's subparsers: `run` is called with what was typed."""
    added = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.set_defaults(command=run)
    return added


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Options that say where tasks run."""
    parser.add_argument(
        "--workers", type=int, metavar="N", help="tasks at once (default: all cores)"
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="threads on this machine (default), or a Ray cluster",
    )
    parser.add_argument(
        "--address", metavar="A", help="of the Ray cluster (default: start one here)"
    )


def add_out(parser: argparse.ArgumentParser) -> None:
    """The folder of results."""
    parser.add_argument(
        "--out",
        default="gvf-results",
        metavar="DIR",
        help="the folder of results (default: ./gvf-results)",
    )
