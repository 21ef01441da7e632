"""Types of arrays for signatures; docstrings give the shapes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any type and shape."""
Floats = NDArray[np.float64]
"""An array of float64."""
Bools = NDArray[np.bool_]
"""An array of booleans."""
Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name."""
