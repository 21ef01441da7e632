"""Both packages have one licence: code under the GPL is only in torcs/, another distribution."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_both_houses_have_one_licence() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.lstrip().startswith("Apache License")
    for house in (ROOT, ROOT / "lab"):
        project = tomllib.loads((house / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["license"] == "Apache-2.0"
        assert project["license-files"] == ["LICENSE"]
        assert (house / "LICENSE").read_text(encoding="utf-8") == text


def test_no_file_of_the_package_is_under_another_licence() -> None:
    sources = ROOT / "src", ROOT / "lab" / "src"
    files = [path for source in sources for path in source.rglob("*") if path.is_file()]
    files = [path for path in files if path.suffix != ".pyc"]
    assert len(files) > 100
    assert [path for path in files if path.name.upper().startswith(("COPYING", "LICEN"))] == []
    assert [path for path in files if path.suffix in (".c", ".cc", ".cpp", ".h", ".so")] == []
    marks = (b"SPDX-License-Identifier", b"GNU General Public", b"GPL-")
    assert [path for path in files if any(mark in path.read_bytes() for mark in marks)] == []


def test_every_python_file_of_torcs_names_its_licence() -> None:
    files = [path for part in ("src", "tests") for path in (ROOT / "torcs" / part).rglob("*.py")]
    assert len(files) > 5
    line = "# SPDX-License-Identifier: GPL-2.0-or-later\n"
    assert [path for path in files if not path.read_text(encoding="utf-8").startswith(line)] == []
