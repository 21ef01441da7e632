"""Draws that leave the search to the weights."""

import numpy as np
import pytest

import gvf
from gvf.horde.group_draws import GroupDraws, Pool

N, GROUPS, K = 20, 3, 5


def some_draws(correction):
    return GroupDraws(correction, GROUPS, N, K, np.random.SeedSequence(0))


@pytest.mark.parametrize("correction", [gvf.corrections.IR(), gvf.corrections.BCIR()])
def test_a_deferred_search_finds_the_same_rows(correction):
    rng, kept, pool = np.random.default_rng(0), N + 6, Pool(1)
    now, later = some_draws(correction), some_draws(correction)
    seen = np.zeros((GROUPS, 0))
    for _ in range(12):
        p = rng.random((GROUPS, 7)) * (rng.random((GROUPS, 7)) < 0.7)
        p[2] = 0.0  # this group has no mass
        due = rng.random(7) < 0.8
        here = now.insert(p[None], p, due, kept, pool)
        there = later.insert(p[None], p, due, kept, pool, True)
        seen = np.append(seen, p, axis=1)
        assert (here.steps, there.slots.size, there.rows.size) == (seen.shape[1], 0, 0)
        assert here.uniforms is None
        assert there.uniforms is not None
        np.testing.assert_array_equal(here.w, there.w)
        np.testing.assert_array_equal(here.has_mass, there.has_mass)
        assert not here.has_mass[:, 2].any()
        for u, newest in enumerate(there.times):
            oldest = max(newest + 1 - N, 0)
            for g in range(2):
                sums = np.cumsum(seen[g, oldest : newest + 1])
                at = np.searchsorted(sums, there.uniforms[u, g] * sums[-1], side="right")
                np.testing.assert_array_equal(here.rows[u, g], (oldest + at) % kept)
        np.testing.assert_array_equal(
            later.masses[:, (here.steps - 1) % N], seen[:, here.steps - 1]
        )


def test_only_draws_on_which_nothing_depends_are_deferred():
    for correction in (
        gvf.corrections.IS(),
        gvf.corrections.WISMinibatch(),
        gvf.corrections.EmphaticWISMinibatch(0.5),
    ):
        assert not some_draws(correction).can_defer
    long = np.ones((GROUPS, N + 1))
    batch = some_draws(gvf.corrections.IR()).insert(
        long[None], long, long[0] > 0, 2 * N, Pool(1), True
    )
    assert batch.uniforms is None  # a longer chunk replaces masses before they are searched
    assert batch.rows.shape == (N + 1, GROUPS, K)
