"""Names say what a value is, and a file or class has its name alone."""

import pytest
from names import (
    MOST,
    bound_names,
    classes,
    repeated,
    repeated_classes,
    repeated_files,
    says_nothing,
    share,
)


def test_names_say_what_a_value_is() -> None:
    assert share("gvf") < MOST


def test_no_file_name_stands_twice() -> None:
    assert not repeated_files("gvf")


def test_no_class_name_stands_twice() -> None:
    assert not repeated_classes("gvf")


def test_every_bound_name_counts() -> None:
    text = """
import numpy as found

class Given:
    told: int = 0

    def one(self, said, /, *there, own=(), **shown):
        made, (quantiles, *found) = said.given, own
        for index, _told in enumerate(shown):
            with made as file:
                pass
        return [found for found in there if (best := found) and 'made']

async def _own(function=lambda made: made):
    function.told = 1
    function['given'] = 2
"""
    names = sorted(bound_names(text))
    expected = """Given _own _told best file found found function index made made one own quantiles
    said self shown there told"""
    assert names == sorted(expected.split())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("found", True), ("_told", True), ("one_", True), ("Given", False), ("founded", False),
     ("found_rows", False), ("ones", False)],
)  # fmt: skip
def test_a_word_counts_also_with_underscores(name: str, expected: bool) -> None:
    assert says_nothing(name) == expected


def test_repetitions_are_seen() -> None:
    text = "class A:\n    class B: ...\nclass _C: ...\ndef f():\n    class B: ..."
    assert repeated(classes(text)) == {"B"}
    assert sorted(classes(text)) == ["A", "B", "B", "_C"]
