"""Arrays that are computed once and remembered in files."""

from pathlib import Path

import numpy as np
import pytest

from gvf_lab.cache import default_folder, remembered


def test_an_array_in_a_key_is_known_by_its_type_shape_and_numbers(tmp_path: Path) -> None:
    arrays = [np.zeros(6), np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6, int), np.ones(6)]
    for _ in range(2):
        for i, array in enumerate(arrays):
            kept = remembered("x", {"array": array}, lambda i=i: {"i": np.array(i)}, tmp_path)
            assert kept["i"] == i
    assert len(list(tmp_path.iterdir())) == len(arrays)


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning, match="cannot keep x-.*computed again.*GVF_CACHE_DIR"):
        kept = remembered("x", {}, lambda: {"a": np.arange(3)}, tmp_path / "file" / "below")
    assert kept["a"].tolist() == [0, 1, 2]


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", "here")
    assert default_folder() == Path.cwd() / "here"
    monkeypatch.delenv("GVF_CACHE_DIR")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_folder() == Path("/caches/gvf")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "gvf"


def test_a_key_may_have_numbers_of_numpy(tmp_path: Path) -> None:
    for key in ({"n": np.int64(3), "x": np.float64(0.5)}, {"n": 3, "x": 0.5}):
        remembered("x", key, lambda: {"y": np.arange(2)}, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_no_damage_is_not_computed_away(tmp_path: Path, monkeypatch) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    remembered("x", {"n": 1}, lambda: {"y": np.arange(2)}, tmp_path)
    monkeypatch.setattr(np, "load", out_of_memory)
    with pytest.raises(MemoryError):
        remembered("x", {"n": 1}, lambda: {"y": np.arange(2)}, tmp_path)
