"""The command `gvf completion`: a script that lets a shell complete commands and names.

With it, `gvf study run qu` becomes `gvf study run quick-check`. The script lists all commands,
options and names, read from the parser of the command line, so that a completion starts no Python.
If no name fits, shells complete the names of files, such as .toml files of studies.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gvf.cli.options import add_command, names_of

COMPLETION = """\
Print a script that lets a shell complete commands, options and the names of studies and figures
when you press the Tab key. Store it where your shell looks for such scripts, and open a new shell;
do so again after an update of gvf."""

COMPLETION_EXAMPLES = """\
examples:
  mkdir -p ~/.local/share/bash-completion/completions
  gvf completion bash > ~/.local/share/bash-completion/completions/gvf
  gvf completion fish > ~/.config/fish/completions/gvf.fish
  gvf completion zsh > ~/.gvf-completion.zsh      and add to ~/.zshrc: source ~/.gvf-completion.zsh
"""

ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
"""The lines that let zsh run scripts for bash."""

BASH = """\
_gvf() {
  local words='' path="${COMP_WORDS[1]}"
  case "$path" in
    %s) if [ "$COMP_CWORD" -gt 2 ]; then path="$path ${COMP_WORDS[2]}"; fi ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then path=''; fi
  case "$path|${COMP_WORDS[COMP_CWORD-1]}|${COMP_WORDS[COMP_CWORD]}" in
%s
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gvf gvf
"""
"""The commands that have commands of their own, and cases of "command|word before|word"."""


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    completion = add_command(
        commands,
        "completion",
        _completion,
        "print a script that completes commands and names in your shell",
        COMPLETION,
        COMPLETION_EXAMPLES,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that you use")


def _completion(options: argparse.Namespace) -> int:
    from gvf.cli import parser

    commands = dict(_commands(parser()))
    if options.shell == "fish":
        print(*_fish(commands), sep="\n")
        return 0
    groups = [path for path, command in commands.items() if path and command.is_group]
    cases = "\n".join(f"    {pattern}) words='{words}' ;;" for pattern, words in _cases(commands))
    script = BASH % ("|".join(groups) or "''", cases)
    print((ZSH if options.shell == "zsh" else "") + script, end="")
    return 0


class Command(NamedTuple):
    """A command of the command line, or one of its commands, such as `gvf study run`."""

    parser: argparse.ArgumentParser
    help: str
    """Its line in the list of commands."""

    @property
    def is_group(self) -> bool:
        """True if it has commands of its own."""
        return bool(_subparsers(self.parser))

    @property
    def options(self) -> list[argparse.Action]:
        """Its options; the others are arguments."""
        return [action for action in self.parser._actions if action.option_strings]

    @property
    def names(self) -> list[str]:
        """The words that may stand as its arguments; for a group, its commands."""
        arguments = [action for action in self.parser._actions if not action.option_strings]
        return [name for argument in arguments for name in names_of(argument)]


def _commands(
    parser: argparse.ArgumentParser, path: str = "", help: str = ""
) -> Iterator[tuple[str, Command]]:
    """Iterate over all commands by their words, such as "study run"; that of `gvf` alone is ""."""
    yield path, Command(parser, help)
    for group in _subparsers(parser):
        helps = {choice.dest: choice.help or "" for choice in group._choices_actions}
        for name, below in group.choices.items():
            yield from _commands(below, f"{path} {name}".strip(), helps[name])


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[Any]]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _cases(commands: Mapping[str, Command]) -> Iterator[tuple[str, str]]:
    """Yield patterns of "command|word before|word", each with the words that may stand there."""
    for path, command in commands.items():
        for option in command.options:
            if option.nargs != 0:
                yield f"'{path}|{option.option_strings[-1]}|'*", " ".join(names_of(option))
        options = (word for option in command.options for word in option.option_strings)
        yield f"'{path}|'*'|-'*", " ".join(word for word in options if word[1] == "-")
        yield f"'{path}|'*", " ".join(command.names)


def _fish(commands: Mapping[str, Command]) -> Iterator[str]:
    for path, command in commands.items():
        where = _fish_condition(path, commands)
        if not command.is_group:
            yield f"complete -c gvf -n {where} -a '{' '.join(command.names)}'"
        for name in command.names if command.is_group else ():
            help = _quoted(commands[f"{path} {name}".strip()].help)
            yield f"complete -c gvf -f -n {where} -a {name} -d {help}"
        for option in command.options:
            words = " ".join(names_of(option))
            value = f" -x -a '{words}'" if words else " -r" if option.nargs != 0 else ""
            name = option.option_strings[-1].removeprefix("--")
            help = _quoted(option.help or "")
            yield f"complete -c gvf -n {where} -l {name}{value} -d {help}"


def _fish_condition(path: str, commands: Mapping[str, Command]) -> str:
    """Return the condition, for fish, that the words of a command stand on the line."""
    if not path:
        return "__fish_use_subcommand"
    seen = " and ".join(f"__fish_seen_subcommand_from {word};" for word in path.split())
    # `gvf show` is not `gvf study show`, and `gvf study` no longer the command of `gvf study run`.
    if commands[path].is_group:
        others = [name for name in commands[path].names]
    else:
        others = [name for name, other in commands.items() if name and other.is_group]
        others = [name for name in others if not path.startswith(f"{name} ")]
    more = f" and not __fish_seen_subcommand_from {' '.join(others)}" if others else ""
    return f"'{seen}{more}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
