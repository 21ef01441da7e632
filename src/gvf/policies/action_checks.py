"""Checks of the arguments of policies: batches, actions, probabilities and generators.

A row of probabilities p[A] is a distribution if p >= 0 and sum(p) = 1, up to rounding. All policies
use these checks, so that they raise the same errors with the same messages. A function named after
a thing returns that thing, checked and converted; a function ``check_...`` returns nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import as_array, as_numbers, brief
from gvf.common.errors import DataError, place
from gvf.common.fields import as_states

_SUM_TOLERANCE = 1e-8


def batch_size(states: Any) -> int:
    """Return the number of states in a batch, m."""
    try:
        return len(states if type(states) is np.ndarray else as_states(states))
    except TypeError:
        raise TypeError(
            f"states must be a batch, one row a state, not the single state {brief(states)}; "
            "give np.array([state])"
        ) from None


def generator(rng: Any) -> np.random.Generator:
    """Return the generator; raise TypeError if it is not one."""
    if isinstance(rng, np.random.Generator):
        return rng
    raise TypeError(
        f"rng must be a numpy.random.Generator (np.random.default_rng(0)), not {brief(rng)}"
    )


def numpy_array(value: Any, what: str = "what was given") -> NDArray[Any]:
    """Return an array from anything that NumPy converts, or from a torch tensor."""
    # A torch tensor may be on another device or require a gradient; torch need not be imported.
    return as_array(value.detach().cpu() if hasattr(value, "detach") else value, what)


def indices(values: Any, size: int, count: int, kind: str) -> NDArray[np.intp]:
    """Return actions or states as integers [count], each in [0, size)."""
    array = as_numbers(values, f"the {kind}s")
    if array.shape != (count,):
        raise ValueError(f"{kind}s have shape {array.shape}, expected ({count},): one per state")
    if array.dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if (whole != array).any():
            at = int((whole != array).argmax())
            raise DataError(
                f"{kind} {array[at]}", place(at), " is not an integer", column=kind, value=array[at]
            )
        array = whole
    good = (array >= 0) & (array < size)
    if not good.all():
        at = int(good.argmin())
        limits = f" is not one of 0 to {size - 1}"
        raise DataError(f"{kind} {array[at]}", place(at), limits, column=kind, value=array[at])
    return array.astype(np.intp, copy=False)


def distributions(values: Any, source: str) -> Floats:
    """Return a copy of rows of probabilities, float64[m, A], each a distribution.

    Rows in single precision or less may sum to 1 within that precision; they are rescaled.
    """
    array = numpy_array(values, f"the probabilities of {source}")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{source}: probabilities have shape {array.shape}, expected a row for each state "
            "(they come all at once) and a column for each action"
        )
    rows = array.astype(np.float64)
    precision = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    tolerance = max(_SUM_TOLERANCE, 16 * precision)
    with np.errstate(invalid="ignore"):
        sums = rows.sum(axis=1)
        good = (rows >= 0).all(axis=1) & (np.abs(sums - 1) <= tolerance)
    if not good.all():
        row = int(good.argmin())
        raise DataError(
            f"{source}: the probabilities",
            place(row, " in row "),
            f" are {_listed(rows[row])}, with sum {sums[row]}; they must not be negative or NaN, "
            "and must sum to 1",
            column="probabilities",
            value=rows[row],
        )
    return rows / sums[:, np.newaxis] if precision > _SUM_TOLERANCE else rows


def _listed(row: Floats) -> str:
    """Format at most eight numbers of a row."""
    numbers = " ".join(f"{number:.6g}" for number in row[:8])
    return f"[{numbers}{' ...' if len(row) > 8 else ''}]"


def check_action(action: Any, actions: Any) -> None:
    """Raise ValueError unless ``actions`` is positive and ``action`` is one of the actions."""
    if not isinstance(actions, int | np.integer) or actions < 1:
        raise ValueError(
            f"actions, how many there are, must be a positive integer; got {brief(actions)}"
        )
    if not isinstance(action, int | np.integer) or not 0 <= action < actions:
        raise ValueError(f"action {brief(action)} is not one of the actions 0 to {actions - 1}")
