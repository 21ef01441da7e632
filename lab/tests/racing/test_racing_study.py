"""The study of the racing car: its settings, its parts by name, and its store."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from own_corrections import Negative, Prioritised, SquareRoot
from racing_by_hand import METHODS, STUDY

from gvf_lab.racing import RacingStudy, racing_task
from gvf_lab.racing.racing_task import run_racing
from gvf_lab.study import load
from gvf_lab.study.encoding import COLUMNS
from gvf_lab.study.results import Results
from gvf_lab.study.run_study import costs, gap_of, run
from gvf_lab.study.store import Store
from gvf_lab.study.study_file import as_toml

pytestmark = pytest.mark.usefixtures("one_thread", "cache")


def test_names_are_those_of_parts() -> None:
    task = next(STUDY.tasks())
    assert task.name == "tiny/left/wander/gap-3/run-0"
    assert list(task.parts())[:3] == [
        f"{task.name}/{rest}" for rest in ("IR/0.01", "IR/0.1", "BC-IR/0.01")
    ]
    assert all(STUDY.part(name).name == task.name for name in task.parts())
    with pytest.raises(ValueError, match="'tiny/nothing'"):
        STUDY.part("tiny/nothing")


# Settings.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../x"}, r"cannot be called '\.\./x'"),
        ({"simulator": "gta"}, "unknown simulator: 'gta'; known are 'torcs', 'car-racing'"),
        ({"optimiser": "lbfgs"}, "unknown optimiser: 'lbfgs'; known are 'sgd', 'momentum', "),
        ({"device": "tpu"}, r"unknown device: 'tpu'; did you mean 'cpu'\? Known are 'cpu', 'cuda'"),
        ({"methods": ()}, "methods must name at least one"),
        ({"methods": ("IR", "IR")}, "methods has something twice: 'IR'"),
        ({"methods": ("IRR",)}, "unknown method: 'IRR'"),
        ({"methods": ("WIS-Optimal",)}, "WIS-Optimal learns from no mini-batches of this stream"),
        ({"methods": ("Sarsa",)}, "Sarsa learns from no mini-batches"),
        ({"methods": ("On-policy",)}, "On-policy learns from no mini-batches"),
        ({"methods": ("WIS-TD(0)",)}, r"WIS-TD\(0\) learns from no mini-batches"),
        ({"methods": ("NormIS",)}, "NormIS needs a largest ratio, and densities have none"),
        ({"methods": ("V-trace(0.5 max)",)}, r"V-trace\(0.5 max\) needs a largest ratio"),
        ({"methods": (Prioritised(0.5),)}, "has masses that change as it learns"),
        ({"step_sizes": ()}, "step_sizes must name at least one"),
        ({"step_sizes": (0.1, 0.1)}, r"step_sizes has something twice: 0\.1"),
        ({"step_sizes": (0.1, -1.0)}, r"step_sizes must be finite and not negative, got -1\.0"),
        ({"step_sizes": (math.inf,)}, "step_sizes must be finite and not negative, got inf"),
        ({"step_sizes": (math.nan,)}, "step_sizes must be finite and not negative, got nan"),
        ({"step_sizes": ("much",)}, "step_sizes must be a list of numbers, but item 1 is 'much'"),
        ({"steps": 1.5}, "steps must be a whole number, got 1.5"),
        ({"device": 0}, "device must be a name, got 0"),
        *(
            ({name: 0}, f"{name} must be at least 1, got 0")
            for name in (
                "steps", "gap", "window", "batch_size", "measure_every", "points", "runs",
                "evaluation_states", "rollouts",
            )
        ),
        *(
            ({name: -1}, f"{name} must be at least 0, got -1")
            for name in ("warm_up", "seed")
        ),
        ({"measure_every": 11}, "there are 10 updates, and measure_every is 11"),
        ({"warm_up": 39}, "nothing would be measured: there are 0 updates"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_before_anything_runs(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDY, **changes)


def test_a_study_of_the_racing_car_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(as_toml(STUDY))
    assert path.read_text().startswith('kind = "gvf_lab.racing:RacingStudy"\n')
    assert load(path) == STUDY
    assert {field.name for field in fields(RacingStudy)} - {"name", "own"} == {
        line.partition(" = ")[0] for line in path.read_text().splitlines()[1:]
    }
    path.write_text('kind = "gvf.racing:RacingStudy"\nstep_sizes = [0.1]\n')
    with pytest.raises(ValueError, match=r"is called 'gvf_lab.racing:RacingStudy' now"):
        load(path)
    path.write_text('kind = "gvf_lab.racing:RacingStudy"\nstep_sizes = [0.1]\ntrack = "g-track-1"')
    with pytest.raises(
        ValueError, match=r"tiny\.toml: unknown key: 'track'; known are 'kind', 'name', "
    ):
        load(path)


def test_a_correction_of_ones_own_that_fails_is_named_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(racing_task, "material", None)  # no simulator and no files
    replace(STUDY, methods=("IR", SquareRoot())).check()
    for gap in (1, 3, 10):
        study = replace(STUDY, methods=("IR", Negative(), SquareRoot()), gap=gap, measure_every=1)
        with pytest.raises(ValueError, match=r"^Negative, in a trial of tiny/.*: .*-1"):
            run(study, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# The store.


def test_predictions_along_the_film_are_stored_and_read(tmp_path: Path, small: None) -> None:
    assert run(STUDY, tmp_path).done == 2
    store = Store(STUDY, tmp_path)
    table = pq.read_table(store.path(next(STUDY.tasks())))
    assert table.column_names == [*COLUMNS, "constant", "zero"]
    first, *_ = table.to_pylist()
    assert (first["study"], first["protocol"], first["gap"]) == ("tiny", "both", 3)
    # Ten updates, in three parts.
    assert first["curve_steps"] == pytest.approx([10 / 6, 30 / 6, 50 / 6])
    assert [first[name] for name in ("u0", "eta", "iteration", "l1", "l2", "scalar")] == [None] * 6
    configuration = json.loads(table.schema.metadata[b"gvf.configuration"])
    assert (configuration["simulator"], configuration["optimiser"]) == ("torcs", "sgd")
    outcomes = [run_racing(task) for task in STUDY.tasks()]
    results = Results.read(store, "paper")
    for m, method in enumerate(METHODS):
        cell = results.of(method)
        assert cell["film"].shape == (2, 2, 8)
        for name in ("error", "final", "curve", "film", "constant", "zero"):
            expected = np.stack([getattr(of_run[m], name) for of_run in outcomes])
            np.testing.assert_array_equal(cell[name], expected)
    assert run(STUDY, tmp_path).done == 0
    assert run(replace(STUDY, runs=3), tmp_path).done == 1
    assert run(replace(STUDY, simulator="car-racing"), tmp_path).done == 2


def test_the_cost_is_that_of_all_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing_task, "seconds_of_an_update", lambda study: 2.0)
    assert gap_of(next(STUDY.tasks())) == 3
    # A run has ten updates.
    known, logged = costs(Store(STUDY, tmp_path))
    assert not logged
    assert known.total({3: 2}) == pytest.approx(40.0)
