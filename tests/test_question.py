"""Questions: ratio, cumulant and continuation of a batch, and what bad input is told."""

import numpy as np
import pytest

from gvf.policy import Always, Fixed, FunctionPolicy, Gaussian, Uniform
from gvf.question import GVF, Evaluation
from gvf.transition import Transitions

BATCH = Transitions(
    state=np.arange(4),
    action=[0, 1, 1, 0],
    reward=[1.0, -2.0, 3.0, 0.5],
    next_state=[1, 2, 3, 4],
    terminated=[False, False, True, False],
    truncated=[False, True, False, False],
)
TARGET, BEHAVIOUR = Fixed([0.1, 0.9]), Fixed([0.6, 0.4])


def with_columns(**columns):
    return Transitions(**BATCH.columns, **columns)


def without(name):
    return Transitions(**{n: column for n, column in BATCH.columns.items() if n != name})


def test_discounted_reward_is_one_line():
    result = GVF(TARGET, "reward", 0.9).evaluate(BATCH, behaviour=BEHAVIOUR)
    assert isinstance(result, Evaluation)
    assert result.ratio.tolist() == [0.1 / 0.6, 0.9 / 0.4, 0.9 / 0.4, 0.1 / 0.6]
    assert result.cumulant.tolist() == [1.0, -2.0, 3.0, 0.5]
    assert result.continuation.tolist() == [0.9, 0.9, 0.0, 0.9]
    assert {array.dtype for array in result} == {np.dtype(np.float64)}
    assert GVF(TARGET) == GVF(TARGET, "reward", 0.9)


def test_terminated_ends_the_sum_and_truncated_does_not():
    for question in (GVF(TARGET, continuation=1), GVF(TARGET, continuation=lambda t: 1.0)):
        assert question.continuations(BATCH).tolist() == [1, 1, 0, 1]
        assert question.continuations(without("terminated")).tolist() == [1, 1, 1, 1]
        assert question.continuations(without("truncated")).tolist() == [1, 1, 0, 1]


def test_functions_see_the_batch_and_may_return_booleans_or_a_scalar():
    question = GVF(
        TARGET,
        cumulant=lambda t: t.next_state == 4,
        continuation=lambda t: 0.5 * (t.next_state != 1),
    )
    result = question.evaluate(BATCH, behaviour=BEHAVIOUR)
    assert result.cumulant.tolist() == [0, 0, 0, 1]
    assert result.continuation.tolist() == [0, 0.5, 0, 0.5]
    constant = GVF(TARGET, cumulant=lambda t: 1, continuation=lambda t: 0.25)
    assert constant.cumulants(BATCH).tolist() == [1, 1, 1, 1]
    assert constant.continuations(BATCH).tolist() == [0.25, 0.25, 0, 0.25]


def test_any_column_may_be_the_cumulant():
    assert GVF(TARGET, "next_state").cumulants(BATCH).tolist() == [1, 2, 3, 4]
    with pytest.raises(KeyError, match=r"no column 'heat'.*state, action, reward"):
        GVF(TARGET, "heat").cumulants(BATCH)


def test_recorded_behaviour_gives_the_same_ratios_as_the_policy():
    recorded = BEHAVIOUR.probability(BATCH.state, BATCH.action)
    question = GVF(TARGET)
    expected = question.evaluate(BATCH, behaviour=BEHAVIOUR).ratio
    by_column = question.evaluate(with_columns(behaviour_probability=recorded)).ratio
    by_log = question.evaluate(with_columns(behaviour_log_probability=np.log(recorded))).ratio
    assert by_column.tolist() == expected.tolist()
    np.testing.assert_allclose(by_log, expected, rtol=1e-14)


def test_a_policy_goes_before_the_columns_and_the_logarithm_before_the_probability():
    question = GVF(TARGET)
    both = with_columns(
        behaviour_probability=np.full(4, 0.5), behaviour_log_probability=np.log(np.full(4, 0.25))
    )
    given = question.evaluate(both, behaviour=Uniform(2)).ratio
    np.testing.assert_allclose(given, np.array([0.1, 0.9, 0.9, 0.1]) / 0.5)
    np.testing.assert_allclose(
        question.evaluate(both).ratio, np.array([0.1, 0.9, 0.9, 0.1]) / 0.25, rtol=1e-14
    )


def test_recorded_log_densities_that_underflow_do_no_harm():
    actions = np.full(4, 0.5)
    behaviour = Gaussian(0.001, 0.01)
    assert behaviour.probability(BATCH.state, actions).max() == 0
    batch = Transitions(
        state=BATCH.state,
        action=actions,
        reward=BATCH.reward,
        behaviour_log_probability=behaviour.log_probability(BATCH.state, actions),
    )
    rho = GVF(Gaussian(0.0, 0.01)).evaluate(batch).ratio
    np.testing.assert_allclose(rho, np.exp((-2 * 0.001 * 0.5 + 1e-6) / 2e-4))


def test_an_unknown_behaviour_is_explained_with_both_ways_to_give_it():
    with pytest.raises(ValueError, match="behaviour is not known") as error:
        GVF(TARGET).evaluate(BATCH)
    message = str(error.value)
    assert "gvf.Learner(..., behaviour=gvf.Uniform(4))" in message
    assert "behaviour_probability=behaviour.probability(states, actions)" in message
    assert "behaviour_log_probability" in message
    assert "state, action, reward" in message


def test_a_support_violation_names_the_transition():
    with pytest.raises(ValueError, match=r"transition 1 \(action 1\): pi = 0.9, mu = 0.0"):
        GVF(TARGET).evaluate(BATCH, behaviour=Always(0, 2))


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_continuations_out_of_range_are_named_with_position_and_value(bad):
    question = GVF(TARGET, continuation=lambda t: np.array([0.5, bad, 0.5, 2.0]))
    with pytest.raises(ValueError, match=rf"is {bad} at position 1; it must be in \[0, 1\]"):
        question.continuations(BATCH)
    with pytest.raises(ValueError, match=rf"in \[0, 1\] or a function of transitions, got {bad}"):
        GVF(TARGET, continuation=bad)


def test_continuation_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="continuation must be a number"):
        GVF(TARGET, continuation="0.9")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_cumulants_that_are_not_finite_are_named_with_position_and_value(bad):
    def temperature(transitions):
        return np.array([0.0, 0.0, bad, 0.0])

    with pytest.raises(ValueError, match=f"temperature is {bad} at position 2"):
        GVF(TARGET, temperature).cumulants(BATCH)
    with pytest.raises(ValueError, match=f"cumulant 'heat' is {bad} at position 2"):
        GVF(TARGET, "heat").cumulants(with_columns(heat=temperature(BATCH)))


def test_functions_that_return_another_shape_are_told_so():
    column = np.ones((4, 1))
    with pytest.raises(ValueError, match=r"cumulant .*shape \(4, 1\) for 4.*take values\[:, 0\]"):
        GVF(TARGET, lambda t: column).cumulants(BATCH)
    with pytest.raises(ValueError, match=r"continuation .*shape \(4, 1\) for 4.*take values"):
        GVF(TARGET, continuation=lambda t: column).continuations(BATCH)
    with pytest.raises(ValueError, match=r"cumulant .*shape \(3,\) for 4 transitions"):
        GVF(TARGET, lambda t: np.ones(3)).cumulants(BATCH)
    batch = Transitions(state=[0, 0], terminated=[[True], [False]])
    with pytest.raises(ValueError, match=r"column 'terminated' has shape \(2, 1\)"):
        GVF(TARGET).continuations(batch)


def test_arguments_of_the_wrong_kind_are_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"gvf.FunctionPolicy\(function\)"):
        GVF(lambda states: states)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"for a constant, lambda t: 1.0"):
        GVF(TARGET, 1.0)  # type: ignore[arg-type]


def test_evaluation_does_not_touch_or_share_the_data():
    batch = with_columns(heat=np.ones(4))
    result = GVF(TARGET, "heat").evaluate(batch, behaviour=BEHAVIOUR)
    result.cumulant[:] = 7
    result.continuation[:] = 7
    assert batch.heat.tolist() == [1, 1, 1, 1]
    assert batch.terminated.tolist() == [False, False, True, False]


def test_one_transition_and_none_are_batches_too():
    question = GVF(FunctionPolicy(lambda s: np.full((len(s), 2), 0.5), 2))
    for rows in (slice(0, 1), slice(0, 0)):
        result = question.evaluate(BATCH[rows], behaviour=BEHAVIOUR)
        assert [array.shape for array in result] == [(len(BATCH[rows]),)] * 3


def test_questions_print_as_they_are_made():
    def near_goal(transitions):
        return transitions.next_state == 4

    assert repr(GVF(Uniform(2))) == "GVF(Uniform(2), 'reward', 0.9)"
    text = repr(GVF(Uniform(2), near_goal, near_goal, "goal"))
    assert "near_goal" in text
    assert "0x" not in text
    assert text.endswith("name='goal')")
