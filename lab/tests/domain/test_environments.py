"""Environments of the domains: what the map allows, seeds, kernels against environments."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random
from hypothesis import given
from hypothesis import strategies as st
from maps import MAP, is_wall, tabular
from numba import njit

import gvf
from gvf.policies import Table
from gvf.policies.policy import thresholds
from gvf_lab.domain import get
from gvf_lab.domain.body import NOISE, RESTING_PLACES, SOLID_CELLS, cell_of, move_body, start_body
from gvf_lab.domain.continuous_four_rooms import cells_of
from gvf_lab.domain.tabular import draw_outcome, draw_start, first_above, outcome_sums

TABULAR = ["markov-chain", "four-rooms", "star", "collision", "rooms"]
ENVIRONMENTS = {
    "gvf/MarkovChain-v0": 2,
    "gvf/FourRooms-v0": 4,
    "gvf/ContinuousFourRooms-v0": 4,
    "gvf/Star-v0": 2,
    "gvf/Collision-v0": 2,
    "gvf/Rooms-v0": 4,
    "gvf/HighVarianceRooms-v0": 4,
}


# Environments


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_is_what_gymnasium_expects(name: str) -> None:
    env = gym.make(name)
    assert env.action_space == gym.spaces.Discrete(ENVIRONMENTS[name])
    check_env(env.unwrapped)


def test_authors_noise_is_an_argument_of_the_environment() -> None:
    check_env(gym.make("gvf/ContinuousFourRooms-v0", protocol="authors").unwrapped)
    with pytest.raises(ValueError, match=r"unknown protocol: 'both'; known are 'paper', 'authors'"):
        gym.make("gvf/ContinuousFourRooms-v0", protocol="both")


@pytest.mark.parametrize(
    "program",
    [
        "import gymnasium; print(gymnasium.make('gvf_lab:gvf/FourRooms-v0').reset(seed=0))",
        "import gymnasium, gvf_lab; print(gymnasium.make('gvf/FourRooms-v0').reset(seed=0))",
        "import gvf_lab, sys; assert 'gymnasium' not in sys.modules\n"
        "import gymnasium; print(gymnasium.make('gvf/FourRooms-v0').reset(seed=0))",
    ],
    ids=["by its module", "Gymnasium first", "the laboratory first"],
)
def test_an_environment_is_made_by_its_name_alone(program: str) -> None:
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "(80, {'collision': False})\n", done.stderr


def test_importing_the_domains_compiles_nothing() -> None:
    program = (
        "import gvf_lab.domain, sys\n"
        "kernels = [kernel for name, module in sys.modules.items() if "
        "name.startswith('gvf_lab.domain')"
        " for kernel in vars(module).values() if hasattr(kernel, 'signatures')]\n"
        "print(len(kernels) >= 10, sum(len(kernel.signatures) for kernel in kernels))"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True 0\n"


@pytest.mark.parametrize("name", ENVIRONMENTS)
@given(seed=st.integers(0, 2**31 - 1))
def test_the_same_seed_gives_the_same_stream(name: str, seed: int) -> None:
    def walk(seed: int) -> list[list[float]]:
        env = gym.make(name).unwrapped
        states = [env.reset(seed=seed)[0]]
        states += [env.step(i % ENVIRONMENTS[name])[0] for i in range(20)]
        return [np.ravel(state).tolist() for state in states]

    assert walk(seed) == walk(seed)


def test_other_seeds_give_other_streams() -> None:
    env = gym.make("gvf/ContinuousFourRooms-v0")
    assert len({tuple(env.reset(seed=seed)[0]) for seed in range(20)}) == 20


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("action", [-1, 4, 1.0, "up", None])
def test_an_action_outside_the_space_is_an_error(name: str, action: object) -> None:
    env = gym.make(name).unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action .* is not one of 0 (left|up|dashed|forward), 1 "):
        env.step(action)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_stepping_and_drawing_need_a_reset_first(name: str) -> None:
    env = gym.make(name, render_mode="ansi").unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.render()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_unknown_render_mode_lists_the_known_ones(name: str) -> None:
    kind: Any = type(gym.make(name).unwrapped)
    with pytest.raises(ValueError, match=r"render_mode: 'human'; known are 'ansi', 'rgb_array'"):
        kind(render_mode="human")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_picture_follows_the_state(name: str) -> None:
    env = gym.make(name, render_mode="rgb_array")
    env.reset(seed=3)
    before = env.render()
    assert isinstance(before, np.ndarray)
    assert before.dtype == np.uint8
    assert before.shape[2] == 3
    env.step(0)
    after = env.render()
    assert isinstance(after, np.ndarray)
    assert (after != before).any()


def test_the_text_shows_the_agent_on_the_map() -> None:
    env = gym.make("gvf/FourRooms-v0", render_mode="ansi")
    state, _ = env.reset(seed=3)
    text = env.render()
    assert isinstance(text, str)
    assert text.replace("A", ".").split() == MAP
    assert text.replace("\n", "").index("A") == state


def test_the_end_of_the_chain_ends_the_episode() -> None:
    env = gym.make("gvf/MarkovChain-v0").unwrapped
    for action, end, reward in ((0, 0, 0.0), (1, 9, 1.0)):
        state, _ = env.reset(seed=0)
        rewards, terminated = [], False
        while not terminated:
            previous = state
            state, last, terminated, truncated, _ = env.step(action)
            rewards.append(last)
            assert state == previous + (-1, 1)[action]
            assert not truncated
        assert state == end
        assert rewards == [0.0] * (len(rewards) - 1) + [reward]
        assert env.step(action) == (end, 0.0, True, False, {})


def test_episodes_of_the_chain_begin_in_all_eight_states_alike() -> None:
    env = gym.make("gvf/MarkovChain-v0")
    env.reset(seed=0)
    starts = np.bincount([env.reset()[0] for _ in range(8000)], minlength=10)
    assert starts[[0, 9]].sum() == 0
    # 5 standard deviations of a binomial count.
    assert np.abs(starts[1:9] - 1000).max() < 5 * math.sqrt(1000 * 7 / 8)


@given(state=st.integers(0, 6), ray=st.integers(0, 5), inside=st.floats(0.01, 0.99))
def test_the_star_moves_to_its_rays_or_its_centre(state: int, ray: int, inside: float) -> None:
    star, uniform = tabular("star"), (ray + inside) / 6
    sums = outcome_sums(star.model)
    assert star.model.next_state.flat[draw_outcome(sums, 2, state, 0, uniform)] == ray
    assert star.model.next_state.flat[draw_outcome(sums, 2, state, 1, uniform)] == 6


@given(cell=st.integers(0, 103), action=st.integers(0, 3))
def test_every_step_of_the_tabular_rooms_is_one_the_map_allows(cell: int, action: int) -> None:
    rooms = tabular("four-rooms")
    state = int(rooms.starts[cell])
    row, column = divmod(state, 11)
    assert MAP[row][column] == "."
    down, right = [(-1, 0), (0, 1), (1, 0), (0, -1)][action]
    collides = is_wall(row + down, column + right)
    expected = state if collides else 11 * (row + down) + column + right
    assert rooms.model.next_state[state, action].tolist() == [expected]
    assert rooms.model.reward[state, action].tolist() == [float(collides)]


def test_the_rooms_tell_collisions_in_info() -> None:
    for name in ("gvf/FourRooms-v0", "gvf/ContinuousFourRooms-v0"):
        env = gym.make(name)
        _, info = env.reset(seed=0)
        assert info == {"collision": False}
        seen = []
        for _ in range(60):
            _, reward, terminated, truncated, info = env.step(2)
            assert reward == float(info["collision"])
            assert not terminated
            assert not truncated
            seen.append(reward)
        assert set(seen) == {0.0, 1.0}


# One step function


@njit
def run_table(rng, actions, sums, following, reward, terminal, starts, states, rewards):
    """The tabular loop, with the uniform numbers that an environment would take."""
    state = draw_start(starts, rng.random())
    for i in range(actions.size):
        outcome = draw_outcome(
            sums, sums.shape[0] // terminal.size, state, actions[i], rng.random()
        )
        state = following[outcome]
        states[i], rewards[i] = state, reward[outcome]
        if terminal[state]:
            state = draw_start(starts, rng.random())


@pytest.mark.parametrize("name", TABULAR)
def test_table_and_environment_take_the_same_hundred_thousand_steps(name: str) -> None:
    domain, steps = tabular(name), 100_000
    env = domain.make()
    count = domain.table(next(iter(domain.behaviours.values()))).shape[1]
    actions = np.random.default_rng(1).integers(count, size=steps)
    env.reset(seed=2)
    visited, received = [], []
    for action in actions:
        state, reward, terminated, _, _ = env.step(action)
        visited.append(state)
        received.append(reward)
        if terminated:
            env.reset()
    states, rewards, model = np.empty(steps, np.int64), np.empty(steps), domain.model
    run_table(
        np_random(2)[0],
        actions,
        outcome_sums(model),
        model.next_state.ravel(),
        model.reward.ravel(),
        model.terminal,
        domain.starts,
        states,
        rewards,
    )
    assert np.array_equal(states, visited)
    assert np.array_equal(rewards, received)


@njit
def run_body(rng, actions, solid, noise, resting, states, rewards):
    y, x = start_body(rng.random(), rng.random(), rng.random(), resting)
    for i in range(actions.size):
        u_length, u_radius, u_angle = rng.random(), rng.random(), rng.random()
        y, x, collided = move_body(y, x, actions[i], u_length, u_radius, u_angle, solid, noise)
        states[i, 0], states[i, 1], rewards[i] = y, x, collided


@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_body_and_environment_take_the_same_hundred_thousand_steps(protocol: str) -> None:
    steps = 100_000
    env = get("continuous-four-rooms", protocol).make()
    actions = np.random.default_rng(1).integers(4, size=steps)
    env.reset(seed=2)
    outcomes = [env.step(action)[:2] for action in actions]
    visited, received = zip(*outcomes, strict=True)
    states, rewards = np.empty((steps, 2)), np.empty(steps)
    run_body(
        np_random(2)[0], actions, SOLID_CELLS, NOISE[protocol], RESTING_PLACES, states, rewards
    )
    assert np.array_equal(states, np.array(visited))
    assert np.array_equal(rewards, np.array(received))


@given(y=st.floats(0, 11), x=st.floats(0, 11))
def test_kernels_and_policies_agree_on_cells(y: float, x: float) -> None:
    assert cell_of(y, x) == cells_of([[y, x]])[0] == 11 * min(int(y), 10) + min(int(x), 10)


@given(seed=st.integers(0, 2**32))
def test_kernels_and_policies_draw_the_same_actions(seed: int) -> None:
    policy = Table(seldom := np.random.default_rng(seed).dirichlet(np.ones(4) / 4, 8))
    drawn = policy.sample(np.arange(8), rng=np.random.default_rng(seed))
    uniforms = np.random.default_rng(seed).random(8)
    sums = thresholds(seldom)
    assert [first_above(sums, row, u) for row, u in enumerate(uniforms)] == drawn.tolist()


def test_a_log_is_recorded_from_an_environment_of_the_laboratory(tmp_path: Path) -> None:
    out = tmp_path / "rooms.parquet"
    command = [sys.executable, "-m", "gvf", "record", "gvf/FourRooms-v0", "--steps", "20"]
    done = subprocess.run([*command, "--out", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(gvf.read_log(out, quiet=True)) == 20
