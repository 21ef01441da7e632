"""Parts of domains as data: made again unchanged, and what a file may not name."""

import json
from typing import Any

import numpy as np
import pytest

import gvf
from gvf.common.describe import build, describe, differences
from gvf_lab.domain.continuous_four_rooms import CellTable, cells_of


@pytest.mark.parametrize(
    "part",
    [CellTable(gvf.policies.Table(np.full((121, 4), 0.25))), gvf.policies.Function(cells_of)],
    ids=repr,
)
def test_a_part_of_a_domain_is_made_again_as_it_was(part: Any) -> None:
    arrays: dict[str, Any] = {}
    description = json.loads(json.dumps(describe(part, arrays)))
    again = build(description, arrays, trust=["gvf_lab.domain"])
    assert type(again) is type(part)
    assert repr(again) == repr(part)
    assert differences(description, describe(again, {})) == []


def test_a_class_of_a_domain_is_named_by_its_module_and_needs_no_trust() -> None:
    arrays: dict[str, Any] = {}
    description = describe(CellTable(gvf.policies.Table([[1.0]])), arrays)
    assert description["class"].startswith("gvf_lab.domain.")
    assert isinstance(build(description, arrays), CellTable)


@pytest.mark.parametrize(
    "name", ["gvf_lab.racing.car_racing:CarRacing", "gvf_lab.racing.driving:Drive"]
)
def test_the_laboratory_gives_nothing_but_classes_that_hold_data(name: str) -> None:
    for node in ({"function": name}, {"class": name, "arguments": {}}):
        with pytest.raises(ValueError, match=r"^the description names gvf[^\n]+$"):
            build(node, {}, ())
