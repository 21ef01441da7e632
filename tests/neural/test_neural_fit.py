"""Networks fit logs as linear learners do."""

from functools import partial

import numpy as np
import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream
from networks import OneHot, torch

import gvf
from gvf.neural import NeuralHorde, NeuralLearner

DATA = chain_stream(CHAIN_BEHAVIOUR, 200, seed=2)
OPTIONS = {"behaviour": CHAIN_BEHAVIOUR, "window": 50, "seed": 0, "update_every": 2}


def neural(**options):
    optimiser = partial(torch.optim.SGD, lr=0.05)  # of half the squared error, as TD's
    return NeuralLearner(CHAIN, OneHot(5), optimiser, gvf.corrections.IR(), **(OPTIONS | options))


@pytest.mark.parametrize("order", ["log", "shuffled", "drawn"])
def test_a_table_of_values_learns_as_a_linear_learner(order):
    network = neural()
    linear = gvf.Learner(
        CHAIN, gvf.features.OneHot(5), gvf.updates.TD(0.05), gvf.corrections.IR(), **OPTIONS
    )
    reports = [one.fit(DATA, epochs=3, order=order, seed=1) for one in (network, linear)]
    assert reports[0].updates == reports[1].updates == 300
    np.testing.assert_allclose(network.predict(np.arange(5)), linear.weights, rtol=1e-12)
    assert np.abs(linear.weights).max() > 0.05


def test_a_network_that_was_stopped_goes_on_from_its_file(tmp_path):
    whole, half, later = neural(), neural(), neural()
    whole.fit(DATA, epochs=2)
    half.fit(DATA, epochs=2, callbacks=gvf.Callback(lambda learner: True, every_steps=123))
    half.save(tmp_path / "half")
    later.load(tmp_path / "half").fit(DATA, epochs=2, resume=True)
    np.testing.assert_array_equal(later.predict(np.arange(5)), whole.predict(np.arange(5)))
    assert later.report() == whole.report()
    assert later.report().window == 200


def test_frames_and_hordes_of_networks_are_fitted_in_the_order_of_the_log():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (41, 6, 8), np.uint8)
    walk = gvf.Transitions(
        state=frames[:-1], action=np.arange(40) % 2, reward=np.ones(40), next_state=frames[1:]
    )
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(1, dtype=torch.float64))
    network(torch.zeros(1, 6, 8, dtype=torch.float64))
    learner = NeuralLearner(
        CHAIN,
        _Scaled(network),
        partial(torch.optim.SGD, lr=0.01),
        behaviour=gvf.policies.Uniform(2),
        window=gvf.FrameWindow(20),
        seed=0,
    )
    assert learner.fit(walk, epochs=2).window == 20
    with pytest.raises(ValueError, match=r'a gvf.FrameWindow keeps its size, so order="drawn"'):
        learner.fit(walk, order="drawn")
    trunk = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh())
    horde = NeuralHorde([CHAIN], trunk, partial(torch.optim.SGD, lr=0.01), **OPTIONS)
    numbers = gvf.Transitions(**DATA.columns | {
        name: DATA[name][:, None].astype(np.float32) for name in ("state", "next_state")
    })  # fmt: skip
    assert horde.fit(numbers, epochs=2).steps == 400


class _Scaled(torch.nn.Module):
    """A network of frames as numbers from 0 to 1."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, frames):
        return self.network(frames.to(torch.float64) / 255)
