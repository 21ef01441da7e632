"""The results of the racing car, from stored results alone.

    python -m experiments racing        from the finished runs in gvf-results, at most ten

It draws the figures, judges the claims, and writes every number of the page's results, so no number
is typed by hand. It takes the studies racing-step-size, racing-momentum and racing-tuning-* that
the folder has, with their latest settings. The numbers about streams come from the recordings in
the cache.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from experiments.tables import markdown
from gvf_lab import paper
from gvf_lab.figure.claim import judge
from gvf_lab.figure.figure import write_csv
from gvf_lab.figure.picture import draw, render
from gvf_lab.figure.points import best_choice, summary
from gvf_lab.racing import driving_policies, simulators
from gvf_lab.racing.racing_figure import CONSTANT, TUNING, constant
from gvf_lab.racing.recorded_inputs import Material
from gvf_lab.report.study_pages import finished
from gvf_lab.study import load
from gvf_lab.study.results import Results
from gvf_lab.study.store import Store, latest

Table = list[list[str]]
RUNS = 10
"""The most runs that the page shows."""


def write(folder: Path) -> None:
    """Write everything that the page shows."""
    out = Path("gvf-results")
    studies = {
        name: load(path).with_(name=name)
        for name, path in latest(out).items()
        if name.startswith("racing-")
    }
    results = {}
    for name, study in studies.items():
        done = finished(study, out)
        results[name] = Results.read(Store(done.with_(runs=min(RUNS, done.runs)), out), "paper")
    main_results = results["racing-step-size"]
    simulator = main_results.study.simulator
    paragraphs = [_overview(main_results)]
    for name in ("racing-step-size", "racing-momentum"):
        if name in results:
            paragraphs += _figure(folder, simulator, name, results[name])
    tuned = {name: results[name] for name in (study.name for study in TUNING) if name in results}
    if tuned:
        paragraphs += [
            "Optimisers on the tuning stream, by learning rate, one run; in brackets the error at "
            "the end of the run:",
            _table(_optimisers(tuned)),
        ]
    paragraphs += ["The streams:", _table(_streams(main_results))]
    text = "\n\n".join(paragraphs) + "\n"
    (folder / f"{simulator}-results.markdown").write_text(text, encoding="utf-8")


def _overview(results: Results) -> str:
    """Describe the size of the study, and the two references."""
    study, store = results.study, results.store
    assert store is not None
    lines = [line for line in store.logged() if "seconds" in line and "task" in line]
    minutes = np.array([line["seconds"] for line in lines]) / 60
    zero = float(results.of(study.methods[0])["zero"][0, 0])
    return (
        f"{results.runs} runs of {len(study.methods)} methods and {len(study.step_sizes)} learning "
        f"rates with {study.updates:,} updates each; a run took {minutes.min():.1f} to "
        f"{minutes.max():.1f} minutes on {study.device}. The best constant prediction has an "
        f"error of {constant(results):.3f}, predicting 0 one of {zero:.3f}."
    )


def _figure(page: Path, simulator: str, name: str, results: Results) -> list[str]:
    """Write a figure's pictures, points and verdicts; return the Markdown that shows them."""
    figure = paper.get(name)
    rows = figure.read(results)
    write_csv(rows, page / f"{simulator}-{name}.csv")
    title = f"{figure.title} ({figure.remark(results.study)})"
    pictures: dict[str, Any] = {name: draw(rows, figure.axes, title=title)}
    captions = {name: "Mean squared return error, averaged over the run (y), against the learning "
                "rate (x, logarithmic), and that of the best constant prediction. Bands: one "
                "standard error over runs."}  # fmt: skip
    for companion in figure.companions:
        drawn = companion.draw(results)
        if drawn is not None:
            pictures[f"{name}-{companion.name}"] = drawn
            captions[f"{name}-{companion.name}"] = companion.caption
    paragraphs = []
    for key, picture in pictures.items():
        (page / f"{simulator}-{key}.png").write_bytes(render(picture, "png"))
        paragraphs += [f"![{title}](racing/{simulator}-{key}.png)", f"*{captions[key]}*"]
    paragraphs[2:2] = [_table(_errors(results)), *_peaks(results)]
    verdicts = [judge(claim, results) for claim in figure.claims]
    text = json.dumps([asdict(verdict) for verdict in verdicts], indent=1)
    (page / f"{simulator}-{name}-claims.json").write_text(text + "\n", encoding="utf-8")
    return [*paragraphs, _table(_verdicts(verdicts))]


def _errors(results: Results) -> Table:
    """Tabulate the error of every method at every rate, and at the end of the run at the best."""
    rates = results.study.step_sizes
    at_best = ["median of the runs, best rate", "at the end, best rate"]
    lines = [["", *(f"{rate:g}" for rate in rates), *at_best]]
    for method in results.study.methods:
        measured, best = results.of(method), best_choice(results.of(method))
        gone = (~np.isfinite(measured.error)).sum(axis=0)
        points = [
            _number(mean, spread, f"diverged in {count} of {results.runs} runs")
            for mean, spread, count in zip(*summary(measured.error), gone, strict=True)
        ]
        ((mean,), (spread,)) = summary(measured.final[:, [best]])
        middle = _number(float(np.median(measured.error[:, best])), np.nan)
        lines.append([method, *points, middle, _number(mean, spread)])
    level = f"{constant(results):.3f}"
    return [*lines, [CONSTANT, *[level] * (len(rates) + 2)]]


def _peaks(results: Results) -> list[str]:
    """Name the runs whose error is very large for a while, at rates at which they learn."""
    study, lines = results.study, []
    zero = float(results.of(study.methods[0])["zero"][0, 0])
    for method in study.methods:
        measured = results.of(method)
        curve = measured.curve  # [runs, rates, points]
        learns = np.median(measured.error, axis=0) < constant(results)
        high = np.isfinite(curve).all(axis=2) & (curve.max(axis=2) > 2 * zero) & learns
        for run, rate in np.argwhere(high).tolist():
            points = curve[run, rate]
            at = int((points.argmax() + 0.5) * study.updates / len(points))
            lines.append(
                f"{method} at {study.step_sizes[rate]:g} in run {run} (a mean of "
                f"{points.max():.2g} over {study.updates // len(points)} updates around update "
                f"{at:,}, and {points[-1]:.3f} over the last ones)"
            )
    if not lines:
        return []
    return [
        f"An error above twice that of predicting 0, for a while, at a rate at which most runs "
        f"learn: {'; '.join(lines)}. Means over runs contain such peaks, medians hardly."
    ]


def _number(mean: float, spread: float, diverged: str = "diverged") -> str:
    if not np.isfinite(mean):
        return diverged
    return f"{mean:.3f} ± {spread:.3f}" if np.isfinite(spread) else f"{mean:.3f}"


def _verdicts(verdicts: list[Any]) -> Table:
    lines = [["claim", "statistic", "95 % interval", "verdict"]]
    for verdict in verdicts:
        low, high, value = (
            "unknown" if number is None else f"{number:.3g}"
            for number in (verdict.low, verdict.high, verdict.statistic)
        )
        interval = "none" if low == high == "unknown" else f"{low} to {high}"
        statistic = f"{value}: {verdict.measure}"
        words = f"**{verdict.verdict}**" + (f" ({verdict.remark})" if verdict.remark else "")
        lines.append([verdict.sentence, statistic, interval, words])
    return lines


def _optimisers(tuned: dict[str, Results]) -> Table:
    """Tabulate the errors on the tuning stream: a row for each optimiser and method."""
    rates = sorted({rate for results in tuned.values() for rate in results.study.step_sizes})
    lines = [["optimiser", "method", *(f"{rate:g}" for rate in rates)]]
    for results in tuned.values():
        for method in results.study.methods:
            measured = results.of(method)
            errors = zip(measured.error[0], measured.final[0], strict=True)
            by_rate = {
                rate: f"{mean:.3f} ({final:.3f})" if np.isfinite(mean) else "diverged"
                for rate, (mean, final) in zip(results.study.step_sizes, errors, strict=True)
            }
            lines.append([results.study.optimiser, method, *(by_rate.get(x, "") for x in rates)])
    level = f"{constant(next(iter(tuned.values()))):.3f}"
    return [*lines, ["", CONSTANT, *[level] * len(rates)]]


def _streams(results: Results) -> Table:
    """Tabulate ratios and hashes of the streams that are in the cache."""
    here = Material(results.study)
    near = simulators.get(results.study.simulator).near
    lines = [
        ["run", "mean ratio", "largest", "effective sample size", "near the middle", "SHA-256"]
    ]
    for run in range(results.runs):
        paths = [file.path for file in here.stream_files(run)]
        if not all(path.exists() for path in paths):
            continue
        columns = ["action", "log_mu", "lateral"]
        tables = [pq.read_table(path, columns=columns) for path in paths]
        action, log_mu, lateral = (
            np.concatenate([table[name].to_numpy() for table in tables]) for name in columns
        )
        drawn = ~np.isnan(action)
        log_pi = driving_policies.TARGET.log_probability(np.zeros(drawn.sum()), action[drawn])
        ratio = np.exp(log_pi - log_mu[drawn])
        size = ratio.sum() ** 2 / (ratio**2).sum()
        share = (np.abs(lateral) < near).mean()
        lines.append([
            f"{run}", f"{ratio.mean():.3f}", f"{ratio.max():.0f}", f"{size:.0f}",
            f"{100 * share:.1f} %", f"`{here.stream_hash(run)}`",
        ])  # fmt: skip
    return lines


def _table(lines: Table) -> str:
    return markdown(lines).rstrip()
