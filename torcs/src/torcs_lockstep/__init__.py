"""The racing simulator TORCS as a Gymnasium environment, without a screen and in lockstep.

Importing this package registers ``Torcs-v0``, so that Gymnasium makes it from
``"torcs_lockstep:Torcs-v0"``. :mod:`.environment` is the environment, :mod:`.child` the process
that TORCS runs in, :mod:`.exchange` the memory shared with it, :mod:`.race` the files that it
reads, and :mod:`.installation` finds TORCS and compiles ``bridge.cpp``, which it loads.
"""

import gymnasium

from torcs_lockstep.environment import Torcs

__all__ = ["Torcs"]
__version__ = "0.1.0"

gymnasium.register("Torcs-v0", entry_point="torcs_lockstep:Torcs")
