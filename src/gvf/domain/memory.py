"""A memory of arrays that took long to make: each is made once, whoever asks for it.

The last ones used are in memory; all are in the files of :mod:`gvf.common.cache`, where other
processes find them. Threads that ask for the same arrays at the same time wait for one of them to
make them; different arrays are made at the same time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from gvf.common.cache import Arrays, remembered
from gvf.common.spec import fingerprint


class Memory:
    """Arrays by what determines them.

    Args:
        limit: how many bytes are kept in memory. The arrays used longest ago go first; the last
            ones stay, however large.

    Example:
        >>> from gvf.domain.memory import Memory
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
        """Copies of the arrays that ``make()`` returns, or returned when it was called before.

        Args:
            name: what the arrays are; the beginning of the file's name.
            parts: everything that determines them, by name. A part is known by its
                :func:`gvf.common.spec.fingerprint`. One without a fingerprint is known by being the
                same object; arrays that depend on such a part are in no file.
            make: gives arrays by name.
            file: whether the arrays may be kept in a file.
        """
        told = {part: fingerprint(value) for part, value in parts.items()}
        unknown = {part: value for part, value in parts.items() if told[part] is None}
        key = (name, *sorted((part, told[part] or id(parts[part])) for part in parts))
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            arrays = self._recall(key)
            if arrays is None:
                arrays = remembered(name, told, make) if file and not unknown else make()
                # Objects known by their id are held, so that no other object gets the id.
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
