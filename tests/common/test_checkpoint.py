"""Checkpoints: files are read back unchanged, or refused with a message of one line."""

import io
import json
import pickle
import tracemalloc
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gvf
from gvf.common import checkpoint


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "small.gvf"
    checkpoint.write(path, "window", {"x": np.arange(3)}, {"capacity": 3})
    return path


def refusal(path: Path, kind: str = "window") -> str:
    """The line with which a file is refused, without the file's name."""
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        checkpoint.read(path, kind)
    assert type(refused.value) is ValueError
    assert str(refused.value).startswith(str(path))
    return str(refused.value).removeprefix(str(path)).strip()


def sealed(path: Path, payload: bytes) -> Path:
    """A file with any payload and the right digest, as an attacker would make it."""
    path.write_bytes(checkpoint._header(sha256(payload).hexdigest()) + payload)
    return path


def archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_arrays_and_description_come_back(tmp_path: Path) -> None:
    arrays = {
        "file": np.arange(6.0).reshape(2, 3).T,
        "a/b c": np.array(7, np.uint8),
        "about": np.zeros((0, 4), np.float32),
        "text": np.array(["ä", "long enough"]),
        "rows": np.zeros(2, [("a", "i4"), ("b", "f8", (2,))]),
        "yes": np.array([True, False]),
        "nan": np.array([np.nan, -0.0, np.inf]),
    }
    description = {"gamma": 0.1, "inf": float("inf"), "list": [1, None, {"ä": True}]}
    path = tmp_path / "things"
    checkpoint.write(path, "thing", arrays, description)
    told, read = checkpoint.read(path, "thing")
    assert told == description
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes()


def test_a_file_tells_what_it_is_and_who_wrote_it(saved: Path) -> None:
    first, _, payload = saved.read_bytes().partition(b"\n")
    assert first.decode() == (
        f"gvf checkpoint, version {gvf.__version__}, sha256 {sha256(payload).hexdigest()}"
    )
    about = json.loads(np.load(io.BytesIO(payload))["about"].tobytes())
    assert about == {"kind": "window", "description": {"capacity": 3}}


def test_the_same_content_makes_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.gvf"
    checkpoint.write(str(again), "window", {"x": np.arange(3)}, {"capacity": 3})
    assert again.read_bytes() == saved.read_bytes()


@pytest.mark.parametrize("mask", [0x01, 0x20, 0xFF])
def test_a_change_of_any_byte_is_noticed(saved: Path, mask: int) -> None:
    good = saved.read_bytes()
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= mask
        saved.write_bytes(bad)
        refusal(saved)
    saved.write_bytes(good)
    checkpoint.read(saved, "window")


def test_a_file_that_was_cut_or_lengthened_is_refused(saved: Path) -> None:
    good = saved.read_bytes()
    for length in range(len(good)):
        saved.write_bytes(good[:length])
        told = refusal(saved)
        recognised = length >= len(f"gvf checkpoint, version {gvf.__version__}, ")
        assert told == ("is damaged or incomplete" if recognised else "is not a gvf checkpoint")
    saved.write_bytes(good + b"\0")
    assert refusal(saved) == "is damaged or incomplete"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"state,action\n1,0\n",
        b" gvf checkpoint, version 0.1.0, ",
        bytes(range(256)) * 20,
        archive(ring=np.zeros(2), configuration=np.array("question=")),
        pickle.dumps({"x": 1}),
    ],
)
def test_a_foreign_file_is_named_as_such(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    assert refusal(path) == "is not a gvf checkpoint"


@pytest.mark.parametrize("version", ["0.0.9", "0.1.0.dev3", "12.0"])
def test_another_version_is_named_beside_this_one(saved: Path, version: str) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content.replace(gvf.__version__.encode(), version.encode(), 1))
    assert refusal(saved) == (
        f"was saved by gvf {version}; this is gvf {gvf.__version__}, and reads only its own files"
    )


def test_another_kind_is_named(saved: Path) -> None:
    assert refusal(saved, "learner") == "holds a window, not a learner"
    assert checkpoint.read(saved, "window")[0] == {"capacity": 3}
    assert checkpoint.read_any(saved)[:2] == ("window", {"capacity": 3})


def test_a_missing_file_is_a_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.gvf"):
        checkpoint.read(tmp_path / "nowhere.gvf", "window")


def test_a_missing_folder_is_named_and_not_the_temporary_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused:
        checkpoint.write(tmp_path / "missing" / "x.gvf", "window", {})
    assert str(refused.value) == f"cannot save x.gvf: there is no folder {tmp_path / 'missing'}"


def test_arrays_of_objects_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    fields = np.zeros(1, [("a", "i4"), ("b", object)])
    for array in (np.array([None, 1]), fields):
        with pytest.raises(TypeError, match="'x' holds Python objects"):
            checkpoint.write(tmp_path / "x.gvf", "window", {"x": array})
    with pytest.raises(TypeError, match="JSON"):
        checkpoint.write(tmp_path / "x.gvf", "window", {}, {"x": object()})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("interrupted", ["writing", "hashing"])
def test_an_interrupt_leaves_the_old_file_and_nothing_else(
    saved: Path, monkeypatch: pytest.MonkeyPatch, interrupted: str
) -> None:
    good = saved.read_bytes()

    def interrupt(file: Any, *_: Any, **__: Any) -> None:
        if interrupted == "writing":
            file.write(b"half of it")
        raise KeyboardInterrupt

    places = {"writing": (np, "savez"), "hashing": (checkpoint.hashlib, "file_digest")}
    monkeypatch.setattr(*places[interrupted], interrupt)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write(saved, "window", {"x": np.arange(1000)})
    assert saved.read_bytes() == good
    assert list(saved.parent.iterdir()) == [saved]


def test_arrays_are_not_copied_as_a_whole(tmp_path: Path) -> None:
    large = np.zeros(8_000_000)
    tracemalloc.start()
    try:
        checkpoint.write(tmp_path / "large.gvf", "window", {"x": large})
        assert tracemalloc.get_traced_memory()[1] < 0.75 * large.nbytes
    finally:
        tracemalloc.stop()


class _Touch:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    bomb = np.array(_Touch(trap), object)
    about = np.frombuffer(json.dumps({"kind": "window", "description": {}}).encode(), np.uint8)
    payloads = [
        archive(about=bomb),
        archive(**{"about": about, "array/x": bomb}),
        pickle.dumps(_Touch(trap)),
    ]
    for payload in payloads:
        assert refusal(sealed(tmp_path / "x.gvf", payload)) == "is damaged or incomplete"
    assert not trap.exists()


def test_a_sealed_file_with_something_else_inside_is_refused(tmp_path: Path) -> None:
    text = np.frombuffer(b"[1]", np.uint8)
    for payload in (b"", b"PK\3\4 but no archive", archive(x=text), archive(about=text)):
        assert refusal(sealed(tmp_path / "x.gvf", payload)) == "is damaged or incomplete"


def test_a_folder_in_the_place_of_a_file_is_named_and_not_the_temporary_file(
    tmp_path: Path,
) -> None:
    with pytest.raises(IsADirectoryError) as refused:
        checkpoint.write(tmp_path, "window", {})
    assert str(refused.value) == f"cannot save to {tmp_path}, which is a folder: name a file in it"


def test_what_the_system_refuses_names_the_file_and_not_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError) as refused:
        checkpoint.write(tmp_path / "x.gvf", "window", {})
    assert str(refused.value) == f"[Errno 13] Permission denied: '{tmp_path / 'x.gvf'}'"
