"""The parts of many questions, evaluated together, are those of each question alone."""

import numpy as np
import pytest
from many_learners import many_signals, near_the_edge

import gvf
from gvf.horde.layout import Layout
from gvf.horde.signals import Evaluator


class Tilted(gvf.policies.Bank):
    names = ("a", "b", "c")

    def log_probabilities(self, states, actions):
        means = np.array([-1.0, 0.0, 1.0])
        return -0.5 * (np.reshape(actions, (-1, 1)) - means) ** 2


def table(rng):
    return gvf.policies.Table(rng.dirichlet(np.ones(3), size=5))


def leaning(states):
    return np.tile([0.2, 0.3, 0.5], (len(states), 1))


def evaluated(questions, batch, behaviour, **options):
    layout = Layout(questions, gvf.corrections.IR())
    found = Evaluator(layout).ratios(batch, behaviour, options.get("on_conflict", "error"))
    return found[layout.group_policy[layout.group[layout.place]]]


@pytest.mark.parametrize("known", ["behaviour", "probability", "log"])
def test_ratios_of_discrete_policies(known):
    rng = np.random.default_rng(0)
    behaviour = gvf.policies.Fixed([0.5, 0.3, 0.2])
    policies = [
        gvf.policies.Uniform(3),
        table(rng),
        gvf.policies.Always(2, actions=3),
        gvf.policies.Function(leaning, actions=3),
        table(rng),
        gvf.policies.Mixture(gvf.policies.Uniform(3), gvf.policies.Favour(0, 0.8, 3), 0.5),
        gvf.policies.Uniform(3),
    ]
    states, actions = rng.integers(5, size=9), rng.integers(3, size=9)
    columns = {"state": states, "action": actions, "reward": np.zeros(9)}
    if known == "probability":
        columns["behaviour_probability"] = behaviour.probability(states, actions)
    if known == "log":
        columns["behaviour_log_probability"] = behaviour.log_probability(states, actions)
    batch = gvf.Transitions(**columns)
    mu = behaviour if known == "behaviour" else None
    questions = [gvf.GVF(policy, name=str(i)) for i, policy in enumerate(policies)]
    found = evaluated(questions, batch, mu)
    for question, ratios in zip(questions, found, strict=True):
        np.testing.assert_array_equal(ratios, question.ratios(batch, behaviour=mu))


@pytest.mark.parametrize("shape", [(7,), (7, 2)])
def test_ratios_of_continuous_policies(shape):
    rng = np.random.default_rng(0)
    size = shape[1] if len(shape) > 1 else 1
    behaviour = gvf.policies.Gaussian(np.zeros(size), 1.5)
    policies: list[gvf.policies.Policy]
    policies = [
        gvf.policies.Gaussian(rng.normal(size=size), rng.random(size) + 0.5) for _ in range(4)
    ]
    policies.append(gvf.policies.Gaussian(lambda s: np.zeros((len(s), size)), 1.0))
    batch = gvf.Transitions(
        state=rng.random((7, 2)), action=rng.normal(size=shape), reward=np.zeros(7)
    )
    if size == 1:
        policies += Tilted().values()
    questions = [gvf.GVF(policy, name=str(i)) for i, policy in enumerate(policies)]
    found = evaluated(questions, batch, behaviour)
    for question, ratios in zip(questions, found, strict=True):
        np.testing.assert_allclose(ratios, question.ratios(batch, behaviour=behaviour), rtol=1e-13)


def test_signals_are_evaluated_once_each():
    calls = []

    def counted(transitions):
        calls.append(len(transitions))
        return many_signals(transitions)

    signals = {"reward": "reward"} | dict(gvf.SignalBank(counted, 3))
    questions = gvf.question_grid(
        {"u": gvf.policies.Uniform(2)}, signals, {"x": 0.5, "edge": near_the_edge}
    )
    assert [q.name for q in questions][:3] == ["u, reward, x", "u, reward, edge", "u, 0, x"]
    layout = Layout(questions, gvf.corrections.IR())
    batch = gvf.Transitions(
        state=[0.1, 0.2], next_state=[0.5, 0.9], action=[0, 1], reward=[1.0, 2.0]
    )
    alive = np.array([True, True])
    cumulants = Evaluator(layout).cumulants(batch)
    continuations = Evaluator(layout).continuations(batch, alive)
    assert calls == [2]
    assert cumulants.shape == (2, 4)
    assert continuations.shape == (2, 2)
    for question, place in zip(questions, layout.place, strict=True):
        np.testing.assert_array_equal(
            cumulants[:, layout.cumulant[place]], question.cumulants(batch)
        )
        np.testing.assert_array_equal(
            layout.scale[place] * continuations[:, layout.source[place]],
            question.continuations(batch),
        )


def test_groups_share_a_policy_and_columns_of_a_continuation_are_neighbours():
    questions = gvf.question_grid(
        {
            "a": gvf.policies.Uniform(2),
            "b": gvf.policies.Always(1, 2),
            "same as a": gvf.policies.Uniform(2),
        },
        {"reward": "reward", "one": lambda t: 1.0},
        [0.9, 0.5],
    )
    layout = Layout(questions, gvf.corrections.IR())
    assert (layout.groups, len(layout.policies), len(layout.cumulants)) == (2, 2, 2)
    assert layout.starts.tolist() == [0, 8, 12]
    assert (np.diff(layout.group) >= 0).all()
    assert layout.scale[:8].tolist() == [0.9] * 4 + [0.5] * 4
    assert [layout.questions[i].name for i in layout.order[8:10]] == [
        "b, reward, 0.9",
        "b, one, 0.9",
    ]
    emphatic = Layout(questions, gvf.corrections.EmphaticIR())
    assert emphatic.groups == 4
