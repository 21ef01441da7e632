"""The oracle of online prediction gives the digits of the authors' released code."""

import charts_reference as reference
import pytest


@pytest.mark.parametrize(
    ("weights", "last", "mean"),
    [
        (lambda stream: reference.td(stream, 2**-9, 0.9), 0.083194728410, 0.131298683212),
        (lambda stream: reference.tdrc(stream, 2**-4, 0.0), 0.546696321945, 0.550121707237),
    ],
    ids=["TD(0.9)", "TDRC(0)"],
)
def test_the_reference_gives_the_released_digits(weights, last: float, mean: float) -> None:
    errors = reference.collision_errors(weights(reference.collision_stream(0)), 0)
    assert abs(errors[-1] - last) < 1e-12
    assert abs(errors.mean() - mean) < 1e-12
