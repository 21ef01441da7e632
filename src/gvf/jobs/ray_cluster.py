"""Jobs on a Ray cluster, in batches. Ray is an extra, and is imported only when it is asked for.

Results come back to the process that the user started, so nodes need no shared folder. Every node
needs ``pip install "gvf[ray]"``. The files of a user's own modules are sent along
(:mod:`gvf.common.user_code`), before anything that needs them is unpacked. If a node fails, Ray
does its batches again elsewhere.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from gvf.common import user_code
from gvf.common.checks import whole
from gvf.common.distribution import how_to_install
from gvf.jobs.job import Job, JobResult, Stop, Value, perform
from gvf.jobs.threads import never

RETRIES = 10
"""The number of times that a batch is tried again after its node failed."""
SECONDS = 3.0
"""The seconds that a batch should take, long compared with sending it."""


def import_ray() -> Any:
    """Return the module ray, or raise an error that says how to install it."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        needed = f'the engine "ray" needs Ray; {how_to_install("gvf[ray]")}'
        raise ModuleNotFoundError(needed, name="ray") from None


def connect(ray: Any, workers: int | None, address: str | None) -> bool:
    """Connect this process to a cluster, unless it is connected; return True if it was not.

    Args:
        ray: the module.
        workers: the number of processors of a cluster that is started on this machine.
        address: the address of a cluster, as for ``ray.init``; by default that of the environment
            variable ``RAY_ADDRESS``, and without it a cluster is started.
    """
    ours = not ray.is_initialized()
    if ours:
        # "local", because Ray joins any cluster that it finds on the machine if it gets no address,
        # also one that a killed program left behind.
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        starts = address == "local"
        ray.init(
            address=address,
            num_cpus=workers if starts else None,
            include_dashboard=False if starts else None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    return ours


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster, as the place where jobs are done.

    Attributes:
        address: the address of the cluster, as for ``ray.init``; by default that of the environment
            variable ``RAY_ADDRESS``, and without it a cluster is started on this machine and
            stopped at the end.
        workers: the number of batches done at once; by default one for each processor.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole("workers", self.workers, 1)

    def results(
        self,
        do: Callable[[Job, Stop], Value],
        jobs: Iterable[Job],
        interrupted: Stop = never,
        references: Iterable[str] = (),
    ) -> Generator[JobResult[Value], None, None]:
        """Do jobs and yield their results as they come; see :func:`gvf.jobs.do_jobs`.

        Batches grow until one takes a few seconds. Closing the iterator ends pending batches.
        """
        todo = iter(jobs)
        first = list(islice(todo, 1))
        if not first:
            return  # a cluster takes seconds to start
        todo = chain(first, todo)
        ray = import_ray()
        # Ray's pickle also takes functions of the program that was started, and lambdas.
        pack = ray.cloudpickle.dumps
        modules, packed = user_code.files(references), pack(do)
        ours = connect(ray, self.workers, self.address)
        pending: list[Any] = []
        try:
            remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_do_batch)
            shared = ray.put((modules, digest_of(modules, packed), [ray.put(packed)]))
            size = 1
            while not interrupted():
                # One batch is in reserve for each processor, so that none waits for the driver.
                cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
                limit = self.workers if self.workers and self.workers < cpus else 2 * cpus
                while len(pending) < limit and (batch := list(islice(todo, size))):
                    pending.append(remote.remote(shared, pack(batch)))
                if not pending:
                    return
                # The timeout lets an interrupt through, and the cluster may have grown.
                ready, pending = ray.wait(pending, timeout=0.2)
                for number, batch in enumerate(ready):
                    try:
                        results, took = ray.get(batch)
                    except Exception:
                        pending += ready[number + 1 :]
                        yield from _finished(ray, pending)
                        if interrupted():
                            return  # Ctrl-C reaches the workers of a cluster on this machine, too
                        raise
                    yield from results
                    # The size of a batch never changes a result.
                    size = max(1, min(2 * size, int(SECONDS * len(results) / max(took, 1e-6))))
            yield from _finished(ray, pending)
        finally:
            if ours:
                ray.shutdown()  # this also ends pending batches
            else:
                for batch in pending:
                    ray.cancel(batch, force=True)


def digest_of(modules: user_code.Files, packed: bytes) -> str:
    """Return what tells a function from others: its pickle, and the modules that it needs."""
    return hashlib.sha256(packed + repr(sorted(modules.items())).encode()).hexdigest()


def _finished(ray: Any, pending: list[Any]) -> Generator[JobResult[Any], None, None]:
    """Yield the results of pending batches that are finished, without those that have failed."""
    ready, _ = ray.wait(pending, num_returns=len(pending), timeout=0) if pending else ([], [])
    for batch in ready:
        try:
            results, _ = ray.get(batch)
        except Exception:
            continue
        yield from results


def _do_batch(
    shared: tuple[user_code.Files, str, list[Any]], batch: bytes
) -> tuple[list[JobResult[Any]], float]:
    """Do a batch of jobs on a node, and return their results and the seconds that they took."""
    began = time.perf_counter()
    modules, digest, packed = shared
    user_code.install(modules)
    do = _unpacked(digest, packed[0])
    results = [perform(do, job, never) for job in pickle.loads(batch)]
    return results, time.perf_counter() - began


_latest: tuple[str, Any] = ("", None)
"""The digest and the function of the work that this process of a node does."""


def _unpacked(digest: str, packed: Any) -> Any:
    """Return what was packed; a node fetches it only once, as it may hold a whole log."""
    global _latest
    if _latest[0] != digest:
        _latest = digest, pickle.loads(import_ray().get(packed))
    return _latest[1]
