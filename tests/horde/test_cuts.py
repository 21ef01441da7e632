"""Where a horde cuts a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gvf.horde import cuts
from gvf.horde.watch import EVERY

SEGMENTS = st.lists(st.integers(1, 299), max_size=4, unique=True).map(sorted)


@given(steps=st.integers(0, 200), count=st.integers(1, 300), most=st.integers(1, 80), at=SEGMENTS)
def test_pieces_are_all_rows_in_order_with_an_edge_wherever_something_changes(
    steps, count, most, at
):
    begins = [0, *(row for row in at if row < count)]
    segments = [(row, np.array([i])) for i, row in enumerate(begins)]
    found = list(cuts.pieces(steps, count, most, segments))
    rows = [row for piece in found for row in range(piece.rows.start, piece.rows.stop)]
    assert rows == list(range(count))
    looks = {row for row in range(1, count + 1) if (steps + row) % EVERY == 0}
    assert {piece.rows.stop for piece in found if piece.looks} == looks
    edges = sorted({*begins, *looks, count})
    for piece in found:
        first, last = piece.rows.start, piece.rows.stop
        assert last - first <= most
        assert not [edge for edge in edges if first < edge < last]
        assert piece.missing.tolist() == [sum(row <= first for row in begins) - 1]
        if last - first < most:  # nothing else cuts
            assert last in edges
        if last in edges:
            before = max(edge for edge in [0, *edges] if edge < last)
            assert piece.returns == slice(before, last)
        else:
            assert piece.returns is None


@pytest.mark.parametrize(
    ("count", "room", "expected"),
    [
        (0, 1, []),
        (256, 1, [256]),
        (257, 1, [256, 1]),
        (900, 400, [400, 400, 100]),
        (900, 1000, [900]),
    ],
)
def test_rows_are_checked_together_as_memory_allows(monkeypatch, count, room, expected):
    monkeypatch.setattr(cuts, "ROOM", 8 * room)
    found = list(cuts.checked_together(count, lambda: 8))
    assert [rows.stop - rows.start for rows in found] == expected
    assert [rows.start for rows in found] == np.cumsum([0, *expected])[:-1].tolist()
