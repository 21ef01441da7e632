"""Commands on the study of the racing car, with a tiny study and a small network."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from racing_by_hand import (
    FIGURE,
    METHODS,
    PLACE,
    STUDY,
    checkpoints,
    put_material,
    states,
    tiny_figure,
)

from gvf.cli import main
from gvf_lab import catalogue, paper
from gvf_lab.racing import racing_task
from gvf_lab.racing.film import draw_film
from gvf_lab.racing.racing_task import run_racing
from gvf_lab.study import load
from gvf_lab.study.results import Results
from gvf_lab.study.store import Store
from gvf_lab.study.study_file import as_toml

pytestmark = pytest.mark.usefixtures("one_thread", "cache")


@pytest.fixture
def toml(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(as_toml(STUDY))
    return str(path)


def test_the_study_is_listed_and_shown(tmp_path: Path, capsys) -> None:
    assert main(["study", "list", "--out", str(tmp_path)]) == 0
    assert re.search(r"^racing-step-size +0/10 +35 ", capsys.readouterr().out, re.MULTILINE)
    assert main(["study", "show", FIGURE]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# 10 tasks of 35 rows, 0 done; ")
    path = tmp_path / f"{FIGURE}.toml"
    path.write_text(shown)
    assert load(path) == catalogue.study_of(FIGURE, "paper")


def test_a_dry_run_estimates_and_does_nothing(
    toml: str, tmp_path: Path, small: None, capsys
) -> None:
    out = tmp_path / "out"
    assert main(["study", "run", toml, "--dry-run", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "tiny: 2 tasks of 10 rows, 0 done already\n" in told
    assert re.search(r"to do: 2, about \d+ s with \d at once \(by a short probe\)\n", told)
    assert not out.exists()
    assert checkpoints() == []
    assert main(["study", "run", toml, "--out", str(out)]) == 0
    assert main(["study", "run", toml, "--dry-run", "--runs", "3", "--out", str(out)]) == 0
    assert "(by those done before)" in capsys.readouterr().out


def test_a_part_alone_is_printed(toml: str, tmp_path: Path, small: None, capsys) -> None:
    assert main(["study", "run", toml, "--only", "tiny/left/wander/gap-3/run-1/IS/0.1"]) == 0
    told = re.findall(r"^(\w+): ([-+.e\d ]+) \(.*\)$", capsys.readouterr().out, re.MULTILINE)
    (outcome,) = (one for one in run_racing(list(STUDY.tasks())[1]) if one.method == "IS")
    assert {name: [float(value) for value in values.split()] for name, values in told} == {
        "error": [outcome.error[1]], "final": [outcome.final[1]],
        "curve": outcome.curve[1].tolist(), "film": outcome.film[1].tolist(),
        "curve_steps": [pytest.approx(x) for x in (10 / 6, 30 / 6, 50 / 6)],
        "constant": [outcome.constant[1]], "zero": [outcome.zero[1]],
    }  # fmt: skip


def reproduce(out: Path, *more: str) -> int:
    with tiny_figure():
        return main(["reproduce", FIGURE, *more, "--out", str(out)])


def report(out: Path) -> int:
    with tiny_figure():
        return main(["reproduce", "--report", str(out)])


@pytest.fixture(scope="module")
def reproduced(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GVF_CACHE_DIR", str(stored))
        assert reproduce(out) == 0
    return out


PICTURES = {
    f"{name}.{kind}" for name in (FIGURE, "learning-curves", "film") for kind in ("png", "svg")
}


def test_the_figure_leaves_its_other_pictures_in_folder_and_page(reproduced: Path) -> None:
    left = {path.name for path in (reproduced / FIGURE).iterdir() if path.is_file()}
    assert left >= PICTURES | {f"{FIGURE}.csv", "claims.json", "made-paper.json"}
    page = (reproduced / "report.html").read_text()
    assert "(TORCS, only 2 of 10 runs)" in page
    assert f"gvf reproduce {FIGURE} --scale quick --protocol paper --out" in page
    assert all(f'href="{FIGURE}/{name}"' in page for name in PICTURES)
    for told in ("Error while learning", "A drive that no learner has seen"):
        assert f"<figcaption>{told}" in page
        # A shipped picture, a PNG, stands beside it.
        made_here = rf'<img src="data:image/svg[^"]*" alt="[^"]*: {told}'
        assert len(re.findall(made_here, page)) == 1


def test_the_figure_leaves_its_numbers_and_claims(reproduced: Path) -> None:
    with (reproduced / FIGURE / f"{FIGURE}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["series"] for row in rows] == [
        name for name in (*METHODS, "best constant") for _ in range(2)
    ]
    assert {(row["protocol"], row["panel"], row["runs"]) for row in rows} == {
        ("paper", "main", "2")
    }
    assert [float(row["x"]) for row in rows] == [0.01, 0.1] * 6
    claims = json.loads((reproduced / FIGURE / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [claim.id for claim in paper.get(FIGURE).claims]
    assert {claim["verdict"] for claim in claims} == {"undecided"}  # two runs do not tell


def test_the_picture_has_the_whole_title(reproduced: Path) -> None:
    svg = (reproduced / FIGURE / f"{FIGURE}.svg").read_text()
    assert "to the learning rate (TORCS, only 2 of 10 runs)" in svg


def test_the_report_is_rebuilt_with_all_pictures(reproduced: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    for name in PICTURES:
        (out / FIGURE / name).unlink()
    assert report(out) == 0
    for name in PICTURES:
        assert (out / FIGURE / name).read_bytes() == (reproduced / FIGURE / name).read_bytes()


def test_without_the_film_the_other_pictures_are_drawn(
    reproduced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    for name in PICTURES:
        (out / FIGURE / name).unlink()
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert report(out) == 0
    left = {path.name for path in (out / FIGURE).iterdir()}
    assert PICTURES - left == {"film.png", "film.svg"}
    page = (out / "report.html").read_text()
    assert "film.png" not in page
    assert "learning-curves.png" in page


def test_simulator_and_device_are_chosen_kept_and_told(tmp_path: Path) -> None:
    chosen = ("--simulator", "car-racing", "--device", "cpu")
    assert reproduce(tmp_path, *chosen, "--protocol", "both") == 0
    for protocol in ("paper", "authors"):
        made = json.loads((tmp_path / FIGURE / f"made-{protocol}.json").read_text())
        assert made["options"] == {"simulator": "car-racing", "device": "cpu"}
    page = (tmp_path / "report.html").read_text()
    assert "--simulator car-racing --device cpu" in page
    # The same under both protocols, so it is said once.
    assert len(re.findall(r"\(Gymnasium&#39;s CarRacing\)</h3>", page)) == 1


def test_options_of_the_racing_car_need_it(tmp_path: Path, capsys) -> None:
    for option in (("--simulator", "torcs"), ("--device", "cuda")):
        assert main(["reproduce", "markov-vtrace", *option, "--out", str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert f"{option[0]} is about the racing car: name racing-step-size with it" in told


@pytest.mark.parametrize("kind", ["stream-0", "states", "film"])
def test_results_from_other_material_do_not_mix(
    kind: str, toml: str, tmp_path: Path, small: None, capsys
) -> None:
    out = tmp_path / "out"
    assert main(["study", "run", toml, "--out", str(out)]) == 0
    (log,) = out.glob("logs/*/*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    found = racing_task.material(STUDY).facts()[kind]
    assert {line[kind] for line in lines} == {found}
    log.write_text("".join(json.dumps(line | {kind: "of another"}) + "\n" for line in lines))
    assert main(["study", "run", toml, "--runs", "3", "--out", str(out)]) == 2
    told = f"({kind} of another..., not {found[:12]}...): name another folder with --out"
    assert told in capsys.readouterr().err


def test_results_whose_log_has_only_the_stream_are_continued_and_drawn(
    toml: str, tmp_path: Path, small: None
) -> None:
    out = tmp_path / "out"
    assert main(["study", "run", toml, "--out", str(out)]) == 0
    (log,) = out.glob("logs/*/*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        del line["states"], line["film"]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert draw_film(Results.read(Store(STUDY, out))) is not None
    assert main(["study", "run", toml, "--runs", "3", "--out", str(out)]) == 0


def test_another_film_is_not_drawn_under_these_predictions(
    toml: str, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert main(["study", "run", toml, "--out", str(out)]) == 0
    results = Results.read(Store(STUDY, out))
    assert draw_film(results) is not None
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path))
    put_material(tmp_path)
    states(8, 4, every=3).save(tmp_path / PLACE / "torcs-film-300")  # as long as the other
    assert draw_film(results) is None
