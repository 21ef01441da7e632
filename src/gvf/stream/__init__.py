"""Streams: from an environment's observations and ``info`` to batches of transitions."""

from gvf.stream.collect import Actor, Walk, collect, environment_seed

__all__ = ["Actor", "Walk", "collect", "environment_seed"]
