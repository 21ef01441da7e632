"""Tasks of a Ray cluster: the same function as on threads, in batches worth sending.

A batch grows until it takes a few seconds. Nodes may die: Ray does their batches again elsewhere.
Results come back as the bytes of their files, and the process that was started by the user writes
them, so that nodes need no shared folder. Needs ``pip install "gvf[ray]"``, on every node.

Domains and corrections of a user's own go along as the files of their modules
(:mod:`gvf.common.code`), and an environment that they registered with its registration: a node
needs nothing but gvf and the installed packages that those modules import.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Generator, Iterable
from itertools import chain, islice
from typing import Any

from gvf import domain as domains
from gvf.common import code
from gvf.common.gym import gym
from gvf.study.base import Task
from gvf.study.encoding import references
from gvf.study.engine import Result, perform

BATCH = 3.0
"""Seconds that a batch should take: long against the time of sending it."""
RETRIES = 10
"""How often a batch is done again when the node that had it dies."""


def results(
    tasks: Iterable[Task], workers: int | None = None, address: str | None = None
) -> Generator[Result, None, None]:
    """Do tasks on a Ray cluster and give their results as they come.

    Args:
        tasks: what to do.
        workers: how many batches are done at once; by default one for each processor there is.
        address: of the cluster, as ``ray.init`` takes it; by default one is started on this machine
            and stopped at the end.
    """
    ray = _import_ray()
    todo = iter(tasks)
    first = list(islice(todo, 1))
    if not first:
        return  # a cluster takes seconds to start
    todo = chain(first, todo)
    study = first[0].study
    sent, registration = code.files(references(study)), _registration(study.domain)
    ours = not ray.is_initialized()
    if ours:
        ray.init(
            address=address,
            num_cpus=None if address else workers,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_perform_all)
    size, pending = 1, []
    try:
        while True:
            # One batch in reserve for each processor, so that none waits for the driver.
            processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
            limit = workers if workers and workers < processors else 2 * processors
            while len(pending) < limit and (batch := list(islice(todo, size))):
                pending.append(remote.remote(sent, registration, batch))
            if not pending:
                return
            # Wakes now and then: to hear an interrupt, and since the cluster may have grown.
            ready, pending = ray.wait(pending, timeout=0.2)
            for batch in ready:
                done = ray.get(batch)
                yield from done
                seconds = sum(result.seconds for result in done)
                # Sizes decide what is sent together, never a result.
                size = max(1, min(2 * size, int(BATCH * len(done) / max(seconds, 1e-6))))
    finally:
        if ours:
            ray.shutdown()  # which ends what is pending, at once
        else:
            for batch in pending:
                ray.cancel(batch, force=True)


def _perform_all(sent: code.Files, registration: bytes, tasks: list[Task]) -> list[Result]:
    code.install(sent)
    spec = pickle.loads(registration)
    if spec is not None and gym.registry.get(spec.id) != spec:
        gym.registry[spec.id] = spec
    return [perform(task) for task in tasks]


def _registration(domain: str) -> bytes:
    """An environment's specification, pickled: it may name classes of files that come with it."""
    try:
        # With "module:Id" the module registers it there too.
        return pickle.dumps(None if ":" in domain else domains.registered(domain))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"the registration of {domain!r} cannot be sent to other machines ({error}): register "
            'it in a module, and name it "module:Id"'
        ) from error


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        needed = 'the engine "ray" needs Ray: pip install "gvf[ray]"'
        raise ModuleNotFoundError(needed, name="ray") from None
