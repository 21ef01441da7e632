"""Domains by name: policies, ratios, features."""

import itertools
import math
import pickle

import numpy as np
import pytest
from maps import MAP

import gvf
from gvf.policies import ratio
from gvf.truth import held_out_returns
from gvf_lab.domain import CellDomain, ContinuousDomain, get, names
from gvf_lab.domain.continuous_four_rooms import CellTable, cells_of, random_weights
from gvf_lab.domain.four_rooms import SPECIAL, WALLS

ROOMS = ["four-rooms", "continuous-four-rooms"]


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


def test_the_left_column_is_the_same_rooms_with_fewer_cells_that_count() -> None:
    rooms, left = get("four-rooms"), get("four-rooms-left-column")
    every, counted = (one.truth("down", "random-state") for one in (rooms, left))
    assert list(counted.states // 11) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert not (counted.states % 11).any()
    assert np.array_equal(counted.values, every.values[np.isin(every.states, counted.states)])
    mu, seed = rooms.behaviour("random-state"), np.random.SeedSequence(1)
    walks = [one.walk(mu, ["down"], 100, seed) for one in (rooms, left)]
    assert np.array_equal(walks[0].x, walks[1].x)


@pytest.mark.parametrize("name", ["markov-chain", "four-rooms"])
def test_states_may_count_by_their_emphasis(name: str) -> None:
    plain, weighted = get(name), get(f"{name}-emphasis")
    question, behaviour = plain.pairs[-1]
    equal, truth = (one.truth(question, behaviour) for one in (plain, weighted))
    truth.check()
    assert np.array_equal(equal.states, truth.states)
    assert np.array_equal(equal.values, truth.values)
    assert equal.weights is None
    assert truth.weights is not None
    assert len(set(truth.weights.tolist())) > 5
    walks = [
        one.walk(one.behaviour(behaviour), [question], 100, np.random.SeedSequence(1))
        for one in (plain, weighted)
    ]
    assert np.array_equal(walks[0].x, walks[1].x)


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
    batches = list(gvf.collect(env, mu, steps, seed=4))
    states = np.concatenate([batch.state for batch in batches])
    actions = np.concatenate([batch.action for batch in batches])
    rho = ratio(pi, states, actions, behaviour=mu)
    cells = cells_of(states) if isinstance(domain, ContinuousDomain) else states
    assert np.array_equal(rho, domain.ratios(question, behaviour)[cells, actions])
    assert domain.reachable[cells].all()
    assert rho.max() <= domain.largest_ratio(question, behaviour)
    # E_mu[rho | s] is 1 exactly in active states, and rho - 1 a martingale difference: the mean is
    # within 5 standard errors, the variance given the state being known.
    table, ratios = domain.table(mu), domain.ratios(question, behaviour)
    mean = domain.active_cells(question).astype(np.float64)
    assert (table * ratios).sum(axis=1) == pytest.approx(mean)
    variance = (table * (ratios - mean[:, None]) ** 2).sum(axis=1)[cells].sum()
    assert abs((rho - mean[cells]).sum()) < 5 * math.sqrt(variance)


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
