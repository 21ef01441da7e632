"""Samplers of slots: by ratio, by weights that change, and uniformly."""

from gvf.sampling.ratio_ring import RatioRing
from gvf.sampling.sum_tree import SumTree

__all__ = ["RatioRing", "SumTree"]
