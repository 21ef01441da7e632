"""The check of a log's support, from its rows to a report: :func:`gvf.check_support`.

A short log gives all of its rows, a long one a random sample. :mod:`gvf.behaviour.cover` has the
numbers of each row, and :mod:`gvf.behaviour.support` the report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.cover import Laws, cover_of, usable
from gvf.behaviour.support import Support
from gvf.common.arrays import Floats
from gvf.common.checks import brief, is_number, whole
from gvf.estimate import mean_by_episode
from gvf.log import Log
from gvf.policies import Policy
from gvf.question import RECORDED, OnConflict
from gvf.ratios import tail_index, trusted_up_to
from gvf.transition import Transitions


def check_support(
    log: Log,
    target: Policy,
    *,
    behaviour: Policy | None = None,
    on_conflict: OnConflict = "error",
    least: float = 0.01,
    rows: int = 100_000,
    seed: int = 0,
) -> Support:
    """Check how well the behaviour of a log covers a target policy.

    Args:
        log: the log, with the behaviour's probabilities unless ``behaviour`` is given.
        target: the target policy.
        behaviour: the policy that chose the actions, if known; then the check is done state by
            state. For an estimated behaviour use :meth:`EstimatedBehaviour.support`.
        on_conflict: the rule for recorded probabilities that differ from it, as in
            :meth:`gvf.GVF.evaluate`. With "recorded", the policy is not used.
        least: the probability (for continuous actions the density, relative to the target's) below
            which an action is hardly taken.
        rows: the largest number of transitions to look at; a longer log gives a random sample.
        seed: the seed of this sample, and of the target's actions if they are continuous.

    Returns:
        A :class:`Support`.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> mu = gvf.policies.Table([[0.5, 0.5], [0.995, 0.005]])
        >>> walks = []
        >>> for _ in range(300):
        ...     states = rng.integers(2, size=11)
        ...     walks.append({"state": states, "action": mu.sample(states[:-1], rng=rng)})
        >>> log = gvf.read_log(walks, ends="truncated", quiet=True)
        >>> found = gvf.check_support(log, gvf.policies.Fixed([0.2, 0.8]), behaviour=mu)
        >>> {c: round(share.value, 2) for c, share in found.lost.items()}
        {0.001: 0.0, 0.01: 0.4, 0.1: 0.4}
        >>> found.by_state()[0].name
        'state 1'
    """
    if behaviour is not None and not isinstance(behaviour, Policy):
        raise TypeError(f"behaviour must be a gvf.policies.Policy, not {brief(behaviour)}")
    options: Any = {"on_conflict": on_conflict, "least": least, "rows": rows, "seed": seed}
    recorded = isinstance(log, Log) and any(name in log.columns for name in RECORDED)
    if behaviour is None or (recorded and on_conflict == "recorded"):
        return support_of(log, target, None, **options)

    def everywhere(batch: Transitions) -> list[tuple[NDArray[Any], Policy]]:
        return [(np.arange(len(batch)), behaviour)]

    return support_of(log, target, everywhere, **options)


def support_of(
    log: Log,
    target: Policy,
    laws: Laws | None,
    *,
    on_conflict: OnConflict = "error",
    least: float = 0.01,
    rows: int = 100_000,
    seed: int = 0,
) -> Support:
    """Check the support as :func:`check_support` does, with a behaviour that may differ by row."""
    if not isinstance(log, Log):
        raise TypeError(f"log must be a gvf.Log, as gvf.read_log makes, not {brief(log)}")
    if not isinstance(target, Policy):
        raise TypeError(f"target must be a gvf.policies.Policy, not {brief(target)}")
    if not (is_number(least) and 0 < least < 1):
        raise ValueError(f"least must be a number between 0 and 1, got {brief(least)}")
    batch, position, taken = _sampled(log, whole("rows", rows, 2), np.random.default_rng(seed))
    try:
        cover = cover_of(batch, target, laws, on_conflict, seed=seed)
    except ValueError as error:
        if len(batch) < len(log):
            error.add_note(f"Positions count among the {len(batch):,} rows looked at.")
        raise
    episode, ratio = batch["episode"], cover.ratio
    total = ratio.sum()
    probabilities: Callable[[Any], Floats] | None = getattr(target, "probabilities", None)
    untried: dict[int, float] = {}
    if probabilities is not None and cover.discrete:
        shares = probabilities(batch["state"]).mean(axis=0)
        never = sorted({*range(len(shares))} - taken)
        untried = {a: float(shares[a]) for a in never if shares[a] > 0}
    estimated = log.has_estimates
    if laws is not None:
        estimated |= any(policy.is_estimated for _, policy in laws(batch[:1]))
    thresholds = [round(c, 12) for c in (least / 10, least, min(10 * least, 1.0))]
    return Support(
        log=log,
        target=target,
        rows=len(batch),
        episodes=len(np.unique(episode)),
        least=thresholds[1],
        lost={c: mean_by_episode(cover.lost(c), episode) for c in thresholds},
        mean_ratio=mean_by_episode(ratio, episode),
        effective_sample_size=float(total * (total / (ratio @ ratio))) if total > 0 else 0.0,
        largest_ratio=float(ratio.max()),
        k_hat=tail_index(ratio),
        k_threshold=trusted_up_to(len(ratio)),
        untried=untried,
        estimated=estimated,
        cover=cover,
        batch=batch,
        position=position,
        laws=laws,
        on_conflict=on_conflict,
    )


def _sampled(
    log: Log, most: int, rng: np.random.Generator
) -> tuple[Transitions, NDArray[np.int64], set[int]]:
    """Return rows of a log without NaN, their positions, and the discrete actions of all rows."""
    if "action" not in log.columns:
        raise ValueError(f"{log.source}: the log has no actions, so it has no behaviour")
    chosen = np.ones(len(log), bool)
    if len(log) > most:
        chosen[:] = False
        chosen[rng.choice(len(log), most, replace=False)] = True
    kept: list[Transitions] = []
    places: list[NDArray[np.int64]] = []
    taken: set[int] = set()
    start = 0
    for batch in log:
        wanted = chosen[start : start + len(batch)] & usable(batch)
        kept.append(batch[wanted])
        places.append(start + np.flatnonzero(wanted))
        if batch["action"].ndim == 1:
            taken |= {*np.unique(batch["action"]).tolist()}
        start += len(batch)
    joined = Transitions.concatenate(kept)
    if not len(joined):
        raise ValueError(f"{log.source}: all rows have a NaN in the state, the action or mu")
    return joined, np.concatenate(places), taken
