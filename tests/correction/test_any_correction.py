"""A user's correction works everywhere that corrections work, with the right results.

SquareRoot (tests/own_corrections.py) draws by p = sqrt(rho) and weighs by w = sqrt(rho) / k. Each
place is checked against code that shares nothing with the library's draws or weights.
"""

import itertools
import math
from dataclasses import replace
from functools import partial

import dumb
import numpy as np
import pytest
from five_states import BEHAVIOUR, QUESTION, UPDATES, stream
from own_corrections import SquareRoot
from small_studies import FIXED, ONLINE, ROOMS, TILES, dumb_errors

import gvf
from gvf import domain as domains
from gvf.study import Method, Study, VarianceStudy, run_task, run_variance
from gvf.study.base import seed_for
from gvf.theory.numbers.enumeration import enumerated_moments

FORMS = {
    "a correction": SquareRoot(),
    "a class": SquareRoot,
    "a reference": "own_corrections:SquareRoot",
    "a table": {"correction": "own_corrections:SquareRoot"},
    "a method": Method("own_corrections:SquareRoot"),
}
"""The ways in which a study may name a user's method."""


@pytest.fixture(autouse=True)
def truths_in_a_temporary_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "truth"))


@pytest.mark.parametrize("update", UPDATES)
def test_in_a_learner_with_every_update(update):
    fast, constants = UPDATES[update]
    options = {"behaviour": BEHAVIOUR, "window": 7, "seed": 3}
    learner = gvf.Learner(QUESTION, gvf.OneHot(5), fast, SquareRoot(), batch_size=4, **options)
    sarsa = fast.next_action if fast.action_values else None
    lane = {"alpha": 0.05, "eta": 0.05}
    slow = dumb.DumbLearner(
        QUESTION, gvf.OneHot(5), dumb.DumbUpdate(rows=10 if sarsa else 5, **constants, **lane),
        SquareRoot(), k=4, sarsa=sarsa, **options,
    )  # fmt: skip
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
        QUESTION, gvf.OneHot(5), dumb.DumbUpdate("sgd", 5, alpha=0.3), SquareRoot(), BEHAVIOUR,
        window=7, k=4, seed=3, sarsa=None,
    )  # fmt: skip
    for transition in stream(25, seed=8):
        neural.observe(*transition)
        slow.observe(*transition)
    np.testing.assert_allclose(neural.predict(np.arange(5)), slow.update.weights, rtol=1e-9)


LOOPS = {
    "fixed buffer": {**FIXED},
    "online, table": {**ROOMS, **ONLINE},
    "online, tiles": {**TILES, **ONLINE},
    "incremental": {**ROOMS, **ONLINE, "update": "incremental"},
    "gradient": {**ROOMS, **ONLINE, "update": "tdrc"},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_in_a_study_by_whatever_names_it(form):
    plain = Study("s", methods=("IR", "own_corrections:SquareRoot"), step_sizes=(0.02,), **FIXED)
    study = Study("s", methods=("IR", form), step_sizes=(0.02,), **FIXED)
    assert study.methods == ("IR", "SquareRoot")
    assert study.method("SquareRoot").make(1.0) == SquareRoot()
    assert study == plain


@pytest.mark.parametrize("settings", LOOPS.values(), ids=LOOPS)
def test_in_a_study(settings):
    study = Study("s", methods=("IR", SquareRoot(), "IS"), step_sizes=(0.02,), runs=1, **settings)
    task = next(study.tasks())
    outcomes = {outcome.method: outcome for outcome in run_task(task)}
    expected = dumb_errors(task, "SquareRoot", 0.02)
    assert outcomes["SquareRoot"].error[0] == pytest.approx(expected.mean(), rel=1e-9)
    assert outcomes["SquareRoot"].final[0] == pytest.approx(expected[-1], rel=1e-9)
    assert len({outcome.error[0] for outcome in outcomes.values()}) == 3


def test_in_a_study_of_the_variance():
    study = VarianceStudy("v", methods=(SquareRoot(), "IR"), pairs=(("easy", "easy"),), buffer=300,
                          iterations=(0,), batches=4000, runs=1)  # fmt: skip
    measured = run_variance(next(study.tasks()))["SquareRoot"][0]
    chain = domains.get("markov-chain")
    assert isinstance(chain, domains.TabularDomain)
    mu, pi = chain.table(chain.behaviour("easy")), chain.table(chain.target("easy"))
    seed = seed_for(0, 0, "walk", "easy")
    path = chain.walk(chain.behaviour("easy"), ["easy"], 300, seed)
    rho, delta = (pi / mu)[path.x[:, 0], path.action], path.signals["easy"].cumulant
    # The sum of w delta over 16 independent draws, with probabilities sqrt(rho) / sum.
    p = np.sqrt(rho) / np.sqrt(rho).sum()
    variance = (p @ (np.sqrt(rho) * delta) ** 2 - (p @ (np.sqrt(rho) * delta)) ** 2) / 16
    # Of 4000 batches: 5 standard errors of a variance, about 2.2 % each.
    assert measured[2] == pytest.approx(variance, rel=0.11)


WINDOW = np.array([0.3, 0.0, 7.1, 1.9])
UPDATES_OF_WINDOW = np.array([[0.4, -1.0], [2.2, 3.0], [-0.9, 0.1], [1.3, 0.0]])


def enumerated(k):
    """Mean and variance of the update over all batches of k, each with its probability."""
    p = np.sqrt(WINDOW) / np.sqrt(WINDOW).sum()
    mean, second = np.zeros(2), 0.0
    for batch in itertools.product(range(4), repeat=k):
        x = sum((math.sqrt(WINDOW[i]) / k * UPDATES_OF_WINDOW[i] for i in batch), np.zeros(2))
        chance = math.prod(p[i] for i in batch)
        mean, second = mean + chance * x, second + chance * x @ x
    return mean, second - mean @ mean


def test_in_the_theory():
    mean, variance = enumerated(2)
    found = enumerated_moments(SquareRoot(), WINDOW[None], UPDATES_OF_WINDOW[None], k=2)
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance[0], variance, rtol=1e-12)


def test_in_the_diagnosis():
    mean, variance = enumerated(3)
    found = gvf.diagnose(WINDOW, UPDATES_OF_WINDOW, batch_size=3, corrections=[SquareRoot()])
    moments = found.moments["SquareRoot"]
    assert moments.variance == pytest.approx(variance, rel=1e-12)
    assert moments.length == pytest.approx(np.linalg.norm(mean), rel=1e-12)
    assert "SquareRoot" in repr(found)


def test_in_the_diagnosis_of_a_learner():
    learner = gvf.Learner(
        QUESTION, gvf.OneHot(5), gvf.TD(0.1), SquareRoot(), behaviour=BEHAVIOUR, window=50, seed=0
    )
    for transition in stream(60, seed=1):
        learner.observe(*transition)
    found = learner.diagnose(corrections=[gvf.IR(), SquareRoot(), gvf.Interpolated(0.5)])
    assert isinstance(found, gvf.Diagnosis)
    root, half = found.moments["SquareRoot"], found.moments["Interpolated(0.5)"]
    assert root.variance == pytest.approx(half.variance, rel=1e-9)
    assert root.variance != pytest.approx(found.moments["IR"].variance, rel=1e-3)
