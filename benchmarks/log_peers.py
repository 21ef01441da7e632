"""Other libraries' estimators behind small functions: FQE of d3rlpy, and the weights of SCOPE-RL.

d3rlpy asks the policy to be evaluated for its best action, so here a target that draws its actions
is asked for a draw. SCOPE-RL wants trajectories of the same length: short ones are filled up with
rewards of 0 and ratios of 1. It estimates one number, the mean value of the states in which
trajectories begin, and so does OBP, but of a single decision: it has no second step.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

import gvf
from gvf.common.arrays import Floats
from gvf_lab.worlds import DISCOUNT, LIMIT, World

DRAWS = 32
"""The number of real actions over which Q(s, a) is averaged."""
STEPS = (2500, 10_000)
"""Numbers of gradient steps of FQE; the second is SCOPE-RL's default, d3rlpy has none."""


def missing(package: str) -> str:
    """Say that a package is not installed; empty if it is."""
    module = package.replace("-", "_")
    return "" if find_spec(module) else f"{package} is not installed: make bench-logs"


def named(package: str) -> str:
    """Return a package's name and version."""
    with contextlib.suppress(PackageNotFoundError):
        return f"{package} {version(package)}"
    return package


def quiet() -> None:
    """Silence what the libraries print, and use one thread."""
    import torch

    torch.set_num_threads(1)
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import d3rlpy  # noqa: F401
        import structlog
    level = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=level)


class Fitted:
    """Fitted Q evaluation with d3rlpy's default settings.

    Args:
        world: the world.
        log: the log.
        seed: the seed.
    """

    def __init__(self, world: World, log: gvf.Log, seed: int) -> None:
        import d3rlpy

        d3rlpy.seed(seed)
        self.world, self.rng = world, np.random.default_rng(seed)
        config = d3rlpy.ope.FQEConfig(gamma=DISCOUNT)
        discrete = world.actions is not None
        kind = d3rlpy.ope.DiscreteFQE if discrete else d3rlpy.ope.FQE
        target: Any = SimpleNamespace(impl=SimpleNamespace(predict_best_action=self._drawn))
        self.fqe = kind(target, config)

    def _drawn(self, observations: Any) -> Any:
        """Draw an action of the target for each row of observations."""
        import torch

        drawn = self.world.question.policy.sample(self._states(observations.numpy()), rng=self.rng)
        return torch.as_tensor(drawn if self.world.actions else drawn.astype(np.float32))

    def _states(self, observations: Any) -> Any:
        return observations.argmax(axis=1) if self.world.name == "Four Rooms" else observations

    def fit(self, log: gvf.Log) -> Iterator[tuple[int, float]]:
        """Fit, and yield gradient steps so far with the seconds that they took."""
        import d3rlpy

        start, before = perf_counter(), 0.0
        fitting = self.fqe.fitter(
            _dataset(self.world, log),
            n_steps=STEPS[-1],
            n_steps_per_epoch=STEPS[0],
            show_progress=False,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
            save_interval=STEPS[-1],
        )
        for epoch, _ in fitting:
            before += perf_counter() - start
            if epoch * STEPS[0] in STEPS:
                yield epoch * STEPS[0], before
            start = perf_counter()

    def q(self, states: Any) -> Floats:
        """Predict action values, float64[m, A], or of draws of real actions, float64[m, 32]."""
        x, policy = self.world.observe(states), self.world.question.policy
        if self.world.actions is None:
            acts = [policy.sample(states, rng=self.rng).astype(np.float32) for _ in range(DRAWS)]
        else:
            acts = [np.full(len(x), action) for action in range(self.world.actions)]
        return np.column_stack([self.fqe.predict_value(x, act) for act in acts]).astype(float)

    def predict(self, states: Any) -> Floats:
        """Predict state values, float64[m]."""
        q = self.q(states)
        if self.world.actions is None:
            return q.mean(axis=1)
        return (q * probabilities(self.world, states)).sum(axis=1)


def probabilities(world: World, states: Any) -> Floats:
    """Return the target's probabilities of all actions, float64[m, A]."""
    policy = world.question.policy
    assert isinstance(policy, gvf.policies.DiscretePolicy)
    return policy.probabilities(states)


def _dataset(world: World, log: gvf.Log) -> Any:
    """Make d3rlpy's dataset. It knows no next states, so a row follows where an episode is cut."""
    import d3rlpy

    steps = log.transitions()
    cut = steps.truncated & ~steps.terminated
    cut[-1] = not steps.terminated[-1]
    rows = np.flatnonzero(cut)
    at = rows + 1
    x = np.insert(world.observe(steps.state), at, world.observe(steps.next_state)[rows], axis=0)
    action = np.insert(np.asarray(steps.action), at, steps.action[rows], axis=0)
    reward = np.insert(np.asarray(steps.reward), at, 0.0)
    terminals = np.insert(steps.terminated.astype(np.float32), at, 0.0)
    timeouts = np.insert(np.zeros(len(steps), np.float32), at, 1.0)
    discrete = world.actions is not None
    spaces = d3rlpy.ActionSpace
    return d3rlpy.dataset.MDPDataset(
        x,
        action.reshape(len(x), -1) if discrete else action.reshape(len(x), -1).astype(np.float32),
        reward.astype(np.float32)[:, None],
        terminals,
        timeouts,
        action_space=spaces.DISCRETE if discrete else spaces.CONTINUOUS,
        action_size=world.actions or 1,
    )


ESTIMATORS = {
    "per-decision weights": "PerDecisionImportanceSampling",
    "per-decision weights, normalised": "SelfNormalizedPDIS",
    "trajectory weights, normalised": "SelfNormalizedTIS",
    "doubly robust, with FQE": "DoublyRobust",
}


def scope_rl(world: World, log: gvf.Log, fitted: Fitted) -> dict[str, tuple[float, float]]:
    """Return SCOPE-RL's estimates of the start value, with the seconds that each took."""
    from scope_rl.ope import discrete

    start = perf_counter()
    given = _trajectories(world, log)
    preparing = perf_counter() - start
    start = perf_counter()
    q = np.zeros((len(given["reward"]), world.actions or 1))
    q[given.pop("real")] = fitted.q(log.transitions().state)
    predicting, found = perf_counter() - start, {}
    for name, kind in ESTIMATORS.items():
        start = perf_counter()
        robust = {"state_action_value_prediction": q} if kind == "DoublyRobust" else {}
        value = getattr(discrete, kind)().estimate_policy_value(
            step_per_trajectory=LIMIT, gamma=DISCOUNT, **given, **robust
        )
        taken = perf_counter() - start + preparing + (predicting if robust else 0.0)
        found[name] = float(value), taken
    return found


def _trajectories(world: World, log: gvf.Log) -> dict[str, Any]:
    """Return a log's columns as trajectories of the same length, one after the other."""
    steps = log.transitions()
    first = np.concatenate([[True], (steps.terminated | steps.truncated)[:-1]])
    episode = np.cumsum(first) - 1
    step = np.arange(len(steps)) - np.flatnonzero(first)[episode]
    at = episode * LIMIT + step
    size = (int(episode[-1]) + 1) * LIMIT
    assert world.actions is not None
    even = 1.0 / world.actions
    columns: dict[str, Any] = {
        "action": np.zeros(size, int),
        "reward": np.zeros(size),
        "pscore": np.full(size, even),
        "evaluation_policy_action_dist": np.full((size, world.actions), even),
        "real": at,
    }
    columns["action"][at] = steps.action
    columns["reward"][at] = steps.reward
    columns["pscore"][at] = steps.behaviour_probability
    columns["evaluation_policy_action_dist"][at] = probabilities(world, steps.state)
    return columns
