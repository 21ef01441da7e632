"""Results on a GPU equal those on a CPU up to rounding. Skipped without a GPU."""

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from networks import differ_little

import gvf

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import NeuralHorde, NeuralLearner

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

QUESTION = gvf.GVF(gvf.policies.Gaussian(0.1, 0.5), "reward", 0.9)


def stream(steps: int, seed: int = 0) -> gvf.Transitions:
    """Images in a row, each the next state of the one before."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (steps + 1, 64, 128), np.uint8)
    behaviour = gvf.policies.Gaussian(0.0, 0.6)
    actions = behaviour.sample(frames[:-1], rng=rng)
    return gvf.Transitions(
        state=frames[:-1],
        action=actions,
        reward=rng.random(steps),
        next_state=frames[1:],
        behaviour_log_probability=behaviour.log_probability(frames[:-1], actions),
    )


def images() -> torch.nn.Module:
    """A small network for images uint8[64, 128], with convolutions."""

    class Scale(torch.nn.Module):
        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            return frames[:, None].float() / 255 - 0.5

    return torch.nn.Sequential(
        Scale(),
        torch.nn.Conv2d(1, 8, 8, 4),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 4, 2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 6 * 14, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 1),
    )


def learner(device: str, **options) -> NeuralLearner:
    torch.manual_seed(0)
    return NeuralLearner(
        QUESTION,
        images(),
        partial(torch.optim.SGD, lr=1e-3),
        gvf.corrections.IR(),
        window=gvf.FrameWindow(50),
        seed=1,
        device=device,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"target_every": 5, "clip": 1.0}])
def test_a_learner_on_a_gpu_is_the_one_on_a_cpu(options) -> None:
    batch = stream(60)
    here, there = learner("cpu", **options), learner("cuda", **options)
    for one in (here, there):
        one.observe(batch)
    fresh = learner("cpu")._predict(batch.state)
    differ_little(here.predict(batch.state), there.predict(batch.state), fresh, share=0.02)
    assert next(there.network.parameters()).device.type == "cuda"


def test_a_learner_on_a_gpu_is_saved_and_goes_on(tmp_path) -> None:
    batch = stream(60)
    first, second = learner("cuda"), learner("cuda")
    first.observe(batch[:30])
    first.save(tmp_path / "learner.npz")
    second.load(tmp_path / "learner.npz")
    for one in (first, second):
        one.observe(batch[30:])
    fresh = learner("cuda")._predict(batch.state)
    differ_little(first.predict(batch.state), second.predict(batch.state), fresh, share=0.01)


def test_mixed_precision_is_about_the_same() -> None:
    batch = stream(60)
    whole, half = learner("cuda"), learner("cuda", mixed_precision=True)
    for one in (whole, half):
        one.observe(batch)
    fresh = learner("cuda")._predict(batch.state)
    differ_little(whole.predict(batch.state), half.predict(batch.state), fresh, share=0.2)


def horde(device: str, **options) -> NeuralHorde:
    torch.manual_seed(0)
    policies = {"left": gvf.policies.Gaussian(-0.1, 0.5), "right": gvf.policies.Gaussian(0.1, 0.5)}
    return NeuralHorde(
        gvf.question_grid(policies, {"reward": "reward", "weak": "weak"}, [0.0, 0.9]),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64 * 128, 8), torch.nn.Tanh()),
        partial(torch.optim.Adam, lr=1e-3),
        window=50,
        seed=1,
        device=device,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"target_every": 5, "clip": 1.0}])
@pytest.mark.parametrize(
    "correction",
    [gvf.corrections.IR(), gvf.corrections.WISMinibatch(), gvf.corrections.WISOptimal()],
)
def test_a_horde_on_a_gpu_is_the_one_on_a_cpu(correction, options, tmp_path) -> None:
    data = stream(60)
    weak = np.where(np.arange(60) == 20, np.nan, data.reward)
    frames = {name: data[name].astype(np.float32) / 255 for name in ("state", "next_state")}
    batch = gvf.Transitions(**{**data.columns, **frames}, weak=weak)
    here, there, again = (
        horde(device, correction=correction, **options) for device in ("cpu", "cuda", "cuda")
    )
    fresh = here._predict(batch.state)
    here.observe(batch)
    there.observe(batch[:30])
    there.save(tmp_path / "horde")
    again.load(tmp_path / "horde")
    there.observe(batch[30:])
    again.observe(batch[30:])
    for one in (there, again):
        learned = [name for name in here.names if name not in here.report().paused]
        places = [here.names.index(name) for name in learned]
        ours, theirs = (h.predict(batch.state, learned).T for h in (here, one))
        differ_little(ours, theirs, fresh[:, places].T, share=0.05)
        assert one.report().paused == here.report().paused
    assert next(there.trunk.parameters()).device.type == "cuda"
    assert there.optimiser.state[cast("Any", there._shard.weights).network.heads]["exp_avg"].is_cuda
