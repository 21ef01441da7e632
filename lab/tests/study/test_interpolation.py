"""Between IS and IR in the study's loop: the ends, and what lies between them."""

import numpy as np
import pytest

from gvf.corrections import IS, BCInterpolated, Interpolated
from gvf_lab.catalogue import study_of
from gvf_lab.study import Study, run_method, run_task
from gvf_lab.study.task import TaskInputs

SMALL = {
    "chain": {
        "domain": "markov-chain", "pairs": (("hard", "hard"),), "steps": 300, "updates": 40,
    },
    "rooms, zero ratios": {
        "domain": "four-rooms", "pairs": (("down", "random-state"),), "steps": 400,
        "window": 60, "warm_up": 3, "gaps": (4,),
    },
    "tiles": {
        "domain": "continuous-four-rooms", "pairs": (("favoured-down", "uniform"),), "steps": 90,
        "window": 40, "warm_up": 10, "gaps": (4,), "evaluation_states": 20, "measure_every": 10,
    },
}  # fmt: skip


# The ends.


ZERO, BC_ZERO = Interpolated(0.0), BCInterpolated(0.0)
ONE, BC_ONE = Interpolated(1.0), BCInterpolated(1.0)


@pytest.mark.parametrize("settings", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize(("one", "end"), [(ONE, "IR"), (BC_ONE, "BC-IR")])
def test_beta_one_is_resampling_to_the_last_bit(settings, one, end):
    study = Study("s", methods=(end, one), step_sizes=(0.05, 0.3), runs=2, **settings)
    for task in study.tasks():
        known, interpolated = run_task(task)
        np.testing.assert_array_equal(interpolated.error, known.error)
        np.testing.assert_array_equal(interpolated.curve, known.curve)
        assert known.error[0] != known.error[1]


@pytest.mark.parametrize("settings", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("zero", [ZERO, BC_ZERO])
def test_beta_zero_is_reweighting_to_the_last_bit_from_the_same_draws(settings, zero):
    """Its own draws are as uniform, but come from another stream of random numbers."""
    study = Study("s", methods=("IS", zero), step_sizes=(0.05, 0.3), runs=1, **settings)
    task = next(study.tasks())
    shared = TaskInputs(task)
    interpolated, apart = (run_method(task, name, shared=shared) for name in study.methods[::-1])
    assert study.method(interpolated.method).make(1.0) == zero
    assert (apart.error != interpolated.error).all()
    shared._draws[False, IS().draw] = shared.draws(zero)
    together = run_method(task, "IS", shared=shared)
    np.testing.assert_array_equal(together.error, interpolated.error)
    np.testing.assert_array_equal(together.curve, interpolated.curve)


def test_beta_zero_has_the_error_of_reweighting_from_draws_of_its_own():
    """The mean difference of 300 runs is within 4 standard errors; that of beta = .1 is not."""
    study = Study("s", "markov-chain", ("IS", ZERO, Interpolated(0.1)), (1.0,),
                  pairs=(("hard", "hard"),), steps=2000, updates=300, runs=300)  # fmt: skip
    errors = np.array([[o.error[0] for o in run_task(task)] for task in study.tasks()])
    for column, same in ((1, True), (2, False)):
        difference = errors[:, column] - errors[:, 0]
        statistic = abs(difference.mean()) / (difference.std(ddof=1) / np.sqrt(len(difference)))
        assert (statistic < 4) == same


# The studies.


def test_it_beats_both_ends_on_the_hard_chain_and_not_on_the_easy_one():
    """Each at its own best step size, means of 100 runs; paired, by 3 standard errors or more."""
    study = study_of("interpolation-chain")
    assert isinstance(study, Study)
    study = study.with_(
        methods=("IS", "IR", "BC-Interpolated(0.5)"),
        pairs=(("easy", "easy"), ("hard", "hard")),
        step_sizes=(1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 3.5, 4.0),
        runs=100,
    )
    errors = {}
    for task in study.tasks():
        for outcome in run_task(task):
            errors.setdefault((task.question, outcome.method), []).append(outcome.error)
    best = {}
    for key, runs in errors.items():
        runs = np.array(runs)
        best[key] = runs[:, int(np.argmin(runs.mean(axis=0)))]

    def statistic(pair, end):
        difference = best[pair, "BC-Interpolated(0.5)"] - best[pair, end]
        return difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))

    assert statistic("hard", "IR") < -5
    assert statistic("hard", "IS") < -5
    assert statistic("easy", "IR") < -5
    assert statistic("easy", "IS") > 3
