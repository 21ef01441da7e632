"""Between IS and IR: the ends in the study's loop, the studies, the variance, and the page."""

import csv
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gvf import IS, BCInterpolated, Interpolated
from gvf.paper.studies import get
from gvf.study import Study, run_method, run_task
from gvf.study.method import BETWEEN
from gvf.study.results import MethodResults, Results
from gvf.study.task import SharedInputs
from tools import interpolation as tool

PAGE = Path(__file__).parents[1] / "docs" / "interpolation"
METHOD_NAMES = ("IS", "IR", "BC-IR", *BETWEEN)
SMALL = {
    "chain": {
        "domain": "markov-chain", "pairs": (("hard", "hard"),), "steps": 300, "updates": 40,
    },
    "rooms, zero ratios": {
        "domain": "four-rooms", "pairs": (("down", "random-state"),), "steps": 400,
        "window": 60, "warm_up": 3, "gaps": (4,),
    },
    "tiles": {
        "domain": "continuous-four-rooms", "pairs": (("favoured-down", "uniform"),), "steps": 90,
        "window": 40, "warm_up": 10, "gaps": (4,), "evaluation_states": 20, "measure_every": 10,
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def truths_in_a_temporary_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "truth"))


# The ends.


ZERO, BC_ZERO = Interpolated(0.0), BCInterpolated(0.0)
ONE, BC_ONE = Interpolated(1.0), BCInterpolated(1.0)


@pytest.mark.parametrize("settings", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize(("one", "end"), [(ONE, "IR"), (BC_ONE, "BC-IR")])
def test_beta_one_is_resampling_to_the_last_bit(settings, one, end):
    study = Study("s", methods=(end, one), step_sizes=(0.05, 0.3), runs=2, **settings)
    for task in study.tasks():
        known, interpolated = run_task(task)
        np.testing.assert_array_equal(interpolated.error, known.error)
        np.testing.assert_array_equal(interpolated.curve, known.curve)
        assert known.error[0] != known.error[1]


@pytest.mark.parametrize("settings", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("zero", [ZERO, BC_ZERO])
def test_beta_zero_is_reweighting_to_the_last_bit_from_the_same_draws(settings, zero):
    """Its own draws are as uniform, but come from another stream of random numbers."""
    study = Study("s", methods=("IS", zero), step_sizes=(0.05, 0.3), runs=1, **settings)
    task = next(study.tasks())
    shared = SharedInputs(task)
    interpolated, apart = (run_method(task, name, shared=shared) for name in study.methods[::-1])
    assert study.method(interpolated.method).make(1.0) == zero
    assert (apart.error != interpolated.error).all()
    shared._draws[False, IS().draw] = shared.draws(zero)
    together = run_method(task, "IS", shared=shared)
    np.testing.assert_array_equal(together.error, interpolated.error)
    np.testing.assert_array_equal(together.curve, interpolated.curve)


def test_beta_zero_has_the_error_of_reweighting_from_draws_of_its_own():
    """The mean difference of 300 runs is within 4 standard errors; that of beta = .1 is not."""
    study = Study("s", "markov-chain", ("IS", ZERO, Interpolated(0.1)), (1.0,),
                  pairs=(("hard", "hard"),), steps=2000, updates=300, runs=300)  # fmt: skip
    errors = np.array([[o.error[0] for o in run_task(task)] for task in study.tasks()])
    for column, same in ((1, True), (2, False)):
        difference = errors[:, column] - errors[:, 0]
        statistic = abs(difference.mean()) / (difference.std(ddof=1) / np.sqrt(len(difference)))
        assert (statistic < 4) == same


# The variance given the window.


def windows(count, n, rng):
    """Ratios [n], some alike and none 0, and updates [n, 3]."""
    for _ in range(count):
        yield rng.lognormal(sigma=1.2, size=n), rng.normal(size=(n, 3))


def enumerated(correction, rho, delta, k):
    """Mean and variance (the trace) of the update over all n^k batches, as the library weighs."""
    p, means = correction.masses(rho), correction.means(rho)
    p = p / p.sum()
    mean, second = np.zeros(delta.shape[1]), 0.0
    for batch in product(range(len(rho)), repeat=k):
        slots = list(batch)
        step = correction.weights(rho[slots], means=means) @ delta[slots]
        chance = p[slots].prod()
        mean, second = mean + chance * step, second + chance * step @ step
    return mean, second - mean @ mean


def lemma(beta, rho, delta, k):
    """V = (mean of rho^beta * mean of rho^(2 - beta) g - |mean of rho Delta|^2) / k."""
    g, center = (delta**2).sum(axis=1), (rho[:, None] * delta).mean(axis=0)
    return ((rho**beta).mean() * (rho ** (2 - beta) * g).mean() - center @ center) / k


@pytest.mark.parametrize("beta", [0.0, 0.25, 0.6, 1.0])
def test_the_variance_lemma_holds_for_every_beta(beta):
    rng = np.random.default_rng(1)
    for rho, delta in windows(20, 5, rng):
        mean, variance = enumerated(BCInterpolated(beta), rho, delta, 2)
        np.testing.assert_allclose(mean, (rho[:, None] * delta).mean(axis=0), rtol=1e-9)
        assert variance == pytest.approx(lemma(beta, rho, delta, 2), rel=1e-9)
        plain, less = enumerated(Interpolated(beta), rho, delta, 2)
        mass = (rho**beta).mean()
        np.testing.assert_allclose(mass * plain, mean, rtol=1e-9)
        assert mass**2 * less == pytest.approx(variance, rel=1e-9)


def sizes(delta, g):
    """The same directions, with squared lengths g."""
    return delta * np.sqrt(g / (delta**2).sum(axis=1))[:, None]


BETAS = np.linspace(0.0, 1.0, 11)


def variances(rho, delta):
    """V(beta) of the bias-corrected one for all BETAS, from one draw: enumerated."""
    return np.array([enumerated(BCInterpolated(beta), rho, delta, 1)[1] for beta in BETAS])


def test_where_updates_do_not_depend_on_ratios_resampling_has_the_least_variance():
    """Product designs, where every ratio comes with every g: V falls all the way to beta = 1."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        ratios, g = rng.lognormal(sigma=1.2, size=4), rng.lognormal(size=3)
        v = variances(np.repeat(ratios, 3), sizes(rng.normal(size=(12, 3)), np.tile(g, 4)))
        assert (np.diff(v) < 0).all()


def test_the_variance_can_only_have_its_minimum_inside_where_updates_fall_with_the_ratio():
    """Below 1 exactly if Cov_w(log rho, g) < 0, above 0 exactly if Cov(log rho, rho^2 g) > 0."""
    rng = np.random.default_rng(3)
    found = {"at 0": 0, "inside": 0, "at 1": 0}
    for power in (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        for rho, delta in windows(40, 6, rng):
            g = rng.lognormal(sigma=0.5, size=6) / rho**power
            v = variances(rho, sizes(delta, g))
            assert (np.diff(np.sign(np.diff(v))) >= 0).all()  # it falls, then it rises
            small = 1e-5
            slope = [lemma(b + small, rho, sizes(delta, g), 1) - lemma(b, rho, sizes(delta, g), 1)
                     for b in (0.0, 1.0 - small)]  # fmt: skip
            w = rho / rho.sum()
            at_one = (w * np.log(rho) * g).sum() - (w * np.log(rho)).sum() * (w * g).sum()
            at_zero = np.cov(np.log(rho), rho**2 * g)[0, 1]
            assert (at_one < 0) == (slope[1] > 0)
            assert (at_zero > 0) == (slope[0] < 0)
            found["inside" if at_one < 0 < at_zero else "at 1" if at_one >= 0 else "at 0"] += 1
    assert min(found.values()) > 10


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0, 2.0])
def test_where_updates_fall_as_a_power_of_the_ratio_the_best_beta_is_known(power):
    """The minimum for g = rho^-a is at beta = 1 - a/2, where p is proportional to rho sqrt(g)."""
    rng = np.random.default_rng(4)
    best = 1 - power / 2
    for rho, delta in windows(50, 6, rng):
        v = variances(rho, sizes(delta, rho**-power))
        assert BETAS[int(np.argmin(v))] == pytest.approx(best)


def test_with_zero_ratios_any_resampling_varies_less_than_reweighting():
    """V tends to less than that of IS as beta falls to 0, because zeros are never drawn."""
    rng = np.random.default_rng(5)
    for rho, delta in windows(50, 6, rng):
        rho[:2] = 0.0
        small = enumerated(BCInterpolated(1e-9), rho, delta, 1)[1]
        reweighting = enumerated(IS(), rho, delta, 1)[1]
        second = (rho**2 * (delta**2).sum(axis=1)).mean()
        assert reweighting - small == pytest.approx(second * 2 / 6, rel=1e-6)


def test_where_no_step_may_overshoot_resampling_makes_the_most_of_it():
    """The mean step grows with beta if the step size is as large as the largest weight allows."""
    rng = np.random.default_rng(6)
    for rho, delta in windows(50, 6, rng):
        speed = []
        for beta in BETAS:
            for correction in (Interpolated(beta), BCInterpolated(beta)):
                largest = correction.weights(rho, means=correction.means(rho)).max()
                mean, _ = enumerated(correction, rho, delta, 1)
                speed.append(np.linalg.norm(mean) / (largest * len(rho)))
        plain, corrected = np.array(speed).reshape(-1, 2).T
        np.testing.assert_allclose(plain, corrected, rtol=1e-9)
        assert (np.diff(plain) > 0).all()
        share = rho.mean() / ((rho**0.3).mean() * rho.max() ** 0.7)
        assert plain[3] / plain[-1] == pytest.approx(share, rel=1e-9)


def test_at_the_true_values_of_the_chain_the_best_beta_is_zero_or_a_half():
    """Two actions: pi delta is the same for both, so rho |delta| is in proportion to 1 / mu."""
    for mu, best in ((0.5, 0.0), (0.9, 0.5), (0.99, 0.5)):
        behaviour = np.array([mu, 1 - mu])
        target = np.array([1 - mu, mu]) if mu > 0.5 else np.array([0.1, 0.9])
        rho, delta = target / behaviour, np.array([1.0, -1.0]) / target
        beta = np.linspace(0, 1, 101)
        second = [(behaviour @ rho**b) * (behaviour @ (rho ** (2 - b) * delta**2)) for b in beta]
        assert beta[int(np.argmin(second))] == pytest.approx(best)


# The studies.


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@pytest.mark.parametrize("name", tool.STUDIES)
def test_the_studies_have_all_methods_and_fine_grids(name, protocol):
    study = get(name, protocol)
    assert isinstance(study, Study)
    assert study.methods == METHOD_NAMES
    steps = np.diff(np.log2(study.step_sizes))
    assert steps.min() > 0
    np.testing.assert_allclose(steps, steps[0], rtol=0.01)
    assert steps.max() < 0.252
    assert study.step_sizes[-1] / study.step_sizes[0] > 500
    assert study.runs % 2 == 0


def test_it_beats_both_ends_on_the_hard_chain_and_not_on_the_easy_one():
    """Each at its own best step size, means of 100 runs; paired, by 3 standard errors or more."""
    study = get("interpolation-chain")
    assert isinstance(study, Study)
    study = study.with_(
        methods=("IS", "IR", "BC-Interpolated(0.5)"),
        pairs=(("easy", "easy"), ("hard", "hard")),
        step_sizes=(1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 3.5, 4.0),
        runs=100,
    )
    errors = {}
    for task in study.tasks():
        for outcome in run_task(task):
            errors.setdefault((task.question, outcome.method), []).append(outcome.error)
    best = {}
    for key, runs in errors.items():
        runs = np.array(runs)
        best[key] = runs[:, int(np.argmin(runs.mean(axis=0)))]

    def statistic(pair, end):
        difference = best[pair, "BC-Interpolated(0.5)"] - best[pair, end]
        return difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))

    assert statistic("hard", "IR") < -5
    assert statistic("hard", "IS") < -5
    assert statistic("easy", "IR") < -5
    assert statistic("easy", "IS") > 3


# The tool's tables from results.


def results(errors):
    """Results of a study of the chain from errors [runs, step sizes] of some methods."""
    runs, count = next(iter(errors.values())).shape
    sizes = tuple(2.0**i for i in range(count))
    study = Study("s", "markov-chain", METHOD_NAMES, sizes, pairs=(("hard", "hard"),), updates=9,
                  runs=runs)  # fmt: skip
    cells = {}
    for name in METHOD_NAMES:
        error = errors.get(name, errors["IR"])
        cells[study.pairs[0], 1, name] = MethodResults(sizes, {"error": error})
    return Results(study, "paper", cells)


def planted(first, second, runs=20):
    """The same errors [sizes] in every run of a half."""
    return np.repeat([first, second], runs // 2, axis=0)


def test_the_first_half_of_the_runs_chooses_and_the_second_judges():
    errors = {
        "IR": planted([9.0, 2.0, 3.0, 9.0], [9.0, 4.0, 1.0, 9.0]),
        "IS": planted([9.0, 3.0, 9.0, 9.0], [9.0, 3.0, 9.0, 9.0]),
        "BC-IR": planted([9.0, 5.0, 9.0, 9.0], [9.0, 5.0, 9.0, 9.0]),
        "Interpolated(0.5)": planted([9.0, 8.0, 1.0, 9.0], [9.0, 1.0, 2.0, 9.0]),
        "Interpolated(0.25)": planted([9.0, 8.0, 5.0, 9.0], [9.0, 1.0, 3.5, 9.0]),
        "Interpolated(0.75)": planted([9.0, 8.0, 5.0, 9.0], [9.0, 1.0, 5.0, 9.0]),
    }
    points = {point.method: point for point in tool.judged(results(errors))}
    assert points["IR"].step_size == 2.0
    assert points["IR"].error == 4.0
    half = points["Interpolated(0.5)"]
    assert (half.step_size, half.error, half.runs, half.better_end) == (4.0, 2.0, 10, "IR")
    assert (half.ratio, half.low, half.high) == (0.5, 0.5, 0.5)
    assert half.verdict == "beats both"
    # Better than IR, which was chosen, but not than IS.
    assert points["Interpolated(0.25)"].verdict == "undecided"
    assert points["Interpolated(0.75)"].verdict == "loses"
    assert points["IS"].verdict == ""


def test_a_best_step_size_at_the_edge_is_refused():
    flat = planted([9.0, 2.0, 9.0], [9.0, 2.0, 9.0])
    edge = planted([9.0, 2.0, 1.0], [9.0, 2.0, 9.0])
    with pytest.raises(SystemExit, match=r"of Interpolated\(0.5\) is at the edge .*chain, hard"):
        list(tool.judged(results({"IR": flat, "Interpolated(0.5)": edge})))
    with pytest.raises(SystemExit, match="usable step sizes reach the edge"):
        list(tool.judged(results({"IR": planted([9.0, 2.0, 2.9], [9.0, 2.0, 2.9])})))


def test_usable_step_sizes_end_between_those_of_the_grid():
    """The bound 3 is passed half-way from 2 to 4.5, in logarithms; and where all diverges, at 8."""
    error = planted([9.0, 4.5, 2.0, 2.0, np.inf], [9.0, 4.5, 2.0, 2.0, np.inf])
    smallest, largest = tool.usable(error, np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    np.testing.assert_allclose(smallest, np.sqrt(8.0))
    np.testing.assert_allclose(largest, 8.0)


# The published page.


def published():
    with (PAGE / "interpolation.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_numbers_are_those_of_the_catalogue_and_no_best_step_size_is_at_an_edge():
    rows = published()
    assert [row["study"] for row in rows] == sorted(row["study"] for row in rows)
    for name in tool.STUDIES:
        study, mine = get(name), [row for row in rows if row["study"] == name]
        assert isinstance(study, Study)
        assert len(mine) == len(study.pairs) * len(study.gaps) * len(study.methods)
        assert {row["method"] for row in mine} == set(study.methods)
        for row in mine:
            assert float(row["step_size"]) in study.step_sizes[1:-1]
            usable = [float(row[key]) for key in ("smallest", "largest")]
            assert study.step_sizes[0] < usable[0] <= usable[1] < study.step_sizes[-1]
            assert int(row["runs"]) == study.runs // 2


def test_the_tables_show_the_numbers():
    """Every error in the table is one of the file's, and none is missing."""
    shown = re.findall(r"(\d\.\d{4}) ±", (PAGE / "errors.markdown").read_text(encoding="utf-8"))
    expected = []
    for row in published():
        # IS is an end of both families.
        expected += [f"{float(row['error']):.4f}"] * (2 if row["method"] == "IS" else 1)
    assert sorted(shown) == sorted(expected)


def test_what_the_page_says_in_words_holds_in_the_numbers():
    rows = {(row["case"], row["method"]): row for row in published()}
    cases = list(dict.fromkeys(case for case, _ in rows))

    def value(case, method, column):
        return float(rows[case, method][column])

    for case in cases:
        for method in ("Interpolated(0.75)", "BC-Interpolated(0.75)"):
            assert value(case, method, "to_ir") < 1.1
            assert value(case, method, "width") > 2 / 3
        # Beyond 0.75 there is little to gain.
        half, more = (value(case, f"Interpolated({b})", "error") for b in (0.5, 0.75))
        assert half > 0.9 * more
        for beta in (0.25, 0.5, 0.75):
            plain, corrected = (
                value(case, f"{family}({beta})", "error") for family in tool.FAMILIES
            )
            assert corrected == pytest.approx(plain, rel=0.03)
    assert rows["chain, easy", "IR"]["better_end"] == "IS"
    assert all(rows[case, "IR"]["better_end"] != "IS" for case in cases if case != "chain, easy")
    down = [case for case in cases if "rooms, down" in case]
    assert len(down) == 2
    for case in down:
        assert {rows[case, name]["verdict"] for name in BETWEEN} == {"loses"}
    many = next(case for case in down if case.endswith("gap 4"))
    assert all(value(many, name, "to_ir") < 1.005 for name in BETWEEN)
