"""Domains: worlds with the policies, questions and ground truth of an experiment.

:func:`get` finds one: ours by name, in one of two protocols (the paper's text, or the settings
under which its authors' curves come out); any Gymnasium environment by its id; a user's by
``"module:attribute"``, or by the name of an entry point in the group ``gvf.domains``. Importing
this module registers our environments with Gymnasium, by the names of their classes; nothing is
compiled.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from gvf.domain import continuous_four_rooms, four_rooms, markov_chain, star
from gvf.domain.continuous_four_rooms import ContinuousDomain
from gvf.domain.domain import PROTOCOLS, CellDomain, Domain
from gvf.domain.gymnasium_domain import GymnasiumDomain
from gvf.domain.tabular import TabularDomain
from gvf.domain.trajectory import Signals, Trajectory
from gvf.gym import gym
from gvf.names import find, is_reference, known, nearest

__all__ = [
    "CellDomain",
    "ContinuousDomain",
    "Domain",
    "GymnasiumDomain",
    "PROTOCOLS",
    "Signals",
    "TabularDomain",
    "Trajectory",
    "get",
    "names",
]

_DOMAINS = {
    "markov-chain": markov_chain.domain,
    "four-rooms": four_rooms.domain,
    "continuous-four-rooms": continuous_four_rooms.domain,
    "star": star.domain,
}
_GROUP = "gvf.domains"

for _environment, _entry_point in (
    ("MarkovChain", "gvf.domain.markov_chain:MarkovChain"),
    ("FourRooms", "gvf.domain.four_rooms:FourRooms"),
    ("ContinuousFourRooms", "gvf.domain.continuous_four_rooms:ContinuousFourRooms"),
    ("Star", "gvf.domain.star:Star"),
    ("Torcs", "gvf.domain.racing.torcs:Torcs"),
    ("CarRacing", "gvf.domain.racing.car_racing:CarRacing"),
):
    gym.register(f"gvf/{_environment}-v0", entry_point=_entry_point)


def names() -> list[str]:
    """The names of the domains.

    Example:
        >>> from gvf.domain import names
        >>> names()
        ['markov-chain', 'four-rooms', 'continuous-four-rooms', 'star']
    """
    return list(_DOMAINS)


@cache
def get(name: str, protocol: str = "paper") -> Domain:
    """A domain by name.

    Args:
        name: one of :func:`names`, the id of a Gymnasium environment, ``"module:attribute"`` (a
            domain, or a function that makes one), or the name of an entry point.
        protocol: "paper" or "authors"; other domains than ours do not differ in it.

    Example:
        >>> from gvf.domain import get
        >>> get("markov-chain")
        Domain 'markov-chain' (protocol 'paper'), environment gvf/MarkovChain-v0
          behaviours: easy, hard, hardest
          questions: easy, hard, hardest
          largest ratios: easy/easy 1.8, hard/hard 9,
            hardest/hardest 99
        >>> get("maze")
        Traceback (most recent call last):
        ValueError: unknown domain: 'maze'; known are 'markov-chain', 'four-rooms',
        'continuous-four-rooms', 'star', any id of Gymnasium, and "module:attribute"
    """
    known(protocol, PROTOCOLS, "protocol")
    if name in _DOMAINS:
        return _DOMAINS[name](protocol)
    if is_reference(name):
        return _made(find(name, "domain"), name)
    for point in entry_points(group=_GROUP, name=name):
        return _made(find(point.value, "domain"), name)
    if name in gym.registry or ":" in name:
        return GymnasiumDomain(name)
    own = [point.name for point in entry_points(group=_GROUP)]
    told = nearest(name, [*_DOMAINS, *own, *gym.registry])
    close, _, _ = told.rpartition("nown are ")
    listed = ", ".join(map(repr, [*_DOMAINS, *own]))
    raise ValueError(
        f"unknown domain: {name!r}; {close}nown are {listed}, any id of Gymnasium, and "
        '"module:attribute"'
    )


def _made(found: Any, name: str) -> Domain:
    """What a reference stands for, as a domain."""
    try:
        domain = found if isinstance(found, Domain) else found() if callable(found) else None
    except Exception as error:
        raise ValueError(
            f"domain {name!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(domain, Domain):
        raise ValueError(
            f"domain {name!r} is {found!r}: neither a gvf.Domain nor a function that makes one"
        )
    return domain
