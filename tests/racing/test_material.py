"""Recordings and returns that the racing study needs, and what is said where they are missing."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from racing_by_hand import STUDY, put_material, recording, states, tiny_figure

from gvf.cli import main
from gvf.racing import material as racing_material
from gvf.racing.task import material, run_racing
from gvf.study.engine import run
from gvf.study.toml import as_toml

pytestmark = pytest.mark.usefixtures("one_thread", "cache")


# What is needed, and what is said where it is missing.


def test_recordings_and_returns_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    asked: list[Any] = []

    def making(name: str, made: Any) -> Callable[..., Any]:
        def make(*given: Any, progress: Callable[[int, int], None], **named: Any) -> Any:
            progress(1, 2)
            asked.append((name, *given, named))
            return made

        return make

    for name, made in (
        ("record", recording()), ("evaluation", states(5, 2)), ("film", states(8, 3, every=3)),
    ):  # fmt: skip
        monkeypatch.setattr(racing_material, name, making(name, made))
    here = material(STUDY)
    assert asked == [
        ("record", "torcs", 50, {"seed": racing_material.STREAM_SEED}),
        ("evaluation", "torcs", 5, 2, {"seed": racing_material.EVALUATION_SEED}),
        ("film", "torcs", 300, {"seed": racing_material.FILM_SEED}),
    ]
    assert len({named["seed"] for *_, named in asked}) == 3
    racing_material._take.cache_clear()
    again = material(STUDY)
    assert len(asked) == 3
    for name in ("stream", "states", "film"):
        assert getattr(again, name).hash == getattr(here, name).hash
    # More runs, other rates, another device: the same files.
    assert material(replace(STUDY, runs=9, step_sizes=(1.0,), window=3)) is again


@pytest.mark.parametrize(
    ("missing", "maker"),
    [
        ("torcs-stream-50", "record"),
        ("torcs-states-5x2", "evaluation"),
        ("torcs-film-300", "film"),
    ],
)
@pytest.mark.parametrize("how", ["gymnasium", "torcs"])
def test_what_cannot_be_made_here_is_named_with_what_to_do(
    missing: str, maker: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    from gymnasium.error import DependencyNotInstalled

    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "cache"))
    put_material(tmp_path / "cache")
    (tmp_path / "cache" / "racing-1" / missing).unlink()

    def refuse(*given: Any, **named: Any) -> Any:
        raise {
            "gymnasium": ModuleNotFoundError("No module named 'gymnasium'", name="gymnasium"),
            "torcs": DependencyNotInstalled("TORCS is not installed"),
        }[how]

    monkeypatch.setattr(racing_material, maker, refuse)
    path = tmp_path / "tiny.toml"
    path.write_text(as_toml(STUDY))
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(tmp_path / "cache" / "racing-1" / missing) in told
    assert {"gymnasium": "'gymnasium'", "torcs": "TORCS is not installed"}[how] in told
    assert "Make them where the simulator is (`gvf record`) and copy them to this place" in told


def test_a_damaged_recording_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    put_material(tmp_path)
    path = tmp_path / "racing-1" / "torcs-stream-50"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="torcs-stream-50"):
        material(STUDY)


def test_a_missing_device_is_said_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(racing_material, "record", lambda *_, **__: pytest.fail("it records"))
    with pytest.raises(ValueError, match="device 'cuda': PyTorch finds no CUDA device here"):
        run(replace(STUDY, device="cuda"), tmp_path)


def test_where_pytorch_is_missing_it_is_said_what_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "gvf\[torch\]"'):
        material(STUDY)


def test_ray_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no engine 'ray'"):
        run(STUDY, tmp_path, engine="ray")


WITHOUT_GYMNASIUM = """
import sys
sys.modules["gymnasium"] = None
import torch
torch.set_num_threads(1)
import gvf, gvf.paper, gvf.study
from gvf.racing import RacingStudy
from gvf.racing.task import run_racing
study = RacingStudy(**{settings!r})
for outcome in run_racing(next(study.tasks())):
    print(*outcome.final.tolist())
try:
    run_racing(next(study.with_(stream=49).tasks()))
except FileNotFoundError as error:
    print(error)
"""


def test_a_run_needs_no_gymnasium(cache: Path) -> None:
    study = replace(STUDY, methods=("IR", "IS"), steps=20)
    program = WITHOUT_GYMNASIUM.format(settings=asdict(study))
    environment = os.environ | {"GVF_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *numbers, told = done.stdout.splitlines()
    expected = [outcome.final for outcome in run_racing(next(study.tasks()))]
    np.testing.assert_allclose([[float(x) for x in line.split()] for line in numbers], expected)
    assert str(cache / "racing-1" / "torcs-stream-49") in told
    assert "gymnasium" in told.lower()


# Recording alone.


def test_what_a_study_needs_is_recorded_alone(cache: Path, capsys) -> None:
    with tiny_figure():
        assert main(["record"]) == 0
    here, lines = material(STUDY), capsys.readouterr().out.splitlines()
    for line, kind in zip(lines, ("stream", "states", "film"), strict=True):
        assert line.startswith(str(cache / "racing-1" / f"torcs-{kind}-"))
        assert line.endswith(getattr(here, kind).hash)
