"""A memory of arrays that take long to make, so that each is made once.

The last ones used are in memory; all are in the files of :mod:`gvf_lab.cache`, where other
processes find them. If several threads need the same arrays, one makes them and the others wait;
different arrays are made at the same time.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from gvf.common import user_code
from gvf.common.arrays import Arrays
from gvf.common.describe import describe, references
from gvf_lab.cache import remembered


def fingerprint(value: Any) -> str | None:
    """Return a text that differs for values that do different things; None for want of a name.

    It has the value's description and the digests of all code that this names. A value that uses a
    lambda, or an object that holds more than its arguments, has no fingerprint.

    Example:
        >>> import gvf
        >>> from gvf_lab.domain.array_memory import fingerprint
        >>> fingerprint(gvf.policies.Uniform(2)) == fingerprint(gvf.policies.Uniform(2))
        True
        >>> fingerprint(gvf.policies.Uniform(2)) == fingerprint(gvf.policies.Uniform(3))
        False
        >>> fingerprint([lambda states: states]) is None
        True
    """
    try:
        return json.dumps([describe(value, {}), user_code.digest(references(value))])
    except ValueError:  # a part has no name, or its module no file
        return None


class Memory:
    """A store of arrays, found by everything that determines them.

    Args:
        limit: the number of bytes kept in memory. The arrays used longest ago are dropped first;
            the last ones stay, however large.

    Example:
        >>> from gvf_lab.domain.array_memory import Memory
        >>> import numpy as np
        >>> memory = Memory()
        >>> def count():
        ...     print("counting")
        ...     return {"numbers": np.arange(3)}
        >>> for _ in range(2):
        ...     arrays = memory.get("numbers", {"stop": 3}, count, file=False)
        counting
        >>> arrays["numbers"]
        array([0, 1, 2])
    """

    def __init__(self, limit: int = 2**28) -> None:
        self._limit = limit
        self._lock = Lock()
        self._kept: OrderedDict[Any, tuple[Arrays, Any]] = OrderedDict()
        self._making: dict[Any, Lock] = {}

    def get(
        self, name: str, parts: Mapping[str, Any], make: Callable[[], Arrays], *, file: bool = True
    ) -> Arrays:
        """Return copies of the arrays of ``make()``, which is called only once.

        Args:
            name: the name of the arrays, and the beginning of the file's name.
            parts: everything that determines them, by name. A part is identified by its
                :func:`fingerprint`, or, if it has none, by being the same object; arrays that
                depend on such a part are not kept in a file.
            make: a function that returns arrays by name.
            file: True if the arrays may be kept in a file.
        """
        fingerprints = {part: fingerprint(value) for part, value in parts.items()}
        unknown = {part: value for part, value in parts.items() if fingerprints[part] is None}
        key = (name, *sorted((part, fingerprints[part] or id(parts[part])) for part in parts))
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            arrays = self._recall(key)
            if arrays is None:
                arrays = remembered(name, fingerprints, make) if file and not unknown else make()
                # Objects identified by their id are kept alive, so that no other gets the id.
                self._keep(key, arrays, unknown)
        return {part: array.copy() for part, array in arrays.items()}

    def _recall(self, key: Any) -> Arrays | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def _keep(self, key: Any, arrays: Arrays, held: Any) -> None:
        with self._lock:
            self._kept[key] = arrays, held
            size = sum(_bytes(kept) for kept, _ in self._kept.values())
            while size > self._limit and len(self._kept) > 1:
                oldest, (dropped, _) = self._kept.popitem(last=False)
                self._making.pop(oldest, None)
                size -= _bytes(dropped)


def _bytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays.values())
