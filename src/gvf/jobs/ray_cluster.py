"""The connection to a Ray cluster. Ray is an extra, and is imported only when it is asked for."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Any

from gvf.common.distribution import how_to_install

RETRIES = 10
"""The number of times that a batch is tried again after its node failed."""


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


def spread(
    ray: Any,
    do: Callable[[list[Any]], list[Any]],
    items: Iterable[Any],
    workers: int | None,
    ours: bool,
    seconds: float,
) -> Generator[Any, None, None]:
    """Do items on a cluster, in batches, and yield their results as they come.

    Batches grow until one takes a few seconds. If a node fails, Ray does its batches again
    elsewhere. Closing the iterator ends pending batches.

    Args:
        ray: the module.
        do: the function of a batch of items, which returns their results.
        items: the items.
        workers: the number of batches done at once; by default one for each processor.
        ours: True to stop the cluster at the end.
        seconds: the seconds that a batch should take, long compared with sending it.
    """
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_timed)
    todo, function = iter(items), ray.put(do)
    size, pending = 1, []
    try:
        while True:
            # One batch is in reserve for each processor, so that none waits for the driver.
            processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
            limit = workers if workers and workers < processors else 2 * processors
            while len(pending) < limit and (batch := list(islice(todo, size))):
                pending.append(remote.remote(function, batch))
            if not pending:
                return
            # The timeout lets an interrupt through, and the cluster may have grown.
            ready, pending = ray.wait(pending, timeout=0.2)
            for batch in ready:
                done, took = ray.get(batch)
                yield from done
                # The size of a batch never changes a result.
                size = max(1, min(2 * size, int(seconds * len(done) / max(took, 1e-6))))
    finally:
        if ours:
            ray.shutdown()  # this also ends pending batches
        else:
            for batch in pending:
                ray.cancel(batch, force=True)


def _timed(do: Callable[[list[Any]], list[Any]], batch: list[Any]) -> tuple[list[Any], float]:
    began = time.perf_counter()
    return do(batch), time.perf_counter() - began
