"""Methods: the names of the figures, and what each stands for.

A method is a correction and an update. Some need to know the largest possible ratio of the pair at
hand (a V-trace clip of half of it, say), so a correction is made from it. The update is the study's
own, except where the method is an update of its own (Sarsa, WIS-TD(0)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gvf.correction import (
    BCIR,
    IR,
    IS,
    BCInterpolated,
    Correction,
    Interpolated,
    NormIS,
    OnPolicy,
    VTrace,
    WISBuffer,
    WISMinibatch,
    WISOptimal,
)
from gvf.learner import TD, TDC, TDRC, WISTD, ExpectedSarsa, IncrementalTD, RMSProp, Sarsa, Update
from gvf.learner.td import SGD, Adam, Optimiser

OPTIMISERS: dict[str, Optimiser] = {"sgd": SGD(), "rmsprop": RMSProp(), "adam": Adam()}
UPDATES = (*OPTIMISERS, "incremental", "tdc", "tdrc")
"""How a study may update: TD with an optimiser, one by one, or gradient TD."""


@dataclass(frozen=True)
class Method:
    """A correction, made from the largest ratio, and where its update and data come from.

    Attributes:
        name: as in the figures.
        correction: makes the correction from the largest possible ratio.
        kind: "td" (the study's update), "sarsa", "expected sarsa" or "wis-td".
        on_policy: whether its data come from the target policy itself.
    """

    name: str
    correction: Callable[[float], Correction]
    kind: str = "td"
    on_policy: bool = False

    def update(self, how: str, step_sizes: Sequence[float]) -> Update:
        """The update with these step sizes; for WIS-TD(0), pairs of u0 and eta."""
        if self.kind == "wis-td":
            return WISTD([u0 for u0, _ in step_sizes], [eta for _, eta in step_sizes])  # pyright: ignore[reportGeneralTypeIssues]
        if self.kind == "sarsa":
            return Sarsa(step_sizes, OPTIMISERS[how])
        if self.kind == "expected sarsa":
            return ExpectedSarsa(step_sizes, OPTIMISERS[how])
        others = {"incremental": IncrementalTD, "tdc": TDC, "tdrc": TDRC}
        return others[how](step_sizes) if how in others else TD(step_sizes, OPTIMISERS[how])


PAPER = {
    method.name: method
    for method in (
        Method("IR", lambda largest: IR()),
        Method("BC-IR", lambda largest: BCIR()),
        Method("IS", lambda largest: IS()),
        Method("NormIS", NormIS),
        Method("WIS-Minibatch", lambda largest: WISMinibatch()),
        Method("WIS-Buffer", lambda largest: WISBuffer()),
        Method("WIS-Optimal", lambda largest: WISOptimal()),
        Method("V-trace(1.0)", lambda largest: VTrace(1.0)),
        Method("V-trace(0.5 max)", lambda largest: VTrace(0.5 * largest)),
        Method("V-trace(0.9 max)", lambda largest: VTrace(0.9 * largest)),
        Method("Sarsa", lambda largest: OnPolicy(), "sarsa"),
        Method("Expected Sarsa", lambda largest: OnPolicy(), "expected sarsa"),
        Method("On-policy", lambda largest: OnPolicy(), on_policy=True),
        Method("WIS-TD(0)", lambda largest: IS(), "wis-td"),
        Method("IR+WIS-TD(0)", lambda largest: IR(), "wis-td"),
    )
}
"""Every method of the paper, by name."""

BETWEEN = {
    method.name: method
    for method in (
        Method("Interpolated(0.25)", lambda largest: Interpolated(0.25)),
        Method("Interpolated(0.5)", lambda largest: Interpolated(0.5)),
        Method("Interpolated(0.75)", lambda largest: Interpolated(0.75)),
        Method("BC-Interpolated(0.25)", lambda largest: BCInterpolated(0.25)),
        Method("BC-Interpolated(0.5)", lambda largest: BCInterpolated(0.5)),
        Method("BC-Interpolated(0.75)", lambda largest: BCInterpolated(0.75)),
    )
}
"""Corrections between IS and IR, or BC-IR, by name."""

METHODS = PAPER | BETWEEN
"""Every method that a study knows, by name."""
