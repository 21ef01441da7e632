"""Updates: how drawn and weighed transitions change the values of a learner."""

from gvf.updates.gradient_td import TDC, TDRC
from gvf.updates.sarsa import ExpectedSarsa, Sarsa
from gvf.updates.td import SGD, TD, Adam, IncrementalTD, RMSProp
from gvf.updates.update import Update
from gvf.updates.wis_td import WISTD

__all__ = [
    "Adam",
    "ExpectedSarsa",
    "IncrementalTD",
    "RMSProp",
    "SGD",
    "Sarsa",
    "TD",
    "TDC",
    "TDRC",
    "Update",
    "WISTD",
]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
