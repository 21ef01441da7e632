"""The racing car (Figure 3): driving from images, as one slice from simulator to figure.

:mod:`.simulators` has the two cars, the real TORCS and :mod:`.car_racing`; :mod:`.policy` the
behaviour, the target and the question. :mod:`.driving` lets the behaviour drive, :mod:`.domain`
gives its stream to a learner, :mod:`.recording` keeps it in a file, and :mod:`.rollouts` keeps the
returns of the target from a set of states, so that learning needs no simulator. :mod:`.study` is
the experiment, with its files (:mod:`.material`) and its runs (:mod:`.task`); :mod:`.figure` has
the paper's figure and claims.
"""

from gvf.racing.domain import RacingDomain, get
from gvf.racing.study import RacingStudy

__all__ = ["RacingDomain", "RacingStudy", "get"]
