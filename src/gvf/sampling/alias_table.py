"""An alias table: draws in proportion to masses that never change, in a few nanoseconds each.

The table (Walker 1977, built as by Vose 1991) cuts n masses into n columns of equal height. Column
i holds a share of row i, and above it one other row, its alias. To draw, take a column and a height
in it uniformly:

    row i, or alias i if the height is not below share i.

A row of mass 0 has the share 0 and is nobody's alias, so it is never drawn. The ring of prefix sums
(:mod:`gvf.sampling.prefix_sums`) is for masses that come and go. It searches for each draw.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gvf.sampling import xoshiro


@njit(cache=True, nogil=True)
def alias_table(masses):
    """Return the shares float64[n], and each row with its alias, int64[n, 2], of masses [n].

    A mass must be above 0.

    Example:
        >>> import numpy as np
        >>> from gvf.sampling.alias_table import alias_table
        >>> share, rows = alias_table(np.array([1.0, 0.0, 3.0, 0.0]))
        >>> share, rows.tolist()
        (array([1., 0., 1., 0.]), [[0, 2], [1, 2], [2, 2], [3, 2]])
    """
    n = masses.size
    share, rows = masses * (n / masses.sum()), np.empty((n, 2), np.int64)
    rows[:, 0], rows[:, 1] = np.arange(n), np.argmax(masses)
    # The columns with room are at the front of the list, those with too much at its back.
    columns, room, much = np.empty(n, np.int64), 0, n
    for i in range(n):
        if share[i] < 1.0:
            columns[room] = i
            room += 1
        else:
            much -= 1
            columns[much] = i
    while room > 0 and much < n:
        room -= 1
        taking, giving = columns[room], columns[much]
        rows[taking, 1] = giving
        share[giving] -= 1.0 - share[taking]
        if share[giving] < 1.0:
            much += 1
            columns[room] = giving
            room += 1
    return share, rows


@njit(cache=True, nogil=True, forceinline=True)
def alias_draw(share, rows, stream, slots):
    """Draw slots [k] from a table, with a stream uint64[4] of :mod:`gvf.sampling.xoshiro`."""
    for j in range(slots.size):
        x = xoshiro.uniform(stream) * share.size
        i = np.uint64(x)
        # An index and no branch, because a processor cannot guess the branch.
        slots[j] = rows[i, np.uint64(x - i >= share[i])]
