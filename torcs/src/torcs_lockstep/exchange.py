"""The shared memory of Python and TORCS, laid out as the structure of the same name in bridge.cpp.

Python writes a command and actions, the bridge states and pictures. Numbers that stand in both
files are compared by the size of the whole when TORCS starts.
"""

from __future__ import annotations

import numpy as np

FRAME = HEIGHT, WIDTH = 64, 128
"""The shape of an observation."""
SCALE = 4
"""The colour picture is this many times larger."""
BLOCK = 1024
"""The most actions in one exchange."""
TICK = 0.002
"""Seconds of one step of the physics of TORCS."""
RESET, DRIVE = 0, 1
"""Commands."""
NOTHING, GREY, COLOUR = 0, 1, 2
"""Kinds of drawing after the last action."""
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
"""The state that the bridge tells after each action; the units are in bridge.cpp."""
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
"""The whole of the shared memory."""
