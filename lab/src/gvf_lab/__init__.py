"""The laboratory of gvf: worlds with known truth, studies, figures, and the paper, checked.

Importing this package registers its environments with Gymnasium, from ``gvf/MarkovChain-v0`` to
``gvf/CarRacing-v0``; ``gymnasium.make("gvf_lab:gvf/FourRooms-v0")`` imports it by itself. A name is
imported when it is first used.
"""

import lazy_loader

from gvf_lab.environments import register_with_gymnasium

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

register_with_gymnasium()
