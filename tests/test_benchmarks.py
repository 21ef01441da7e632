"""What the benchmarks share: limits in one file, and the comparison of two files of numbers."""

import json
from pathlib import Path

import pytest

from benchmarks.measure import LIMITS, at_most

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("module", LIMITS)
def test_every_limit_is_one_that_its_module_reads(module: str) -> None:
    text = (FOLDER / f"{module}.py").read_text("utf-8")
    assert f'LIMITS["{module}"]' in text
    for name, limit in LIMITS[module].items():
        assert f'["{name}"]' in text or module == "transitions", name
        for value in limit.values() if isinstance(limit, dict) else [limit]:
            assert value > 0


def test_a_row_is_judged_by_its_limit() -> None:
    assert at_most("n = 1", "gvf", 2.0, "us", 2.0).met
    assert not at_most("n = 1", "gvf", 2.1, "us", 2.0).met


def test_two_files_are_compared_row_by_row(tmp_path: Path) -> None:
    console = pytest.importorskip("rich.console")
    from benchmarks import table

    def write(name: str, *rows: tuple[str, float, str], cores: int = 2) -> Path:
        parts = {"draws": [{"case": "n", "name": n, "value": v, "unit": u} for n, v, u in rows]}
        machine = {"system": "Linux", "cores": cores}
        path = tmp_path / name
        path.write_text(json.dumps({"machine": machine, "commit": name, "parts": parts}))
        return path

    old = write("a", ("time", 1.0, "us"), ("rate", 100.0, "M draws/s"), ("gone", 1.0, "s"))
    new = write("b", ("time", 1.1, "us"), ("rate", 150.0, "M draws/s"), ("fresh", 1.0, "s"))
    with (tmp_path / "out").open("w") as file:
        worse = table.compare(old, new, console.Console(file=file, width=140))
    text = (tmp_path / "out").read_text()
    assert worse == 1
    assert " 0.91 worse draws: n, time: 1 -> 1.1 us" in text
    assert " 1.50       draws: n, rate: 100 -> 150 M draws/s" in text
    assert "gone" not in text
    assert "fresh" not in text
    assert "different machines" not in text
    other = write("c", ("time", 1.02, "us"), cores=8)
    with (tmp_path / "out").open("w") as file:
        assert table.compare(old, other, console.Console(file=file, width=140)) == 0
    assert "different machines" in (tmp_path / "out").read_text()
