"""Hunt for the weak points of emphatic importance resampling; about 25 minutes of processor time.

    python -m experiments emphatic              all
    python -m experiments emphatic windows      one of them

Each experiment writes its numbers to a CSV file. Results of studies are kept in ``gvf-results`` and
not computed again.

In every comparison the first half of the runs chooses the parameters of a method, and the second
half gives its error. Ratios of errors are paired by run, with 95 % intervals by bootstrap for the
chosen parameters.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gvf
from experiments.emphatic import emphatic_worlds as worlds
from experiments.emphatic.emphatic_worlds import HERE, TASKS
from experiments.tables import interval, write_rows
from gvf import draw_batches
from gvf.common.arrays import Floats
from gvf.kernels import Steps, carried, start_streams, steps_of
from gvf.kernels import run as learn
from gvf.online import LSTD
from gvf_lab.charts.chart_statistics import column_of
from gvf_lab.domain import TabularDomain, Trajectory, get
from gvf_lab.study import OnlineStudy, Store, Study, run
from gvf_lab.study.base_study import seed_for
from gvf_lab.study.results import Results, resampling, standard_error

SIZES = tuple(2.0**-x for x in range(-2, 14))
STEPS = {"collision": 20_000, "rooms": 50_000, "high-variance-rooms": 50_000}
RUNS = {"collision": 100, "rooms": 20, "high-variance-rooms": 20}
WINDOWS = (100, 1000, 5000, 15_000, 50_000)
TWO = ("SW-H0", "NE-H2")
"""Two of the eight questions of Rooms, which stand for all where a study would take long."""
IR, OURS, ETD = "IR", "Emphatic IR", "Emphatic TD(0)"


class Row(NamedTuple):
    """The error of a method in one case.

    Attributes:
        case: the case, in words.
        method: the method.
        choice: the parameters that the first half of the runs chose.
        error: the mean error over the second half.
        stderr: the standard error of this mean.
        runs: the number of runs in the second half.
        to: the method with which it is compared.
        ratio: the ratio of the errors.
        low: the lower end of its 95 % interval.
        high: the upper end.
    """

    case: str
    method: str
    choice: str
    error: float
    stderr: float
    runs: int
    to: str
    ratio: float
    low: float
    high: float


class Measured(NamedTuple):
    """The errors of a method, float64[runs, choices], and its choices in words."""

    errors: Floats
    choices: Sequence[str]


@dataclass(frozen=True)
class Place:
    """The folders of an experiment, and its size.

    Attributes:
        folder: the folder of CSV files.
        results: the folder of results of studies.
        quick: True for studies of a few steps and runs, which show that all of it works.
    """

    folder: Path
    results: Path
    quick: bool = False

    def few(self, count: int, quick: int) -> int:
        """Return a number of steps or runs, or a smaller one."""
        return min(count, quick) if self.quick else count

    def sized(self, study: Study | OnlineStudy) -> Study | OnlineStudy:
        """Return a study, or a smaller one of the same methods."""
        if not self.quick:
            return study
        return study.with_(steps=200, runs=4, step_sizes=study.step_sizes[3::8])


def measured(at: Place, study: Study | OnlineStudy) -> dict[str, Measured]:
    """Run a study as far as it is missing, and return the errors of each method."""
    study = at.sized(study)
    print(run(study, at.results, workers=1).text, flush=True)
    results = Results.read(Store(study, at.results), "paper")
    found = {}
    for name in study.methods:
        choices = results.of(name, pair=study.pairs[0]).choices
        words = [
            ", ".join(f"{key} {value:g}" for key, value in study.key(choice).items())
            for choice in choices
        ]
        found[name] = Measured(column_of(results, name), words)
    return found


def window_study(domain: str, methods: Sequence[Any], end: str = "", **settings: Any) -> Study:
    """Make a study of draws from a window: as in the charts, unless settings say otherwise."""
    base = domain.removeprefix(HERE).split("_")[0]
    known: dict[str, Any] = {"steps": STEPS.get(base, 20_000), "runs": RUNS.get(base, 20)}
    name = f"weak-{domain.removeprefix(HERE).replace('_', '-')}{end}"
    known |= {"step_sizes": SIZES, "window": 15_000, "measure_every": 20, "points": 1}
    return Study(name, domain, tuple(methods), error="root mean square", **known | settings)


def online_study(
    domain: str, methods: Sequence[str], end: str = "", **settings: Any
) -> OnlineStudy:
    """Make a study of online algorithms, without traces unless settings say otherwise."""
    base = domain.removeprefix(HERE).split("_")[0]
    known: dict[str, Any] = {"steps": STEPS.get(base, 20_000), "runs": RUNS.get(base, 20)}
    name = f"weak-{domain.removeprefix(HERE).replace('_', '-')}-online{end}"
    sizes = tuple(2.0**-x for x in range(19))
    known |= {"points": 1} | settings
    return OnlineStudy(name, domain, tuple(methods), sizes, **known)


def judged(
    case: str, found: Mapping[str, Measured], to: Mapping[str, str], unit: float = 1.0
) -> list[Row]:
    """Choose by the first half of the runs, and judge by the second."""
    chosen, second = {}, {}
    for name, (errors, choices) in found.items():
        half = len(errors) // 2
        best = int(np.argmin(np.where(np.isnan(errors), np.inf, errors)[:half].mean(axis=0)))
        chosen[name], second[name] = choices[best], errors[half:, best] / unit
    rows = []
    for name, errors in second.items():
        other = to.get(name, "")
        ratio = _ratio(errors, second[other]) if other else (np.nan,) * 3
        spread = float(standard_error(errors))
        rows.append(
            Row(case, name, chosen[name], float(errors.mean()), spread, len(errors), other, *ratio)
        )
        print(*rows[-1], flush=True)
    return rows


def _ratio(errors: Floats, others: Floats) -> tuple[float, float, float]:
    """Return the ratio of two mean errors, with its interval; both have one error for each run."""
    if not np.isfinite([errors, others]).all():
        return float(errors.mean() / others.mean()), np.nan, np.nan
    weights = resampling(len(errors))
    return interval((weights @ errors) / (weights @ others), len(errors))


def windows(at: Place) -> None:
    """Vary the length of the window."""
    rows = []
    for domain in ("collision", "rooms"):
        for n in WINDOWS:
            methods = (IR, "BC-IR", OURS, "Emphatic BC-IR")
            runs = RUNS[domain] if domain == "collision" else 10
            found = measured(at, window_study(domain, methods, f"-{n}", window=n, runs=runs))
            to = {OURS: IR, "BC-IR": IR, "Emphatic BC-IR": OURS}
            rows += judged(f"{TASKS[domain]}, n = {n:,}", found, to)
    write(at, "windows", rows)


def tables(at: Place) -> None:
    """Give each state a feature of its own, so that there is nothing to gain by emphasis."""
    rows = []
    sizes = tuple(2.0**x for x in range(5, -11, -1))
    for domain, title, pairs in (
        (f"{HERE}collision_table", "Collision", [("wall", "turning")]),
        (f"{HERE}rooms_table", "Rooms", [(one, "uniform") for one in TWO]),
        (
            f"{HERE}high_variance_rooms_table",
            "High Variance Rooms",
            [(one, "pulled") for one in TWO],
        ),
        ("markov-chain", "Markov chain, hard", [("hard", "hard")]),
        (f"{HERE}corridor_table", "corridor, continuation .9", [("right", "uniform")]),
    ):
        rooms = len(pairs) > 1
        for k in (16, 1):
            settings: dict[str, Any] = {
                "batch_size": k,
                "step_sizes": sizes[5:] if rooms else sizes,
                "steps": 50_000 if rooms else 20_000,
            }
            settings |= {"runs": 10 if rooms else 50, "pairs": tuple(pairs)}
            found = measured(at, window_study(domain, (IR, OURS), f"-table-{k}", **settings))
            rows += judged(f"{title}, k = {k}", found, {OURS: IR})
    write(at, "tables", rows)


def early(at: Place) -> None:
    """Look at the first 500 steps only, with the parameters that are best there."""
    rows = []
    traces: dict[str, Any] = {"trace_decays": (0.0, 0.5, 0.9, 1.0), "zetas": (0.0, 0.5, 0.9, 1.0)}
    for domain, title in TASKS.items():
        short: dict[str, Any] = {"steps": 500, "runs": 100}
        found = measured(at, window_study(domain, (IR, OURS), "-early", measure_every=1, **short))
        single = window_study(domain, (OURS,), "-early-1", batch_size=1, measure_every=1, **short)
        found |= {f"{OURS}, k = 1": measured(at, single)[OURS]}
        emphatic = online_study(domain, ("Emphatic TD(lambda)",), "-early", **short)
        found |= {ETD: measured(at, emphatic)["Emphatic TD(lambda)"]}
        several = ("TD(lambda)", "Emphatic TD(lambda)", "V-trace(lambda)", "ABTD(zeta)")
        others = measured(at, online_study(domain, several, "-early-traces", **traces | short))
        best = min(others, key=lambda name: np.nanmin(others[name].errors[:50].mean(axis=0)))
        found |= {"with traces": others[best]}
        print(title, best)
        to = {OURS: IR, f"{OURS}, k = 1": IR, ETD: IR, "with traces": IR}
        rows += judged(title, found, to)
    write(at, "early", rows)


def wrong_ratios(at: Place) -> None:
    """Compute ratios from a wrong estimate of the behaviour."""
    rows = []
    for domain, title in (("collision", "Collision"), ("rooms", "Rooms"), ("walled", "corridor")):
        right: dict[str, Measured] = {}
        for wrong in worlds.WRONG:
            world = f"{HERE}{domain}_{round(100 * wrong)}"
            settings: dict[str, Any] = {"runs": 50}
            if domain == "rooms":
                settings = {"runs": 10, "pairs": tuple((one, "uniform") for one in TWO)}
            found = measured(at, window_study(world, (IR, OURS), **settings))
            online = measured(at, online_study(world, ("Emphatic TD(lambda)",), **settings))
            found[ETD] = online["Emphatic TD(lambda)"]
            right = right or {f"{name}, exact": one for name, one in found.items()}
            to = {name: f"{name}, exact" for name in found}
            judged_now = judged(f"{title}, {wrong:.0%}", found | right, to)
            rows += [row for row in judged_now if row.method in found]
    write(at, "wrong-ratios", rows)


def horizon(at: Place) -> None:
    """Let the continuation tend to 1, with several decays of the follow-on trace."""
    rows = []
    for end, gamma, steps in (
        ("9", 0.9, 30_000),
        ("99", 0.99, 30_000),
        ("99", 0.99, 300_000),
        ("999", 0.999, 30_000),
    ):
        betas = tuple(beta for beta in (0.5, 0.8, 0.9) if beta < gamma)
        runs, sizes = 20, SIZES
        if steps > 30_000:
            betas, runs, sizes = (0.9,), 10, tuple(2.0**-x for x in range(3, 19))
        world, case = f"{HERE}corridor_{end}", f"{gamma:g}, {steps:,} steps"
        domain = get(world)
        assert isinstance(domain, TabularDomain)
        truth = domain.truth("right", "uniform")
        unit = truth.root_mean_square_error(np.zeros(worlds.LENGTH))
        rows += exact(case, domain, (0.0, *betas, None), range(runs // 2, runs), unit)
        settings: dict[str, Any] = {"steps": steps, "runs": runs}
        corrections = (IR, *(f"Emphatic IR({beta})" for beta in betas), OURS)
        name = f"-{steps}"
        drawn = {"window": steps // 2, "step_sizes": sizes} | settings
        found = measured(at, window_study(world, corrections, name, **drawn))
        methods = ("Emphatic TD(lambda)", "Emphatic TD(lambda, beta)")
        online = measured(at, online_study(world, methods, name, betas=(0.0, *betas), **settings))
        found[ETD] = online["Emphatic TD(lambda)"]
        several = online["Emphatic TD(lambda, beta)"]
        for beta in (0.0, *betas):
            kept = [word.endswith(f"beta {beta:g}") for word in several.choices]
            words = [word for word, mine in zip(several.choices, kept, strict=True) if mine]
            found[f"Emphatic TD(0, {beta:g})"] = Measured(several.errors[:, kept], words)
        rows += judged(case, found, {name: IR for name in found if name != IR}, unit)
    write(at, "horizon", rows)
    far_rooms(at)


def far_rooms(at: Place) -> None:
    """Let the continuation of Rooms tend to 1."""
    rows = []
    for end, gamma in (("99", 0.99), ("999", 0.999)):
        world = f"{HERE}rooms_far_{end}"
        pairs = tuple((one, "uniform") for one in TWO)
        settings: dict[str, Any] = {"steps": 50_000, "runs": 10, "pairs": pairs}
        found = measured(at, window_study(world, (IR, OURS), **settings))
        found[ETD] = measured(at, online_study(world, ("Emphatic TD(lambda)",), **settings))[
            "Emphatic TD(lambda)"
        ]
        rows += judged(f"{gamma:g}", found, {OURS: IR, ETD: IR})
    write(at, "far-rooms", rows)


def exact(
    case: str, domain: TabularDomain, betas: Sequence[float | None], runs: range, unit: float
) -> Iterator[Row]:
    """Compute the error of the exact fixed point with each decay, averaged over runs."""
    truth = domain.truth("right", "uniform")
    for beta in betas:
        name = f"fixed point({'' if beta is None else f'{beta:g}'})"
        points = [
            domain.for_run(number, 0).fixed_point("right", "uniform", emphatic=True, beta=beta)  # pyright: ignore[reportAttributeAccessIssue]
            for number in runs
        ]
        errors = np.array([point.error(truth) for point in points]) / unit
        stable = sum(np.linalg.eigvals(point.matrix).real.min() > -1e-9 for point in points)
        row = Row(
            case, name, f"stable in {stable}", float(errors.mean()),
            float(standard_error(errors)), len(errors), "", np.nan, np.nan, np.nan,
        )  # fmt: skip
        print(*row, flush=True)
        yield row


def random_worlds(at: Place) -> None:
    """Draw worlds, policies and features at random, and compare exact and learned errors."""
    rows = []
    for end, gamma in (("9", 0.9), ("99", 0.99)):
        for kind in ("near", "random", "deterministic"):
            world = f"{HERE}{kind}_{end}"
            settings: dict[str, Any] = {"steps": 20_000, "runs": 40}
            found = {}
            for name, how in {"TD(0) point": {}, "emphatic point": {"emphatic": True}}.items():
                errors = [
                    exact_error(get(world).for_run(r, 0), **how) for r in range(at.few(40, 4))
                ]
                found[name] = Measured(np.array(errors)[:, None], ["exact"])
            found |= measured(at, window_study(world, (IR, "Emphatic IR(0.8)", OURS), **settings))
            online = measured(at, online_study(world, ("Emphatic TD(lambda)",), **settings))
            found[ETD] = online["Emphatic TD(lambda)"]
            to = {"emphatic point": "TD(0) point", OURS: IR, "Emphatic IR(0.8)": IR, ETD: OURS}
            rows += judged(f"{kind}, {gamma:g}", found, to)
    write(at, "random-worlds", rows)


def exact_error(domain: Any, **how: Any) -> float:
    """Compute the error of the fixed point of a random world."""
    return domain.fixed_point("pi", "mu", **how).error(domain.truth("pi", "mu"))


def effective(at: Place) -> None:
    """Count how many transitions a window is worth, by task, window and decay of the trace."""
    lines: list[list[Any]] = [["task", "beta", "window", "share", "largest"]]
    tasks = {**TASKS, **{f"{HERE}corridor_{end}": f"corridor, .{end}"
                                for end in ("9", "99", "999")}}  # fmt: skip
    for name, title in tasks.items():
        domain = get(name)
        paths = [_path(domain, n, at.few(50_000, 10_000)) for n in range(at.few(10, 1))]
        for beta in ("rho", 0.5, 0.8, None):
            correction = gvf.corrections.IR() if beta == "rho" else gvf.corrections.EmphaticIR(beta)
            masses = [
                correction.masses(
                    carried(correction, asked.ratio, asked.continuation, path.ended, asked.interest)
                )
                for path in paths
                for asked in path.signals.values()
            ]
            for n in WINDOWS if not at.quick else (100, 1000):
                shares, largest = zip(*(_worth(p, n) for p in masses), strict=True)
                word = {"rho": "ratio only", None: "continuation"}.get(beta, f"{beta}")
                lines.append([title, word, n, np.mean(shares), np.mean(largest)])
                print(*lines[-1], flush=True)
    names, *counted = lines
    write_rows(at.folder / "effective.csv", [dict(zip(names, row, strict=True)) for row in counted])


def _path(domain: Any, number: int, steps: int) -> Trajectory:
    """Walk as in run `number` of a study with seed 0."""
    behaviour = domain.pairs[0][1]
    here, seed = domain.for_run(number, 0), seed_for(0, number, "walk", behaviour)
    return here.walk(here.behaviour(behaviour), list(here.questions), steps, seed)


def _worth(p: Floats, n: int) -> tuple[float, float]:
    """Average, over windows of n with any mass, the effective share and the largest mass."""
    rows = p[: len(p) // n * n].reshape(-1, n)
    rows = rows[rows.sum(axis=1) > 0]
    total = rows.sum(axis=1)
    return float(np.mean(total**2 / (n * (rows**2).sum(axis=1)))), float(
        np.mean(rows.max(axis=1) / total)
    )


def networks(at: Place) -> None:
    """Learn with a small network, from inputs that tell all states apart and from others."""
    rows = []
    for case, domain, question, inputs in (
        ("Collision, one input for each state", "collision", "wall", "states"),
        ("Collision, the 6 features", "collision", "wall", "features"),
        ("Rooms NE-H2, the 12 tiles", "rooms", "NE-H2", "features"),
    ):
        errors = network_errors(at, domain, question, inputs)
        words = [f"learning rate {rate:g}" for rate in RATES]
        found = {
            correction.name: Measured(errors[:, i], words)
            for i, correction in enumerate(CORRECTIONS)
        }
        rows += judged(case, found, {"IS": IR, OURS: IR})
    write(at, "networks", rows)


CORRECTIONS = (gvf.corrections.IR(), gvf.corrections.EmphaticIR(), gvf.corrections.IS())
RATES = (3e-4, 1e-3, 3e-3, 1e-2)


def network_errors(at: Place, name: str, question: str, kind: str) -> Floats:
    """Train all networks at once; return mean errors, float64[runs, corrections, rates]."""
    import torch

    from gvf.neural import mlp
    from gvf_lab.racing.network_lanes import Lanes

    torch.set_num_threads(1)
    runs, steps = at.few(20, 4), at.few(20_000, 400)
    plans = [network_plan(name, question, kind, number, steps) for number in range(runs)]
    known = np.stack([plan[0] for plan in plans])
    before, after, cumulant, continuation, w = (
        np.concatenate(columns, axis=1)
        for columns in zip(*(plan[1:] for plan in plans), strict=True)
    )
    groups = w.shape[1]
    of_run = np.repeat(np.arange(runs), len(CORRECTIONS))[:, None]
    group = np.repeat(np.arange(groups), len(RATES))
    lanes = Lanes(
        partial(mlp, known.shape[2], (32,)),
        torch.optim.Adam,
        RATES * groups,
        of_run[group, 0].tolist(),
        group=group.tolist(),
    )
    domain = worlds.task(name)
    truth = domain.truth(question, domain.pairs[0][1])
    assert truth.weights is not None
    shares, total, every = truth.weights / truth.weights.sum(), np.zeros(len(group)), 20
    shown = known[:, truth.states]
    for update in range(len(w)):
        x, x_next = known[of_run, before[update]], known[of_run, after[update]]
        lanes.update(x, x_next, cumulant[update], continuation[update], w[update][group])
        if update % every == 0:
            values = lanes.predict(shown.reshape(-1, shown.shape[2])).numpy()
            mine = values.reshape(len(group), runs, -1)[np.arange(len(group)), of_run[group, 0]]
            total += np.sqrt((mine - truth.values) ** 2 @ shares)
    return (total / len(range(0, len(w), every))).reshape(runs, len(CORRECTIONS), len(RATES))


def network_plan(name: str, question: str, kind: str, number: int, steps: int) -> tuple[Any, ...]:
    """Return the inputs of all states, and what a run draws: states, signals and weights.

    Columns are [updates, corrections, k].
    """
    domain = worlds.task(name).for_run(number, 0)
    assert isinstance(domain, TabularDomain)
    path, cells = _path(domain, number, steps), domain.cells
    asked, known = path.signals[question], np.eye(len(cells), dtype=np.float32)
    if kind == "features":
        known = np.zeros((len(cells), domain.features.size), np.float32)
        np.put_along_axis(known, np.asarray(domain.features(cells)), 1.0, axis=1)
    rows, weights = [], []
    for correction in CORRECTIONS:
        inputs = carried(correction, asked.ratio, asked.continuation, path.ended, asked.interest)
        seed = seed_for(0, number, "draws", question)
        draws = draw_batches(correction, inputs, window=15_000, batch_size=16, seed=seed, gap=10)
        rows.append(np.maximum(draws.rows, 0))
        weights.append(draws.weights(correction))
    drawn = np.stack(rows, axis=1)
    assert path.kind is not None
    before = path.kind // domain.model.next_state[0].size  # outcomes are numbered by state
    columns = (before, path.next_state, asked.cumulant, asked.continuation)
    return known, *(column[drawn] for column in columns), np.stack(weights, axis=1)


def least_squares(at: Place) -> None:
    """Solve by LSTD(lambda), which needs neither a step size nor a window."""
    rows = []
    for name, title in TASKS.items():
        runs = RUNS[name] if name == "collision" else 10
        methods = (IR, "BC-IR", OURS, "Emphatic BC-IR")
        drawn = measured(at, window_study(name, methods, "-15000", window=15_000, runs=runs))
        found = {method: drawn[method] for method in (IR, OURS)}
        for emphatic, word in ((True, "Emphatic LSTD"), (False, "LSTD")):
            algorithm = LSTD(DECAYS, emphatic)
            errors = np.array([lstd_errors(at, name, algorithm, n) for n in range(at.few(runs, 4))])
            decays = [f"trace_decay {decay:g}" for decay in DECAYS]
            found[f"{word}(0)"] = Measured(errors[:, :1], decays)
            found[f"{word}(λ)"] = Measured(errors, decays)
        rows += judged(title, found, {method: OURS for method in found if method != OURS})
    write(at, "least-squares", rows)


DECAYS = (0.0, 0.5, 0.75, 0.9, 1.0)
"""The decays of traces in LSTD."""


def lstd_errors(at: Place, name: str, algorithm: LSTD, number: int, every: int = 100) -> Floats:
    """Average the error of each lane over a run and over questions; solve before `every` steps."""
    domain, length = get(name).for_run(number, 0), at.few(STEPS[name], 200)
    assert isinstance(domain, TabularDomain)
    path, total = _path(get(name), number, length), np.zeros(len(DECAYS))
    for (question, behaviour), asked in zip(domain.pairs, path.signals.values(), strict=True):
        truth = domain.truth(question, behaviour)
        known = np.asarray(domain.features(truth.states))
        columns = (asked.cumulant, asked.continuation, asked.ratio)
        steps = steps_of(path.x, path.x_next, *columns)
        state = algorithm.start(domain.features.size)
        streams = start_streams(algorithm, state, 1)
        for start in range(0, length, every):
            values = algorithm.weights(state)[known].sum(axis=1)
            total += [truth.root_mean_square_error(lane) for lane in values.T]
            learn(algorithm, state, streams, Steps(*(c[start : start + every] for c in steps)))
    return total * every / length / len(domain.pairs)


def write(at: Place, name: str, rows: Sequence[Row]) -> None:
    """Write all numbers of an experiment; a ratio that there is not is an empty cell."""
    cells = [{k: "" if v != v else v for k, v in row._asdict().items()} for row in rows]
    write_rows(at.folder / f"{name}.csv", cells)


PARTS: dict[str, Callable[[Place], None]] = {
    "windows": windows,
    "effective": effective,
    "horizon": horizon,
    "random-worlds": random_worlds,
    "wrong-ratios": wrong_ratios,
    "networks": networks,
    "tables": tables,
    "early": early,
    "least-squares": least_squares,
}

"""The experiments by name."""


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Run experiments, by default all, and write their CSV files into a folder."""
    results = folder / "gvf-results" if quick else Path("gvf-results")
    for part in parts or PARTS:
        PARTS[part](Place(folder, results, quick))
