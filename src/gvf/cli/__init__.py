"""The command `gvf`.

:func:`main` runs a command line. Other distributions add commands by the entry-point group
``gvf.commands``, with the other helpers here.
"""

from gvf.cli.command_line import main, parser
from gvf.cli.options import (
    add_command,
    add_commands,
    add_engine,
    complete_with,
    place_of_options,
)

__all__ = [
    "add_command",
    "add_commands",
    "add_engine",
    "complete_with",
    "main",
    "parser",
    "place_of_options",
]
