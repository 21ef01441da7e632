"""Domains: worlds with the policies, questions and ground truth of an experiment.

:func:`get` finds a domain: ours by name, in one of two protocols (the paper's text, or the settings
that reproduce its authors' curves); any Gymnasium environment by its id; a user's domain by
``"module:attribute"``, or by the name of an entry point in the group ``gvf.domains``.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gvf.common.gymnasium import gym
from gvf.common.part_names import find, is_reference, known, nearest
from gvf_lab.domain import collision, continuous_four_rooms, four_rooms, markov_chain, rooms, star
from gvf_lab.domain.continuous_four_rooms import ContinuousDomain
from gvf_lab.domain.domain import PROTOCOLS, CellDomain, Domain, Protocol, Signals, Trajectory
from gvf_lab.domain.gymnasium_domain import GymnasiumDomain
from gvf_lab.domain.tabular import TabularDomain

__all__ = [
    "CellDomain",
    "ContinuousDomain",
    "Domain",
    "GymnasiumDomain",
    "PROTOCOLS",
    "Protocol",
    "Signals",
    "TabularDomain",
    "Trajectory",
    "get",
    "names",
]

_DOMAINS = {
    "markov-chain": markov_chain.domain,
    "four-rooms": four_rooms.domain,
    "four-rooms-left-column": four_rooms.left_column,
    "continuous-four-rooms": continuous_four_rooms.domain,
    "star": star.domain,
    "collision": collision.domain,
    "rooms": rooms.domain,
    "high-variance-rooms": rooms.high_variance,
}


def _by_emphasis(make: Callable[[str], Any], protocol: str) -> Domain:
    """Make a domain with another weighting of states in errors; walks are the same."""
    domain = make(protocol)
    return replace(domain, name=f"{domain.name}-emphasis", weighting="emphasis")


_DOMAINS |= {
    f"{name}-emphasis": partial(_by_emphasis, _DOMAINS[name])
    for name in ("markov-chain", "four-rooms", "continuous-four-rooms")
}
_GROUP = "gvf.domains"


def names() -> list[str]:
    """Return the names of our domains.

    Example:
        >>> from gvf_lab.domain import names
        >>> names()
        ['markov-chain', 'four-rooms', 'four-rooms-left-column', 'continuous-four-rooms', 'star',
         'collision', 'rooms', 'high-variance-rooms', 'markov-chain-emphasis',
         'four-rooms-emphasis', 'continuous-four-rooms-emphasis']
    """
    return list(_DOMAINS)


_domains: dict[tuple[str, str], tuple[Any, Domain]] = {}
"""Domains by name and protocol, each with its source (see :func:`_source`)."""
_making = threading.RLock()


def get(name: str, protocol: str = "paper") -> Domain:
    """Return the domain of this name, the same object every time and in all threads.

    It is made anew only after its module was reloaded or its id was registered again.

    Args:
        name: one of :func:`names`, the id of a Gymnasium environment, ``"module:attribute"`` (a
            domain, or a function that makes one), or the name of an entry point.
        protocol: "paper" or "authors"; it matters only for our own domains.

    Example:
        >>> from gvf_lab.domain import get
        >>> get("markov-chain")
        Domain 'markov-chain' (protocol 'paper'), environment gvf/MarkovChain-v0
          behaviours: easy, hard, hardest
          questions: easy, hard, hardest
          largest ratios: easy/easy 1.8, hard/hard 9,
            hardest/hardest 99
        >>> get("four-room")
        Traceback (most recent call last):
        ValueError: unknown domain: 'four-room'; did you mean 'four-rooms' or
        'gvf/FourRooms-v0' or 'four-rooms-emphasis'? (a domain is one of ours, an id of
        Gymnasium, or "module:attribute")
    """
    known(protocol, PROTOCOLS, "protocol")
    key = (name, protocol if name in _DOMAINS else "")
    with _making:
        source = _source(name)
        if key not in _domains or _domains[key][0] is not source:
            _domains[key] = source, _make(source, name, protocol)
        return _domains[key][1]


get.cache_clear = _domains.clear  # pyright: ignore[reportFunctionMemberAccess]


def references(name: str) -> tuple[str, ...]:
    """Return the references ``"module:attribute"`` to the code that defines a domain.

    A reference is the name itself, that of the entry point, or that of the environment's class; for
    ``"module:Id"`` the module that registers it is added. Our own domains have none.

    Example:
        >>> from gvf_lab.domain import references
        >>> references("four-rooms"), references("my_worlds:maze")
        ((), ('my_worlds:maze',))
        >>> references("CartPole-v1")
        ('gymnasium.envs.classic_control.cartpole:CartPoleEnv',)
    """
    if name in _DOMAINS:
        return ()
    if is_reference(name):
        return (name,)
    for point in entry_points(group=_GROUP, name=name):
        return (_reference(point),)
    registrar = (name,) if ":" in name else ()
    spec = registered(name)
    entry_point = None if spec is None else spec.entry_point
    if entry_point is None:
        return registrar
    if isinstance(entry_point, str):
        return (*registrar, entry_point)
    entry_point = getattr(entry_point, "func", entry_point)  # unwraps functools.partial
    called = entry_point if hasattr(entry_point, "__qualname__") else type(entry_point)
    return (*registrar, f"{called.__module__}:{called.__qualname__}")


def registered(name: str) -> Any:
    """Return Gymnasium's specification of an environment, or None.

    For the name ``"module:Id"`` the module is imported first.

    Example:
        >>> from gvf_lab.domain import registered
        >>> registered("CartPole-v1").max_episode_steps, registered("four-rooms")
        (500, None)
    """
    module, colon, environment = name.rpartition(":")
    try:
        if colon:
            importlib.import_module(module)
        return gym.registry.get(environment)
    except Exception:
        return None  # making the environment raises a better error


def _source(name: str) -> Any:
    """Return the source of a domain: a function, a domain, or a Gymnasium specification."""
    if name in _DOMAINS:
        return _DOMAINS[name]
    if is_reference(name):
        return find(name, "domain")
    for point in entry_points(group=_GROUP, name=name):
        return find(_reference(point), "domain")
    return registered(name)


def _reference(point: EntryPoint) -> str:
    return f"{point.module}:{point.attr}"


def _make(source: Any, name: str, protocol: str) -> Domain:
    if name in _DOMAINS:
        return source(protocol)
    if is_reference(name) or any(entry_points(group=_GROUP, name=name)):
        return _as_domain(source, name)
    if source is not None or ":" in name:
        return GymnasiumDomain(name)
    names = [*_DOMAINS, *(point.name for point in entry_points(group=_GROUP)), *gym.registry]
    more = 'a domain is one of ours, an id of Gymnasium, or "module:attribute"'
    raise ValueError(f"unknown domain: {name!r}; {nearest(name, names, more)}")


def _as_domain(value: Any, name: str) -> Domain:
    """Make a domain of the object that a reference leads to."""
    try:
        domain = value if isinstance(value, Domain) else value() if callable(value) else None
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"domain {name!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(domain, Domain):
        raise ValueError(
            f"domain {name!r} is {value!r}: neither a gvf_lab.Domain nor a function that makes one"
        )
    return domain
