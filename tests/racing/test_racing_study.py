"""The study of the racing car from files, without a simulator: tiny streams, few updates."""

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from own_corrections import SquareRoot
from torch import nn

import gvf
from gvf import paper
from gvf.cli import main
from gvf.figure.companion import LEARNING_CURVES
from gvf.paper import studies as catalogue
from gvf.racing import RacingStudy
from gvf.racing import material as racing_material
from gvf.racing import task as racing_task
from gvf.racing.figure import _spread, _steadier, remark
from gvf.racing.film import draw_film
from gvf.racing.recording import Recording
from gvf.racing.rollouts import EvaluationSet
from gvf.racing.task import RacingOutcome, folder, material, run_racing
from gvf.report.exhibit import Exhibit, Provenance
from gvf.study import Interrupted, Task, load
from gvf.study.base import seed_for
from gvf.study.draws import draw
from gvf.study.encoding import COLUMNS, encode
from gvf.study.engine import run
from gvf.study.progress import costs, gap_of
from gvf.study.results import MethodResults, Results, resampling
from gvf.study.store import Store
from gvf.study.toml import as_toml

TARGET, SD, NEAR, GAMMA = 0.15, 0.0075, 0.1, 0.9
METHODS = ("IR", "BC-IR", "IS", "WIS-Minibatch", "V-trace(1.0)")
TINY: dict[str, Any] = {
    "stream": 50, "steps": 40, "apart": 5, "warm_up": 10, "gap": 3, "window": 20, "batch_size": 4,
    "measure_every": 2, "points": 3, "evaluation_states": 5, "rollouts": 2, "runs": 2,
    "step_sizes": (0.01, 0.1), "optimiser": "sgd",
}  # fmt: skip
STUDY = RacingStudy("tiny", **TINY)
"""Ten updates of ten lanes, twice."""
FIGURE = "racing-step-size"


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 64, 128), np.uint8)


def recording(steps: int = 50) -> Recording:
    """Make a recording of two episodes; actions near the target's mean keep ratios above 0."""
    rng = np.random.default_rng(1)
    count = steps + 2
    first = np.delete(np.arange(count - 1), 30)
    action = rng.normal(TARGET, 2 * SD, steps)
    angle, speed, distance = rng.normal(size=(3, count))
    return Recording(
        images(count, 0), first, action, rng.normal(0.5, 0.3, steps),
        rng.uniform(-0.3, 0.3, count), angle, speed, distance, {"simulator": "torcs"},
    )  # fmt: skip


def states(count: int, seed: int, **settings: Any) -> EvaluationSet:
    value, lateral = np.random.default_rng(seed).uniform(0, 1, (2, count))
    told = {"simulator": "torcs", **settings}
    return EvaluationSet(images(count, seed), value, 0 * value, lateral, told)


def put_material(where: Path, simulator: str = "torcs") -> None:
    recording().save(where / "racing-1" / f"{simulator}-stream-50")
    states(5, 2).save(where / "racing-1" / f"{simulator}-states-5x2")
    states(8, 3, every=3).save(where / "racing-1" / f"{simulator}-film-300")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("cache")
    put_material(where)
    put_material(where, "car-racing")
    return where


@pytest.fixture(autouse=True)
def cache(stored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GVF_CACHE_DIR", str(stored))
    return stored


def small_network(convolution: str = "native") -> nn.Module:
    """A network that sees every 16th row and column."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            return self.layers(frames[:, ::16, ::16].flatten(1) / 255).squeeze(-1)

    return Network()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gvf.neural.driving_network", small_network)


def checkpoints() -> list[Path]:
    return [path for path in folder().iterdir() if "checkpoint" in path.name]


def file_of(task: Task, stop: Callable[[], bool] = lambda: False) -> bytes:
    """The file of a task."""
    return encode(task, task.study.compute(task, stop))


def stop_after(updates: int) -> Callable[[], bool]:
    asked = iter([False] * updates)
    return lambda: next(asked, True)


# What a run computes, done the dumb way.


OPTIMISERS: dict[str, Any] = {
    "sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam,
}  # fmt: skip


def weights_by_hand(method: str, rho: np.ndarray, mean: float) -> np.ndarray:
    """Return a method's weights, by the table of corrections."""
    k = len(rho)
    return {
        "IR": np.full(k, 1 / k),
        "BC-IR": np.full(k, mean / k),
        "IS": rho / k,
        "WIS-Minibatch": rho / rho.sum() if rho.sum() > 0 else 0 * rho,
        "V-trace(1.0)": np.minimum(rho, 1) / k,
    }[method]


def by_hand(
    study: RacingStudy, number: int, make: Callable[[], nn.Module]
) -> dict[tuple[str, float], tuple[list[float], np.ndarray]]:
    """Compute each lane's errors and its predictions for the film, one lane at a time."""
    stream, evaluated, shown = recording(), states(5, 2), states(8, 3)
    begin = number * study.apart
    rows = range(begin, begin + study.steps)
    frames = torch.from_numpy(stream.frames)
    log_pi = -0.5 * ((stream.action - TARGET) / SD) ** 2 - math.log(SD * math.sqrt(2 * math.pi))
    rho = np.exp(log_pi - stream.log_mu)[begin : begin + study.steps]
    near = [abs(stream.lateral[stream.first[t] + 1]) < NEAR for t in rows]
    uniform, by_ratio = (
        draw(
            correction, rho, window=study.window, batch_size=study.batch_size,
            warm_up=study.warm_up, gap=study.gap, seed=seed_for(study.seed, number, "draws"),
        ).rows
        for correction in (gvf.IS(), gvf.IR())
    )  # fmt: skip
    seed = int(seed_for(study.seed, number, "weights").generate_state(1)[0])
    found = {}
    for method in study.methods:
        drawn = by_ratio if method in ("IR", "BC-IR") else uniform
        for rate in study.step_sizes:
            torch.manual_seed(seed)
            network = make()
            optimiser = OPTIMISERS[study.optimiser](network.parameters(), lr=rate)
            errors = []
            for u in range(study.updates):
                end = study.warm_up + study.gap * (u + 1)
                window = rho[max(0, end - study.window) : end]
                w = weights_by_hand(method, rho[drawn[u]], window.mean())
                loss = torch.zeros(())
                for i, row in enumerate(drawn[u].tolist()):
                    assert end - study.window <= row < end
                    at = int(stream.first[begin + row])
                    value = network(frames[at : at + 1])[0]
                    with torch.no_grad():
                        following = network(frames[at + 1 : at + 2])[0]
                    goal = 1.0 if near[row] else GAMMA * following
                    loss = loss + 0.5 * float(w[i]) * (goal - value) ** 2
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                if (u + 1) % study.measure_every == 0:
                    with torch.no_grad():
                        predicted = network(torch.from_numpy(evaluated.frames)).numpy()
                    errors.append(float(((predicted - evaluated.value) ** 2).mean()))
            with torch.no_grad():
                found[method, rate] = errors, network(torch.from_numpy(shown.frames)).numpy()
    return found


def check_against(outcomes: list[RacingOutcome], expected: Any, rtol: float) -> None:
    for outcome in outcomes:
        for lane, rate in enumerate(outcome.choices):
            errors, shown = expected[outcome.method, rate]
            close: dict[str, Any] = {"rtol": rtol, "atol": 1e-6}
            np.testing.assert_allclose(outcome.error[lane], np.mean(errors), **close)
            np.testing.assert_allclose(outcome.final[lane], errors[-1], **close)
            np.testing.assert_allclose(outcome.film[lane], shown, **close)
            # Five measurements in three parts: two, two, one.
            parts = [np.mean(errors[:2]), np.mean(errors[2:4]), errors[4]]
            np.testing.assert_allclose(outcome.curve[lane], parts, **close)


@pytest.mark.parametrize(
    ("number", "optimiser"), [(0, "sgd"), (1, "sgd"), (1, "rmsprop"), (1, "adam")]
)
def test_a_run_is_that_of_a_plain_loop_over_single_networks(
    number: int, optimiser: str, small: None
) -> None:
    study = replace(STUDY, optimiser=optimiser)
    task = list(study.tasks())[number]
    outcomes = run_racing(task)
    assert [outcome.method for outcome in outcomes] == list(METHODS)
    expected = by_hand(study, number, small_network)
    # Float32 adds in another order: relative errors of some 1e-6, after ten updates.
    check_against(outcomes, expected, rtol=1e-4)
    # The methods do differ, and the rates.
    finals = [errors[-1] for errors, _ in expected.values()]
    assert np.diff(np.sort(finals)).min() > 1e-7
    assert checkpoints() == []


def test_the_driving_network_learns_as_in_a_plain_loop() -> None:
    from gvf.neural import driving_network

    study = replace(STUDY, methods=("IR", "IS"), step_sizes=(0.002,), window=15)
    outcomes = run_racing(next(study.tasks()))
    check_against(outcomes, by_hand(study, 0, driving_network), rtol=1e-3)
    # It has moved by far more than that.
    for outcome in outcomes:
        assert abs(outcome.curve[0, -1] / outcome.curve[0, 0] - 1) > 0.01


def test_a_correction_of_ones_own_learns_as_in_a_plain_loop(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = replace(STUDY, methods=("IR", SquareRoot(), "IS"), step_sizes=(0.1,))
    found = {outcome.method: outcome for outcome in run_racing(next(study.tasks()))}
    # The same run by hand, with draws and weights of SquareRoot under the name of IR.
    here, rows, weights = sys.modules[__name__], draw, weights_by_hand

    def by_square_root(correction: gvf.Correction, ratio: np.ndarray, **options: Any) -> Any:
        return rows(SquareRoot() if correction == gvf.IR() else correction, ratio, **options)

    def weights_of_square_root(name: str, rho: np.ndarray, mean: float) -> np.ndarray:
        return np.sqrt(rho) / len(rho) if name == "IR" else weights(name, rho, mean)

    monkeypatch.setattr(here, "draw", by_square_root)
    monkeypatch.setattr(here, "weights_by_hand", weights_of_square_root)
    errors, shown = by_hand(replace(study, methods=("IR",)), 0, small_network)["IR", 0.1]
    np.testing.assert_allclose(found["SquareRoot"].error[0], np.mean(errors), rtol=1e-4)
    np.testing.assert_allclose(found["SquareRoot"].film[0], shown, rtol=1e-4, atol=1e-6)
    assert abs(found["SquareRoot"].error[0] / found["IR"].error[0] - 1) > 1e-3


def test_a_window_without_mass_changes_nothing_for_those_who_draw_by_ratio(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    put_material(tmp_path)
    # A density under the target that is 0 in floating point.
    far = replace(recording(), action=np.full(50, -1.0))
    far.save(tmp_path / "racing-1" / "torcs-stream-50")
    for outcome in run_racing(next(STUDY.tasks())):
        np.testing.assert_array_equal(outcome.curve, outcome.curve[0, 0])


@pytest.mark.parametrize("method", ["IR", "WIS-Minibatch"])
def test_a_part_alone_is_the_same_as_in_its_grid(method: str) -> None:
    study = replace(STUDY, methods=("IR", "WIS-Minibatch"), steps=20)
    task = list(study.tasks())[1]
    cell = study.part(f"{task.name}/{method}/0.1")
    (alone,) = run_racing(cell)
    whole = next(outcome for outcome in run_racing(task) if outcome.method == method)
    assert alone.choices == (0.1,)
    # Up to rounding: where weights lie in memory decides which of PyTorch's kernels is used.
    for name in ("error", "final", "curve", "film"):
        np.testing.assert_allclose(
            getattr(alone, name)[0], getattr(whole, name)[1], rtol=1e-5, atol=1e-7
        )


def test_names_are_those_of_parts() -> None:
    task = next(STUDY.tasks())
    assert task.name == "tiny/left/wander/gap-3/run-0"
    assert list(task.parts())[:3] == [
        f"{task.name}/{rest}" for rest in ("IR/0.01", "IR/0.1", "BC-IR/0.01")
    ]
    assert all(STUDY.part(name).name == task.name for name in task.parts())
    with pytest.raises(ValueError, match="'tiny/nothing'"):
        STUDY.part("tiny/nothing")


def test_runs_begin_apart_and_within_the_stream() -> None:
    study = replace(STUDY, runs=5)
    assert [study.begins(number) for number in range(5)] == [0, 5, 10, 4, 9]
    assert [replace(STUDY, steps=50).begins(number) for number in range(3)] == [0, 0, 0]


def test_a_lane_that_is_lost_has_an_infinite_error_and_its_neighbour_has_not(small: None) -> None:
    study = replace(STUDY, methods=("IR",), step_sizes=(0.01, 1e30))
    (both,) = run_racing(next(study.tasks()))
    (one,) = run_racing(next(replace(study, step_sizes=(0.01,)).tasks()))
    assert both.error.tolist() == [one.error[0], math.inf]
    assert both.final[1] == math.inf
    assert both.curve[1, -1] == math.inf


def test_a_lane_with_an_infinite_weight_is_lost_even_where_no_prediction_shows_it(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gvf.neural import Lanes

    lost = torch.zeros(len(METHODS) * 2, dtype=torch.bool)
    lost[3] = True
    monkeypatch.setattr(Lanes, "diverged", property(lambda self: lost))
    errors = np.concatenate([outcome.error for outcome in run_racing(next(STUDY.tasks()))])
    assert np.isinf(errors).tolist() == lost.tolist()


def test_the_number_of_workers_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_network(convolution: str) -> nn.Module:
        """While its weights are drawn, another worker may draw others."""
        first = nn.Linear(32, 8)
        time.sleep(0.05)
        network = small_network()
        network.get_submodule("layers")[0] = first  # pyright: ignore[reportIndexIssue]
        return network

    monkeypatch.setattr("gvf.neural.driving_network", slow_network)
    study = replace(STUDY, runs=4, methods=("IR", "IS"))
    for workers in (1, 4):
        run(study, tmp_path / str(workers), workers=workers)
    tables = [Store(study, tmp_path / str(workers)).read() for workers in (1, 4)]
    assert tables[0].equals(tables[1])


# Interruptions.


@pytest.mark.parametrize("optimiser", ["sgd", "rmsprop", "adam"])
@pytest.mark.parametrize("network", ["small", "driving"])
def test_an_interrupted_run_goes_on_to_the_same_bits(
    network: str, optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = replace(STUDY, optimiser=optimiser)
    if network == "small":
        monkeypatch.setattr("gvf.neural.driving_network", small_network)
    else:
        study = replace(study, methods=("BC-IR", "IS"), step_sizes=(0.01,))
    task = next(study.tasks())
    whole = file_of(task)
    for updates in (4, 3):
        with pytest.raises(Interrupted, match="tiny/left/wander/gap-3/run-0"):
            run_racing(task, stop_after(updates))
        assert len(checkpoints()) == 1
    left = stop_after(3)
    assert file_of(task, left) == whole
    assert left()  # all three were done, and no more
    assert checkpoints() == []


def test_a_killed_run_goes_on_from_what_it_left_now_and_then(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(STUDY.tasks())
    whole = file_of(task)
    monkeypatch.setattr(racing_task, "CHECKPOINT_EVERY", 0.0)
    asked = iter([False] * 7)
    with pytest.raises(StopIteration):
        run_racing(task, lambda: next(asked))
    left = stop_after(4)  # six updates were there, the seventh was lost
    assert file_of(task, left) == whole
    assert left()


@pytest.mark.parametrize("harm", ["half", "flip", "empty", "other"])
def test_a_damaged_checkpoint_is_ignored(harm: str, small: None) -> None:
    task = next(STUDY.tasks())
    whole = file_of(task)
    with pytest.raises(Interrupted):
        run_racing(task, stop_after(5))
    (path,) = checkpoints()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(
        {
            "half": path.read_bytes()[: len(content) // 2],
            "flip": bytes(content),
            "empty": b"",
            "other": b"something else entirely, and not short: " * 9,
        }[harm]
    )
    assert file_of(task) == whole


def test_a_checkpoint_is_taken_up_with_the_same_settings_and_data_only(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(STUDY.tasks())
    with pytest.raises(Interrupted):
        run_racing(task, stop_after(9))
    for changes in ({"seed": 1}, {"step_sizes": (0.01, 0.2)}, {"batch_size": 5}, {"gap": 2}):
        other = next(replace(STUDY, **changes).tasks())
        with pytest.raises(Interrupted):
            run_racing(other, stop_after(2))
    here = material(STUDY)
    for changed in (replace(here, states=states(5, 9)), replace(here, stream=recording(51))):
        with monkeypatch.context() as patch:
            patch.setattr(racing_task, "material", lambda study, changed=changed: changed)
            with pytest.raises(Interrupted):
                run_racing(task, stop_after(2))
    # How many runs there are does not change one of them.
    more = next(replace(STUDY, runs=7).tasks())
    left = stop_after(1)
    run_racing(more, left)
    assert left()
    for path in checkpoints():
        path.unlink()


def test_an_interrupted_study_goes_on(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(STUDY, tmp_path / "whole")
    update, done = torch.optim.SGD.step, iter(range(6))

    def interrupt(self: Any, *given: Any) -> Any:
        if next(done, None) is None:
            raise KeyboardInterrupt
        return update(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.SGD, "step", interrupt)
        patch.setattr(racing_task, "CHECKPOINT_EVERY", 0.0)
        with pytest.raises(KeyboardInterrupt):
            run(STUDY, tmp_path / "stopped", workers=1)
    assert len(checkpoints()) == 1
    assert run(STUDY, tmp_path / "stopped").done == 2
    tables = [Store(STUDY, tmp_path / name).read() for name in ("whole", "stopped")]
    assert tables[0].equals(tables[1])


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


# Settings.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../x"}, r"cannot be called '\.\./x'"),
        ({"simulator": "gta"}, "unknown simulator: 'gta'; known are 'torcs', 'car-racing'"),
        ({"optimiser": "lbfgs"}, "unknown optimiser: 'lbfgs'; known are 'sgd', 'rmsprop', 'adam'"),
        ({"device": "tpu"}, r"unknown device: 'tpu'; did you mean 'cpu'\? Known are 'cpu', 'cuda'"),
        ({"methods": ()}, "methods must name at least one"),
        ({"methods": ("IR", "IR")}, "methods has something twice: 'IR'"),
        ({"methods": ("IRR",)}, "unknown method: 'IRR'"),
        ({"methods": ("WIS-Optimal",)}, "WIS-Optimal learns from no mini-batches of this stream"),
        ({"methods": ("Sarsa",)}, "Sarsa learns from no mini-batches"),
        ({"methods": ("On-policy",)}, "On-policy learns from no mini-batches"),
        ({"methods": ("WIS-TD(0)",)}, r"WIS-TD\(0\) learns from no mini-batches"),
        ({"methods": ("NormIS",)}, "NormIS needs a largest ratio, and densities have none"),
        ({"methods": ("V-trace(0.5 max)",)}, r"V-trace\(0.5 max\) needs a largest ratio"),
        ({"step_sizes": ()}, "step_sizes must name at least one"),
        ({"step_sizes": (0.1, 0.1)}, r"step_sizes has something twice: 0\.1"),
        ({"step_sizes": (0.1, -1.0)}, r"step_sizes must be finite and not negative, got -1\.0"),
        ({"step_sizes": (math.inf,)}, "step_sizes must be finite and not negative, got inf"),
        ({"step_sizes": (math.nan,)}, "step_sizes must be finite and not negative, got nan"),
        ({"step_sizes": ("much",)}, "step_sizes must be a list of numbers, but item 1 is 'much'"),
        ({"steps": 1.5}, "steps must be a whole number, got 1.5"),
        ({"device": 0}, "device must be a name, got 0"),
        *(
            ({name: 0}, f"{name} must be at least 1, got 0")
            for name in (
                "steps", "gap", "window", "batch_size", "measure_every", "points", "runs",
                "evaluation_states", "rollouts",
            )
        ),
        *(
            ({name: -1}, f"{name} must be at least 0, got -1")
            for name in ("warm_up", "apart", "seed")
        ),
        ({"stream": 39}, "stream must be at least 40, got 39"),
        ({"measure_every": 11}, "there are 10 updates, and measure_every is 11"),
        ({"warm_up": 39}, "nothing would be measured: there are 0 updates"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_before_anything_runs(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDY, **changes)


def test_a_study_of_the_racing_car_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(as_toml(STUDY))
    assert path.read_text().startswith('kind = "gvf.racing:RacingStudy"\n')
    assert load(path) == STUDY
    assert {field.name for field in fields(RacingStudy)} - {"name", "own"} == {
        line.partition(" = ")[0] for line in path.read_text().splitlines()[1:]
    }
    path.write_text('kind = "gvf.racing:RacingStudy"\nstep_sizes = [0.1]\ntrack = "g-track-1"')
    with pytest.raises(
        ValueError, match=r"tiny\.toml: unknown key: 'track'; known are 'kind', 'name', "
    ):
        load(path)


# The store.


def test_predictions_along_the_film_are_stored_and_read(tmp_path: Path, small: None) -> None:
    assert run(STUDY, tmp_path).done == 2
    store = Store(STUDY, tmp_path)
    table = pq.read_table(store.path(next(STUDY.tasks())))
    assert table.column_names == list(COLUMNS)
    first, *_ = table.to_pylist()
    assert (first["study"], first["protocol"], first["gap"]) == ("tiny", "both", 3)
    # Ten updates, in three parts.
    assert first["curve_steps"] == pytest.approx([10 / 6, 30 / 6, 50 / 6])
    assert [first[name] for name in ("u0", "eta", "iteration", "l1", "l2", "scalar")] == [None] * 6
    configuration = json.loads(table.schema.metadata[b"gvf.configuration"])
    assert (configuration["simulator"], configuration["optimiser"]) == ("torcs", "sgd")
    outcomes = [run_racing(task) for task in STUDY.tasks()]
    results = Results.read(store, "paper")
    for m, method in enumerate(METHODS):
        cell = results.of(method)
        assert cell["film"].shape == (2, 2, 8)
        for name in ("error", "final", "curve", "film"):
            expected = np.stack([getattr(of_run[m], name) for of_run in outcomes])
            np.testing.assert_array_equal(cell[name], expected)
    assert run(STUDY, tmp_path).done == 0
    assert run(replace(STUDY, runs=3), tmp_path).done == 1
    assert run(replace(STUDY, simulator="car-racing"), tmp_path).done == 2


# The command line.


@pytest.fixture
def toml(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(as_toml(STUDY))
    return str(path)


def test_the_study_is_listed_and_shown(tmp_path: Path, capsys) -> None:
    assert main(["list", "--out", str(tmp_path)]) == 0
    assert re.search(r"^racing-step-size +0/10 +35 ", capsys.readouterr().out, re.MULTILINE)
    assert main(["show", FIGURE]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# 10 tasks of 35 lanes, 0 done; ")
    path = tmp_path / f"{FIGURE}.toml"
    path.write_text(shown)
    assert load(path) == catalogue.get(FIGURE, "paper")


def test_a_dry_run_estimates_and_does_nothing(
    toml: str, tmp_path: Path, small: None, capsys
) -> None:
    out = tmp_path / "out"
    assert main(["run", toml, "--dry-run", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "tiny: 2 tasks of 10 rows, 0 done already\n" in told
    assert re.search(r"to do: 2, about \d+ s with \d at once \(by a short probe\)\n", told)
    assert not out.exists()
    assert checkpoints() == []
    assert main(["run", toml, "--out", str(out)]) == 0
    assert main(["run", toml, "--dry-run", "--runs", "3", "--out", str(out)]) == 0
    assert "(by those done before)" in capsys.readouterr().out


def test_the_cost_is_that_of_all_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing_task, "seconds_of_an_update", lambda study: 2.0)
    assert gap_of(next(STUDY.tasks())) == 3
    # A run has ten updates.
    known, logged = costs(Store(STUDY, tmp_path))
    assert not logged
    assert known.total({3: 2}) == pytest.approx(40.0)


def test_an_update_is_timed_without_a_recording(small: None, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "empty"))
    clock = iter([10.0, 16.0])
    monkeypatch.setattr(racing_task.time, "perf_counter", lambda: next(clock))
    assert racing_task.seconds_of_an_update(STUDY, several=3) == 2.0


def test_a_part_alone_is_printed(toml: str, tmp_path: Path, small: None, capsys) -> None:
    assert main(["run", toml, "--only", "tiny/left/wander/gap-3/run-1/IS/0.1"]) == 0
    told = re.findall(r"^(\w+): ([-+.e\d ]+) \(.*\)$", capsys.readouterr().out, re.MULTILINE)
    (outcome,) = (one for one in run_racing(list(STUDY.tasks())[1]) if one.method == "IS")
    assert {name: [float(value) for value in values.split()] for name, values in told} == {
        "error": [outcome.error[1]], "final": [outcome.final[1]],
        "curve": outcome.curve[1].tolist(), "film": outcome.film[1].tolist(),
        "curve_steps": [pytest.approx(x) for x in (10 / 6, 30 / 6, 50 / 6)],
    }  # fmt: skip


@contextmanager
def tiny_figure() -> Iterator[None]:
    """The figure with a tiny study and a small network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(paper.FIGURES, FIGURE, replace(paper.get(FIGURE), quick=TINY))
        patch.setattr("gvf.neural.driving_network", small_network)
        yield


def reproduce(out: Path, *more: str) -> int:
    with tiny_figure():
        return main(["reproduce", FIGURE, *more, "--out", str(out)])


def report(out: Path) -> int:
    with tiny_figure():
        return main(["report", str(out)])


@pytest.fixture(scope="module")
def reproduced(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GVF_CACHE_DIR", str(stored))
        assert reproduce(out) == 0
    return out


PICTURES = {
    f"{name}.{kind}" for name in (FIGURE, "learning-curves", "film") for kind in ("png", "svg")
}


def test_the_figure_leaves_its_other_pictures_in_folder_and_page(reproduced: Path) -> None:
    left = {path.name for path in (reproduced / FIGURE).iterdir() if path.is_file()}
    assert left >= PICTURES | {f"{FIGURE}.csv", "claims.json", "made.json"}
    page = (reproduced / "report.html").read_text()
    assert "(TORCS, only 2 of 10 runs)" in page
    assert f"gvf reproduce {FIGURE} --scale quick --protocol paper --out" in page
    assert all(f'href="{FIGURE}/{name}"' in page for name in PICTURES)
    for told in ("Error while learning", "A drive that no learner has seen"):
        assert f"<figcaption>{told}" in page
        assert len(re.findall(rf'<img src="data:image/[^"]*" alt="[^"]*: {told}', page)) == 1


def test_the_figure_leaves_its_numbers_and_claims(reproduced: Path) -> None:
    with (reproduced / FIGURE / f"{FIGURE}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["series"] for row in rows] == [name for name in METHODS for _ in range(2)]
    assert {(row["protocol"], row["panel"], row["runs"]) for row in rows} == {
        ("paper", "main", "2")
    }
    assert [float(row["x"]) for row in rows] == [0.01, 0.1] * 5
    claims = json.loads((reproduced / FIGURE / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [claim.id for claim in paper.get(FIGURE).claims]
    assert {claim["verdict"] for claim in claims} == {"undecided"}  # two runs do not tell


def test_the_picture_has_the_whole_title(reproduced: Path) -> None:
    svg = (reproduced / FIGURE / f"{FIGURE}.svg").read_text()
    assert "to the learning rate (TORCS, only 2 of 10 runs)" in svg


def test_the_report_is_rebuilt_with_all_pictures(reproduced: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    for name in PICTURES:
        (out / FIGURE / name).unlink()
    assert report(out) == 0
    for name in PICTURES:
        assert (out / FIGURE / name).read_bytes() == (reproduced / FIGURE / name).read_bytes()


def test_without_the_film_the_other_pictures_are_drawn(
    reproduced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    for name in PICTURES:
        (out / FIGURE / name).unlink()
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert report(out) == 0
    left = {path.name for path in (out / FIGURE).iterdir()}
    assert PICTURES - left == {"film.png", "film.svg"}
    page = (out / "report.html").read_text()
    assert "film.png" not in page
    assert "learning-curves.png" in page


def test_simulator_and_device_are_chosen_kept_and_told(tmp_path: Path) -> None:
    chosen = ("--simulator", "car-racing", "--device", "cpu")
    assert reproduce(tmp_path, *chosen, "--protocol", "both") == 0
    made = json.loads((tmp_path / FIGURE / "made.json").read_text())
    assert {key: one["options"] for key, one in made.items()} == {
        protocol: {"simulator": "car-racing", "device": "cpu"} for protocol in ("paper", "authors")
    }
    page = (tmp_path / "report.html").read_text()
    assert "--simulator car-racing --device cpu" in page
    # The same under both protocols, so it is said once.
    assert len(re.findall(r"\(Gymnasium&#39;s CarRacing\)</h3>", page)) == 1


def test_options_of_the_racing_car_need_it(tmp_path: Path, capsys) -> None:
    for option in (("--simulator", "torcs"), ("--device", "cuda")):
        assert main(["reproduce", "markov-vtrace", *option, "--out", str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert f"{option[0]} is about the racing car: name racing-step-size with it" in told


# Pictures, by hand.


def results_of(study: RacingStudy, **errors: Any) -> Results:
    """Make results with these errors [R, L] of one method, and errors of 1 for all others."""
    rng = np.random.default_rng(0)
    cells = {}
    for method in study.methods:
        default = np.ones((study.runs, len(study.step_sizes)))
        error = np.asarray(errors.get(method, default), np.float64)
        curve = rng.uniform(0, 1, (*error.shape, 4))
        shown = rng.uniform(0, 1, (*error.shape, 8))
        key = (study.pairs[0], study.gap, method)
        # The middles of four equal parts of ten updates.
        steps = np.broadcast_to([1.25, 3.75, 6.25, 8.75], curve.shape)
        columns = {"error": error, "final": error, "curve": curve, "curve_steps": steps}
        cells[key] = MethodResults(study.step_sizes, columns | {"film": shown})
    return Results(study, "paper", cells)


def test_learning_curves_are_drawn_against_updates() -> None:
    results = results_of(STUDY, IR=[[1.0, 0.5], [1.0, 0.5]])
    picture = LEARNING_CURVES.draw(results)
    assert picture is not None
    (axes,) = picture.axes
    assert axes.get_xlabel() == "updates"
    lines = [np.asarray(line.get_xydata()) for line in axes.get_lines()]
    ours = next(line for line in lines if len(line) == 4)
    # Four equal parts of ten updates.
    np.testing.assert_allclose(ours[:, 0], [1.25, 3.75, 6.25, 8.75])
    expected = results.of("IR").curve[:, 1].mean(axis=0)
    assert any(np.allclose(line[:, 1], expected) for line in lines if len(line) == 4)


def test_the_film_shows_returns_and_mean_predictions_at_the_best_rate() -> None:
    results = results_of(STUDY, IR=[[1.0, 0.5], [1.0, 0.5]], IS=[[0.5, math.inf], [0.5, 1.0]])
    picture = draw_film(results)
    assert picture is not None
    *frames, axes = picture.axes
    assert len(frames) == 7
    np.testing.assert_array_equal(frames[0].get_images()[0].get_array(), states(8, 3).frames[0])
    np.testing.assert_array_equal(frames[-1].get_images()[0].get_array(), states(8, 3).frames[7])
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    assert set(lines) == set(METHODS)
    for method, lane in (("IR", 1), ("IS", 0)):
        x, y = np.asarray(lines[method].get_xydata()).T
        # A frame in three is kept, of ten a second.
        np.testing.assert_allclose(x, 0.3 * np.arange(8))
        film = results.of(method)["film"]
        np.testing.assert_allclose(y, film[:, lane].mean(axis=0))


@pytest.mark.parametrize(
    ("simulator", "runs", "told"),
    [
        ("torcs", 2, "TORCS, only 2 of 10 runs"),
        ("torcs", 9, "TORCS, only 9 of 10 runs"),
        ("torcs", 10, "TORCS"),
        ("torcs", 25, "TORCS"),
        ("car-racing", 2, "Gymnasium's CarRacing"),
    ],
)
def test_the_title_says_what_drove_and_how_often(simulator: str, runs: int, told: str) -> None:
    assert remark(replace(STUDY, simulator=simulator, runs=runs)) == told


@pytest.mark.parametrize(("simulator", "runs"), [("torcs", 2), ("torcs", 10), ("car-racing", 2)])
def test_the_title_fits_the_picture(simulator: str, runs: int) -> None:
    figure = paper.get(FIGURE)
    results = results_of(replace(STUDY, simulator=simulator, runs=runs))
    how = Provenance(
        "quick", runs, 0, "gvf reproduce", "1.2", "2 processors", "2026-01-02T03:04:05Z", 1.0
    )
    shown = Exhibit(figure, figure.read(results), (), (), (), {"paper": how}, {"paper": results})
    assert shown.title == f"{figure.title} ({remark(results.study)})"
    picture = shown.draw()
    picture.draw_without_rendering()
    (title,) = picture.texts
    assert title.get_text() == shown.title
    room, box = picture.bbox, title.get_window_extent()
    assert room.x0 < box.x0 < box.x1 < room.x1


# Statistics.


def test_the_spread_over_runs_is_that_of_every_sample_by_itself() -> None:
    rng = np.random.default_rng(3)
    study = replace(STUDY, runs=6, step_sizes=(0.1, 0.2, 0.3, 0.4))
    ir, plain = 1.0 + rng.normal(0, (1e-7, 0.1, 0.1, 0.1), (2, 6, 4))
    plain[:, 1] = 5 * plain[:, 1]
    plain[2, 2] = math.inf
    ir[2, 3] = plain[2, 3] = math.inf
    results = results_of(study, IR=ir, IS=plain)
    spread, more = _spread(results, "IS"), _steadier(results)
    counts = np.rint(resampling(6) * 6).astype(int)
    assert len(spread) == len(more) == len(counts) == 2001
    for sample in range(300):
        runs = np.repeat(np.arange(6), counts[sample])
        if len(set(runs.tolist())) == 1:
            continue  # all the same run
        ratios = []
        for rate in range(4):
            both = []
            for errors in (plain, ir):
                some = errors[runs, rate]
                both.append(some.std() if np.isfinite(some).all() else math.inf)
            # A relative error of 1e-9 remains where runs differ in the seventh digit.
            assert spread[sample, rate] == pytest.approx(both[0], rel=1e-6)
            ratios.append(1.0 if both == [math.inf] * 2 else both[0] / both[1])
        assert more[sample] == pytest.approx(sorted(ratios)[-2], rel=1e-6)


# Recording alone.


def test_what_a_study_needs_is_recorded_alone(cache: Path, capsys) -> None:
    with tiny_figure():
        assert main(["record"]) == 0
    here, lines = material(STUDY), capsys.readouterr().out.splitlines()
    for line, kind in zip(lines, ("stream", "states", "film"), strict=True):
        assert line.startswith(str(cache / "racing-1" / f"torcs-{kind}-"))
        assert line.endswith(getattr(here, kind).hash)


# The stream behind results.


def test_results_of_two_streams_do_not_mix(toml: str, tmp_path: Path, small: None, capsys) -> None:
    out = tmp_path / "out"
    assert main(["run", toml, "--out", str(out)]) == 0
    (log,) = out.glob("logs/*/*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["stream"] for line in lines} == {racing_task.material(STUDY).stream.hash}
    log.write_text("".join(json.dumps(line | {"stream": "of another"}) + "\n" for line in lines))
    assert main(["run", toml, "--runs", "3", "--out", str(out)]) == 2
    assert "come from another stream (of another...)" in capsys.readouterr().err
