"""Rooms and High Variance Rooms: the facts that their authors released."""

import gymnasium as gym
import numpy as np
import pytest
from maps import MAP, tabular

import gvf
from gvf_lab.domain.rooms import HALLWAYS, ROOMS, WAYS, Towards, state_of

TASKS = {"rooms": "uniform", "high-variance-rooms": "pulled"}


def largest_product(ratios: np.ndarray, following: np.ndarray, active: np.ndarray) -> float:
    """Return the largest product of ratios along a path that the target can take."""
    best = np.ones(len(active))
    for _ in range(len(active)):  # longer than any path
        best = np.maximum(1, (ratios * best[following]).max(axis=1)) * active + ~active
    return float(best.max())


def test_rooms_and_hallways_are_the_free_cells_of_the_map() -> None:
    cells = [state_of(*place) for place in HALLWAYS.values()]
    for (left, bottom), (right, top) in ROOMS.values():
        cells += [state_of(x, y) for x in range(left, right + 1) for y in range(bottom, top + 1)]
    free = [11 * i + j for i, line in enumerate(MAP) for j, mark in enumerate(line) if mark == "."]
    assert sorted(cells) == free
    assert len(free) == 104


@pytest.mark.parametrize("name", TASKS)
def test_each_question_is_active_in_its_room_and_the_other_hallway(name: str) -> None:
    domain, behaviour = tabular(name), TASKS[name]
    active = [int(domain.active_cells(question).sum()) for question in domain.questions]
    assert active == [26, 26, 26, 26, 31, 31, 21, 21]
    following = domain.model.next_state[:, :, 0]
    for question, (room, hallway) in zip(domain.questions, WAYS, strict=True):
        assert question == f"{room}-{hallway}"
        domain.check(question, behaviour)
        truth, (hall_x, hall_y) = domain.truth(question, behaviour), HALLWAYS[hallway]
        # Rooms are convex, so the way to a hallway in the wall is as long as the two differences.
        x, y = truth.states % 11, 10 - truth.states // 11
        distance = np.abs(x - hall_x) + np.abs(y - hall_y)
        assert truth.values == pytest.approx(0.9 ** (distance - 1.0), abs=2e-16)
        inside = domain.active_cells(question)
        pi = domain.target_table(question)
        assert pi.sum(axis=1).tolist() == inside.tolist()
        assert set(np.unique(pi)) == {0, 0.5, 1}
        cumulant, continuation = (part[:, :, 0] for part in domain.signals(question))
        assert np.array_equal(continuation, np.where(inside[following], 0.9, 0.0))
        entered = following == state_of(hall_x, hall_y)
        assert np.array_equal(cumulant[inside], 1.0 * entered[inside])


@pytest.mark.parametrize(
    ("name", "start", "ratio", "product"),
    [("rooms", "0.7229", 4, 2**14), ("high-variance-rooms", "0.7093", 100, 409_600)],
)
def test_starting_errors_and_ratios_are_the_published_ones(
    name: str, start: str, ratio: float, product: float
) -> None:
    domain, behaviour = tabular(name), TASKS[name]
    truths = [domain.truth(question, behaviour) for question in domain.questions]
    errors = [truth.root_mean_square_error(np.zeros(len(truth.states))) for truth in truths]
    assert f"{np.mean(errors):.4f}" == start
    ratios = [domain.largest_ratio(question, behaviour) for question in domain.questions]
    assert max(ratios) == pytest.approx(ratio, rel=1e-14)
    following = domain.model.next_state[:, :, 0]
    products = [
        largest_product(
            domain.ratios(question, behaviour), following, domain.active_cells(question)
        )
        for question in domain.questions
    ]
    assert max(products) == pytest.approx(product, rel=1e-13)


def test_a_uniform_walk_visits_all_free_cells_equally_often() -> None:
    visits = tabular("rooms").visits("uniform")
    assert visits[visits > 0] == pytest.approx(np.full(104, 1 / 104), rel=1e-12)


def test_the_behaviour_of_high_variance_is_pulled_in_four_cells() -> None:
    domain = tabular("high-variance-rooms")
    rows = domain.table(domain.behaviour("pulled"))
    left, right = [0.01, 0.01, 0.01, 0.97], [0.01, 0.97, 0.01, 0.01]
    for place, row in (((1, 1), left), ((1, 8), left), ((8, 1), right), ((8, 8), right)):
        assert rows[state_of(*place)] == pytest.approx(np.array(row), abs=1e-15)
    assert (rows == 0.25).all(axis=1).sum() == 117


def test_three_tilings_split_both_axes_after_9_6_and_3() -> None:
    features = tabular("rooms").features
    assert features.size == 12
    for x in range(11):
        for y in range(11):
            expected = []
            for tiling, last in enumerate((9, 6, 3)):
                column = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3}[x > last, y > last]
                expected.append(4 * tiling + column)
            assert features([state_of(x, y)]).tolist() == [expected]


def test_the_walk_begins_in_the_lower_left_corner_and_never_ends() -> None:
    for name in ("gvf/Rooms-v0", "gvf/HighVarianceRooms-v0"):
        env = gym.make(name)
        assert env.reset(seed=0)[0] == state_of(0, 0)
        steps = [env.step(action) for action in (0, 1, 1, 1, 1, 1, 1)]
        assert [reward for _, reward, *_ in steps] == [0, 0, 0, 0, 0, 1, 0]
        assert steps[5][0] == state_of(*HALLWAYS["H0"])
        assert not any(terminated or truncated for _, _, terminated, truncated, _ in steps)


def test_a_learner_takes_no_notice_of_states_in_which_the_question_is_not_active() -> None:
    rooms = tabular("rooms")
    states = np.array([state_of(1, 1), state_of(9, 9)])
    batch = gvf.Transitions(
        state=states, action=[1, 1], next_state=[state_of(2, 1), state_of(10, 9)], reward=[0.0, 0.0]
    )
    given = rooms.question("SW-H0").evaluate(batch, behaviour=gvf.policies.Uniform(4))
    assert given.ratio.tolist() == [4, 0]
    assert given.continuation.tolist() == [0.9, 0]
    with pytest.raises(ValueError, match=r"Towards\('SW', 'H0'\) has no action in state 20, where"):
        Towards("SW", "H0").sample(states, rng=np.random.default_rng(0))
