"""The driving network, and what is said where PyTorch is missing."""

import subprocess
import sys
from functools import partial

import pytest
from networks import assert_same_weights, weights_of

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.common.distribution import how_to_install  # noqa: E402
from gvf_lab.racing.driving_network import driving_network  # noqa: E402
from gvf_lab.racing.network_lanes import Lanes  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


# Networks


def test_both_convolutions_of_the_driving_network_are_the_same_function():
    frames = torch.randint(256, (2, 64, 128), dtype=torch.uint8)
    torch.manual_seed(0)
    native = driving_network().double()
    torch.manual_seed(0)
    unfolded = driving_network(convolution="unfold").double()
    assert_same_weights(weights_of(native), weights_of(unfolded))
    values = native(frames)
    torch.testing.assert_close(unfolded(frames), values, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(native(frames.double()), values)
    gradients = [
        torch.autograd.grad(v.sum(), list(network.parameters()))
        for v, network in ((values, native), (unfolded(frames), unfolded))
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_the_driving_network_is_that_of_the_publication():
    network = driving_network()
    shapes = [tuple(w.shape) for name, w in network.named_parameters() if name.endswith("weight")]
    assert shapes == [
        (24, 1, 5, 5), (36, 24, 5, 5), (48, 36, 5, 5), (64, 48, 3, 3), (64, 64, 3, 3),
        (100, 576), (50, 100), (10, 50), (1, 10),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="'native' or 'unfold', got 'fft'"):
        driving_network(convolution="fft")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("convolution", ["native", "unfold"])
def test_lanes_of_the_driving_network_work_as_a_stack(convolution):
    make = partial(driving_network, convolution=convolution)
    stacked, apart = (
        Lanes(lambda: make().double(), torch.optim.SGD, [0.1, 0.01], [0, 1], group=[0, 1],
              together=together)
        for together in (True, False)
    )  # fmt: skip
    frames = torch.randint(256, (2, 2, 64, 128), dtype=torch.uint8)
    for lanes in (stacked, apart):
        for _ in range(2):
            lanes.update(frames, frames.flip(0), torch.ones(2, 2), torch.ones(2, 2) / 2,
                         torch.ones(2, 2))  # fmt: skip
    torch.testing.assert_close(
        stacked.predict(frames[0]), apart.predict(frames[0]), rtol=1e-9, atol=1e-11
    )


def test_the_driving_network_sees_images_of_mean_0_and_sd_1():
    seen = []
    network = driving_network()
    convolution = next(m for m in network.modules() if isinstance(m, torch.nn.Conv2d))
    convolution.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    frames = torch.randint(0, 100, (3, 64, 128), dtype=torch.uint8)
    frames[2] = 7
    network(frames)
    assert seen[0].shape == (3, 1, 64, 128)
    means, spreads = seen[0].mean(dim=(1, 2, 3)), seen[0].std(dim=(1, 2, 3))
    torch.testing.assert_close(means, torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(spreads, torch.tensor([1.0, 1.0, 0.0]), atol=0.05, rtol=0)


# The extra


def test_without_torch_the_error_says_what_to_install():
    program = "import sys; sys.modules['torch'] = None; import gvf.neural"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ImportError: gvf.neural needs PyTorch" in done.stderr
    assert how_to_install("gvf[torch]") in done.stderr
