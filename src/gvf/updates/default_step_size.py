"""The default step size of learners and hordes: the smallest that any row so far allows.

    alpha_t = min over rows i <= t of  rule(|x_i|^2, |w_i|, k)

The rule is the update's own (:meth:`gvf.updates.Update.default_step_size`), w_i is the weight that
the correction gives row i, and k is the number of rows of a batch. The step size never rises, and
does not depend on the size of the batches in which rows come.
"""

from __future__ import annotations

import numpy as np

from gvf.common.arrays import Array, Floats
from gvf.corrections import Correction
from gvf.updates.update import Update


def squared_lengths(x: Array, x_next: Array) -> Floats:
    """Return the larger squared length of each row's features, or the number of active ones, [m].

    Args:
        x: the features of the states, int32[m, a] or float64[m, size].
        x_next: the features of the next states.
    """
    if x.dtype.kind == "f":
        return np.maximum(*(np.einsum("ij,ij->i", f, f) for f in (x, x_next)))
    return np.full(len(x), x.shape[1], np.float64)


def default_step_sizes(
    update: Update,
    correction: Correction,
    lengths: Floats,
    inputs: Floats,
    p: Floats,
    *,
    batch_size: int,
    smallest: Floats | float,
) -> Floats:
    """Return the default step size from each of m rows on, float64[..., m].

    It is infinite as long as no row has limited it, because all features or weights were 0.

    Args:
        update: the update.
        correction: the correction.
        lengths: the squared lengths of the features of the rows, float64[m].
        inputs: the correction's inputs, float64[C, ..., m], such as one array [m] a group.
        p: the masses, float64[..., m]. A row of mass 0 is never drawn, and allows any step size.
        batch_size: the number of rows drawn for an update, k.
        smallest: the step size before these rows, float64[...]; infinite if there was none.

    Example:
        >>> import gvf, numpy as np
        >>> from gvf.updates.default_step_size import default_step_sizes, squared_lengths
        >>> x, p = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]]), np.ones(3)
        >>> rule, correction = gvf.updates.TD(), gvf.corrections.OnPolicy()
        >>> lengths = squared_lengths(x, 0 * x)
        >>> default_step_sizes(rule, correction, lengths, p[None], p, batch_size=4, smallest=1.0)
        array([0.1  , 0.025, 0.025])
    """
    # The weight in a batch of copies of one row, when the means of the window are 1.
    alone = np.repeat(np.arange(p.size)[:, None], batch_size, axis=1)
    means = np.ones((p.size, len(inputs) + 1))
    masses = p.ravel()
    weight = correction.weigh_rows(inputs.reshape(len(inputs), -1), masses, alone, means)[:, 0]
    weight[(masses == 0.0) | np.isnan(weight)] = 0.0
    lengths = np.tile(lengths, p.size // len(lengths))
    step_sizes = update.default_step_size(lengths, np.abs(weight), batch_size).reshape(p.shape)
    step_sizes[..., 0] = np.minimum(step_sizes[..., 0], smallest)
    return np.minimum.accumulate(step_sizes, axis=-1)
