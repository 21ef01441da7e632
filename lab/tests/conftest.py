"""Fixtures that tests of several rooms of the laboratory share: caches, domains and studies."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from study_runs import STUDY

from gvf_lab import domain as domains
from gvf_lab.study import load
from gvf_lab.study.study_file import as_toml


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))


@pytest.fixture
def apart(
    apart: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the test's own, and a cache that the tests of this session share."""
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "open-studies"))


@pytest.fixture
def own_modules(
    own_modules: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A folder and a cache of the test's own, with modules and domains that no other test sees."""
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "cache"))
    yield
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """The study of study_runs in a file."""
    path = tmp_path / "sweep.toml"
    path.write_text(as_toml(STUDY))
    assert load(path) == STUDY
    return path
