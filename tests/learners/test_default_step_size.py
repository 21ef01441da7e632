"""The default step size against its rule, row by row and group by group."""

import numpy as np
import pytest

import gvf
from gvf.updates.default_step_size import default_step_sizes, squared_lengths

K, M = 4, 30


@pytest.mark.parametrize("rule", [gvf.updates.TD(), gvf.updates.IncrementalTD()], ids=str)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "active"])
def test_the_default_step_size_is_the_smallest_that_a_row_allows(
    rule: gvf.updates.Update, dense: bool
) -> None:
    rng, correction = np.random.default_rng(0), gvf.corrections.IS()
    x, x_next = rng.normal(size=(2, M, 3)) if dense else rng.integers(9, size=(2, M, 3))
    ratio = rng.gamma(0.5, 40.0, size=(2, M))
    ratio[:, ::4] = 0.0
    inputs, p = ratio[None], np.ones((2, M))
    p[1, 5] = 0.0
    smallest = np.array([np.inf, 0.03])

    expected = np.empty((2, M))
    for g in range(2):
        step_size = smallest[g]
        for i in range(M):
            lengths = [(f[i] ** 2).sum() if dense else 3.0 for f in (x, x_next)]
            share = 0.1 if p[g, i] == 0.0 else min(0.1, K / max(ratio[g, i], 1e-300))
            allowed = share / max(lengths)
            allowed /= K if isinstance(rule, gvf.updates.IncrementalTD) else 1
            step_size = min(step_size, allowed)
            expected[g, i] = step_size

    def sizes(inputs, p, smallest, rows=slice(None)):
        lengths = squared_lengths(x[rows], x_next[rows])
        return default_step_sizes(
            rule, correction, lengths, inputs, p, batch_size=K, smallest=smallest
        )

    together = sizes(inputs, p, smallest)
    np.testing.assert_allclose(together, expected, rtol=1e-12)
    for g in range(2):
        np.testing.assert_array_equal(sizes(inputs[:, g], p[g], smallest[g]), together[g])
    half = sizes(inputs[..., :11], p[:, :11], smallest, slice(11))
    rest = sizes(inputs[..., 11:], p[:, 11:], half[:, -1], slice(11, None))
    np.testing.assert_array_equal(np.concatenate([half, rest], axis=1), together)
