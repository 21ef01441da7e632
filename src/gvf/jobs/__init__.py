"""Jobs: independent pieces of work, on threads of this process or on a Ray cluster."""

from gvf.jobs import ray_cluster
from gvf.jobs.job import Interrupted, Job, JobResult, Stop
from gvf.jobs.ray_cluster import RayCluster
from gvf.jobs.run_jobs import Place, Workers, do_jobs, place_of, run_jobs
from gvf.jobs.store import Store, set_aside
from gvf.jobs.threads import Threads, on_threads, processors

__all__ = [
    "Interrupted",
    "Job",
    "JobResult",
    "Place",
    "RayCluster",
    "Stop",
    "Store",
    "Threads",
    "Workers",
    "do_jobs",
    "on_threads",
    "place_of",
    "processors",
    "ray_cluster",
    "run_jobs",
    "set_aside",
]
