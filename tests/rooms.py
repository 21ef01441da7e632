"""The rooms of a house: which imports which, and what the table in CONTRIBUTING.md allows."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = {"gvf": ROOT / "src" / "gvf", "gvf_lab": ROOT / "lab" / "src" / "gvf_lab"}


@cache
def rooms(house: str) -> frozenset[str]:
    """The names of the rooms of a house."""
    return frozenset(
        path.stem
        for path in SOURCES[house].iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    ) - {"__init__", "__main__"}


def table(house: str) -> dict[str, set[str]]:
    """The rooms of a house in the order of its table, each with those that it may import."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = text.partition(f"| room of `{house}` |")[2].partition("\n\n")[0]
    lines = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", rows, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", allowed)) for room, allowed in lines}


def imported(tree: ast.AST) -> Iterator[str]:
    """The names that a module imports: on top, in a function, for types only, or by a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = re.fullmatch(r"(gvf|gvf_lab)\.(\w+)[\w.:]*", node.value)
            if words and words[2] in rooms(words[1]):
                yield node.value


def room_of(name: str) -> tuple[str, str]:
    """The house and the room of an imported name; the room is "" for a name of the house itself."""
    house, _, rest = name.partition(".")
    room = re.split(r"[.:]", rest)[0]
    return house, room if house in SOURCES and room in rooms(house) else ""


def modules(house: str) -> Iterator[tuple[str, Path]]:
    """Every module below a room, with the room's name."""
    for path in sorted(SOURCES[house].rglob("*.py")):
        room = path.relative_to(SOURCES[house]).parts[0].removesuffix(".py")
        if room in rooms(house):
            yield room, path


@cache
def imports(path: Path) -> tuple[str, ...]:
    """The names that the module at a path imports."""
    return tuple(imported(ast.parse(path.read_text("utf-8"))))


@cache
def graph(house: str) -> dict[str, set[str]]:
    """The rooms of a house that each of its rooms imports, itself left out; "gvf" for the root."""
    edges: dict[str, set[str]] = {room: set() for room in rooms(house)}
    for room, path in modules(house):
        for name in imports(path):
            home, other = room_of(name)
            if home == house:
                edges[room].add(other or home)
        edges[room].discard(room)
    return edges
