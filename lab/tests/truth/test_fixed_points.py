"""Exact fixed points: against published digits, enumeration, series, and a long walk."""

from dataclasses import replace

import charts_reference as reference
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from maps import tabular
from released import released_features

import gvf
from gvf_lab.domain import TabularDomain
from gvf_lab.domain.visits import long_run
from gvf_lab.theory.corridor import MU, PI, Corridor
from gvf_lab.truth import FixedPoint, Model, fixed_point

SETTINGS = {
    "TD(0)": {},
    "TD(.5)": {"trace_decay": 0.5},
    "TD(1)": {"trace_decay": 1.0},
    "ETD(0)": {"emphatic": True},
    "ETD(.5)": {"emphatic": True, "trace_decay": 0.5},
    "ETD(1)": {"emphatic": True, "trace_decay": 1.0},
    "ETD(0, 0)": {"emphatic": True, "beta": 0.0},
    "ETD(.5, .6)": {"emphatic": True, "trace_decay": 0.5, "beta": 0.6},
    "ETD(0, 1)": {"emphatic": True, "beta": 1.0},
}


def of_collision(run: int, **settings) -> FixedPoint:
    domain = tabular("collision").for_run(run, 0)
    assert isinstance(domain, TabularDomain)
    return domain.fixed_point("wall", "turning", **settings)


# Published digits


@pytest.mark.parametrize(
    ("settings", "mean", "error", "least", "most"),
    [
        ({"trace_decay": 1.0}, "0.0713", "0.0027", "0.020", "0.107"),
        ({"emphatic": True}, "0.1111", "0.0061", "0.026", "0.194"),
        ({}, "0.3061", "0.0205", "0.060", "0.543"),
        ({"emphatic": True, "beta": 0.8}, "0.1126", None, None, None),
        ({"emphatic": True, "beta": 0.6}, "0.1382", None, None, None),
        ({"emphatic": True, "beta": 0.4}, "0.1928", None, None, None),
        ({"emphatic": True, "beta": 0.2}, "0.2562", None, None, None),
    ],
)
def test_collision_has_the_published_asymptotes(settings, mean, error, least, most) -> None:
    truth = tabular("collision").truth("wall", "turning")
    errors = np.array([of_collision(run, **settings).error(truth) for run in range(50)])
    assert f"{errors.mean():.4f}" == mean
    if error is not None:
        assert f"{errors.std(ddof=1) / np.sqrt(50):.4f}" == error
        assert (f"{errors.min():.3f}", f"{errors.max():.3f}") == (least, most)


def test_expected_td_updates_are_stable_in_collision_and_some_are_singular() -> None:
    matrices = [of_collision(run).matrix for run in range(50)]
    assert all(np.linalg.eigvals(matrix).real.min() > -1e-12 for matrix in matrices)
    assert any(np.linalg.matrix_rank(matrix) < 6 for matrix in matrices)


@pytest.mark.parametrize(
    ("name", "behaviour", "expected"),
    [
        ("rooms", "uniform", "0.0752 0.0811 0.0843 0.1038 0.1374 0.1791 0.2268"),
        ("high-variance-rooms", "pulled", "0.0722 0.0774 0.0819 0.1105 0.1590 0.2148 0.2690"),
    ],
)
def test_rooms_have_the_published_asymptotes(name: str, behaviour: str, expected: str) -> None:
    domain = tabular(name)
    chosen = [{"trace_decay": 1.0}, {"emphatic": True}]
    chosen += [{"emphatic": True, "beta": beta} for beta in (0.8, 0.6, 0.4, 0.2)]
    means = [
        np.mean(
            [
                domain.fixed_point(question, behaviour, **settings).error(
                    domain.truth(question, behaviour)
                )
                for question in domain.questions
            ]
        )
        for settings in [*chosen, {}]
    ]
    assert " ".join(f"{mean:.4f}" for mean in means) == expected


# Enumeration


def episodes_of_collision(run: int) -> list[tuple[float, list[reference.Step]]]:
    """List all twenty episodes with their probabilities."""
    x, episodes = released_features(run), []
    for start in range(4):
        for last in [4, 5, 6, 7, 8]:  # the state in which the car turns; 8: it hits the wall
            steps, chance = [], 0.25
            for state in range(start, min(last, 7) + 1):
                turns, hits = state == last, last == 8 and state == 7
                mu = 1.0 if state < 4 else 0.5
                ends = turns or hits
                x_next = np.zeros(6) if ends else x[state + 1]
                g, g_next = (0.0 if state == start else 0.9), (0.0 if ends else 0.9)
                pi = 0.0 if turns else 1.0
                steps.append(reference.Step(x[state], x_next, pi, mu, g, g_next, float(hits)))
                chance *= mu
            episodes.append((chance, steps))
    return episodes


def update_of_an_episode(steps, w, *, trace_decay=0.0, emphatic=False, beta=None) -> np.ndarray:
    """Sum delta z over an episode, with fixed weights: each formula as it stands."""
    z, total, follow_on, previous_rho = np.zeros(6), np.zeros(6), 0.0, 0.0
    for s in steps:
        decay = s.g if beta is None else beta * (s.g > 0)
        follow_on = decay * previous_rho * follow_on + 1
        m = trace_decay + (1 - trace_decay) * follow_on if emphatic else 1.0
        z = s.rho * (s.g * trace_decay * z + m * s.x)
        total = total + s.delta(w) * z
        previous_rho = s.rho
    return total


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_expected_update_of_an_episode_of_collision_is_0(settings) -> None:
    for run in range(0, 50, 7):
        episodes, w = episodes_of_collision(run), of_collision(run, **settings).weights
        assert sum(chance for chance, _ in episodes) == 1
        expected = [
            chance * update_of_an_episode(steps, w, **settings) for chance, steps in episodes
        ]
        assert np.sum(expected, axis=0) == pytest.approx(np.zeros(6), abs=1e-12)


# Two formulations


def by_series(model, question, x, d, mu, *, trace_decay=0.0, emphatic=False, beta=None):
    """Return the values of the fixed point, from ratios of mu, with sums over time lags."""
    states, actions, outcomes = model.probability.shape
    pi = question.policy.probabilities(np.arange(states))
    cumulant, continuation = model.signals(question)
    # Each entry (s, s', mass, gamma, C) is an outcome, with the expectation of its ratio as mass.
    rows = [
        (s, model.next_state[s, a, b], mu[s, a] * model.probability[s, a, b] * pi[s, a] / mu[s, a],
         continuation[s, a, b], cumulant[s, a, b])
        for s in range(states) if not model.terminal[s]
        for a in range(actions) for b in range(outcomes)
    ]  # fmt: skip
    follow_on, term = d.copy(), d.copy()
    while term.max() > 1e-18:
        later = np.zeros(states)
        for s, s_next, mass, gamma, _ in rows:
            later[s_next] += term[s] * mass * (gamma if beta is None else beta * (gamma > 0))
        follow_on, term = follow_on + later, later
    m = trace_decay * d + (1 - trace_decay) * follow_on if emphatic else d
    z = term = m[:, None] * x
    while np.abs(term).max() > 1e-18:
        later = np.zeros(x.shape)
        for s, s_next, mass, gamma, _ in rows:
            later[s_next] += term[s] * mass * gamma * trace_decay
        z, term = z + later, later
    a, b = np.zeros((x.shape[1], x.shape[1])), np.zeros(x.shape[1])
    for s, s_next, mass, gamma, c in rows:
        a += mass * np.outer(z[s], x[s] - gamma * x[s_next])
        b += mass * z[s] * c
    return x @ np.linalg.solve(a, b)


@given(
    seed=st.integers(0, 2**32),
    settings=st.sampled_from(list(SETTINGS.values())),
    size=st.integers(1, 3),
)
def test_any_table_has_the_fixed_point_of_the_series(seed: int, settings, size: int) -> None:
    rng = np.random.default_rng(seed)
    states, actions, outcomes = 5, 2, 2
    model = Model(
        probability=rng.dirichlet(np.ones(outcomes), (states, actions)),
        next_state=rng.integers(states, size=(states, actions, outcomes)),
        reward=rng.normal(size=(states, actions, outcomes)),
        terminal=np.arange(states) == 4,
    )
    model.next_state[:, :, 0] = np.roll(np.arange(states), -1)[:, None]  # all can be reached
    levels = rng.choice([0.0, 0.3, 0.9], (states, states))
    question = gvf.GVF(
        gvf.policies.Table(rng.dirichlet(np.ones(actions), states)),
        "reward",
        lambda t: levels[t.state, t.next_state],
    )
    mu, x = rng.dirichlet(np.full(actions, 2.0), states), rng.normal(size=(states, size))
    d = long_run(model, np.arange(4), mu)
    point = fixed_point(model, question, x, d, **settings)
    assume(np.linalg.cond(point.matrix) < 1e3)  # else the two may differ by more than rounding
    expected = by_series(model, question, x, d, mu, **settings)
    assert point.values == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "question", "behaviour"),
    [("collision", "wall", "turning"), ("high-variance-rooms", "NE-H3", "pulled")],
)
def test_traces_that_never_decay_give_the_projection(name, question, behaviour) -> None:
    domain = tabular(name)
    plain = domain.fixed_point(question, behaviour, trace_decay=1.0)
    emphatic = domain.fixed_point(question, behaviour, trace_decay=1.0, emphatic=True, beta=0.4)
    assert np.abs(plain.weights - emphatic.weights).max() < 1e-12
    truth = domain.truth(question, behaviour)
    assert truth.weights is not None
    root, listed = np.sqrt(truth.weights), domain.features(truth.states)
    x = np.zeros((len(listed), domain.features.size))
    np.put_along_axis(x, listed, 1.0, axis=1)
    best = np.linalg.lstsq(root[:, None] * x, root * truth.values)[0]
    assert np.abs(plain.weights - best).max() < 1e-12  # of least norm, too


# Interest


def test_interest_weighs_states_in_emphatic_fixed_points_only() -> None:
    """The corridor of the theory has an exact solve of its own."""
    corridor = Corridor.of(6)
    end, going_on = 6, np.arange(6)
    reward, next_state = np.zeros((7, 2, 1)), np.full((7, 2, 1), end)
    next_state[:5, 1, 0], reward[5, 1, 0] = going_on[1:], 1.0
    kinds = np.append(corridor.continuation, [0.0, 0.0])
    x = np.vstack([corridor.phi, np.zeros(2)])
    domain = TabularDomain(
        name="corridor",
        behaviours={"half": gvf.policies.Fixed(MU)},
        questions={
            "on": gvf.GVF(
                gvf.policies.Fixed(PI),
                "reward",
                lambda t: kinds[2 * t.state + t.action],
                interest=lambda t: np.append(corridor.interest, 1.0)[t.state],
            )
        },
        features=gvf.features.Dense(2, lambda s: x[s]),
        model=Model(np.ones((7, 2, 1)), next_state, reward, np.arange(7) == end),
        starts=np.array([0]),
    )
    emphatic = corridor.fixed_point(corridor.visits * corridor.trace)
    plain = corridor.fixed_point(corridor.visits)
    found = domain.fixed_point("on", "half", emphatic=True).weights
    np.testing.assert_allclose(found, emphatic, rtol=1e-12)
    np.testing.assert_allclose(domain.fixed_point("on", "half").weights, plain, rtol=1e-12)
    asked = replace(domain.question("on"), interest=lambda t: t.action)
    odd = replace(domain, questions={"on": asked})
    with pytest.raises(ValueError, match="of question 'on' depends on more than the state"):
        odd.fixed_point("on", "half", emphatic=True)


# A long walk


@pytest.mark.parametrize("beta", [None, 0.6])
def test_the_mean_emphatic_update_along_a_walk_through_the_rooms_is_0(beta: float | None) -> None:
    rooms, asked, steps = tabular("rooms"), "SE-H3", 200_000
    walk = rooms.walk(rooms.behaviour("uniform"), [asked], steps, np.random.SeedSequence(1))
    signals = walk.signals[asked]
    emphasis, follow_on, previous = np.empty(steps), 0.0, (0.0, 0.0)
    for t in range(steps):
        rho, g = previous
        follow_on = (g if beta is None else beta * (g > 0)) * rho * follow_on + 1
        emphasis[t] = follow_on
        previous = signals.ratio[t], signals.continuation[t]

    def scores(emphatic: bool) -> np.ndarray:
        """Return the mean of each weight's update in standard errors, from means of batches."""
        w = rooms.fixed_point(
            asked, "uniform", emphatic=emphatic, beta=beta if emphatic else None
        ).weights
        v, v_next = w[walk.x].sum(axis=1), w[walk.x_next].sum(axis=1)
        size = signals.ratio * emphasis * (signals.cumulant + signals.continuation * v_next - v)
        updates = np.zeros((steps, 12))
        np.put_along_axis(updates, walk.x.astype(np.int64), size[:, None], axis=1)
        batches = updates.reshape(100, -1, 12).mean(axis=1)
        batches = batches[:, batches.any(axis=0)]
        return np.abs(batches.mean(axis=0)) / (batches.std(axis=0, ddof=1) / 10)

    assert scores(emphatic=True).max() < 5
    assert scores(emphatic=False).max() > 5  # the weights of TD(0) are far enough away to be seen


# Refusals


LOOP = Model(np.ones((2, 1, 1)), np.array([[[1]], [[0]]]), np.ones((2, 1, 1)), np.zeros(2, bool))
HALF = np.full(2, 0.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trace_decay": 1.5}, r"trace_decay must be in \[0, 1\], got 1.5"),
        ({"emphatic": True, "beta": -0.1}, r"beta must be in \[0, 1\], got -0.1"),
        ({"emphatic": True, "beta": float("nan")}, r"beta must be in \[0, 1\], got nan"),
        ({"beta": 0.5}, r"it needs emphatic=True"),
        ({"features": np.eye(3)}, r"shapes \(3, 3\) and \(2,\), expected \(2, n\) and \(2,\)"),
        ({"visits": np.ones(3)}, r"shapes \(2, 2\) and \(3,\), expected \(2, n\) and \(2,\)"),
        (
            {"question": gvf.GVF(gvf.policies.Uniform(2))},
            r"not a discrete policy over the 1 actions",
        ),
        ({"emphatic": True, "beta": 1.0}, r"the follow-on trace of GVF.* has no finite mean"),
    ],
)
def test_bad_input_is_refused_in_one_line(given: dict, message: str) -> None:
    usual = {"question": gvf.GVF(gvf.policies.Uniform(1)), "features": np.eye(2), "visits": HALF}
    with pytest.raises(ValueError, match=message) as caught:
        fixed_point(LOOP, **(usual | given))
    assert "\n" not in str(caught.value)


def test_sums_that_grow_without_end_have_no_fixed_point() -> None:
    endless = gvf.GVF(gvf.policies.Uniform(1), "reward", 1.0)
    with pytest.raises(ValueError, match="there is no fixed point of GVF"):
        fixed_point(LOOP, endless, np.eye(2), HALF)
    with pytest.raises(ValueError, match=r"the traces of GVF.* have no finite mean"):
        fixed_point(LOOP, endless, np.eye(2), HALF, trace_decay=1.0)


def test_states_that_are_never_visited_do_not_matter() -> None:
    # State 2 would go round for ever.
    model = Model(
        np.ones((3, 1, 1)), np.array([[[1]], [[1]], [[2]]]), np.ones((3, 1, 1)),
        np.array([False, True, False]),
    )  # fmt: skip
    visits = np.array([1.0, 0.0, 0.0])
    for emphatic in (False, True):
        point = fixed_point(
            model,
            gvf.GVF(gvf.policies.Uniform(1), "reward", 1.0),
            np.eye(3),
            visits,
            emphatic=emphatic,
        )
        assert point.values == pytest.approx(np.array([1.0, 0, 0]), abs=1e-14)
