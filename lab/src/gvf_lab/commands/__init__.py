"""The laboratory's commands: `gvf reproduce`, `gvf verify` and `gvf study`."""

from typing import Any

from gvf_lab.commands import reproduce, study_commands, verify


def add(commands: Any) -> None:
    """Add all commands to a parser's subparsers; `gvf` calls this, by the group gvf.commands."""
    reproduce.add(commands)
    verify.add(commands)
    study_commands.add(commands)
