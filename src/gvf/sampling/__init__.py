"""Samplers of slots: by ratio, by weights that change, and uniformly."""

from gvf.sampling.ring import RatioRing
from gvf.sampling.tree import SumTree, uniform_slots

__all__ = ["RatioRing", "SumTree", "uniform_slots"]
