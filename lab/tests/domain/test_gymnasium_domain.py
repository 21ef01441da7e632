"""Gymnasium domains: streams recorded once, and truths against a table."""

import hashlib
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from corridors import Corridor, on_the_right, refuse, seeded

import gvf
from gvf.estimate import percent
from gvf.truth.held_out_returns import Cut
from gvf_lab.domain import GymnasiumDomain, gymnasium_checks, gymnasium_domain
from gvf_lab.domain.array_memory import fingerprint

pytestmark = pytest.mark.usefixtures("own_cache")


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
    (stream,) = gvf.collect(gym.make(name), mu, 500, seed=number, batch=500)
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
    trajectory = domain.walk(gvf.policies.Fixed([0.25, 0.75]), ["favour-1"], 100, seeded())
    by_hand = np.where(trajectory.action == 1, 0.9 / 0.75, 0.1 / 0.25)
    assert trajectory.signals["favour-1"].ratio == pytest.approx(by_hand)


def test_equal_seeds_give_equal_walks_in_other_domains_and_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import gvf, gvf_lab, hashlib, numpy as np\n"
        "domain = gvf_lab.GymnasiumDomain('CartPole-v1')\n"
        "walk = domain.walk(gvf.policies.Uniform(2), ['favour-0'], 300, "
        "np.random.SeedSequence(7))\n"
        "print(hashlib.sha256(walk.next_state.tobytes() + walk.x.tobytes()).hexdigest())"
    )
    here = GymnasiumDomain("CartPole-v1").walk(
        gvf.policies.Uniform(2), ["favour-0"], 300, seeded(7)
    )
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "another"))
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    mine = hashlib.sha256(here.next_state.tobytes() + here.x.tobytes()).hexdigest()
    assert there.stdout.strip() == mine, there.stderr
    other = GymnasiumDomain("CartPole-v1").walk(
        gvf.policies.Uniform(2), ["favour-0"], 300, seeded(8)
    )
    assert not same(here, other)


def test_a_stream_comes_from_its_file_in_another_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    def corridor() -> GymnasiumDomain:
        return GymnasiumDomain(
            Corridor, questions={"far": gvf.GVF(gvf.policies.Favour(1, 0.9, 2), "distance", 0.5)}
        )

    first = corridor().walk(gvf.policies.Uniform(2), ["far"], 100, seeded())
    truth = corridor().truth("far", "uniform", states=5)
    domain = corridor()
    monkeypatch.setattr(gymnasium_domain, "collect", None)
    monkeypatch.setattr(gymnasium_domain, "held_out_returns", None)
    again = domain.walk(gvf.policies.Uniform(2), ["far"], 100, seeded())
    assert same(first, again)
    assert first.next_state.dtype == again.next_state.dtype
    assert np.array_equal(domain.truth("far", "uniform", states=5).values, truth.values)
    for policy, steps, seed in (
        (gvf.policies.Uniform(2), 101, 0),
        (gvf.policies.Uniform(2), 100, 1),
    ):
        with pytest.raises(TypeError):
            domain.walk(policy, ["far"], steps, seeded(seed))
    with pytest.raises(TypeError):
        domain.walk(gvf.policies.Fixed([0.4, 0.6]), ["far"], 100, seeded())


def test_environments_that_differ_share_no_file(tmp_path: Path) -> None:
    rewards = [
        GymnasiumDomain("FrozenLake-v1", arguments=arguments)
        .walk(gvf.policies.Uniform(4), ["favour-0"], 200, seeded())
        .next_state.tolist()
        for arguments in ({"is_slippery": True}, {"is_slippery": False})
    ]
    assert rewards[0] != rewards[1]
    GymnasiumDomain("FrozenLake-v1", arguments={"max_episode_steps": 7}).walk(
        gvf.policies.Uniform(4), ["favour-0"], 200, seeded()
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
        monkeypatch.setattr(gymnasium_checks, "__version__", "99")
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
    walks = [domain.walk(gvf.policies.Uniform(4), ["favour-0"], 50, seeded()) for _ in range(2)]
    assert same(*walks)
    assert make.made == 2  # one to look at its spaces
    assert not list(tmp_path.iterdir())


class Learns(gvf.policies.DiscretePolicy):
    """A policy whose state changes, and whose class is not one that a fingerprint can follow."""

    actions = 4

    def __init__(self) -> None:
        self.table, self.lock = np.full(4, 0.25), memoryview(b"")

    def __reduce__(self) -> Any:
        return (bytes, (self.table.tobytes(),))

    def probabilities(self, states: Any) -> Any:
        return np.tile(self.table, (len(states), 1))


def test_a_policy_that_has_changed_walks_anew() -> None:
    policy, domain = Learns(), GymnasiumDomain("FrozenLake-v1")
    assert fingerprint(policy) is None
    first = domain.walk(policy, ["favour-0"], 50, seeded())
    assert same(first, domain.walk(policy, ["favour-0"], 50, seeded()))
    policy.table = np.array([0.7, 0.1, 0.1, 0.1])
    assert not same(first, domain.walk(policy, ["favour-0"], 50, seeded()))


def test_a_large_stream_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium_domain, "_LARGEST_FILE", 2 * 8 * 50)
    domain = GymnasiumDomain("FrozenLake-v1")
    domain.walk(gvf.policies.Uniform(4), [], 51, seeded())
    assert not list(tmp_path.iterdir())
    domain.walk(gvf.policies.Uniform(4), [], 50, seeded())
    assert len(list(tmp_path.iterdir())) == 1


def test_a_caller_may_write_into_its_copy() -> None:
    domain = GymnasiumDomain("FrozenLake-v1")
    first = domain.walk(gvf.policies.Uniform(4), ["favour-0"], 50, seeded())
    kept = first.next_state.copy()
    first.next_state[:] = -1
    assert (
        domain.walk(gvf.policies.Uniform(4), ["favour-0"], 50, seeded()).next_state == kept
    ).all()


def test_threads_record_a_stream_once_and_different_streams_at_the_same_time() -> None:
    make = Counted("CartPole-v1")
    domain = GymnasiumDomain(make, features=gvf.features.Dense(4))
    walks: dict[int, Any] = {}

    def walk(number: int) -> None:
        walks[number] = domain.walk(
            gvf.policies.Uniform(2), ["favour-0"], 3000, seeded(number // 2)
        )

    threads = [threading.Thread(target=walk, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.made == 1 + 2
    assert same(walks[0], walks[1])
    assert same(walks[2], walks[3])
    assert not same(walks[0], walks[2])


def test_the_stream_does_not_depend_on_the_questions() -> None:
    def never(states: Any) -> Any:
        return np.zeros(len(states), bool)

    target = gvf.policies.Favour(1, 0.9, 2)
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
    walks = [domain.walk(gvf.policies.Uniform(2), some, 60, seeded()) for some in asked]
    assert np.array_equal(walks[0].next_state, walks[1].next_state)
    assert same(walks[0], walks[2])
    right = 1 - walks[1].next_state["place"][:, 0]
    assert walks[1].signals["distance"].cumulant == pytest.approx(right, abs=1e-6)


def test_a_dict_is_tile_coded_over_all_its_numbers() -> None:
    domain = GymnasiumDomain(Corridor)
    states = domain.walk(gvf.policies.Uniform(2), [], 50, seeded()).next_state
    assert states["place"].shape == (50, 2)
    numbers = np.column_stack([states["place"], states["side"]])
    coder = gvf.features.TileCoder([0, 0, 0], [1, 1, 1], tiles=9, tilings=8)
    assert np.array_equal(domain.features(states), coder(numbers))
    assert domain.features.size == coder.size


def test_functions_of_a_question_may_use_values_of_info() -> None:
    question = gvf.GVF(gvf.policies.Favour(1, 0.9, 2), lambda t: 2 * t.distance, 0.5)
    domain = GymnasiumDomain(Corridor, questions={"twice": question}, info=["distance"])
    domain.check("twice", "uniform")
    walk = domain.walk(gvf.policies.Uniform(2), ["twice"], 50, seeded())
    right = 2 - 2 * walk.next_state["place"][:, 0]
    assert walk.signals["twice"].cumulant == pytest.approx(right, abs=1e-6)
    assert np.isfinite(domain.truth("twice", "uniform", states=3).values).all()


# Where a question is active


def test_inactive_transitions_have_ratio_0_and_need_no_policy() -> None:
    def only_right(states: Any) -> Any:
        assert (states["side"] == 1).all()
        return np.tile([0.2, 0.8], (len(states), 1))

    target = gvf.policies.Function(only_right, actions=2)
    domain = GymnasiumDomain(
        Corridor, questions={"q": gvf.GVF(target)}, active={"q": on_the_right}, features=_Side()
    )
    walk = domain.walk(gvf.policies.Uniform(2), ["q"], 200, seeded())
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
        questions={"q": gvf.GVF(gvf.policies.Function(fail, actions=2))},
        active={"q": lambda states: np.zeros(len(states), bool)},
    )
    assert not domain.walk(gvf.policies.Uniform(2), ["q"], 10, seeded()).signals["q"].ratio.any()


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

    asked = gvf.GVF(gvf.policies.Function(only_right, actions=2), "reward", while_on_the_right)
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
    domain = GymnasiumDomain(Capricious, run_length=1, cut="drop")
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
    walk = domain.walk(gvf.policies.Uniform(4), ["favour-2"], 40_000, seeded())
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
    behaviours = {"left": gvf.policies.Favour(0, 0.9, 2), "right": gvf.policies.Favour(1, 0.9, 2)}
    domain = GymnasiumDomain("CartPole-v1", behaviours=behaviours, features=gvf.features.Dense(4))
    speeds = [domain.truth("favour-0", b, states=20).states[:, 1].mean() for b in behaviours]
    assert speeds[0] < -0.2
    assert speeds[1] > 0.2


class Coins(gym.Env[Any, Any]):
    """Each step tosses a coin; heads end the episode, and six tails in a row cut it."""

    observation_space, action_space = gym.spaces.Discrete(1), gym.spaces.Discrete(1)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.taken = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self.taken += 1
        over = bool(self.np_random.random() < 0.3)
        return 0, -1.0, over, not over and self.taken >= 6, {}


CUTS: tuple[Cut, ...] = ("refuse", "drop")


def test_true_values_tell_which_share_of_rollouts_was_cut_and_refuse_too_many() -> None:
    parts: dict[str, Any] = {
        "behaviours": {"only": gvf.policies.Always(0, actions=1)},
        "questions": {"cost": gvf.GVF(gvf.policies.Always(0, actions=1), "reward", 1.0)},
        "rollouts": 4,
        "run_length": 1,
    }
    refusing, dropping = (GymnasiumDomain(Coins, cut=cut, **parts) for cut in CUTS)
    refusing.check("cost", "only")  # one of its rollouts has a return
    for _ in range(2):  # sampled, and remembered
        with pytest.raises(ValueError, match=r"in Coins: [\d.]+ % of 800 rollouts were truncated"):
            refusing.truth("cost", "only", states=200)
        truth = dropping.truth("cost", "only", states=200)
        assert abs(truth.share_cut - 0.7**6) < 4 * (0.7**6 / 800) ** 0.5
        assert f"{percent(truth.share_cut)} of the rollouts" in repr(truth)
    with pytest.raises(ValueError, match="cut must be one of"):
        GymnasiumDomain(Coins, cut="keep", **parts)  # pyright: ignore[reportArgumentType]
