"""Emphatic corrections: the trace against a plain loop, and rho F in the place of rho."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dumb import follow_on
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream

import gvf
from gvf.corrections.carried import carried

PAIRS = [
    (gvf.corrections.EmphaticIR, gvf.corrections.IR()),
    (gvf.corrections.EmphaticBCIR, gvf.corrections.BCIR()),
    (gvf.corrections.EmphaticWISMinibatch, gvf.corrections.WISMinibatch()),
    (gvf.corrections.EmphaticIS, gvf.corrections.IS()),
]
EMPHATIC = [pair[0] for pair in PAIRS]
BETAS = [None, 0.0, 0.6, 1.0]


def rows(m, seed):
    """Ratios (some 0), continuations that vary (some 0), interests, and ends of episodes."""
    rng = np.random.default_rng(seed)
    ratio = rng.lognormal(size=m) * (rng.random(m) > 0.1)
    continuation = rng.random(m) * (rng.random(m) > 0.1)
    return ratio, continuation, rng.random(m), rng.random(m) < 0.1


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("kind", EMPHATIC)
def test_the_trace_is_the_follow_on_trace(kind, beta):
    ratio, continuation, interest, ended = rows(500, seed=1)
    found = carried(kind(beta), ratio, continuation, ended, interest)
    np.testing.assert_array_equal(found[0], ratio)
    expected = follow_on(ratio, continuation, interest, ended, beta)
    np.testing.assert_allclose(found[1], expected, rtol=1e-14)


@pytest.mark.parametrize(("kind", "plain"), PAIRS)
def test_masses_and_weights_are_those_of_the_plain_form_with_rho_f(kind, plain):
    correction = kind(0.8)
    inputs = np.random.default_rng(2).lognormal(size=(2, 6))
    inputs[0, 2] = 0.0
    emphasis = inputs[0] * inputs[1]
    np.testing.assert_allclose(correction.masses(inputs), plain.masses(emphasis))
    means = correction.means(inputs)
    found, expected = correction.weights(inputs, means), plain.weights(emphasis, emphasis.mean())
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    nothing = np.array([[0.0, 0.0], [1.0, 2.0]])
    if kind is not gvf.corrections.EmphaticIR:
        assert correction.weights(nothing, correction.means(nothing)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("beta", [-0.1, 1.1, float("nan"), float("inf"), "0.5", [0.5], np.ones(2)])
@pytest.mark.parametrize("kind", EMPHATIC)
def test_a_beta_outside_0_to_1_is_refused_in_one_line(kind, beta):
    message = re.escape(f"beta must be from 0 to 1, or None, got {beta!r}")
    with pytest.raises(ValueError, match=f"^{message}$"):
        kind(beta)


def test_names_show_a_beta_only_if_it_is_given():
    names = [kind().name for kind in EMPHATIC]
    assert names == ["Emphatic IR", "Emphatic BC-IR", "Emphatic WIS-Minibatch", "Emphatic IS"]
    assert gvf.corrections.EmphaticIR(0.6).name == "Emphatic IR(0.6)"


def test_resampling_with_the_same_beta_shares_draws():
    assert gvf.corrections.EmphaticIR(0.6).draw == gvf.corrections.EmphaticBCIR(0.6).draw
    assert gvf.corrections.EmphaticIS().draw == gvf.corrections.EmphaticWISMinibatch().draw
    draws = [
        gvf.corrections.EmphaticIR().draw,
        gvf.corrections.EmphaticIR(0.6).draw,
        gvf.corrections.EmphaticIS().draw,
        gvf.corrections.IR().draw,
    ]
    assert len(set(draws)) == 4


# Learners


def make(correction, question=CHAIN, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 50, "seed": 0, "batch_size": 4, **options}
    return gvf.Learner(question, gvf.features.OneHot(5), gvf.updates.TD(0.3), correction, **options)


DATA = chain_stream(CHAIN_BEHAVIOUR, 200, seed=3)
VARYING = gvf.GVF(CHAIN.policy, "reward", lambda t: 0.5 + 0.1 * t.next_state)


@pytest.mark.parametrize("beta", [None, 0.7])
@pytest.mark.parametrize(("kind", "plain"), PAIRS)
def test_a_learner_learns_as_the_plain_form_with_ratios_rho_f(kind, plain, beta):
    question = replace(VARYING, interest=lambda t: 1.0 + (t.state == 2))
    learner = make(kind(beta), question)
    learner.observe(DATA)
    found = question.evaluate(DATA, behaviour=CHAIN_BEHAVIOUR)
    trace = follow_on(found.ratio, found.continuation, found.interest, DATA.terminated, beta)
    np.testing.assert_allclose(learner.buffer.inputs[1], trace[-50:], rtol=1e-13)
    pi = CHAIN.policy.probability(DATA.state, DATA.action)
    recorded = gvf.Transitions(**DATA.columns, behaviour_probability=pi / (found.ratio * trace))
    other = make(plain, question, behaviour=None)
    other.observe(recorded)
    np.testing.assert_allclose(learner.weights, other.weights, rtol=1e-9)
    assert learner.updates == other.updates == 200


@pytest.mark.parametrize("interest", ["care", lambda t: t.care, 3.0, None])
def test_interest_is_a_number_a_column_or_a_function(interest):
    care = np.random.default_rng(4).random(200)
    log = gvf.Transitions(**DATA.columns, care=care)
    learner = make(gvf.corrections.EmphaticIR(), replace(CHAIN, interest=interest), window=200)
    learner.observe(log)
    numbers = {None: np.ones(200), 3.0: np.full(200, 3.0)}.get(interest, care)
    asked = CHAIN.evaluate(DATA, behaviour=CHAIN_BEHAVIOUR)
    expected = follow_on(asked.ratio, asked.continuation, numbers, DATA.terminated)
    np.testing.assert_allclose(learner.buffer.inputs[1], expected, rtol=1e-13)


def test_a_correction_without_a_trace_ignores_interest():
    asked = replace(CHAIN, interest="a column that is not there")
    for on_nan in ("error", "skip"):
        learner, same = make(gvf.corrections.IR(), asked, on_nan=on_nan), make(gvf.corrections.IR())
        for one in (learner, same):
            one.observe(DATA)
        np.testing.assert_array_equal(learner.weights, same.weights)


@pytest.mark.parametrize("kind", EMPHATIC)
def test_a_learner_that_is_saved_within_an_episode_goes_on_with_the_same_bits(kind, tmp_path):
    middle = int(np.flatnonzero(~DATA.terminated[80:])[0]) + 81  # the row before has not ended
    learner = make(kind(), VARYING, window=200)
    learner.observe(DATA[:middle])
    learner.save(tmp_path / "learner")
    again = make(kind(), VARYING, window=200).load(tmp_path / "learner", same_functions=True)
    for one in (learner, again):
        one.observe(DATA[middle:])
    np.testing.assert_array_equal(again.buffer.inputs, learner.buffer.inputs)
    np.testing.assert_array_equal(again.weights, learner.weights)
    fresh = make(kind(), VARYING)
    fresh.observe(DATA[middle:])
    assert fresh.buffer.inputs[1, 0] != again.buffer.inputs[1, middle]


def test_a_question_with_interest_is_saved_and_compared(tmp_path):
    make(gvf.corrections.EmphaticIR(), replace(CHAIN, interest="care")).save(tmp_path / "learner")
    assert gvf.load(tmp_path / "learner").question.interest == "care"
    with pytest.raises(ValueError, match="interest"):
        make(gvf.corrections.EmphaticIR()).load(tmp_path / "learner")


def test_the_example_of_the_readme_needs_one_word_to_be_emphatic():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    assert example.count("gvf.corrections.IR()") == 1
    changed = example.replace("gvf.corrections.IR()", "gvf.corrections.EmphaticIR()").replace(
        "10_000", "500"
    )
    told = {}
    exec(changed.replace("states=100", "states=5"), told)
    assert told["learner"].correction == gvf.corrections.EmphaticIR()
    assert told["learner"].updates == 500
