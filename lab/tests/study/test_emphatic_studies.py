"""Emphatic corrections in studies and on walks of domains: rho F in the place of rho."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dumb import follow_on

import gvf
from gvf.kernels import carried
from gvf_lab import domain as domains
from gvf_lab.domain import GymnasiumDomain
from gvf_lab.study import Study, run_task
from gvf_lab.study.task import TaskInputs


def test_studies_take_interest_from_the_question():
    world: Any = domains.get("markov-chain", "paper")
    name = next(iter(world.questions))
    asked = replace(world.question(name), interest=lambda t: t.state % 3)
    with_interest = replace(world, questions={**world.questions, name: asked})
    behaviour = world.behaviour(next(iter(world.behaviours)))
    seed = np.random.SeedSequence(5)
    path = with_interest.walk(behaviour, [name], 300, seed)
    state = with_interest.model.transitions.state[path.kind]
    np.testing.assert_array_equal(path.signals[name].interest, state % 3)
    assert world.walk(behaviour, [name], 300, seed).signals[name].interest is None


def test_a_study_draws_by_rho_f():
    methods = ("Emphatic IR", "EmphaticBCIR(0.6)", "Emphatic IS", "Emphatic WIS-Minibatch")
    study = Study("s", "four-rooms", methods, (0.5,), steps=3000, window=500, runs=1)
    task = next(iter(study.tasks()))
    shared = TaskInputs(task)
    asked = shared.off_policy.signals[task.question]
    draws = shared.draws(gvf.corrections.EmphaticIR())
    ended = np.zeros(3000, bool)
    trace = follow_on(asked.ratio, asked.continuation, np.ones(3000), ended)
    np.testing.assert_allclose(draws.inputs[1], trace, rtol=1e-13)
    np.testing.assert_allclose(draws.p, asked.ratio * trace, rtol=1e-13)
    outcomes = run_task(task)
    assert [outcome.method for outcome in outcomes] == [
        "Emphatic IR", "Emphatic BC-IR(0.6)", "Emphatic IS", "Emphatic WIS-Minibatch"
    ]  # fmt: skip
    assert all(np.isfinite(outcome.error).all() for outcome in outcomes)
    assert len({float(outcome.error[0]) for outcome in outcomes}) == 4


@pytest.mark.parametrize("beta", [None, 0.9])
def test_the_trace_begins_anew_on_coming_back_to_where_a_question_is_active(beta):
    """In other states the ratio is 0, and so is the continuation on leaving the active ones."""

    def active(states):
        return states >= 2

    question = gvf.GVF(
        gvf.policies.Fixed([0.3, 0.7]),
        lambda t: t.next_state == 4,
        lambda t: 0.9 * active(t.next_state),
    )
    world = GymnasiumDomain(
        "FrozenLake-v1",
        arguments={"is_slippery": False},
        questions={
            "q": gvf.GVF(gvf.policies.Favour(2, 0.7, actions=4), "reward", question.continuation)
        },
        active={"q": active},
    )
    path = world.walk(world.behaviour("uniform"), ["q"], 2000, np.random.SeedSequence(0))
    asked = path.signals["q"]
    assert asked.active is not None
    inputs = carried(
        gvf.corrections.EmphaticIR(beta),
        asked.ratio,
        asked.continuation,
        path.ended,
        asked.interest,
    )
    enters = asked.active[1:] & ~asked.active[:-1]
    assert enters.sum() > 20
    np.testing.assert_array_equal(inputs[1, 1:][enters], 1.0)
    assert inputs[1, asked.active].max() > 2.0
    assert (gvf.corrections.EmphaticIR(beta).masses(inputs)[~asked.active] == 0.0).all()
