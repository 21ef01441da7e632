"""Types of arrays for signatures; docstrings give the shapes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any type and shape."""
Floats = NDArray[np.float64]
"""An array of float64."""
Bools = NDArray[np.bool_]
"""An array of booleans."""
Arrays = dict[str, NDArray[Any]]
"""Arrays by name."""
