"""What the page of a report says, and the data that it carries."""

import csv
import json
import re
from dataclasses import asdict, replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from shown import PLAIN, chain, made, rows, six_panels, verdict, write

from gvf_lab.figure import Figure, Match
from gvf_lab.figure.figure import write_csv
from gvf_lab.paper import get
from gvf_lab.report.exhibit import STUDIES, Version, theory
from gvf_lab.report.verdict_tables import published_curves, statistic
from gvf_lab.study import NamedStudy, Study

# The page


VOID = {"img", "link", "meta", "source"}


class Reader(HTMLParser):
    """Collects elements and JSON, and checks that each element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open[-1:] == ["script"]:
            id = str(self.found[-1][1]["id"])
            self.inside[id] = self.inside.get(id, "") + data

    def all(self, attribute: str) -> list[str]:
        return [str(found[attribute]) for _, found in self.found if attribute in found]


def test_the_page_is_sound_and_stands_alone(text: str) -> None:
    reader = Reader(text)
    ids = reader.all("id")
    assert len(ids) == len(set(ids))
    for address in reader.all("href"):
        inside = address.startswith("#") and address[1:] in ids
        assert inside or re.fullmatch(r"[a-z-]+/[a-z-]+\.(csv|json|png|svg)", address), address
    pictures = reader.all("src")
    assert pictures
    assert all(address.startswith("data:") for address in pictures + reader.all("srcset"))
    names = [name for name, _ in reader.found]
    scripts = [found["type"] for name, found in reader.found if name == "script"]
    assert scripts == ["application/json"] * 2  # data, which no browser executes
    assert "link" not in names
    assert names.count("h1") == 1
    assert all(found["alt"] for name, found in reader.found if name == "img")
    assert "url(" not in text


def test_the_page_says_how_it_was_made(text: str) -> None:
    assert "<h1>A &lt;report&gt;</h1>" in text
    for fact in (
        "gvf 1.2",
        "gvf reproduce",
        "2 processors",
        "1 h 2 min",
        "2025-11-20 10:11:12 UTC",
    ):
        assert fact in text
    assert "<dt>Seeds</dt><dd>7</dd>" in text
    for protocol in ("paper", "authors"):
        command = f"gvf reproduce --protocol {protocol} --scale paper &amp; co"
        assert f"<pre><code>{command}</code></pre>" in text


def test_the_page_counts_verdicts_and_matches(text: str) -> None:
    summary = text[: text.index("<main>")]
    assert re.findall(r"[✓✗?] \d+ \w+", summary) == [
        "✓ 2 hold", "✗ 1 fail", "? 1 undecided", "✓ 1 hold", "✗ 1 fail", "? 1 undecided",
        "✗ 1 of",
    ]  # fmt: skip
    assert "1 of 2 that must match do" in summary


def test_a_published_curve_counts_once_however_many_figures_show_it() -> None:
    first = chain()
    again = replace(get("markov-vtrace"), published=first.figure.published)
    rooms = get("four-rooms-step-size")
    others = [Match("authors", "main", name, 10, 10, 0.0) for name in ("IR", "IS")]
    shown = [first, replace(first, figure=again), replace(first, figure=rooms, matches=others)]
    assert published_curves(shown) == (2, 1, 2, 2)
    # A curve matches only if it does in all figures.
    worse = [replace(match, within=0) for match in first.matches]
    assert published_curves([replace(first, matches=worse), first]) == (2, 0, 0, 0)
    assert "2 of 2 others match" in write(shown)


def test_the_page_shows_the_checks_of_the_theory(text: str) -> None:
    checks = text[text.index('<section id="theory">') :]
    checks = checks[: checks.index("</section>")]
    assert 'id="theory.theorem-3-1">Theorem 3.1: ' in checks
    every = [row for one in theory()["findings"].values() for row in one["rows"]]
    assert checks.count("✓ holds") == sum(row["holds"] for row in every) == len(every)
    assert theory()["date"] in checks
    assert '<a href="#theory.theorem-3-1">theorem-3-1</a>' in text


def test_every_claim_has_its_row(text: str) -> None:
    table = text[text.index('<table class="claims">') :]
    table = table[: table.index("</table>")]
    assert table.count("<tr>") == 1 + 2 + 7
    assert re.findall(r"[✓✗?] (\w+)", table) == [
        "holds", "holds", "fails", "fails", "undecided", "undecided", "holds",
    ]  # fmt: skip
    for cell in (
        "Claim b.",
        "a ratio",
        "The grid is &lt;coarse&gt;.",
        "1.23 [1.10, 1.40]",
        "&gt; 1",
    ):
        assert cell in table


def test_a_curve_that_must_match_and_does_not_is_told_from_one_that_may_differ(text: str) -> None:
    table = text[text.index('<table class="matches">') :]
    lines = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", table[: table.index("</table>")])
    plain = [re.sub(r"<[^>]*>", " ", line).split() for line in lines]
    assert [" ".join(line) for line in plain] == [
        "IR ✓ matches 70 69 (99%) 2.50 paper may differ",
        "IS ≠ differs 70 20 (29%) ∞ paper may differ",
        "IR ✓ matches 70 69 (99%) 2.50 authors must match",
        "IS ✗ does not match 70 20 (29%) ∞ authors must match",
    ]


def test_main_text_comes_before_the_appendix(text: str) -> None:
    for start in (
        '<article id="{}">',
        '<li><a href="#{}">',
        '<th scope="rowgroup" colspan="4"><a href="#{}">',
    ):
        first, second = (
            text.index(start.format(f))
            for f in ("markov-step-size", "continuous-sgd-step-size-all")
        )
        assert first < second


def test_quick_results_are_marked_and_others_are_not(text: str) -> None:
    marked = "not the paper's numbers"
    assert marked not in text
    quick = write([chain("quick", ("paper",))])
    assert quick.count(marked) == 2
    assert quick.index(marked) < quick.index("<main>")


def test_fewer_runs_than_the_papers_are_told() -> None:
    few = replace(chain(protocols=("paper",)), provenance={"paper": made("paper", runs=3)})
    told = write([few])
    assert "3 (paper: 100)" in told


def test_a_figure_shows_its_notes_and_the_source_of_what_was_published(text: str) -> None:
    article = text[text.index('<article id="markov-step-size">') :]
    article = unescape(article[: article.index("</article>")])
    figure = get("markov-step-size")
    for said in (
        figure.title,
        figure.where,
        figure.notes["paper"],
        "slides p41",
        "100 runs",
        "Grey",
    ):
        assert said in article
    assert f"<dt>Protocol authors</dt><dd>{figure.notes['authors']}</dd>" in article
    assert "curves that match the published ones: 1 of 2 (paper), 1 of 2 (authors)" in article
    assert re.findall(r"[✓✗?] [a-z, ]+", article) == ["✓ holds", "✗ fails", "? undecided"]
    other = text[text.index('<article id="continuous-sgd-step-size-all">') :]
    assert "Grey" not in other
    assert "published.csv" not in other


def test_what_is_noted_about_both_protocols_is_said_once() -> None:
    shown = chain()
    figure = replace(shown.figure, notes={"paper": "As it is.", "authors": "As it is."})
    assert "<dt>Protocols paper and authors</dt><dd>As it is.</dd>" in write(
        [replace(shown, figure=figure)]
    )


@pytest.mark.parametrize(
    ("told", "numbers", "expected"),
    [
        ("holds", (1.0, 0.5, 2.0), "1.00 [0.500, 2.00]"),
        ("undecided", (None, None, None), "no value"),
        ("undecided", (0.2, None, None), "0.200, no interval"),
        ("holds", (None, None, None), "∞ [∞, ∞]"),
        ("holds", (3.0, 2.0, None), "3.00 [2.00, ∞]"),
        ("holds", (None, 2.0, None), "∞ [2.00, ∞]"),
        ("fails", (-3.0, None, -2.0), "−3.00 [−∞, −2.00]"),
    ],
)
def test_statistics_are_told_with_what_is_infinite(told, numbers, expected) -> None:
    value, low, high = numbers
    assert statistic(verdict("a", told, statistic=value, low=low, high=high)) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((1.00412, 1.00013, 1.00789), "1.0041 [1.0001, 1.0079]"),  # not the range's end, 1
        ((0.6111, 0.6108, 0.6144), "0.6111 [0.6108, 0.6144]"),
        ((2.0, 2.0, 2.0), "2.00 [2.00, 2.00]"),
        ((1.0, 1.0, 1.0), "1.00 [1.00, 1.00]"),
        ((1.00000001, 1.0, 1.1), "1.00000 [1.00000, 1.10000]"),
    ],
)
def test_statistics_have_as_many_digits_as_tell_their_numbers_apart(numbers, expected) -> None:
    value, low, high = numbers
    assert statistic(verdict("a", "holds", statistic=value, low=low, high=high)) == expected


def test_a_statistic_that_is_a_bound_shows_it() -> None:
    above, below = (verdict("a", "fails", bound=bound) for bound in (">=", "<="))
    assert statistic(above) == "≥ 1.23 [1.10, 1.40]"
    assert statistic(below) == "≤ 1.23 [1.10, 1.40]"
    alone = verdict("a", "undecided", bound="<=", low=None, high=None)
    assert statistic(alone) == "≤ 1.23, no interval"


# The data that the page carries


def numbers(text: str) -> dict[str, Any]:
    """The JSON of every figure, by the script's id; what is no JSON is refused."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    inside = Reader(text).inside
    return {id: json.loads(said, parse_constant=refuse) for id, said in inside.items()}


@pytest.mark.parametrize("make", [chain, six_panels])
def test_the_page_carries_the_points_of_the_csv_files(make, tmp_path: Path) -> None:
    shown = make()
    told = numbers(write([shown]))[f"data-{shown.figure.id}"]
    for points, name in ((shown.rows, "rows"), (shown.published, "published")):
        write_csv(points, tmp_path / f"{name}.csv")
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert len(told[name]) == len(lines) == len(points)
        for point, line in zip(told[name], lines, strict=True):
            assert list(point) == list(line)
            for key, cell in line.items():
                if key in ("protocol", "panel", "series"):
                    assert point[key] == cell
                elif cell in ("", "inf"):
                    assert point[key] == (cell or None)
                else:
                    assert point[key] == float(cell)
    assert {point["y"] for point in told["rows"]} >= {"inf"}
    assert {point["stderr"] for point in told["rows"]} >= {None}


def test_the_page_carries_what_was_judged_and_how_it_was_made(text: str) -> None:
    told = numbers(text)
    assert set(told) == {"data-markov-step-size", "data-continuous-sgd-step-size-all"}
    mine, shown = told["data-markov-step-size"], chain()
    figure = shown.figure
    assert [mine[key] for key in ("id", "title", "where")] == [
        figure.id, figure.title, figure.where,
    ]  # fmt: skip
    assert mine["axes"] == asdict(figure.axes)
    assert mine["verdicts"] == json.loads(json.dumps([asdict(v) for v in shown.verdicts]))
    told_of = [(m["protocol"], m["series"], m["worst"], m["must_match"]) for m in mine["matches"]]
    assert told_of == [
        ("paper", "IR", 2.5, False),
        ("paper", "IS", "inf", False),
        ("authors", "IR", 2.5, True),
        ("authors", "IS", "inf", True),
    ]
    assert mine["made"] == {protocol: asdict(how) for protocol, how in shown.provenance.items()}


def test_a_hostile_title_ends_no_element() -> None:
    title = "</script><b>&amp;'\""
    shown = chain()
    text = write([replace(shown, figure=replace(shown.figure, title=title))], title=title)
    reader = Reader(text)
    assert [found for name, found in reader.found if name == "b"] == []
    assert numbers(text)["data-markov-step-size"]["title"] == title
    assert text.count("</script>") == 1
    assert text.count("&lt;/script&gt;&lt;b&gt;&amp;amp;") >= 5  # title, headings, links, table


# A study of one's own


def own(protocol: str = "", **changes: Any) -> Version:
    """No claims, nothing published, no place in the paper, no scale."""
    source = NamedStudy("mine", "", lambda protocol: Study("mine", "markov-chain", ("IR",), (1.0,)))
    figure = Figure(source, "My < study", "", PLAIN, lambda results: [], part=STUDIES, **changes)
    how = made(protocol, scale="", runs=3)
    points = rows(protocols=(protocol,))
    return Version(figure, points, provenance={protocol: how})


def test_a_study_of_ones_own_shows_nothing_that_it_does_not_have() -> None:
    text = write([own()])
    reader = Reader(text)
    assert set(reader.all("id")) == {"made", "contents", "mine", "data-mine"}
    for absent in ("paper:", "Schlegel", "Protocol", "Scale", "claims.json", "published", "Grey"):
        assert absent not in text[text.index("<body>") : text.index("<script")], absent
    assert re.findall(r"<(\w+)[^>]*>\s*</\1>", text) == []
    assert '<h2 class="sheet">Studies</h2>' in text
    assert "<h3>My &lt; study</h3>" in text
    headings = re.findall(r'<th scope="col">(.*?)</th>', text)
    assert headings == ["Runs", "Seed", "Time", "Finished", "Version"]
    assert '<td data-label="Runs"><span>3</span></td>' in text
    told = numbers(text)["data-mine"]
    assert len(told["rows"]) == 60
    assert told["part"] == "Studies"
    assert told["published"] == told["verdicts"] == told["matches"] == []


def test_the_protocol_of_ones_own_study_is_named_and_not_explained_as_the_papers() -> None:
    text = write([own("paper", notes={"paper": "A first look."})])
    assert "<dt>Protocol paper</dt><dd>A first look.</dd>" in text
    assert '<th scope="row">paper</th>' in text
    assert "what we stand behind" not in text
    assert "<dt>Note</dt><dd>A first look.</dd>" in write([own(notes={"": "A first look."})])


def test_own_studies_come_after_the_figures_of_the_paper() -> None:
    test = replace(six_panels(), figure=get("four-rooms-targets"), verdicts=())
    text = write([own(), test, six_panels(), chain()])
    assert re.findall(r'<h2 class="sheet">(.*?)</h2>', text) == [
        "Figures of the main text",
        "Figures of the appendix, the talk and the code",
        "Tests of ours",
        "Studies",
    ]
    articles = re.findall('<article id="(.*?)">', text)
    assert articles == [
        "markov-step-size", "continuous-sgd-step-size-all", "four-rooms-targets", "mine",
    ]  # fmt: skip
    assert "Schlegel" in text
    assert "Studies that are not the paper's come after its figures." in text
    assert "come after" not in write([chain()])
    claims = text[text.index('<section id="claims">') : text.index('<h2 class="sheet">')]
    assert "My &lt; study" not in claims


def test_a_place_in_the_paper_is_told_wherever_the_figure_is_named(text: str) -> None:
    shown = chain()
    assert text[: text.index("<script")].count("Fig. 4 left") == 4  # contents, two tables, article
    nowhere = write([replace(shown, figure=replace(shown.figure, where=""))])
    assert "<small></small>" not in nowhere
    assert '<p class="small"></p>' not in nowhere
    assert "()" not in nowhere
