"""Gymnasium domains: streams recorded once, truths against a table, and every refusal in a line."""

import hashlib
import re
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import gvf
from gvf.common.spec import fingerprint
from gvf.domain import GymnasiumDomain, get, gymnasium_checks, gymnasium_domain
from gvf.domain.gymnasium_checks import largest_ratio_of_gaussians
from gvf.domain.gymnasium_defaults import default_features, default_questions
from gvf.domain.memory import Memory


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))


def seeded(seed: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed)


class Corridor(gym.Env[Any, Any]):
    """Walk left or right between 0 and 1 by a random step; the observation is a Dict.

    ``info`` has the distance to the right end, and an array.
    """

    def __init__(self, length: int = 20, key: str = "distance") -> None:
        self.observation_space = Dict(place=Box(0.0, 1.0, (2,)), side=Discrete(2))
        self.action_space = Discrete(2)
        self.length, self.key = length, key

    def told(self) -> tuple[dict[str, Any], dict[str, Any]]:
        place = np.array([self.x, 1 - self.x], np.float32)
        return {"place": place, "side": int(self.x > 0.5)}, {self.key: 1 - self.x}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.steps = 0.5, 0
        return self.told()

    def step(self, action):
        self.steps += 1
        self.x = float(np.clip(self.x + (2 * action - 1) * 0.1 * self.np_random.random(), 0, 1))
        observation, info = self.told()
        return observation, 1.0, self.steps == self.length, False, info


class Counted:
    """Makes environments and counts them, so it has no fingerprint: it changes."""

    def __init__(self, environment: str) -> None:
        self.environment = environment
        self.made = 0

    def __call__(self) -> gym.Env[Any, Any]:
        self.made += 1
        return gym.make(self.environment)


def same(a: Any, b: Any) -> bool:
    signals = all(
        np.array_equal(getattr(a.signals[q], part), getattr(b.signals[q], part))
        for q in a.signals
        for part in ("ratio", "cumulant", "continuation")
    )
    columns = ("x", "x_next", "action", "next_state")
    return signals and all(np.array_equal(getattr(a, c), getattr(b, c)) for c in columns)


# Streams


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_a_walk_is_what_the_environment_and_the_policies_say(name: str) -> None:
    domain = GymnasiumDomain(name)
    (behaviour, mu), (question, asked) = (next(iter(p.items())) for p in _named(domain))
    trajectory = domain.walk(mu, [question], 500, seeded())
    number = int.from_bytes(seeded().generate_state(4).tobytes(), "little")
    (stream,) = gvf.transitions(gym.make(name), mu, 500, seed=number, batch=500)
    assert np.array_equal(trajectory.action, stream.action)
    assert np.array_equal(trajectory.next_state, stream.next_state)
    assert np.array_equal(trajectory.x, domain.features(stream.state))
    assert np.array_equal(trajectory.x_next, domain.features(stream.next_state))
    signals = trajectory.signals[question]
    pi = asked.policy.probability(stream.state, stream.action)
    assert signals.ratio == pytest.approx(pi / mu.probability(stream.state, stream.action))
    assert np.array_equal(signals.cumulant, stream.reward)
    assert np.array_equal(signals.continuation, np.where(stream.terminated, 0.0, 0.9))
    assert signals.active is None
    assert signals.ratio.max() <= domain.largest_ratio(question, behaviour) * (1 + 1e-12)


def _named(domain: GymnasiumDomain) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(domain.behaviours), dict(domain.questions)


def test_the_ratios_of_a_target_that_favours_an_action_are_those_worked_out_by_hand() -> None:
    domain = GymnasiumDomain("CartPole-v1")
    trajectory = domain.walk(gvf.Fixed([0.25, 0.75]), ["favour-1"], 100, seeded())
    by_hand = np.where(trajectory.action == 1, 0.9 / 0.75, 0.1 / 0.25)
    assert trajectory.signals["favour-1"].ratio == pytest.approx(by_hand)


def test_equal_seeds_give_equal_walks_in_other_domains_and_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import gvf, hashlib, numpy as np\n"
        "domain = gvf.GymnasiumDomain('CartPole-v1')\n"
        "walk = domain.walk(gvf.Uniform(2), ['favour-0'], 300, np.random.SeedSequence(7))\n"
        "print(hashlib.sha256(walk.next_state.tobytes() + walk.x.tobytes()).hexdigest())"
    )
    here = GymnasiumDomain("CartPole-v1").walk(gvf.Uniform(2), ["favour-0"], 300, seeded(7))
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "another"))
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    mine = hashlib.sha256(here.next_state.tobytes() + here.x.tobytes()).hexdigest()
    assert there.stdout.strip() == mine, there.stderr
    other = GymnasiumDomain("CartPole-v1").walk(gvf.Uniform(2), ["favour-0"], 300, seeded(8))
    assert not same(here, other)


def test_a_stream_comes_from_its_file_in_another_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    def corridor() -> GymnasiumDomain:
        return GymnasiumDomain(
            Corridor, questions={"far": gvf.GVF(gvf.Favour(1, 0.9, 2), "distance", 0.5)}
        )

    first = corridor().walk(gvf.Uniform(2), ["far"], 100, seeded())
    truth = corridor().truth("far", "uniform", states=5)
    domain = corridor()
    monkeypatch.setattr(gymnasium_domain, "transitions", None)
    monkeypatch.setattr(gymnasium_domain, "held_out_returns", None)
    again = domain.walk(gvf.Uniform(2), ["far"], 100, seeded())
    assert same(first, again)
    assert first.next_state.dtype == again.next_state.dtype
    assert np.array_equal(domain.truth("far", "uniform", states=5).values, truth.values)
    for policy, steps, seed in ((gvf.Uniform(2), 101, 0), (gvf.Uniform(2), 100, 1)):
        with pytest.raises(TypeError):
            domain.walk(policy, ["far"], steps, seeded(seed))
    with pytest.raises(TypeError):
        domain.walk(gvf.Fixed([0.4, 0.6]), ["far"], 100, seeded())


def test_environments_that_differ_share_no_file(tmp_path: Path) -> None:
    rewards = [
        GymnasiumDomain("FrozenLake-v1", arguments=arguments)
        .walk(gvf.Uniform(4), ["favour-0"], 200, seeded())
        .next_state.tolist()
        for arguments in ({"is_slippery": True}, {"is_slippery": False})
    ]
    assert rewards[0] != rewards[1]
    GymnasiumDomain("FrozenLake-v1", arguments={"max_episode_steps": 7}).walk(
        gvf.Uniform(4), ["favour-0"], 200, seeded()
    )
    assert len(list(tmp_path.glob("gymnasium-walk-*.npz"))) == 3


@pytest.mark.parametrize("package", ["gvf", "numpy", "gymnasium", "Box2D"])
def test_streams_do_not_outlive_the_versions_they_were_made_with(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "LunarLander-v3" if package == "Box2D" else "FrozenLake-v1"
    if package == "Box2D":
        pytest.importorskip("Box2D")
    env = gym.make(name)
    told = gymnasium_checks.versions(env)
    assert told["gvf"] == gvf.__version__
    assert told["numpy"] == np.__version__
    assert told["gymnasium"] == gym.__version__
    before = fingerprint(gymnasium_checks.identity(name, {}, env))
    assert before is not None
    assert fingerprint(gymnasium_checks.identity(name, {}, gym.make(name))) == before

    def another(distribution: str) -> str:
        return "99" if distribution.startswith(package) else version(distribution)

    if package == "gvf":
        monkeypatch.setattr(gvf, "__version__", "99")
    else:
        monkeypatch.setattr(gymnasium_checks, "version", another)
    assert gymnasium_checks.versions(env)[package] == "99"
    assert fingerprint(gymnasium_checks.identity(name, {}, env)) != before


def test_the_version_of_what_makes_an_environment_counts() -> None:
    class Elsewhere:
        __module__ = "scipy.stats"

    assert "scipy" not in gymnasium_checks.versions(gym.make("CartPole-v1"))
    assert "scipy" in gymnasium_checks.versions(gym.make("CartPole-v1"), [Elsewhere])


def test_what_has_no_fingerprint_is_kept_in_memory_only(tmp_path: Path) -> None:
    make = Counted("FrozenLake-v1")
    domain = GymnasiumDomain(make)
    walks = [domain.walk(gvf.Uniform(4), ["favour-0"], 50, seeded()) for _ in range(2)]
    assert same(*walks)
    assert make.made == 2  # one to look at its spaces
    assert not list(tmp_path.iterdir())


def test_a_large_stream_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium_domain, "_LARGEST_FILE", 2 * 8 * 50)
    domain = GymnasiumDomain("FrozenLake-v1")
    domain.walk(gvf.Uniform(4), [], 51, seeded())
    assert not list(tmp_path.iterdir())
    domain.walk(gvf.Uniform(4), [], 50, seeded())
    assert len(list(tmp_path.iterdir())) == 1


def test_a_caller_may_write_into_its_copy() -> None:
    domain = GymnasiumDomain("FrozenLake-v1")
    first = domain.walk(gvf.Uniform(4), ["favour-0"], 50, seeded())
    kept = first.next_state.copy()
    first.next_state[:] = -1
    assert (domain.walk(gvf.Uniform(4), ["favour-0"], 50, seeded()).next_state == kept).all()


def test_threads_record_a_stream_once_and_different_streams_at_the_same_time() -> None:
    make = Counted("CartPole-v1")
    domain = GymnasiumDomain(make, features=gvf.Dense(4))
    walks: dict[int, Any] = {}

    def walk(number: int) -> None:
        walks[number] = domain.walk(gvf.Uniform(2), ["favour-0"], 3000, seeded(number // 2))

    threads = [threading.Thread(target=walk, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.made == 1 + 2
    assert same(walks[0], walks[1])
    assert same(walks[2], walks[3])
    assert not same(walks[0], walks[2])


def test_different_arrays_are_made_at_the_same_time() -> None:
    memory, meeting = Memory(), threading.Barrier(2, timeout=10)

    def make() -> dict[str, Any]:
        meeting.wait()  # breaks, if one waits for the other to finish
        return {"x": np.zeros(1)}

    threads = [
        threading.Thread(target=memory.get, args=("x", {"n": n}, make), kwargs={"file": False})
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not meeting.broken


def test_memory_forgets_what_was_used_longest_ago() -> None:
    memory, made = Memory(limit=2000), []

    def get(number: int) -> None:
        def make() -> dict[str, Any]:
            made.append(number)
            return {"x": np.zeros(100)}

        memory.get("x", {"n": number}, make, file=False)

    for number in (0, 1, 0, 2, 0, 1):
        get(number)
    assert made == [0, 1, 2, 1]


def test_a_failure_is_not_remembered() -> None:
    memory = Memory()
    with pytest.raises(ZeroDivisionError):
        memory.get("x", {"n": 0}, lambda: {"x": np.array(1 // 0)}, file=False)
    assert memory.get("x", {"n": 0}, lambda: {"x": np.ones(1)}, file=False)["x"] == 1


def test_the_stream_does_not_depend_on_the_questions() -> None:
    def never(states: Any) -> Any:
        return np.zeros(len(states), bool)

    target = gvf.Favour(1, 0.9, 2)
    domain = GymnasiumDomain(
        Corridor,
        questions={
            "reward": gvf.GVF(target),
            "distance": gvf.GVF(target, "distance"),
            "never": gvf.GVF(target),
        },
        active={"never": never},
    )
    asked = [["reward"], ["distance"], ["distance", "reward", "never"]]
    walks = [domain.walk(gvf.Uniform(2), some, 60, seeded()) for some in asked]
    assert np.array_equal(walks[0].next_state, walks[1].next_state)
    assert same(walks[0], walks[2])
    right = 1 - walks[1].next_state["place"][:, 0]
    assert walks[1].signals["distance"].cumulant == pytest.approx(right, abs=1e-6)


def test_a_dict_is_tile_coded_over_all_its_numbers() -> None:
    domain = GymnasiumDomain(Corridor)
    states = domain.walk(gvf.Uniform(2), [], 50, seeded()).next_state
    assert states["place"].shape == (50, 2)
    numbers = np.column_stack([states["place"], states["side"]])
    coder = gvf.TileCoder([0, 0, 0], [1, 1, 1], tiles=9, tilings=8)
    assert np.array_equal(domain.features(states), coder(numbers))
    assert domain.features.size == coder.size


def test_functions_of_a_question_may_use_values_of_info() -> None:
    question = gvf.GVF(gvf.Favour(1, 0.9, 2), lambda t: 2 * t.distance, 0.5)
    domain = GymnasiumDomain(Corridor, questions={"twice": question}, info=["distance"])
    domain.check("twice", "uniform")
    walk = domain.walk(gvf.Uniform(2), ["twice"], 50, seeded())
    right = 2 - 2 * walk.next_state["place"][:, 0]
    assert walk.signals["twice"].cumulant == pytest.approx(right, abs=1e-6)
    assert np.isfinite(domain.truth("twice", "uniform", states=3).values).all()


# Where a question is active


def on_the_right(states: Any) -> Any:
    return states["side"] == 1


def test_inactive_transitions_have_ratio_0_and_need_no_policy() -> None:
    def only_right(states: Any) -> Any:
        assert (states["side"] == 1).all()
        return np.tile([0.2, 0.8], (len(states), 1))

    target = gvf.FunctionPolicy(only_right, actions=2)
    domain = GymnasiumDomain(
        Corridor, questions={"q": gvf.GVF(target)}, active={"q": on_the_right}, features=_Side()
    )
    walk = domain.walk(gvf.Uniform(2), ["q"], 200, seeded())
    signals, active = walk.signals["q"], walk.x[:, 0] == 1
    assert signals.active is not None
    assert 20 < active.sum() < 180
    assert np.array_equal(signals.active, active)
    assert np.array_equal(signals.ratio, np.where(active, np.where(walk.action == 1, 1.6, 0.4), 0))
    assert (signals.cumulant == 1).all()


def test_the_target_of_a_question_that_is_never_active_is_never_asked() -> None:
    def fail(states: Any) -> Any:
        raise AssertionError

    domain = GymnasiumDomain(
        Corridor,
        questions={"q": gvf.GVF(gvf.FunctionPolicy(fail, actions=2))},
        active={"q": lambda states: np.zeros(len(states), bool)},
    )
    assert not domain.walk(gvf.Uniform(2), ["q"], 10, seeded()).signals["q"].ratio.any()


class _Side:
    size = 2

    def __call__(self, states: Any) -> Any:
        return states["side"][:, None].astype(np.int32)


def test_true_values_are_of_active_states_as_many_as_asked() -> None:
    domain = GymnasiumDomain(Corridor, active={"favour-1": on_the_right}, run_length=40)
    truth = domain.truth("favour-1", "uniform", states=30)
    assert len(truth.states) == len(truth.values) == 30
    assert (truth.states["side"] == 1).all()
    everywhere = domain.truth("favour-0", "uniform", states=30)
    assert set(everywhere.states["side"]) == {0, 1}
    # States of an unrestricted truth that are active stay.
    first = GymnasiumDomain(Corridor, run_length=40).truth("favour-1", "uniform", states=30)
    kept = first.states["side"] == 1
    assert 0 < kept.sum() < 30
    assert np.array_equal(truth.values[kept], first.values[kept])
    assert len(np.unique(truth.states["place"][:, 0])) > 25  # the others are new


def test_the_target_is_asked_in_active_states_only() -> None:
    def only_right(states: Any) -> Any:
        assert (states["side"] == 1).all()
        return np.tile([0.2, 0.8], (len(states), 1))

    def while_on_the_right(t: gvf.Transitions) -> Any:
        return np.where(t.next_state["side"] == 1, 0.9, 0.0)

    asked = gvf.GVF(gvf.FunctionPolicy(only_right, actions=2), "reward", while_on_the_right)
    domain = GymnasiumDomain(
        Corridor, questions={"q": asked}, active={"q": on_the_right}, run_length=40
    )
    domain.check("q", "uniform")
    truth = domain.truth("q", "uniform", states=20)
    assert (truth.states["side"] == 1).all()
    assert (truth.values >= 1).all()


class Capricious(Corridor):
    """Truncates itself at once in most episodes, by chance."""

    def reset(self, *, seed=None, options=None):
        told = super().reset(seed=seed)
        self.patient = self.np_random.random() < 0.2
        return told

    def step(self, action) -> Any:
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, not self.patient, info


class Impatient(Capricious):
    """Truncates itself at once in every episode."""

    def reset(self, *, seed=None, options=None):
        told = super().reset(seed=seed)
        self.patient = False
        return told


def test_a_pair_is_refused_only_if_every_rollout_is_truncated() -> None:
    domain = GymnasiumDomain(Capricious, run_length=1)
    assert len(domain.truth("favour-0", "uniform", states=100).states) < 50
    domain.check("favour-0", "uniform")
    message = "in Impatient: all 20 rollouts were truncated"
    refuse(message, GymnasiumDomain(Impatient).check, "favour-0", "uniform")


# Truth


def exact_frozen_lake(pi: Any, gamma: float) -> Any:
    """Values of FrozenLake's states from its table, by solving v = r + P v."""
    env: Any = gym.make("FrozenLake-v1").unwrapped
    moves, rewards = np.zeros((16, 16)), np.zeros(16)
    for state, actions in env.P.items():
        for action, outcomes in actions.items():
            for probability, following, reward, terminated in outcomes:
                share = pi[action] * probability
                rewards[state] += share * reward
                moves[state, following] += share * gamma * (not terminated)
    return np.linalg.solve(np.eye(16) - moves, rewards)


def test_true_values_are_those_of_the_table_and_their_noise_is_right() -> None:
    domain = GymnasiumDomain(
        "FrozenLake-v1", arguments={"max_episode_steps": 10_000}, rollouts=10, run_length=40
    )
    truth = domain.truth("favour-2", "uniform", states=100, seed=3)
    exact = exact_frozen_lake([1 / 30, 1 / 30, 0.9, 1 / 30], 0.9)[truth.states]
    difference = truth.values - exact
    error = np.sqrt((truth.noise**2).sum()) / len(difference)
    assert abs(difference.mean()) < 4 * error
    assert 0 < error < 0.01
    assert (difference**2).mean() == pytest.approx((truth.noise**2).mean(), rel=0.5)
    assert len(np.unique(truth.states)) > 5
    assert (truth.states == 0).mean() > 0.2  # as often as they are visited


def test_what_is_learned_from_a_walk_by_least_squares_is_true() -> None:
    domain = GymnasiumDomain("FrozenLake-v1", arguments={"max_episode_steps": 10_000})
    walk = domain.walk(gvf.Uniform(4), ["favour-2"], 40_000, seeded())
    signals = walk.signals["favour-2"]
    x, x_next = np.eye(16)[walk.x[:, 0]], np.eye(16)[walk.x_next[:, 0]]
    weighted = x * signals.ratio[:, None]
    moves = weighted.T @ (x - signals.continuation[:, None] * x_next)
    learned = np.linalg.lstsq(moves, weighted.T @ signals.cumulant)[0]
    exact = exact_frozen_lake([1 / 30, 1 / 30, 0.9, 1 / 30], 0.9)
    assert learned == pytest.approx(exact, abs=0.05)
    assert exact.max() > 0.5


def test_the_noise_of_single_returns_is_unknown() -> None:
    truth = GymnasiumDomain("CartPole-v1", run_length=20).truth("favour-0", "uniform", states=5)
    assert np.isnan(truth.noise).all()
    assert repr(truth).endswith("noise unknown)")
    assert truth.states.shape == (5, 4)


def test_truths_differ_by_all_that_determines_them() -> None:
    domain = GymnasiumDomain("CartPole-v1", run_length=20)
    first = domain.truth("favour-0", "uniform", states=5).values
    assert np.array_equal(domain.truth("favour-0", "uniform", states=5).values, first)
    assert not np.array_equal(domain.truth("favour-0", "uniform", states=5, seed=1).values, first)
    assert not np.array_equal(domain.truth("favour-1", "uniform", states=5).values, first)
    longer = GymnasiumDomain("CartPole-v1", run_length=21)
    assert not np.array_equal(longer.truth("favour-0", "uniform", states=5).values, first)
    coarse = GymnasiumDomain("CartPole-v1", run_length=20, cutoff=0.5)
    longest = sum(0.9**i for i in range(7))  # 0.9^7 is below a half
    assert coarse.truth("favour-0", "uniform", states=5).values.max() == pytest.approx(longest)
    assert first.max() > longest


def test_the_behaviour_leads_to_the_states() -> None:
    behaviours = {"left": gvf.Favour(0, 0.9, 2), "right": gvf.Favour(1, 0.9, 2)}
    domain = GymnasiumDomain("CartPole-v1", behaviours=behaviours, features=gvf.Dense(4))
    speeds = [domain.truth("favour-0", b, states=20).states[:, 1].mean() for b in behaviours]
    assert speeds[0] < -0.2
    assert speeds[1] > 0.2


# Defaults


def test_defaults_for_discrete_and_real_actions() -> None:
    cart = GymnasiumDomain("CartPole-v1")
    assert cart.behaviours == {"uniform": gvf.Uniform(2)}
    assert list(cart.questions) == ["favour-0", "favour-1"]
    assert cart.question("favour-1") == gvf.GVF(gvf.Favour(1, 0.9, 2), "reward", 0.9)
    assert cart.pairs == (("favour-0", "uniform"), ("favour-1", "uniform"))
    assert cart.features.size == len(cart.initial_weights) == 8 * 5**4
    assert cart.largest_ratio("favour-0", "uniform") == 1.8
    pendulum = GymnasiumDomain("Pendulum-v1")
    assert pendulum.behaviours == {"gaussian": gvf.Gaussian([0.0], [1.0])}
    assert pendulum.questions == {"steady": gvf.GVF(gvf.Gaussian([0.0], [0.5]), "reward", 0.9)}
    assert pendulum.largest_ratio("steady", "gaussian") == 2.0
    assert list(default_questions(Discrete(9))) == [f"favour-{i}" for i in range(4)]
    assert default_questions(Discrete(1))["favour-0"].policy.probability([0], [0]) == 1
    unbounded = default_questions(Box(-np.inf, np.inf, (2, 2)))["steady"].policy
    assert unbounded == gvf.Gaussian([0.0] * 4, [0.5] * 4)
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
    (stream,) = gvf.transitions(env, gvf.Uniform(2), 2000, seed=number, batch=2000)
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
    assert default_features(Discrete(5, start=3), no_probe) == gvf.OneHot(8)
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


# The largest ratio


def test_the_largest_ratio_is_known_only_where_every_state_is() -> None:
    def leaning(states: Any) -> Any:
        return np.where(states[:, :1] > 0, [0.9, 0.1], [0.5, 0.5])

    leans = gvf.FunctionPolicy(leaning, actions=2)
    cart = GymnasiumDomain("CartPole-v1", questions={"leans": gvf.GVF(leans)})
    assert cart.largest_ratio("leans", "uniform") == np.inf
    table = np.full((16, 4), 0.25)
    table[14] = 0.7, 0.1, 0.1, 0.1
    lake = GymnasiumDomain(
        "FrozenLake-v1",
        behaviours={"uniform": gvf.Uniform(4), "up": gvf.Always(3, actions=4)},
        questions={"q": gvf.GVF(gvf.Table(table)), "early": gvf.GVF(gvf.Table(table))},
        active={"early": lambda states: states < 14},
    )
    assert lake.largest_ratio("q", "uniform") == pytest.approx(2.8)
    assert lake.largest_ratio("early", "uniform") == 1.0
    assert lake.largest_ratio("q", "up") == np.inf


def test_the_largest_ratio_of_gaussians_is_the_largest_on_a_grid() -> None:
    target, behaviour = gvf.Gaussian([0.3, -1.0], [0.5, 1.0]), gvf.Gaussian([0.0, -1.0], [1.0, 1.5])
    axis = np.linspace(-4, 4, 801)
    actions = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    ratios = gvf.ratio(target, np.zeros(len(actions)), actions, behaviour=behaviour)
    assert largest_ratio_of_gaussians(target, behaviour) == pytest.approx(ratios.max(), rel=1e-3)
    assert largest_ratio_of_gaussians(target, target) == 1.0
    assert largest_ratio_of_gaussians(behaviour, target) == np.inf
    moved = gvf.Gaussian([0.1, 0.0], [1.0, 1.5])
    assert largest_ratio_of_gaussians(moved, behaviour) == np.inf
    assert largest_ratio_of_gaussians(gvf.Gaussian(lambda s: s, 0.5), behaviour) == np.inf


# Refusals


def refuse(message: str, call: Any, *given: Any, error: type = ValueError, **named: Any) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call(*given, **named)
    assert "\n" not in str(caught.value)


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
    domain = GymnasiumDomain(lambda: shared, features=gvf.Dense(4), name="shared")
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
        ({"behaviours": {"b": gvf.Uniform(3)}}, "behaviour 'b' of CartPole-v1: Uniform(3) gives 3"),
        ({"behaviours": {"b": 0.5}}, "behaviour 'b' of CartPole-v1: policy must be a gvf.Policy"),
        ({"behaviours": {}}, "CartPole-v1 needs at least one behaviour"),
        ({"questions": {"q": gvf.GVF(gvf.Gaussian(0, 1))}}, "question 'q' of CartPole-v1: Gauss"),
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
        questions={"q": gvf.Uniform(2)},
        error=TypeError,
    )


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


def lake(question: gvf.GVF, **more: Any) -> GymnasiumDomain:
    behaviours = {"uniform": gvf.Uniform(4), "down": gvf.Always(1, actions=4)}
    given: dict[str, Any] = {"arguments": {"max_episode_steps": 10_000}, "behaviours": behaviours}
    return GymnasiumDomain("FrozenLake-v1", questions={"q": question}, **(given | more))


def test_a_good_pair_passes() -> None:
    lake(gvf.GVF(gvf.Favour(2, 0.9, 4), lambda t: t.terminated, 0.9)).check("q", "uniform")
    GymnasiumDomain("Pendulum-v1").check("steady", "gaussian")
    GymnasiumDomain("CartPole-v1").check("favour-0", "uniform")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (gvf.GVF(gvf.Uniform(4), "distance"), "info has no 'distance'"),
        (gvf.GVF(gvf.Uniform(4), lambda t: t.distance), "no column 'distance' in these"),
        (gvf.GVF(gvf.Uniform(4), lambda t: t["distance"]), "info in info=)"),
        (gvf.GVF(gvf.Uniform(4), lambda t: t.reward / 0 if len(t) else 0), "it must be finite"),
        (gvf.GVF(gvf.Uniform(4), continuation=lambda t: 2.0), "it must be in [0, 1]"),
        (gvf.GVF(gvf.Uniform(4), lambda t: [][3]), "IndexError: list index out of range"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in divide:RuntimeWarning")
def test_a_question_that_does_not_work_is_refused(question: gvf.GVF, message: str) -> None:
    domain = lake(question)
    refuse("question 'q' with behaviour 'uniform' in FrozenLake-v1: ", domain.check, "q", "uniform")
    refuse(message, domain.check, "q", "uniform")


def test_a_behaviour_without_support_is_refused() -> None:
    domain = lake(gvf.GVF(gvf.Fixed([0.2, 0.8, 0.0, 0.0])))
    refuse(
        "the behaviour never takes action 0 in state 0, where the target does with probability 0.2",
        domain.check,
        "q",
        "down",
    )

    class Positive(gvf.Policy):
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
    question = gvf.GVF(gvf.Table(table))
    lake(question, active={"q": lambda states: states == 0}).check("q", "down")
    refuse("action 0 in state 1,", lake(question).check, "q", "down")


def test_returns_that_never_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Corridor):
        def __init__(self) -> None:
            super().__init__(length=-1)

    domain = GymnasiumDomain(Endless, questions={"q": gvf.GVF(gvf.Uniform(2), continuation=1.0)})
    monkeypatch.setattr(gymnasium_domain, "_LONGEST", 50)
    refuse("after 50 steps of a rollout", domain.check, "q", "uniform")


def test_features_of_any_precision_are_walked_with_in_the_one_that_kernels_take() -> None:
    class Coarse:
        size = 4

        def __call__(self, states: Any) -> Any:
            return np.asarray(states, np.float32)

    domain = GymnasiumDomain("CartPole-v1", features=Coarse())
    domain.check("favour-0", "uniform")
    walk = domain.walk(gvf.Uniform(2), ["favour-0"], 10, seeded())
    assert walk.x.dtype == walk.x_next.dtype == np.float64
    assert np.array_equal(walk.x_next, walk.next_state)


def test_features_that_are_not_finite_are_refused() -> None:
    class Reciprocal:
        size = 1

        def __call__(self, states: Any) -> Any:
            with np.errstate(divide="ignore"):
                return 1 / np.asarray(states, np.float64)[:, None]

    question = gvf.GVF(gvf.Uniform(4))
    refuse(
        "features of state 0 are not finite: [inf]",
        lake(question, features=Reciprocal()).check,
        "q",
        "uniform",
    )
    small = lake(question, features=gvf.OneHot(3))
    refuse("is outside 0 .. 2", small.check, "q", "uniform")


def test_active_must_say_yes_or_no_to_each_state() -> None:
    question = gvf.GVF(gvf.Uniform(4))
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
    domain = lake(gvf.GVF(gvf.Uniform(4)))
    refuse("unknown behaviour of FrozenLake-v1: 'up'", domain.check, "q", "up")
    refuse("steps must be at least 1, got 0", domain.walk, gvf.Uniform(4), ["q"], 0, seeded())

    class Uncopied(Corridor):
        def __deepcopy__(self, memory: Any) -> Any:
            raise RuntimeError

    domain = GymnasiumDomain(Uncopied, rollouts=2)
    refuse("cannot be copied", domain.check, "favour-0", "uniform")
