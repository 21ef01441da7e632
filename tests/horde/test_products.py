"""The updates of one call may be joined into several products."""

import numpy as np
import pytest
from many_learners import BEHAVIOUR, asked, stream

import gvf
from gvf.horde.dense_weights import DenseWeights


@pytest.mark.parametrize("joined", [1, 3, 8, 100])
def test_products_of_fewer_updates_give_the_same_weights(joined, monkeypatch):
    data, sizes, hordes = stream(200, states=0), [], []
    for updates in (joined, 8):
        horde = gvf.Horde(
            asked(), gvf.features.Dense(2), gvf.updates.TD(0.1), behaviour=BEHAVIOUR,
            window=40, batch_size=4, steps_per_call=8, seed=0, threads=1,
        )  # fmt: skip
        horde._predict(data.state[:1])
        weights = horde._shard.weights
        assert isinstance(weights, DenseWeights)
        assert weights.updates_per_product == 8
        weights.updates_per_product = updates
        hordes.append(horde)
    monkeypatch.setattr(
        "gvf.horde.dense_weights._room",
        lambda size, rows, k, dtype: sizes.append(rows) or 100_000,
    )
    for horde in hordes:
        horde.observe(data)
    assert max(sizes[: len(sizes) // 2]) == 4 * min(joined, 8)
    np.testing.assert_allclose(
        hordes[0].predict(data.state), hordes[1].predict(data.state), rtol=1e-11, atol=1e-13
    )
