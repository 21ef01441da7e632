"""A user's correction works in every study and in the theory, with the right results.

SquareRoot (tests/own_corrections.py) draws by p = sqrt(rho) and weighs by w = sqrt(rho) / k. Each
place is checked against code that shares nothing with the library's draws or weights.
"""

import numpy as np
import pytest
from own_corrections import SquareRoot, enumerated_square_root
from small_studies import FIXED, ONLINE, ROOMS, TILES, dumb_errors

from gvf.learners import Method
from gvf_lab import domain as domains
from gvf_lab.study import Study, VarianceStudy, run_task, run_variance
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.enumeration import enumerated_moments

FORMS = {
    "a correction": SquareRoot(),
    "a class": SquareRoot,
    "a reference": "own_corrections:SquareRoot",
    "a table": {"correction": "own_corrections:SquareRoot"},
    "a method": Method("own_corrections:SquareRoot"),
}
"""The ways in which a study may name a user's method."""


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


def test_in_the_theory():
    mean, variance = enumerated_square_root(WINDOW, UPDATES_OF_WINDOW, 2)
    found = enumerated_moments(SquareRoot(), WINDOW[None], UPDATES_OF_WINDOW[None], k=2)
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance[0], variance, rtol=1e-12)
