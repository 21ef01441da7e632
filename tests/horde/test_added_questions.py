"""Questions that are added later learn as a learner that begins then."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from many_learners import BEHAVIOUR, CORRECTIONS, learner_like, record, stream

import gvf

TILES = gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4)
OLD = gvf.question_grid(
    {"u": gvf.policies.Uniform(3), "one": gvf.policies.Always(1, actions=3)},
    {"reward": "reward"},
    [0.5],
)


@dataclass(frozen=True)
class WholeWindow(gvf.corrections.Correction):
    """The whole window in every batch, with equal weights."""

    mass = "window"

    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        out[:] = means[0] * p / out.size


EVERY = [
    WholeWindow(),
    *CORRECTIONS,
    gvf.corrections.OnPolicy(),
    gvf.corrections.EmphaticBCIR(0.5),
    gvf.corrections.BCInterpolated(0.5),
]


def squared(transitions):
    return transitions["reward"] ** 2


NEW = [
    replace(OLD[0], cumulant=squared, name="new cumulant"),
    replace(OLD[0], policy=gvf.policies.Fixed([0.5, 0.2, 0.3]), name="new policy"),
]


def made(questions, correction, steps_per_call=None, **options):
    options = {"window": 40, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return gvf.Horde(
        questions, TILES, gvf.updates.TD(0.1), correction, steps_per_call=steps_per_call, **options
    )


def with_new_ones(correction, steps_per_call, data, since):
    """A horde that has got new questions after so many steps, and the batches it draws then."""
    horde = made(OLD, correction, steps_per_call)
    horde.observe(data[:since])
    horde.add(NEW)
    return horde


@pytest.mark.parametrize("since", [25, 70])  # before the window is full, and after
@pytest.mark.parametrize("steps_per_call", [1, 7, 64])
@pytest.mark.parametrize("correction", EVERY, ids=lambda c: c.name)
def test_an_added_question_learns_as_a_learner_that_begins_then(correction, steps_per_call, since):
    data = stream(since + 60, states=0)
    horde = with_new_ones(correction, steps_per_call, data, since)
    batches = record(horde, data.state[:1])
    horde.observe(data[since:])
    for question in (2, 3):
        learner = learner_like(horde, question, batches)
        learner.observe(data[since:])
        np.testing.assert_allclose(
            horde.weights(horde.names[question]), learner.weights, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("since", [25, 70])
@pytest.mark.parametrize("steps_per_call", [1, 7, 64])
@pytest.mark.parametrize("correction", EVERY, ids=lambda c: c.name)
def test_an_added_question_draws_as_a_horde_that_begins_then(correction, steps_per_call, since):
    data = stream(since + 39, states=0)  # when its rows fill the window, it joins the draws of all
    horde = with_new_ones(correction, steps_per_call, data, since)
    for question in NEW:
        alone = made([question], correction, steps_per_call)
        alone._predict(data.state[:1])
        shard = horde._shard
        group = shard.layout.group[shard.layout.place[horde.names.index(question.name)]]
        alone._shard.draws.streams[:] = shard.draws.streams[[group, -1]]
        horde_again = with_new_ones(correction, steps_per_call, data, since)
        for one in (alone, horde_again):
            one.observe(data[since:])
        np.testing.assert_allclose(
            horde_again.weights(question.name), alone.weights(question.name), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("correction", EVERY, ids=lambda c: c.name)
def test_the_other_questions_do_not_notice(correction):
    data = stream(130, states=0)
    horde, alone = with_new_ones(correction, None, data, 70), made(OLD, correction)
    alone.observe(data[:70])
    for one in (horde, alone):
        one.observe(data[70:])
    for question in OLD:
        np.testing.assert_allclose(
            horde.weights(question.name), alone.weights(question.name), rtol=1e-12, atol=1e-12
        )
