"""Policies: probabilities, draws, and what they say about bad input."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from own_policies import LEVEL, TABLE, FakeNormal

from gvf.policies import (
    Always,
    DiscretePolicy,
    Favour,
    Fixed,
    Function,
    Gaussian,
    Mixture,
    Policy,
    Table,
    Uniform,
    largest_ratio,
    ratio,
)


def by_state(states):
    """Probabilities of three actions, from integer states: the rows of TABLE."""
    return np.array(TABLE)[states]


DISCRETE = [
    Uniform(3),
    Fixed([0.15, 0.0, 0.85]),
    Fixed([0.0, 0.3, 0.7]),
    Fixed([0.3, 0.7, 0.0]),
    Always(2, 3),
    Favour(1, 0.9, 3),
    Favour(0, 0.05, 3),
    Table(TABLE),
    Mixture(Favour(0, 0.9, 3), Table(TABLE), 0.3),
    Mixture(Always(0, 3), Always(2, 3), 0.0),
    Mixture(Always(0, 3), Always(2, 3), 1.0),
    Function(by_state, 3),
]


# Discrete policies


@pytest.mark.parametrize("policy", DISCRETE, ids=repr)
def test_discrete_probabilities_are_distributions_and_agree_with_each_other(policy):
    states = np.array([0, 1, 2, 3, 3])
    table = policy.probabilities(states)
    assert isinstance(policy, DiscretePolicy)
    assert policy.actions == 3
    assert table.shape == (5, 3)
    assert table.dtype == np.float64
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=0, atol=1e-12)
    for action in range(3):
        chosen = policy.probability(states, np.full(5, action))
        np.testing.assert_allclose(chosen, table[:, action], rtol=1e-15)
        logs = policy.log_probability(states, np.full(5, action))
        np.testing.assert_allclose(np.exp(logs), table[:, action], rtol=1e-14)


@pytest.mark.parametrize("policy", DISCRETE, ids=repr)
def test_discrete_draws_have_the_stated_frequencies(policy):
    draws = 100_000
    for state in range(4):
        states = np.full(draws, state)
        actions = policy.sample(states, rng=np.random.default_rng(state))
        assert actions.shape == (draws,)
        assert actions.dtype == np.int64
        counts = np.bincount(actions, minlength=3)
        expected = draws * policy.probabilities([state])[0]
        assert counts[expected == 0].sum() == 0
        possible = expected > 0
        if possible.sum() > 1:
            test = scipy.stats.chisquare(counts[possible], expected[possible])
            assert test.pvalue > LEVEL


def test_the_probabilities_are_the_ones_asked_for():
    assert Uniform(4).probabilities([0]).tolist() == [[0.25] * 4]
    assert Fixed([0.1, 0.9]).probabilities([0, 0]).tolist() == [[0.1, 0.9]] * 2
    assert Always(1, 3).probabilities([0]).tolist() == [[0, 1, 0]]
    assert Favour(2, 0.5, 3).probabilities([0]).tolist() == [[0.25, 0.25, 0.5]]
    assert Table(TABLE).probabilities([2, 0]).tolist() == [TABLE[2], TABLE[0]]
    mixture = Mixture(Fixed([1.0, 0.0]), Fixed([0.5, 0.5]), 0.75)
    assert mixture.probabilities([0]).tolist() == [[0.875, 0.125]]


class Draws(np.random.Generator):
    """A generator whose uniform numbers are all the same, to reach the ends of [0, 1)."""

    def __init__(self, value):
        super().__init__(np.random.PCG64(0))
        self.value = value

    def random(self, size=()):  # type: ignore[override]
        return np.full(size, self.value)


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize(
    "row",
    [
        [0.0] + [0.1] * 10 + [0.0],  # these sum to 1 - 1.1e-16
        [0.0, 1 - 5e-9, 0.0],  # within the tolerance
        [0.0, 0.5, 0.5 + 5e-9, 0.0],
    ],
)
def test_an_action_of_probability_zero_is_not_drawn_at_the_ends_of_the_unit_interval(row, uniform):
    states, rng = np.array([0]), Draws(uniform)
    always = Function(lambda states: np.array([row]), len(row))
    for policy in (Fixed(row), Table([row]), always):
        assert row[policy.sample(states, rng=rng)[0]] > 0


def test_draws_use_one_uniform_number_for_each_state():
    states = np.zeros(7, int)
    for policy in (Uniform(3), Table(TABLE), Function(by_state, 3)):
        used, untouched = np.random.default_rng(5), np.random.default_rng(5)
        policy.sample(states, rng=used)
        untouched.random(7)
        assert used.random() == untouched.random()


def test_batches_of_no_states_are_fine():
    states = np.zeros(0, int)
    for policy in DISCRETE:
        assert policy.sample(states, rng=np.random.default_rng(0)).shape == (0,)
        assert policy.probability(states, states).shape == (0,)
    assert ratio(Uniform(3), states, states, behaviour=Uniform(3)).shape == (0,)


def test_actions_that_are_whole_numbers_may_come_as_floats_and_small_integers():
    policy = Fixed([0.1, 0.2, 0.7])
    for dtype in (np.float64, np.float32, np.uint8, np.uint64, np.int32):
        assert policy.probability([0, 0], np.array([2, 0], dtype)).tolist() == [0.7, 0.1]


# Acting


class Clipped(Gaussian):
    """A policy that changes how another one draws, and nothing else."""

    def sample(self, states, *, rng):
        return super().sample(states, rng=rng).clip(-1, 1)


class Shifted(Gaussian):
    """A policy that changes how another one rates, and nothing else."""

    def log_probability(self, states, actions):
        return super().log_probability(states, actions) - 1


class Backwards(Table):
    """A policy with draws of its own."""

    def sample(self, states, *, rng):
        return 2 - super().sample(states, rng=rng)

    def probability(self, states, actions):
        return super().probability(states, 2 - np.asarray(actions))


class Doubtful(Uniform):
    """A policy with probabilities of its own, and the draws of another."""

    def probability(self, states, actions):
        return super().probability(states, actions) / 2


class Listed(Policy):
    """A policy of one's own that knows no arrays."""

    def log_probability(self, states, actions):
        return np.array([-float(action) for action in actions])

    def sample(self, states, *, rng):
        return rng.exponential(size=len(states)).tolist()  # type: ignore[return-value]

    def __repr__(self):
        return "Listed()"


ACTING = [
    *DISCRETE,
    Function(lambda states: by_state(states).astype(np.float32), 3),
    Function(by_state),
    Mixture(Mixture(Function(by_state, 3), Uniform(3), 0.4), Table(TABLE), 0.3),
    Backwards(TABLE),
    Doubtful(3),
    Mixture(Backwards(TABLE), Doubtful(3), 0.5),
    Gaussian(0.5, 2.0),
    Gaussian([0.5, -1.0], [2.0, 3.0]),
    Gaussian(lambda states: 1.0 * states, lambda states: 1.0 + states),
    Function(lambda states: FakeNormal(1.0 * states)),
    Mixture(Gaussian(0.0, 0.5), Gaussian(lambda states: 1.0 * states, 1.0), 0.3),
    Mixture(Function(lambda states: FakeNormal(1.0 * states)), Gaussian(0.0, 2.0), 0.6),
    Clipped(0.0, 1.0),
    Shifted(0.0, 1.0),
    Mixture(Clipped(0.0, 1.0), Shifted(0.0, 1.0), 0.5),
    Listed(),
]


def assert_acts_as_it_draws_and_rates(policy, states):
    one, other = np.random.default_rng(11), np.random.default_rng(11)
    expected = np.asarray(policy.sample(states, rng=one))
    actions, likelihood = policy.act(states, rng=other)
    rate = policy.probability if isinstance(policy, DiscretePolicy) else policy.log_probability
    assert isinstance(actions, np.ndarray)
    assert actions.dtype == expected.dtype
    assert actions.tolist() == expected.tolist()
    assert likelihood.dtype == np.float64
    assert likelihood.tolist() == rate(states, expected).tolist()
    assert one.random() == other.random()


@pytest.mark.parametrize("policy", ACTING, ids=repr)
def test_acting_is_drawing_and_rating_bit_for_bit(policy):
    rng = np.random.default_rng(0)
    for count in (0, 1, 1, 1, 64):
        assert_acts_as_it_draws_and_rates(policy, rng.integers(4, size=count))


def test_acting_by_torch_is_drawing_and_rating_bit_for_bit():
    torch = pytest.importorskip("torch")
    law = torch.distributions

    def scores(states):
        return torch.tensor(np.log(by_state(states) + 0.01), dtype=torch.float32)

    categorical = Function(lambda s: law.Categorical(logits=scores(s)), 3)
    normal = Function(lambda s: law.Normal(scores(s), 1.0))
    for policy in (
        categorical,
        Function(lambda s: torch.softmax(scores(s), dim=1), 3),
        Mixture(categorical, Uniform(3), 0.6),
        normal,
        Mixture(normal, Gaussian([0.0, 0.0, 0.0], 1.0), 0.6),
    ):
        for count in (1, 5):
            assert_acts_as_it_draws_and_rates(policy, np.arange(count) % 4)


def test_acting_evaluates_a_function_once():
    calls = []

    def counted(function):
        def call(states):
            calls.append(len(states))
            return function(states)

        return call

    discrete = Function(counted(by_state), 3)
    normal = Function(counted(lambda states: FakeNormal(1.0 * states)))
    mean = Gaussian(counted(lambda states: 1.0 * states), 1.0)
    for policy in (
        discrete,
        Function(counted(by_state)),
        Mixture(discrete, Uniform(3), 0.5),
        Mixture(Uniform(3), Mixture(Table(TABLE), discrete, 0.5), 0.5),
        normal,
        mean,
        Mixture(Gaussian(0.0, 1.0), mean, 0.5),
        Mixture(normal, Gaussian(0.0, 1.0), 0.5),
    ):
        calls.clear()
        policy.act(np.array([0, 1, 2]), rng=np.random.default_rng(0))
        assert calls == [3]


def test_a_discrete_policy_of_ones_own_is_evaluated_once():
    class Own(DiscretePolicy):
        actions = 3
        calls = 0

        def probabilities(self, states):
            self.calls += 1
            return by_state(states)

    policy = Own()
    actions, likelihood = policy.act([0, 1, 2], rng=np.random.default_rng(0))
    assert policy.calls == 1
    assert likelihood.tolist() == by_state([0, 1, 2])[np.arange(3), actions].tolist()


def test_a_mixture_names_an_action_that_only_one_of_its_policies_has():
    wrong = Backwards(TABLE)
    wrong.sample = lambda states, rng: np.full(len(states), -1)  # type: ignore[method-assign]
    policy = Mixture(wrong, Uniform(3), 1.0)
    with pytest.raises(ValueError, match="action -1 at position 0 is not one of 0 to 2"):
        policy.act([0, 0], rng=np.random.default_rng(0))


# Functions and distributions


def test_a_function_may_return_a_distribution_that_needs_no_torch():
    states = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    actions = states + 0.25
    wide = Function(lambda s: FakeNormal(s))
    expected = scipy.stats.norm.logpdf(actions, states).sum(axis=1)
    np.testing.assert_allclose(wide.log_probability(states, actions), expected)
    np.testing.assert_allclose(wide.probability(states, actions), np.exp(expected))
    assert wide.sample(states, rng=np.random.default_rng(0)).tolist() == (states + 0.5).tolist()
    flat = Function(lambda s: FakeNormal(s[:, 0]))
    expected = scipy.stats.norm.logpdf(actions[:, 0], states[:, 0])
    np.testing.assert_allclose(flat.log_probability(states, actions[:, 0]), expected)


def test_a_function_of_probabilities_works_without_its_number_of_actions():
    policy = Function(by_state)
    states, actions = np.array([0, 1, 2]), np.array([2, 0, 2])
    assert not isinstance(policy, DiscretePolicy)
    assert policy.probability(states, actions).tolist() == [0.7, 0.0, 0.7]
    np.testing.assert_array_equal(policy.log_probability(states, actions)[1], -np.inf)
    draws = policy.sample(states, rng=np.random.default_rng(3))
    expected = Function(by_state, 3).sample(states, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(draws, expected)
    rho = ratio(policy, states, actions, behaviour=Uniform(3))
    np.testing.assert_allclose(rho, [2.1, 0.0, 2.1], rtol=1e-14)


def test_single_precision_probabilities_are_accepted_and_rescaled():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1000, 7)).astype(np.float32)
    single = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True, dtype=np.float32)
    assert np.abs(single.astype(np.float64).sum(axis=1) - 1).max() > 1e-8
    table = Function(lambda states: single, 7).probabilities(np.zeros(1000))
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-15
    np.testing.assert_allclose(table, single, rtol=1e-6)


def test_a_distribution_whose_shape_does_not_fit_the_actions_is_an_error():
    # [3, 1] means against [3] actions would broadcast to [3, 3] without a word.
    policy = Function(lambda states: FakeNormal(np.zeros((3, 1))))
    with pytest.raises(ValueError, match=r"\(3, 3\) for actions of shape \(3,\)"):
        policy.log_probability(np.zeros(3), np.zeros(3))


def test_importing_gvf_and_using_its_policies_does_not_import_torch():
    code = (
        "import sys, numpy as np; from gvf.policies import *; "
        "Function(lambda s: np.ones((1, 1)), 1).sample([0], rng=np.random.default_rng(0)); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_torch_probabilities_and_categorical_agree():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Linear(4, 3)
    states = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    states.flags.writeable = False
    actions = np.array([0, 1, 2, 2, 1])

    def logits(states):
        return network(torch.tensor(states))

    expected = torch.softmax(logits(states).double(), dim=1).detach().numpy()
    given = Function(lambda s: torch.softmax(logits(s), dim=1), 3)
    categorical = Function(lambda s: torch.distributions.Categorical(logits=logits(s)), 3)
    for policy in (given, categorical):
        np.testing.assert_allclose(policy.probabilities(states), expected, rtol=1e-5)
        np.testing.assert_allclose(
            policy.probability(states, actions), expected[np.arange(5), actions], rtol=1e-5
        )
        assert policy.sample(states, rng=np.random.default_rng(0)).shape == (5,)
    largest = largest_ratio(categorical, Uniform(3), states)
    assert largest == pytest.approx(3 * expected.max(), rel=1e-5)


def test_torch_normal_multivariate_and_independent_agree_with_scipy():
    torch = pytest.importorskip("torch")
    law = torch.distributions
    states = np.random.default_rng(0).normal(size=(5, 2))
    actions = (states + 0.3)[::-1]  # a negative stride, double precision
    single = torch.tensor(states, dtype=torch.float32).requires_grad_()
    for distribution in (
        law.Normal(single, 0.5),
        law.Independent(law.Normal(single, 0.5), 1),
        law.MultivariateNormal(single, 0.25 * torch.eye(2)),
        # This one refuses actions of another precision than its own.
        law.LowRankMultivariateNormal(single, torch.zeros(2, 1), torch.full((2,), 0.25)),
    ):
        logs = Function(lambda s, it=distribution: it).log_probability(states, actions)
        expected = scipy.stats.norm.logpdf(actions, states, 0.5).sum(axis=1)
        assert logs.dtype == np.float64
        np.testing.assert_allclose(logs, expected, rtol=1e-5, atol=1e-5)


def test_torch_draws_are_seeded_by_rng_and_leave_the_state_of_torch_alone():
    torch = pytest.importorskip("torch")
    mean = torch.zeros(4000)
    policy = Function(lambda states: torch.distributions.Normal(mean, 2.0))
    states = np.zeros(4000)
    before = torch.get_rng_state()
    first = policy.sample(states, rng=np.random.default_rng(0))
    torch.rand(3)
    again = policy.sample(states, rng=np.random.default_rng(0))
    rng = np.random.default_rng(0)
    policy.sample(states, rng=rng)
    other = policy.sample(states, rng=rng)
    torch.set_rng_state(before)
    policy.sample(states, rng=rng)
    assert torch.equal(before, torch.get_rng_state())
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    assert scipy.stats.kstest(first, scipy.stats.norm(0, 2).cdf).pvalue > LEVEL


# Bad input


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.4], "row 0.*sum 0.9"),
        ([0.5, 0.5 + 2e-8], "row 0.*sum to 1"),
        ([1.2, -0.2], "row 0.*negative"),
        ([np.nan, 1.0], "row 0.*nan"),
        ([np.inf, -np.inf], "row 0.*inf"),
        ([], "shape"),
    ],
)
def test_rows_that_are_not_distributions_are_named(row, message):
    with pytest.raises(ValueError, match=f"Fixed: .*{message}"):
        Fixed(row)
    good = np.full(len(row), 1 / max(len(row), 1))
    for make in (Table, lambda rows: Function(lambda s: rows, 2).probabilities([0, 0])):
        with pytest.raises(ValueError, match=message.replace("row 0", "row 1")):
            make([good, row])


@pytest.mark.parametrize("make", [Uniform, lambda n: Always(0, n), lambda n: Favour(0, 1.0, n)])
@pytest.mark.parametrize("actions", [0, -1, 2.5])
def test_the_number_of_actions_must_be_a_positive_integer(make, actions):
    with pytest.raises(ValueError, match=f"positive integer; got {actions}"):
        make(actions)


def test_actions_and_probabilities_out_of_range_are_refused_at_construction():
    with pytest.raises(ValueError, match="action 3 is not one of the actions 0 to 2"):
        Always(3, 3)
    with pytest.raises(ValueError, match="action -1 is not one of"):
        Favour(-1, 0.5, 3)
    with pytest.raises(ValueError, match=r"probability of action 0 is 1.5, not in \[0, 1\]"):
        Favour(0, 1.5, 3)
    with pytest.raises(ValueError, match=r"Favour.*sum 0.9"):
        Favour(0, 0.9, 1)
    with pytest.raises(ValueError, match=r"beta must be in \[0, 1\], got nan"):
        Mixture(Uniform(2), Uniform(2), np.nan)
    with pytest.raises(ValueError, match=r"has 2 actions, .* has 3"):
        Mixture(Uniform(2), Uniform(3), 0.5)
    with pytest.raises(TypeError, match="one is discrete and one is not"):
        Mixture(Uniform(2), Gaussian(0.0, 1.0), 0.5)
    with pytest.raises(TypeError, match="two policies"):
        Mixture(Uniform(2), 0.5, 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a function of the states"):
        Function([0.5, 0.5])  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [Uniform(3), Table(TABLE), Function(by_state, 3)])
def test_actions_that_do_not_exist_are_named_with_their_position(policy):
    for bad in (3, -1):
        with pytest.raises(ValueError, match=f"action {bad} at position 1 is not one of 0 to 2"):
            policy.probability([0, 0, 0], [0, bad, 7])
    with pytest.raises(ValueError, match=r"action 0.5 at position 2 is not an integer"):
        policy.probability([0, 0, 0], [0.0, 1.0, 0.5])
    with pytest.raises(ValueError, match="action nan at position 0 is not an integer"):
        policy.log_probability([0], [np.nan])
    with pytest.raises(ValueError, match=r"actions have shape \(2, 1\), expected \(2,\)"):
        policy.probability([0, 0], [[0], [1]])


def test_states_that_do_not_fit_are_named():
    policy = Table(TABLE)
    rng = np.random.default_rng(0)
    for bad in (4, -1):
        with pytest.raises(ValueError, match=f"state {bad} at position 1 is not one of 0 to 3"):
            policy.sample([0, bad], rng=rng)
        with pytest.raises(ValueError, match=f"state {bad} at position 0"):
            policy.probability([bad], [0])
    with pytest.raises(ValueError, match=r"states have shape \(1, 2\)"):
        policy.sample([[0, 1]], rng=rng)
    with pytest.raises(TypeError, match=r"must be a batch.*single state 3"):
        Uniform(2).sample(3, rng=rng)


@pytest.mark.parametrize("policy", [*DISCRETE, Gaussian(0.0, 1.0)], ids=repr)
@pytest.mark.parametrize("rng", [None, 0, np.random.RandomState(0)], ids=["None", "0", "old"])
def test_a_random_source_that_is_no_generator_is_refused(policy, rng):
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator"):
        policy.sample([0], rng=rng)


def test_gaussian_refuses_parameters_and_actions_that_do_not_fit():
    for sd in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"sd is {sd}; it must be positive and finite"):
            Gaussian(0.0, sd)
    with pytest.raises(ValueError, match="mean is nan; it must be finite"):
        Gaussian([0.0, np.nan], 1.0)
    with pytest.raises(ValueError, match=r"mean has shape \(1, 1\)"):
        Gaussian([[0.0]], 1.0)
    with pytest.raises(ValueError, match="mean has 2 action dimensions, sd has 3"):
        Gaussian([0.0, 0.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"sd is 0.0 in the state at position 1"):
        Gaussian(0.0, lambda s: s).log_probability(np.array([1.0, 0.0]), [0.0, 0.0])
    with pytest.raises(ValueError, match=r"mean has shape \(\), expected \(2,\)"):
        Gaussian(lambda s: 0.0, 1.0).log_probability([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"actions have shape \(2, 2\), expected \(2, 1\)"):
        Gaussian(0.0, 1.0).log_probability([0.0, 0.0], np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"actions have shape \(2,\), expected \(2, 3\)"):
        Gaussian([0.0, 0.0, 0.0], 1.0).log_probability([0.0, 0.0], np.zeros(2))


def test_mixing_draws_of_different_shapes_is_an_error():
    policy = Mixture(Gaussian(0.0, 1.0), Gaussian([0.0], 1.0), 0.5)
    with pytest.raises(ValueError, match=r"different shapes, \(3,\) and \(3, 1\)"):
        policy.sample(np.zeros(3), rng=np.random.default_rng(0))


def test_a_function_that_returns_too_few_columns_or_rows_is_named():
    policy = Function(by_state, 4)
    with pytest.raises(ValueError, match=r"by_state returned .*\(1, 3\), expected \(1, 4\)"):
        policy.probabilities([0])
    policy = Function(lambda states: [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"shape \(1, 2\), expected \(3, 2\)"):
        policy.probability([0, 0, 0], [0, 0, 0])


# Values


def test_policies_print_as_they_are_made():
    mixture = Mixture(Uniform(2), Favour(0, 0.9, 2), 0.3)
    assert repr(mixture) == "Mixture(Uniform(2), Favour(0, 0.9, 2), 0.3)"
    assert repr(Fixed(np.array([0.1, 0.9]))) == "Fixed((0.1, 0.9))"
    assert repr(Gaussian(np.array([0, 1]), 2)) == "Gaussian((0.0, 1.0), 2.0)"
    assert repr(Table(TABLE)) == "Table(4 states, 3 actions)"
    assert repr(Function(by_state, 3)) == "Function(by_state, 3)"
    assert "by_state" in repr(Gaussian(by_state, 1.0))


def test_policies_are_values_that_compare_hash_copy_and_pickle():
    pairs = [
        (Uniform(3), Uniform(3), Uniform(4)),
        (Fixed([0.5, 0.5]), Fixed(np.array([0.5, 0.5])), Fixed([0.4, 0.6])),
        (Table(TABLE), Table(np.array(TABLE)), Table(TABLE[:2])),
        (Table(TABLE), Table(TABLE), Table(TABLE[::-1])),
        (Gaussian([0, 1], 1), Gaussian(np.array([0.0, 1.0]), 1.0), Gaussian([0, 1], 2)),
        (
            Mixture(Uniform(3), Table(TABLE), 0.5),
            Mixture(Uniform(3), Table(TABLE), 0.5),
            Mixture(Uniform(3), Table(TABLE), 0.6),
        ),
        (Function(by_state, 3), Function(by_state, 3), Function(by_state)),
    ]
    for policy, same, other in pairs:
        assert policy == same
        assert hash(policy) == hash(same)
        assert policy != other
        for twin in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
            assert twin == policy
            assert isinstance(twin, type(policy))


def test_policies_do_not_change():
    probabilities = np.array([[0.5, 0.5]])
    policy = Table(probabilities)
    probabilities[0] = [1.0, 0.0]
    assert policy.probabilities([0]).tolist() == [[0.5, 0.5]]
    with pytest.raises(ValueError, match="read-only"):
        policy.rows[0, 0] = 1.0
    with pytest.raises(AttributeError):
        policy.actions = 3
    for policy in (Uniform(2), Table([[0.5, 0.5]])):
        policy.probabilities([0])[:] = 0
        assert policy.probabilities([0]).tolist() == [[0.5, 0.5]]


def test_a_policy_of_ones_own_needs_two_methods():
    class Exponential(Policy):
        def log_probability(self, states, actions):
            return -np.asarray(actions, float)

        def sample(self, states, *, rng):
            return rng.exponential(size=len(states))

    policy = Exponential()
    assert "Exponential" in repr(policy)
    rho = ratio(policy, [0], [2.0], behaviour=policy)
    assert rho.tolist() == [1.0]


def test_a_function_that_predicts_actions_is_told_what_is_wanted():
    class Model:
        def predict(self, states):
            return np.zeros(len(states), int), None

    policy = Function(Model().predict, actions=2)
    with pytest.raises(
        TypeError, match=r"predict returned a tuple of 2; .*return probabilities"
    ) as e:
        policy.probability(np.zeros((3, 1)), [0, 0, 1])
    assert "np.eye(2)[model.predict(states, deterministic=True)[0]]" in str(e.value)
