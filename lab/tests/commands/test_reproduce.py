"""`gvf reproduce`, also with --report: the files of a figure, and the messages to a user."""

import csv
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gvf.cli import main
from gvf_lab import paper
from gvf_lab.commands.reproduce import REPRODUCE_EXAMPLES
from gvf_lab.study import Summary
from gvf_lab.study.settings import canonical, variant

FIGURE = "markov-vtrace"
LEFT = {f"{FIGURE}.png", f"{FIGURE}.svg", f"{FIGURE}.csv", "published.csv", "claims.json"}
CLIPS = ("1.0", "0.5 max", "0.9 max")
KEYS = ["id", "sentence", "statistic", "low", "high", "runs", "protocol", "verdict"]


def reproduce(out: Path, *arguments: str) -> int:
    return main(["reproduce", *arguments, "--runs", "5", "--out", str(out)])


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / FIGURE / name).read_bytes() for name in LEFT}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduced")
    assert reproduce(folder, FIGURE) == 0
    return folder


def test_a_figure_leaves_pictures_numbers_claims_and_a_page(out: Path) -> None:
    assert {path.name for path in (out / FIGURE).iterdir() if path.is_file()} >= LEFT
    with (out / FIGURE / f"{FIGURE}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert ",".join(rows[0]) == "protocol,panel,series,x,y,stderr,runs,step_size"
    assert {row["series"] for row in rows} == {"IS", *(f"V-trace({c})" for c in CLIPS)}
    assert {row["protocol"] for row in rows} == {"paper"}
    assert {row["runs"] for row in rows} == {"5"}
    claims = json.loads((out / FIGURE / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [c.id for c in paper.get(FIGURE).claims]
    assert all(list(claim)[:8] == KEYS for claim in claims)
    # Some compare with a figure that is not made here.
    verdicts = [claim["verdict"] for claim in claims]
    needy = [bool(claim.needs) for claim in paper.get(FIGURE).claims]
    assert [verdict == "not judged" for verdict in verdicts] == needy
    assert verdicts.count("holds") >= 3  # the quick scale leaves some open
    assert 0 < sum(needy) < len(needy)
    page = (out / "report.html").read_text()
    assert f"gvf reproduce {FIGURE} --scale quick --protocol paper --runs 5" in page


def test_the_same_command_again_runs_nothing_and_leaves_the_same(out: Path, capsys) -> None:
    before = contents(out)
    assert reproduce(out, FIGURE) == 0
    told = capsys.readouterr()
    assert re.search(r": all \d+ tasks done before \(\d+ s of processor time\)\n", told.err)
    assert re.search(r"^0 tasks done now, \d+ before; this command took \d+ s$", told.out, re.M)
    assert f"report: {out / 'report.html'}" in told.out
    assert contents(out) == before


def test_the_report_is_rebuilt_from_results_alone(out: Path, capsys) -> None:
    before = contents(out)
    for name in LEFT:
        (out / FIGURE / name).unlink()
    assert main(["reproduce", "--report", str(out)]) == 0
    assert contents(out) == before
    assert "claims" in capsys.readouterr().out


def test_a_second_protocol_joins_the_first(tmp_path: Path) -> None:
    assert reproduce(tmp_path, FIGURE) == 0
    assert reproduce(tmp_path, FIGURE, "--protocol", "authors") == 0
    with (tmp_path / FIGURE / f"{FIGURE}.csv").open() as file:
        assert {row["protocol"] for row in csv.DictReader(file)} == {"paper", "authors"}


def test_a_report_without_results_shows_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--report"]) == 0
    told = capsys.readouterr().out
    assert "no figures were made in gvf-results: `gvf reproduce --out gvf-results` makes" in told
    assert "shipped with gvf, at the paper's scale: " in told
    assert "the page has 0 made now and " in told
    page = (tmp_path / "gvf-results" / "report.html").read_text()
    assert re.findall('<article id="(.*?)">', page) == [
        figure.id
        for part in ((True, False), (False, False), (False, True))
        for figure in paper.FIGURES.values()
        if (figure.main, figure.ours) == part
    ]
    assert main(["reproduce", "--report", "nowhere"]) == 2
    assert "no folder nowhere" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_the_page_shows_what_was_made_beside_what_is_shipped(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert "<dt>Figures</dt><dd>1 made now, " in page
    article = page[page.index(f'<article id="{FIGURE}">') :]
    article = article[: article.index("</article>")]
    assert article.count("<img ") == 2
    assert '<span class="badge open">shipped</span> scale paper, 100 runs, ' in article
    assert "bit for bit" not in article  # 5 runs are not 100
    assert re.findall(r"([✓✗?] [a-z, ]+)<", article)[:2] == ["✓ holds", "✓ holds, shipped"]
    for path in re.findall('<a href="([^#"]+)"', page):
        assert (out / path).is_file(), path


def test_the_record_says_what_was_run_and_by_which_code(out: Path) -> None:
    made = json.loads((out / FIGURE / "made-paper.json").read_text())
    study = paper.get(FIGURE).study("paper", "quick", 5)
    assert made["variant"] == variant(study)
    plain = {key: made["settings"].pop(key) for key in ("pairs", "gaps", "runs")}
    assert plain == {"pairs": [["hard", "hard"]], "gaps": [1], "runs": 5}
    digest = hashlib.sha256(canonical(made["settings"]).encode()).hexdigest()
    assert digest.startswith(made["variant"])
    assert re.fullmatch("[0-9a-f]{64}", made["results"])
    assert re.fullmatch("([0-9a-f]{12}(-dirty)?)?", made["commit"])


def test_a_record_stays_if_nothing_was_run(out: Path) -> None:
    path = out / FIGURE / "made-paper.json"
    before = path.read_text()
    assert reproduce(out, FIGURE) == 0
    assert path.read_text() == before


def test_another_seed_has_other_results_in_another_folder(
    out: Path, tmp_path: Path, capsys
) -> None:
    assert reproduce(out, "markov-step-size", "--seed", "1") == 2
    told = capsys.readouterr().err
    assert f"{out} has {FIGURE} with seed 0, not 1: name another folder with --out" in told
    assert reproduce(tmp_path, FIGURE, "--seed", "1") == 0
    capsys.readouterr()
    assert reproduce(tmp_path, FIGURE) == 2
    assert f"{tmp_path} has {FIGURE} with seed 1, not 0" in capsys.readouterr().err
    made, other = (
        json.loads((at / FIGURE / "made-paper.json").read_text()) for at in (tmp_path, out)
    )
    assert (made["seed"], other["seed"]) == (1, 0)
    assert " --seed 1 " in made["command"]
    assert made["results"] != other["results"]
    assert main(["reproduce", "--report", str(tmp_path)]) == 0
    assert "<dt>Seeds</dt><dd>1</dd>" in (tmp_path / "report.html").read_text()


def test_a_damaged_record_is_named(out: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / FIGURE).mkdir()
    (tmp_path / FIGURE / "made-paper.json").write_text("{")
    assert main(["reproduce", "--report", str(tmp_path)]) == 2
    assert "made-paper.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["markov"],
            "unknown figure: 'markov'; did you mean 'markov-vtrace' or 'markov-step-size' or "
            "'markov-variance'? (`gvf reproduce --help` shows all)\n",
        ),
        (["markov-stepsize"], "unknown figure: 'markov-stepsize'; did you mean 'markov-step-size'"),
        (["x"], "unknown figure: 'x'; known are 'four-rooms-learning-curves', "),
        ([FIGURE, "--runs", "0"], "--runs must be at least 1, got 0"),
        ([FIGURE, "--workers", "0"], "workers must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments, said, tmp_path, capsys) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_with_no_figure_named_all_microworlds_of_the_main_text_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def run(study: Any, *given: Any, **named: Any) -> Any:
        made.append(study.name)
        return Summary(1, 0, 1, 0, 0.0, tmp_path)

    monkeypatch.setattr("gvf_lab.study.run_study.run", run)
    for name in ("_record", "_build", "_summarise"):
        monkeypatch.setattr(f"gvf_lab.commands.reproduce.{name}", lambda *_: None)
    assert main(["reproduce", "--out", str(tmp_path)]) == 0
    main_text = [figure.id for figure in paper.FIGURES.values() if figure.main]
    assert made == [id for id in main_text if id != "racing-step-size"]
    assert len(made) == 8


def test_the_help_names_every_figure() -> None:
    assert all(figure in REPRODUCE_EXAMPLES for figure in paper.FIGURES)
