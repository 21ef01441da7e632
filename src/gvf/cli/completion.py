"""The command `gvf completion`: a script that lets a shell complete `gvf run qu` to `quick-check`.

The script lists all commands, options and names, read from the parser of the command line. So a
completion starts no Python, which would take half a second to import gvf. If no name fits, shells
complete the names of files, such as .toml files of studies.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from gvf.cli.options import add_command

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
  local words='' at="${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]} ${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then at=" ${COMP_WORDS[1]}"; fi
  case "$at" in
%s
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gvf gvf
"""


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


def _completion(given: argparse.Namespace) -> int:
    from gvf.cli import parser

    root = parser()
    if given.shell == "fish":
        print(*_fish(root), sep="\n")
        return 0
    cases = "\n".join(f"    {pattern}) words='{words}' ;;" for pattern, words in _cases(root))
    print((ZSH if given.shell == "zsh" else "") + BASH % cases, end="")
    return 0


def _cases(root: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield patterns of "command, word before, word", each with the words that may stand there."""
    commands = _commands(root)
    yield "' -'*", _options(root)
    yield "' '*", " ".join(commands)
    for name, (parser, _) in commands.items():
        for action in parser._actions:
            if action.option_strings and action.nargs != 0:
                yield f"'{name} {action.option_strings[-1]} '*", _words(action)
        yield f"'{name} '*' -'*", _options(parser)
        more = " question" if name == "show" else ""
        yield f"'{name} '*", f"{_names(parser)}{more}".strip()


def _fish(root: argparse.ArgumentParser) -> Iterator[str]:
    yield from _fish_options("__fish_use_subcommand", root)
    for name, (parser, help) in _commands(root).items():
        yield f"complete -c gvf -f -n __fish_use_subcommand -a {name} -d {_quoted(help)}"
        there = f"'__fish_seen_subcommand_from {name}'"
        more = " question" if name == "show" else ""
        yield f"complete -c gvf -n {there} -a '{f'{_names(parser)}{more}'.strip()}'"
        yield from _fish_options(there, parser)


def _fish_options(there: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.option_strings:
            words = _words(action)
            takes = f" -x -a '{words}'" if words else " -r" if action.nargs != 0 else ""
            option = action.option_strings[-1].removeprefix("--")
            yield f"complete -c gvf -n {there} -l {option}{takes} -d {_quoted(action.help or '')}"


def _commands(root: argparse.ArgumentParser) -> dict[str, tuple[argparse.ArgumentParser, str]]:
    """Return the parser of each command, and its line in the list of commands."""
    (action,) = (a for a in root._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {name: (parser, helps[name]) for name, parser in action.choices.items()}


def _options(parser: argparse.ArgumentParser) -> str:
    return " ".join(option for option in parser._option_string_actions if option[1] == "-")


def _names(parser: argparse.ArgumentParser) -> str:
    return " ".join(_words(action) for action in parser._actions if not action.option_strings)


def _words(action: argparse.Action) -> str:
    """Return the known values of an argument, as words."""
    from gvf import charts, paper
    from gvf.paper import studies as catalogue

    known = {"STUDY": catalogue.CATALOGUE, "FIGURE": paper.FIGURES | charts.FIGURES}
    return " ".join(action.choices or known.get(str(action.metavar), ()))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
