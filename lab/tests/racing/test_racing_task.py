"""Tasks of the racing car against a plain loop, and their interruptions; from files alone."""

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_corrections import SquareRoot
from racing_by_hand import (
    GAMMA,
    METHODS,
    NEAR,
    PLACE,
    SD,
    STUDY,
    TARGET,
    checkpoints,
    put_material,
    recording,
    small_network,
    states,
)
from torch import nn

import gvf
from gvf.jobs.threads import Interrupted
from gvf.window.draw_batches import draw_batches as draw
from gvf_lab.racing import RacingStudy, racing_task
from gvf_lab.racing.network_lanes import Lanes
from gvf_lab.racing.racing_task import RacingOutcome, run_racing
from gvf_lab.study import Task
from gvf_lab.study.base_study import seed_for
from gvf_lab.study.encoding import encode
from gvf_lab.study.run_study import run
from gvf_lab.study.store import Store

pytestmark = pytest.mark.usefixtures("one_thread", "cache")


def file_of(task: Task, stop: Callable[[], bool] = lambda: False) -> bytes:
    """The file of a task, which then has no checkpoint any more."""
    content = encode(task, task.study.compute(task, stop))
    task.study.finished(task)
    return content


def stop_after(updates: int) -> Callable[[], bool]:
    asked = iter([False] * updates)
    return lambda: next(asked, True)


# What a run computes, done the dumb way.


OPTIMISERS: dict[str, Any] = {
    "sgd": torch.optim.SGD, "momentum": partial(torch.optim.SGD, momentum=0.9),
    "rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam,
}  # fmt: skip


def weights_by_hand(method: str, rho: np.ndarray, mean: float) -> np.ndarray:
    """The table of corrections."""
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
    """Errors at every measurement and predictions along the film, of each lane by itself."""
    stream, evaluated, shown = recording(study.steps, number), states(5, 2), states(8, 3)
    frames = torch.from_numpy(stream.frames)
    log_pi = -0.5 * ((stream.action - TARGET) / SD) ** 2 - math.log(SD * math.sqrt(2 * math.pi))
    rho = np.exp(log_pi - stream.log_mu)
    near = [abs(stream.lateral[at + 1]) < NEAR for at in stream.first]
    uniform, by_ratio = (
        draw(
            correction, rho, window=study.window, batch_size=study.batch_size,
            warm_up=study.warm_up, gap=study.gap, seed=seed_for(study.seed, number, "draws"),
        ).rows
        for correction in (gvf.corrections.IS(), gvf.corrections.IR())
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
                    at = int(stream.first[row])
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
    ("number", "optimiser"), [(0, "sgd"), (1, "momentum"), (1, "rmsprop"), (1, "adam")]
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
    from gvf_lab.racing.driving_network import driving_network

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

    def by_square_root(
        correction: gvf.corrections.Correction, ratio: np.ndarray, **options: Any
    ) -> Any:
        return rows(
            SquareRoot() if correction == gvf.corrections.IR() else correction, ratio, **options
        )

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
    far = replace(recording(), action=np.full(40, -1.0))
    far.save(tmp_path / PLACE / "torcs-stream-0-part-0-40")
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


def test_the_errors_of_a_constant_and_of_nothing_are_told(small: None) -> None:
    value = states(5, 2).value
    best = min(((value - guess) ** 2).mean() for guess in np.linspace(0, 1, 100_001))
    for outcome in run_racing(next(STUDY.tasks())):
        np.testing.assert_allclose(outcome.constant, [best] * 2, rtol=1e-6)
        np.testing.assert_allclose(outcome.zero, [(value**2).mean()] * 2)


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

    monkeypatch.setattr("gvf_lab.racing.driving_network.driving_network", slow_network)
    study = replace(STUDY, runs=3, methods=("IR", "IS"))  # those with material
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
        monkeypatch.setattr("gvf_lab.racing.driving_network.driving_network", small_network)
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
    small: None, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(STUDY.tasks())
    with pytest.raises(Interrupted):
        run_racing(task, stop_after(9))
    for changes in ({"warm_up": 7}, {"step_sizes": (0.01, 0.2)}, {"batch_size": 5}, {"gap": 2}):
        other = next(replace(STUDY, **changes).tasks())
        with pytest.raises(Interrupted):
            run_racing(other, stop_after(2))
    for name, changed in (
        ("states-5x2", states(5, 9)), ("stream-0-part-0-40", recording(seed=9)),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setenv("GVF_CACHE_DIR", str(tmp_path / name))
            shutil.copytree(cache, tmp_path / name)
            changed.save(tmp_path / name / PLACE / f"torcs-{name}")
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


def test_an_interrupt_waits_until_the_checkpoint_is_written(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = torch.save

    def slow(*given: Any) -> None:
        time.sleep(1.5)  # longer than other studies may take to stop
        save(*given)

    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    # The second run takes a checkpoint when the first one is stored.
    monkeypatch.setattr(torch, "save", slow)
    monkeypatch.setattr(Store, "save", interrupt)
    update = Lanes.update

    def long(self: Lanes, *given: Any) -> None:
        time.sleep(0.1)
        update(self, *given)

    monkeypatch.setattr(Lanes, "update", long)
    with pytest.raises(KeyboardInterrupt):
        run(STUDY, tmp_path, workers=1)
    assert len(checkpoints()) == 1
    checkpoints()[0].unlink()


def test_runs_at_once_leave_the_number_of_threads_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, ended = threading.Event(), threading.Event()
    during: list[int] = []

    def first(task: Task, stop: Any) -> None:
        began.wait(30)  # the other begins within this one and ends after it

    def second(task: Task, stop: Any) -> None:
        began.set()
        ended.wait(30)
        during.append(torch.get_num_threads())

    monkeypatch.setattr(
        racing_task, "_run", lambda task, stop: (first, second)[task.run](task, stop)
    )
    torch.set_num_threads(3)  # the fixture restores the number
    threads = [threading.Thread(target=run_racing, args=(task,)) for task in STUDY.tasks()]
    threads[0].start()
    while _threads_of_a_new_thread() != 1:
        time.sleep(0.01)
    threads[1].start()
    threads[0].join()
    ended.set()
    threads[1].join()
    assert during == [1]
    assert _threads_of_a_new_thread() == 3


def _threads_of_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_a_run_whose_result_cannot_be_stored_goes_on_from_its_checkpoint(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = replace(STUDY, runs=1)

    def full(self: Store, task: Task, content: bytes) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(racing_task, "CHECKPOINT_EVERY", 0.0)
        patch.setattr(Store, "save", full)
        with pytest.raises(OSError, match="no space left"):
            run(study, tmp_path)
    assert len(checkpoints()) == 1  # of all ten updates
    monkeypatch.setattr("gvf_lab.racing.network_lanes.Lanes.update", None)
    assert run(study, tmp_path).done == 1
    assert checkpoints() == []


def test_an_update_is_timed_without_a_recording(small: None, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "empty"))
    clock = iter([10.0, 16.0])
    monkeypatch.setattr(racing_task.time, "perf_counter", lambda: next(clock))
    assert racing_task.seconds_of_an_update(STUDY, several=3) == 2.0
