# SPDX-License-Identifier: GPL-2.0-or-later

"""The shared memory of Python and TORCS, laid out as the structure of the same name in bridge.cpp.

Python writes a command and actions; the bridge writes states and pictures. When TORCS starts, the
bridge compares the size of the memory with its own structure, in case the two files differ.
"""

from __future__ import annotations

import numpy as np

FRAME = HEIGHT, WIDTH = 64, 128
"""The shape of an observation."""
SCALE = 4
"""The colour picture's size, as a multiple of the observation's."""
BLOCK = 1024
"""The largest number of actions in one exchange."""
TICK = 0.002
"""Seconds of one step of the physics of TORCS."""
RESET, DRIVE = 0, 1
"""The commands."""
NOTHING, GREY, COLOUR = 0, 1, 2
"""The kinds of drawing after the last action."""
STATE = np.dtype(
    [
        (name, np.float64)
        for name in (
            "time",
            "to_middle",
            "half_width",
            "angle",
            "speed",
            "segment",
            "distance",
            "steer_lock",
            "over",
        )
    ]
)
"""The state that the bridge writes after each action; bridge.cpp gives the units."""
EXCHANGE = np.dtype(
    [
        ("command", np.uint32),
        ("count", np.uint32),
        ("ticks", np.uint32),
        ("draw", np.uint32),
        ("speed", np.float32),
        ("steering", np.float32, BLOCK),
        ("length", np.float64),
        ("states", STATE, BLOCK),
        ("grey", np.uint8, FRAME),
        ("colour", np.uint8, (SCALE * HEIGHT, SCALE * WIDTH, 3)),
    ],
    align=True,
)
"""The whole shared memory."""
