"""Names that are unknown are answered with the nearest known ones."""

import pytest

from gvf.common.part_names import nearest


@pytest.mark.parametrize(
    ("name", "names", "told"),
    [
        ("b", ["a", "bc"], "did you mean 'bc'? Known are 'a', 'bc'"),
        ("x", ["a", "bc"], "known are 'a', 'bc'"),
        ("x", [], "known are none"),
        ("Vtrace", ["IR", "V-trace(1.0)"], "did you mean 'V-trace(1.0)'? Known are 'IR', 'V-tr"),
        ("lane-999", [f"lane-{i}" for i in range(900)], "did you mean 'lane-99' or 'lane-"),
        ("x", [f"lane-{i}" for i in range(900)], "known are 'lane-0', 'lane-1', 'lane-2', "),
    ],
)
def test_a_message_has_the_nearest_names_and_all_only_if_they_are_few(name, names, told):
    message = nearest(name, names)
    assert message.startswith(told)
    assert len(message) < 150
