"""Fixtures of the racing car: a straight road for a simulator, and material made by hand."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from roads import Flat

from gvf_lab.racing import simulators


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put the straight road in the place of TORCS."""

    def place(**options: Any) -> None:
        there = simulators.SIMULATORS["torcs"]
        here = dataclasses.replace(
            there, entry_point="flat_road:Flat", start=5, stretch=60, tracks=()
        )
        monkeypatch.setitem(simulators.SIMULATORS, "torcs", here)
        module = type(sys)("flat_road")
        vars(module)["made"] = made = []
        vars(module)["Flat"] = lambda **given: made.append(Flat(**options, **given)) or made[-1]
        monkeypatch.setitem(sys.modules, "flat_road", module)

    return place


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from racing_by_hand import put_material

    where = tmp_path_factory.mktemp("cache")
    put_material(where)
    put_material(where, "car-racing")
    return where


@pytest.fixture
def cache(stored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GVF_CACHE_DIR", str(stored))
    return stored


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    from racing_by_hand import small_network

    monkeypatch.setattr("gvf_lab.racing.driving_network.driving_network", small_network)
