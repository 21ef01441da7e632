"""Studies: the compiled loop against the dumb updates, draws, schedules, reference values."""

import re
from dataclasses import dataclass

import dumb
import numpy as np
import pytest
from oracles import p_value

import gvf
from gvf import domain as domains
from gvf.correction import RATIO, WINDOW, by_ratio, kernel
from gvf.study import (
    NAMED,
    Interrupted,
    Method,
    Study,
    VarianceStudy,
    load,
    run_method,
    run_task,
    run_variance,
)
from gvf.study.base import seed_for
from gvf.study.draws import draw
from gvf.study.loop import measure
from gvf.study.task import SharedInputs, schedule, unseen
from gvf.study.toml import as_toml

CHAIN = {"domain": "markov-chain", "pairs": (("hard", "hard"),)}
ROOMS = {"domain": "four-rooms", "pairs": (("favoured-down", "random-state"),)}
TILES = {
    "domain": "continuous-four-rooms",
    "pairs": (("favoured-down", "uniform"),),
    "evaluation_states": 20,
    "measure_every": 7,
}
FIXED = {**CHAIN, "pairs": (("easy", "easy"),), "steps": 300, "updates": 20}
ONLINE = {"steps": 90, "window": 40, "warm_up": 10, "gaps": (4,)}
STEPS = (0.0, 0.3, 0.7)


@pytest.fixture(autouse=True)
def truths_in_a_temporary_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "truth"))


def dumb_errors(task, name, lane):
    """One lane of one method of a task: dense vectors, the formulas, and every measurement."""
    study, bench, method = task.study, SharedInputs(task), task.study.method(name)
    path = bench.on_policy if method.on_policy else bench.off_policy
    asked, domain = path.signals[task.question], bench.domain
    assert isinstance(domain, domains.CellDomain)
    ratio, pi = asked.ratio, domain.table(domain.target(task.question))
    actions = pi.shape[1]

    def cells(places):
        return places if places.ndim == 1 else (places // 1 @ [11, 1]).astype(int)

    def vectors(x, share):
        rows = np.zeros((len(x), domain.features.size))
        for row, active in zip(rows, x, strict=True):
            row[active] = 1.0
        return np.einsum("mb,mf->mbf", share, rows).reshape(len(x), -1)

    one = np.ones((len(path.action), 1))
    share, share_next, states_share = one, one, np.ones((len(bench.truth.states), 1))
    if method.update in ("sarsa", "expected sarsa"):
        share, share_next = np.eye(actions)[path.action], pi[cells(path.next_state)]
        if method.update == "sarsa":
            seed = seed_for(study.seed, task.run, "next action", task.question, task.behaviour)
            for row, u in zip(
                share_next, np.random.default_rng(seed).random(len(one)), strict=True
            ):
                row[:] = np.eye(actions)[next(a for a in range(actions) if u < row[: a + 1].sum())]
        states_share = pi[cells(bench.truth.states)]
    x, x_next = vectors(path.x, share), vectors(path.x_next, share_next)
    states = vectors(domain.features(bench.truth.states), states_share)
    kind = {"wis-td": "wis_td"}.get(method.update, study.update)
    constants = {"u0": lane[0], "eta": lane[1]} if kind == "wis_td" else {"alpha": lane}
    if kind in ("tdc", "tdrc"):
        constants = {**constants, "ratio": 1.0, "beta": 1.0 if kind == "tdrc" else 0.0}
        kind = "tdc"
    update = dumb.DumbUpdate(kind=kind, rows=x.shape[1], **constants)
    correction = method.make(domain.largest_ratio(task.question, task.behaviour))
    draws = bench.draws(correction, on_policy=method.on_policy)

    errors, done = [], 0
    for t in range(1, (study.updates or study.steps) + 1):
        due = t if study.updates else max(t - study.warm_up, 0) // task.gap
        while done < due:
            begin, end = draws.first[done], draws.last[done]
            whole = isinstance(dumb.masses(correction, ratio), str)
            rows = np.arange(begin, end) if whole else draws.rows[done]
            if rows[0] >= 0:
                w = dumb.weigh(correction, ratio[rows], ratio[begin:end])
                signals = asked.cumulant[rows], asked.continuation[rows]
                update.apply(x[rows], x_next[rows], *signals, w)
            done += 1
        if t % study.measure_every == 0:
            difference = np.abs(states @ update.weights - bench.truth.values)
            squared = study.error == "root mean square"
            errors.append(np.sqrt((difference**2).mean()) if squared else difference.mean())
    return np.array(errors)


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


def test_a_part_of_update_variance_is_found_by_its_name():
    study = VarianceStudy("v", iterations=(0, 5), batches=20, buffer=100, runs=2)
    task = list(study.tasks())[4]
    names = list(task.parts())
    assert names[1] == "v/hard/hard/run-1/BC-IR"
    alone = run_variance(study.part(names[1]))
    assert list(alone) == ["BC-IR"]
    np.testing.assert_array_equal(alone["BC-IR"], run_variance(task)["BC-IR"])
    with pytest.raises(
        ValueError, match=r"unknown part of v/hard.*: 'IRR'; did you mean 'IR'\? Known"
    ):
        study.part(f"{task.name}/IRR")
    with pytest.raises(ValueError, match="is called 'IR'; a task is called, for example, 'v/easy"):
        study.part("IR")


def test_a_number_is_the_same_however_it_is_written():
    good = {"name": "s", "domain": "markov-chain", "methods": ["IR"], "updates": 5}
    plain = Study(**good, step_sizes=(1.0, 2.0), runs=1)
    numpy: dict = {"step_sizes": np.array([1, 2]), "runs": np.int64(1)}
    other = Study(**good, **numpy)
    assert other == plain
    assert list(next(other.tasks()).parts()) == list(next(plain.tasks()).parts())


def test_runs_differ_and_gaps_share_a_walk():
    study = Study("s", methods=("IR",), step_sizes=(0.5,), steps=60, gaps=(2, 5), runs=2, **ROOMS)
    walks = [SharedInputs(task).off_policy for task in study.tasks()]
    for column in ("x", "action", "next_state"):
        first, second, other = (getattr(walks[i], column) for i in (0, 1, 2))
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, other)


@kernel
def _twice_the_ratio(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = 2.0 * inputs[RATIO, i] / out.size


@kernel
def _twice_the_same(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = 2.0 / out.size


@kernel
def _twice_the_share(inputs, p, means, parameters, out):
    total = 0.0
    for i in range(out.size):
        total += inputs[RATIO, i]
    for i in range(out.size):
        out[i] = 2.0 * inputs[RATIO, i] / total


@dataclass(frozen=True)
class TwiceIS(gvf.Correction):
    weigh = _twice_the_ratio


@dataclass(frozen=True)
class Limited(gvf.Correction):
    limit: float | None = None
    weigh = _twice_the_ratio


@dataclass(frozen=True)
class TwiceIR(gvf.Correction):
    mass = by_ratio
    weigh = _twice_the_same


@dataclass(frozen=True)
class TwiceOnPolicy(gvf.Correction):
    weigh = _twice_the_same


@dataclass(frozen=True)
class TwiceWISOptimal(gvf.Correction):
    mass = WINDOW
    weigh = _twice_the_share


LOOPS = {
    "fixed buffer": (FIXED, "IS", TwiceIS),
    "fixed buffer, by ratio": (FIXED, "IR", TwiceIR),
    "fixed buffer, action values": (FIXED, "Expected Sarsa", TwiceOnPolicy),
    "fixed buffer, whole": (FIXED, "WIS-Optimal", TwiceWISOptimal),
    "online, table": ({**ROOMS, **ONLINE}, "IS", TwiceIS),
    "online, table, by ratio": ({**ROOMS, **ONLINE}, "IR", TwiceIR),
    "online, table, action values": ({**ROOMS, **ONLINE}, "Sarsa", TwiceOnPolicy),
    "online, table, whole window": ({**ROOMS, **ONLINE}, "WIS-Optimal", TwiceWISOptimal),
    "online, tiles": ({**TILES, **ONLINE}, "IS", TwiceIS),
    "online, tiles, by ratio": ({**TILES, **ONLINE}, "IR", TwiceIR),
    "online, tiles, action values": ({**TILES, **ONLINE}, "Expected Sarsa", TwiceOnPolicy),
    "online, dense features": ({"domain": "star", **ONLINE}, "IR", TwiceIR),
    "online, dense features, whole window": (
        {"domain": "star", **ONLINE}, "WIS-Optimal", TwiceWISOptimal,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "known", "twice"), LOOPS.values(), ids=LOOPS)
def test_a_new_correction_runs_in_every_loop(settings, known, twice):
    """Twice a known one's weights are, to the last bit, twice its step size."""
    new = {"correction": f"test_study:{twice.__name__}", "update": NAMED[known].update}
    if not NAMED[known].update:
        assert Method.of(twice()) == Method.of(twice) == Method.of(new)  # a table, or the class
    study = Study(
        "s", methods=(known, new | {"name": "New"}), step_sizes=(0.02, 0.04), runs=1, **settings
    )
    plain, doubled = run_task(next(study.tasks()))
    assert doubled.error[0] == plain.error[1] != plain.error[0]
    np.testing.assert_array_equal(doubled.curve[0], plain.curve[1])


@pytest.mark.parametrize(
    ("changes", "update", "message"),
    [
        ({**TILES, **ONLINE}, "", "New needs the whole window .* not with continuous states"),
        ({**FIXED, "update": "incremental"}, "", "New has no draws .* no incremental update"),
        (FIXED, "sarsa", "New needs a next action for each draw, and has no draws"),
    ],
)
def test_where_a_new_correction_makes_no_sense_is_said(changes, update, message):
    new = {"correction": "test_study:TwiceWISOptimal", "update": update, "name": "New"}
    with pytest.raises(ValueError, match=message):
        Study("s", methods=(new,), step_sizes=(1.0,), **changes)


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


def test_draws_come_from_the_window_before_the_update():
    """Rows are drawn uniformly or by mass (chi-square, level 1e-4) from the last n rows."""
    rng = np.random.default_rng(0)
    ratio = np.where(rng.random(500) < 0.3, 0.0, rng.lognormal(size=500))
    kwargs = {"window": 50, "batch_size": 2000, "warm_up": 20, "gap": 60}
    for correction in (gvf.IS(), gvf.IR(), gvf.Interpolated(0.3)):
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
    for correction in (gvf.IR(), gvf.BCIR(), gvf.Interpolated(0.5)):
        draws = draw(correction, np.zeros(10), **options)
        assert (draws.rows == -1).all()
        assert not draws.weights(correction).any()
    assert (draw(gvf.IS(), np.zeros(10), **options).rows >= 0).all()


def test_a_diverged_lane_has_infinite_error_and_its_neighbour_not():
    study = Study("s", methods=("IS",), step_sizes=(0.5, 1e6), **{**FIXED, "updates": 400}, runs=1)
    outcome = run_task(next(study.tasks()))[0]
    assert np.isfinite(outcome.error[0])
    assert outcome.error[1] == outcome.final[1] == np.inf


def test_a_task_stops_when_told():
    study = Study("s", methods=("IR",), step_sizes=STEPS, runs=1, **FIXED)
    with pytest.raises(Interrupted):
        run_task(next(study.tasks()), stop=lambda: True)


REFERENCE = {
    # method: (least error, where it passes 1), hard pair, 100 runs
    "IR": (0.0303, 7.09),
    "BC-IR": (0.0303, 7.01),
    "IS": (0.0416, 2.91),
    "WIS-Minibatch": (0.149, 3.27),
    "WIS-Buffer": (0.0416, 2.90),
    "V-trace(0.5 max)": (0.0797, 5.87),
    "V-trace(0.9 max)": (0.0437, 3.24),
    "WIS-Optimal": (0.0076, 7.00),
    "Sarsa": (0.063, 10.4),
    "Expected Sarsa": (0.0355, 10.9),
    "On-policy": (0.0208, 7.04),
}


def errors_of(study):
    """Errors [runs, step sizes] of every method."""
    errors = {name: [] for name in study.methods}
    for task in study.tasks():
        for outcome in run_task(task):
            errors[outcome.method].append(outcome.error)
    return {name: np.array(runs) for name, runs in errors.items()}


def assert_near(runs, value, digit):
    """Within 3 standard errors of ours and a reference of as many runs, and its last digit."""
    standard_error = runs.std(ddof=1) / np.sqrt(len(runs))
    assert abs(runs.mean() - value) < 3 * np.sqrt(2) * standard_error + digit


def crossing(sizes, errors):
    """The step size at which the mean error passes 1, between two of the grid."""
    mean = errors.mean(axis=0)
    above = int(np.argmax(mean > 1))
    below, over = mean[above - 1], mean[above]
    part = np.log(1 / below) / np.log(over / below) if np.isfinite(over) else 0.5
    return sizes[above - 1] + part * (sizes[above] - sizes[above - 1])


def test_the_chain_has_its_reference_values():
    """Minima within 3 standard errors of 100 runs; crossings, which vary by 2 %, over 3 seeds."""
    sizes = tuple(np.arange(0, 121).round() / 10)
    crossings = {name: [] for name in REFERENCE}
    for seed in range(3):
        study = Study("s", methods=(*REFERENCE, "V-trace(1.0)"), step_sizes=sizes, runs=100,
                      seed=seed, **{**CHAIN, "steps": 15_000, "updates": 1000})  # fmt: skip
        errors = errors_of(study)
        for name, (least, _) in REFERENCE.items():
            mean = errors[name].mean(axis=0)
            assert mean[0] == pytest.approx(0.517162, abs=5e-7)
            assert_near(errors[name][:, int(np.argmin(mean))], least, 5e-5 if least < 0.1 else 5e-4)
            crossings[name].append(crossing(sizes, errors[name]))
        assert_near(errors["V-trace(1.0)"][:, 100], 0.349, 5e-4)
        assert (errors["V-trace(1.0)"].mean(axis=0) < 1).all()
    for name, (_, reference) in REFERENCE.items():
        assert np.mean(crossings[name]) == pytest.approx(reference, rel=0.02), name


def test_the_easy_and_the_hardest_pair_have_their_reference_values():
    sizes = (0.2, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
    common = {"domain": "markov-chain", "steps": 15_000, "updates": 1000, "runs": 100}
    for pair, least in (("easy", {"IS": 0.0177, "IR": 0.0233}), ("hardest", {"IR": 0.038})):
        errors = errors_of(Study("s", methods=tuple(least), step_sizes=sizes,
                                 pairs=((pair, pair),), **common))  # fmt: skip
        for name, value in least.items():
            best = errors[name][:, int(np.argmin(errors[name].mean(axis=0)))]
            assert_near(best, value, 0.03 * value)
        if pair == "easy":
            assert errors["IS"].mean(axis=0).min() < errors["IR"].mean(axis=0).min()


def test_the_continuous_rooms_have_their_reference_values():
    """Protocol "authors", 25 runs: RMSProp with an update every 256 steps; SGD at every step."""
    common = {"domain": TILES["domain"], "protocol": "authors", "pairs": (("down", "uniform"),),
              "steps": 100_000, "warm_up": 1000, "measure_every": 100,
              "evaluation_states": 100}  # fmt: skip
    reference = {"IR": 0.274, "IS": 0.394, "WIS-Minibatch": 0.396, "V-trace(1.0)": 0.394}
    errors = errors_of(Study("s", methods=tuple(reference), step_sizes=(5e-4, 1e-3, 5e-3),
                             update="rmsprop", gaps=(256,), runs=25, **common))  # fmt: skip
    for name, value in reference.items():
        best = errors[name][:, int(np.argmin(errors[name].mean(axis=0)))]
        assert_near(best, value, 5e-4)
    sgd = errors_of(Study("s", methods=("IR",), step_sizes=(0.025, 0.3, 0.4), runs=4, **common))
    assert_near(sgd["IR"][:, 0], 0.193, 5e-4)
    assert (sgd["IR"][:, 1] < 1).all()
    assert (sgd["IR"][:, 2] > 1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": "maze"}, "unknown .*'maze'.*'markov-chain'"),
        ({"methods": ("IRR",)}, r"unknown method: 'IRR'; did you mean 'IR'\?$"),
        ({"pairs": (("down", "hard"),)}, "unknown question of markov-chain in pairs: 'down'; kn"),
        ({"pairs": (("hard", "x"),)}, "unknown behaviour of markov-chain in pairs: 'x'; known"),
        ({"update": "newton"}, "unknown update: 'newton'.*'sgd'"),
        ({"methods": ("WIS-TD(0)",)}, "needs u0 and mu"),
        ({"step_sizes": ()}, "IR needs step_sizes"),
        ({"methods": ("Sarsa",), "update": "incremental"}, "unknown update for sarsa: 'inc"),
        ({"methods": ("WIS-Optimal",), "domain": "continuous-four-rooms", "pairs": ()}, "table"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"gaps": (0,)}, "gaps must be at least 1"),
        ({"updates": 10, "gaps": (2,)}, "no gaps"),
        ({"protocol": "mine"}, "unknown protocol: 'mine'"),
        ({"measure_every": 20_000}, "nothing would be measured"),
        ({"warm_up": 15_000}, "no update would come in 15000 steps"),
        ({"warm_up": -5}, "warm_up must be at least 0, got -5"),
        ({"updates": -5}, "updates must be at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"evaluation_states": 0}, "evaluation_states must be at least 1"),
        ({"gaps": ()}, "gaps must name at least one"),
        ({"methods": ()}, "methods must name at least one"),
        ({"methods": ("IR", "IR")}, "methods has something twice"),
        ({"methods": "IR"}, "methods must be a list of methods, got 'IR'"),
        ({"name": "a b"}, "a study cannot be called 'a b'"),
        ({"runs": 2.5}, "runs must be a whole number, got 2.5"),
        ({"step_sizes": (-0.1,)}, "step_sizes must be finite and not negative, got -0.1"),
        ({"step_sizes": (float("nan"),)}, "step_sizes must be finite"),
        ({"u0": (0.0,), "mu": (1.0,)}, "u0 must be finite and positive, got 0.0"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(changes, message):
    good = {"name": "s", "domain": "markov-chain", "methods": ("IR",), "step_sizes": (1.0,)}
    with pytest.raises(ValueError, match=message):
        Study(**{**good, **changes})


ROOM = 'domain = "four-rooms"\nmethods = ["IR"]\n'
VARIANCE = 'kind = "variance"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("domain = ", "is not TOML"),
        (
            'domian = "four-rooms"',
            r"unknown key: 'domian'; did you mean 'domain'\? \(`gvf show STUDY` shows all\)",
        ),
        ('domain = "four-rooms"', "methods is missing; needed are domain and methods"),
        (ROOM + "runs = 'many'", "runs must be a whole number, got 'many'"),
        (ROOM + "runs = 1e4", "runs must be a whole number, got 10000.0"),
        (ROOM + "runs = true", "runs must be a whole number, got true"),
        (ROOM + "error = 1", "error must be a name, got 1"),
        ('domain = "four-rooms"\nmethods = "IR"', "methods must be a list of methods, got 'IR'"),
        (ROOM + "step_sizes = 'x'", "step_sizes must be a list of numbers, got 'x'"),
        (ROOM + "step_sizes = [1, 'a']", "step_sizes must be a list of numbers, but item 2 is 'a'"),
        (ROOM + "gaps = [true]", "gaps must be a list of whole numbers, but item 1 is true"),
        (
            ROOM + 'pairs = [["down"]]',
            r"pairs must be a list of pairs \[question, behaviour\], but item 1 is \['down'\]",
        ),
        (ROOM + "step_sizes = [-1]", "step_sizes must be finite and not negative, got -1"),
        (ROOM + 'pairs = [["up", "x"]]', "unknown question of four-rooms in pairs: 'up'"),
        (ROOM + 'kind = "x"', "unknown kind: 'x'; known are 'errors', 'variance'"),
        (ROOM + "kind = [1]", r"kind must be a name, got \[1\]$"),
        (
            VARIANCE + "steps = 5",
            r"unknown key: 'steps'; did you mean 'step_size'\? ",
        ),
        (VARIANCE + "buffer = 1.5", "buffer must be a whole number, got 1.5"),
        (VARIANCE + "step_size = 'a'", "step_size must be a number, got 'a'"),
        (VARIANCE + "step_size = inf", "step_size must be finite and not negative, got inf"),
        (VARIANCE + "iterations = [5, 0]", r"iterations must increase, got \[5, 0\]"),
        (VARIANCE + "iterations = [-1, 0]", "iterations must be at least 0, got -1"),
        (VARIANCE + "iterations = []", "iterations must name at least one"),
        (VARIANCE + "iterations = [0, 0]", "iterations has something twice: 0"),
        (VARIANCE + "methods = []", "methods must name at least one"),
        (VARIANCE + 'methods = ["IS", "IS"]', "methods has something twice: 'IS'"),
        (VARIANCE + 'methods = ["IRR"]', r"unknown method: 'IRR'; did you mean 'IR'\?$"),
        (VARIANCE + 'pairs = [["hard", "x"]]', "unknown behaviour of markov-chain in pairs: 'x'"),
    ],
)
def test_a_malformed_file_is_named_and_so_is_the_key(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"mine.toml:? {message}"):
        load(file)


def test_a_study_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'domain = "four-rooms"\nmethods = ["IR", "IS"]\nstep_sizes = [1, 0.5]\n'
        'pairs = [["down", "uniform"]]\ngaps = [1, 16]\nruns = 2\n'
    )
    study = load(file)
    assert study == Study("mine", "four-rooms", ("IR", "IS"), (1, 0.5),
                          pairs=(("down", "uniform"),), gaps=(1, 16), runs=2)  # fmt: skip
    assert len(list(study.tasks())) == 4


def test_methods_of_every_form_are_written_to_a_file_and_read_back(tmp_path):
    methods = (
        "IR", "V-trace(0.5 max)", "VTrace(0.3)", TwiceIS, Limited(), Limited(2.0),
        {"correction": "VTrace", "clip": "0.7 max", "name": 'called "so"', "colour": "#117733"},
        {"correction": "IS", "update": "tdrc"},
        {"correction": "IR", "update": {"rule": "rmsprop", "decay": 0.8}},
        {"correction": "OnPolicy", "on_policy": True, "update": "expected sarsa"},
    )  # fmt: skip
    study = Study("mine", "four-rooms", methods, (0.5, 1.0), runs=2)
    assert len(study.own) == 8
    file = tmp_path / "mine.toml"
    file.write_text(as_toml(study))
    again = load(file)
    assert again == study
    assert [again.method(name) for name in again.methods] == [Method.of(one) for one in methods]
    assert again.method('called "so"').colour == "#117733"
    assert again.method('called "so"').make(10.0) == gvf.VTrace(7.0)


def test_a_study_of_update_variance_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('kind = "variance"\nname = "v"\niterations = [0, 5]\nstep_size = 2\n')
    assert load(file) == VarianceStudy("v", iterations=(0, 5), step_size=2.0)


def test_update_variance_is_that_of_the_formula():
    """The signed sum's variance given the buffer, for IS, BC-IR and IR: within 6 %, 20,000 batches.

    The standard error of a variance of heavy-tailed sums of 16 is about 1.5 % here.
    """
    study = VarianceStudy("v", methods=("IS", "BC-IR", "IR"), pairs=(("hard", "hard"),),
                          buffer=2000, iterations=(0, 3), batches=20_000, runs=1)  # fmt: skip
    measured = run_variance(next(study.tasks()))
    chain = domains.get("markov-chain")
    assert isinstance(chain, domains.TabularDomain)
    mu, pi = chain.table(chain.behaviour("hard")), chain.table(chain.target("hard"))
    seed = seed_for(0, 0, "walk", "hard")
    path = chain.walk(chain.behaviour("hard"), ["hard"], 2000, seed)
    state, after, asked = path.x[:, 0], path.next_state, path.signals["hard"]
    rho = (pi / mu)[state, path.action]
    values, share = np.zeros(10), rho / rho.sum()
    for row, updates in enumerate((0, 3)):
        for _ in range(updates):
            delta = asked.cumulant + asked.continuation * values[after] - values[state]
            values = values + np.bincount(state, share * delta, 10)
        delta = asked.cumulant + asked.continuation * values[after] - values[state]
        mean, r = (rho * delta).mean(), rho.mean()
        expected = {
            "IS": ((rho * delta) ** 2).mean() - mean**2,
            "BC-IR": r * (rho * delta**2).mean() - mean**2,
            "IR": (rho * delta**2).mean() / r - (mean / r) ** 2,
        }
        for name, value in expected.items():
            assert measured[name][row, 2] == pytest.approx(value / 16, rel=0.06), name


@pytest.mark.parametrize(
    ("domain", "pair", "step_size"),
    [
        ("markov-chain", ("easy", "easy"), 1.0),
        ("continuous-four-rooms", ("down", "uniform"), 0.1),
        ("star", None, 0.1),
    ],
    ids=["table", "tiles", "dense features"],
)
def test_the_variance_of_norms_is_that_of_a_dumb_simulation(domain, pair, step_size):
    """The simulation has the same mini-batches, and makes each update as a whole vector."""
    world = domains.get(domain)
    assert isinstance(world, domains.CellDomain)
    pair = pair or world.pairs[0]
    study = VarianceStudy("v", domain, pairs=(pair,), buffer=300, iterations=(0, 40),
                          batches=50, step_size=step_size, runs=2)  # fmt: skip
    task = list(study.tasks())[1]
    measured = run_variance(task)
    question, behaviour = pair
    seed = seed_for(0, 1, "walk", behaviour)
    path = world.walk(world.behaviour(behaviour), [question], 300, seed)
    asked, rho = path.signals[question], path.signals[question].ratio
    x, x_next = (
        rows if rows.dtype.kind == "f" else np.eye(world.features.size)[rows].sum(axis=1)
        for rows in (path.x, path.x_next)
    )
    largest = world.ratios(question, behaviour)[world.reachable].max()
    weights = world.initial_weights.copy()
    for row, iterations in enumerate((0, 40)):
        for _ in range(iterations):
            delta = asked.cumulant + asked.continuation * (x_next @ weights) - x @ weights
            weights = weights + step_size * (rho / rho.sum() * delta) @ x
        delta = asked.cumulant + asked.continuation * (x_next @ weights) - x @ weights
        seed = seed_for(0, 1, "batches", *pair, iterations)
        for name in study.methods:
            correction, sizes = NAMED[name].make(largest), []
            draws = draw(correction, rho, window=300, batch_size=16, updates=50, seed=seed)
            for batch in draws.rows:
                w, g, signed = dumb.weigh(correction, rho[batch], rho), np.zeros(x.shape[1]), 0.0
                for i in range(16):
                    g += w[i] * delta[batch[i]] * x[batch[i]]
                    signed += w[i] * delta[batch[i]]
                sizes.append([np.abs(g).sum(), np.sqrt((g**2).sum()), signed])
            expected = np.var(sizes, axis=0, ddof=1)
            np.testing.assert_allclose(measured[name][row], expected, rtol=1e-9)
            if iterations and domain != "star":
                assert len(set(expected.round(9))) == 3  # far from each other


def test_methods_without_mini_batches_have_no_update_variance():
    with pytest.raises(ValueError, match="WIS-Optimal makes no updates from weighed"):
        VarianceStudy("v", methods=("WIS-Optimal",))
    with pytest.raises(ValueError, match="On-policy has data of its own"):
        VarianceStudy("v", methods=("On-policy",))
    with pytest.raises(ValueError, match="Sarsa makes no updates from weighed mini-batches"):
        VarianceStudy("v", methods=("Sarsa",))


def test_on_the_star_td_diverges_and_gradient_td_does_not():
    """Dense features, in the same loop: the values are 0, and start at up to 12."""
    errors = {}
    for update in ("sgd", "tdrc"):
        study = Study("s", "star", ("IR",), (0.03,), update=update, steps=20_000, window=1000,
                      measure_every=1000, runs=1)  # fmt: skip
        errors[update] = run_task(next(study.tasks()))[0]
    assert not errors["sgd"].final[0] < 1e3
    assert errors["tdrc"].final[0] < errors["tdrc"].curve[0, 0]


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
    hidden = unseen(x, share, np.ones(size, bool))
    assert hidden.tolist() == [2, 3]
    learned = np.isin(np.arange(size), x)
    assert unseen(x, share, learned).tolist() == [row for row in (2, 3) if row % size in x]
    weights = np.zeros((4, 3))
    weights[3, 1], weights[2, 2] = np.nan, np.inf
    dead, error = np.zeros(3, np.bool_), np.empty(3)
    measure(weights, x, share, hidden, np.array([1.0, 1.0]), np.empty(0), squared, dead, error)
    assert dead.tolist() == [False, True, True]
    assert error.tolist() == [1.0, np.inf, np.inf]
