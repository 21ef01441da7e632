"""Fixtures that tests of several rooms share: folders, caches and modules of a test's own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROWSER, Browser
from study_runs import STUDY

from gvf import domain as domains
from gvf.common.gym import gym
from gvf.study import load
from gvf.study.toml import as_toml


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))


@pytest.fixture
def apart(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the test's own, and a cache that the tests of this session share."""
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "open-studies"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of the test's own, in which modules are found that no other test sees."""
    before = {*sys.modules}
    registry = dict(gym.registry)
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    for name in {*sys.modules} - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    gym.registry.clear()
    gym.registry.update(registry)
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """The study of study_runs in a file."""
    path = tmp_path / "sweep.toml"
    path.write_text(as_toml(STUDY))
    assert load(path) == STUDY
    return path


@pytest.fixture
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no browser: install chromium to see the page in one")
    browser = Browser(BROWSER, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
