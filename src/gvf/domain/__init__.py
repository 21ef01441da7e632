"""Domains: environments with the policies, questions and ground truth of an experiment.

A name leads to a record (:func:`get`), in one of two protocols: the paper's text, or the settings
under which its authors' curves come out. Importing this module registers the environments with
Gymnasium, by the names of their classes; nothing is compiled.
"""

from __future__ import annotations

from functools import cache

from gvf.domain import continuous_four_rooms, four_rooms, markov_chain, star
from gvf.domain.continuous_four_rooms import ContinuousDomain
from gvf.domain.domain import PROTOCOLS, Domain, known
from gvf.domain.tabular import TabularDomain
from gvf.gym import gym

__all__ = ["ContinuousDomain", "Domain", "PROTOCOLS", "TabularDomain", "get", "names"]

_DOMAINS = {
    "markov-chain": markov_chain.domain,
    "four-rooms": four_rooms.domain,
    "continuous-four-rooms": continuous_four_rooms.domain,
    "star": star.domain,
}

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
        name: one of :func:`names`.
        protocol: "paper" or "authors".

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
        'continuous-four-rooms', 'star'
    """
    return _DOMAINS[known(name, _DOMAINS, "domain")](known(protocol, PROTOCOLS, "protocol"))
