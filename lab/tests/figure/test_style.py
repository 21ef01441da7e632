"""How methods look."""

import colorsys
import itertools

import numpy as np
import pytest
from shown import NAMES

from gvf.common.colours import METHOD_COLOURS
from gvf.learners.method import EMPHATIC
from gvf_lab.figure.style import METHODS, ONLINE, styles
from gvf_lab.study.online_study import NAMED


def test_every_method_looks_different_and_has_a_marker_of_its_own() -> None:
    assert set(METHODS) == {*NAMES, *EMPHATIC}
    looks = list(METHODS.values())
    assert len({(look.colour, look.marker, look.dash) for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)
    others = (look.width for name, look in METHODS.items() if name != "IR")
    assert METHODS["IR"].width > max(others)


def test_methods_have_the_colours_of_the_library() -> None:
    assert {name: style.colour for name, style in METHODS.items()} == METHOD_COLOURS


def test_every_online_algorithm_has_a_marker_of_its_own() -> None:
    assert [*ONLINE] == [*NAMED]
    assert len({look.marker for look in ONLINE.values()}) == len(ONLINE)


def test_methods_of_a_family_share_a_hue() -> None:
    def hue(name: str) -> float:
        colour = METHODS[name].colour
        return 360 * colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0]

    for family in (("IR", "BC-IR", "IR+WIS-TD(0)"), ("IS", "NormIS"), NAMES[4:7], NAMES[7:10]):
        hues = [hue(name) for name in family]
        assert max(hues) - min(hues) < 20, family


# How colour-blind eyes see linear RGB (Machado, Oliveira and Fernandes, 2009, severity 1).
EYES = {
    "usual": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TOGETHER = (
    [name for name in NAMES if "TD(0)" not in name and name != "NormIS"],
    ["IR", "IS", "WIS-Minibatch", "V-trace(1.0)", "WIS-TD(0)", "IR+WIS-TD(0)"],
    ["IR", "NormIS", "WIS-Minibatch", "V-trace(1.0)", "WIS-TD(0)", "IR+WIS-TD(0)"],
    ["IR", "BC-IR", "WIS-Minibatch", "IS", "V-trace(1.0)", "On-policy", *EMPHATIC],
    [*ONLINE],
)


@pytest.mark.parametrize("eye", EYES)
def test_colours_drawn_together_are_apart_for_colour_blind_eyes_too(eye: str) -> None:
    def lightness_and_hue(name: str) -> np.ndarray:
        """CIELAB, in which a distance of 2.3 can just be noticed."""
        colour = np.array(
            [int({**METHODS, **ONLINE}[name].colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        )
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        seen = np.clip(EYES[eye] @ linear, 0, 1)
        to_xyz = np.array([[0.412, 0.358, 0.180], [0.213, 0.715, 0.072], [0.019, 0.119, 0.951]])
        xyz = to_xyz @ seen / to_xyz.sum(axis=1)
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for names in TOGETHER:
        for one, other in itertools.combinations(names, 2):
            distance = np.linalg.norm(lightness_and_hue(one) - lightness_and_hue(other))
            assert distance > 12, (one, other)


def test_unknown_methods_get_looks_of_their_own_and_do_not_change_the_known() -> None:
    own = [f"method {i}" for i in range(60)]
    looks = styles(["IS", *own, "IR"])
    assert list(looks) == ["IR", "IS", *own]
    assert looks["IR"] == METHODS["IR"]
    assert len({(look.colour, look.marker, look.dash) for look in looks.values()}) == 62
