"""The domains: what the map allows, seeds, policies and ratios, kernels against environments."""

import dataclasses
import itertools
import math
import pickle
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import gvf
from gvf import stream
from gvf.domain import CellDomain, ContinuousDomain, TabularDomain, get, names
from gvf.domain.body import NOISE, RESTING, SOLID, cell_of, move_body, start_body
from gvf.domain.continuous_four_rooms import CellTable, cells_of, random_weights
from gvf.domain.four_rooms import SPECIAL, WALLS
from gvf.domain.tabular import draw_outcome, draw_start, first_above, outcome_sums
from gvf.policy import Table, ratio
from gvf.policy.base import thresholds
from gvf.truth import held_out_returns

MAP = [
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
    ".....#.....",
    "#.####.....",
    ".....###.##",
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
]
TABULAR = ["markov-chain", "four-rooms", "star"]
ROOMS = ["four-rooms", "continuous-four-rooms"]
ENVIRONMENTS = {
    "gvf/MarkovChain-v0": 2,
    "gvf/FourRooms-v0": 4,
    "gvf/ContinuousFourRooms-v0": 4,
    "gvf/Star-v0": 2,
}
# As generators make them: smaller ones than these make no difference to 1 - u.
UNIT = st.integers(0, 2**53 - 1).map(lambda i: i / 2**53)


def tabular(name: str) -> TabularDomain:
    domain = get(name)
    assert isinstance(domain, TabularDomain)
    return domain


def is_wall(y: float, x: float) -> bool:
    """Return True if a point is in a wall or outside the map, the dumb way."""
    row, column = math.floor(y), math.floor(x)
    inside = 0 <= row < 11 and 0 <= column < 11
    return not inside or MAP[row][column] == "#"


def overlaps(y: float, x: float) -> bool:
    extremes = [(y - 0.1, x), (y + 0.1, x), (y, x - 0.1), (y, x + 0.1)]
    return any(is_wall(*point) for point in extremes)


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


def test_an_environment_is_made_with_nothing_imported() -> None:
    program = "import gymnasium; print(gymnasium.make('gvf:gvf/FourRooms-v0').reset(seed=0))"
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "(80, {'collision': False})\n", done.stderr


def test_importing_the_domains_compiles_nothing() -> None:
    program = (
        "import gvf.domain, sys\n"
        "kernels = [kernel for name, module in sys.modules.items() if name.startswith('gvf.domain')"
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
    with pytest.raises(ValueError, match=r"action .* is not one of 0 (left|up|dashed), 1 "):
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


# The body


def moved(y, x, action, uniforms, protocol):
    u_length, u_radius, u_angle = uniforms
    return move_body(y, x, action, u_length, u_radius, u_angle, SOLID, NOISE[protocol])


def dumb_move(y, x, action, length, drift):
    """Ten sub-steps, the four extreme points looked up one by one."""
    dy, dx = {0: (-length, drift), 1: (drift, length), 2: (length, drift), 3: (drift, -length)}[
        action
    ]
    for i in range(1, 11):
        at_y, at_x = y + i / 10 * dy, x + i / 10 * dx
        flush_y, flush_x = at_y, at_x
        if is_wall(at_y + 0.1, at_x):
            flush_y = math.floor(at_y + 0.1) - 0.1
        if is_wall(at_y - 0.1, at_x):
            flush_y = math.floor(at_y - 0.1) + 1.1
        if is_wall(at_y, at_x + 0.1):
            flush_x = math.floor(at_x + 0.1) - 0.1
        if is_wall(at_y, at_x - 0.1):
            flush_x = math.floor(at_x - 0.1) + 1.1
        if overlaps(at_y, at_x):
            return flush_y, flush_x, True
    return y + dy, x + dx, False


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@given(
    start=st.tuples(UNIT, UNIT, UNIT),
    steps=st.lists(st.tuples(st.integers(0, 3), UNIT, UNIT, UNIT), max_size=30),
)
def test_no_extreme_point_of_the_body_is_ever_in_a_wall(protocol, start, steps) -> None:
    y, x = start_body(start[0], start[1], start[2], RESTING)
    assert not overlaps(y, x)
    for action, *uniforms in steps:
        y, x, _ = moved(y, x, action, uniforms, protocol)
        assert not overlaps(y, x)


@njit
def count_overlaps(steps, rng, solid, noise, resting):
    """Count how often an extreme point is in a wall, in a long random walk."""
    y, x = start_body(rng.random(), rng.random(), rng.random(), resting)
    count = 0
    for _ in range(steps):
        action = int(4 * rng.random())
        y, x, _ = move_body(y, x, action, rng.random(), rng.random(), rng.random(), solid, noise)
        row, column = math.floor(y) + 1, math.floor(x) + 1
        count += (
            solid[math.floor(y - 0.1) + 1, column]
            or solid[math.floor(y + 0.1) + 1, column]
            or solid[row, math.floor(x - 0.1) + 1]
            or solid[row, math.floor(x + 0.1) + 1]
        )
    return count


@pytest.mark.parametrize("noise", [*NOISE.values(), np.array([0.6, 0.2, 0.1])])
def test_no_extreme_point_is_in_a_wall_in_two_million_steps(noise) -> None:
    # The last noise drifts ten times as far as the paper's, so that corners are met more often.
    assert count_overlaps(2_000_000, np.random.default_rng(5), SOLID, noise, RESTING) == 0


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@given(
    start=st.tuples(UNIT, UNIT, UNIT),
    steps=st.lists(st.tuples(st.integers(0, 3), UNIT, UNIT, UNIT), min_size=1, max_size=10),
)
def test_the_body_moves_as_described(protocol, start, steps) -> None:
    y, x = start_body(start[0], start[1], start[2], RESTING)
    for action, *uniforms in steps:
        if protocol == "paper":
            length, sd = 0.5 + 0.1 * (1 - 2 * uniforms[0]), 0.01
        else:
            length, sd = 0.5 - 0.1 * uniforms[0], 0.001
        normal = math.sqrt(-2 * math.log1p(-uniforms[1])) * math.cos(2 * math.pi * uniforms[2])
        expected = dumb_move(y, x, action, length, sd * normal)
        y, x, collided = moved(y, x, action, uniforms, protocol)
        assert (y, x) == pytest.approx(expected[:2], abs=1e-11)
        assert collided == expected[2]


def test_noise_has_the_stated_moments() -> None:
    uniforms = np.random.default_rng(0).random((20_000, 3))
    for protocol, low, high, sd in (("paper", 0.4, 0.6, 0.01), ("authors", 0.4, 0.5, 0.001)):
        moves = np.array([moved(3.0, 2.5, 1, u, protocol) for u in uniforms])
        length, drift = moves[:, 1] - 2.5, moves[:, 0] - 3.0
        assert low <= length.min() < low + 1e-4
        assert high - 1e-4 < length.max() <= high
        # 5 standard errors each.
        assert abs(length.mean() - (low + high) / 2) < 5 * (high - low) / math.sqrt(12 * 20_000)
        assert abs(drift.mean()) < 5 * sd / math.sqrt(20_000)
        assert abs(drift.std() - sd) < 5 * sd / math.sqrt(2 * 20_000)


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
    run_body(np_random(2)[0], actions, SOLID, NOISE[protocol], RESTING, states, rewards)
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


# Records


def test_largest_ratios_are_those_of_the_paper() -> None:
    chain, rooms, star = get("markov-chain"), get("four-rooms"), get("star")
    assert [chain.largest_ratio(*pair) for pair in chain.pairs] == pytest.approx([1.8, 9, 99])
    assert rooms.largest_ratio("down", "uniform") == 4
    assert rooms.largest_ratio("down", "random-state") == 20
    assert rooms.largest_ratio("favoured-down", "random-state") == pytest.approx(18)
    assert star.largest_ratio("solid", "mostly-dashed") == pytest.approx(7)
    for protocol, largest in (("paper", 10), ("authors", 20)):
        continuous = get("continuous-four-rooms", protocol)
        assert continuous.largest_ratio("down", "random-state") == pytest.approx(largest)


def every_pair() -> list[tuple[str, str, str, str]]:
    return [
        (name, protocol, question, behaviour)
        for name, protocol in itertools.product(names(), ["paper", "authors"])
        for question, behaviour in get(name, protocol).pairs
    ]


@pytest.mark.parametrize(("name", "protocol", "question", "behaviour"), every_pair())
def test_ratios_match_policies_and_average_to_one(name, protocol, question, behaviour) -> None:
    domain = get(name, protocol)
    assert isinstance(domain, CellDomain)
    env, steps = domain.make(), 2000
    mu, pi = domain.behaviour(behaviour), domain.target(question)
    batches = list(stream.transitions(env, mu, steps, seed=4))
    states = np.concatenate([batch.state for batch in batches])
    actions = np.concatenate([batch.action for batch in batches])
    rho = ratio(pi, states, actions, behaviour=mu)
    cells = cells_of(states) if isinstance(domain, ContinuousDomain) else states
    assert np.array_equal(rho, domain.ratios(question, behaviour)[cells, actions])
    assert domain.reachable[cells].all()
    assert rho.max() <= domain.largest_ratio(question, behaviour)
    # E_mu[rho | s] is 1 exactly, and rho - 1 a martingale difference: the mean is within 5
    # standard errors, the variance given the state being known.
    table, ratios = domain.table(mu), domain.ratios(question, behaviour)
    assert (table * ratios).sum(axis=1) == pytest.approx(np.ones(len(table)))
    variance = (table * (ratios - 1) ** 2).sum(axis=1)[cells].sum()
    assert abs((rho - 1).sum()) < 5 * math.sqrt(variance)


@pytest.mark.parametrize("name", ROOMS)
def test_special_cells_are_those_where_going_down_is_rare(name: str) -> None:
    domain = get(name)
    assert isinstance(domain, CellDomain)
    table = domain.table(domain.behaviour("random-state"))
    rare = [divmod(cell, 11) for cell in np.flatnonzero(table[:, 2] < 0.25)]
    columns = {row: [c for r, c in rare if r == row] for row in range(11)}
    assert columns == {
        0: [1, 4],
        1: [0, 8, 9],
        2: [1, 5, 8, 10],
        3: [0, 6, 7],
        4: [1, 5],
        5: [1, 4, 6, 8],
        6: [4],
        7: [0],
        8: [3],
        9: [0, 8, 10],
        10: [7],
    }
    assert sum(MAP[row][column] == "#" for row, column in rare) == 2
    assert (table[table[:, 2] == 0.25] == 0.25).all()


def test_random_weights_favour_one_action_in_each_special_cell() -> None:
    rows = random_weights()
    special = 11 * SPECIAL[:, 0] + SPECIAL[:, 1]
    assert (np.delete(rows, special, axis=0) == 0.25).all()
    ordered = np.sort(rows[special], axis=1)
    assert ((ordered[:, 3] >= 0.5) & (ordered[:, 3] < 1)).all()
    assert ordered[:, 0] == pytest.approx(ordered[:, 2])
    assert len(set(rows[special].argmax(axis=1))) == 4
    assert (1 / rows[~WALLS.ravel(), 2]).max() == pytest.approx(122.7, abs=0.05)


def test_star_features_share_the_last_weight() -> None:
    star = get("star")
    expected = np.zeros((7, 8))
    for i in range(6):
        expected[i, i], expected[i, 7] = 2, 1
    expected[6, 6], expected[6, 7] = 1, 2
    assert np.array_equal(star.features(np.arange(7)), expected)
    assert star.initial_weights.tolist() == [1, 1, 1, 1, 1, 1, 10, 1]


def test_continuous_features_are_64_tilings() -> None:
    features = get("continuous-four-rooms").features
    assert features.size == 64 * 9 * 9
    assert features(np.array([[5.0, 2.0]])).shape == (1, 64)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown domain: 'maze'; known are 'markov-chain', 'four"):
        get("maze")
    with pytest.raises(ValueError, match="unknown protocol: 'mine'; known are 'paper', 'authors'"):
        get("star", "mine")
    rooms = get("four-rooms")
    with pytest.raises(ValueError, match=r"unknown behaviour of four-rooms: 'random'; .*'uniform'"):
        rooms.behaviour("random")
    with pytest.raises(ValueError, match=r"unknown question of four-rooms: 'up'; .*'favoured-"):
        rooms.truth("up", "uniform")
    with pytest.raises(ValueError, match="unknown behaviour of four-rooms: 'random'"):
        rooms.truth("down", "random")


def test_cell_policies_refuse_what_is_no_position() -> None:
    policy = get("continuous-four-rooms").behaviour("random-state")
    assert isinstance(policy, CellTable)
    with pytest.raises(ValueError, match=r"a batch \[m, 2\], got shape \(3,\)"):
        policy.probabilities([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"row 1.*is not in \[0, 11\]"):
        policy.probabilities([[1.0, 2.0], [np.nan, 0.0]])


@pytest.mark.parametrize("name", names())
def test_a_domain_can_be_pickled(name: str) -> None:
    domain = get(name)
    assert repr(pickle.loads(pickle.dumps(domain))) == repr(domain)


def test_branches_of_a_copied_environment_differ() -> None:
    # held_out_returns copies the environment and gives each copy random numbers of its own.
    # Going down is no matter of chance, so returns from a state differ by the environment's noise.
    rooms = get("continuous-four-rooms")
    held_out = held_out_returns(
        rooms.make(), rooms.question("down"), states=10, rollouts=20, run_length=1, seed=0
    )
    assert sum(len(set(row)) > 1 for row in held_out.returns) >= 5


# Tables of one's own: which states can be reached, are active, and how much they count


def collision(**more: Any) -> TabularDomain:
    """Eight states in a row and a wall; in the last four the car may turn (Ghiassian & Sutton)."""
    forward, turn, end = 0, 1, 8
    state = np.arange(9)
    following = np.stack([np.minimum(state + 1, end), np.full(9, end)], axis=1)[:, :, None]
    following[:4, turn] = following[:4, forward]  # there is nothing else to do
    following[end] = end
    reward = np.zeros(following.shape)
    reward[7, forward] = 1
    mu = np.full((9, 2), 0.5)
    mu[:4] = 1, 0
    given: dict[str, Any] = {
        "name": "collision",
        "behaviours": {"turning": gvf.Table(mu)},
        "questions": {"wall": gvf.GVF(gvf.Always(forward, 2), "reward", 0.9)},
        "features": gvf.OneHot(9),
        "model": gvf.Model(np.ones(following.shape), following, reward, state == end),
        "starts": np.arange(4),
        "weighting": "visits",
    }
    return TabularDomain(**(given | more))


def test_collision_is_a_table_weighted_by_visits() -> None:
    domain = collision()
    domain.check("wall", "turning")
    law = np.array([2, 4, 6, 8, 8, 4, 2, 1]) / 35
    assert np.abs(domain.visits("turning") - [*law, 0]).max() < 1e-12
    truth = domain.truth("wall", "turning")
    assert truth.states.tolist() == list(range(8))
    assert truth.values == pytest.approx(0.9 ** (7.0 - np.arange(8)), abs=1e-12)
    assert truth.weights == pytest.approx(law, abs=1e-12)
    assert truth.root_mean_square_error(np.zeros(8)) == pytest.approx(0.68908, abs=5e-6)
    assert domain.largest_ratio("wall", "turning") == 2
    walk = domain.walk(domain.behaviour("turning"), ["wall"], 20_000, np.random.SeedSequence(0))
    state = walk.x[:, 0]
    assert np.bincount(state, minlength=8) / 20_000 == pytest.approx(law, abs=0.01)
    expected = np.where(state < 4, 1.0, np.where(walk.action == 0, 2.0, 0.0))
    assert np.array_equal(walk.signals["wall"].ratio, expected)
    assert walk.signals["wall"].active is None


def test_no_ratio_is_made_of_nothing_by_nothing() -> None:
    # In the first four states neither policy turns.
    ratios = collision().ratios("wall", "turning")
    assert ratios[:4].tolist() == [[1, 0]] * 4
    assert ratios[4:].tolist() == [[2, 0]] * 5
    never = collision(behaviours={"never": gvf.Always(1, 2)})
    assert never.largest_ratio("wall", "never") == np.inf
    with pytest.raises(ValueError, match="'never' never takes action 0 in state 0"):
        never.check("wall", "never")


def test_states_that_do_not_count_have_ratios_too() -> None:
    table = np.full((10, 2), 0.5)
    table[5] = 0.9, 0.1
    chain = tabular("markov-chain")
    given: dict[str, Any] = {
        "name": "rare",
        "behaviours": {"rare": Table(table)},
        "questions": {"right": gvf.GVF(gvf.Fixed([0.1, 0.9]), "reward", 0.9)},
        "features": gvf.OneHot(10),
        "model": chain.model,
    }
    domain = TabularDomain(**given, counted=np.array([1]))
    assert domain.reachable.tolist() == chain.reachable.tolist() == [False] + [True] * 8 + [False]
    assert domain.largest_ratio("right", "rare") == pytest.approx(9)
    walk = domain.walk(Table(table), ["right"], 1000, np.random.SeedSequence(0))
    assert walk.signals["right"].ratio.max() == pytest.approx(9)
    # What cannot be reached makes no difference.
    model = gvf.Model(
        np.ones((10, 2, 1)),
        np.where(np.arange(10) == 4, 3, chain.model.next_state[:, :, 0].T).T[:, :, None],
        chain.model.reward,
        chain.model.terminal,
    )
    given["model"] = model
    apart = TabularDomain(**given, starts=np.array([2]))
    assert np.flatnonzero(apart.reachable).tolist() == [1, 2, 3, 4]
    assert apart.largest_ratio("right", "rare") == pytest.approx(1.8)


WEST, EAST = np.arange(7) < 3, np.arange(7) > 3


def two_rooms(**more: Any) -> TabularDomain:
    """Rooms 0..2 and 4..6 in a row with a door, 3, between them; each asks about the door."""
    left = np.maximum(np.arange(7) - 1, 0)
    following = np.stack([left, np.minimum(np.arange(7) + 1, 6)], axis=1)[:, :, None]

    def to_the_door(states: Any) -> Any:
        assert not (states == 3).any()  # nobody has to know what to do there
        return np.where((states < 3)[:, None], [0.0, 1.0], [1.0, 0.0])

    def entered(t: gvf.Transitions) -> Any:
        return 1.0 * (t["next_state"] == 3)

    def inside(active: Any) -> Any:
        return lambda t: np.where(active[t["next_state"]], 0.9, 0.0)

    target = gvf.FunctionPolicy(to_the_door, actions=2)
    given: dict[str, Any] = {
        "name": "two-rooms",
        "behaviours": {"uniform": gvf.Uniform(2)},
        "questions": {
            "west": gvf.GVF(target, entered, inside(WEST)),
            "east": gvf.GVF(target, entered, inside(EAST)),
        },
        "features": gvf.OneHot(7),
        "model": gvf.Model(
            np.ones(following.shape), following, np.zeros(following.shape), np.zeros(7, bool)
        ),
        "starts": np.array([0]),
        "active": {"west": WEST, "east": EAST},
        "weighting": "visits",
    }
    return TabularDomain(**(given | more))


def test_a_question_may_be_active_in_one_room_only() -> None:
    domain = two_rooms()
    for name, active in (("west", WEST), ("east", EAST)):
        domain.check(name, "uniform")
        truth = domain.truth(name, "uniform")
        assert truth.states.tolist() == np.flatnonzero(active).tolist()
        assert truth.values == pytest.approx(0.9 ** (np.abs(truth.states - 3) - 1), abs=1e-14)
        assert truth.weights == pytest.approx(np.full(3, 1 / 7))
        assert domain.largest_ratio(name, "uniform") == 2
        walk = domain.walk(gvf.Uniform(2), [name], 2000, np.random.SeedSequence(0))
        state, signals = walk.x[:, 0], walk.signals[name]
        assert signals.active is not None
        assert np.array_equal(signals.active, active[state])
        towards = walk.action == (1 if name == "west" else 0)
        assert np.array_equal(signals.ratio, 2.0 * (towards & active[state]))
        assert np.array_equal(signals.cumulant, 1.0 * (walk.next_state == 3))
    assert repr(domain).endswith("largest ratios: west/uniform 2, east/uniform 2")


def test_support_is_needed_only_where_a_question_is_active_and_a_walk_can_be() -> None:
    lazy = gvf.Table([[0.5, 0.5]] * 4 + [[0.0, 1.0]] * 3)  # never left in the east
    domain = two_rooms(behaviours={"lazy": lazy}, weighting="uniform")
    domain.check("west", "lazy")
    with pytest.raises(ValueError, match="'lazy' never takes action 0 in state 4"):
        domain.check("east", "lazy")
    nowhere = two_rooms(active={"west": np.zeros(7, bool), "east": EAST})
    with pytest.raises(ValueError, match="question 'west' is active in no state that can be reach"):
        nowhere.check("west", "uniform")
    with pytest.raises(ValueError, match="'west' is active in none of the states that count"):
        nowhere.truth("west", "uniform")


def test_values_include_what_a_continuation_carries_out_of_the_active_states() -> None:
    always = gvf.GVF(gvf.Always(1, 2), lambda t: 1.0 * (t["next_state"] == 5), 0.9)
    domain = two_rooms(questions={"q": always}, active={"q": WEST}, weighting="uniform")
    inside = domain.truth("q")
    everywhere = two_rooms(questions={"q": always}, active={}, weighting="uniform").truth("q")
    assert np.array_equal(inside.values, everywhere.values[:3])
    assert inside.values[2] == pytest.approx(0.9**2)
    assert inside.weights is None


def test_visits_are_those_of_a_linear_solve_and_of_a_long_walk() -> None:
    for name, behaviour in (("markov-chain", "hard"), ("four-rooms", "random-state")):
        domain = tabular(name)
        law = domain.visits(behaviour)
        assert law.sum() == pytest.approx(1)
        assert not law[~domain.reachable].any()
        policy, states = domain.behaviour(behaviour), len(law)
        moves = np.zeros((states, states))
        for s, mu in enumerate(domain.table(policy)):
            for a, following in enumerate(domain.model.next_state[s, :, 0]):
                ends = domain.model.terminal[following]
                moves[s, domain.starts if ends else following] += mu[a] / (8 if ends else 1)
        assert law @ moves == pytest.approx(law, abs=1e-14)
        walk = domain.walk(policy, [], 300_000, np.random.SeedSequence(1))
        counts = np.bincount(walk.x[:, 0], minlength=states)
        assert counts / 300_000 == pytest.approx(law, abs=0.01)
    chain = tabular("markov-chain")
    tiny = TabularDomain(
        name="tiny",
        behaviours={"b": gvf.Fixed([1 - 1e-9, 1e-9])},
        questions={"q": chain.question("hard")},
        features=chain.features,
        model=chain.model,
        starts=np.array([1]),
    )
    # d(s + 1) = p d(s) + (1 - p) d(s + 2) has the last state 1e-63 times as often as the first.
    assert tiny.visits("b")[8] == pytest.approx(1e-63, rel=1e-6)


def test_states_may_have_weights_of_their_own() -> None:
    weights = np.array([0.0, 1.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    truth = two_rooms(weighting=weights).truth("west")
    assert truth.weights is not None
    assert truth.weights.tolist() == [0, 1, 3]
    assert truth.mean_absolute_error(truth.values + np.array([5, 4, 0])) == pytest.approx(1)
    with pytest.raises(ValueError, match="no state in which question 'east' is active has a weig"):
        two_rooms(weighting=weights).truth("east")


def test_a_weighting_that_is_undefined_is_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match="as a behaviour visits them: name one of 'uniform'"):
        two_rooms().truth("west")
    apart = np.arange(7)
    model = gvf.Model(
        np.ones((7, 2, 1)), np.stack([apart, apart], 1)[:, :, None], np.zeros((7, 2, 1)),
        np.zeros(7, bool),
    )  # fmt: skip
    split = two_rooms(model=model, starts=np.array([0, 1]))
    for call in (split.truth, split.check):
        with pytest.raises(
            ValueError, match=r"'uniform' of two-rooms: how often .* chance"
        ) as told:
            call("west", "uniform")
        assert "\n" not in str(told.value)
    # A corridor that leads to the only place where a walk stays is passed once.
    last = gvf.Always(1, 2)
    assert two_rooms(behaviours={"right": last}).visits("right").tolist() == [0] * 6 + [1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weighting": "visit"}, "unknown weighting: 'visit'; did you mean 'visits'"),
        ({"weighting": np.ones(3)}, r"weighting must be float64\[7\], got shape \(3,\)"),
        ({"weighting": -np.ones(7)}, "weighting must be finite and not negative"),
        ({"active": {"wst": WEST}}, "unknown question of two-rooms: 'wst'"),
        ({"active": {"west": np.arange(7)}}, r"'west' must be bool\[7\], got int64\[7\]"),
        ({"starts": np.array([7])}, "episodes of two-rooms cannot begin in state 7"),
        ({"counted": np.array([0, -1])}, "two-rooms has no state -1 to count"),
    ],
)
def test_parts_of_a_table_that_do_not_fit_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        two_rooms(**given)


@pytest.mark.parametrize("name", names())
def test_a_domain_is_the_same_in_every_run_unless_it_says_otherwise(name: str) -> None:
    assert get(name).for_run(3, seed=0) is get(name)


def test_a_domain_may_draw_its_features_anew_for_each_run() -> None:
    class Redrawn(TabularDomain):
        def for_run(self, run: int, seed: int) -> TabularDomain:
            rows = np.random.default_rng([seed, run]).random((9, 6))
            return dataclasses.replace(self, features=gvf.Dense(6, lambda s: rows[s]))

    base = collision()
    fields = {f.name: getattr(base, f.name) for f in dataclasses.fields(base) if f.init}
    blank = {"initial_weights": np.zeros(0), "features": gvf.Dense(6)}
    domain = Redrawn(**(fields | blank))
    first, again, other = (domain.for_run(run, 0).features(np.arange(8)) for run in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    truth = domain.for_run(0, 0).truth("wall", "turning")
    assert np.array_equal(truth.values, base.truth("wall", "turning").values)
