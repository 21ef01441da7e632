"""Verdicts on claims made for the purpose: averages of numbers that are the runs' own."""

import json
import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from planted import Truth, planted

from gvf.common.quantiles import tail_of
from gvf_lab import paper
from gvf_lab.figure import Claim, judge
from gvf_lab.study import Study
from gvf_lab.study.results import RESAMPLES, MethodResults, Results, resampling


def numbers(values: Any) -> Results:
    """Results of one method with one step size, whose errors are these, one for each run."""
    error = np.asarray(values, np.float64)[:, None]
    study = Study("s", "markov-chain", ("IR",), (1.0,), "paper", (("hard", "hard"),), updates=10,
                  points=1, runs=len(error))  # fmt: skip
    cell = MethodResults((1.0,), {"error": error})
    return Results(study, "paper", {(("hard", "hard"), 1, "IR"): cell})


def about(least: float = -math.inf, most: float = math.inf) -> Claim:
    """Claims that the average lies in a range."""
    return Claim("c", "It lies there.", "the average", lambda r: r.best("IR"), least, most)


NORMAL = np.random.default_rng(1).normal(5.0, 1.0, 50)


def test_the_interval_is_that_of_the_mean_over_runs() -> None:
    told = judge(about(), numbers(NORMAL))
    spread = NORMAL.std() / math.sqrt(50)
    assert told.statistic == pytest.approx(NORMAL.mean(), rel=1e-12)
    # Two thousand samples know a quantile to about .05 standard errors of the mean.
    assert told.low == pytest.approx(NORMAL.mean() - 1.96 * spread, abs=0.2 * spread)
    assert told.high == pytest.approx(NORMAL.mean() + 1.96 * spread, abs=0.2 * spread)


def test_the_interval_is_made_of_averages_over_runs_drawn_with_replacement() -> None:
    # With two runs, 0 and 1, a sample is both runs, or one of them twice: 0, .5, .5 or 1.
    samples = numbers([0.0, 1.0]).best("IR")
    assert samples.shape == (1 + RESAMPLES,)
    assert samples[0] == 0.5
    values, counts = np.unique(samples[1:], return_counts=True)
    assert values.tolist() == [0.0, 0.5, 1.0]
    # Each count is binomial, with a standard deviation of at most 22.4: five of them.
    np.testing.assert_allclose(counts, np.array([0.25, 0.5, 0.25]) * RESAMPLES, atol=112)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        told = judge(about(), numbers(rng.normal(5.0, 1.0, 25)))
        assert told.low is not None
        assert told.high is not None
        covered += told.low <= 5.0 <= told.high
    # Percentile intervals of 25 runs cover about 93 %; four standard deviations of 300 trials.
    assert 0.93 - 0.06 <= covered / 300 <= 0.93 + 0.06


def test_the_same_results_give_the_same_numbers() -> None:
    first = judge(about(), numbers(NORMAL))
    resampling.cache_clear()
    assert judge(about(), numbers(NORMAL)) == first
    assert judge(about(), numbers(NORMAL + 1e-3)) != first


def test_what_runs_share_cancels() -> None:
    figure = paper.get("four-rooms-learning-curves")
    claim = next(claim for claim in figure.claims if claim.id == "ir-faster-than-is")
    truth = Truth(error={"IS": 1.2})
    told = judge(claim, planted(figure, "paper", [truth], shared=0.99, own=0.0))
    assert told.verdict == "holds"
    assert told.statistic == pytest.approx(1.2)
    assert (told.low, told.high) == (pytest.approx(1.2), pytest.approx(1.2))
    # Were it not shared, it would drown a fifth.
    told = judge(claim, planted(figure, "paper", [truth], shared=0.0, own=0.99, runs=30))
    assert told.low is not None
    assert told.high is not None
    assert told.high - told.low > 0.2


def test_figures_are_resampled_alike() -> None:
    figure, constant = paper.get("continuous-rmsprop-all"), paper.get("continuous-sgd-all")
    how: dict[str, Any] = {"shared": 0.9, "own": 0.0}
    claim = next(claim for claim in figure.claims if claim.id == "rmsprop-worse-than-constant")
    told = judge(
        claim,
        planted(figure, "paper", [Truth(error={"IR": 1.1})], **how),
        {constant.id: planted(constant, "paper", [Truth()], **how)},
    )
    assert (told.low, told.high) == (pytest.approx(1.1), pytest.approx(1.1))


@pytest.mark.parametrize(
    ("least", "most", "verdict"),
    [
        (4.0, 6.0, "holds"),
        (4.0, math.inf, "holds"),
        (-math.inf, 6.0, "holds"),
        (-math.inf, math.inf, "holds"),
        (6.0, 7.0, "fails"),
        (6.0, math.inf, "fails"),
        (3.0, 4.0, "fails"),
        (-math.inf, 4.0, "fails"),
        (5.0, math.inf, "undecided"),
        (-math.inf, 5.0, "undecided"),
        # Narrower than the interval, inside of it.
        (4.99, 5.01, "undecided"),
    ],
)
def test_a_verdict_depends_on_where_the_interval_lies(
    least: float, most: float, verdict: str
) -> None:
    told = judge(about(least, most), numbers(NORMAL))
    assert told.verdict == verdict
    assert told.range == tuple(end if math.isfinite(end) else None for end in (least, most))


@pytest.mark.parametrize("ends", [(1.0, math.inf), (-math.inf, 1.0), (1.0, 2.0), (0.0, 1.0)])
def test_a_tie_decides_nothing(ends: tuple[float, float]) -> None:
    told = judge(about(*ends), numbers([1.0] * 5))
    assert (told.verdict, told.low, told.high) == ("undecided", 1.0, 1.0)


def test_what_is_infinite_counts_and_is_not_written() -> None:
    lost = judge(about(least=1.0), numbers([math.inf] * 5))
    assert (lost.verdict, lost.statistic, lost.low, lost.high) == ("holds", None, None, None)
    assert judge(about(most=1.0), numbers([math.inf] * 5)).verdict == "fails"
    # One of five diverged, which two of three samples notice.
    told = judge(about(most=10.0), numbers([1.0, 1.0, 1.0, 1.0, math.inf]))
    assert (told.verdict, told.statistic, told.low, told.high) == ("undecided", None, 1.0, None)
    for verdict in (lost, told):
        json.dumps(asdict(verdict), allow_nan=False)


def test_what_is_not_a_number_decides_nothing() -> None:
    claim = replace(about(), statistic=lambda r: r.best("IR") / r.best("IR"))
    told = judge(claim, numbers([1.0] * 5 + [math.inf]))
    assert (told.verdict, told.statistic, told.low, told.high) == ("undecided", None, None, None)
    assert "no value" in told.remark
    json.dumps(asdict(told), allow_nan=False)


@pytest.mark.parametrize("runs", [5, 8, 25])
def test_intervals_cover_what_they_should_with_few_runs(runs: int) -> None:
    # 2000 experiments: the share covered has a standard error of .005; the plain percentiles cover
    # .84, .88 and .93, the expanded ones fall short of .95 by little.
    rng = np.random.default_rng(runs)
    errors = rng.normal(1.0, 0.1, (2000, runs))
    weights = resampling(runs)[1:]
    means = np.sort(errors @ weights.T, axis=1)
    beyond = int(tail_of(runs) * means.shape[1])
    covered = (means[:, beyond] <= 1.0) & (means[:, -1 - beyond] >= 1.0)
    assert 0.90 < covered.mean() < 0.97
