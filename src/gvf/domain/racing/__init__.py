"""Driving from images (Figure 3): two simulators, one interface, and what is asked of the driver.

A name leads to a record (:func:`get`) with the environment, the behaviour, the question and a
stream of transitions. :mod:`.torcs` is the real TORCS, :mod:`.car_racing` Gymnasium's CarRacing
behind the same observation, action and information; both need Gymnasium and are imported only where
they are used. :mod:`.policy` has the behaviour, the target and the question. :mod:`.driving` lets
the behaviour drive, :mod:`.recording` keeps the stream in a file, :mod:`.rollouts` the returns of
the target from a set of states, so that learning needs no simulator.
"""

from gvf.domain.racing.domain import RacingDomain, get

__all__ = ["RacingDomain", "get"]
