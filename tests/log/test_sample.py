"""Samples of a log: which rows they have, and what is told of the others."""

from pathlib import Path

import numpy as np
import pytest

import gvf
from gvf.log import tables


@pytest.mark.parametrize("most", [100, 20])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_sample_has_rows_of_all_batches_and_their_positions(
    most: int, in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BATCH", 7)
    walk = {"obs": np.arange(51), "action": np.arange(50) % 3, "terminated": True}
    gvf.read_log([walk], quiet=True).to_parquet(tmp_path / "log.parquet")
    log = gvf.read_log(tmp_path / "log.parquet", in_memory=in_memory, quiet=True)
    states, positions = [], []

    def inspect(batch: gvf.Transitions, position: np.ndarray) -> None:
        states.extend(batch.state.tolist())
        positions.extend(position.tolist())

    rows = log.sample(
        most,
        rng=np.random.default_rng(0),
        usable=lambda batch: batch.action != 1,
        inspect=inspect,
    )
    everything = [k for k in range(50) if k % 3 != 1]
    assert states == positions == everything
    assert rows.left_out == 17
    chosen = set(range(50))
    if most < 50:
        chosen = set(np.random.default_rng(0).choice(50, most, replace=False).tolist())
    expected = [k for k in everything if k in chosen]
    assert rows.position.tolist() == rows.batch.state.tolist() == expected
    assert rows.batch.action.tolist() == [k % 3 for k in expected]
