"""Tables of one's own: which states can be reached, are active, and how much they count."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from maps import tabular

import gvf
import gvf_lab
from gvf.corrections.carried import carried
from gvf.policies import Table
from gvf_lab.domain import TabularDomain, get, names


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
        "behaviours": {"turning": gvf.policies.Table(mu)},
        "questions": {"wall": gvf.GVF(gvf.policies.Always(forward, 2), "reward", 0.9)},
        "features": gvf.features.OneHot(9),
        "model": gvf_lab.Model(np.ones(following.shape), following, reward, state == end),
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
    never = collision(behaviours={"never": gvf.policies.Always(1, 2)})
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
        "questions": {"right": gvf.GVF(gvf.policies.Fixed([0.1, 0.9]), "reward", 0.9)},
        "features": gvf.features.OneHot(10),
        "model": chain.model,
    }
    domain = TabularDomain(**given, counted=np.array([1]))
    assert domain.reachable.tolist() == chain.reachable.tolist() == [False] + [True] * 8 + [False]
    assert domain.largest_ratio("right", "rare") == pytest.approx(9)
    walk = domain.walk(Table(table), ["right"], 1000, np.random.SeedSequence(0))
    assert walk.signals["right"].ratio.max() == pytest.approx(9)
    # What cannot be reached makes no difference.
    model = gvf_lab.Model(
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

    target = gvf.policies.Function(to_the_door, actions=2)
    given: dict[str, Any] = {
        "name": "two-rooms",
        "behaviours": {"uniform": gvf.policies.Uniform(2)},
        "questions": {
            "west": gvf.GVF(target, entered, inside(WEST)),
            "east": gvf.GVF(target, entered, inside(EAST)),
        },
        "features": gvf.features.OneHot(7),
        "model": gvf_lab.Model(
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
        walk = domain.walk(gvf.policies.Uniform(2), [name], 2000, np.random.SeedSequence(0))
        state, signals = walk.x[:, 0], walk.signals[name]
        assert signals.active is not None
        assert np.array_equal(signals.active, active[state])
        towards = walk.action == (1 if name == "west" else 0)
        assert np.array_equal(signals.ratio, 2.0 * (towards & active[state]))
        assert np.array_equal(signals.cumulant, 1.0 * (walk.next_state == 3))
    assert repr(domain).endswith("largest ratios: west/uniform 2, east/uniform 2")


def test_support_is_needed_only_where_a_question_is_active_and_a_walk_can_be() -> None:
    lazy = gvf.policies.Table([[0.5, 0.5]] * 4 + [[0.0, 1.0]] * 3)  # never left in the east
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
    always = gvf.GVF(gvf.policies.Always(1, 2), lambda t: 1.0 * (t["next_state"] == 5), 0.9)
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
        behaviours={"b": gvf.policies.Fixed([1 - 1e-9, 1e-9])},
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


def test_emphasis_is_the_visits_times_the_mean_of_the_follow_on_trace() -> None:
    # In the corridor F is 1 at the start, and then the sum of .9^i times the ratios so far.
    domain = collision(weighting="emphasis")
    visits, weights = domain.visits("turning"), domain.emphasis("wall", "turning")
    follow = [visits[0]]
    for state in range(1, 8):
        follow.append(visits[state] + 0.9 * follow[-1])
    assert weights == pytest.approx([*follow, 0.0], abs=1e-12)
    assert weights.min() == 0
    truth = domain.truth("wall", "turning")
    truth.check()
    assert truth.weights == pytest.approx(follow)
    walk = domain.walk(domain.behaviour("turning"), ["wall"], 200_000, np.random.SeedSequence(0))
    asked = walk.signals["wall"]
    _, trace = carried(gvf.corrections.EmphaticIR(), asked.ratio, asked.continuation)
    means = np.bincount(walk.x[:, 0], trace, 9) / 200_000
    assert means == pytest.approx(weights, rel=0.05)


def test_a_weighting_that_is_undefined_is_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match="as a behaviour visits them: name one of 'uniform'"):
        two_rooms().truth("west")
    apart = np.arange(7)
    model = gvf_lab.Model(
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
    last = gvf.policies.Always(1, 2)
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


@pytest.mark.parametrize("name", [name for name in names() if name != "collision"])
def test_a_domain_is_the_same_in_every_run_unless_it_says_otherwise(name: str) -> None:
    assert get(name).for_run(3, seed=0) is get(name)


def test_a_domain_may_draw_its_features_anew_for_each_run() -> None:
    class Redrawn(TabularDomain):
        def for_run(self, run: int, seed: int) -> TabularDomain:
            rows = np.random.default_rng([seed, run]).random((9, 6))
            return dataclasses.replace(self, features=gvf.features.Dense(6, lambda s: rows[s]))

    base = collision()
    fields = {f.name: getattr(base, f.name) for f in dataclasses.fields(base) if f.init}
    blank = {"initial_weights": np.zeros(0), "features": gvf.features.Dense(6)}
    domain = Redrawn(**(fields | blank))
    first, again, other = (domain.for_run(run, 0).features(np.arange(8)) for run in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    truth = domain.for_run(0, 0).truth("wall", "turning")
    assert np.array_equal(truth.values, base.truth("wall", "turning").values)
