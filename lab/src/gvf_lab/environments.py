"""The environments of the laboratory, which Gymnasium gets by name alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

ENTRY_POINTS = {
    "MarkovChain": "gvf_lab.domain.markov_chain:MarkovChain",
    "FourRooms": "gvf_lab.domain.four_rooms:FourRooms",
    "ContinuousFourRooms": "gvf_lab.domain.continuous_four_rooms:ContinuousFourRooms",
    "Star": "gvf_lab.domain.star:Star",
    "Collision": "gvf_lab.domain.collision:Collision",
    "Rooms": "gvf_lab.domain.rooms:Rooms",
    "HighVarianceRooms": "gvf_lab.domain.rooms:Rooms",
    "Torcs": "gvf_lab.racing.simulators:torcs",
    "CarRacing": "gvf_lab.racing.car_racing:CarRacing",
}
"""The place of the class of each environment; ``gvf/NAME-v0`` is its id."""


def register() -> None:
    """Register all environments with Gymnasium; those that are registered stay as they are."""
    import gymnasium as gym

    for name, entry_point in ENTRY_POINTS.items():
        if f"gvf/{name}-v0" not in gym.registry:
            gym.register(f"gvf/{name}-v0", entry_point=entry_point)


def register_with_gymnasium() -> None:
    """Register all environments: now if Gymnasium is imported, else right after its import.

    Gymnasium takes longer to import than all that a command without environments needs.
    """
    if sys.modules.get("gymnasium"):
        register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium(MetaPathFinder, Loader):
    """Imports Gymnasium as Python would, and then registers the environments."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        self.spec = PathFinder.find_spec(fullname, path, target)
        if self.spec is None or self.spec.loader is None:
            return self.spec
        self.loader, self.spec.loader = self.spec.loader, self
        return self.spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert self.spec is not None
        self.spec.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        register()
