"""How columns are compared."""

from typing import Any

import numpy as np


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    """The same names in the same order, and the same arrays: shapes, types, values."""
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], strict=True)
