"""Workflows and hooks run what `make` runs, in the same versions."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
"""The targets of the Makefile."""


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_nothing_but_targets_of_make(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    commands = re.findall(r"^ *-? *run: *(.*)$", text, re.MULTILINE)
    assert commands == ["make ${{ matrix.target }}"]
    (listed,) = re.findall(r"^ *target: \[(.*)\]$", text, re.MULTILINE)
    words = {word for target in listed.split(", ") for word in target.split()}
    assert {word for word in words if not word.startswith("HOUSE=")} <= TARGETS
    assert {"test-library", "test-lab", "lint", "docs", "quick"} <= words


def test_the_hook_of_ruff_has_the_version_that_make_installs() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    (pinned,) = re.findall(r"ruff-pre-commit\n +rev: v(\S+)$", hooks, re.MULTILINE)
    assert f"\nruff=={pinned}\n" in (ROOT / "constraints.txt").read_text("utf-8")


def test_the_oldest_python_is_one_of_the_tested() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (oldest,) = re.findall(r'^requires-python = ">=(.*)"$', project, re.MULTILINE)
    newest = re.findall(r"Python :: (3\.\d+)", project)[-1]
    for workflow in WORKFLOWS:
        assert f'python: ["{oldest}", "{newest}"]' in workflow.read_text("utf-8")


@pytest.mark.parametrize("house", [".", "lab"])
def test_the_tests_that_quick_leaves_out_exist(house: str) -> None:
    """Renamed, a test would be quick again."""
    names = (ROOT / house / "tests" / "long.txt").read_text("utf-8").split()
    assert names == sorted(set(names))
    for name in names:
        path, _, test = name.rpartition("::")
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), name


def test_every_file_of_tests_has_a_name_of_its_own() -> None:
    """Pytest imports them all as modules of these names."""
    folders = (ROOT / "tests", ROOT / "lab" / "tests", ROOT / "torcs" / "tests")
    names = [path.name for folder in folders for path in folder.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
