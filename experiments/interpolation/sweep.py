"""Test whether `Interpolated(beta)` ever beats both of its ends.

    python -m experiments interpolation

Existing results, in ``gvf-results``, are not computed again. The first half of the runs chooses
each method's step size, the better end, and the better of the methods in between. The second half
gives the errors, and their ratios with paired 95 % intervals, so that the selection does not bias
them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from experiments.tables import Interval, interval, write_rows
from gvf.common.arrays import Floats
from gvf_lab.catalogue import study_of
from gvf_lab.study import NAMED, Store, Study, run
from gvf_lab.study.results import Results, resampling, standard_error

STUDIES = ("interpolation-chain", "interpolation-rooms", "interpolation-tiles")
DOMAINS = {
    "markov-chain": "chain",
    "four-rooms": "rooms",
    "continuous-four-rooms": "tiles",
}
ENDS = ("IS", "IR", "BC-IR")
USABLE = 1.5
"""The largest error of a usable step size, as a multiple of the best."""


@dataclass(frozen=True)
class Point:
    """One method in one case: a row of the file of numbers.

    Attributes:
        study: the study's name.
        case: domain, pair and gap, in words.
        method: the method's name.
        beta: the exponent of the ratio in the draw.
        step_size: the best step size in the first half of the runs.
        error: the mean error over the second half.
        stderr: the standard error of `error`.
        runs: the number of runs in the second half.
        better_end: the best of IS, IR and BC-IR in the first half.
        ratio: the ratio of the error to that of the better end.
        low: the lower end of the interval of `ratio`.
        high: the upper end.
        to_ir: the ratio of the error to that of IR.
        to_ir_low: the lower end of the interval of `to_ir`.
        to_ir_high: the upper end.
        verdict: "beats both" if the intervals of the ratios to all three ends are below 1,
            "loses" if that to the better end is above 1, else "undecided"; empty for an end.
        smallest: the smallest usable step size, over all runs.
        largest: the largest usable step size.
        width: largest / smallest, divided by the same of IR.
        width_low: the lower end of the interval of `width`.
        width_high: the upper end.
        chosen_error: the mean error over the first half, which chose.
        coarser: the error without every other step size, divided by the error with all.
    """

    study: str
    case: str
    method: str
    beta: float
    step_size: float
    error: float
    stderr: float
    runs: int
    better_end: str
    ratio: float
    low: float
    high: float
    to_ir: float
    to_ir_low: float
    to_ir_high: float
    verdict: str
    smallest: float
    largest: float
    width: float
    width_low: float
    width_high: float
    chosen_error: float
    coarser: float


def measure(folder: Path, parts: Sequence[str] = (), quick: bool = False) -> None:
    """Run missing studies, judge, and write the numbers; parts are names of studies.

    The quick measure has four runs of the first study, and takes best step sizes at an edge.
    """
    points: list[Point] = []
    for name in parts or (STUDIES[:1] if quick else STUDIES):
        study = study_of(name).with_(runs=4) if quick else study_of(name)
        results = folder / "gvf-results" if quick else Path("gvf-results")
        print(run(study, results).text)
        points += judged(Results.read(Store(study, results), "paper"), inner=not quick)
    write_rows(folder / "interpolation.csv", [asdict(point) for point in points])


def judged(results: Results, *, inner: bool = True) -> Iterator[Point]:
    """Judge every method of every case of a study.

    A best or usable step size at an edge of the grid is refused, unless `inner` is False.
    """
    study = results.study
    assert isinstance(study, Study)
    for pair in study.pairs:
        for gap in study.gaps:
            errors = {name: results.of(name, gap, pair).error for name in study.methods}
            case = ", ".join((DOMAINS[study.domain], _pair(*pair), *([f"gap {gap}"] * (gap > 1))))
            yield from _case(study, case, errors, inner)


def _pair(question: str, behaviour: str) -> str:
    return question if question == behaviour else f"{question} / {behaviour}"


def _case(study: Study, case: str, errors: dict[str, Floats], inner: bool) -> Iterator[Point]:
    """Judge the methods of one case by their errors [runs, step sizes]."""
    half, sizes = study.runs // 2, np.array(study.step_sizes)
    chosen = {
        name: _best(error[:half], name, case if inner else "") for name, error in errors.items()
    }
    judge = {name: error[half:, chosen[name]] for name, error in errors.items()}
    first = {name: float(error[:half, chosen[name]].mean()) for name, error in errors.items()}
    end = min(ENDS, key=lambda name: first[name])
    ranges = {name: usable(error, sizes, inner=inner) for name, error in errors.items()}
    for name, error in errors.items():
        to = {other: _ratio(judge[name], judge[other]) for other in ENDS}
        smallest, largest = ranges[name]
        widths = (largest / smallest) / (ranges["IR"][1] / ranges["IR"][0])
        coarser = error[half:, 2 * int(np.argmin(_mean(error[:half, ::2])))]
        yield Point(
            study.name,
            case,
            name,
            _beta(name),
            float(sizes[chosen[name]]),
            float(judge[name].mean()),
            float(standard_error(judge[name])),
            study.runs - half,
            end,
            *to[end],
            *to["IR"],
            "" if name in ENDS else _verdict(list(to.values()), to[end]),
            float(smallest[0]),
            float(largest[0]),
            *interval(widths, study.runs, "inverted_cdf"),
            first[name],
            float(coarser.mean() / judge[name].mean()),
        )


def _beta(name: str) -> float:
    return getattr(NAMED[name].make(1.0), "beta", 0.0 if name == "IS" else 1.0)


def _verdict(to_all: list[Interval], to_better: Interval) -> str:
    if all(high < 1.0 for _, _, high in to_all):
        return "beats both"
    return "loses" if to_better[1] > 1.0 else "undecided"


def _mean(error: Floats) -> Floats:
    """Compute the mean over runs; infinite if a run diverged."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num(error.mean(axis=0), nan=np.inf, posinf=np.inf)


def _best(error: Floats, name: str, case: str) -> int:
    """Return the position of the best step size; in a named case it must be inside the grid."""
    best = int(np.argmin(_mean(error)))
    if case and best in (0, error.shape[1] - 1):
        raise SystemExit(f"the best step size of {name} is at the edge of the grid: {case}")
    return best


def _ratio(errors: Floats, others: Floats) -> Interval:
    """Return the ratio of two mean errors over the same runs, with its interval."""
    weights = resampling(len(errors))
    return interval((weights @ errors) / (weights @ others), len(errors), "inverted_cdf")


def usable(error: Floats, sizes: Floats, *, inner: bool = True) -> tuple[Floats, Floats]:
    """Compute the smallest and the largest usable step size, [1 + B] each, from errors [R, sizes].

    If the error crosses the bound between two step sizes of the grid, the crossing is interpolated
    in the logarithms of both.
    """
    finite = np.isfinite(error)
    weights = resampling(len(error))
    with np.errstate(over="ignore"):
        mean = weights @ np.where(finite, error, 0.0)
    mean[weights @ ~finite > 0] = np.inf
    bound = USABLE * mean.min(axis=1, keepdims=True)
    within, row = mean <= bound, np.arange(len(mean))
    first, last = within.argmax(axis=1), mean.shape[1] - 1 - within[:, ::-1].argmax(axis=1)
    if inner and (first.min() == 0 or last.max() == mean.shape[1] - 1):
        raise SystemExit("usable step sizes reach the edge of the grid")
    first, last = np.maximum(first, 1), np.minimum(last, mean.shape[1] - 2)
    ends = []
    for inside, outside in ((first, first - 1), (last, last + 1)):
        below, above = mean[row, inside], mean[row, outside]
        with np.errstate(divide="ignore"):
            share = np.log(bound[:, 0] / below) / np.log(above / below)
        ends.append(sizes[inside] * (sizes[outside] / sizes[inside]) ** share)
    return ends[0], ends[1]
