"""The parser class of the command line, and helpers that add commands and shared options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gvf.common.part_names import nearest

if TYPE_CHECKING:
    from gvf.jobs import Place


class Parser(argparse.ArgumentParser):
    """A parser whose error for a mistyped command, option or value suggests the nearest one.

    Attributes:
        answers: what to tell whoever uses a word that is no command here, by word.

    Example:
        >>> from gvf.cli.options import Parser
        >>> parser = Parser(prog="gvf")
        >>> _ = parser.add_argument("--scale", choices=("quick", "paper"))
        >>> parser.parse_args(["--scale", "quik"])  # doctest: +SKIP
        usage: gvf [-h] [--scale {quick,paper}]
        gvf: error: unknown --scale: 'quik'; did you mean 'quick'? Known are 'quick', 'paper'
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.answers: Mapping[str, str] = {}

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            commands = isinstance(action, argparse._SubParsersAction)
            if commands and value in self.answers:
                raise ValueError(self.answers[value])
            kind = "command" if commands else (action.option_strings or [action.dest])[0]
            hint = nearest(value, action.choices, self._more if commands else "")
            self.error(f"unknown {kind}: {value!r}; {hint}")

    def refuse(self, rest: list[str]) -> None:
        """End with an error about the unknown arguments."""
        word = next((word for word in rest if word.startswith("-")), "")
        if not word:
            self.error(f"too many arguments: {' '.join(rest)}")
        option = word.partition("=")[0]
        hint = nearest(option, self._option_string_actions, self._more)
        self.error(f"unknown option: {option!r}; {hint}")

    @property
    def _more(self) -> str:
        return f"`{self.prog} --help` shows all"


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    help: str,
    description: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command to a parser's subparsers; `run` is called with the parsed arguments."""
    added = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
    )
    added.set_defaults(command=run, parser=added)
    return added


def add_commands(commands: Any, name: str, help: str, description: str, epilog: str = "") -> Any:
    """Add a command that has commands of its own, as in `gvf study run`; return its subparsers."""
    group = add_command(commands, name, lambda _: 0, help, description, epilog)
    group.set_defaults(command=lambda _: group.print_help() or 0)
    return group.add_subparsers(title="commands", metavar="COMMAND")


def complete_with(argument: argparse.Action, names: Callable[[], Iterable[str]]) -> None:
    """Let shells complete an argument with names, which are asked for when a shell does.

    Example:
        >>> from gvf.cli.options import Parser, complete_with
        >>> study = Parser(prog="gvf").add_argument("study")
        >>> complete_with(study, lambda: ["quick-check"])
    """
    argument.completer = lambda **_: names()  # pyright: ignore[reportAttributeAccessIssue]


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose where tasks run."""
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="how many tasks run at once (default: one for each core)",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="local: threads on this machine (default); ray: a Ray cluster, which needs gvf[ray]",
    )
    parser.add_argument(
        "--address",
        metavar="A",
        help="the address of a Ray cluster, with --engine ray (default: start one on this machine)",
    )


def place_of_options(options: argparse.Namespace) -> Place:
    """Return the place that the options of :func:`add_engine` name."""
    from gvf.jobs import RayCluster, Threads

    if options.engine == "ray":
        return RayCluster(options.address, options.workers)
    if options.address is not None:
        raise ValueError("an address is that of a Ray cluster: choose the engine 'ray' with it")
    return Threads(options.workers)
