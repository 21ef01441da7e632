"""Small networks, and how their weights are compared."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import mlp  # noqa: E402


class OneHot(torch.nn.Module):
    """States as numbers, to a table of values: [m] to [m, 1]."""

    def __init__(self, states):
        super().__init__()
        self.table = torch.nn.Embedding(states, 1, dtype=torch.float64)
        torch.nn.init.zeros_(self.table.weight)

    def forward(self, states):
        return self.table(states)


class Picture(torch.nn.Module):
    """A convolution and a dense layer, for frames of 6 x 8."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 3, 3, 2)
        self.dense = torch.nn.Linear(18, 1)

    def forward(self, frames):
        x = self.convolution(frames.to(self.dense.weight.dtype).unsqueeze(1) / 255)
        return self.dense(torch.tanh(x).flatten(1)).squeeze(1)


VECTORS = np.random.default_rng(2).normal(size=(5, 3))


def weights_of(network):
    return {name: w.detach().clone() for name, w in network.named_parameters()}


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


RATES, SEEDS, GROUP = (0.1, 0.01, 0.1, 0.03, 0.01), (0, 0, 1, 2, 0), (1, 0, 0, 1, 1)


def picture(dtype=torch.float64):
    return Picture().to(dtype)


def vectors(dtype=torch.float64):
    return mlp(3, (5,)).to(dtype)


def batch(make, rng, groups=2, k=4):
    """Draws for every group, and weights for every lane."""
    if make is picture:
        states, next_states = rng.integers(256, size=(2, groups, k, 6, 8), dtype=np.uint8)
    else:
        states, next_states = rng.normal(size=(2, groups, k, 3))
    cumulant, continuation = rng.normal(size=(groups, k)), rng.random((groups, k))
    return states, next_states, cumulant, continuation, rng.random((len(RATES), k)) / k


def differ_little(one, other, fresh, *, share: float) -> None:
    """Assert that predictions [..., m] differ by less than a share of how far they have moved.

    Two networks that have learned nothing are equal, but have not moved either.
    """
    one, other, fresh = (np.asarray(predictions) for predictions in (one, other, fresh))
    moved, apart = (np.abs(one - before).max(axis=-1) for before in (fresh, other))
    assert (apart < share * moved).all(), (apart, moved)
