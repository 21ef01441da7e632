"""A user's correction works everywhere that corrections work, with the right results.

SquareRoot (tests/own_corrections.py) draws by p = sqrt(rho) and weighs by w = sqrt(rho) / k. Each
place is checked against code that shares nothing with the library's draws or weights.
"""

from dataclasses import replace
from functools import partial

import dumb
import numpy as np
import pytest
from five_states import BEHAVIOUR, QUESTION, UPDATES, stream
from own_corrections import SquareRoot, enumerated_square_root

import gvf


@pytest.mark.parametrize("update", UPDATES)
def test_in_a_learner_with_every_update(update):
    fast, constants = UPDATES[update]
    options = {"behaviour": BEHAVIOUR, "window": 7, "seed": 3}
    learner = gvf.Learner(
        QUESTION, gvf.features.OneHot(5), fast, SquareRoot(), batch_size=4, **options
    )
    sarsa = fast.next_action if fast.action_values else None
    lane = {"alpha": 0.05, "eta": 0.05}
    slow = dumb.DumbLearner(
        QUESTION,
        gvf.features.OneHot(5),
        dumb.DumbUpdate(rows=10 if sarsa else 5, **constants, **lane),
        SquareRoot(),
        k=4,
        sarsa=sarsa,
        **options,
    )
    single = learner_with_one_lane(learner, fast, lane, options)
    for transition in stream(25, seed=8):
        single.observe(*transition)
        slow.observe(*transition)
    assert np.abs(slow.update.weights).max() > 0.01
    np.testing.assert_allclose(single.weights, slow.update.weights, rtol=1e-9, atol=1e-12)


def learner_with_one_lane(learner, fast, lane, options):
    """The same learner with the lane that the dumb one has."""
    fields = {name: lane["alpha"] for name in fast.lane_fields}
    if "u0" in fields:
        fields = {"u0": 5.0, "eta": lane["eta"]}
    fast = replace(fast, **fields)
    return gvf.Learner(
        QUESTION, learner.features, fast, learner.correction, batch_size=4, **options
    )


def test_in_a_neural_learner():
    torch = pytest.importorskip("torch")
    from networks import OneHot

    from gvf.neural import NeuralLearner

    options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3}
    optimiser = partial(torch.optim.SGD, lr=0.3)
    neural = NeuralLearner(QUESTION, OneHot(5), optimiser, SquareRoot(), **options)
    slow = dumb.DumbLearner(
        QUESTION,
        gvf.features.OneHot(5),
        dumb.DumbUpdate("sgd", 5, alpha=0.3),
        SquareRoot(),
        BEHAVIOUR,
        window=7,
        k=4,
        seed=3,
        sarsa=None,
    )
    for transition in stream(25, seed=8):
        neural.observe(*transition)
        slow.observe(*transition)
    np.testing.assert_allclose(neural.predict(np.arange(5)), slow.update.weights, rtol=1e-9)


WINDOW = np.array([0.3, 0.0, 7.1, 1.9])
UPDATES_OF_WINDOW = np.array([[0.4, -1.0], [2.2, 3.0], [-0.9, 0.1], [1.3, 0.0]])


def test_in_the_diagnosis():
    mean, variance = enumerated_square_root(WINDOW, UPDATES_OF_WINDOW, 3)
    found = gvf.diagnose(WINDOW, UPDATES_OF_WINDOW, batch_size=3, corrections=[SquareRoot()])
    moments = found.moments["SquareRoot"]
    assert moments.variance.value == pytest.approx(variance, rel=1e-12)
    assert moments.length == pytest.approx(np.linalg.norm(mean), rel=1e-12)
    assert "SquareRoot" in repr(found)


def test_in_the_diagnosis_of_a_learner():
    learner = gvf.Learner(
        QUESTION,
        gvf.features.OneHot(5),
        gvf.updates.TD(0.1),
        SquareRoot(),
        behaviour=BEHAVIOUR,
        window=50,
        seed=0,
    )
    for transition in stream(60, seed=1):
        learner.observe(*transition)
    found = learner.diagnose(
        corrections=[gvf.corrections.IR(), SquareRoot(), gvf.corrections.Interpolated(0.5)]
    )
    assert isinstance(found, gvf.Diagnosis)
    root, half = found.moments["SquareRoot"], found.moments["Interpolated(0.5)"]
    assert root.variance.value == pytest.approx(half.variance.value, rel=1e-9)
    assert root.variance.value != pytest.approx(found.moments["IR"].variance.value, rel=1e-3)
