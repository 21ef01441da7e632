"""The example of the humanoid, on a robot that needs no simulator; and on MuJoCo where it is."""

from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from examples.humanoid import findings, judge
from examples.humanoid.__main__ import main
from examples.humanoid.learn import CORRECTIONS, QUICK
from examples.humanoid.robot import (
    CONTINUATIONS,
    HUMANOID,
    SD,
    Calibration,
    Robot,
    expected_share,
)
from examples.humanoid.simulate import held_out, stream
from examples.humanoid.work import FIRST, OTHERS, Folder


class Cart(gym.Env[np.ndarray, np.ndarray]):
    """Carts that are pushed: their positions and velocities, a clock, and a constant channel."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (6,))
        self.action_space = gym.spaces.Box(-0.4, 0.4, (2,))
        self.x = np.zeros(4)
        self.clock = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x, self.clock = self.np_random.normal(size=4), 0
        return self._seen(), {}

    def step(self, action: np.ndarray) -> Any:
        self.x = 0.9 * self.x + 0.1 * np.roll(self.x, 2) + np.append(action, [0.0, 0.0])
        self.clock += 1
        return self._seen(), 0.0, False, False, {}

    def _seen(self) -> np.ndarray:
        return np.append(self.x, [float(self.clock), 7.0]).astype(np.float32)


def make_carts() -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(Cart(), 30)


def saved(env: Any) -> Any:
    return env.unwrapped.x.copy(), env.unwrapped.clock


def restore(env: Any, state: Any) -> None:
    env.unwrapped.x, env.unwrapped.clock = state


CARTS = Robot(
    make_carts,
    saved,
    restore,
    actions=2,
    directions={"left": (0,), "both": (0, 1), "right": (1,)},
    parts={"cart": 4, "clock": 1, "constant": 1},
    shown={"cart 0": "the first cart"},
    step=10.0,
)
CLOCK = CARTS.channels.index("clock 0")


def test_the_whole_example_runs_and_goes_on_where_it_was(tmp_path: Path, capsys) -> None:
    arguments = ["--quick", "--results", str(tmp_path / "a"), "--pictures", str(tmp_path / "b")]
    main(arguments, CARTS)
    pieces = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*.npz")}
    some = next(path for path in pieces if path.name.startswith("held out"))
    some.unlink()
    tables = {path: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    assert {path.suffix for path in tables} == {".csv", ".markdown", ".png"}
    main(arguments, CARTS)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*.npz")}
    assert {path for path in pieces if kept[path] != pieces[path]} == {some}
    again = {path: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    assert [path.name for path in tables if again[path] != tables[path]] == []
    assert "questions                255" in capsys.readouterr().out  # 17 targets x 5 sensors x 3


def test_returns_begin_in_the_state_and_have_all_horizons() -> None:
    found = held_out(CARTS, rollouts=2, longest=40, seed=5)
    clock = found["state"][CLOCK]
    assert 0 < clock < 30
    steps = clock + 1 + np.arange(40)
    for c, gamma in enumerate(CONTINUATIONS):
        discounts = gamma ** np.arange(40)
        np.testing.assert_allclose(found["returns"][:, :, c, CLOCK], discounts @ steps, rtol=1e-5)
        np.testing.assert_allclose(found["discounts"][:, :, c], discounts.sum())
    others = np.delete(found["returns"], [CLOCK, CLOCK + 1], axis=-1)
    assert (others[:, 0] != others[:, 1]).all()  # two rollouts differ


def test_a_push_moves_the_returns_of_what_is_pushed() -> None:
    far = CARTS.checked.index("left 3")
    found = [held_out(CARTS, 1, 60, seed)["returns"][:, 0, -1, 0] for seed in range(5)]
    assert all(returns[far] > returns[0] for returns in found)


@pytest.mark.parametrize("name", ["left 0.5", "both 1", "calm 0.8"])
def test_the_expected_share_is_that_of_many_ratios(name: str) -> None:
    target, rng = CARTS.targets[name], np.random.default_rng(0)
    actions = CARTS.behaviour.sample(np.zeros(400_000), rng=rng)
    logs = [policy.log_probability(actions, actions) for policy in (target, CARTS.behaviour)]
    ratios = np.exp(logs[0] - logs[1])
    share = ratios.sum() ** 2 / np.square(ratios).sum() / len(ratios)
    assert expected_share(target) == pytest.approx(share, rel=0.02)


def test_targets_are_as_far_as_their_names_say() -> None:
    mean = np.asarray(CARTS.targets["both 2"].mean)
    assert np.linalg.norm(mean) == pytest.approx(2 * SD)
    assert len(HUMANOID.targets) == 25
    assert len(HUMANOID.channels) == 348


def test_sensors_are_scaled_and_constants_left_out() -> None:
    states = stream(CARTS, 500, seed=1)["state"]
    calibration = Calibration(states.astype(float), most=4)
    assert calibration.varying.tolist() == [0, 1, 2, 3, CLOCK]
    scaled = calibration.scaled(states)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0, rtol=1e-6)
    x = calibration.features(states)
    assert x.shape == (500, calibration.size) == (500, 4)
    assert calibration.length == pytest.approx(np.square(x).sum(axis=1).mean())
    inner = np.cov(x[:, 1:].T)
    np.testing.assert_allclose(inner - np.diag(np.diag(inner)), 0.0, atol=1e-6)
    assert (np.diag(inner) < 1.0).all()


def test_errors_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    returns, predictions = rng.normal(size=(5, 2, 3, 4, 2)), rng.normal(size=(5, 3, 4, 2))
    found, wide = judge.sums(predictions, returns), judge.all_but_one(5)
    for left_out, errors in enumerate(judge.errors(found, wide)):
        some = np.arange(5) != left_out
        for question in np.ndindex(3, 4, 2):
            g = returns[(some, slice(None), *question)]
            wrong = np.mean([(predictions[(s, *question)] - returns[(s, slice(None), *question)])
                             ** 2 for s in np.flatnonzero(some)])  # fmt: skip
            assert errors[question] == pytest.approx(wrong / g.var())
    assert judge.drawn(5, 10).sum(axis=1).tolist() == [5.0] * 10


def test_a_prediction_that_diverged_has_the_worst_error() -> None:
    returns, predictions = (
        np.random.default_rng(0).normal(size=(4, 2, 1, 1, 2)),
        np.zeros((4, 1, 1, 2)),
    )
    predictions[..., 0] = [[[np.nan]], [[np.inf]], [[1e30]], [[0.0]]]
    bad, good = judge.errors(judge.sums(predictions, returns), judge.all_states(4))[0, 0, 0]
    assert bad == judge.WORST
    assert good < 2.0


def test_chance_is_what_differs_between_rollouts_of_a_state() -> None:
    rng = np.random.default_rng(0)
    state, rollout = rng.normal(size=(50_000, 1)), rng.normal(size=(50_000, 2))
    returns = (3.0 * state + rollout)[:, :, None, None, None]
    assert judge.by_chance(returns)[0, 0, 0] == pytest.approx(0.1, abs=0.005)


def test_the_share_of_a_change_is_not_lowered_by_chance() -> None:
    rng = np.random.default_rng(0)
    change = rng.normal(size=(1, 400, 1))  # of the second target, by question
    returns = rng.normal(size=(20, 2, 2, 400, 1)) * 3.0
    returns[:, :, 1] += change[0]
    predicted = np.zeros((20, 2, 400, 1))
    predicted[:, 1] = 0.5 * change[0]
    slopes = findings._slopes(predicted, returns, judge.all_states(20))
    assert slopes[:, 0].tolist() == [0.0, pytest.approx(0.5, abs=0.05)]


def test_a_correction_is_judged_by_states_and_streams_that_did_not_choose(tmp_path: Path) -> None:
    folder = Folder(tmp_path, CARTS, QUICK)
    folder.simulate()
    folder.compare(FIRST, list(product(CORRECTIONS, QUICK.step_sizes)))
    chosen = findings.choose(folder)
    for seed in OTHERS:
        folder.compare(seed, sorted({(c, size) for (c, _), size in chosen.items()}))
    before = findings.comparison(folder, chosen)
    for path in tmp_path.glob("*stream 1.npz"):
        path.unlink()
    for i in range(QUICK.choosing):
        arrays = folder.read(f"held out {i}")
        np.savez(tmp_path / f"held out {i}.npz", **{**arrays, "returns": arrays["returns"] + 9.0})
    assert str(findings.comparison(folder, chosen)) == str(before)
    ours = [row["ratio"] for row in before if row["correction"] == "IR"]
    assert ours == [1.0] * len(CARTS.checked)


def test_mujoco_goes_on_alike_from_a_saved_state() -> None:
    pytest.importorskip("mujoco")
    env, rng = HUMANOID.make(), np.random.default_rng(0)
    env.reset(seed=0)
    actions = rng.normal(0.0, SD, size=(40, HUMANOID.actions)).clip(-0.4, 0.4)
    for action in actions[:20]:
        env.step(action)
    start = HUMANOID.saved(env)
    first = [env.unwrapped.step(action)[0] for action in actions[20:]]
    HUMANOID.restore(env, start)
    second = [env.unwrapped.step(action)[0] for action in actions[20:]]
    assert np.array_equal(first, second)
    assert sum(HUMANOID.parts.values()) == len(first[0])


def test_the_humanoid_runs_in_seconds() -> None:
    pytest.importorskip("mujoco")
    found = held_out(HUMANOID, rollouts=1, longest=5, seed=0)
    assert found["returns"].shape == (13, 1, 3, 348)
    assert len(stream(HUMANOID, 30, seed=0)["state"]) == 30
