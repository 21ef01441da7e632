"""The alias table: exact probabilities, zeros that are never drawn, and draws."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from gvf.sampling import xoshiro
from gvf.sampling.alias_table import alias_draw, alias_table

MASSES = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-9, 1e9), st.sampled_from([0.1, 0.3, 1.9])),
    min_size=1,
    max_size=60,
).filter(any)


@given(MASSES)
def test_the_table_has_the_probabilities_of_the_masses(masses: list[float]) -> None:
    mass = np.array(masses)
    share, rows = alias_table(mass)
    n = len(mass)
    probability = np.clip(share, None, 1.0)
    np.add.at(probability, rows[:, 1], 1.0 - np.clip(share, None, 1.0))
    np.testing.assert_allclose(probability / n, mass / mass.sum(), rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(rows[:, 0], np.arange(n))
    assert (share[mass == 0.0] == 0.0).all()
    assert (mass[rows[:, 1]] > 0.0).all()


@pytest.mark.parametrize("n", [1, 3, 1000])
def test_rows_are_drawn_in_proportion_to_their_masses(n: int) -> None:
    """The chi-square of 200,000 draws is below its quantile of 1 - 1e-4."""
    rng = np.random.default_rng(n)
    mass = rng.gamma(0.7, size=n) * (rng.random(n) < 0.8)
    mass[0] = 0.37
    slots = np.empty(200_000, np.int64)
    alias_draw(*alias_table(mass), xoshiro.streams(1, n)[0], slots)
    drawn, expected = np.bincount(slots, minlength=n), len(slots) * mass / mass.sum()
    some = mass > 0.0
    assert not drawn[~some].any()
    surprise = ((drawn - expected)[some] ** 2 / expected[some]).sum()
    assert n == 1 or surprise < scipy.stats.chi2.isf(1e-4, some.sum() - 1)


def test_a_number_of_0_does_not_draw_a_row_of_mass_0() -> None:
    nothing = np.zeros(4, np.uint64)  # the stream that gives only zeros
    assert xoshiro.uniform(nothing) == 0.0
    slots = np.empty(5, np.int64)
    alias_draw(*alias_table(np.array([0.0, 1.0, 2.0])), nothing, slots)
    assert (slots == 2).all()
