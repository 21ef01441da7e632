"""Fixtures that tests of both houses share: folders and modules of a test's own.

The conftest.py of the root loads them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROWSER, Browser

from gvf.common.gymnasium import gym


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the test's own, from which modules may be imported by name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of the test's own, in which modules are found that no other test sees."""
    before = {*sys.modules}
    registry = dict(gym.registry)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    for name in {*sys.modules} - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    gym.registry.clear()
    gym.registry.update(registry)


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
