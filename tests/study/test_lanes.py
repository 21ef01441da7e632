"""Groups of lanes: neither their width nor the lanes that are dropped change a result."""

import numpy as np
import pytest

from gvf.study import Study, lanes, run_method, task

STEPS = (0.0, 0.01, 1e3, *np.linspace(0.001, 0.02, 16), 2e3, 0.03)


@pytest.mark.parametrize("method", ["IR", "IS", "WIS-TD(0)"])
@pytest.mark.parametrize("update", ["incremental", "rmsprop"])
def test_groups_give_the_bits_of_one_group(method, update, monkeypatch):
    study = Study(
        "s", "continuous-four-rooms", (method,), STEPS, update=update,
        pairs=(("favoured-down", "uniform"),), steps=3000, warm_up=100, measure_every=50,
        points=7, gaps=(4,), window=500, u0=(1.0, 64.0),
        mu=(0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 10.0),
        evaluation_states=50, runs=1,
    )  # fmt: skip
    chosen = next(study.tasks())
    widths: list[int] = []

    def spied(groups):
        made = lanes.split(groups)
        widths.append(sum(len(group.choice) for group in made))
        return made

    monkeypatch.setattr(task, "split", spied)
    monkeypatch.setattr(task, "SLICE", 1e-9)  # one measurement at a time
    in_groups = run_method(chosen, method)
    monkeypatch.setattr(task, "split", lambda groups: groups)
    together = run_method(chosen, method)
    for name in ("error", "final", "curve"):
        np.testing.assert_array_equal(getattr(in_groups, name), getattr(together, name))
    if update == "incremental" or method == "WIS-TD(0)":
        assert np.isinf(in_groups.error).any()
        assert np.isfinite(in_groups.error).any()
    if method == "WIS-TD(0)":
        assert widths == sorted(widths, reverse=True)
        assert widths[-1] < widths[0]
