"""Recordings and returns that the racing study needs, and what is said where they are missing."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from racing_by_hand import PLACE, STUDY, put_material, recording, states, tiny_figure
from roads import same

from gvf.cli import main
from gvf.common.distribution import how_to_install
from gvf.jobs import RayCluster
from gvf.transition import Transitions
from gvf_lab.racing import recorded_inputs as racing_material
from gvf_lab.racing.racing_task import material, run_racing
from gvf_lab.racing.recording import hash_of
from gvf_lab.study.run_study import run
from gvf_lab.study.study_file import as_toml

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
    facts = material(STUDY).facts()
    assert [(name, *given[:3]) for name, *given in asked] == [
        ("evaluation", "torcs", 5, 2),
        ("film", "torcs", 300, asked[1][-1]),
        *(("record", "torcs", 40, asked[2 + run][-1]) for run in range(2)),
    ]
    assert len({given[-1]["seed"] for given in asked}) == 4
    assert list(facts) == ["states", "film", "stream-0", "stream-1"]
    assert material(STUDY).facts() == facts
    assert len(asked) == 4
    # Other rates, another device: the same files. More runs: more streams, and the others stay.
    more = material(replace(STUDY, runs=3, step_sizes=(1.0,), window=3)).facts()
    assert len(asked) == 5
    assert more | facts == more
    # Another seed has other files.
    material(replace(STUDY, seed=1)).facts()
    assert len({given[-1]["seed"] for given in asked}) == len(asked) == 9


def test_a_long_stream_lies_in_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing_material, "PART", 15)
    parts = [recording(steps, seed) for seed, steps in enumerate((15, 15, 10))]
    files = material(STUDY).stream_files(1)
    for file, part in zip(files, parts, strict=True):
        part.save(file.path)
    stream = material(STUDY).stream(1)
    joined = Transitions.concatenate([part.transitions() for part in parts])
    assert same(stream.transitions(), joined)
    hashes = {material(STUDY).stream_hash(1)}
    recording(10, 9).save(files[-1].path)
    assert material(STUDY).stream_hash(1) not in hashes


def test_a_machine_without_a_simulator_does_the_runs_whose_streams_it_has(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "cache"))
    put_material(tmp_path / "cache")
    (tmp_path / "cache" / PLACE / "torcs-stream-0-part-0-40").unlink()

    def refuse(*given: Any, **named: Any) -> Any:
        raise ModuleNotFoundError("No module named 'gymnasium'", name="gymnasium")

    monkeypatch.setattr(racing_material, "record", refuse)
    first, second = STUDY.tasks()
    assert list(material(STUDY).facts()) == ["states", "film", "stream-1"]
    assert run(STUDY, tmp_path / "out", tasks=[second]).done == 1
    with pytest.raises(FileNotFoundError, match="torcs-stream-0-part-0-40"):
        run(STUDY, tmp_path / "out", tasks=[first])


@pytest.mark.parametrize(
    ("missing", "maker"),
    [
        ("torcs-stream-0-part-0-40", "record"),
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
    (tmp_path / "cache" / PLACE / missing).unlink()

    def refuse(*given: Any, **named: Any) -> Any:
        raise {
            "gymnasium": ModuleNotFoundError("No module named 'gymnasium'", name="gymnasium"),
            "torcs": DependencyNotInstalled("TORCS is not installed"),
        }[how]

    monkeypatch.setattr(racing_material, maker, refuse)
    path = tmp_path / "tiny.toml"
    path.write_text(as_toml(STUDY))
    assert main(["study", "run", str(path), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(tmp_path / "cache" / PLACE / missing) in told
    assert {"gymnasium": "'gymnasium'", "torcs": "TORCS is not installed"}[how] in told
    assert "Make it where the simulator is (`gvf reproduce --record`) and copy it to this" in told


def test_a_damaged_recording_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    put_material(tmp_path)
    path = tmp_path / PLACE / "torcs-stream-0-part-0-40"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="torcs-stream-0-part-0-40"):
        material(STUDY).stream(0)


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
    with pytest.raises(ModuleNotFoundError, match=re.escape(how_to_install("gvf[torch]"))):
        material(STUDY)


def test_ray_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no engine 'ray'"):
        run(STUDY, tmp_path, workers=RayCluster())


WITHOUT_GYMNASIUM = """
import sys
sys.modules["gymnasium"] = None
import torch
torch.set_num_threads(1)
import gvf, gvf_lab.paper, gvf_lab.study
from gvf_lab.racing import RacingStudy
from gvf_lab.racing.racing_task import run_racing
study = RacingStudy(**{settings!r})
for outcome in run_racing(next(study.tasks())):
    print(*outcome.final.tolist())
try:
    run_racing(next(study.with_(steps=49).tasks()))
except FileNotFoundError as error:
    print(error)
"""


def test_a_run_needs_no_gymnasium(cache: Path) -> None:
    study = replace(STUDY, methods=("IR", "IS"))
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
    assert str(cache / PLACE / "torcs-stream-0-part-0-49") in told
    assert "gymnasium" in told.lower()


# Recording alone.


def test_what_a_study_needs_is_recorded_alone(cache: Path, capsys) -> None:
    with tiny_figure():
        assert main(["reproduce", "--record"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = ("states-5x2", "film-300", "stream-0-part-0-40", "stream-1-part-0-40")
    for line, name in zip(lines, names, strict=True):
        path = cache / PLACE / f"torcs-{name}"
        assert line.startswith(f"{path}  ")
        assert line.endswith(hash_of(path))


def test_a_study_that_records_nothing_is_an_error(capsys) -> None:
    assert main(["reproduce", "--record", "four-rooms-gap"]) == 2
    assert "four-rooms-gap records nothing" in capsys.readouterr().err
