"""Methods: a correction, an update and their parameters, as data.

A study names its methods in one of four ways: by the name in the figures (``"V-trace(0.5 max)"``),
by a correction with its parameters (``"VTrace(0.3)"``), by a table

    {correction = "VTrace", clip = "0.5 max"}
    {correction = "my_module:SquareRoot", name = "root", colour = "#117733"}
    {correction = "IR", update = "tdrc"}

or, in Python, by a correction itself. A parameter may be a share of the pair's largest possible
ratio, ``"0.5 max"``. A method has the study's update unless it names another. A correction or
update of the user's own is named by reference, ``"module:Class"``, so that a method can be written
to a file and sent to another machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gvf.common.part_names import find, is_reference, known
from gvf.corrections import Correction
from gvf.corrections.correction import with_parameters
from gvf.corrections.correction_names import (
    CORRECTIONS,
    Parameters,
    all_parameters,
    correction_class,
    make_correction,
    name_and_parameters,
    name_of,
    parse,
)
from gvf.updates import TD, TDC, TDRC, WISTD, ExpectedSarsa, IncrementalTD, RMSProp, Sarsa, Update
from gvf.updates.td import SGD, Adam, Optimiser

OPTIMISERS: dict[str, Callable[..., Optimiser]] = {"sgd": SGD, "rmsprop": RMSProp, "adam": Adam}
UPDATES = (*OPTIMISERS, "incremental", "tdc", "tdrc")
"""The updates of a study: TD with an optimiser, incremental TD, or gradient TD."""
OWN_UPDATES = ("sarsa", "expected sarsa", "wis-td")
"""The updates that only a method may name: they learn action values or have no step size."""

_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}|[A-Za-z]+")


@dataclass(frozen=True)
class Method:
    """A correction and an update, and their parameters.

    Attributes:
        correction: the name of a built-in correction, or "module:Class".
        parameters: the correction's parameters, numbers or shares of the largest ratio ("0.5 max").
        update: "" for the study's update; else one of ``UPDATES`` or ``OWN_UPDATES``, or
            "module:Class".
        update_parameters: the update's parameters, by name.
        on_policy: True if the data come from the target policy itself.
        name: the name in figures; by default it follows from the other attributes.
        colour: the colour in figures, "#rrggbb", "#rgb" or a name; by default figures choose one.

    Example:
        >>> from gvf.learners.method import Method
        >>> clipped = Method.of({"correction": "VTrace", "clip": "0.5 max"})
        >>> clipped.name, clipped.make(largest=20.0)
        ('V-trace(0.5 max)', VTrace(clip=10.0))
        >>> Method.of("V-trace(0.3)").parameters
        (('clip', 0.3),)
        >>> Method.of("WIS")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: unknown method: 'WIS'; did you mean ...
    """

    correction: str
    parameters: Parameters = ()
    update: str = ""
    update_parameters: Parameters = ()
    on_policy: bool = False
    name: str = ""
    colour: str = ""

    def __post_init__(self) -> None:
        parameters = all_parameters(self.correction, self.parameters)
        object.__setattr__(self, "parameters", parameters)
        make_correction(self.correction, parameters, 1.0)
        if self.update and not is_reference(self.update):
            known(self.update, (*UPDATES, *OWN_UPDATES), "update")
        elif self.update:
            _update_class(self.update)
        if self.colour and not _COLOUR.fullmatch(self.colour):
            raise ValueError(
                f'colour of a method must be "#rrggbb", "#rgb" or a name, got {self.colour!r}'
            )
        if not self.name:
            object.__setattr__(self, "name", self._following_name())

    @property
    def _class(self) -> type[Correction]:
        return correction_class(self.correction)

    def _following_name(self) -> str:
        label = self._class.label or self.correction.rpartition(":")[2].rpartition(".")[2]
        name = with_parameters(label, [value for _, value in self.parameters])
        if not self.update:
            return name
        update = self.update.rpartition(":")[2]
        values = ", ".join(f"{value}" for _, value in self.update_parameters)
        return f"{name}+{update}({values})" if values else f"{name}+{update}"

    @property
    def needs_largest(self) -> bool:
        """True if a parameter is a share of the largest ratio."""
        return any(isinstance(value, str) for _, value in self.parameters)

    def make(self, largest: float) -> Correction:
        """Make the correction for a pair with this largest ratio."""
        if self.needs_largest and not largest < math.inf:
            raise ValueError(
                f"{self.name} needs the largest ratio of the pair, and here there is no bound: "
                "give its parameter as a number"
            )
        return make_correction(self.correction, self.parameters, largest)

    @property
    def draws(self) -> Any:
        """The way of drawing, which does not depend on the largest ratio."""
        return self.make(1.0).draw

    def make_update(self, rule: str, choices: Sequence[Any]) -> Update:
        """Make the update with these step sizes; `rule` is the study's update.

        The choices of WIS-TD(0) are pairs of u0 and eta.
        """
        rule_name, values = self.update or rule, dict(self.update_parameters)
        if rule_name == "wis-td":
            if values:
                raise ValueError(f"the update wis-td has no choices, got {values}")
            return WISTD([u0 for u0, _ in choices], [eta for _, eta in choices])
        if rule_name in ("sarsa", "expected sarsa"):
            cls = Sarsa if rule_name == "sarsa" else ExpectedSarsa
            return cls(
                choices, OPTIMISERS[known(rule, OPTIMISERS, f"update for {rule_name}")](**values)
            )
        if rule_name in OPTIMISERS:
            return TD(choices, OPTIMISERS[rule_name](**values))
        others: dict[str, Any] = {"incremental": IncrementalTD, "tdc": TDC, "tdrc": TDRC}
        make: Any = others[rule_name] if rule_name in others else _update_class(rule_name)
        return make(choices, **values)

    def same(self, other: Method) -> bool:
        """Return True if both give the same results, that is, differ at most in colour."""
        return replace(self, colour="") == replace(other, colour="")

    def plain(self) -> str | dict[str, Any]:
        """Return the method as a TOML file has it: the name of a built-in method, else a table."""
        if NAMED.get(self.name) == self:
            return self.name
        written: dict[str, Any] = {"correction": self.correction, **dict(self.parameters)}
        if self.update_parameters:
            written["update"] = {"rule": self.update, **dict(self.update_parameters)}
        elif self.update:
            written["update"] = self.update
        if self.on_policy:
            written["on_policy"] = True
        if self.name != replace(self, name="").name:
            written["name"] = self.name
        if self.colour:
            written["colour"] = self.colour
        return written

    def references(self) -> tuple[str, ...]:
        """Return the references to code outside gvf, which another machine needs too."""
        return tuple(name for name in (self.correction, self.update) if is_reference(name))

    @classmethod
    def of(cls, method: Any) -> Method:
        """Return a method, given its name, a reference, a table or a correction."""
        if isinstance(method, Method):
            return method
        if isinstance(method, str):
            return _by_name(method.strip())
        if isinstance(method, Mapping):
            return _by_table(dict(method))
        if isinstance(method, Correction):
            return _by_instance(method)
        if isinstance(method, type) and issubclass(method, Correction):
            return cls(name_of(method))
        raise ValueError(
            f'a method is a name, a table such as {{correction = "VTrace", clip = 1.0}}, or a '
            f"gvf.corrections.Correction, not {method!r}"
        )


def _by_name(name: str) -> Method:
    if name in NAMED:
        return NAMED[name]
    return Method(*parse(name, NAMED, "method"))


def _by_table(table: dict[str, Any]) -> Method:
    if "correction" not in table:
        raise ValueError(f"a method needs a correction: {table!r} names none")
    base = table.pop("correction")
    if not isinstance(base, str):
        raise ValueError(f'correction must be a name or "module:Class", got {base!r}')
    options: dict[str, Any] = {key: table.pop(key) for key in ("name", "colour") if key in table}
    for key, value in options.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{key} of a method must be text, got {value!r}")
    if "on_policy" in table:
        options["on_policy"] = table.pop("on_policy")
        if not isinstance(options["on_policy"], bool):
            raise ValueError(f"on_policy must be true or false, got {options['on_policy']!r}")
    update = table.pop("update", "")
    if isinstance(update, Mapping):
        rest = dict(update)
        options |= {"update": rest.pop("rule", ""), "update_parameters": tuple(rest.items())}
    else:
        options["update"] = update
    if not isinstance(options["update"], str):
        raise ValueError(f"update of a method must be a name, got {update!r}")
    correction, parameters = parse(base, CORRECTIONS, "correction")
    return Method(correction, tuple((dict(parameters) | table).items()), **options)


def _by_instance(correction: Correction) -> Method:
    return Method(*name_and_parameters(correction))


def _update_class(name: str) -> type[Update]:
    cls = find(name, "update")
    if isinstance(cls, type) and issubclass(cls, Update):
        return cls
    raise ValueError(f"update {name!r} is {cls!r}, not a subclass of gvf.updates.Update")


def _named(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


def _plain(correction: str, *parameters: tuple[str, float | str], **more: Any) -> Method:
    return Method(correction, parameters, **more)


PAPER = _named(
    _plain("IR"),
    _plain("BCIR"),
    _plain("IS"),
    _plain("NormIS", ("max_ratio", "max"), name="NormIS"),
    _plain("WISMinibatch"),
    _plain("WISBuffer"),
    _plain("WISOptimal"),
    _plain("VTrace", ("clip", 1.0)),
    _plain("VTrace", ("clip", "0.5 max")),
    _plain("VTrace", ("clip", "0.9 max")),
    _plain("OnPolicy", update="sarsa", name="Sarsa"),
    _plain("OnPolicy", update="expected sarsa", name="Expected Sarsa"),
    _plain("OnPolicy", on_policy=True),
    _plain("IS", update="wis-td", name="WIS-TD(0)"),
    _plain("IR", update="wis-td", name="IR+WIS-TD(0)"),
)
"""Every method of the paper, by name."""

BETWEEN = _named(
    *(_plain("Interpolated", ("beta", beta)) for beta in (0.25, 0.5, 0.75)),
    *(_plain("BCInterpolated", ("beta", beta)) for beta in (0.25, 0.5, 0.75)),
)
"""Corrections between IS and IR, or BC-IR, by name."""

EMPHATIC = _named(
    *(_plain(name) for name in ("EmphaticIR", "EmphaticBCIR", "EmphaticWISMinibatch", "EmphaticIS"))
)
"""Corrections with the follow-on trace, by name."""

NAMED = PAPER | BETWEEN | EMPHATIC
"""All methods that have a name of their own."""
