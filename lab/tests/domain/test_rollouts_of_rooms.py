"""Truths of the continuous rooms: rollouts against means, visits, and files of their own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from gvf.policies.policy import thresholds
from gvf.sampling.xoshiro import streams
from gvf.truth import held_out_returns
from gvf_lab.domain import ContinuousDomain, continuous_four_rooms, get
from gvf_lab.domain import room_rollouts as evaluation
from gvf_lab.domain.body import NOISE, SOLID_CELLS
from gvf_lab.domain.four_rooms import FREE

DOWN = np.eye(4)[[2] * 121]
COLLISION = np.array([0.0, 1.0]), np.array([0.9, 0.0])


def continuous(protocol: str = "paper") -> ContinuousDomain:
    domain = get("continuous-four-rooms", protocol)
    assert isinstance(domain, ContinuousDomain)
    return domain


# Rollouts


def uniform_points(count: int) -> np.ndarray:
    rng = np.random.default_rng(8)
    cells = FREE[rng.integers(len(FREE), size=count)]
    return np.stack(np.divmod(cells, 11), axis=1) + rng.random((count, 2))


def test_step_size_zero_in_the_continuous_rooms() -> None:
    points = uniform_points(20_000)
    wrong = evaluation.roll_out(points, DOWN, COLLISION, 5, protocol="authors", seed=1).mean(axis=1)
    right = np.empty((len(points), 5))
    evaluation._roll_out(
        right,
        points,
        thresholds(DOWN),
        *COLLISION,
        evaluation.CUTOFF,
        streams(len(points), 1),
        SOLID_CELLS,
        NOISE["authors"],
    )
    # Known to three digits: half of the last one, and 4 standard errors of this sample.
    for values, known in ((wrong, 0.684), (right.mean(axis=1), 0.617)):
        assert abs(values.mean() - known) < 0.0005 + 4 * values.std() / np.sqrt(len(values))


def test_rollouts_agree_with_returns_of_the_environment() -> None:
    rooms = continuous()
    question, mu = rooms.question("favoured-down"), rooms.behaviour("uniform")
    held_out = held_out_returns(
        rooms.make(), question, behaviour=mu, states=40, rollouts=40, run_length=30, seed=2
    )
    target = rooms.table(rooms.target("favoured-down"))
    returns = evaluation.roll_out(
        held_out.states, target, rooms.signals("favoured-down"), 4000, protocol="paper", seed=3
    )
    # The difference of means is within 4 standard errors.
    bias = held_out.error(lambda states: returns.mean(axis=1)).bias
    assert abs(bias.value) < 4 * bias.standard_error
    assert np.corrcoef(held_out.values, returns.mean(axis=1))[0, 1] > 0.9


def test_a_state_keeps_its_returns_however_many_there_are() -> None:
    points = uniform_points(120)
    many = evaluation.roll_out(points, DOWN, COLLISION, 3, protocol="paper", seed=1)
    few = evaluation.roll_out(points[:7], DOWN, COLLISION, 3, protocol="paper", seed=1)
    assert np.array_equal(many[:7], few)


def ends(rooms: ContinuousDomain, behaviour: str, runs: int, steps: int) -> np.ndarray:
    """The positions [runs, 2] in which runs of the environment end."""
    rng, table = np.random.default_rng(9), thresholds(rooms.table(rooms.behaviour(behaviour)))
    environment, found = rooms.make().unwrapped, np.empty((runs, 2))
    for run in range(runs):
        state, _ = environment.reset(seed=run)
        for u in rng.random(steps):
            cell = 11 * int(state[0]) + int(state[1])
            state, *_ = environment.step(int(np.searchsorted(table[cell], u, side="right")))
        found[run] = state
    return found


def same_law(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of the hypothesis that two samples come from one law."""
    test: Any = scipy.stats.ks_2samp(one, other)
    return test.pvalue


@pytest.mark.parametrize(
    ("protocol", "steps"), [("paper", evaluation.SPACING), ("authors", evaluation.RUN)]
)
def test_states_are_visited_as_often_as_in_the_environment(protocol: str, steps: int) -> None:
    """Rows and columns have one law (Kolmogorov and Smirnov, level 1e-4 over the eight tests)."""
    rooms, seen, there = continuous(protocol), {}, {}
    for name in ("uniform", "random-state"):
        table = rooms.table(rooms.behaviour(name))
        states = evaluation.visited_states(table, 1000, protocol=protocol, seed=5)
        # Cells, since under "authors" a state is anywhere in the cell in which its run ended.
        seen[name], there[name] = states.astype(int), ends(rooms, name, 50, steps).astype(int)
        for axis in (0, 1):
            assert same_law(seen[name][:, axis], there[name][:, axis]) > 1e-4 / 8
    # The rows of the two behaviours differ by far more than that.
    assert same_law(seen["uniform"][:, 0], there["random-state"][:, 0]) < 1e-4 / 8
    assert same_law(seen["random-state"][:, 0], there["uniform"][:, 0]) < 1e-4 / 8


def test_positions_of_a_long_run_are_nearly_independent() -> None:
    table = np.full((121, 4), 0.25)
    states = evaluation.visited_states(table, 1000, protocol="paper", seed=6)
    centred = states - states.mean(axis=0)
    correlation = (centred[1:] * centred[:-1]).mean(axis=0) / centred.var(axis=0)
    # 4 standard errors of an autocorrelation that is 0.
    assert (np.abs(correlation) < 4 / np.sqrt(1000)).all()


# The truth of the continuous rooms, and its cache


def test_emphasis_sums_what_follows_from_visits() -> None:
    # The value of a state is the sum of the cumulants that follow, so the mean value of visited
    # states is the mean of the next cumulant over states that are weighted by emphasis.
    rooms = get("continuous-four-rooms")
    assert isinstance(rooms, ContinuousDomain)
    pi, signals = rooms.table(rooms.target("favoured-down")), rooms.signals("favoured-down")
    mu = rooms.table(rooms.behaviour("uniform"))
    starts = evaluation.visited_states(mu, 2000, protocol="paper", seed=1)
    states, weights = evaluation.followed_states(starts, pi, signals[1], protocol="paper", seed=2)
    returns = evaluation.roll_out(starts, pi, signals, 20, protocol="paper", seed=3).mean(axis=1)
    once = (signals[0], np.zeros(2))
    following = evaluation.roll_out(states, pi, once, 20, protocol="paper", seed=4).mean(axis=1)
    difference = weights * following - returns
    assert abs(difference.mean()) < 3 * difference.std() / np.sqrt(2000)
    assert 2 < weights.mean() < 10
    assert weights.min() == pytest.approx(1.0)


def test_positions_may_count_by_their_emphasis(tmp_path: Path) -> None:
    plain, weighted = get("continuous-four-rooms"), get("continuous-four-rooms-emphasis")
    assert isinstance(plain, ContinuousDomain)
    assert isinstance(weighted, ContinuousDomain)
    visited, truth = (
        one.truth("down", "uniform", states=20, rollouts=2, folder=tmp_path)
        for one in (plain, weighted)
    )
    assert visited.weights is None
    assert truth.weights is not None
    truth.check()
    # A walk may be drawn at its start, which is the position that the behaviour visits.
    ahead = truth.states[:, 0] - visited.states[:, 0]
    assert ahead.min() == 0 < ahead.max()
    assert np.array_equal(ahead == 0, (truth.states == visited.states).all(axis=1))
    again = weighted.truth("down", "uniform", states=20, rollouts=2, folder=tmp_path)
    assert again.weights is not None
    assert np.array_equal(again.weights, truth.weights)
    with pytest.raises(ValueError, match="unknown weighting: 'uniform'"):
        replace(plain, weighting="uniform")


def test_a_truth_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = continuous()
    options: Any = {"states": 20, "rollouts": 5, "folder": tmp_path}
    first = rooms.truth("down", "uniform", **options)
    assert first.states.shape == (20, 2)
    assert first.values.shape == first.noise.shape == (20,)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("continuous-four-rooms-")
    assert file.suffix == ".npz"
    monkeypatch.setattr(continuous_four_rooms, "roll_out", None)
    again = rooms.truth("down", "uniform", **options)
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.states, again.states)
    with pytest.raises(TypeError, match="not callable"):
        rooms.truth("down", "uniform", **options, seed=1)


def test_every_truth_has_a_file_of_its_own(tmp_path: Path) -> None:
    small: Any = {"states": 4, "rollouts": 2, "folder": tmp_path}
    for protocol in ("paper", "authors"):
        rooms = continuous(protocol)
        for pair in rooms.pairs:
            rooms.truth(*pair, **small)
    rooms.truth("down", "uniform", **(small | {"states": 5}))
    rooms.truth("down", "uniform", **(small | {"rollouts": 3}))
    rooms.truth("down", "uniform", **small, seed=1)
    assert len(list(tmp_path.iterdir())) == 2 * 6 + 3


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY", b"text"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, content: bytes) -> None:
    rooms = continuous()
    options: Any = {"states": 4, "rollouts": 2, "folder": tmp_path}
    first = rooms.truth("down", "uniform", **options)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (content, whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        assert np.array_equal(rooms.truth("down", "uniform", **options).values, first.values)
        assert file.read_bytes() == whole


def test_a_continuous_truth_needs_a_behaviour_and_numbers(tmp_path: Path) -> None:
    rooms = continuous()
    with pytest.raises(ValueError, match="a behaviour visits: name one of 'uniform', 'random-st"):
        rooms.truth("down")
    with pytest.raises(ValueError, match="rollouts must be at least 1, got 0"):
        rooms.truth("down", "uniform", rollouts=0, folder=tmp_path)
