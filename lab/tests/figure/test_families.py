"""Families of claims: how a table becomes claims, and errors that name the family."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gvf.common.arrays import Array
from gvf_lab.figure.claim import Claim, HistoryEntry
from gvf_lab.figure.families import chosen, pair_of, read_families, reasons, rows, slug
from gvf_lab.study.results import Results


def statistic(results: Results, **of: Any) -> Array:
    return np.ones(1)


def statistic_of(name: str) -> Any:
    return {"ratio": statistic}[name]


PLAIN: dict[str, Any] = {
    "id": "faster-than-{other}", "figure": "speed", "other": ["IS", "V-trace(1.0)"],
    "says": "IR learns faster than {other}.", "measure": "{other} over IR", "statistic": "ratio",
    "of": {"method": "{other}", "other": "IR"}, "least": 1, "why": "tie", "history": ["written"],
}  # fmt: skip


def claims_of(lists: Mapping[str, list[Any]] | None = None, **fields: Any) -> list[Claim]:
    file = {"lists": lists or {}, "family": [PLAIN | fields]}
    return [claim for _, claim in read_families(file, statistic_of)]


def test_a_family_has_a_claim_for_every_value() -> None:
    first, second = claims_of()
    assert first == Claim(
        "faster-than-is",
        "IR learns faster than IS.",
        "IS over IR",
        statistic,
        least=1.0,
        why=reasons()["why"]["tie"],
        history=(HistoryEntry(reasons()["history"]["written"].text, "unrecorded"),),
        of={"method": "IS", "other": "IR"},
        family="faster-than-{other}",
        names={"figure": "speed", "other": "is"},
    )
    assert (second.id, second.of["method"]) == ("faster-than-v-trace-1", "V-trace(1.0)")
    assert (first.most, first.needs, first.protocols) == (math.inf, (), ("paper", "authors"))


def test_the_last_list_varies_fastest_and_figures_are_values_too() -> None:
    file = {"family": [PLAIN | {"figure": ["a", "b"], "id": "{other}"}]}
    read = [(figure, claim.id) for figure, claim in read_families(file, statistic_of)]
    assert read == [("a", "is"), ("a", "v-trace-1"), ("b", "is"), ("b", "v-trace-1")]


def test_a_list_has_a_name_and_tables_have_several() -> None:
    lists = {"both": [{"gap": 4, "at": "6,187 updates"}, {"gap": 1, "at": ""}]}
    first, second = claims_of(
        lists, other=["IS"], when="both", id="{other}-{at}", says="At {at}.",
        of={"gap": "{gap}", "methods": "{both}"},
    )  # fmt: skip
    assert (first.id, first.sentence, first.of["gap"]) == (
        "is-6187-updates",
        "At 6,187 updates.",
        4,
    )
    assert second.id == "is"
    assert second.of["methods"] == tuple(lists["both"])


def test_a_list_in_a_text_is_joined() -> None:
    (claim,) = claims_of({"others": ["IS", "IR"]}, other=["x"], measure="the lowest of {others}")
    assert claim.measure == "the lowest of IS, IR"


def test_words_of_the_reasons_stand_in_texts() -> None:
    (claim,) = claims_of(other=["IS"], measure="{passes}, of {other}")
    assert claim.measure == f"{reasons()['words']['passes']}, of IS"


@pytest.mark.parametrize(
    ("policies", "pair"),
    [("hard", ("hard", "hard")), ("down/random-state", ("down", "random-state"))],
)
def test_pairs_are_written_as_target_and_behaviour(policies: str, pair: tuple[str, str]) -> None:
    assert pair_of(policies) == pair
    (claim,) = claims_of(other=["IS"], of={"pair": "{p}", "pairs": ["{p}", "x/y"]}, p=policies)
    assert (claim.of["pair"], claim.of["pairs"]) == (pair, (pair, ("x", "y")))


def test_a_field_may_differ_from_claim_to_claim() -> None:
    table = {"else": ["written"], "IS": ["added"], "IS & speed": ["audited"]}
    first, second = claims_of(history=table)
    assert [entry.knew for entry in first.history] == ["audit"]
    assert [entry.knew for entry in second.history] == ["unrecorded"]
    counted, other = claims_of(not_counted={"IS": "It follows."}, protocols={"IS": ["paper"]})
    assert (counted.not_counted, counted.protocols) == ("It follows.", ("paper",))
    assert (other.not_counted, other.protocols) == ("", ("paper", "authors"))


def test_two_keys_for_a_claim_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"family 'faster-than-\{other\}': 'IS' and 'speed' name"):
        claims_of(history={"IS": ["written"], "speed": ["added"]})
    assert chosen({"a": 1, "b": 2}, {"x": "c"}) is None
    assert chosen("plain", {}) == "plain"


def test_reasons_are_keys_or_texts_and_several_are_joined() -> None:
    first, _ = claims_of(why=["tie", "We take more."], because="It is so.")
    assert first.why == f"{reasons()['why']['tie']} We take more."
    assert first.because == "It is so."


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"why": "tied"}, "unknown why: 'tied'; did you mean 'tie'"),
        ({"history": ["writen"]}, "unknown history: 'writen'; did you mean 'written'"),
        ({"says": "{others} is so."}, "'others'"),
        ({"of": {"method": "{others}"}}, "'others'"),
        ({"statistic": "quotient"}, "'quotient'"),
        ({"wyh": "tie"}, "'wyh' is no field of a claim, and no text has {wyh}"),
        ({"not_counted": {"IR": "It follows."}}, "not_counted: no claim has 'IR'"),
    ],
)
def test_an_error_names_the_family(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"family 'faster-than-\{other\}': ") as raised:
        claims_of(**fields)
    assert message in str(raised.value)


def test_a_history_tells_the_most_that_was_known() -> None:
    known = {
        ("written",): "unrecorded",
        ("written", "audited"): "audit",
        ("added", "written", "audited"): "results",
    }
    for keys, knew in known.items():
        assert claims_of(history=list(keys))[0].knew == knew


def test_names_of_methods_have_short_forms_of_their_own() -> None:
    methods = {
        "IR": "ir", "BC-IR": "bc-ir", "V-trace(1.0)": "v-trace-1", "WIS-TD(0)": "wis-td",
        "V-trace(0.5 max)": "v-trace-0.5-max", "IR+WIS-TD(0)": "ir-wis-td",
        "Expected Sarsa": "expected-sarsa", "an update every 4 steps": "an-update-every-4-steps",
        " (24,750 updates)": "24750-updates", "down/uniform": "down-uniform", "": "",
    }  # fmt: skip
    assert {method: slug(method) for method in methods} == methods


def test_a_family_without_lists_is_one_claim() -> None:
    assert list(rows({"id": "x", "figure": "f"}, {})) == [{"figure": "f"}]


def test_every_reason_is_used() -> None:
    from gvf_lab.catalogue import Figures

    claims = [claim for figure in Figures("paper", "charts").values() for claim in figure.claims]
    texts = " ".join(
        text
        for claim in claims
        for text in (
            claim.why, claim.because, claim.not_counted, claim.measure,
            *(entry.text for entry in claim.history),
        )
    )  # fmt: skip
    for table in ("words", "why", "because", "not_counted"):
        for key, text in reasons()[table].items():
            assert text in texts, key
    for key, entry in reasons()["history"].items():
        assert entry.text in texts, key
