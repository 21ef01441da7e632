"""The evidence that gvf carries: it belongs to the present code, and comes out again."""

import argparse
import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from shown import chain, verdict, write

from gvf_lab import charts
from gvf_lab.figure import judge
from gvf_lab.paper import FIGURES, get
from gvf_lab.report.build import build
from gvf_lab.report.exhibit import (
    Exhibit,
    Provenance,
    evidence,
    fingerprint,
    recorded,
    shipped,
)
from gvf_lab.study import Results, Store, run
from gvf_lab.study.settings import variant
from tools import ship_evidence

SHIPPED = [figure.id for figure in FIGURES.values() if shipped(figure) is not None]
CHARTS = [figure.id for figure in charts.FIGURES.values() if shipped(figure) is not None]
FIGURE = "markov-vtrace"


@pytest.mark.parametrize("id", SHIPPED + CHARTS)
def test_what_is_shipped_belongs_to_the_present_studies_and_claims(id: str) -> None:
    figure = ship_evidence.FIGURES[id]
    made = ship_evidence.check(figure, ship_evidence.home(figure).parent)
    assert made
    assert all(how.commit and how.results and not how.options.get("out") for how in made.values())
    assert "--out" not in " ".join(how.command for how in made.values())


@pytest.mark.parametrize("id", SHIPPED + CHARTS)
def test_the_first_seed_is_the_shipped_one(id: str) -> None:
    one = shipped(ship_evidence.FIGURES[id])
    assert one is not None
    assert {(told.protocol, told.id) for told in one.verdicts} == set(one.seeds)
    for told in one.verdicts:
        seeds = one.seeds[told.protocol, told.id]
        assert next(iter(seeds.items())) == (one.provenance[told.protocol].seed, told.verdict)


def test_the_evidence_is_a_few_megabytes() -> None:
    files = [file for file in ship_evidence.EVIDENCE.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 1e7
    for figure in ship_evidence.FIGURES.values():
        assert evidence(figure) == ship_evidence.home(figure)


# Runs are pure functions of settings and number, so a part of the results comes out again.


@pytest.mark.parametrize(
    ("id", "part"),
    [
        ("markov-step-size", {}),
        ("four-rooms-step-size", {"methods": ("IR", "IS"), "step_sizes": (0.8, 4.0)}),
    ],
)
def test_shipped_points_come_out_again(id: str, part: dict, tmp_path: Path) -> None:
    figure, there = get(id), shipped(get(id))
    assert there is not None
    study = figure.study("paper", seed=there.provenance["paper"].seed).with_(**part)
    run(study, tmp_path)
    store = Store(study, tmp_path)
    results = Results.read(store, "paper")
    points = {row[:4]: row for row in there.rows}
    ours = figure.read(results)
    for row in ours:
        other = points[row[:4]]
        assert row[4:] == pytest.approx(other[4:], rel=1e-6, nan_ok=True), row
    if not part:
        assert len(ours) == sum(row.protocol == "paper" for row in there.rows)
        told = [judge(claim, results) for claim in figure.claims]
        ids = [(one.id, one.verdict) for one in there.verdicts if one.protocol == "paper"]
        assert [(one.id, one.verdict) for one in told] == ids
        again = Provenance(**{**asdict(there.provenance["paper"]), **fingerprint(store)})
        assert again.variant == there.provenance["paper"].variant


# The page


def test_the_page_without_results_shows_every_figure_or_says_that_it_is_absent(
    tmp_path: Path,
) -> None:
    build(tmp_path, "gvf reproduce --report")
    text = (tmp_path / "report.html").read_text()
    articles = re.findall('<article id="(.*?)">(.*?)</article>', text, re.DOTALL)
    assert {id for id, _ in articles} == set(FIGURES)
    for id, article in articles:
        command = f"<code>gvf reproduce --scale paper {id}</code> makes it"
        assert (command in article) == (id not in SHIPPED)
        assert ("<img " in article) == (id in SHIPPED)
    assert "<script" not in text
    assert '<th scope="col">Now</th>' not in text
    assert '<th scope="col">Shipped</th>' in text
    assert len(text) < 8e6
    for path in re.findall('<a href="([^#"]+)"', text):
        assert (tmp_path / path).is_file(), path


def beside(**changes) -> str:
    """The page of a figure that was made here, beside a shipped one."""
    here = chain("quick")
    there = shipped(here.figure)
    assert there is not None
    told = [replace(one, verdict="holds") for one in here.verdicts]
    seeds = {
        (one.protocol, one.id): {
            0: "holds",
            1: "holds",
            2: "undecided" if one.id == "c" else "holds",
        }
        for one in told
    }
    there = replace(there, rows=here.rows, verdicts=told, seeds=seeds, **changes)
    return write([Exhibit(here.figure, here, there)])


def test_claims_have_a_column_for_now_and_one_for_what_is_shipped() -> None:
    text = beside()
    table = text[text.index('<table class="claims">') :]
    table = table[: table.index("</table>")]
    assert re.findall('<th scope="col">(.*?)</th>', table) == [
        "Comparison", "Now", "Shipped", "Seeds", "Holds if", "Protocol",
    ]  # fmt: skip
    now = re.findall('data-label="Now"><span><span class="badge [a-z]*">(.*?)<', table)
    assert now == ["✓ holds", "✓ holds", "✗ fails", "✗ fails", "? undecided", "? undecided"]
    there = re.findall('data-label="Shipped"><span><span class="badge [a-z]*">(.*?)<', table)
    assert there == ["✓ holds"] * 6
    seeds = re.findall('data-label="Seeds"><span>(.*?)<', table)
    assert seeds == ["3 of 3 seeds"] * 4 + ["2 of 3 seeds; seed 2: undecided"] * 2
    told = "with seed 1, 6 of 6; with seed 2, 4 of 6."
    assert f"Shipped verdicts that another seed shares: {told}</p>" in text
    summary = text[: text.index("<main>")]
    assert "Comparisons, protocol paper, shipped</a>: " in summary
    assert "✓ 3 hold" in summary


def test_verdicts_of_one_seed_are_told_apart() -> None:
    alone, both = {0: "holds"}, {0: "holds", 3: "fails"}
    seeds = {("paper", "a"): both, ("paper", "b"): alone, ("authors", "a"): alone}
    here = chain()
    there = shipped(here.figure)
    assert there is not None
    text = write([Exhibit(here.figure, here, replace(there, seeds=seeds))])
    told = "with seed 3, 0 of 1. The other 2 were reached with one seed only."
    assert f"Shipped verdicts that another seed shares: {told}</p>" in text


def test_times_on_a_gpu_are_told_apart() -> None:
    shown = [shipped(get(name)) for name in ("racing-step-size", "markov-step-size")]
    text = write([Exhibit(one.figure, None, one) for one in shown if one is not None])
    assert re.search(r"; NVIDIA H200, [^;]+: \d+ min( \d+ s)? of GPU time; Linux", text)
    assert re.search(r"; Linux [^;]+: (\d+ min )?\d+ s of processor time<", text)
    assert re.search(r'<td data-label="Time"><span>\d+ min( \d+ s)? of GPU time<', text)


def test_the_page_says_if_results_are_the_shipped_ones_bit_for_bit() -> None:
    said = "The results made now are the same bit for bit"
    here = chain(protocols=("paper",))
    there = shipped(here.figure)
    assert there is not None
    for results, expected in ((there.provenance["paper"].results, True), ("0" * 64, False)):
        made = {"paper": replace(here.provenance["paper"], results=results)}
        assert (
            said in write([Exhibit(here.figure, replace(here, provenance=made), there)])
        ) == expected


# The tool


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder of results, like those that are shipped, and the one that the tool writes."""
    results, to = tmp_path / "results", tmp_path / "evidence"
    for id in (FIGURE, "markov-step-size"):
        (results / id).mkdir(parents=True)
        for name in (f"{id}.csv", "claims.json", "made-paper.json", "made-authors.json"):
            (results / id / name).write_text((ship_evidence.home(get(id)) / name).read_text())
    monkeypatch.setattr(ship_evidence, "EVIDENCE", tmp_path / "evidence")
    return results, to


def ship(folder: Path, *seed_folders: Path) -> None:
    ship_evidence.main(argparse.Namespace(folder=folder, seed_folders=seed_folders, commit=""))


def change(folder: Path, **changes) -> None:
    """Change what is recorded of a figure under the protocol paper."""
    path = folder / FIGURE / "made-paper.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_results_of_unknown_code_are_refused_until_its_commit_is_named(
    folders: tuple[Path, Path],
) -> None:
    results, _ = folders
    change(results, commit="")
    with pytest.raises(ship_evidence.RefusedError, match="the code's commit is not known"):
        ship(results)
    assert ship_evidence.check(get(FIGURE), results, "abc")["paper"].commit == "abc"


def test_shipping_what_is_shipped_changes_nothing(folders: tuple[Path, Path]) -> None:
    results, to = folders
    before = Path(str(evidence(get(FIGURE))))
    ship(results)
    for name in (f"{FIGURE}.csv", "claims.json", "made-paper.json"):
        assert (to / FIGURE / name).read_bytes() == (before / name).read_bytes()
    assert {file.name for file in (to / FIGURE).iterdir()} == {
        file.name for file in before.iterdir()
    }


def test_other_seeds_are_told(folders: tuple[Path, Path], tmp_path: Path) -> None:
    results, to = folders
    figure, other = get(FIGURE), tmp_path / "other"
    results.rename(tmp_path / "first")
    for name, seed in (("other", 5), ("results", 0)):
        for id in (FIGURE, "markov-step-size"):
            (tmp_path / name / id).mkdir(parents=True)
            for file in (tmp_path / "first" / id).iterdir():
                (tmp_path / name / id / file.name).write_text(file.read_text())
            made = recorded(get(id), tmp_path / name / id)["paper"]
            digest = variant(get(id).study("paper", seed=seed))
            changed = replace(made, seed=seed, variant=digest)
            (tmp_path / name / id / "made-paper.json").write_text(json.dumps(asdict(changed)))
            (tmp_path / name / id / "made-authors.json").unlink()
    claims = json.loads((other / FIGURE / "claims.json").read_text())
    (other / FIGURE / "claims.json").write_text(
        json.dumps([one | {"verdict": "undecided"} for one in claims])
    )
    ship(results, other)
    told = json.loads((to / FIGURE / "seeds.json").read_text())
    assert list(told) == ["paper"]
    assert told["paper"]["seeds"] == [0, 5]
    assert list(told["paper"]["claims"]) == [claim.id for claim in figure.claims]
    assert {several[1] for several in told["paper"]["claims"].values()} == {"undecided"}
    with pytest.raises(ship_evidence.RefusedError, match="seed 0 twice"):
        ship(results, results)


def test_results_at_another_scale_or_with_other_settings_are_refused(
    folders: tuple[Path, Path],
) -> None:
    results, to = folders
    change(results, scale="quick")
    with pytest.raises(
        ship_evidence.RefusedError, match=r"100 runs at the scale quick, not the paper's 100"
    ):
        ship(results)
    change(results, scale="paper", runs=99)
    with pytest.raises(
        ship_evidence.RefusedError, match="99 runs at the scale paper, not the paper's 100"
    ):
        ship(results)
    change(results, runs=100, variant="00000000")
    with pytest.raises(
        ship_evidence.RefusedError, match="the settings are not those of the present study"
    ):
        ship(results)
    assert not to.exists()


@pytest.mark.parametrize("changed", [{"id": "other"}, {"measure": "other"}, {"range": [0.5, None]}])
def test_results_of_other_claims_are_refused(changed: dict, folders: tuple[Path, Path]) -> None:
    results, _ = folders
    path = results / FIGURE / "claims.json"
    first, *rest = json.loads(path.read_text())
    path.write_text(json.dumps([first | changed, *rest]))
    with pytest.raises(
        ship_evidence.RefusedError, match=f"claims differ .*{first['id']}.*`gvf rep"
    ):
        ship(results)


def test_claims_that_were_not_judged_for_want_of_a_figure_are_refused(
    folders: tuple[Path, Path],
) -> None:
    results, _ = folders
    for file in (results / "markov-step-size").iterdir():
        file.unlink()
    with pytest.raises(ship_evidence.RefusedError, match="its claims need markov-step-size too"):
        ship(results)


def test_measured_numbers_have_seven_digits() -> None:
    assert ship_evidence.rounded(1 / 3) == 0.3333333
    assert math.isnan(ship_evidence.rounded(math.nan))
    told = ship_evidence.shorter(
        verdict("a", "holds", statistic=2 / 3, low=None, range=(2 / 3, None))
    )
    assert (told["statistic"], told["low"], told["range"]) == (0.6666667, None, (2 / 3, None))
