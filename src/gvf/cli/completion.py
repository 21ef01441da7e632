"""The command `gvf completion`: a script that lets a shell complete commands and names.

With it, `gvf study run qu` becomes `gvf study run quick-check`. The script asks `gvf` itself, which
answers from its parser before a command runs, by argcomplete. If no name fits, shells complete the
names of files, such as .toml files of studies.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from gvf.cli.options import add_command

COMPLETION = """\
Print a script that lets a shell complete commands, options and the names of studies and figures
when you press the Tab key. Store it where your shell looks for such scripts, and open a new shell.
"""

COMPLETION_EXAMPLES = """\
examples:
  mkdir -p ~/.local/share/bash-completion/completions
  gvf completion bash > ~/.local/share/bash-completion/completions/gvf
  gvf completion fish > ~/.config/fish/completions/gvf.fish
  gvf completion zsh > ~/.gvf-completion.zsh      and add to ~/.zshrc: source ~/.gvf-completion.zsh
"""

ZSH = "autoload -Uz compinit && compinit\n"
"""The line that prepares zsh for completions."""


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
    from argcomplete.shell_integration import shellcode

    script = shellcode(["gvf"], shell=options.shell)
    print((ZSH if options.shell == "zsh" else "") + script, end="")
    return 0


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Print completions and exit, if a shell has started this process for them."""
    if "_ARGCOMPLETE" in os.environ:
        from argcomplete import autocomplete

        autocomplete(parser, always_complete_options=False)
