"""Streams: from an environment's observations and ``info`` to batches of transitions."""

from gvf.stream.stream import Actor, Walk, environment_seed, transitions

__all__ = ["Actor", "Walk", "environment_seed", "transitions"]
