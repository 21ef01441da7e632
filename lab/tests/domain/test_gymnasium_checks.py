"""Gymnasium domains: the largest ratio, and every refusal in a line."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from corridors import Corridor, lake, on_the_right, refuse, seeded

import gvf
from gvf_lab.domain import GymnasiumDomain, gymnasium_domain
from gvf_lab.domain.gymnasium_checks import largest_ratio_of_gaussians

pytestmark = pytest.mark.usefixtures("own_cache")


# The largest ratio


def test_the_largest_ratio_is_known_only_where_every_state_is() -> None:
    def leaning(states: Any) -> Any:
        return np.where(states[:, :1] > 0, [0.9, 0.1], [0.5, 0.5])

    leans = gvf.policies.Function(leaning, actions=2)
    cart = GymnasiumDomain("CartPole-v1", questions={"leans": gvf.GVF(leans)})
    assert cart.largest_ratio("leans", "uniform") == np.inf
    table = np.full((16, 4), 0.25)
    table[14] = 0.7, 0.1, 0.1, 0.1
    lake = GymnasiumDomain(
        "FrozenLake-v1",
        behaviours={"uniform": gvf.policies.Uniform(4), "up": gvf.policies.Always(3, actions=4)},
        questions={
            "q": gvf.GVF(gvf.policies.Table(table)),
            "early": gvf.GVF(gvf.policies.Table(table)),
        },
        active={"early": lambda states: states < 14},
    )
    assert lake.largest_ratio("q", "uniform") == pytest.approx(2.8)
    assert lake.largest_ratio("early", "uniform") == 1.0
    assert lake.largest_ratio("q", "up") == np.inf


def test_the_largest_ratio_of_gaussians_is_the_largest_on_a_grid() -> None:
    target, behaviour = (
        gvf.policies.Gaussian([0.3, -1.0], [0.5, 1.0]),
        gvf.policies.Gaussian([0.0, -1.0], [1.0, 1.5]),
    )
    axis = np.linspace(-4, 4, 801)
    actions = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    ratios = gvf.policies.ratio(target, np.zeros(len(actions)), actions, behaviour=behaviour)
    assert largest_ratio_of_gaussians(target, behaviour) == pytest.approx(ratios.max(), rel=1e-3)
    assert largest_ratio_of_gaussians(target, target) == 1.0
    assert largest_ratio_of_gaussians(behaviour, target) == np.inf
    moved = gvf.policies.Gaussian([0.1, 0.0], [1.0, 1.5])
    assert largest_ratio_of_gaussians(moved, behaviour) == np.inf
    assert largest_ratio_of_gaussians(gvf.policies.Gaussian(lambda s: s, 0.5), behaviour) == np.inf


# Refusals


def test_an_environment_that_cannot_be_made_is_refused_with_the_reason() -> None:
    refuse("Nope-v0 cannot be made: Environment `Nope` doesn't exist", GymnasiumDomain, "Nope-v0")
    refuse(
        "CartPole-v1 cannot be made: ",
        GymnasiumDomain,
        "CartPole-v1",
        arguments={"gravity_of": "mars"},
    )
    shared = gym.make("CartPole-v1")
    refuse("a function that makes a new environment", GymnasiumDomain, shared, error=TypeError)
    refuse("<lambda> made 3, which is no", GymnasiumDomain, lambda: 3)
    domain = GymnasiumDomain(lambda: shared, features=gvf.features.Dense(4), name="shared")
    refuse("shared must make a new environment", domain.check, "favour-0", "uniform")


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any, **named: Any) -> None:
        raise gym.error.DependencyNotInstalled('MuJoCo is missing,\nrun `pip install "x[mujoco]"`')

    monkeypatch.setattr(gym, "make", fail)
    refuse(
        'Hopper-v5 cannot be made: MuJoCo is missing, run `pip install "x[mujoco]"`',
        GymnasiumDomain,
        "Hopper-v5",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"behaviours": {"b": gvf.policies.Uniform(3)}},
            "behaviour 'b' of CartPole-v1: Uniform(3) gives 3",
        ),
        (
            {"behaviours": {"b": 0.5}},
            "behaviour 'b' of CartPole-v1: policy must be a gvf.policies.Policy",
        ),
        ({"behaviours": {}}, "CartPole-v1 needs at least one behaviour"),
        (
            {"questions": {"q": gvf.GVF(gvf.policies.Gaussian(0, 1))}},
            "question 'q' of CartPole-v1: Gauss",
        ),
        ({"pairs": [("favour-0", "unifrom")]}, "did you mean 'uniform'?"),
        ({"active": {"favour": on_the_right}}, "unknown question of CartPole-v1: 'favour'"),
        ({"rollouts": 0}, "rollouts must be at least 1, got 0"),
        ({"run_length": 0}, "run_length must be at least 1, got 0"),
        ({"cutoff": 1.0}, "cutoff must be in [0, 1), got 1.0"),
        ({"initial_weights": [0.0]}, "initial_weights have shape (1,); the features need (5000,)"),
        ({"features": len}, "CartPole-v1: features must be a feature map"),
    ],
)
def test_a_part_that_does_not_fit_is_refused(given: dict[str, Any], message: str) -> None:
    refuse(message, GymnasiumDomain, "CartPole-v1", **given)


def test_a_question_that_is_none_is_refused() -> None:
    refuse(
        "question 'q' must be a gvf.GVF",
        GymnasiumDomain,
        "CartPole-v1",
        questions={"q": gvf.policies.Uniform(2)},
        error=TypeError,
    )


def test_a_good_pair_passes() -> None:
    lake(gvf.GVF(gvf.policies.Favour(2, 0.9, 4), lambda t: t.terminated, 0.9)).check("q", "uniform")
    GymnasiumDomain("Pendulum-v1").check("steady", "gaussian")
    GymnasiumDomain("CartPole-v1").check("favour-0", "uniform")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (gvf.GVF(gvf.policies.Uniform(4), "distance"), "info has no 'distance'"),
        (gvf.GVF(gvf.policies.Uniform(4), lambda t: t.distance), "no column 'distance' in these"),
        (gvf.GVF(gvf.policies.Uniform(4), lambda t: t["distance"]), "info in info=)"),
        (
            gvf.GVF(gvf.policies.Uniform(4), lambda t: t.reward / 0 if len(t) else 0),
            "it must be finite",
        ),
        (gvf.GVF(gvf.policies.Uniform(4), continuation=lambda t: 2.0), "it must be in [0, 1]"),
        (gvf.GVF(gvf.policies.Uniform(4), lambda t: [][3]), "IndexError: list index out of range"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in divide:RuntimeWarning")
def test_a_question_that_does_not_work_is_refused(question: gvf.GVF, message: str) -> None:
    domain = lake(question)
    refuse("question 'q' with behaviour 'uniform' in FrozenLake-v1: ", domain.check, "q", "uniform")
    refuse(message, domain.check, "q", "uniform")


def test_a_behaviour_without_support_is_refused() -> None:
    domain = lake(gvf.GVF(gvf.policies.Fixed([0.2, 0.8, 0.0, 0.0])))
    refuse(
        "the behaviour never takes action 0 in state 0, where the target does with probability 0.2",
        domain.check,
        "q",
        "down",
    )

    class Positive(gvf.policies.Policy):
        def log_probability(self, states: Any, actions: Any) -> Any:
            given = np.asarray(actions).reshape(len(states))
            return np.where(given > 0, -given, -np.inf)

        def sample(self, states: Any, *, rng: np.random.Generator) -> Any:
            return rng.exponential(size=len(states))

    pendulum = GymnasiumDomain("Pendulum-v1", behaviours={"positive": Positive()})
    refuse("the behaviour never takes action [-", pendulum.check, "steady", "positive")


def test_support_is_needed_in_active_states_only() -> None:
    table = np.tile([0.5, 0.5, 0.0, 0.0], (16, 1))
    table[0] = 0, 1, 0, 0
    question = gvf.GVF(gvf.policies.Table(table))
    lake(question, active={"q": lambda states: states == 0}).check("q", "down")
    refuse("action 0 in state 1,", lake(question).check, "q", "down")


def test_returns_that_never_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Corridor):
        def __init__(self) -> None:
            super().__init__(length=-1)

    domain = GymnasiumDomain(
        Endless, questions={"q": gvf.GVF(gvf.policies.Uniform(2), continuation=1.0)}
    )
    monkeypatch.setattr(gymnasium_domain, "_LONGEST", 50)
    refuse("after 50 steps of a rollout", domain.check, "q", "uniform")


def test_features_of_any_precision_are_walked_with_in_the_one_that_kernels_take() -> None:
    class Coarse:
        size = 4

        def __call__(self, states: Any) -> Any:
            return np.asarray(states, np.float32)

    domain = GymnasiumDomain("CartPole-v1", features=Coarse())
    domain.check("favour-0", "uniform")
    walk = domain.walk(gvf.policies.Uniform(2), ["favour-0"], 10, seeded())
    assert walk.x.dtype == walk.x_next.dtype == np.float64
    assert np.array_equal(walk.x_next, walk.next_state)


def test_features_that_are_not_finite_are_refused() -> None:
    class Reciprocal:
        size = 1

        def __call__(self, states: Any) -> Any:
            with np.errstate(divide="ignore"):
                return 1 / np.asarray(states, np.float64)[:, None]

    question = gvf.GVF(gvf.policies.Uniform(4))
    refuse(
        "features of state 0 are not finite: [inf]",
        lake(question, features=Reciprocal()).check,
        "q",
        "uniform",
    )
    small = lake(question, features=gvf.features.OneHot(3))
    refuse("is outside 0 .. 2", small.check, "q", "uniform")


def test_active_must_say_yes_or_no_to_each_state() -> None:
    question = gvf.GVF(gvf.policies.Uniform(4))
    wrong = lake(question, active={"q": lambda states: states})
    refuse(
        "active of question 'q' must give bool[2000] for 2000 states, got int64[2000]",
        wrong.check,
        "q",
        "uniform",
    )
    never = lake(question, active={"q": lambda states: states < 0}, run_length=5)
    refuse("it is active in none of 2000 states", never.check, "q", "uniform")
    refuse(
        "question 'q' with behaviour 'uniform' in FrozenLake-v1: none of 1,000 states that the",
        never.truth,
        "q",
        "uniform",
        states=3,
    )


def test_rollouts_that_need_copies_are_refused_where_there_are_none() -> None:
    domain = lake(gvf.GVF(gvf.policies.Uniform(4)))
    refuse("unknown behaviour of FrozenLake-v1: 'up'", domain.check, "q", "up")
    refuse(
        "steps must be at least 1, got 0", domain.walk, gvf.policies.Uniform(4), ["q"], 0, seeded()
    )

    class Uncopied(Corridor):
        def __deepcopy__(self, memory: Any) -> Any:
            raise RuntimeError

    domain = GymnasiumDomain(Uncopied, rollouts=2)
    refuse("cannot be copied", domain.check, "favour-0", "uniform")
