"""True values by dynamic programming, against linear solves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gvf.policies import Gaussian, Table, Uniform
from gvf.question import GVF
from gvf.truth import held_out_returns
from gvf_lab.domain import TabularDomain, get
from gvf_lab.truth import Model, TrueValues, exact_values


def solved(model: Model, question: GVF) -> np.ndarray:
    """Values by a direct linear solve, entry by entry."""
    states, actions, outcomes = model.probability.shape
    matrix, right = np.eye(states), np.zeros(states)
    pi = question.policy.probabilities(np.arange(states))  # pyright: ignore
    cumulant, continuation = model.signals(question)
    for s in range(states):
        if model.terminal[s]:
            continue
        for a in range(actions):
            for b in range(outcomes):
                chance = pi[s, a] * model.probability[s, a, b]
                right[s] += chance * cumulant[s, a, b]
                matrix[s, model.next_state[s, a, b]] -= chance * continuation[s, a, b]
    return np.linalg.solve(matrix, right)


def random_model(rng: np.random.Generator, states: int, actions: int, outcomes: int) -> Model:
    shape = (states, actions, outcomes)
    return Model(
        probability=rng.dirichlet(np.ones(outcomes), shape[:2]),
        next_state=rng.integers(states, size=shape),
        reward=rng.normal(size=shape),
        terminal=rng.random(states) < 0.2,
    )


@pytest.mark.parametrize("name", ["markov-chain", "four-rooms", "star"])
def test_values_of_the_domains_solve_the_linear_equations(name: str) -> None:
    domain = get(name)
    assert isinstance(domain, TabularDomain)
    for question in domain.questions:
        truth = domain.truth(question)
        expected = solved(domain.model, domain.question(question))[truth.states]
        assert truth.values == pytest.approx(expected, abs=2e-14)
        assert not truth.noise.any()


@given(
    seed=st.integers(0, 2**32),
    states=st.integers(1, 6),
    actions=st.integers(1, 3),
    outcomes=st.integers(1, 3),
    continuation=st.floats(0, 0.95),
)
def test_values_of_any_model_solve_the_linear_equations(
    seed, states, actions, outcomes, continuation
) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, states, actions, outcomes)
    question = GVF(Table(rng.dirichlet(np.ones(actions), states)), continuation=continuation)
    assert exact_values(model, question) == pytest.approx(solved(model, question), abs=1e-12)


def test_step_size_zero_on_the_chain() -> None:
    truth = get("markov-chain").truth("hard", "hard")
    assert len(truth.states) == 10
    assert truth.values[[0, 9]].tolist() == [0, 0]
    assert truth.mean_absolute_error(np.zeros(10)) == pytest.approx(0.517162, abs=5e-7)


def test_values_of_going_down_count_the_steps_to_the_wall() -> None:
    truth = get("four-rooms").truth("down", "uniform")
    assert len(truth.states) == 104
    steps = {(0, 0): 4, (4, 0): 0, (0, 1): 10, (10, 0): 0, (2, 5): 0, (9, 5): 0, (0, 8): 10}
    for (row, column), free in steps.items():
        (value,) = truth.values[truth.states == 11 * row + column]
        assert value == pytest.approx(0.9**free, abs=1e-15)


def test_the_star_is_worth_nothing() -> None:
    assert get("star").truth(*get("star").pairs[0]).values.tolist() == [0] * 7


def test_returns_in_the_environment_agree_with_the_exact_values() -> None:
    chain = get("markov-chain")
    held_out = held_out_returns(
        chain.make(), chain.question("hard"), states=60, rollouts=50, run_length=20, seed=1
    )
    values = chain.truth("hard", "hard").values
    # The difference of means is within 4 standard errors.
    bias = held_out.error(lambda states: values[states]).bias
    assert abs(bias.value) < 4 * bias.standard_error


def test_a_terminal_state_is_worth_nothing_whatever_the_cumulant() -> None:
    chain = get("markov-chain")
    assert isinstance(chain, TabularDomain)
    entered = GVF(Uniform(2), cumulant=lambda t: t.next_state == 9, continuation=1.0)
    values = exact_values(chain.model, entered)
    assert values == pytest.approx([*np.arange(9) / 9, 0])


def test_values_that_never_settle_are_an_error() -> None:
    one = np.ones((1, 1, 1))
    model = Model(one, np.zeros((1, 1, 1), int), one, np.zeros(1, bool))
    with pytest.raises(ValueError, match="still change by 1 after 50 sweeps; a continuation of 1"):
        exact_values(model, GVF(Uniform(1), continuation=1.0), sweeps=50)


def test_a_policy_that_does_not_fit_the_model_is_an_error() -> None:
    model = random_model(np.random.default_rng(0), 3, 2, 1)
    for policy in (Uniform(3), Gaussian(0.0, 1.0)):
        with pytest.raises(ValueError, match="not a discrete policy over the 2 actions"):
            exact_values(model, GVF(policy))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": np.full((2, 1, 2), 0.4)}, "follows state 0, action 0 are .* sum to 1"),
        ({"probability": np.ones((2, 1))}, r"shape \(2, 1\), expected \[states, actions, outcomes"),
        ({"next_state": np.array([[[0, 1]], [[1, 7]]])}, "state 7 may follow state 1, action 0"),
        ({"reward": np.zeros((2, 1))}, r"reward has shape \(2, 1\), expected \(2, 1, 2\)"),
        ({"terminal": np.zeros(3, bool)}, r"terminal has shape \(3,\), expected \(2,\)"),
    ],
)
def test_a_model_that_is_none_is_refused(change, message) -> None:
    parts = {
        "probability": np.full((2, 1, 2), 0.5),
        "next_state": np.zeros((2, 1, 2), int),
        "reward": np.zeros((2, 1, 2)),
        "terminal": np.zeros(2, bool),
    }
    Model(**parts)
    with pytest.raises(ValueError, match=message):
        Model(**(parts | change))


def test_errors_are_averaged_over_the_states() -> None:
    truth = TrueValues(np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))
    predictions = [1.0, 2.0, 3.0, 0.0]
    assert truth.mean_absolute_error(predictions) == 1
    assert truth.root_mean_square_error(predictions) == 2
    with pytest.raises(ValueError, match=r"shape \(2,\), expected \(4,\)"):
        truth.mean_absolute_error([1.0, 2.0])


def test_a_few_rollouts_that_are_cut_are_told():
    values = TrueValues(np.arange(2), np.ones(2), np.zeros(2), share_cut=0.04)
    assert "4 % of the rollouts, which were cut" in repr(values)
