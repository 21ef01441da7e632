"""Compiled streams of random numbers: xoshiro256+ (Blackman and Vigna 2018).

Passing a NumPy Generator to a compiled function costs microseconds a call. A stream of four numbers
in an array costs nothing to pass and gives a uniform number in about 1.4 ns. Every row of an array
``uint64[count, 4]`` is a stream, seeded by :class:`numpy.random.SeedSequence`, so row g does not
depend on the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_11, _17, _19, _45 = (np.uint64(bits) for bits in (11, 17, 19, 45))
_UNIT = 2.0**-53


def streams(count: int, seed: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Make independent streams uint64[count, 4] from a SeedSequence or anything it accepts."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return sequence.generate_state(4 * count, np.uint64).astype(np.uint64).reshape(count, 4)


@njit(cache=True, nogil=True, forceinline=True)
def uniform(stream):
    """Return the next number of a stream uint64[4], uniform on multiples of 2^-53 in [0, 1)."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    result = s0 + s3
    t = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << _45) | (s3 >> _19)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return (result >> _11) * _UNIT


@njit(cache=True, nogil=True)
def fill(stream, out):
    """Fill an array [k] with the next k numbers of a stream."""
    for i in range(out.size):
        out[i] = uniform(stream)
