"""Schedules and draws of a study."""

from typing import Any

import dumb
import numpy as np
import pytest
from oracles import p_value
from small_studies import ROOMS

import gvf
from gvf.window.draw_batches import draw_batches as draw
from gvf_lab.study import Study
from gvf_lab.study.task import schedule


@pytest.mark.parametrize("gap", [1, 3, 16])
@pytest.mark.parametrize("every", [1, 5])
def test_the_schedule_is_that_of_a_plain_loop(gap, every):
    study = Study("s", methods=("IR",), step_sizes=(1.0,), steps=200, warm_up=20, gaps=(gap,),
                  measure_every=every, points=10, **ROOMS)  # fmt: skip
    plan = schedule(study, gap)
    done = [max(t - 20, 0) // gap for t in range(every, 201, every)]
    np.testing.assert_array_equal(np.repeat(plan.upto, plan.held.astype(int)), done)
    bins = np.repeat(plan.bins, plan.held.astype(int))
    np.testing.assert_array_equal(np.bincount(bins), len(done) // 10)


@pytest.mark.parametrize("gap", [1, 3])
def test_only_active_steps_count_as_in_a_plain_loop(gap):
    study = Study("s", methods=("IR",), step_sizes=(1.0,), steps=200, warm_up=20, gaps=(gap,),
                  points=10, when="active", **ROOMS)  # fmt: skip
    active = np.random.default_rng(0).random(200) < 0.4
    times, done, seen = [], [], 0
    for t in range(1, 201):
        if t > 20 and active[t - 1]:
            seen += 1
            if seen % gap == 0:
                times.append(t)
        done.append(len(times))
    assert len(times) > 20
    plan = schedule(study, gap, active)
    np.testing.assert_array_equal(np.repeat(plan.upto, plan.held.astype(int)), done)
    options = {"window": 30, "batch_size": 4, "warm_up": 20, "gap": gap}
    for correction in (gvf.corrections.IS(), gvf.corrections.IR()):
        seed = np.random.SeedSequence(0)
        draws = draw(correction, np.ones(200), seed=seed, active=active, **options)
        assert draws.last.tolist() == times
        assert draws.first.tolist() == [max(0, t - 30) for t in times]
        assert ((draws.first[:, None] <= draws.rows) & (draws.rows < draws.last[:, None])).all()


def test_draws_come_from_the_window_before_the_update():
    """Rows are drawn uniformly or by mass (chi-square, level 1e-4) from the last n rows."""
    rng = np.random.default_rng(0)
    ratio = np.where(rng.random(500) < 0.3, 0.0, rng.lognormal(size=500))
    kwargs: dict[str, Any] = {"window": 50, "batch_size": 2000, "warm_up": 20, "gap": 60}
    for correction in (
        gvf.corrections.IS(),
        gvf.corrections.IR(),
        gvf.corrections.Interpolated(0.3),
    ):
        draws = draw(correction, ratio, seed=np.random.SeedSequence(1), **kwargs)
        assert draws.last.tolist() == list(range(80, 501, 60))
        for u in range(len(draws.last)):
            first, last = draws.first[u], draws.last[u]
            assert last - first == 50
            window = ratio[first:last]
            masses = dumb.masses(correction, window)
            means = [window.mean(), 1.0 if masses is None else np.mean(np.asarray(masses))]
            np.testing.assert_allclose(draws.means[u], means, rtol=1e-12)
            counts = np.bincount(draws.rows[u] - first, minlength=50)
            # The level is that of 24 tests together: three corrections in eight windows.
            assert p_value(counts, dumb.probabilities(correction, window)) > 1e-4 / 24


def test_a_window_without_mass_draws_nothing():
    options = {"window": 5, "batch_size": 2, "gap": 5, "seed": np.random.SeedSequence(0)}
    for correction in (
        gvf.corrections.IR(),
        gvf.corrections.BCIR(),
        gvf.corrections.Interpolated(0.5),
    ):
        draws = draw(correction, np.zeros(10), **options)
        assert (draws.rows == -1).all()
        assert not draws.weights(correction).any()
    assert (draw(gvf.corrections.IS(), np.zeros(10), **options).rows >= 0).all()
