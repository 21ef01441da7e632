"""The Ray engine: tasks on a cluster, in batches, done by the same function as on threads.

:func:`gvf.jobs.ray_cluster.spread` sends the batches. Results come back as the bytes of their
files, and the user's process writes them, so nodes need no shared folder. Every node needs ``pip
install "gvf[ray]"``.

The module files of a user's own domains and corrections are sent along
(:mod:`gvf.common.user_code`), and so is the registration of an environment. A node needs only gvf
and the installed packages that those modules import.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable
from functools import partial
from itertools import chain, islice

from gvf.common import user_code as code
from gvf.common.gymnasium import gym
from gvf.jobs import ray_cluster as cluster
from gvf_lab import domain as domains
from gvf_lab.study.base_study import Task
from gvf_lab.study.encoding import references
from gvf_lab.study.engine import Result, perform

BATCH = 3.0
"""Seconds that a batch should take, long compared with sending it."""


def results(
    tasks: Iterable[Task], workers: int | None = None, address: str | None = None
) -> Generator[Result, None, None]:
    """Do tasks on a Ray cluster and yield their results as they come.

    Args:
        tasks: the tasks to do.
        workers: the number of batches done at once; by default one for each processor.
        address: the address of the cluster, as for ``ray.init``; by default a cluster is started on
            this machine and stopped at the end.
    """
    ray = cluster.import_ray()
    todo = iter(tasks)
    first = list(islice(todo, 1))
    if not first:
        return  # a cluster takes seconds to start
    todo = chain(first, todo)
    study = first[0].study
    sent, registration = code.files(references(study)), _registration(study.domain)
    ours = cluster.connect(ray, workers, address)
    do = partial(_perform_all, sent, registration)
    yield from cluster.spread(ray, do, todo, workers, ours, BATCH)


def _perform_all(sent: code.Files, registration: bytes, tasks: list[Task]) -> list[Result]:
    code.install(sent)
    spec = pickle.loads(registration)
    if spec is not None and gym.registry.get(spec.id) != spec:
        gym.registry[spec.id] = spec
    return [perform(task) for task in tasks]


def _registration(domain: str) -> bytes:
    """Pickle an environment's specification; it may name classes in the files that are sent."""
    try:
        # An environment named "module:Id" is registered on the node by its module.
        return pickle.dumps(None if ":" in domain else domains.registered(domain))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"the registration of {domain!r} cannot be sent to other machines ({error}): register "
            'it in a module, and name it "module:Id"'
        ) from error
