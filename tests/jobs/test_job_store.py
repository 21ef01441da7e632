"""The store of jobs: whole files by key, of one version, and damaged ones set aside."""

import numpy as np
import pytest

from gvf.jobs import Job, Store
from gvf.jobs.store import VERSION, set_aside

JOB = Job("judge 1/IR", {"log": "a", "rows": [1, 2]})
ARRAYS = {"weights": np.arange(5.0), "names": np.frombuffer(b"x", np.uint8)}


def test_what_is_stored_comes_back(tmp_path):
    store = Store(tmp_path / "new" / "cells")
    assert store.get(JOB) is None
    assert not (tmp_path / "new").exists()  # the folder appears with the first result
    store.put(JOB, ARRAYS)
    arrays = Store(tmp_path / "new" / "cells").get(JOB)
    assert arrays is not None
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in ARRAYS.items()
    }
    assert arrays["names"].dtype == np.uint8


def test_a_result_belongs_to_all_of_its_key(tmp_path):
    store = Store(tmp_path)
    store.put(JOB, ARRAYS)
    assert store.get(Job("judge 1/IR", {"rows": [1, 2], "log": "a"}, work="other")) is not None
    for key in ({"log": "b", "rows": [1, 2]}, {"log": "a", "rows": [2, 1]}, {"log": "a"}):
        assert store.get(Job("judge 1/IR", key)) is None


def test_names_become_names_of_files(tmp_path):
    assert Store(tmp_path).path(JOB).name == f"judge_1_IR-{JOB.digest}.gvf"


@pytest.mark.parametrize("at", [20, 300, -1])
def test_a_damaged_file_is_set_aside(tmp_path, capsys, at):
    store = Store(tmp_path)
    store.put(JOB, ARRAYS)
    path = store.path(JOB)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert store.get(JOB) is None
    assert "computed again" in capsys.readouterr().err
    assert (tmp_path / "damaged" / path.name).read_bytes() == content
    store.put(JOB, ARRAYS)
    assert store.get(JOB) is not None
    assert capsys.readouterr().err == ""


def test_a_file_that_was_repaired_meanwhile_stays(tmp_path):
    path, aside = tmp_path / "result", tmp_path / "damaged" / "result"
    path.write_text("whole")
    assert set_aside(path, aside, lambda moved: moved.read_text() == "whole") is None
    assert path.read_text() == "whole"
    assert set_aside(path, aside, lambda moved: False) == aside
    assert set_aside(path, aside, lambda moved: True) == aside  # another process has moved it


def test_a_folder_belongs_to_one_version(tmp_path, monkeypatch):
    Store(tmp_path).put(JOB, ARRAYS)
    monkeypatch.setattr("gvf.jobs.store.__version__", "9.9.9")
    with pytest.raises(ValueError, match=r"this is gvf 9\.9\.9, and goes on with its own results"):
        Store(tmp_path)
    (tmp_path / VERSION).unlink()
    with pytest.raises(ValueError, match="written by gvf an unknown version"):
        Store(tmp_path)
