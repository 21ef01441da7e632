"""Claims about the charts: what was published, and what we believe of emphatic resampling.

The published statements are those of the abstracts of the two comparisons. They name no amounts, so
any difference to the right side supports them. Each is judged at the best parameters of every
algorithm, on the published grids. The parameters are chosen by runs that do not judge
(:mod:`gvf_lab.charts.chart_errors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gvf.common.arrays import Array
from gvf_lab.charts.chart_errors import (
    Where,
    any_choice,
    best,
    flat_range,
    highest,
    lowest,
    share_worse_than_start,
    spread_over_traces,
    without_traces,
)
from gvf_lab.figure.claim import Claim
from gvf_lab.figure.history import HistoryEntry
from gvf_lab.study.results import Results

EMPHATIC = ("Emphatic TD(lambda)", "Emphatic TD(lambda, beta)")
GRADIENT = (
    "GTD(lambda)",
    "GTD2(lambda)",
    "HTD(lambda)",
    "Proximal GTD2(lambda)",
    "TDRC(lambda)",
)
MIDDLE = (*GRADIENT, "TD(lambda)")
CLIPPED = ("Tree Backup(lambda)", "V-trace(lambda)", "ABTD(zeta)")
OTHERS = (*MIDDLE, *CLIPPED)
EVERY = (*EMPHATIC, *OTHERS)
TIE = "1 is a tie. The statement names no amount, so any difference to the right side supports it."
WRITTEN = (
    HistoryEntry("2026-11-16: written, after a small probe of the same tasks with other code."),
    HistoryEntry(
        "2026-11-16: judged by fresh runs; results of the runs that choose parameters were known."
    ),
)
KNOWING = (
    HistoryEntry("2026-11-16: written when results of the runs that choose parameters were known."),
)
ON_COLLISION, ON_ROOMS = "abstract of arXiv 2106.00922", "abstract of arXiv 2109.05110"
"""The places of the published statements."""
SHARES = {
    "Emphatic TD(lambda)": 0.37,
    "Emphatic TD(lambda, beta)": 0.25,
    "TD(lambda)": 0.16,
    "TDRC(lambda)": 0.11,
    "HTD(lambda)": 0.24,
    "GTD(lambda)": 0.25,
    "GTD2(lambda)": 0.28,
    "Proximal GTD2(lambda)": 0.24,
}
"""The published shares of parameters without traces that are worse than the start on Collision."""
ONE_STEP_SIZE = 0.06
"""A little more than the share of one of 19 step sizes."""
FLAT = 1.5
"""A step size belongs to the flat range if its error is at most this many times the best."""


def _claim(
    id: str, sentence: str, measure: str, statistic: Callable[..., Array], **more: Any
) -> Claim:
    settings: dict[str, Any] = {"least": 1.0, "why": TIE, "history": WRITTEN} | more
    return Claim(id, sentence, measure, statistic, **settings)


def _ahead(
    id: str,
    sentence: str,
    first: Sequence[str],
    second: Sequence[str],
    column: str = "error",
    where: Where = any_choice,
) -> Claim:
    """Claim that every method of the first group has a lower column than every one of the second.

    Final errors are compared at the parameters with the lowest final error.
    """
    words = {
        "error": "error averaged over the run",
        "early": "error in the first tenth of the run",
        "final": "error in the last 1 % of the run, at the parameters that are best there",
    }
    by = "final" if column == "final" else "error"
    return _claim(
        id,
        sentence,
        f"{words[column]}: the lowest of {', '.join(second)} over the highest of "
        f"{', '.join(first)}",
        lambda results: (
            lowest(results, second, column, where, by) / highest(results, first, column, where, by)
        ),
    )


def _robust(results: Results) -> Array:
    spreads = {method: spread_over_traces(results, method) for method in (*EMPHATIC, *MIDDLE)}
    return np.min([spreads[method] for method in MIDDLE], axis=0) / np.max(
        [spreads[method] for method in EMPHATIC], axis=0
    )


def _robust_to_all(results: Results) -> Array:
    """Return the smallest share of parameters worse than the start, less that of the emphatic."""
    shares = {method: share_worse_than_start(results, method) for method in EVERY}
    return np.min([shares[method] for method in OTHERS], axis=0) - np.max(
        [shares[method] for method in EMPHATIC], axis=0
    )


def _from_published_shares(results: Results) -> Array:
    differences = [
        np.abs(share_worse_than_start(results, method, without_traces) - share)
        for method, share in SHARES.items()
    ]
    return np.max(differences, axis=0)


def _published(place: str, *claims: Claim) -> tuple[Claim, ...]:
    return tuple(replace(claim, place=claim.place or place) for claim in claims)


_WITHOUT_TRACES = _ahead(
    "emphatic-lowest-without-traces",
    "Without traces, the two emphatic algorithms reach the lowest errors.",
    EMPHATIC,
    OTHERS,
    where=without_traces,
)
_PUBLISHED = _published(
    ON_COLLISION,
    _ahead(
        "emphatic-lowest",
        "The two emphatic algorithms reach the lowest errors.",
        EMPHATIC,
        OTHERS,
    ),
    _ahead(
        "emphatic-fastest", "The two emphatic algorithms learn fastest.", EMPHATIC, OTHERS, "early"
    ),
    _claim(
        "emphatic-robust",
        "The gradient algorithms and TD are more sensitive to lambda than the emphatic ones.",
        "highest over lowest error as lambda varies, the other parameters at their best: the "
        "smallest of TD and the gradient algorithms over the largest of the emphatic ones",
        _robust,
    ),
    _claim(
        "emphatic-robust-to-parameters",
        "The two emphatic algorithms are the most robust to their parameters.",
        "share of all parameters whose error is above that of predicting 0: the smallest of the "
        "others less the largest of the emphatic ones",
        _robust_to_all,
        least=0.0,
        why="0 is a tie. The statement names no amount and no measure; this measure is that of the "
        "authors' figures.",
        history=KNOWING,
    ),
    _claim(
        "shares-as-published",
        "Without traces, as many parameters are worse than the start as was published.",
        "share of parameters whose error is above that of predicting 0: the largest difference "
        "from the published one, of eight algorithms",
        _from_published_shares,
        least=-math.inf,
        most=ONE_STEP_SIZE,
        why="One of 19 step sizes may fall on the other side.",
        history=KNOWING,
        place="figures in the authors' repository, read by eye",
    ),
    _ahead(
        "clipped-worst",
        "Tree Backup, V-trace and ABTD reach higher errors than TD and the gradient algorithms.",
        MIDDLE,
        CLIPPED,
    ),
    _ahead(
        "clipped-higher-asymptote",
        "Tree Backup, V-trace and ABTD end at higher errors than TD and the gradient algorithms.",
        MIDDLE,
        CLIPPED,
        "final",
    ),
    _claim(
        "clipped-no-faster",
        "Tree Backup, V-trace and ABTD learn no faster than the others.",
        "error in the first tenth of the run: the lowest of Tree Backup, V-trace and ABTD over the "
        "lowest of all others",
        lambda results: (
            lowest(results, CLIPPED, "early") / lowest(results, (*EMPHATIC, *MIDDLE), "early")
        ),
    ),
)
COLLISION = (*_PUBLISHED, _WITHOUT_TRACES)
"""The published statements about Collision, and one that tells apart what traces do."""

_ASYMPTOTE = (
    _ahead(
        "emphatic-lowest-asymptote",
        "Emphatic TD(lambda) ends at the lowest error.",
        EMPHATIC[:1],
        OTHERS,
        "final",
    ),
    _claim(
        "emphatic-slower",
        "Emphatic TD(lambda) learns more slowly than others.",
        "error in the first tenth of the run: Emphatic TD(lambda) over the lowest of all that are "
        "not emphatic",
        lambda results: best(results, EMPHATIC[0], "early") / lowest(results, OTHERS, "early"),
    ),
)
ROOMS = _published(
    ON_ROOMS,
    *_ASYMPTOTE,
    _claim(
        "clipped-bootstrap-too-much",
        "Tree Backup, V-trace and ABTD end at higher errors than Emphatic TD(lambda).",
        "error in the last 1 % of the run, at the parameters that are best there: the lowest of "
        "the three over Emphatic TD(lambda)",
        lambda results: (
            lowest(results, CLIPPED, "final", by="final")
            / best(results, EMPHATIC[0], "final", by="final")
        ),
    ),
)
"""The published statements about Rooms."""


def _growth(results: Results, rooms: Results) -> Array:
    """Return the smallest growth of an error of the others over the largest of the clipped."""
    grown = {method: best(results, method) / best(rooms, method) for method in EVERY}
    others = np.min([grown[method] for method in EVERY if method not in CLIPPED], axis=0)
    return others / np.max([grown[method] for method in CLIPPED], axis=0)


HIGH_VARIANCE_ROOMS = _published(
    ON_ROOMS,
    *_ASYMPTOTE,
    _claim(
        "variance-raises-errors",
        "The variance of ratios raises the errors of the algorithms.",
        "growth of the error from Rooms to High Variance Rooms, averaged over the algorithms",
        lambda results, rooms: np.mean(
            [best(results, method) / best(rooms, method) for method in EVERY], axis=0
        ),
        needs=("rooms-online",),
        history=KNOWING,
    ),
    _claim(
        "clipped-least-affected",
        "The variance of ratios affects Tree Backup, V-trace and ABTD least.",
        "growth of the error from Rooms to High Variance Rooms: the smallest of the other "
        "algorithms over the largest of the three",
        _growth,
        needs=("rooms-online",),
    ),
    _ahead(
        "clipped-lowest",
        "Tree Backup, V-trace and ABTD reach the lowest errors.",
        CLIPPED,
        (*EMPHATIC, *MIDDLE),
    ),
)
"""The published statements about High Variance Rooms."""


def emphatic_resampling(domain: str, equal: bool) -> tuple[Claim, ...]:
    """Return our claims about emphatic IR on a task, beside the online algorithms.

    Args:
        domain: the task.
        equal: True if emphatic IR has as many updates and samples as the online algorithms.
    """
    online = (f"{domain}-online",)
    same = ", with as many updates and samples" if equal else ""
    ours = "Emphatic IR"
    error = "error averaged over the run"
    return (
        _claim(
            "emphatic-ir-beats-ir",
            "Emphatic IR has a lower error than IR.",
            f"{error}: IR over emphatic IR",
            lambda results: best(results, "IR") / best(results, ours),
        ),
        *(
            _claim(
                f"emphatic-ir-beats-{id}-without-traces",
                f"Emphatic IR has a lower error than {name}{any_beta}{same}.",
                f"{error}: {name} over emphatic IR",
                lambda results, other, method=method: (
                    best(other, method, where=without_traces) / best(results, ours)
                ),
                needs=online,
            )
            for method, id, name, any_beta in (
                (EMPHATIC[0], "etd", "Emphatic TD(0)", ""),
                (EMPHATIC[1], "etd-beta", "Emphatic TD(0, beta)", " with any beta"),
            )
        ),
        _claim(
            "emphatic-ir-beats-every-online",
            f"Emphatic IR has a lower error than every online algorithm with any trace{same}.",
            f"{error}: the lowest of the online algorithms over emphatic IR",
            lambda results, other: lowest(other, EVERY) / best(results, ours),
            needs=online,
        ),
        _claim(
            "emphatic-ir-flatter-than-etd",
            "Emphatic IR has more good step sizes than Emphatic TD(0).",
            f"number of powers of 2 whose error is at most {FLAT} times the best: emphatic IR over "
            "Emphatic TD(0)",
            lambda results, other: (
                flat_range(results, ours, FLAT)
                / flat_range(other, EMPHATIC[0], FLAT, without_traces)
            ),
            needs=online,
        ),
        _claim(
            "emphatic-ir-beats-emphatic-is",
            "Emphasis in the draws gives a lower error than emphasis in the weights.",
            f"{error}: emphatic IS over emphatic IR",
            lambda results: best(results, "Emphatic IS") / best(results, ours),
            history=KNOWING,
        ),
        *(
            _claim(
                f"{id}-like-emphatic-ir",
                f"{other} and Emphatic IR differ by less than 5 %.",
                f"{error}: {other} over emphatic IR",
                lambda results, other=other: best(results, other) / best(results, ours),
                least=0.95,
                most=1.05,
                why="5 % is our choice of a small difference.",
                history=KNOWING,
            )
            for id, other in (
                ("emphatic-wis", "Emphatic WIS-Minibatch"),
                ("emphatic-bc-ir", "Emphatic BC-IR"),
            )
        ),
    )
