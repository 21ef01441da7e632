"""Questions, behaviours and features that a Gymnasium domain has by default."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from corridors import Corridor, refuse, seeded
from gymnasium.spaces import Box, Discrete, MultiDiscrete

import gvf
from gvf_lab.domain import GymnasiumDomain, get
from gvf_lab.domain.gymnasium_defaults import default_features, default_questions

pytestmark = pytest.mark.usefixtures("own_cache")


def test_defaults_for_discrete_and_real_actions() -> None:
    cart = GymnasiumDomain("CartPole-v1")
    assert cart.behaviours == {"uniform": gvf.policies.Uniform(2)}
    assert list(cart.questions) == ["favour-0", "favour-1"]
    assert cart.question("favour-1") == gvf.GVF(gvf.policies.Favour(1, 0.9, 2), "reward", 0.9)
    assert cart.pairs == (("favour-0", "uniform"), ("favour-1", "uniform"))
    assert cart.features.size == len(cart.initial_weights) == 8 * 5**4
    assert cart.largest_ratio("favour-0", "uniform") == 1.8
    pendulum = GymnasiumDomain("Pendulum-v1")
    assert pendulum.behaviours == {"gaussian": gvf.policies.Gaussian([0.0], [1.0])}
    assert pendulum.questions == {
        "steady": gvf.GVF(gvf.policies.Gaussian([0.0], [0.5]), "reward", 0.9)
    }
    assert pendulum.largest_ratio("steady", "gaussian") == 2.0
    assert list(default_questions(Discrete(9))) == [f"favour-{i}" for i in range(4)]
    assert default_questions(Discrete(1))["favour-0"].policy.probability([0], [0]) == 1
    unbounded = default_questions(Box(-np.inf, np.inf, (2, 2)))["steady"].policy
    assert unbounded == gvf.policies.Gaussian([0.0] * 4, [0.5] * 4)
    assert repr(cart).splitlines()[:3] == [
        "Domain 'CartPole-v1', environment CartPole-v1",
        "  behaviours: uniform",
        "  questions: favour-0, favour-1",
    ]


def test_tiles_lie_between_bounds_or_around_what_a_walk_visits() -> None:
    cart: Any = GymnasiumDomain("CartPole-v1").features
    assert cart.low[[0, 2]] == pytest.approx([-4.8, -0.41887903])
    number = int.from_bytes(seeded().generate_state(4).tobytes(), "little")
    env = gym.make("CartPole-v1")
    (stream,) = gvf.collect(env, gvf.policies.Uniform(2), 2000, seed=number, batch=2000)
    for dimension in (1, 3):
        low, high = np.percentile(stream.state[:, dimension].astype(float), [1, 99])
        assert cart.low[dimension] == pytest.approx(low - (high - low) / 4)
        assert cart.high[dimension] == pytest.approx(high + (high - low) / 4)


def no_probe() -> Any:
    raise AssertionError("bounds are known")


@pytest.mark.parametrize(
    ("dimensions", "tiles"), [(1, 16), (2, 16), (3, 9), (4, 4), (5, 3), (6, 2)]
)
def test_there_are_as_many_tiles_as_make_some_thousand_features(
    dimensions: int, tiles: int
) -> None:
    features: Any = default_features(Box(0.0, 1.0, (dimensions,)), no_probe)
    assert features.tiles.tolist() == [tiles] * dimensions
    assert features.tilings == 8


def test_features_of_other_spaces() -> None:
    assert default_features(Discrete(5, start=3), no_probe) == gvf.features.OneHot(8)
    grid = default_features(MultiDiscrete([3, 4]), no_probe)
    assert repr(grid) == "TileCoder(8 tilings of 16 x 16 tiles over [0, 2] x [0, 3], size 2312)"
    square = default_features(Box(0.0, 1.0, (2, 2)), no_probe)
    assert square(np.zeros((3, 2, 2))).shape == (3, 8)
    states = np.random.default_rng(0).normal(3.0, 2.0, (500, 7))
    states[:, 2] = 0.1
    many = default_features(Box(-1.0, 1.0, (7,)), lambda: states)(states)
    assert (many[:, 0] == 1).all()
    assert many[:, 1:].mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert many[:, 1:].std(axis=0) == pytest.approx([1, 1, 0, 1, 1, 1, 1], abs=1e-9)


def test_a_domain_is_found_by_the_id_of_its_environment() -> None:
    domain = get("MountainCar-v0")
    assert isinstance(domain, GymnasiumDomain)
    assert domain.name == "MountainCar-v0"
    env = domain.make(render_mode="rgb_array")
    assert env.render_mode == "rgb_array"
    env.close()


def test_observations_without_default_features_are_refused() -> None:
    def looking(space: Any) -> Any:
        class Looking(Corridor):
            def __init__(self) -> None:
                super().__init__()
                self.observation_space = space

        return Looking

    image = Box(0, 255, (40, 40), np.uint8)
    refuse(
        "Looking: an observation has 1600 numbers", GymnasiumDomain, looking(image), name="Looking"
    )
    refuse("negative; give features=", GymnasiumDomain, looking(Discrete(3, start=-1)))
    pair = gym.spaces.Tuple([Discrete(2)])
    refuse("gymnasium.wrappers.FlattenObservation", GymnasiumDomain, looking(pair))
    nothing = np.full((5, 2), np.nan)
    refuse("is nan at step 0", default_features, Box(-np.inf, np.inf, (2,)), lambda: nothing)
