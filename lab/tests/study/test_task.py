"""Tasks: the compiled loop against the dumb updates, parts by name, lanes that diverge."""

import importlib
import re
import sys
from dataclasses import replace

import dumb
import numpy as np
import pytest
from own_code import CHAIN, write
from small_studies import FIXED, ONLINE, ROOMS, TILES, dumb_errors

import gvf
from gvf.jobs.threads import Interrupted
from gvf_lab.study import NAMED, Study, run_method, run_task
from gvf_lab.study.measure import measure, sum_tree
from gvf_lab.study.task import TaskInputs, occurring, rows_outside_evaluation

STEPS = (0.0, 0.3, 0.7)
CASES = [
    *((m, "sgd", {**FIXED}) for m, method in NAMED.items() if not method.update),
    ("Sarsa", "sgd", FIXED),
    ("Expected Sarsa", "sgd", FIXED),
    ("WIS-TD(0)", "sgd", FIXED),
    ("IR+WIS-TD(0)", "sgd", FIXED),
    ("IR", "incremental", FIXED),
    ("WIS-Minibatch", "rmsprop", FIXED),
    ("IS", "adam", FIXED),
    ("IR", "tdc", FIXED),
    ("IR", "tdrc", FIXED),
    *((m, "sgd", {**ROOMS, **ONLINE}) for m in ("IR", "BC-IR", "IS", "WIS-Optimal", "WIS-Buffer")),
    ("IS", "tdc", {**ROOMS, **ONLINE}),
    ("Sarsa", "sgd", {**ROOMS, **ONLINE}),
    ("Expected Sarsa", "rmsprop", {**ROOMS, **ONLINE}),
    ("IR", "sgd", {**ROOMS, **ONLINE, "error": "root mean square"}),
    *((m, "sgd", {**TILES, **ONLINE}) for m in ("IR", "IS", "V-trace(0.5 max)", "WIS-TD(0)")),
    ("IR", "rmsprop", {**TILES, **ONLINE}),
    ("WIS-Minibatch", "incremental", {**TILES, **ONLINE}),
    ("Sarsa", "sgd", {**TILES, **ONLINE}),
]


@pytest.mark.parametrize(
    ("method", "update", "settings"),
    CASES,
    ids=lambda v: v["domain"] if isinstance(v, dict) else v,
)
def test_the_compiled_loop_equals_the_dumb_one(method, update, settings):
    tiles = settings["domain"] == TILES["domain"]
    sizes = tuple(s / 64 for s in STEPS) if tiles and update == "incremental" else STEPS
    study = Study("s", methods=(method,), step_sizes=sizes, update=update, batch_size=4,
                  points=5, u0=(5.0,), mu=(0.1, 0.5), runs=1, seed=3, **settings)  # fmt: skip
    task = next(study.tasks())
    outcome = run_method(task, method)
    for i, lane in enumerate(study.choices(method)):
        expected = dumb_errors(task, method, lane)
        assert outcome.error[i] == pytest.approx(expected.mean(), rel=1e-9)
        assert outcome.final[i] == pytest.approx(expected[-1], rel=1e-9)
        parts = [part.mean() for part in np.array_split(expected, 5)]
        if len(expected) % 5 == 0:
            np.testing.assert_allclose(outcome.curve[i], parts, rtol=1e-9)
    assert outcome.error[0] != outcome.error[-1]


def active_study(**changes):
    settings = {
        "steps": 600, "window": 100, "warm_up": 50, "batch_size": 3, "points": 1, "runs": 1,
        "error": "root mean square", "when": "active", "pairs": (("SW-H1", "uniform"),),
    }  # fmt: skip
    methods = ("IR", "IS", "Emphatic IR", "WIS-Buffer")
    world = {"domain": "rooms", "methods": methods, "step_sizes": (0.1,)}
    return Study("s", **{**world, **settings, **changes})


@pytest.mark.parametrize("gap", [1, 3])
@pytest.mark.parametrize("method", active_study().methods)
def test_updates_while_a_question_is_active_are_those_of_a_plain_loop(method, gap):
    study = active_study(gaps=(gap,), steps=3000)
    task = next(study.tasks())
    outcome, shared = run_method(task, method), TaskInputs(task)
    path, truth = shared.off_policy, shared.truth
    asked, correction = path.signals["SW-H1"], NAMED[method].make(shared.largest_ratio)
    assert asked.active is not None
    draws = shared.draws(correction)
    weights = draws.weights(correction)
    x, x_next, states = (
        np.array([np.bincount(row, minlength=12) for row in rows], float)
        for rows in (path.x, path.x_next, shared.domain.features(truth.states))
    )
    update = dumb.DumbUpdate(kind="sgd", rows=12, alpha=0.1)
    errors, done, seen = [], 0, 0
    for t in range(1, 3001):
        if t > 50 and asked.active[t - 1]:
            seen += 1
            if seen % gap == 0:
                assert (draws.first[done], draws.last[done]) == (max(0, t - 100), t)
                rows = draws.rows[done]
                signals = asked.cumulant[rows], asked.continuation[rows]
                if rows[0] >= 0:
                    update.apply(x[rows], x_next[rows], *signals, weights[done])
                done += 1
        errors.append(truth.root_mean_square_error(states @ update.weights))
    assert 10 < done == len(draws.last) < 2900 // gap
    assert outcome.error[0] == pytest.approx(np.mean(errors), rel=1e-9)
    assert outcome.final[0] == pytest.approx(errors[-1], rel=1e-9)
    assert errors[-1] != errors[0]


def test_a_question_that_is_never_active_is_never_learned():
    task = next(active_study(steps=60, pairs=(("NE-H2", "uniform"),)).tasks())
    assert not np.any(TaskInputs(task).off_policy.signals["NE-H2"].active)
    for outcome in run_task(task):
        zeros = np.zeros(len(TaskInputs(task).truth.states))
        start = TaskInputs(task).truth.root_mean_square_error(zeros)
        assert (outcome.error[0], outcome.final[0]) == pytest.approx((start, start))


def test_a_question_that_is_always_active_gives_the_same_bits_either_way():
    collision = {"pairs": (("wall", "turning"),), "domain": "collision"}
    often, active = (
        run_task(next(active_study(when=when, **collision).tasks()))
        for when in ("every step", "active")
    )
    for one, other in zip(often, active, strict=True):
        np.testing.assert_array_equal(one.curve, other.curve)


@pytest.mark.parametrize("gap", [1, 4])
def test_the_whole_window_gives_the_same_bits_without_rows_of_ratio_0(gap, monkeypatch):
    settings = {**ROOMS, **ONLINE, "pairs": (("down", "random-state"),), "gaps": (gap,)}
    study = Study("s", methods=("WIS-Optimal",), step_sizes=STEPS, runs=1, seed=3, **settings)
    task = next(study.tasks())
    ratio = TaskInputs(task).off_policy.signals["down"].ratio
    assert 0 < np.count_nonzero(ratio) < len(ratio)
    without = run_method(task, "WIS-Optimal")
    monkeypatch.setattr(gvf.corrections.WISOptimal, "skips_zeros", False)
    every_row = run_method(task, "WIS-Optimal")
    np.testing.assert_array_equal(without.curve, every_row.curve)
    np.testing.assert_array_equal(without.final, every_row.final)
    expected = dumb_errors(task, "WIS-Optimal", STEPS[-1])
    assert without.error[-1] == pytest.approx(expected.mean(), rel=1e-9)
    assert without.error[-1] != without.error[0]


@pytest.mark.parametrize("domain", ["four-rooms", "continuous-four-rooms"])
def test_all_features_of_a_walk_are_found_and_no_others(domain):
    settings = ROOMS if domain == "four-rooms" else TILES
    shared = TaskInputs(next(Study("s", methods=("IR",), step_sizes=STEPS, runs=1, seed=3,
                                     **settings, **ONLINE).tasks()))  # fmt: skip
    path, size = shared.off_policy, shared.domain.features.size
    path = replace(path, x=path.x[:5], x_next=path.x_next[-5:])
    found = np.flatnonzero(occurring(path, size))
    np.testing.assert_array_equal(found, np.union1d(path.x, path.x_next))
    assert len(np.unique(path.x)) < len(found) < size


def test_a_part_alone_gives_the_same_bits_as_in_its_grid():
    methods = ("IR", "IS", "Sarsa", "WIS-Optimal", "On-policy")
    grid = Study("s", methods=methods, step_sizes=(0.1, 0.5, 2.0), **{**FIXED, "pairs": ()},
                 runs=3)  # fmt: skip
    tasks = {task.name: task for task in grid.tasks()}
    task = tasks["s/hard/hard/gap-1/run-2"]
    whole = {outcome.method: outcome for outcome in run_task(task)}
    for method in methods:
        cell = grid.with_(methods=(method,), step_sizes=(0.5,), pairs=(("hard", "hard"),))
        alone = run_task(next(t for t in cell.tasks() if t.run == 2))[0]
        assert alone.error[0] == whole[method].error[1]
        np.testing.assert_array_equal(alone.curve[0], whole[method].curve[1])


@pytest.mark.parametrize("method", ["IR", "WIS-TD(0)"])
def test_a_part_is_found_by_its_name(method):
    study = Study("s", methods=("IS", "IR", "WIS-TD(0)"), step_sizes=(0.01, 0.02), u0=(64.0,),
                  mu=(0.3, 0.7), update="rmsprop", runs=2, **{**TILES, **ONLINE})  # fmt: skip
    task = list(study.tasks())[1]
    names = [name for name in task.parts() if f"/{method}/" in name]
    assert len(names) == 2
    whole = {outcome.method: outcome for outcome in run_task(task)}
    alone = run_task(study.part(names[1]))
    assert [outcome.method for outcome in alone] == [method]
    np.testing.assert_array_equal(alone[0].curve[0], whole[method].curve[1])
    cells = ", ".join(repr(name.removeprefix(f"{task.name}/")) for name in task.parts())
    wrong = names[0].removeprefix(f"{task.name}/") + "7"
    message = f"unknown part of {task.name}: {wrong!r}; did you mean "
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as told:
        study.part(f"{task.name}/{wrong}")
    assert str(told.value).endswith(f"? Known are {cells}")
    with pytest.raises(ValueError, match=r"unknown part of .*: 'IRR/0.01'; did you mean 'IR/0.01'"):
        study.part(f"{task.name}/IRR/0.01")
    with pytest.raises(ValueError, match=f"with 2 runs is called 's/x'; .*{task.name[:-1]}"):
        study.part("s/x")


def test_a_number_is_the_same_however_it_is_written():
    good = {"name": "s", "domain": "markov-chain", "methods": ["IR"], "updates": 5}
    plain = Study(**good, step_sizes=(1.0, 2.0), runs=1)
    numpy: dict = {"step_sizes": np.array([1, 2]), "runs": np.int64(1)}
    other = Study(**good, **numpy)
    assert other == plain
    assert list(next(other.tasks()).parts()) == list(next(plain.tasks()).parts())


def test_runs_differ_and_gaps_share_a_walk():
    study = Study("s", methods=("IR",), step_sizes=(0.5,), steps=60, gaps=(2, 5), runs=2, **ROOMS)
    walks = [TaskInputs(task).off_policy for task in study.tasks()]
    for column in ("x", "action", "next_state"):
        first, second, other = (getattr(walks[i], column) for i in (0, 1, 2))
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, other)


def test_a_diverged_lane_has_infinite_error_and_its_neighbour_not():
    study = Study("s", methods=("IS",), step_sizes=(0.5, 1e6), **{**FIXED, "updates": 400}, runs=1)
    outcome = run_task(next(study.tasks()))[0]
    assert np.isfinite(outcome.error[0])
    assert outcome.error[1] == outcome.final[1] == np.inf


def test_a_task_stops_when_told():
    study = Study("s", methods=("IR",), step_sizes=STEPS, runs=1, **FIXED)
    with pytest.raises(Interrupted):
        run_task(next(study.tasks()), stop=lambda: True)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    ("x", "share", "size"),
    [([[0, 1], [1, 0]], [[0.5], [0.5]], 4), ([[0], [1]], [[1.0, 0.0], [1.0, 0.0]], 2)],
    ids=["features", "actions"],
)
def test_a_lane_is_dead_even_where_only_a_weight_that_no_state_shows_is_lost(
    x, share, size, squared
):
    x, share = np.array(x, np.int32), np.array(share)
    hidden = rows_outside_evaluation(x, share, np.ones(size, bool))
    assert hidden.tolist() == [2, 3]
    learned = np.isin(np.arange(size), x)
    rows = rows_outside_evaluation(x, share, learned)
    assert rows.tolist() == [row for row in (2, 3) if row % size in x]
    weights = np.zeros((4, 3))
    weights[3, 1], weights[2, 2] = np.nan, np.inf
    dead, error = np.zeros(3, np.bool_), np.empty(3)
    target = x, share, hidden, np.array([1.0, 1.0]), np.empty(0), *sum_tree(x, share)
    measure(weights, target, squared, dead, error)
    assert dead.tolist() == [False, True, True]
    assert error.tolist() == [1.0, np.inf, np.inf]


UPDATE = """
from dataclasses import dataclass

import gvf, numba

@numba.njit
def add(state, experience, slots, w):
    for slot in slots:
        state.weights[experience.x[slot, 0]] += {amount}

@dataclass(frozen=True)
class Add(gvf.updates.Update):
    step_size: float = 1.0
    kernel = staticmethod(add)
"""


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("of_the_study", [True, False])
def test_an_update_of_a_reloaded_module_is_the_new_one(of_the_study):
    file = write("own_update.py", UPDATE.format(amount=0.001))
    method = (
        {"correction": "IR"} if of_the_study else {"correction": "IR", "update": "own_update:Add"}
    )
    update = "own_update:Add" if of_the_study else "sgd"
    task = next(Study("s", methods=(method,), update=update, **CHAIN).tasks())
    before = run_task(task)[0].error
    file.write_text(UPDATE.format(amount=0.00225))
    importlib.reload(sys.modules["own_update"])
    assert run_task(task)[0].error != before
