"""The learner by least squares, against exact solutions and a dumb one."""

from dataclasses import replace

import numpy as np
import pytest
from dumb_least_squares import dumb_least_squares
from five_states import (
    BEHAVIOUR,
    CHAIN,
    CHAIN_BEHAVIOUR,
    CORRECTIONS,
    QUESTION,
    chain_stream,
    chain_values,
    stream,
)

import gvf
from gvf import online
from gvf.online.least_squares import RIDGE

NAMES = ("state", "action", "reward", "next_state", "terminated")
DATA = gvf.Transitions(
    **{name: np.array(c) for name, c in zip(NAMES, zip(*stream(600, 4), strict=True), strict=True)}
)
LINES = gvf.features.Dense(3, lambda s: np.column_stack([np.ones(len(s)), s, np.asarray(s) == 2]))
WALK = chain_stream(CHAIN_BEHAVIOUR, 400, seed=3)


def make(features=None, correction=None, **options):
    features, correction = features or gvf.features.OneHot(5), correction or gvf.corrections.IS()
    options = {"question": QUESTION, "behaviour": BEHAVIOUR, **options}
    return gvf.LSTDLearner(features=features, correction=correction, **options)


@pytest.mark.parametrize("features", [gvf.features.OneHot(5), LINES], ids=["active", "dense"])
@pytest.mark.parametrize(
    "correction", [*CORRECTIONS, gvf.corrections.VTrace(0.7)], ids=lambda c: c.name
)
def test_every_correction_has_its_fixed_point(correction, features):
    learner = make(features, correction)
    learner.observe(DATA)
    wanted = dumb_least_squares(QUESTION, features, DATA, correction, BEHAVIOUR)
    np.testing.assert_allclose(learner.weights, wanted, rtol=1e-10)
    report = learner.report()
    assert (report.steps, report.features, report.is_singular) == (600, features.size, False)
    assert report.residual < 1e-12
    assert report.diverged == ()


@pytest.mark.parametrize(
    "correction", [gvf.corrections.EmphaticIR(), gvf.corrections.EmphaticIS(0.5)]
)
def test_an_emphatic_correction_has_its_own_fixed_point(correction):
    question = replace(CHAIN, interest="state")
    learner = make(LINES, correction, question=question, behaviour=CHAIN_BEHAVIOUR)
    learner.observe(WALK)
    wanted = dumb_least_squares(question, LINES, WALK, correction, CHAIN_BEHAVIOUR)
    np.testing.assert_allclose(learner.weights, wanted, rtol=1e-9)
    plain = make(LINES, question=question, behaviour=CHAIN_BEHAVIOUR)
    plain.observe(WALK)
    assert np.abs(plain.weights - wanted).max() > 1e-3


def test_a_log_with_all_transitions_gives_the_true_values():
    # Every action of every state once, weighted by the target: the equations of Bellman themselves.
    state, action = np.divmod(np.arange(10), 2)
    reached = state + 2 * action - 1
    every = gvf.Transitions(
        state=state, action=action, reward=(reached == 5) * 1.0,
        next_state=np.clip(reached, 0, 4), terminated=(reached < 0) | (reached > 4),
    )  # fmt: skip
    for policy in (gvf.policies.Fixed([0.3, 0.7]), CHAIN.policy):
        learner = make(question=gvf.GVF(policy, "reward", 0.9), behaviour=gvf.policies.Uniform(2))
        learner.fit(every, epochs=5)
        assert learner.steps == 10  # a second pass would add the same
        np.testing.assert_allclose(
            learner.predict(np.arange(5)), chain_values(policy, 0.9), rtol=1e-12
        )


@pytest.mark.parametrize("features", [gvf.features.OneHot(5), LINES], ids=["active", "dense"])
def test_parts_files_and_batches_change_no_bit(features, tmp_path):
    whole, parts = (
        make(features, gvf.corrections.EmphaticIR(), question=CHAIN, behaviour=CHAIN_BEHAVIOUR),
        None,
    )
    whole.observe(WALK)
    parts = make(features, gvf.corrections.EmphaticIR(), question=CHAIN, behaviour=CHAIN_BEHAVIOUR)
    for i in range(100):
        parts.observe(WALK[i : i + 1])
    parts.save(tmp_path / "half")
    if features is not LINES:  # a lambda is in no file
        parts = gvf.load(tmp_path / "half")
    else:
        parts = make(
            features, gvf.corrections.EmphaticIR(), question=CHAIN, behaviour=CHAIN_BEHAVIOUR
        )
        parts.load(tmp_path / "half", same_functions=True)
    parts.observe(WALK[100:])
    assert parts.report() == whole.report()
    np.testing.assert_array_equal(parts.weights, whole.weights)
    whole.save(tmp_path / "whole")
    parts.save(tmp_path / "parts")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()
    with pytest.raises(ValueError, match="saved by another learner:\n  regulariser"):
        make(features, gvf.corrections.EmphaticIR(), question=CHAIN, behaviour=CHAIN_BEHAVIOUR,
             regulariser=1.0).load(tmp_path / "whole", same_functions=True)  # fmt: skip
    if features is not LINES:
        parts.export(tmp_path / "predictor")
        predictor = gvf.load(tmp_path / "predictor")
        np.testing.assert_array_equal(predictor.predict([0, 3]), whole.predict([0, 3]))


def test_singular_equations_get_a_ridge_and_the_report_says_so():
    # In 4 tilings each sums to 1, so the predictions are determined and the weights are not.
    coder = gvf.features.TileCoder([0.0], [4.0], tiles=4, tilings=4)
    tiles = lambda states: coder(np.asarray(states, float)[:, None])  # noqa: E731
    tiles.size = coder.size  # pyright: ignore[reportFunctionMemberAccess]
    learner = make(tiles)
    learner.observe(DATA)
    report = learner.report()
    assert report.is_singular
    assert "SINGULAR: the transitions do not determine all weights, so a ridge" in repr(report)
    exact = make()
    exact.observe(DATA)
    assert "SINGULAR" not in repr(exact.report())
    np.testing.assert_allclose(
        learner.predict(np.arange(5)), exact.predict(np.arange(5)), rtol=1e-6
    )
    assert np.abs(learner.weights).max() < 10 * np.abs(exact.weights).max()


def test_beside_a_regulariser_of_the_user_the_report_tells_of_no_other_ridge():
    doubled = lambda states: np.eye(5)[np.asarray(states)][:, [0, 1, 2, 3, 4, 4]]  # noqa: E731
    doubled.size = 6  # pyright: ignore[reportFunctionMemberAccess]
    for regulariser, ridge in ((None, RIDGE), (0.0, 0.0), (1e-13, 0.0)):
        learner = make(doubled, regulariser=regulariser)
        learner.observe(DATA)
        report = learner.report()
        assert report.is_singular
        assert report.ridge == ridge


def test_a_regulariser_is_added_to_the_diagonal():
    options = {"question": CHAIN, "behaviour": CHAIN_BEHAVIOUR}
    learner = make(regulariser=7.5, **options)
    algorithm = online.LSTD(regulariser=7.5)
    other = gvf.OnlineLearner(features=gvf.features.OneHot(5), algorithm=algorithm, **options)
    for one in (learner, other):
        one.observe(WALK)
    np.testing.assert_allclose(learner.weights, other.weights, rtol=1e-10)
    for bad in (-1.0, np.nan, "1"):
        with pytest.raises(ValueError, match="regulariser must be finite and not negative"):
            make(regulariser=bad)


def test_a_state_that_hardly_occurs_makes_the_equations_no_harder():
    state = np.zeros(2_000_001, np.int64)
    state[-1] = 1
    data = gvf.Transitions(
        state=state, action=0 * state, reward=np.ones(len(state)), next_state=state,
        behaviour_probability=np.ones(len(state)),
    )  # fmt: skip
    learner = gvf.LSTDLearner(
        gvf.GVF(gvf.policies.Always(0, actions=1), "reward", 0.9), gvf.features.OneHot(2)
    )
    learner.observe(data)
    np.testing.assert_allclose(learner.predict([0, 1]), 10.0, rtol=1e-9)
    assert learner.report().condition < 10


def test_too_many_features_are_refused_in_a_line_and_nothing_changes():
    learner = make(gvf.features.OneHot(10**6), max_features=3)
    learner.observe(DATA[:1])
    before = learner.report()
    with pytest.raises(ValueError, match=r"5 features occur, .*max_features=3"):
        learner.observe(DATA)
    assert learner.report() == before
    with pytest.raises(ValueError, match="3 features occur"):
        make(LINES, max_features=2).observe(DATA)


def test_a_batch_that_is_refused_leaves_the_trace_as_it_was():
    options = {"question": CHAIN, "behaviour": CHAIN_BEHAVIOUR}
    learner, straight = (make(correction=gvf.corrections.EmphaticIR(), **options) for _ in range(2))
    for one in (learner, straight):
        one.observe(WALK[:7])
    learner.equations.add = refuse
    with pytest.raises(ValueError, match="no room"):
        learner.observe(WALK[7:20])
    del learner.equations.add
    for one in (learner, straight):
        one.observe(WALK[7:])
    np.testing.assert_array_equal(learner.weights, straight.weights)


def refuse(rows, weights):
    raise ValueError("no room")


def test_a_new_learner_and_one_without_mass_predict_nothing():
    learner = make(question=gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9))
    assert learner.report().steps == 0
    learner.observe(0, 1, 1.0, 2, False)  # the target never does that
    assert learner.predict([0, 1, 2]).tolist() == [0.0, 0.0, 0.0]
    assert learner.report().features == 0


def test_sums_that_overflow_are_reported():
    learner = make()
    for reward in (1e308, 1e308):
        learner.observe(0, 0, reward, 1, False)
    assert np.isnan(learner.predict([0])).all()
    assert "the equations have no good solution" in repr(learner.report())


def test_unknown_behaviour_is_fine_without_ratios():
    learner = make(correction=gvf.corrections.OnPolicy(), behaviour=None)
    learner.observe(DATA)
    assert "effective sample size unknown" in repr(learner.report())
    with pytest.raises(ValueError, match="behaviour"):
        make(behaviour=None).observe(DATA)
