"""Docstrings say what a thing is or does: no riddle as an opening."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = [
    path
    for folder in (
        "src",
        "lab/src",
        "lab/tools",
        "torcs/src",
        "examples",
        "experiments",
        "benchmarks",
        "tools",
    )
    for path in sorted((ROOT / folder).rglob("*.py"))
]
HEADLESS = {"How", "Of", "So", "Told", "What", "When", "Where", "Whether", "Which"}


def openings(text: str) -> Iterator[tuple[int, str]]:
    """Line and first word of every docstring, those of attributes included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said = node.value.value
            if isinstance(said, str) and said.strip():
                yield node.lineno, said.split()[0].strip(".,:")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_docstring_opens_with_what_a_thing_is_or_does(path: Path) -> None:
    found = list(openings(path.read_text("utf-8")))
    assert path.name == "__main__.py" or found
    assert [(line, word) for line, word in found if word in HEADLESS] == []


def test_a_riddle_is_seen() -> None:
    text = '"""Fine."""\nX = 1\n"""Of the window."""\ndef f():\n    """What it is."""\n'
    assert [word for _, word in openings(text)] == ["Fine", "Of", "What"]
