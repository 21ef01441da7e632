"""Driving from images (Figure 3): two simulators, one interface, and what is asked of the driver.

:mod:`.torcs` is the real TORCS, :mod:`.car_racing` Gymnasium's CarRacing behind the same
observation, action and information; both need Gymnasium and are imported only where they are used.
:mod:`.policy` has the behaviour, the target and the question. :mod:`.recording` keeps a stream of
the behaviour in a file, :mod:`.rollouts` the returns of the target from a set of states, so that
learning needs no simulator.
"""
