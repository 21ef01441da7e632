"""Held-out returns against values and state distributions that a linear solve gives."""

import math
import threading
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.wrappers import TimeLimit
from scipy import stats

from gvf.estimate import Estimate, percent
from gvf.policies import Always, Favour, Function, Gaussian, Uniform
from gvf.question import GVF
from gvf.truth import CutError, HeldOutReturns, held_out_returns
from gvf.truth.held_out_returns import check_share_cut

returns = import_module("gvf.truth.held_out_returns")  # in gvf.truth the function hides it

SLIP = 0.2  # the probability that a step goes the other way


class Feet:
    """Something inside an environment that keeps the environment's generator."""

    def __init__(self, generator):
        self.generator = generator

    def direction(self, action):
        return (-1, 1)[action] * (-1 if self.generator.random() < SLIP else 1)


class Corridor(gym.Env[Any, Any]):
    """Five places in a row; the left exit gives 0, the right exit 1; actions are left and right."""

    observation_space = Discrete(5)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.feet = Feet(self.np_random)
        self.place = 2
        return self.place, {}

    def step(self, action):
        self.place += self.feet.direction(action)
        exits = not 0 <= self.place < 5
        return min(max(self.place, 0), 4), float(self.place == 5), exits, False, {}


def moves(policy):
    """Probabilities of a step to the right in the corridor, from each place."""
    right = policy.probabilities(np.arange(5))[:, 1]
    return right * (1 - SLIP) + (1 - right) * SLIP


def true_values(policy, gamma):
    matrix, reward = np.zeros((5, 5)), np.zeros(5)
    for place, right in enumerate(moves(policy)):
        if place > 0:
            matrix[place, place - 1] = 1 - right
        if place < 4:
            matrix[place, place + 1] = right
    reward[4] = moves(policy)[4]
    return np.linalg.solve(np.eye(5) - gamma * matrix, reward)


def visits(policy, run_length):
    """The distribution of the place at a step drawn uniformly from the first `run_length`."""
    start = np.eye(5)[2]
    place, total = start, np.zeros(5)
    for _ in range(run_length):
        total += place
        following = np.zeros(5)
        for i, right in enumerate(moves(policy)):
            following += place[i] * right * (np.eye(5)[i + 1] if i < 4 else start)
            following += place[i] * (1 - right) * (np.eye(5)[i - 1] if i > 0 else start)
        place = following
    return total / run_length


TARGET, BEHAVIOUR = Favour(1, 0.7, 2), Uniform(2)
VALUES = true_values(TARGET, 0.9)


@pytest.fixture(scope="module")
def held_out():
    """3000 states, 2 returns from each, of the reward with continuation 0.9."""
    question = GVF(TARGET, continuation=0.9)
    return held_out_returns(
        Corridor(), question, behaviour=BEHAVIOUR, states=3000, rollouts=2, run_length=7, seed=0
    )


def test_mean_returns_equal_the_true_values_of_each_state(held_out):
    assert held_out.cut == 0
    for place in range(5):
        returns = held_out.returns[held_out.states == place].ravel()
        standard_error = returns.std() / math.sqrt(len(returns))
        # Four standard errors, five times: wrong by chance in 1 of 3000.
        assert abs(returns.mean() - VALUES[place]) < 4 * standard_error


def test_states_are_distributed_as_the_behaviour_visits_them(held_out):
    counts = np.bincount(held_out.states, minlength=5)
    expected = visits(BEHAVIOUR, 7) * len(held_out.states)
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    # The test can tell: the target visits differently.
    assert stats.chisquare(counts, visits(TARGET, 7) * len(held_out.states)).pvalue < 1e-4


def test_the_target_leads_to_the_states_by_default():
    held_out = held_out_returns(Corridor(), GVF(TARGET), states=2000, run_length=7, seed=1)
    counts = np.bincount(held_out.states, minlength=5)
    assert stats.chisquare(counts, visits(TARGET, 7) * 2000).pvalue > 1e-4


def test_returns_from_one_state_are_independent():
    # The policy draws nothing: returns differ by the random numbers of the environment alone.
    question = GVF(Always(1, 2), continuation=0.9)
    held_out = held_out_returns(
        Corridor(), question, behaviour=BEHAVIOUR, states=1000, rollouts=2, run_length=7, seed=3
    )
    residual = held_out.returns - true_values(Always(1, 2), 0.9)[held_out.states][:, None]
    correlation = np.corrcoef(residual.T)[0, 1]
    assert abs(correlation) < 4 / math.sqrt(len(residual))


def pair(estimate: Estimate) -> tuple[float, float]:
    """A number and its standard error."""
    return estimate.value, estimate.standard_error


def test_true_values_have_no_bias_and_no_corrected_error(held_out):
    error = held_out.error(lambda states: VALUES[states])
    assert abs(error.bias.value) < 4 * error.bias.standard_error
    assert error.mean_squared_value is not None
    corrected, standard_error = pair(error.mean_squared_value)
    assert abs(corrected) < 4 * standard_error
    # Without the correction the noise of the returns passes for an error.
    assert error.root_mean_square.value**2 > 20 * standard_error


def test_a_known_error_is_found(held_out):
    wrong = np.array([0.1, -0.3, 0.2, 0.4, -0.2])
    error = held_out.error(lambda states: VALUES[states] + wrong[states])
    assert error.mean_squared_value is not None
    corrected, standard_error = pair(error.mean_squared_value)
    assert abs(corrected - np.mean(wrong[held_out.states] ** 2)) < 4 * standard_error
    bias, standard_error = pair(error.bias)
    assert abs(bias - np.mean(wrong[held_out.states])) < 4 * standard_error


@pytest.mark.parametrize(
    "name", ["mean_absolute", "root_mean_square", "bias", "mean_squared_value"]
)
def test_standard_errors_are_the_spread_of_repeated_estimates(held_out, name):
    wrong = VALUES + np.array([0.1, -0.3, 0.2, 0.4, -0.2])
    estimates = []
    for rows in np.arange(3000).reshape(100, 30):
        part = HeldOutReturns(held_out.states[rows], held_out.returns[rows], cut=0)
        estimates.append(getattr(part.error(lambda states: wrong[states]), name))
    spread = np.std([estimate.value for estimate in estimates], ddof=1)
    stated = np.mean([estimate.standard_error for estimate in estimates])
    # The spread of 100 estimates is itself known to 7 % only; four times that.
    assert stated == pytest.approx(spread, rel=0.28)


def test_cumulants_and_continuations_may_be_functions():
    question = GVF(
        TARGET,
        cumulant=lambda t: 1.0 * (t.next_state == 3),
        continuation=lambda t: np.where(t.next_state == 3, 0.0, 0.8),
    )
    held_out = held_out_returns(
        Corridor(), question, behaviour=BEHAVIOUR, states=1000, run_length=20, seed=2
    )
    # From 4 the next place is 3 or the exit; below 3, a walk that stops at 3.
    right = moves(TARGET)[0]
    matrix = np.array([[0, right, 0], [1 - right, 0, right], [0, 1 - right, 0]])
    below = np.linalg.solve(np.eye(3) - 0.8 * matrix, [0, 0, right])
    at_3 = 0.8 * (1 - right) * below[2] + 0.8 * right * (1 - right)
    values = np.array([*below, at_3, 1 - right])
    bias, standard_error = pair(held_out.error(lambda states: values[states]).bias)
    assert abs(bias) < 4 * standard_error


class Clock(gym.Env[Any, Any]):
    """Counts its steps for ever; each gives 1."""

    observation_space: gym.Space[Any] = Box(0, np.inf, (1,))
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self) -> None:
        self.time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([self.time], np.float32), {}

    def step(self, action):
        self.time += 1
        return np.array([self.time], np.float32), 1.0, False, False, {}


def right_half(states):
    return states >= 3


def test_accepted_states_are_distributed_as_the_behaviour_visits_them():
    def only_right(states):
        assert (states >= 3).all()
        return np.tile([0.3, 0.7], (len(states), 1))

    # The return ends with the first step, so that the target is asked in accepted states only.
    question = GVF(Function(only_right, 2), continuation=0.0)
    held_out = held_out_returns(
        Corridor(), question, behaviour=BEHAVIOUR, states=2000, run_length=7, accept=right_half,
        seed=0,
    )  # fmt: skip
    assert len(held_out.states) == 2000
    counts = np.bincount(held_out.states, minlength=5)
    assert not counts[:3].any()
    law = visits(BEHAVIOUR, 7)[3:]
    assert stats.chisquare(counts[3:], 2000 * law / law.sum()).pvalue > 1e-4
    # The test can tell: going on with the same run until a state is accepted would not do.
    assert stats.chisquare(counts[3:], [1000, 1000]).pvalue < 1e-4


@pytest.mark.parametrize("rollouts", [1, 2])
def test_accepting_changes_only_the_states_that_are_not_accepted(rollouts):
    def sample(**options):
        question = GVF(TARGET, continuation=0.9)
        return held_out_returns(
            Corridor(), question, states=60, rollouts=rollouts, run_length=7, seed=0, **options
        )

    free, some = sample(), sample(accept=right_half)
    kept = right_half(free.states)
    assert 5 < kept.sum() < 55
    assert np.array_equal(free.states[kept], some.states[kept])
    assert np.array_equal(free.returns[kept], some.returns[kept])
    assert right_half(some.states).all()
    every = sample(accept=lambda states: states >= 0)
    assert np.array_equal(every.returns, free.returns)
    assert np.array_equal(sample(accept=right_half).returns, some.returns)


def test_a_state_that_is_never_accepted_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(returns, "ATTEMPTS", 50)
    question, message = GVF(TARGET, continuation=0.9), "none of 50 states that the behaviour led to"
    with pytest.raises(ValueError, match=message) as told:
        held_out_returns(Corridor(), question, accept=lambda states: states > 4, run_length=7)
    assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match=r"accept must give bool\[1\] for 1 state, got int64\[1\]"):
        held_out_returns(Corridor(), question, accept=lambda states: states, run_length=7)


def test_every_step_of_a_run_is_as_likely_as_any_other():
    question = GVF(Always(0, 2), continuation=0.0)
    held_out = held_out_returns(Clock(), question, states=1000, run_length=5, seed=0)
    counts = np.unique_counts(held_out.states)
    assert counts.values.tolist() == [0, 1, 2, 3, 4]
    assert stats.chisquare(counts.counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("cutoff", "expected"), [(0.1, 1.875), (0.125, 1.75), (0.9, 1.0), (1e-9, 2 - 2**-29)]
)
def test_a_return_ends_where_the_product_is_at_most_the_cutoff(cutoff, expected):
    question = GVF(Always(0, 2), continuation=0.5)
    held_out = held_out_returns(Clock(), question, states=2, cutoff=cutoff, run_length=3, seed=0)
    assert held_out.returns.tolist() == [[expected], [expected]]


class Cut(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that ends episodes itself, after some steps."""

    def __init__(self, env: gym.Env[Any, Any], steps: int) -> None:
        super().__init__(env)
        self.steps, self.taken = steps, 0

    def reset(self, **options: Any) -> Any:
        self.taken = 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.taken += 1
        state, reward, terminated, truncated, info = super().step(action)
        return state, reward, terminated, truncated or self.taken >= self.steps, info


@pytest.mark.parametrize("rollouts", [1, 2])
def test_a_time_limit_holds_for_the_behaviour_and_not_for_returns(rollouts):
    question, limited = GVF(Always(0, 2), continuation=0.5), TimeLimit(Clock(), 10)
    held_out = held_out_returns(
        limited, question, states=300, rollouts=rollouts, cutoff=0.125, run_length=10, seed=0
    )
    assert set(held_out.states[:, 0]) == set(range(10))
    assert held_out.cut == 0
    assert (held_out.returns == 1.75).all()
    limited.reset()
    assert [limited.step(0)[3] for _ in range(10)] == [False] * 9 + [True]


def test_cut_rollouts_are_left_out_and_counted():
    # The product falls to 1/8 with the third step, so a state needs three steps before the limit.
    question = GVF(Always(0, 2), continuation=0.5)
    env = Cut(Clock(), 10)
    held_out = held_out_returns(
        env, question, states=300, rollouts=2, cutoff=0.125, run_length=10, cut="drop", seed=0
    )
    assert set(held_out.states[:, 0]) == set(range(8))
    assert held_out.cut == 2 * (300 - len(held_out.states))
    # States 8 and 9 of 10 are lost: 120 rollouts, standard deviation 2 * sqrt(300 * .2 * .8).
    assert abs(held_out.cut - 120) < 4 * 13.9
    assert np.isfinite(held_out.returns).all()
    assert held_out.share_cut == held_out.cut / 600
    assert f"{held_out.cut} more ({percent(held_out.cut / 600)}) were cut" in repr(held_out)


def test_a_rollout_may_be_cut_while_others_from_the_same_state_are_not():
    env = Cut(Corridor(), 5)
    question = GVF(TARGET, continuation=0.9)
    held_out = held_out_returns(
        env, question, states=50, rollouts=4, run_length=3, cut="drop", seed=0
    )
    missing = np.isnan(held_out.returns)
    assert not missing.all(axis=1).any()
    assert missing.any()
    assert held_out.cut == missing.sum() + 4 * (50 - len(held_out.states))
    assert held_out.share_cut == held_out.cut / 200
    assert math.isfinite(held_out.error(lambda states: VALUES[states]).bias.value)


class Coins(gym.Env[Any, Any]):
    """Each step costs 1 and tosses a coin; heads end the episode, and some tails in a row cut it.

    The value is -1 / heads. The returns that are not cut are the short ones, so their mean is less
    negative.
    """

    observation_space, action_space = gym.spaces.Discrete(1), gym.spaces.Discrete(1)

    def __init__(self, heads: float, steps: int) -> None:
        self.heads, self.steps = heads, steps

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.taken = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self.taken += 1
        over = bool(self.np_random.random() < self.heads)
        return 0, -1.0, over, not over and self.taken >= self.steps, {}


def test_returns_that_are_cut_by_their_course_are_refused():
    # The steps to the first head: mean 1 / .3, below it given that there are six at most.
    question = GVF(Always(0, 1), "reward", 1.0)
    options: dict[str, Any] = {"states": 2000, "run_length": 1, "seed": 0}
    with pytest.raises(CutError, match=r"^1[012] % of 2000 rollouts .* cut=\"drop\"$") as refusal:
        held_out_returns(Coins(0.3, 6), question, **options)
    share = 0.7**6
    assert abs(refusal.value.share_cut - share) < 4 * math.sqrt(share * (1 - share) / 2000)
    dropped = held_out_returns(Coins(0.3, 6), question, cut="drop", **options)
    error = dropped.error(lambda states: np.full(len(states), -1 / 0.3))
    assert error.share_cut == dropped.share_cut == refusal.value.share_cut
    assert error.bias.value < -10 * error.bias.standard_error  # true values seem biased
    assert f"left out             {percent(dropped.share_cut)} of the rollouts" in repr(error)
    with pytest.raises(ValueError, match="cut must be one of"):
        held_out_returns(Coins(0.3, 6), question, cut="keep", **options)  # pyright: ignore


def test_a_few_returns_that_are_cut_are_told():
    question = GVF(Always(0, 1), "reward", 1.0)
    held_out = held_out_returns(Coins(0.5, 6), question, states=2000, run_length=1, seed=0)
    assert 0 < held_out.share_cut < 0.05
    error = held_out.error(lambda states: np.full(len(states), -2.0))
    assert error.share_cut == held_out.share_cut
    whole = held_out_returns(Coins(0.5, 99), question, states=100, run_length=1, seed=0)
    assert whole.share_cut == whole.error(lambda states: -2.0 + 0.0 * states).share_cut == 0.0
    assert "left out" not in repr(whole.error(lambda states: -2.0 + 0.0 * states))


def test_five_percent_may_be_cut_and_no_more():
    check_share_cut(0.05, 100, 1e-6, "refuse")
    with pytest.raises(CutError, match=r"^6 % of 100 rollouts"):
        check_share_cut(0.06, 100, 1e-6, "refuse")
    check_share_cut(0.99, 100, 1e-6, "drop")


def test_termination_wins_over_truncation():
    class Short(Corridor):
        def step(self, action) -> Any:
            return 4, 3.0, True, True, {}

    held_out = held_out_returns(Short(), GVF(TARGET, continuation=0.9), states=5, seed=0)
    assert held_out.returns.tolist() == [[3.0]] * 5


def test_only_cut_rollouts_are_an_error_that_says_what_to_do():
    env = Cut(Clock(), 20)
    for cut in ("refuse", "drop"):
        with pytest.raises(CutError, match=r"all 8 rollouts were truncated .* truncate later"):
            held_out_returns(
                env, GVF(Always(0, 2), continuation=0.9), states=4, rollouts=2, cut=cut
            )


def test_a_rollout_that_never_ends_is_an_error():
    question = GVF(Always(0, 2), continuation=1.0)
    with pytest.raises(ValueError, match=r"after 50 steps .* still 1;"):
        held_out_returns(Clock(), question, states=1, longest=50)


@pytest.mark.parametrize("rollouts", [1, 3])
def test_the_seed_decides_and_the_first_states_are_the_same_for_any_number(rollouts):
    def sample(states, seed):
        question = GVF(TARGET, continuation=0.9)
        return held_out_returns(Corridor(), question, states=states, rollouts=rollouts, seed=seed)

    few, many, other = sample(10, 0), sample(20, 0), sample(20, 1)
    assert (few.states == many.states[:10]).all()
    assert (few.returns == many.returns[:10]).all()
    assert (many.returns != other.returns).any()


def test_continuous_actions_and_environments_made_by_gymnasium_work():
    env = gym.make("Pendulum-v1")
    question = GVF(Gaussian(0.0, 0.5), continuation=0.5)
    held_out = held_out_returns(
        env, question, behaviour=Gaussian(0.0, 2.0), states=3, rollouts=3, run_length=20, seed=0
    )
    assert held_out.states.shape == (3, 3)
    # The environment is deterministic, and so the returns differ by the actions alone.
    assert (held_out.returns.std(axis=1) > 0).all()


class Locked(Corridor):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class BuiltAnew(Corridor, gym.utils.EzPickle):
    def __init__(self) -> None:
        gym.utils.EzPickle.__init__(self)


@pytest.mark.parametrize(
    ("kind", "message"),
    [(Locked, "cannot be copied, .* rollouts=1"), (BuiltAnew, "copies of BuiltAnew do not keep")],
)
def test_environments_that_cannot_be_copied_give_one_rollout_only(kind, message):
    question = GVF(TARGET, continuation=0.9)
    assert held_out_returns(kind(), question, states=3, seed=0).returns.shape == (3, 1)
    with pytest.raises(TypeError, match=message):
        held_out_returns(TimeLimit(kind(), 1000), question, states=3, rollouts=2, seed=0)


def test_arguments_out_of_range_and_spaces_that_do_not_fit_are_errors():
    question = GVF(TARGET, continuation=0.9)
    for name in ("states", "rollouts", "run_length", "longest"):
        zero: dict[str, Any] = {name: 0}
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            held_out_returns(Corridor(), question, **zero)
    for cutoff in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="cutoff must be in"):
            held_out_returns(Corridor(), question, cutoff=cutoff)
    with pytest.raises(ValueError, match="gives 3 actions; the environment takes"):
        held_out_returns(Corridor(), question, behaviour=Uniform(3))
    with pytest.raises(ValueError, match="gives 3 actions; the environment takes"):
        held_out_returns(Corridor(), GVF(Uniform(3)))
    with pytest.raises(TypeError, match=r"\(single\) Gymnasium environment, got SyncVectorEnv"):
        held_out_returns(gym.vector.SyncVectorEnv([Corridor]), question)  # type: ignore[arg-type]


def test_errors_equal_their_definitions():
    nan = math.nan
    returns = [[1.0, 2.0, 6.0], [0.5, nan, 0.1], [2.0, nan, nan], [1.0, 1.0, 1.0]]
    predictions = [2.0, 0.5, 2.5, -1.0]
    mean, noise, several = [], [], []
    for row in returns:
        usable = [g for g in row if not math.isnan(g)]
        mean.append(sum(usable) / len(usable))
        several.append(len(usable) > 1)
        if several[-1]:
            variance = sum((g - mean[-1]) ** 2 for g in usable) / (len(usable) - 1)
            noise.append(variance / len(usable))
    off = [v - g for v, g in zip(predictions, mean, strict=True)]

    def estimate(sample):
        middle = sum(sample) / len(sample)
        variance = sum((x - middle) ** 2 for x in sample) / (len(sample) - 1)
        return pytest.approx((middle, math.sqrt(variance / len(sample))))

    held_out = HeldOutReturns(np.arange(4), np.array(returns), cut=3)
    error = held_out.error(lambda states: np.array(predictions)[states])
    squares = [x * x for x in off]
    assert held_out.values == pytest.approx(mean)
    assert pair(error.mean_absolute) == estimate([abs(x) for x in off])
    assert pair(error.bias) == estimate(off)
    assert error.root_mean_square.value == pytest.approx(math.sqrt(sum(squares) / 4))
    kept = [x for x, many in zip(squares, several, strict=True) if many]
    assert error.mean_squared_value is not None
    corrected = estimate([x - s for x, s in zip(kept, noise, strict=True)])
    assert pair(error.mean_squared_value) == corrected
    assert error.states == 4


def test_one_state_has_no_standard_error_and_one_rollout_no_corrected_error():
    error = HeldOutReturns(np.array([0]), np.array([[2.0]]), cut=0).error(lambda states: states)
    assert error.bias.value == -2.0
    assert error.mean_absolute.value == error.root_mean_square.value == 2.0
    for estimate in (error.bias, error.mean_absolute, error.root_mean_square):
        assert math.isnan(estimate.standard_error)
    assert error.mean_squared_value is None
    assert "mean squared value   needs rollouts >= 2" in repr(error)


def test_perfect_predictions_have_no_error():
    error = HeldOutReturns(np.arange(3), np.ones((3, 2)), cut=0).error(np.ones_like)
    for estimate in (error.root_mean_square, error.mean_absolute, error.mean_squared_value):
        assert estimate is not None
        assert pair(estimate) == (0, 0)


@pytest.mark.parametrize("prediction", [math.nan, math.inf, -math.inf, 1e300])
def test_diverged_predictions_have_an_infinite_error(prediction):
    held_out = HeldOutReturns(np.arange(3), np.ones((3, 2)), cut=0)
    error = held_out.error(lambda states: np.array([1.0, prediction, 1.0]))
    assert error.root_mean_square.value == math.inf
    assert error.mean_squared_value is not None
    assert error.mean_squared_value.value == math.inf
    if prediction != 1e300:
        assert error.mean_absolute.value == error.bias.value == math.inf


def test_predictions_of_the_wrong_shape_are_an_error():
    held_out = HeldOutReturns(np.arange(3), np.ones((3, 2)), cut=0)
    with pytest.raises(ValueError, match=r"one number a state, shape \(3,\), got \(3, 1\)"):
        held_out.error(lambda states: states[:, None])


def test_estimates_print_with_their_standard_error():
    assert repr(Estimate(0.123456, standard_error=0.00789)) == "0.1235 ± 0.0079"


def test_progress_is_shown_when_asked_for(capsys):
    question = GVF(TARGET, continuation=0.9)
    held_out_returns(Corridor(), question, states=2, seed=0)
    assert capsys.readouterr().err == ""
    held_out_returns(Corridor(), question, states=2, seed=0, progress=True)
    assert "held-out returns" in capsys.readouterr().err


class Fields(gym.Env[Any, Any]):
    """A clock that terminates at 6, observes a Dict, and tells the square of the time."""

    action_space: gym.Space[Any] = Discrete(2)
    observation_space: gym.Space[Any] = Dict(
        time=Discrete(100), inner=Dict(even=MultiBinary(2), place=Box(-9.0, 9.0, (2,)))
    )

    def observation(self):
        even, noise = self.time % 2 == 0, self.np_random.normal(size=2)
        inner = {
            "even": np.array([even, not even], np.int8),
            "place": np.clip(noise, -9, 9).astype("f4"),
        }
        return {"time": self.time, "inner": inner}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observation(), {"square": -1}

    def step(self, action):
        self.time += 1
        told = {"square": self.time**2, "place": self.np_random.normal()}
        return self.observation(), 1.0, self.time >= 6, False, told


@pytest.mark.parametrize("rollouts", [1, 3])
def test_states_of_dict_observations_are_a_structured_array(rollouts):
    def probabilities(states):
        return np.where(states["inner"]["even"][:, :1] == 1, [0.9, 0.1], [0.1, 0.9])

    question = GVF(Function(probabilities, 2), continuation=1.0)
    held_out = held_out_returns(
        Fields(), question, behaviour=Uniform(2), states=40, rollouts=rollouts, run_length=9, seed=0
    )
    states = held_out.states
    assert states.shape == (40,)
    assert set(states["time"]) == {0, 1, 2, 3, 4, 5}
    assert states["inner"]["place"].shape == (40, 2)
    assert (states["inner"]["even"][:, 0] == (states["time"] % 2 == 0)).all()
    assert held_out.returns.tolist() == [[6.0 - t] * rollouts for t in states["time"]]
    error = held_out.error(lambda states: 6.0 - states["time"])
    assert error.root_mean_square.value == 0


@pytest.mark.parametrize("rollouts", [1, 2])
def test_a_question_may_name_a_value_of_info(rollouts):
    def sample(cumulant, **options):
        question = GVF(Always(0, 2), cumulant, continuation=1.0)
        return held_out_returns(
            Fields(), question, states=10, rollouts=rollouts, run_length=20, seed=0, **options
        )

    held_out = sample("square")
    expected = [sum(t**2 for t in range(start + 1, 7)) for start in held_out.states["time"]]
    assert held_out.returns.tolist() == [[total] * rollouts for total in expected]
    again = sample(lambda t: t.square, info=["square"])
    assert again.returns.tolist() == held_out.returns.tolist()
    assert (sample("place").returns.std(axis=1) > 0).all() == (rollouts == 2)
    with pytest.raises(ValueError, match=r"info has no 'cube' at step 0 .* it has: square, place"):
        sample("cube")
    with pytest.raises(AttributeError, match="no column 'square'"):
        sample(lambda t: t.square)


def test_noise_is_the_standard_error_of_each_mean(held_out):
    nan = math.nan
    few = HeldOutReturns(
        np.arange(3), np.array([[1.0, 2.0, 6.0], [0.5, nan, 0.1], [2.0, nan, nan]]), 3
    )
    expected = [math.sqrt((4 + 1 + 9) / 2 / 3), math.sqrt(0.08 / 2), nan]
    assert few.noise.tolist() == pytest.approx(expected, nan_ok=True)
    assert few.noise.dtype == np.float64
    single = HeldOutReturns(np.arange(2), np.ones((2, 1)), cut=0).noise
    assert np.isnan(single).tolist() == [True, True]
    # Means of two returns differ from the true values by their noise: (mean - v)^2 = noise^2.
    square = (held_out.values - VALUES[held_out.states]) ** 2 - held_out.noise**2
    assert abs(square.mean()) < 4 * square.std() / math.sqrt(len(square))


def test_a_question_whose_returns_never_end_is_one_clear_line_soon():
    with pytest.raises(ValueError, match="after 100000 steps of a rollout") as told:
        held_out_returns(Clock(), GVF(Always(0, 2), continuation=1.0))
    assert "\n" not in str(told.value)
