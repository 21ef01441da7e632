"""The racing car (Figure 3): predictions from images, with all code from simulator to figure.

:mod:`.simulators` makes the two cars, TORCS and :mod:`.car_racing`. :mod:`.policy` has the
behaviour, the target and the question. :mod:`.driving` drives the behaviour, :mod:`.domain` gives
its stream to a learner, and :mod:`.recording` stores the stream in a file. :mod:`.rollouts` stores
returns of the target from a set of states, so that learning needs no simulator. :mod:`.study` is
the experiment, with its files (:mod:`.material`) and its runs (:mod:`.task`). :mod:`.figure` has
the paper's figure and claims.
"""

from gvf_lab.racing.racing_domain import RacingDomain, get
from gvf_lab.racing.racing_study import RacingStudy

__all__ = ["RacingDomain", "RacingStudy", "get"]
