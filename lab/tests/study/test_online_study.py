"""Studies of online algorithms: against plain loops over all steps, and as any other study."""

import io
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import charts_reference as reference
import numpy as np
import pyarrow.parquet as pq
import pytest
from charts_reference import Floats, Step

from gvf.jobs.threads import Interrupted
from gvf_lab import domain as domains
from gvf_lab.report.study_pages import plot
from gvf_lab.study import OnlineStudy, Results, Store, load, run
from gvf_lab.study import online_study as online
from gvf_lab.study.base_study import seed_for
from gvf_lab.study.encoding import encode
from gvf_lab.study.online_study import Choice
from gvf_lab.study.settings import settings
from gvf_lab.study.study_file import as_toml

STEPS, POINTS = 3000, 4


def study(*methods: str, domain: str = "rooms", **changes: object) -> OnlineStudy:
    given: dict[str, object] = {
        "step_sizes": (0.01,), "steps": STEPS, "points": POINTS, "runs": 2,
    }  # fmt: skip
    return OnlineStudy("o", domain, methods, **(given | changes))  # pyright: ignore


@cache
def stream(domain: str, question: str, behaviour: str) -> list[Step]:
    """The steps of run 1 as a question sees them, those included at which it is not active."""
    world = domains.get(domain).for_run(1, 0)
    assert isinstance(world, domains.TabularDomain)
    mu = world.table(world.behaviour(behaviour))
    pi = world.target_table(question)
    path = world.walk(
        world.behaviour(behaviour), [question], STEPS, seed_for(0, 1, "walk", behaviour)
    )
    signals, active = path.signals[question], world.active_cells(question)
    _, actions, outcomes = world.model.probability.shape
    assert path.kind is not None
    state = path.kind // (actions * outcomes)
    ended = world.model.terminal[path.next_state]
    steps, g = [], 0.0
    for t in range(STEPS):
        x, x_next = np.zeros((2, world.features.size))
        x[path.x[t]], x_next[path.x_next[t]] = 1, 1
        place = state[t], path.action[t]
        chances = float(pi[place]), float(mu[place])
        g_next = signals.continuation[t]
        steps.append(
            Step(x, x_next, *chances, g, g_next, signals.cumulant[t], bool(active[state[t]]))
        )
        g = 0.0 if ended[t] else g_next
    return steps


def errors(domain: str, behaviour: str, oracle: Callable[..., Iterator[Floats]]) -> Floats:
    """The error before every step, averaged over questions."""
    world = domains.get(domain).for_run(1, 0)
    total = np.zeros(STEPS)
    for question in world.questions:
        truth = world.truth(question, behaviour)
        x = np.zeros((len(truth.states), world.features.size))
        np.put_along_axis(x, world.features(truth.states), 1.0, axis=1)
        steps = stream(domain, question, behaviour)
        weights = list(oracle(steps))[:-1]
        total += [truth.root_mean_square_error(x @ w) for w in weights]
    return total / len(world.questions)


CASES: dict[str, tuple[Choice, Callable[..., Iterator[Floats]]]] = {
    "TD(lambda)": (Choice(0.01, 0.5), lambda s: reference.td(s, 0.01, 0.5)),
    "GTD(lambda)": (Choice(0.01, 0.5, 2.0), lambda s: reference.gtd(s, 0.01, 0.5, 2.0)),
    "GTD2(lambda)": (Choice(0.01, 0.5, 2.0), lambda s: reference.gtd2(s, 0.01, 0.5, 2.0)),
    "HTD(lambda)": (Choice(0.01, 0.0, 2.0), lambda s: reference.htd(s, 0.01, 0.0, 2.0)),
    "Proximal GTD2(lambda)": (
        Choice(0.01, 0.5, 2.0),
        lambda s: reference.proximal_gtd2(s, 0.01, 0.5, 2.0),
    ),
    "TDRC(lambda)": (Choice(0.01, 0.5), lambda s: reference.tdrc(s, 0.01, 0.5)),
    "Emphatic TD(lambda)": (Choice(0.001, 0.5), lambda s: reference.emphatic_td(s, 0.001, 0.5)),
    "Emphatic TD(lambda, beta)": (
        Choice(0.001, 0.5, beta=0.4),
        lambda s: reference.emphatic_td(s, 0.001, 0.5, 0.4),
    ),
    "Tree Backup(lambda)": (Choice(0.01, 0.5), lambda s: reference.tree_backup(s, 0.01, 0.5)),
    "V-trace(lambda)": (Choice(0.01, 0.5), lambda s: reference.v_trace(s, 0.01, 0.5)),
    "ABTD(zeta)": (Choice(0.01, zeta=0.7), lambda s: reference.abtd(s, 0.01, 0.7, 4.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_are_those_of_a_plain_loop_over_all_steps(name: str) -> None:
    choice, oracle = CASES[name]
    grids = {online.GRIDS[key]: (value,) for key, value in choice._asdict().items() if value}
    grids = {"trace_decays": (0.0,)} | grids
    for domain, behaviour in (("rooms", "uniform"), ("collision", "turning")):
        one = study(name, domain=domain, **grids)
        assert one.choices(name) == (choice,)
        found = one.compute(list(one.tasks())[1], lambda: False)
        want = errors(domain, behaviour, oracle)
        assert want.max() < 2, "the comparison is absolute"
        np.testing.assert_allclose(found["error"], want.mean(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found["final"], want[-30:].mean(), rtol=0, atol=1e-10)
        parts = want.reshape(POINTS, -1).mean(axis=1)
        np.testing.assert_allclose(found["curve"][0], parts, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(found["curve_steps"][0], [375, 1125, 1875, 2625])


def test_every_algorithm_is_compared() -> None:
    assert {*CASES} == {*online.NAMED}


def test_a_part_has_the_same_bits_alone_and_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = study(
        "TD(lambda)", "GTD(lambda)",
        step_sizes=(0.001, 0.01, 0.1), trace_decays=(0.0, 0.9), etas=(0.5, 1.0, 4.0), points=7,
    )  # fmt: skip
    task = list(grid.tasks())[1]
    whole = grid.compute(task, lambda: False)
    names = list(task.parts())
    assert len(names) == 6 + 18
    name = "o/all/uniform/run-1/GTD(lambda)/step_size=0.01,trace_decay=0.9,eta=4.0"
    monkeypatch.setattr(online, "ERRORS", 1000)
    part = grid.part(name)
    alone = part.study.compute(part, lambda: False)
    for column in ("error", "final", "curve"):
        np.testing.assert_array_equal(alone[column][0], whole[column][names.index(name)])


def test_a_lane_that_diverges_is_infinite_from_then_on() -> None:
    one = study("TD(lambda)", domain="collision", step_sizes=(0.01, 3.0), points=50)
    found = one.compute(next(one.tasks()), lambda: False)
    assert np.isfinite(found["error"]).tolist() == [True, False]
    assert found["error"][1] == found["final"][1] == np.inf
    finite = np.isfinite(found["curve"][1])
    assert finite[0], "it begins at 0, with a finite error"
    assert not finite[np.argmin(finite) :].any()


def test_a_task_stops_when_told() -> None:
    one = study("TD(lambda)")
    with pytest.raises(Interrupted):
        one.compute(next(one.tasks()), lambda: True)


def test_results_are_stored_read_and_drawn(tmp_path: Path) -> None:
    one = study(
        "TD(lambda)", "Emphatic TD(lambda, beta)", "ABTD(zeta)", domain="collision",
        step_sizes=(0.01, 0.05), trace_decays=(0.0, 1.0), betas=(0.5,), zetas=(0.2, 0.4, 0.6),
    )  # fmt: skip
    run(one, tmp_path)
    results = Results.read(Store(one, tmp_path))
    task = list(one.tasks())[1]
    found = one.compute(task, lambda: False)["error"]
    np.testing.assert_array_equal(results.of("TD(lambda)").error[1], found[:4])
    np.testing.assert_array_equal(results.of("ABTD(zeta)").error[1], found[8:])
    lines = (plot(one, tmp_path)[2]).read_text().splitlines()
    at = [line.split(",")[2:5] for line in lines if line.startswith("both,main,TD(lambda)")]
    best = results.of("TD(lambda)").error.mean(axis=0).reshape(2, 2).min(axis=1)
    assert [(float(x), float(y)) for _, x, y in at] == [
        (x, pytest.approx(y)) for x, y in zip((0.01, 0.05), best, strict=True)
    ]


def test_a_file_gives_the_same_study(tmp_path: Path) -> None:
    one = study("TD(lambda)", "GTD2(lambda)", pairs=(("SW-H0", "uniform"), ("all", "uniform")))
    file = tmp_path / "o.toml"
    file.write_text(as_toml(one))
    assert load(file) == one
    first, second, *_ = one.tasks()
    assert (first.name, second.name) == ("o/SW-H0/uniform/run-0", "o/all/uniform/run-0")
    assert one.with_(domain="collision").pairs == (("wall", "turning"),)


def test_columns_of_parameters_come_after_those_of_every_file() -> None:
    one = study("TD(lambda)", domain="collision", steps=20, points=1)
    task = next(one.tasks())
    table = pq.read_table(io.BytesIO(encode(task, one.compute(task, lambda: False))))
    assert table.column_names[-3:] == ["trace_decay", "beta", "zeta"]
    assert table["trace_decay"].to_pylist() == [0.0]
    assert table["zeta"].to_pylist() == [None]


def test_an_algorithm_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_online.py").write_text(
        "from dataclasses import dataclass\n"
        "import gvf\n"
        "@dataclass(frozen=True)\n"
        "class Mine(gvf.online.TDLambda):\n"
        "    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    one = study("TD(lambda)", "my_online:Mine", domain="collision")
    one.check()
    found = one.compute(next(one.tasks()), lambda: False)["error"]
    assert found[0] == found[1]
    assert settings(one)["code"], "other code may have other results"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ("TD(lamda)",)}, r"unknown algorithm: 'TD\(lamda\)'; did you mean"),
        ({"methods": "TD(lambda)"}, "methods must be a list of algorithms"),
        ({"methods": ()}, "methods must be a list of algorithms"),
        ({"methods": ("ABTD(zeta)",)}, r"ABTD\(zeta\) needs zetas"),
        ({"methods": ("pathlib:Path",)}, "'pathlib:Path' is not a subclass of gvf.online.Algo"),
        ({"step_sizes": ()}, r"TD\(lambda\) needs step_sizes"),
        ({"step_sizes": (-0.1,)}, "step_size must be finite and not negative"),
        ({"trace_decays": (1.5,)}, r"trace_decay must be in \[0, 1\], got"),
        ({"trace_decays": (0.5, 0.5)}, "trace_decays has something twice"),
        ({"points": 4000}, "4000 points need as many steps, got 3000"),
        ({"pairs": (("north", "uniform"),)}, "unknown question of rooms in pairs: 'north'"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        study("TD(lambda)").with_(**changes)
    assert "\n" not in str(caught.value)
