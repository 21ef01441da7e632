"""Weights of states: from exact visits, from counts, and estimated from a log."""

from typing import Any

import numpy as np
import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, Chain, chain_visits

import gvf


def test_ratios_of_exact_visits_turn_one_law_into_the_other():
    mu, pi = chain_visits(CHAIN_BEHAVIOUR), chain_visits(CHAIN.policy)
    u = gvf.truth.visit_ratios(pi, 70.0 * mu)  # only shares matter
    np.testing.assert_allclose(mu * u, pi, rtol=1e-12)
    assert mu @ u == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("target", "behaviour", "message"),
    [
        ([1, 2], [1, 0], "target visits state 1 and the behaviour never does"),
        ([1, -2], [1, 1], "visits of the target must be numbers"),
        ([1, 2], [1, np.nan], "visits of the behaviour must be numbers"),
        ([0, 0], [1, 1], "the target visits no state"),
        ([1, 2, 3], [1, 1], "to 3 states, the behaviour to 2"),
        ([[1, 2]], [1, 1], "visits of the target must be numbers"),
    ],
)
def test_bad_visits_are_named(target, behaviour, message):
    with pytest.raises(ValueError, match=message) as told:
        gvf.truth.visit_ratios(target, behaviour)
    assert "\n" not in str(told.value)


PI = np.array([[0.9, 0.1], [0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])
MU = np.array([[0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [0.5, 0.5]])
MOVES = np.array([[1, 2], [2, 0], [0, 3], [3, -1]])  # state by action; -1 ends


def balanced_log():
    """Each action of each state as often as the behaviour takes it."""
    rows = [(s, a) for s in range(4) for a in range(2) for _ in range(round(4 * MU[s, a]))]
    s, a = np.array(rows).T
    after = MOVES[s, a]
    return gvf.Transitions(
        state=s, action=a, next_state=after, terminated=after < 0,
        stream=np.where(s < 2, 0, s),  # the streams begin in states 0, 2 and 3
        episode=np.where(s == 3, np.arange(len(s)) >= 13, 0),
    )  # fmt: skip


def test_the_law_of_the_target_is_exact_if_the_log_is():
    log = balanced_log()
    # State 3 begins a stream, an episode by its column, and one after an end.
    starts = np.array([0.2, 0.0, 0.2, 0.6])
    moves = np.zeros((4, 4))
    for s in range(4):
        for a in range(2):
            if MOVES[s, a] < 0:
                moves[s] += PI[s, a] * starts
            else:
                moves[s, MOVES[s, a]] += PI[s, a]
    law = np.linalg.matrix_power(moves, 4000)[0]
    question = gvf.GVF(gvf.policies.Table(PI))
    found = gvf.truth.target_visits(log, question, states=6, behaviour=gvf.policies.Table(MU))
    np.testing.assert_allclose(found, [*law, 0.0, 0.0], rtol=1e-12, atol=1e-15)


def test_a_log_of_an_environment_gives_the_visits_of_the_target():
    """From 40,000 steps: each share within 0.01 of that of a walk of the target itself."""
    behaviour, question = gvf.policies.Fixed([0.6, 0.4]), gvf.GVF(gvf.policies.Fixed([0.25, 0.75]))
    logs = [
        gvf.Transitions.concatenate(gvf.collect(Chain(), policy, 40_000, seed=1, batch=1000))
        for policy in (behaviour, question.policy)
    ]
    estimated = gvf.truth.target_visits(logs[0], question, states=5)
    theirs = np.bincount(logs[1].state, minlength=5) / 40_000
    ours = np.bincount(logs[0].state, minlength=5) / 40_000
    np.testing.assert_allclose(estimated, theirs, atol=0.01)
    assert np.abs(ours - theirs).max() > 0.03


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_an_episode_begins_after_every_end(end):
    """State 1 begins the second episode; without that, all would begin in state 0."""
    ends = {name: [False] * 4 for name in ("terminated", "truncated")}
    ends[end] = [False, True, False, False]
    log = gvf.Transitions(
        state=[0, 2, 1, 2], action=[1] * 4, next_state=[2, 0, 2, 0],
        terminated=[False, end == "terminated", False, True],
        truncated=ends["truncated"],
    )  # fmt: skip
    question = gvf.GVF(gvf.policies.Always(1, actions=2))
    shares = gvf.truth.target_visits(log, question, states=3, behaviour=gvf.policies.Uniform(2))
    # From 0 or 1 to 2; from 2 half of the courses end and begin anew, the others go to 0 if the
    # log was only cut there.
    starts = np.array([0.5, 0.5, 0.0])
    after_two = starts if end == "terminated" else 0.5 * starts + [0.5, 0.0, 0.0]
    np.testing.assert_allclose(shares, [0.5 * after_two[0], 0.5 * after_two[1], 0.5])


def test_a_state_after_which_nothing_is_known_is_an_end():
    """The target always takes action 1, and the log has only action 0 in state 2."""
    log = gvf.Transitions(
        state=[0, 1, 2], action=[1, 1, 0], next_state=[1, 2, 0], terminated=[False] * 3
    )
    question = gvf.GVF(gvf.policies.Always(1, actions=2))
    found = gvf.truth.target_visits(log, question, states=3, behaviour=gvf.policies.Uniform(2))
    np.testing.assert_allclose(found, [0.5, 0.5, 0.0])


def test_bad_logs_are_named():
    question, uniform = gvf.GVF(gvf.policies.Always(1, actions=2)), gvf.policies.Uniform(2)

    def visits(states: Any = 3, **changed):
        columns = {"state": [0, 1, 2], "action": [1, 1, 1], "next_state": [1, 2, 0]} | changed
        return gvf.truth.target_visits(
            gvf.Transitions(**columns), question, states=states, behaviour=uniform
        )

    np.testing.assert_allclose(visits(), np.full(3, 1 / 3))
    for changed, message in (
        ({"states": 2}, "column 'state' must have integers from 0 to 1"),
        ({"next_state": [1, 3, 0]}, "column 'next_state' must have integers from 0 to 2"),
        ({"state": [0.5, 1.0, 2.0]}, "column 'state' must have integers"),
        ({"action": [0, 0, 0]}, "no transition of the log has an action that the target takes"),
        ({"action": [0, 1, 1]}, "in no state where an episode begins"),
        ({"state": [], "action": [], "next_state": []}, "the log is empty"),
        ({"states": 0}, "states"),
    ):
        with pytest.raises(ValueError, match=message) as told:
            visits(**changed)
        assert "\n" not in str(told.value)
