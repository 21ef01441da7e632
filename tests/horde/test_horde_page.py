"""The page of a horde."""

import base64
import re

import numpy as np
import pytest
from many_learners import BEHAVIOUR, asked, stream
from pages import Read

import gvf
from gvf.horde import horde_page as pages
from gvf.horde.horde_returns import score
from gvf.horde.layout import Layout

POLICIES = {"any <all>": gvf.policies.Uniform(3), "mostly 1": gvf.policies.Favour(1, 0.8, 3)}
ASKED = gvf.question_grid(POLICIES, gvf.SignalBank("sensors", ["a", "b", "c", "d"]), [0.0, 0.8])


def data(steps, policy: gvf.policies.Policy = BEHAVIOUR, seed=0):
    made = stream(steps, states=0, seed=seed, ends=0.0)
    rng = np.random.default_rng(seed)
    action = policy.sample(np.zeros(steps), rng=rng)
    columns = {**made.columns, "action": action}
    sensors = made.next_state @ rng.normal(size=(2, 4)) + action[:, None]
    return gvf.Transitions(
        **columns,
        sensors=sensors,
        behaviour_probability=policy.probability(made.state, action),
    )


def learned(questions=ASKED, **options):
    horde = gvf.Horde(
        questions,
        gvf.features.Dense(3, lambda s: np.column_stack([np.ones(len(s)), s])),
        gvf.updates.TD(0.05),
        behaviour=BEHAVIOUR,
        window=500,
        batch_size=4,
        seed=0,
        **options,
    )
    horde.observe(data(600))
    return horde


def read(path):
    text = path.read_text("utf-8")
    assert "http:" not in text.replace("http://www.w3.org", "")
    return Read(text)


def test_a_page_shows_everything(tmp_path):
    horde, held_out = learned(rupee=True), data(900, POLICIES["mostly 1"], 3)
    errors = horde.stream_error(held_out)
    horde.page(tmp_path / "horde.html", errors=errors, stretch=held_out, title="Robot & dog")
    page = read(tmp_path / "horde.html")
    assert page.said("h1") == "Robot & dog"
    assert "16 questions about 2 policies" in page.said("p")
    assert page.texts["h2"] == ["Errors", "A stretch of time", "Map", "Policies"]
    assert page.labels >= {"UDE", "RUPEE", "Variance explained", "Effective sample size"}
    assert "any <all>" in page.said("th")
    captions = page.said("figcaption")
    assert "The target policy of these questions acted" in captions
    assert "measured for 8 questions" in captions
    assert len(page.images) == 5
    for image in page.images:
        head, code = image["src"].split(",")
        content = base64.b64decode(code)
        assert image["alt"]
        assert int(image["width"]) > 500
        assert content.startswith(b"\x89PNG" if "png" in head else b"<?xml")
    best = next(iter(errors.best(1)))
    assert best in page.said("th")


def test_a_page_without_returns_says_what_it_can(tmp_path):
    horde = learned()
    horde.page(tmp_path / "horde.html")
    page = read(tmp_path / "horde.html")
    assert page.texts["h2"] == ["Errors", "Map", "Policies"]
    assert page.texts["h3"] == ["The largest UDE"]
    assert not page.labels & {"RUPEE", "Variance explained"}
    assert len(page.images) == 3
    worst = next(iter(horde.report().worst(1)))
    assert worst in page.said("th")


@pytest.mark.parametrize("recorded", [True, False])
def test_the_page_says_whose_returns_it_shows(tmp_path, recorded):
    horde, held_out = learned(), data(300, seed=5)
    if not recorded:
        columns = {n: c for n, c in held_out.columns.items() if n != "behaviour_probability"}
        held_out = gvf.Transitions(**columns)
    horde.page(tmp_path / "horde.html", stretch=held_out, names=ASKED[0].name)
    said = read(tmp_path / "horde.html").said("figcaption")
    expected = "did not act" if recorded else "do not tell which policy acted"
    assert expected in said
    assert "policy of these questions acted" not in said


def test_a_page_before_the_first_look_and_with_pauses(tmp_path):
    horde = gvf.Horde(
        ASKED, gvf.features.Dense(2), gvf.updates.TD(0.05), behaviour=BEHAVIOUR, window=90, seed=0
    )
    with pytest.raises(ValueError, match="the window is empty"):
        horde.page(tmp_path / "horde.html")
    few = data(30)
    few["sensors"][7, 2] = np.nan
    horde.observe(few)
    horde.page(tmp_path / "horde.html")
    page = read(tmp_path / "horde.html")
    assert "No errors are known yet" in page.said("p")
    assert page.texts["h2"] == ["Errors", "Policies", "Paused"]
    assert "a signal was not finite" in page.said("li")


def test_a_stretch_is_that_of_predictions_and_returns():
    horde, held_out = learned(), data(700, POLICIES["mostly 1"], 3)
    ranks = np.arange(16.0)[::-1]
    found = pages.stretch_of(horde._layout, horde.predict, held_out, None, ranks)
    assert found.on_policy
    # Six of the eight about the policy that acted, the lowest rank first.
    assert [horde.names.index(name) for name in found.names] == [15, 14, 13, 11, 10, 8]
    np.testing.assert_array_equal(
        found.predictions, horde.predict(held_out.state[:500])[:, [15, 14, 13, 11, 10, 8]]
    )
    question = horde.questions[15]
    c, gamma = question.cumulants(held_out), question.continuations(held_out)
    expected = sum(c[3 + i] * np.prod(gamma[3 : 3 + i]) for i in range(200))
    assert found.returns[3, 0] == pytest.approx(expected, rel=1e-9)


def test_parts_are_named_after_their_questions_if_these_are():
    parts = pages._Parts(Layout(ASKED, gvf.corrections.IR()))
    assert parts.names == [["any <all>", "mostly 1"], ["a", "b", "c", "d"], ["0.0", "0.8"]]
    other = [*ASKED, gvf.GVF(gvf.policies.Uniform(3), "reward", 0.5, name="extra")]
    parts = pages._Parts(Layout(other, gvf.corrections.IR()))
    assert parts.names[0] == ["Uniform(3)", "Favour(1, 0.8, 3)"]
    assert parts.names[2] == ["0.0", "0.8", "0.5"]
    made = [gvf.GVF(gvf.policies.Uniform(3), "reward", g, name=f"{g}, x, {g}") for g in (0.1, 0.2)]
    parts = pages._Parts(Layout(made, gvf.corrections.IR()))
    assert parts.names == [["Uniform(3)"], ["x"], ["0.1", "0.2"]]


def test_the_map_has_a_cell_for_each_question(monkeypatch):
    drawn = []
    monkeypatch.setattr(pages.horde_plots, "error_map", lambda *given: drawn.append(given))
    monkeypatch.setattr(pages, "embed", lambda *given: {})
    questions = [q for i, q in enumerate(ASKED) if i != 3]
    parts = pages._Parts(Layout(questions, gvf.corrections.IR()))
    ude = np.arange(15.0)
    ude[0:3] = np.nan
    told = pages._map(parts, ude, "UDE")
    cells, rows, groups, columns, _ = drawn[0]
    assert (told["rows"], told["groups"]) == ("cumulants", "policies")
    assert (rows, groups, columns) == (
        ["a", "b", "c", "d"],
        ["any <all>", "mostly 1"],
        ["0.0", "0.8"],
    )
    for number, question in enumerate(questions):
        policy, cumulant, horizon = question.name.split(", ")
        cell = cells[rows.index(cumulant), groups.index(policy), columns.index(horizon)]
        np.testing.assert_equal(cell, ude[number])
    assert np.isnan(cells).sum() == 4
    twice = [
        gvf.GVF(gvf.policies.Uniform(3), "r", 0.5, name=str(i), interest=i + 1.0) for i in range(2)
    ]
    for what, worst in (("UDE", 0.7), ("variance explained", 0.2)):
        for errors in ([0.2, 0.7], [0.7, 0.2]):
            pages._map(pages._Parts(Layout(twice, gvf.corrections.IR())), np.array(errors), what)
            assert drawn[-1][0].item() == worst
    few = gvf.question_grid(
        {str(i): gvf.policies.Favour(0, 0.1 * i, 3) for i in range(4)}, {"r": "reward"}, [0]
    )
    assert (
        pages._map(pages._Parts(Layout(few, gvf.corrections.IR())), np.ones(4), "UDE")["rows"]
        == "policies"
    )


def test_a_page_of_very_many_questions_is_small_and_quick(tmp_path):
    policies = {f"p{i}": gvf.policies.Favour(1, 0.5 + i / 100, 3) for i in range(40)}
    many = gvf.SignalBank(lambda t: np.outer(t.reward, np.ones(250)), 250)
    questions = gvf.question_grid(policies, many, [0.0, 0.9])
    horde = gvf.Horde(
        questions,
        gvf.features.Dense(2),
        gvf.updates.TD(0.05),
        behaviour=BEHAVIOUR,
        window=200,
        seed=0,
    )
    held_out = data(600, policies["p3"], 3)
    horde.observe(data(128))
    errors = score(
        horde.names, np.zeros((3, 20_000)), np.random.default_rng(0).normal(size=(3, 20_000))
    )
    horde.page(tmp_path / "horde.html", errors=errors, stretch=held_out)
    assert (tmp_path / "horde.html").stat().st_size < 3_000_000
    assert "20,000 questions about 40 policies" in read(tmp_path / "horde.html").said("p")
    assert "10 more policies" in read(tmp_path / "horde.html").said("p")


def test_long_names_are_shortened_in_the_middle():
    assert pages.horde_plots.short("abc", 5) == "abc"
    assert pages.horde_plots.short("abcdefghij", 5) == "ab…ij"
    assert len(pages.horde_plots.short("x" * 99)) == 34


def test_questions_of_all_kinds_have_a_page(tmp_path):
    horde = gvf.Horde(
        asked(),
        gvf.features.Dense(2),
        gvf.updates.TD(0.05),
        gvf.corrections.EmphaticIR(0.5),
        behaviour=BEHAVIOUR,
        seed=0,
    )
    horde.observe(stream(200, states=0))
    horde.page(tmp_path / "horde.html")
    assert re.search("Policies", read(tmp_path / "horde.html").said("h2"))


def test_a_browser_opens_the_page_offline_without_complaints(browser, tmp_path):
    horde, held_out = learned(rupee=True), data(900, POLICIES["mostly 1"], 3)
    path = tmp_path / "horde.html"
    horde.page(path, errors=horde.stream_error(held_out), stretch=held_out)
    for width in (360, 1280):
        browser.opens_cleanly(path, width, pictures=5)


def test_the_page_shows_questions_that_are_worse_than_a_constant(tmp_path):
    asked = gvf.question_grid(
        {"mu": BEHAVIOUR, "u": gvf.policies.Uniform(3)}, {"reward": "reward"}, [0.0, 0.5]
    )
    horde = gvf.Horde(
        asked,
        gvf.features.Dense(2),
        gvf.updates.TD(0.0001),
        behaviour=BEHAVIOUR,
        window=500,
        batch_size=4,
        seed=0,
    )
    horde._predict([[0.0, 0.0]])
    assert horde._shard.weights is not None
    place = horde._layout.place[:1]
    horde._shard.weights.put(place, {"weights": np.full((1, 2), 9.0)})
    horde.observe(data(6_400))
    horde.page(tmp_path / "horde.html")
    page = read(tmp_path / "horde.html")
    assert "The worst of those checked while they learned" in page.texts["h3"]
    assert page.labels >= {"Variance explained", "Returns", "Returns cut"}
    assert "1 question predicts worse than a constant: mu, reward, 0.0" in page.said("p")
    assert "1 of 2 checked questions worse than a constant" in page.said("span")
    assert "2 about other policies (return_error" in page.said("p")
    shown = np.array(page.texts["th"])
    assert list(shown).index("mu, reward, 0.0") < list(shown).index("mu, reward, 0.5")


def test_the_page_warns_of_returns_that_were_cut(tmp_path):
    horde, cut = learned(), data(900, POLICIES["mostly 1"], 3)
    rng = np.random.default_rng(0)
    cut = gvf.Transitions(**{**cut.columns, "truncated": rng.random(900) < 0.1})
    errors = horde.stream_error(cut)
    assert [warning.problem for warning in errors.warnings] == [gvf.learners.Problem.CUT]
    horde.page(tmp_path / "horde.html", errors=errors)
    assert str(errors.warnings[0]) in read(tmp_path / "horde.html").said("p")
