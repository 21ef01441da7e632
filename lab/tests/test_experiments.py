"""The programs behind pages: each runs in seconds, and a page's tables are those of its numbers."""

import re
import shutil
from itertools import zip_longest
from pathlib import Path

import pytest

from experiments.__main__ import PAGES, ROOT, run
from experiments.tables import column, markdown, read_rows, with_interval, write_rows

DOCS = ROOT.parent / "docs"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
FROM_NUMBERS = {
    "emphatic": 10,
    "interpolation": 3,
    "intervals": 3,
    "judge": 2,
}
"""The pages whose numbers are kept as CSV, and how many tables are made of them."""
NEEDS = {"emphatic": "torch", "recommendations": "pyarrow"}


@pytest.mark.parametrize("page", [page for page in PAGES if page != "racing"])
def test_a_quick_run_writes_what_the_page_includes(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(NEEDS.get(page, "gvf"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / page
    folder.mkdir()
    run(page, folder, quick=True)
    written = {file.name for file in folder.iterdir() if file.is_file()}
    published = {file.name for file in (DOCS / page).iterdir()}
    by_others = {
        "clinic": {"predictions.png", "reliability.png", "support.png"},  # the page's own program
        "emphatic": {"result.png"},
        "intervals": {"cost.markdown"},  # a part of its own, which takes times
    }
    assert published - by_others.get(page, set()) <= written
    assert not list(tmp_path.glob("gvf-results"))
    for name in written & published:
        if name.endswith(".markdown"):
            head, rule, *lines = (folder / name).read_text("utf-8").splitlines()
            if name not in ("answer.markdown", "tables.markdown"):
                assert rule.count("|") == head.count("|")
                assert {line.count("|") for line in lines} <= {head.count("|")}


def test_the_times_of_intervals_are_measured(tmp_path: Path) -> None:
    run("intervals", shutil.copytree(DOCS / "intervals", tmp_path / "x"), ["cost"], quick=True)
    text = (tmp_path / "x" / "cost.markdown").read_text("utf-8")
    assert [line.split(" | ")[0] for line in text.splitlines()[2:]] == [
        "| chain", "| Four Rooms", "| CartPole, 4 tilings",
    ]  # fmt: skip


@pytest.mark.parametrize("page", FROM_NUMBERS)
def test_the_tables_of_a_page_are_those_of_its_numbers(page: str, tmp_path: Path) -> None:
    """Words are equal; numbers were rounded from more digits than the files have."""
    tables = sorted((DOCS / page).glob("*.markdown"))
    for file in (DOCS / page).glob("*.csv"):
        shutil.copy(file, tmp_path)
    run(page, tmp_path, measured=True)
    made = [table for table in tables if (tmp_path / table.name).exists()]
    assert len(made) == FROM_NUMBERS[page]
    for table in made:
        ours = (tmp_path / table.name).read_text("utf-8")
        theirs = table.read_text("utf-8")
        assert NUMBER.sub("0", ours) == NUMBER.sub("0", theirs), table
        pairs = list(zip_longest(NUMBER.findall(ours), NUMBER.findall(theirs)))
        unequal = [(one, other) for one, other in pairs if one != other]
        assert len(unequal) <= 3
        for one, other in unequal:
            last = 10.0 ** -len(one.partition(".")[2])
            assert abs(float(one) - float(other)) < 1.01 * last, (table, one, other)


def test_a_folder_has_one_page() -> None:
    assert {f"{page}.md" for page in PAGES} <= {path.name for path in DOCS.glob("*.md")}
    programs = {path.name for path in DOCS.rglob("*.py") if "_build" not in path.parts}
    assert programs == {"conf.py"}


def test_results_of_the_racing_car_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="gvf reproduce racing-step-size"):
        run("racing", tmp_path, quick=True)


def test_numbers_are_written_and_read(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.csv", [{"case": "a, b", "error": 1 / 3, "runs": 5}])
    assert (tmp_path / "x.csv").read_text() == 'case,error,runs\n"a, b",0.333333,5\n'
    assert column(read_rows(tmp_path / "x.csv"), "error").tolist() == [0.333333]
    assert str(column([{"ratio": ""}], "ratio")[0]) == "nan"
    assert markdown([["a", "b"], ["1", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert with_interval(1.0, 0.5, 2.0, 1) == "1.0 (0.5 to 2.0)"
