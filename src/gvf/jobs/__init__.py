"""Jobs: independent pieces of work, on threads of this process or on a Ray cluster."""

from gvf.jobs import ray_cluster
from gvf.jobs.threads import Interrupted, Stop, on_threads, processors

__all__ = ["Interrupted", "Stop", "on_threads", "processors", "ray_cluster"]
