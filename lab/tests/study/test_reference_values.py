"""Errors of whole studies against reference values."""

import numpy as np
import pytest
from small_studies import CHAIN, TILES

from gvf_lab.study import Study, run_task

REFERENCE = {
    # method: (least error, where it passes 1), hard pair, 100 runs
    "IR": (0.0303, 7.09),
    "BC-IR": (0.0303, 7.01),
    "IS": (0.0416, 2.91),
    "WIS-Minibatch": (0.149, 3.27),
    "WIS-Buffer": (0.0416, 2.90),
    "V-trace(0.5 max)": (0.0797, 5.87),
    "V-trace(0.9 max)": (0.0437, 3.24),
    "WIS-Optimal": (0.0076, 7.00),
    "Sarsa": (0.063, 10.4),
    "Expected Sarsa": (0.0355, 10.9),
    "On-policy": (0.0208, 7.04),
}


def errors_of(study):
    """Errors [runs, step sizes] of every method."""
    errors = {name: [] for name in study.methods}
    for task in study.tasks():
        for outcome in run_task(task):
            errors[outcome.method].append(outcome.error)
    return {name: np.array(runs) for name, runs in errors.items()}


def assert_near(runs, value, digit):
    """Within 3 standard errors of ours and a reference of as many runs, and its last digit."""
    standard_error = runs.std(ddof=1) / np.sqrt(len(runs))
    assert abs(runs.mean() - value) < 3 * np.sqrt(2) * standard_error + digit


def crossing(sizes, errors):
    """The step size at which the mean error passes 1, between two of the grid."""
    mean = errors.mean(axis=0)
    above = int(np.argmax(mean > 1))
    below, over = mean[above - 1], mean[above]
    part = np.log(1 / below) / np.log(over / below) if np.isfinite(over) else 0.5
    return sizes[above - 1] + part * (sizes[above] - sizes[above - 1])


def test_the_chain_has_its_reference_values():
    """Minima within 3 standard errors of 100 runs; crossings, which vary by 2 %, over 3 seeds."""
    sizes = tuple(np.arange(0, 121).round() / 10)
    crossings = {name: [] for name in REFERENCE}
    for seed in range(3):
        study = Study("s", methods=(*REFERENCE, "V-trace(1.0)"), step_sizes=sizes, runs=100,
                      seed=seed, **{**CHAIN, "steps": 15_000, "updates": 1000})  # fmt: skip
        errors = errors_of(study)
        for name, (least, _) in REFERENCE.items():
            mean = errors[name].mean(axis=0)
            assert mean[0] == pytest.approx(0.517162, abs=5e-7)
            assert_near(errors[name][:, int(np.argmin(mean))], least, 5e-5 if least < 0.1 else 5e-4)
            crossings[name].append(crossing(sizes, errors[name]))
        assert_near(errors["V-trace(1.0)"][:, 100], 0.349, 5e-4)
        assert (errors["V-trace(1.0)"].mean(axis=0) < 1).all()
    for name, (_, reference) in REFERENCE.items():
        assert np.mean(crossings[name]) == pytest.approx(reference, rel=0.02), name


def test_the_easy_and_the_hardest_pair_have_their_reference_values():
    sizes = (0.2, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
    common = {"domain": "markov-chain", "steps": 15_000, "updates": 1000, "runs": 100}
    for pair, least in (("easy", {"IS": 0.0177, "IR": 0.0233}), ("hardest", {"IR": 0.038})):
        errors = errors_of(Study("s", methods=tuple(least), step_sizes=sizes,
                                 pairs=((pair, pair),), **common))  # fmt: skip
        for name, value in least.items():
            best = errors[name][:, int(np.argmin(errors[name].mean(axis=0)))]
            assert_near(best, value, 0.03 * value)
        if pair == "easy":
            assert errors["IS"].mean(axis=0).min() < errors["IR"].mean(axis=0).min()


def test_the_continuous_rooms_have_their_reference_values():
    """Protocol "authors", 25 runs: RMSProp with an update every 256 steps; SGD at every step."""
    common = {"domain": TILES["domain"], "protocol": "authors", "pairs": (("down", "uniform"),),
              "steps": 100_000, "warm_up": 1000, "measure_every": 100,
              "evaluation_states": 100}  # fmt: skip
    reference = {"IR": 0.274, "IS": 0.394, "WIS-Minibatch": 0.396, "V-trace(1.0)": 0.394}
    errors = errors_of(Study("s", methods=tuple(reference), step_sizes=(5e-4, 1e-3, 5e-3),
                             update="rmsprop", gaps=(256,), runs=25, **common))  # fmt: skip
    for name, value in reference.items():
        best = errors[name][:, int(np.argmin(errors[name].mean(axis=0)))]
        assert_near(best, value, 5e-4)
    sgd = errors_of(Study("s", methods=("IR",), step_sizes=(0.025, 0.3, 0.4), runs=4, **common))
    assert_near(sgd["IR"][:, 0], 0.193, 5e-4)
    assert (sgd["IR"][:, 1] < 1).all()
    assert (sgd["IR"][:, 2] > 1).all()


def test_on_the_star_td_diverges_and_gradient_td_does_not():
    """Dense features, in the same loop: the values are 0, and start at up to 12."""
    errors = {}
    for update in ("sgd", "tdrc"):
        study = Study("s", "star", ("IR",), (0.03,), update=update, steps=20_000, window=1000,
                      measure_every=1000, runs=1)  # fmt: skip
        errors[update] = run_task(next(study.tasks()))[0]
    assert not errors["sgd"].final[0] < 1e3
    assert errors["tdrc"].final[0] < errors["tdrc"].curve[0, 0]
