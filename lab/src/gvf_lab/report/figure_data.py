"""The data of a figure as JSON, which the page carries for later use by scripts.

JSON has no numbers that are not finite. Here nan is null, infinity is the string "inf" and minus
infinity is "-inf"; the CSV files beside the page have an empty cell, "inf" and "-inf". A verdict is
the same as in ``claims.json``: there every number that is not finite is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from gvf_lab.report.exhibit import Exhibit
from gvf_lab.report.verdict_tables import must_match


def data(exhibit: Exhibit) -> dict[str, Any]:
    """Return a figure's points, published points, verdicts, matches and provenance, for JSON.

    Points have the columns of the CSV file as keys. ``made`` has an entry for each protocol.
    """
    figure = exhibit.figure
    carried = {
        "id": figure.id,
        "title": exhibit.title,
        "where": figure.where,
        "part": exhibit.part,
        "axes": asdict(figure.axes),
        "rows": [row._asdict() for row in exhibit.rows],
        "published": [row._asdict() for row in exhibit.published],
        "verdicts": [asdict(verdict) for verdict in exhibit.verdicts],
        "matches": [
            {
                **asdict(match),
                "matches": match.matches,
                "must_match": must_match(figure, match),
            }
            for match in exhibit.matches
        ],
        "made": {
            protocol: asdict(provenance) for protocol, provenance in exhibit.provenance.items()
        },
    }
    return plain(carried)


def plain(value: Any) -> Any:
    """Convert to values that JSON knows; see the module for numbers that are not finite.

    Example:
        >>> from gvf_lab.report.figure_data import plain
        >>> plain({"y": (0.5, float("inf"), -float("inf"), float("nan"))})
        {'y': [0.5, 'inf', '-inf', None]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    return [plain(inside) for inside in value] if isinstance(value, Iterable) else str(value)
