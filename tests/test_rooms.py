"""The rooms of the library: which may import which, as the table in CONTRIBUTING.md says."""

import ast

import pytest
from rooms import ROOT, graph, imported, imports, modules, room_of, rooms, table

HOUSE = "gvf"
LISTS_OF_ROOMS = ("rooms.py", "test_rooms.py")  # they name rooms of both houses


def test_the_table_has_every_room() -> None:
    assert set(table(HOUSE)) == rooms(HOUSE)


def test_imports_point_one_way() -> None:
    order = list(table(HOUSE))
    for room, allowed in table(HOUSE).items():
        assert allowed <= set(order[: order.index(room)]), f"{room} would import a room below it"


@pytest.mark.parametrize("room", sorted(rooms(HOUSE)))
def test_a_room_imports_what_the_table_says_and_no_more(room: str) -> None:
    assert graph(HOUSE)[room] == table(HOUSE)[room]


def test_the_library_and_its_tests_never_import_the_laboratory() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name not in LISTS_OF_ROOMS]
    for path in [*(path for _, path in modules(HOUSE)), *tests]:
        assert not [name for name in imports(path) if room_of(name)[0] == "gvf_lab"], path


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import gvf.log.tables", ("gvf", "log")),
        ("from gvf import log", ("gvf", "log")),
        ("from gvf.log import Log", ("gvf", "log")),
        ("def f():\n    from gvf.log.tables import opened", ("gvf", "log")),
        ("if TYPE_CHECKING:\n    import gvf.log as s", ("gvf", "log")),
        ("import_module('gvf.log.tables')", ("gvf", "log")),
        ("entry = 'gvf_lab.study:Study'", ("gvf_lab", "study")),
        ("import gvf", ("gvf", "")),
        ("from gvf import Learner", ("gvf", "")),
        ("import gvf_lab", ("gvf_lab", "")),
    ],
)
def test_an_import_is_seen_wherever_it_stands(source: str, expected: tuple[str, str]) -> None:
    assert [room_of(name) for name in imported(ast.parse(source))] == [expected]
