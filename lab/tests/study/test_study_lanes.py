"""Lanes that have diverged are dropped, which changes no result."""

import numpy as np
import pytest

from gvf_lab.study import Study, run_method, task
from gvf_lab.study.study_loop import StudyLanes

STEPS = (0.0, 0.01, 1e3, *np.linspace(0.001, 0.02, 16), 2e3, 0.03)


@pytest.mark.parametrize("method", ["IR", "IS", "WIS-TD(0)"])
@pytest.mark.parametrize("update", ["incremental", "rmsprop"])
def test_the_rest_has_the_same_bits_without_dead_lanes(method, update, monkeypatch):
    study = Study(
        "s", "continuous-four-rooms", (method,), STEPS, update=update,
        pairs=(("favoured-down", "uniform"),), steps=3000, warm_up=100, measure_every=50,
        points=7, gaps=(4,), window=500, u0=(1.0, 64.0),
        mu=(0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 10.0),
        evaluation_states=50, runs=1,
    )  # fmt: skip
    chosen = next(study.tasks())
    widths: list[int] = []

    drop = StudyLanes.without_dead

    def spied(self):
        widths.append(len(drop(self).choice))
        return drop(self)

    monkeypatch.setattr(StudyLanes, "without_dead", spied)
    monkeypatch.setattr(task, "SLICE", 1e-9)  # one measurement at a time
    fewer = run_method(chosen, method)
    monkeypatch.setattr(StudyLanes, "without_dead", lambda self: self)
    together = run_method(chosen, method)
    for name in ("error", "final", "curve"):
        np.testing.assert_array_equal(getattr(fewer, name), getattr(together, name))
    if update == "incremental" or method == "WIS-TD(0)":
        assert np.isinf(fewer.error).any()
        assert np.isfinite(fewer.error).any()
    if method == "WIS-TD(0)":
        assert widths == sorted(widths, reverse=True)
        assert widths[-1] < widths[0]
