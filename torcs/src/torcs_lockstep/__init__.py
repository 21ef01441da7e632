# SPDX-License-Identifier: GPL-2.0-or-later

"""The racing simulator TORCS as a Gymnasium environment, without a screen and in lockstep.

Importing this package registers ``Torcs-v0``, so that Gymnasium makes it from
``"torcs_lockstep:Torcs-v0"``. :mod:`.environment` has the environment, :mod:`.child` the process in
which TORCS runs, :mod:`.exchange` the memory shared with it, and :mod:`.race` the files that it
reads. :mod:`.installation` finds TORCS and compiles ``bridge.cpp``, which TORCS loads.
"""

import gymnasium

from torcs_lockstep.environment import Torcs

__all__ = ["Torcs"]
__version__ = "0.1.0"

gymnasium.register("Torcs-v0", entry_point="torcs_lockstep:Torcs")
