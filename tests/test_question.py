"""Questions: ratio, cumulant and continuation of a batch, and what bad input is told."""

import numpy as np
import pytest

import gvf
from gvf.policies import Always, DiscretePolicy, Fixed, Function, Gaussian, Uniform
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


def test_of_two_recorded_columns_the_logarithm_is_used_and_compared():
    question = GVF(TARGET)
    both = with_columns(
        behaviour_probability=np.full(4, 0.25), behaviour_log_probability=np.log(np.full(4, 0.25))
    )
    expected = np.array([0.1, 0.9, 0.9, 0.1]) / 0.25
    np.testing.assert_allclose(question.evaluate(both).ratio, expected, rtol=1e-14)
    with pytest.raises(ValueError, match=r"behaviour_log_probability is recorded as -1\.386"):
        question.evaluate(both, behaviour=Uniform(2))
    both.behaviour_log_probability[:] = np.log(0.5)
    with pytest.raises(ValueError, match=r"probability of 0\.5, and .* is 0\.25"):
        question.evaluate(both)


class Unasked(DiscretePolicy):
    """Must not be evaluated."""

    actions = 2

    def probabilities(self, states):
        raise AssertionError("the behaviour was evaluated")


@pytest.mark.parametrize("record", [np.asarray, np.log], ids=["probability", "logarithm"])
def test_the_record_a_policy_and_a_conflict_of_the_two(record):
    question = GVF(TARGET)
    name = "behaviour_probability" if record is np.asarray else "behaviour_log_probability"
    batch = with_columns(**{name: record([0.6, 0.4, 0.7, 0.2])})
    by_record = np.array([0.1 / 0.6, 0.9 / 0.4, 0.9 / 0.7, 0.1 / 0.2])
    by_policy = np.array([0.1 / 0.6, 0.9 / 0.4, 0.9 / 0.4, 0.1 / 0.6])
    for evaluate in (question.ratios, lambda *a, **k: question.evaluate(*a, **k).ratio):
        np.testing.assert_allclose(evaluate(batch), by_record, rtol=1e-14)
        with pytest.raises(ValueError, match="transition 2") as error:
            evaluate(batch, behaviour=BEHAVIOUR)
        for part in (
            "transition 2 (action 1)",
            f"{name} is recorded as {record(0.7)}",
            f"Fixed((0.6, 0.4)) gives {record(0.4)}",
            'on_conflict="recorded"',
            'on_conflict="behaviour"',
        ):
            assert part in str(error.value)
        recorded = evaluate(batch, behaviour=Unasked(), on_conflict="recorded")
        np.testing.assert_allclose(recorded, by_record, rtol=1e-14)
        given = evaluate(batch, behaviour=BEHAVIOUR, on_conflict="behaviour")
        assert given.tolist() == by_policy.tolist()


def test_a_choice_between_record_and_policy_does_nothing_where_only_one_is_there():
    question = GVF(TARGET)
    batch = with_columns(behaviour_probability=BEHAVIOUR.probability(BATCH.state, BATCH.action))
    expected = question.ratios(BATCH, behaviour=BEHAVIOUR).tolist()
    for choice in ("error", "recorded", "behaviour"):
        assert question.ratios(batch, on_conflict=choice).tolist() == expected
        given = question.ratios(BATCH, behaviour=BEHAVIOUR, on_conflict=choice)
        assert given.tolist() == expected
        with pytest.raises(ValueError, match="behaviour is not known"):
            question.ratios(BATCH, on_conflict=choice)
    with pytest.raises(ValueError, match="one of 'error', 'recorded', 'behaviour'; got 'policy'"):
        question.ratios(batch, on_conflict="policy")  # type: ignore[arg-type]


def test_a_policy_that_is_preferred_never_looks_at_the_record():
    nonsense = with_columns(behaviour_probability=np.full(4, np.nan))
    expected = GVF(TARGET).ratios(BATCH, behaviour=BEHAVIOUR)
    given = GVF(TARGET).ratios(nonsense, behaviour=BEHAVIOUR, on_conflict="behaviour")
    assert given.tolist() == expected.tolist()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("record", [np.asarray, np.log], ids=["probability", "logarithm"])
def test_a_record_may_differ_by_the_rounding_of_single_precision_and_not_by_more(record, sign):
    question = GVF(TARGET)
    name = "behaviour_probability" if record is np.asarray else "behaviour_log_probability"
    mu = BEHAVIOUR.probability(BATCH.state, BATCH.action)
    for column in (record(mu).astype(np.float32), record(mu * (1 + sign * 0.9e-5))):
        batch = with_columns(**{name: column})
        # The record itself is used, as it is.
        expected = question.ratios(batch)
        assert (expected != question.ratios(BATCH, behaviour=BEHAVIOUR)).all()
        assert question.ratios(batch, behaviour=BEHAVIOUR).tolist() == expected.tolist()
    beyond = np.where(np.arange(4) == 3, mu * (1 + sign * 1.1e-5), mu)
    with pytest.raises(ValueError, match=r"transition 3 \(action 0\)"):
        question.ratios(with_columns(**{name: record(beyond)}), behaviour=BEHAVIOUR)


def test_large_log_densities_are_compared_as_precisely_as_single_precision_has_them():
    behaviour, states, actions = Gaussian(0.0, 0.01), np.zeros(3), np.array([0.0, 0.5, 1.0])
    exact = behaviour.log_probability(states, actions)
    logs = exact.astype(np.float32)
    batch = Transitions(state=states, action=actions, behaviour_log_probability=logs)
    error = np.abs(logs - exact)
    assert logs.min() < -4000
    assert error.max() > 1e-5  # more than an absolute tolerance would allow
    question = GVF(Gaussian(0.001, 0.01))
    rho = question.ratios(batch, behaviour=behaviour)
    assert rho.tolist() == question.ratios(batch).tolist()
    logs[2] += 0.1
    with pytest.raises(ValueError, match=r"transition 2 \(action 1\.0\)"):
        question.ratios(batch, behaviour=behaviour)


@pytest.mark.parametrize(
    ("recorded", "policy"), [([0.5, 0.5], Always(0, 2)), ([0.5, 0.0], Uniform(2))]
)
def test_never_and_sometimes_are_a_conflict_either_way(recorded, policy):
    batch = Transitions(state=[0, 0], action=[0, 1])
    with np.errstate(divide="ignore"):
        columns = {
            "behaviour_probability": np.array(recorded),
            "behaviour_log_probability": np.log(recorded),
        }
    if policy == Always(0, 2):
        columns["behaviour_probability"][0] = 1.0
        columns["behaviour_log_probability"][0] = 0.0
    for name, column in columns.items():
        both = Transitions(**batch.columns, **{name: column})
        with pytest.raises(ValueError, match=rf"transition 1 \(action 1\): {name} is recorded as"):
            GVF(Uniform(2)).ratios(both, behaviour=policy)


@pytest.mark.parametrize("choice", ["error", "recorded", "behaviour"])
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("behaviour_probability", [1.0, 0.0]),
        ("behaviour_log_probability", [0.0, -np.inf]),
    ],
)
def test_a_record_and_a_policy_that_agree_on_never_are_a_support_violation(name, column, choice):
    batch = Transitions(state=[0, 0], action=[0, 1], **{name: column})
    with pytest.raises(ValueError, match=r"transition 1 \(action 1\).*never takes this action"):
        GVF(Uniform(2)).ratios(batch, behaviour=Always(0, 2), on_conflict=choice)
    rho = GVF(Always(0, 2)).ratios(batch, behaviour=Always(0, 2), on_conflict=choice)
    assert rho.tolist() == [1.0, 0.0]


def test_a_record_of_the_wrong_shape_or_range_is_named_before_it_is_compared():
    for column, message in (
        (np.full((4, 1), 0.5), r"has shape \(4, 1\), expected \(4,\)"),
        ([0.6, np.nan, 0.4, 0.6], "at position 1 is nan"),
        ([0.6, 0.4, 1.4, 0.6], "at position 2 is 1.4"),
    ):
        with pytest.raises(ValueError, match=f"behaviour_probability {message}"):
            GVF(TARGET).ratios(with_columns(behaviour_probability=column), behaviour=BEHAVIOUR)
    batch = with_columns(behaviour_probability=np.full(4, 0.5))
    with pytest.raises(TypeError, match=r"behaviour must be a policy, not 0\.5"):
        GVF(TARGET).ratios(batch, behaviour=0.5)  # type: ignore[arg-type]


def test_a_behaviour_that_has_changed_since_it_acted_is_known_from_the_record():
    weights = np.array([0.6, 0.4])
    behaviour = Function(lambda states: np.tile(weights, (len(states), 1)), 2)
    action, recorded = behaviour.act(BATCH.state, rng=np.random.default_rng(0))
    batch = Transitions(state=BATCH.state, action=action, behaviour_probability=recorded)
    question = GVF(TARGET)
    then = question.ratios(batch, behaviour=behaviour)
    weights[:] = 0.3, 0.7
    with pytest.raises(ValueError, match="If the behaviour has changed since it acted"):
        question.ratios(batch, behaviour=behaviour)
    assert question.ratios(batch).tolist() == then.tolist()
    kept = question.ratios(batch, behaviour=behaviour, on_conflict="recorded")
    assert kept.tolist() == then.tolist()
    now = question.ratios(batch, behaviour=behaviour, on_conflict="behaviour")
    assert (now != then).all()


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
    assert "gvf.Learner(..., behaviour=gvf.policies.Uniform(4))" in message
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
    with pytest.raises(TypeError, match=r"gvf.policies.Function\(function\)"):
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
    question = GVF(Function(lambda s: np.full((len(s), 2), 0.5), 2))
    for rows in (slice(0, 1), slice(0, 0)):
        result = question.evaluate(BATCH[rows], behaviour=BEHAVIOUR)
        assert [array.shape for array in result] == [(len(BATCH[rows]),)] * 4


def test_questions_print_as_they_are_made():
    def near_goal(transitions):
        return transitions.next_state == 4

    assert repr(GVF(Uniform(2))) == "GVF(Uniform(2), 'reward', 0.9)"
    text = repr(GVF(Uniform(2), near_goal, near_goal, "goal"))
    assert "near_goal" in text
    assert "0x" not in text
    assert text.endswith("name='goal')")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([None, None], "None at position 0"),
        ([0.0, float("nan")], "nan at position 1.*on_nan"),
        ([1, -1], "-1 at position 1"),
        ([0.3, 0.0], "0.3 at position 0"),
        (["False", "True"], "'False' at position 0"),
    ],
)
def test_terminated_is_true_or_false_and_nothing_else(given, shown):
    question = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9)
    batch = gvf.Transitions(state=[0, 0], action=[0, 0], reward=[0.0, 0.0], terminated=given)
    with pytest.raises(ValueError, match=f"'terminated' is .*{shown}"):
        question.continuations(batch)


@pytest.mark.parametrize("ended", [[True, False], [1, 0], [1.0, 0.0]])
def test_terminated_may_be_numbers(ended):
    question = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9)
    batch = gvf.Transitions(state=[0, 0], action=[0, 0], reward=[0.0, 0.0], terminated=ended)
    assert question.continuations(batch).tolist() == [0.0, 0.9]


def test_recorded_probabilities_must_agree_with_their_logarithms():
    question = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9)
    columns = dict(state=[0, 0], action=[0, 0], reward=[0.0, 0.0], behaviour_probability=[0.4, 0.4])
    logs = np.log([0.4, 0.6])
    with pytest.raises(ValueError, match=r"position 1, .* a probability of 0.6, and .* is 0.4"):
        question.evaluate(gvf.Transitions(**columns, behaviour_log_probability=logs))
    logs = np.log([0.4, 0.4])
    question.evaluate(gvf.Transitions(**columns, behaviour_log_probability=logs))


@pytest.mark.parametrize("interest", [-0.5, np.inf, np.nan, [1.0], True + 1j])
def test_an_interest_that_is_no_number_above_zero_is_refused(interest):
    with pytest.raises(ValueError, match=r"^interest must be a finite number that is not negative"):
        GVF(TARGET, interest=interest)


@pytest.mark.parametrize(
    ("interest", "message"),
    [
        ("care", r"^interest 'care' is -1.0 at position 2; it must be finite and not negative$"),
        (lambda t: t.care, r"^interest <lambda> is -1.0 at position 2; "),
        (lambda t: np.inf * t.care**2, r"is inf at position 0"),
        (lambda t: "much", r"^interest <lambda>: 'much' is text, and must be a number"),
    ],
)
def test_a_bad_interest_of_a_state_is_named(interest, message):
    batch = with_columns(care=[0.5, 1.0, -1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        GVF(TARGET, interest=interest).evaluate(batch, behaviour=BEHAVIOUR)


def test_interest_is_shown_only_if_it_is_given():
    assert repr(GVF(Uniform(2))) == "GVF(Uniform(2), 'reward', 0.9)"
    shown = repr(GVF(Uniform(2), name="far", interest="care"))
    assert shown == "GVF(Uniform(2), 'reward', 0.9, name='far', interest='care')"


def test_a_missing_interest_counts_only_where_it_is_used():
    question = GVF(TARGET, interest="care")
    batch = with_columns(care=[1.0, np.nan, 1.0, 1.0])
    assert question.missing(batch).tolist() == [False, True, False, False]
    assert not question.missing(batch, interest=False).any()
