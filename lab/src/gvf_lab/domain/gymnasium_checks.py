"""Checks for domains made of Gymnasium environments, and the identity of such environments.

Without a model only samples can be checked: a short walk of the behaviour, and the target's actions
in its states. An error found there is certain, but some errors may not be found.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import packages_distributions, version
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.gymnasium import gym
from gvf.common.version import __version__
from gvf.kernels import check_same_actions
from gvf.policies import DiscretePolicy, Gaussian, Policy, largest_ratio


@contextmanager
def about(what: str) -> Iterator[None]:
    """Turn any error into a ValueError of one line that begins with `what`.

    Example:
        >>> from gvf_lab.domain.gymnasium_checks import about
        >>> with about("question 'speed'"):
        ...     {}["speed"]
        Traceback (most recent call last):
        ValueError: question 'speed': KeyError: speed
    """
    try:
        yield
    except Exception as error:
        raise ValueError(f"{what}: {in_a_line(error)}") from error


def in_a_line(error: Exception) -> str:
    """Return the message of an error, after the error's type if the message may be unclear."""
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    text = " ".join(str(message).split())
    if "no column" in text:
        return f"{text} (name the values of the environment's info in info=)"
    plain = isinstance(error, ValueError | TypeError | gym.error.Error)
    return text if plain and text else f"{type(error).__name__}: {text}"


def identity(
    environment: str | Callable[..., Any], arguments: Mapping[str, Any], env: gym.Env[Any, Any]
) -> list[Any]:
    """Return everything that identifies an environment, to be hashed by ``fingerprint``.

    Installed code has no fingerprint, so the versions of the packages involved (:func:`versions`)
    are included, and recordings made with other versions are not reused.

    Args:
        environment: a Gymnasium id, or a function that makes an environment.
        arguments: the arguments with which it is made.
        env: an environment made in this way.
    """
    spec = env.unwrapped.spec
    creator = _creator(spec.entry_point) if spec is not None else None
    makers = [creator if isinstance(environment, str) else environment]
    parts = [versions(env, makers), type(env.unwrapped), environment, dict(arguments)]
    if isinstance(environment, str) and spec is not None:
        parts += [creator, spec.kwargs, spec.max_episode_steps]
        parts += [(wrapper.name, wrapper.kwargs) for wrapper in spec.additional_wrappers]
    return parts


def versions(env: gym.Env[Any, Any], makers: Iterable[Any] = ()) -> dict[str, str]:
    """Return the versions of gvf, NumPy, Gymnasium, and the packages of an environment.

    These are the packages of the classes of the environment and its wrappers, and those that the
    modules of these classes import, such as a simulator.

    Args:
        env: the environment.
        makers: functions or classes that made it, whose packages are included too.

    Example:
        >>> from gvf_lab.domain.gymnasium_checks import versions
        >>> import gymnasium as gym
        >>> {"gvf", "gymnasium", "numpy"} <= versions(gym.make("CartPole-v1")).keys()
        True
    """
    layers: list[Any] = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    makers = [*makers, *(kind for layer in layers for kind in type(layer).__mro__)]
    names = {str(getattr(maker, "__module__", "")) for maker in makers}
    modules = [sys.modules[name] for name in names if name in sys.modules]
    for value in [value for module in modules for value in vars(module).values()]:
        if isinstance(value, ModuleType):
            names.add(value.__name__)
        elif isinstance(value, type | FunctionType):
            names.add(value.__module__)
    packages = {name.partition(".")[0] for name in names} | {"numpy", "gymnasium"}
    known = {"gvf": __version__}
    for package in packages - known.keys() - sys.stdlib_module_names:
        # A package that is not installed, but is next to the program, may have a version too.
        own_version = getattr(sys.modules.get(package), "__version__", None)
        versions = [version(name) for name in sorted(set(_distributions().get(package, ())))]
        if versions or isinstance(own_version, str):
            known[package] = ", ".join(versions or [str(own_version)])
    return dict(sorted(known.items()))


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Return the installed distributions of each package."""
    return packages_distributions()


def _creator(entry_point: Any) -> Any:
    """Return the class or function that makes an environment, for a fingerprint of its code."""
    if not isinstance(entry_point, str):
        return entry_point
    module, _, name = entry_point.partition(":")
    return getattr(sys.modules.get(module), name, entry_point)  # imported when `env` was made


def as_mask(active: Callable[[Any], Any], states: NDArray[Any], question: str) -> NDArray[np.bool_]:
    """Return True for states in which a question is active, bool[m].

    Example:
        >>> from gvf_lab.domain.gymnasium_checks import as_mask
        >>> import numpy as np
        >>> as_mask(lambda states: states > 0, np.arange(3), "up")
        array([False,  True,  True])
    """
    mask = np.array(active(states))
    if mask.dtype != bool or mask.shape != (len(states),):
        raise ValueError(
            f"active of question {question!r} must give bool[{len(states)}] for {len(states)} "
            f"states, got {mask.dtype}{list(mask.shape)}"
        )
    return mask


def check_support(target: Policy, behaviour: Policy, states: NDArray[Any]) -> None:
    """Raise ValueError if, in one of the states, the behaviour never takes an action of the target.

    For discrete policies every action is checked; for others, one action of the target in each
    state.

    Example:
        >>> from gvf_lab.domain.gymnasium_checks import check_support
        >>> import gvf
        >>> check_support(gvf.policies.Uniform(2), gvf.policies.Always(0, actions=2), [7])
        Traceback (most recent call last):
        ValueError: the behaviour never takes action 1 in state 7, where the target does with
        probability 0.5: there is nothing to learn it from
    """
    if isinstance(target, DiscretePolicy) and isinstance(behaviour, DiscretePolicy):
        pi, mu = target.probabilities(states), behaviour.probabilities(states)
        missing = np.argwhere((pi > 0) & (mu == 0))
        if not missing.size:
            return
        row, action = missing[0]
        does = f"does with probability {pi[row, action]:.4g}"
    else:
        actions = target.sample(states, rng=np.random.default_rng(0))
        missing = np.flatnonzero(np.isneginf(behaviour.log_probability(states, actions)))
        if not missing.size:
            return
        row, does = missing[0], "may"
        action = actions[row]
    raise ValueError(
        f"the behaviour never takes action {action} in state {states[row]}, where the target "
        f"{does}: there is nothing to learn it from"
    )


def largest_ratio_in(
    target: DiscretePolicy, behaviour: DiscretePolicy, states: NDArray[Any], *, complete: bool
) -> float:
    """Compute the largest ratio of discrete policies from some states; inf if it is unknown.

    Args:
        target: the target policy.
        behaviour: the policy that acts.
        states: the states, [m, ...].
        complete: True if these are all states that exist. If not, the ratio is known only for
            policies that are the same in each of them, and so are taken to be the same everywhere.

    Example:
        >>> from gvf_lab.domain.gymnasium_checks import largest_ratio_in
        >>> import gvf, numpy as np
        >>> target, behaviour = (
        ...     gvf.policies.Table([[0.5, 0.5], [0.9, 0.1]]),
        ...     gvf.policies.Uniform(2),
        ... )
        >>> largest_ratio_in(target, behaviour, np.arange(2), complete=True)
        1.8
        >>> largest_ratio_in(target, behaviour, np.arange(2), complete=False)
        inf
    """
    check_same_actions(target, behaviour)
    if not len(states):
        return math.inf
    pi, mu = target.probabilities(states), behaviour.probabilities(states)
    if not complete and not ((pi == pi[0]).all() and (mu == mu[0]).all()):
        return math.inf
    if ((pi > 0) & (mu == 0)).any():
        return math.inf
    return largest_ratio(target, behaviour, states)


def largest_ratio_of_gaussians(target: Gaussian, behaviour: Gaussian) -> float:
    """Compute the largest ratio of two normal densities; inf if they depend on the state.

    In a dimension in which the target is narrower, s < S, the ratio is largest at the action where
    its derivative is 0, and there

        log rho = log(S / s) + (m - M)^2 / (2 (S^2 - s^2)).

    Example:
        >>> from gvf_lab.domain.gymnasium_checks import largest_ratio_of_gaussians
        >>> import gvf
        >>> largest_ratio_of_gaussians(
        ...     gvf.policies.Gaussian([0, 0], [1, 1]), gvf.policies.Gaussian([0, 0], [2, 2])
        ... )
        4.0
        >>> largest_ratio_of_gaussians(gvf.policies.Gaussian(0, 2), gvf.policies.Gaussian(0, 1))
        inf
    """
    parts: list[Any] = [target.mean, target.sd, behaviour.mean, behaviour.sd]
    if any(callable(part) for part in parts):
        return math.inf
    m, s, M, S = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in parts))
    narrower, equal = s < S, (s == S) & (m == M)
    if not (narrower | equal).all():
        return math.inf
    room = np.where(narrower, S**2 - s**2, 1.0)
    largest = np.where(narrower, S / s * np.exp((m - M) ** 2 / (2 * room)), 1.0)
    return float(largest.prod())
