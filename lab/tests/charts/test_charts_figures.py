"""The charts as figures: their studies, claims that can hold and fail, and their page."""

import argparse
import csv
import io
import json
import re
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gvf
from gvf.cli import main
from gvf_lab import catalogue, charts, paper
from gvf_lab.charts import chart_statistics
from gvf_lab.charts.chart_pictures import TOP, draw_best
from gvf_lab.charts.chart_statistics import SHARES, start_error
from gvf_lab.charts.chart_studies import STUDIES
from gvf_lab.domain import get
from gvf_lab.figure import judge
from gvf_lab.figure.claim import Claim
from gvf_lab.report import exhibit
from gvf_lab.report.build import build
from gvf_lab.study import MethodResults, OnlineStudy, Results
from tools import ship_evidence

RUNS = 16
"""Half of them choose parameters."""


def test_every_study_is_a_figure_and_known_by_name() -> None:
    names = [study.name for study in STUDIES]
    assert names == list(charts.FIGURES)
    assert {*names} <= {*catalogue.STUDIES}
    for figure in charts.FIGURES.values():
        assert figure.fresh
        assert figure.study("paper").runs == 100
        assert figure.study("paper", "quick").runs == 10
        assert all(needed in charts.FIGURES for claim in figure.claims for needed in claim.needs)


def test_notes_count_updates_and_samples() -> None:
    notes = {id: figure.notes["paper"] for id, figure in charts.FIGURES.items()}
    assert "Updates a step and question: 1; samples: 16." in notes["collision-window"]
    assert "question: 1; samples: 1, as many of both as online" in notes["collision-window-1"]
    assert "collision-active" not in notes
    seed = np.random.SeedSequence(0)
    path = get("rooms").walk(gvf.policies.Uniform(4), [*get("rooms").questions], 200_000, seed)
    share = np.mean([np.asarray(signals.active).mean() for signals in path.signals.values()])
    pattern = "active at ([^ ]*) % .* question: ([^ ]*); samples: ([^ ]*), as many"
    ((percent, updates, samples),) = re.findall(pattern, notes["rooms-active"])
    assert float(percent) == pytest.approx(100 * share, abs=1)
    assert float(updates) == float(samples) == pytest.approx(float(percent) / 100, abs=1e-3)
    assert "question: 1; samples: 1. " in notes["rooms-window-1"]
    assert f"question: {updates}; samples: {samples}. " in notes["rooms-online"]


def test_online_grids_are_the_published_ones() -> None:
    study = charts.FIGURES["rooms-online"].study("paper")
    assert isinstance(study, OnlineStudy)
    assert study.steps == 50_000
    counts = {method: len(study.choices(method)) for method in study.methods}
    assert len(counts) == 11
    assert counts["TD(lambda)"] == counts["TDRC(lambda)"] == counts["ABTD(zeta)"] == 19 * 12
    assert counts["GTD(lambda)"] == 19 * 12 * 8
    assert counts["Emphatic TD(lambda, beta)"] == 19 * 12 * 6


Levels = dict[str, tuple[float, float, float]]
"""Error over the run, at its beginning and at its end, by method."""


def planted(
    id: str, levels: Levels, traced: float = 1.0, worse: Mapping[Any, float] | None = None
) -> Results:
    """Make results with given errors; with traces above 0 the errors are `traced` times as large.

    The shares `worse` of the smallest step sizes are worse than the start.
    """
    study = charts.FIGURES[id].study("paper", "quick", RUNS, points=10)
    found = {}
    for pair in study.pairs:
        for method in study.methods:
            choices = study.choices(method)
            error, early, final = levels.get(method, (0.5, 0.5, 0.5))
            online = hasattr(choices[0], "zeta")
            factor = np.array(
                [
                    traced if online and (choice.trace_decay or choice.zeta) else 1.0
                    for choice in choices
                ]
            )
            share = (worse or {}).get(method, 0.0)
            factor[len(choices) - round(share * len(choices)) :] = 1 / error
            curve = np.tile(error * factor[:, None], (RUNS, 1, 10))
            curve[:, :, 0] = early
            columns = {
                "error": np.tile(error * factor, (RUNS, 1)),
                "final": np.full((RUNS, len(choices)), final),
                "curve": curve,
            }
            found[pair, study.gaps[0], method] = MethodResults(choices, columns)
    return Results(study, "paper", found).second_half()


def group(methods: tuple[str, ...], error: float, early: float, final: float) -> Levels:
    return dict.fromkeys(methods, (error, early, final))


TD = ("TD(lambda)",)
EMPHATIC = ("Emphatic TD(lambda)", "Emphatic TD(lambda, beta)")
GRADIENT = (
    "GTD(lambda)",
    "GTD2(lambda)",
    "HTD(lambda)",
    "Proximal GTD2(lambda)",
    "TDRC(lambda)",
)
CLIPPED = ("Tree Backup(lambda)", "V-trace(lambda)", "ABTD(zeta)")
OTHERS = (*GRADIENT, *TD, *CLIPPED)
ALIKE = ("Emphatic WIS-Minibatch", "Emphatic BC-IR")
AS_PUBLISHED = {
    "collision-online": (
        group(EMPHATIC, 0.1, 0.2, 0.1)
        | group((*GRADIENT, *TD), 0.2, 0.3, 0.2)
        | group(CLIPPED, 0.3, 0.4, 0.3)
    ),
    "rooms-online": (
        group(EMPHATIC, 0.2, 0.5, 0.1)
        | group((*GRADIENT, *TD), 0.2, 0.3, 0.2)
        | group(CLIPPED, 0.2, 0.3, 0.2)
    ),
    "high-variance-rooms-online": (
        group(EMPHATIC, 0.4, 0.5, 0.1)
        | group((*GRADIENT, *TD), 0.4, 0.3, 0.2)
        | group(CLIPPED, 0.2, 0.3, 0.2)
    ),
}
OPPOSITE = {
    "collision-online": (
        group(EMPHATIC, 0.4, 0.5, 0.4)
        | group((*GRADIENT, *TD), 0.3, 0.4, 0.3)
        | group(CLIPPED, 0.2, 0.3, 0.2)
    ),
    "rooms-online": (
        group(EMPHATIC, 0.2, 0.2, 0.3)
        | group((*GRADIENT, *TD), 0.2, 0.3, 0.2)
        | group(CLIPPED, 0.2, 0.3, 0.2)
    ),
    "high-variance-rooms-online": (
        group(EMPHATIC, 0.1, 0.2, 0.3)
        | group((*GRADIENT, *TD), 0.1, 0.3, 0.2)
        | group(CLIPPED, 0.25, 0.5, 0.2)
    ),
}


def verdicts(id: str, claims: tuple[Claim, ...], worlds: dict[str, Results]) -> dict[str, str]:
    return {claim.id: judge(claim, worlds[id], worlds).verdict for claim in claims}


@pytest.mark.parametrize("id", AS_PUBLISHED)
def test_published_statements_can_hold_and_fail(id: str) -> None:
    claims = charts.FIGURES[id].claims
    for truths, want in ((AS_PUBLISHED, "holds"), (OPPOSITE, "fails")):
        worlds = {one: planted(one, levels) for one, levels in truths.items()}
        if id == "high-variance-rooms-online":
            worlds["rooms-online"] = planted("rooms-online", AS_PUBLISHED["rooms-online"])
        told = verdicts(id, claims, worlds)
        told.pop("shares-as-published", None)
        for name in ("emphatic-robust", "emphatic-robust-to-parameters"):
            assert told.pop(name, "undecided") == "undecided", "all parameters are alike: a tie"
        assert set(told.values()) == {want}, told


@pytest.mark.parametrize("id", AS_PUBLISHED)
def test_published_statements_stay_open_in_a_tie(id: str) -> None:
    alike = group((*EMPHATIC, *GRADIENT, *TD, *CLIPPED), 0.3, 0.3, 0.3)
    told = verdicts(id, charts.FIGURES[id].claims, {one: planted(one, alike) for one in OPPOSITE})
    told.pop("shares-as-published", None)
    assert set(told.values()) == {"undecided"}, told


@pytest.mark.parametrize("id", AS_PUBLISHED)
def test_published_statements_say_where(id: str) -> None:
    places = {claim.id: claim.place for claim in charts.FIGURES[id].claims}
    assert places.pop("emphatic-lowest-without-traces", "") == ""
    assert all(places.values())


@pytest.mark.parametrize(
    ("emphatic", "others", "want"),
    [(0.1, 0.2, "holds"), (0.3, 0.2, "fails"), (0.2, 0.2, "undecided")],
)
def test_robustness_to_parameters_can_hold_fail_and_stay_open(
    emphatic: float, others: float, want: str
) -> None:
    worse = dict.fromkeys((*GRADIENT, *TD, *CLIPPED), others) | dict.fromkeys(EMPHATIC, emphatic)
    world = planted("collision-online", AS_PUBLISHED["collision-online"], worse=worse)
    assert verdict_on("emphatic-robust-to-parameters", world) == want


def test_robustness_to_lambda_can_hold_and_fail() -> None:
    for methods, want in ((OTHERS, "holds"), (EMPHATIC, "fails")):
        world = planted("collision-online", AS_PUBLISHED["collision-online"])
        for method in methods:
            measured = world.of(method)
            traced = [bool(choice.trace_decay or choice.zeta) for choice in measured.choices]
            measured.error[:, traced] *= 3
        assert verdict_on("emphatic-robust", world) == want


def test_published_shares_can_hold_fail_and_stay_open() -> None:
    tenths = {method: round(share, 1) for method, share in SHARES.items()}
    shares = tenths | {"Emphatic TD(lambda, beta)": 0.3, "GTD(lambda)": 0.3}
    world = planted("collision-online", {}, worse=shares)
    assert verdict_on("shares-as-published", world) == "holds"
    # One more step size of TD is worse than the start in some bootstrap samples.
    measured = world.of("TD(lambda)")
    near = [choice.step_size == 2.0**-14 for choice in measured.choices]
    measured.error[:, near] = start_error("collision", "turning")
    measured.error[::2, near] += 0.1
    measured.error[1::2, near] -= 0.1001
    assert verdict_on("shares-as-published", world) == "undecided"
    world = planted("collision-online", {}, worse=shares | {"TD(lambda)": 0.4})
    assert verdict_on("shares-as-published", world) == "fails"


def verdict_on(id: str, world: Results) -> str:
    (claim,) = (one for one in charts.FIGURES["collision-online"].claims if one.id == id)
    return judge(claim, world).verdict


@pytest.mark.parametrize(
    ("ours", "theirs", "want"),
    [(0.1, 0.2, "holds"), (0.3, 0.2, "fails"), (0.2, 0.2, "undecided")],
)
def test_claims_about_emphatic_resampling_can_hold_fail_and_stay_open(
    ours: float, theirs: float, want: str
) -> None:
    window = planted(
        "rooms-window",
        group(("Emphatic IR", *ALIKE), ours, ours, ours)
        | group(("IR", "Emphatic IS"), theirs, theirs, theirs),
    )
    every = group((*EMPHATIC, *GRADIENT, *TD, *CLIPPED), theirs, theirs, theirs)
    worlds = {"rooms-window": window, "rooms-online": planted("rooms-online", every, traced=1.1)}
    told = verdicts("rooms-window", charts.FIGURES["rooms-window"].claims, worlds)
    assert told.pop("emphatic-ir-flatter-than-etd") == "undecided", "all step sizes are good"
    for id in ("emphatic-wis-like-emphatic-ir", "emphatic-bc-ir-like-emphatic-ir"):
        assert told.pop(id) == "holds"
    assert set(told.values()) == {want}, told


@pytest.mark.parametrize(
    ("factor", "want"), [(1.04, "holds"), (1.06, "fails"), (0.9, "fails"), (1.05, "undecided")]
)
def test_claims_of_small_differences_can_hold_fail_and_stay_open(factor: float, want: str) -> None:
    levels = group(("Emphatic IR",), 0.2, 0.2, 0.2)
    window = planted("rooms-window", levels | group(ALIKE, 0.2 * factor, 0.2, 0.2))
    if want == "undecided":  # some bootstrap samples are on either side
        for measured in (window.of(one, pair=pair) for one in ALIKE for pair in window.study.pairs):
            measured.error[::2] *= 1.01
            measured.error[1::2] *= 0.99
    for claim in charts.FIGURES["rooms-window"].claims:
        if claim.id.endswith("-like-emphatic-ir"):
            assert judge(claim, window).verdict == want


@pytest.mark.parametrize(
    ("ours", "theirs", "want"), [(0.0, 0.5, "holds"), (0.5, 0.0, "fails"), (0.5, 0.5, "undecided")]
)
def test_claims_of_flat_ranges_can_hold_fail_and_stay_open(
    ours: float, theirs: float, want: str
) -> None:
    """The shares of step sizes are not good."""
    window = planted(
        "rooms-window", group(("Emphatic IR",), 0.2, 0.2, 0.2), worse={"Emphatic IR": ours}
    )
    online = planted("rooms-online", group(EMPHATIC, 0.2, 0.2, 0.2), worse={EMPHATIC[0]: theirs})
    (claim,) = (
        claim
        for claim in charts.FIGURES["rooms-window"].claims
        if claim.statistic is chart_statistics.ratio_of_flat_ranges
    )
    assert judge(claim, window, {"rooms-online": online}).verdict == want


def test_claims_say_where_updates_and_samples_are_as_many() -> None:
    equal = {
        id
        for id, figure in charts.FIGURES.items()
        for claim in figure.claims
        if "Emphatic TD(0), with as many updates and samples." in claim.sentence
    }
    assert equal == {"collision-window-1", "rooms-active", "high-variance-rooms-active"}


TINY = {"step_sizes": (0.01, 0.05), "steps": 200, "points": 10, "runs": 5}


def test_the_table_of_best_errors_can_be_read_if_a_run_diverges() -> None:
    diverged = planted("rooms-window", {"Emphatic BC-IR": (3e46, 0.1, 3e46)})
    picture = draw_best(diverged)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Matplotlib warns if labels leave no room for the axes
        picture.canvas.draw()
    (place,) = picture.axes
    assert place.get_xlim() == (0.0, TOP)
    assert sum("3e+46" in text.get_text() for text in place.texts) == 1


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two charts that are tiny at either scale."""
    ids = ["collision-online", "collision-window-1"]
    for id in ids:
        figure = charts.FIGURES[id]
        study = figure.study("paper", "quick").with_(**TINY)
        source = replace(figure.source, make=lambda protocol, study=study: study)
        monkeypatch.setitem(charts.FIGURES, id, replace(figure, source=source, quick={}))
    return ids


def articles(page: Path) -> dict[str, str]:
    return dict(re.findall('<article id="(.*?)">(.*?)</article>', page.read_text(), re.DOTALL))


def test_charts_are_made_and_shipped_and_have_a_page_of_their_own(
    tmp_path: Path,
    tiny: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results, source = tmp_path / "results", tmp_path / "source"
    assert main(["reproduce", *tiny, "--scale", "paper", "--out", str(results)]) == 0
    told = capsys.readouterr().out
    assert "charts.html" in told
    assert "report.html" not in told
    assert not (results / "report.html").exists()
    page = (results / "charts.html").read_text()
    assert list(articles(results / "charts.html")) == list(charts.FIGURES)
    assert "Published: abstract of arXiv 2106.00922" in page
    folder = results / "collision-online"
    for name in ("learning-curves", "best-errors", "every-trace-decay"):
        assert (folder / f"{name}.png").exists()
        lines = list(csv.DictReader(io.StringIO((folder / f"{name}.csv").read_text())))
        assert {line["runs"] for line in lines} == {"3"}, "two of five runs choose"
        assert f'href="collision-online/{name}.csv"' in page
    assert {told["runs"] for told in json.loads((folder / "claims.json").read_text())} == {3}

    (source / "evidence").mkdir(parents=True)
    shutil.copy(ship_evidence.EVIDENCE / exhibit.THEORY, source / "evidence")
    monkeypatch.setattr(ship_evidence, "EVIDENCE", source / "evidence")
    monkeypatch.setattr(ship_evidence, "FIGURES", {**paper.FIGURES, **charts.FIGURES})
    ship_evidence.main(argparse.Namespace(folder=results, seed_folders=[], commit="abc"))
    real, folders = exhibit.files, {"gvf_lab": source}
    monkeypatch.setattr(exhibit, "files", lambda name: folders.get(name) or real(name))
    there = exhibit.shipped(charts.FIGURES["collision-online"])
    assert there is not None
    assert there.provenance["paper"].runs == 5
    for name in ("collision-online", "learning-curves"):
        ours, theirs = (
            exhibit.points((one / f"{name}.csv").read_text())
            for one in (folder, source / "evidence" / "collision-online")
        )
        assert [row[:4] for row in ours] == [row[:4] for row in theirs]
        for mine, other in zip(ours, theirs, strict=True):
            assert mine[4:] == pytest.approx(other[4:], rel=1e-6, nan_ok=True)

    # In an empty folder they stand alone.
    build(tmp_path / "empty", "gvf reproduce --report")
    assert (tmp_path / "empty" / "report.html").exists()
    page = tmp_path / "empty" / "charts.html"
    assert list(articles(page)) == list(charts.FIGURES)
    for id, article in articles(page).items():
        assert ("<img " in article) == (id in tiny)
        assert ("Not shipped yet" in article) == (id not in tiny)
    assert "2 shown as shipped, 9 not shipped yet" in page.read_text()
    for path in re.findall('<a href="([^#"]+)"', page.read_text()):
        assert (tmp_path / "empty" / path).is_file(), path

    # They stand beside those that were made, and in place of those that were not.
    assert main(["reproduce", tiny[1], "--out", str(tmp_path / "one")]) == 0
    page = tmp_path / "one" / "charts.html"
    assert "The results made now are the same bit for bit" in articles(page)[tiny[1]]
    assert "<img " in articles(page)[tiny[0]]
    assert "1 made now, 1 shown as shipped, 9 not shipped yet" in page.read_text()
    assert not (tmp_path / "one" / "report.html").exists()
