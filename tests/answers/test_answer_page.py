"""The page of an answer, as text and in a browser."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chain_logs import QUESTION, walks, write
from pages import Read

from gvf.answers import answer, diagnose, load, prepare
from gvf.answers.answer import edge_of
from gvf.answers.answer_page import diagnosis_page, page
from gvf.answers.read_inputs import described
from gvf.answers.support_of_log import warnings_of
from gvf.findings import Code, Finding
from gvf.log.checked_rows import LIKELIHOODS
from gvf.transition import ESTIMATED

FEW = Finding(Code.FEW_EPISODES, "stops", {"episodes": 3})


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory):
    """An answer with states of three dimensions, two questions and an estimated behaviour."""
    pytest.importorskip("sklearn", reason="a behaviour of real states is estimated by scikit-learn")
    folder = tmp_path_factory.mktemp("real")
    rng = np.random.default_rng(0)
    columns = walks(60)
    state = columns.pop("obs")
    columns |= {"x": state / 4.0, "noise": rng.normal(size=len(state)), "same": 0.0 * state}
    columns["y<z"] = columns["x"] + 0.3 * rng.normal(size=len(state))
    del columns["action_prob"]
    write(folder / "log.parquet", columns)
    text = """
[behaviour]
kind = "estimated"
[log]
state = ["noise", "same", "x", "y<z"]
[features]
kind = "tiles"
tiles = 3
tilings = 2
"""
    second = '[[question]]\nname = "a <b> & c"\npolicy = "uniform"\ncumulant = 1\n'
    (folder / "asked.toml").write_text(QUESTION + second + text)
    plan = load(folder / "asked.toml")
    return answer(
        plan, folder / "log.parquet", folder / "out", workers=1, progress=False, quiet=True
    )


def test_the_page_tells_everything(found, folder: Path) -> None:
    read = Read((folder / "out" / "report.html").read_text("utf-8"))
    assert read.said("h1") == "goes right, asked of log.parquet"
    assert read.texts["h2"] == ["The log", "goes right", "How it was made"]
    assert read.texts["h3"] == [
        "Does the log support the question?", "Which correction and step size?",
        "The value of the policy", "Predictions along episodes", "Values over the states",
    ]  # fmt: skip
    judgement = found.answers[0].judgement
    assert str(judgement.verdict)[1:] in read.said("p")
    assert "781 transitions in 120 episodes of" in read.said("p")
    assert found.material.log.describe().split("\n")[1].strip()[:7] in read.said("pre")
    facts = dict(zip(read.texts["dt"], read.texts["dd"], strict=True))
    assert facts["Policy"] == "favour, action = 1, probability = 0.7"
    assert facts["Worth"] == "679 of 781 transitions (87 %)"
    assert facts["Ratios"] == "from the probabilities that the log has"
    assert read.labels >= {"Squared error", "Above the best", "Standing"}
    for score in judgement.scores[:4]:
        if score.standing != "reference":
            assert score.name in read.said("th")
    assert "goes-right.gvf" in read.said("code")
    assert len(read.images) == 4
    for image in read.images:
        head, code = image["src"].split(",")
        assert image["alt"]
        assert int(image["width"]) > 300
        content = base64.b64decode(code)
        assert content.startswith(b"\x89PNG" if "png" in head else b"<?xml")


def test_a_page_of_real_states_and_two_questions(real) -> None:
    text = page(real, ["predictions.parquet"])
    assert "http:" not in text.replace("http://www.w3.org", "")
    read = Read(text)
    assert read.said("h1") == "2 questions, asked of log.parquet"
    assert read.texts["h2"] == [
        "The log", "The estimated behaviour", "goes right", "a <b> & c", "How it was made",
    ]  # fmt: skip
    # x and its noisy copy explain the values; noise and a constant do not.
    assert any(
        set(h[len("Values over ") :].split(" and ")) == {"x", "y<z"} for h in read.texts["h3"]
    )
    assert "The ratios are estimated." in read.said("b")
    log = real.material.log
    assert "behaviour probabilities: estimated, not recorded" in read.said("pre")
    bare = log.with_columns(lambda batch: dict.fromkeys(LIKELIHOODS))
    bare = bare.with_columns(lambda batch: {ESTIMATED: None})
    for kind, told in (
        ("estimated", "not in the log, so they are estimated"),
        ("fixed", "not in the log, but [behaviour] gives them"),
        ("default", "not in the log; name a column, give"),
    ):
        plan = replace(real.plan, behaviour={"kind": kind})
        assert f"behaviour probabilities: {told}" in described(bare, plan)
    assert "1" in read.texts["dd"]  # the cumulant of the second question


def test_the_dimensions_of_the_map_can_be_named(real) -> None:
    plan = replace(real.plan, dimensions=("noise", 2))
    named = replace(real, material=replace(real.material, plan=plan))
    assert "Values over noise and x" in Read(page(named, [])).texts["h3"]


def test_the_page_says_when_the_log_cannot_tell(found) -> None:
    one = found.answers[0]
    doubtful = replace(one.judgement, findings=(FEW,))
    text = page(replace(found, answers=(replace(one, judgement=doubtful),)), [])
    said = Read(text).said("p")
    assert "Cannot tell: there are only 3 held-out episodes" in said
    assert "Do not rely on it." in said
    assert "goes right: cannot tell" in text
    assert "lowest error" in Read(text).texts["span"]
    assert "best" not in Read(text).texts["span"]


def test_the_page_says_that_no_step_size_beyond_was_tried(found) -> None:
    one, plan = found.answers[0], found.plan
    for sizes, told in (
        ((one.step_size, 2.0), f"{one.step_size:g} is the smallest of the step sizes"),
        ((1e-5, one.step_size), f"{one.step_size:g} is the largest of the step sizes"),
        ((1e-5, one.step_size, 2.0), ""),
    ):
        edge = edge_of(replace(plan, step_sizes=sizes), one)
        assert edge.startswith(told)
        assert bool(edge) == bool(told)
    assert edge_of(plan, one) in page(found, [])


def test_states_without_an_interval_are_told(found) -> None:
    one = found.answers[0]
    assert "The log says nothing about" not in page(found, [])
    some = np.zeros_like(one.intervals.known)
    unsure = replace(one, intervals=replace(one.intervals, known=some))
    said = Read(page(replace(found, answers=(unsure,)), [])).said("figcaption")
    assert "The log says nothing about 100 % of its states" in said


def test_doubts_about_an_estimate_are_warnings_of_every_question(real) -> None:
    scores = real.material.estimated.scores
    wrong = replace(scores, log_loss=replace(scores.log_loss, low=9.0))
    material = replace(real.material, estimated=replace(real.material.estimated, scores=wrong))
    doubtful = replace(real, material=material)
    assert "the model is too rich" in repr(doubtful)
    read = Read(page(doubtful, []))
    assert read.said("p").count("the model is too rich for this log") == 2
    assert "no warnings" not in read.said("span")


def test_a_diverged_step_size_is_shown_as_such(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "asked.toml").write_text(QUESTION.replace("[0.02, 0.2]", "[0.1, 1e9]"))
    made = answer(
        load(tmp_path / "asked.toml"), folder / "log.parquet", tmp_path / "out",
        workers=1, progress=False, quiet=True,
    )  # fmt: skip
    read = Read(page(made, []))
    assert made.answers[0].step_size == 0.1
    assert "diverged" in read.said("span")
    assert "infinite" in read.said("span")


def test_the_page_of_a_diagnosis(found) -> None:
    told = diagnose(found.material)
    read = Read(diagnosis_page(found.material, told))
    assert read.said("h1") == "Diagnosis: goes right, asked of log.parquet"
    assert read.texts["h3"] == ["Does the log support the question?"]
    assert told[0].diagnosis.reason in read.said("figcaption")
    assert re.search("held-out episodes: worth .* of 120; they can judge", repr(told[0]))


@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_opens_the_page_offline_without_complaints(
    browser, real, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(real, ["predictions.parquet"]), encoding="utf-8")
    browser.opens_cleanly(path, width, pictures=9)
    assert browser.ask("document.title") == "2 questions, asked of log.parquet"


def test_a_diagnosis_tells_the_cover_at_its_own_threshold(tmp_path: Path) -> None:
    """Half of the target's actions have the probability 0.05: they are taken, though rarely."""
    columns = walks(200)
    columns["action_prob"] = np.where(columns["action"] == 1, 0.05, 0.95)
    write(tmp_path / "log.parquet", columns)
    (tmp_path / "asked.toml").write_text(QUESTION)
    (told,) = diagnose(prepare(load(tmp_path / "asked.toml"), tmp_path / "log.parquet", quiet=True))
    lost = told.support.lost
    assert lost[told.support.least].value == 0.0
    assert lost[max(lost)].value > 0.5
    assert "cover: 0 % of the target's actions are hardly taken (below 0.01)\n" in repr(told)


def test_warnings_blame_the_estimate_if_there_is_one(found) -> None:
    (one,) = found.answers
    mean = replace(one.support.mean_ratio, value=0.5, low=0.4, high=0.6)
    ratios = replace(one.ratios, k_hat=2.0, mean_ratio=0.5)
    support = replace(one.support, mean_ratio=mean)
    for estimated, told in (
        (
            False,
            ("record a behaviour closer", "behaviour's probabilities are wrong", "or its prob"),
        ),
        (True, ("estimate the behaviour by a simpler model", "the estimate of the behaviour")),
    ):
        warnings = " ".join(warnings_of(ratios, replace(support, estimated=estimated)))
        assert all(words in warnings for words in told)
    assert "or its estimate is wrong" in warnings
    assert "record a behaviour" not in warnings
    assert "probabilities are wrong" not in warnings


def test_actions_that_the_log_never_has_stand_beside_its_worth(found) -> None:
    """Ratios of recorded actions cannot know of them: they look as if all were well."""
    (one,) = found.answers
    support = replace(one.support, untried={2: 0.25, 3: 0.05})
    made = replace(found, answers=(replace(one, support=support),))
    without = "without the 30 % of its actions that the log never has"
    assert f"largest {one.ratios.max_ratio:.3g}; {without}\n" in repr(made)
    facts = Read(page(made, [])).texts["dd"]
    assert f"679 of 781 transitions (87 %) of the target, {without}" in facts
    assert "0 % of the target's actions (below 0.01), and 30 % never" in facts
