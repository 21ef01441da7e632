"""The connection to a Ray cluster. Ray is an extra, and is imported only when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any


def import_ray() -> Any:
    """Return the module ray, or raise an error that says how to install it."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        needed = 'the engine "ray" needs Ray: pip install "gvf[ray]"'
        raise ModuleNotFoundError(needed, name="ray") from None


def connect(ray: Any, workers: int | None, address: str | None) -> bool:
    """Connect this process to a cluster, unless it is connected; return True if it was not.

    Args:
        ray: the module.
        workers: the number of processors of a cluster that is started on this machine.
        address: the address of a cluster, as for ``ray.init``; by default one is started.
    """
    ours = not ray.is_initialized()
    if ours:
        ray.init(
            address=address,
            num_cpus=None if address else workers,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    return ours
