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

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from numbers import Real
from typing import Any

from gvf.common.names import check_lasting, find, is_reference, known
from gvf.correction import Correction, emphatic, table
from gvf.correction.base import with_parameters
from gvf.learner import TD, TDC, TDRC, WISTD, ExpectedSarsa, IncrementalTD, RMSProp, Sarsa, Update
from gvf.learner.td import SGD, Adam, Optimiser

Parameters = tuple[tuple[str, float | str | None], ...]
"""Names and values of parameters; a share of the largest ratio is a text."""

OPTIMISERS: dict[str, Callable[..., Optimiser]] = {"sgd": SGD, "rmsprop": RMSProp, "adam": Adam}
UPDATES = (*OPTIMISERS, "incremental", "tdc", "tdrc")
"""The updates of a study: TD with an optimiser, incremental TD, or gradient TD."""
OWN_UPDATES = ("sarsa", "expected sarsa", "wis-td")
"""The updates that only a method may name: they learn action values or have no step size."""

_CORRECTIONS: dict[str, type[Correction]] = {
    name: cls
    for name, cls in (vars(table) | vars(emphatic)).items()
    if isinstance(cls, type) and issubclass(cls, Correction) and cls is not Correction
}
_LABELS = {cls.label or name: name for name, cls in _CORRECTIONS.items()}
_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}|[A-Za-z]+")
_SHARE = re.compile(r"(?:([0-9.eE+-]+) )?max")


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
        >>> from gvf.study import Method
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
        cls, given = self._class, dict(self.parameters)
        for name, value in given.items():
            known(name, [field.name for field in fields(cls)], f"parameter of {self.correction}")
            _check_parameter(name, value)
        for field in fields(cls):
            if field.name not in given and field.default is MISSING:
                raise ValueError(f"{self.correction} needs its parameter {field.name!r}")
        parameters: Any = tuple((f.name, given.get(f.name, f.default)) for f in fields(cls))
        object.__setattr__(self, "parameters", parameters)
        try:
            cls(**{name: _share(value, 1.0) for name, value in parameters})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.correction}: {error}") from None
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
        return _correction_class(self.correction)

    def _following_name(self) -> str:
        label = self._class.label or self.correction.rpartition(":")[2].rpartition(".")[2]
        name = with_parameters(label, [value for _, value in self.parameters])
        if not self.update:
            return name
        own = ", ".join(f"{value}" for _, value in self.update_parameters)
        return f"{name}+{self.update.rpartition(':')[2]}{f'({own})' if own else ''}"

    @property
    def needs_largest(self) -> bool:
        """True if a parameter is a share of the largest ratio."""
        return any(isinstance(value, str) for _, value in self.parameters)

    def make(self, largest: float) -> Correction:
        """Make the correction for a pair with this largest ratio."""
        if self.needs_largest and not largest < float("inf"):
            raise ValueError(
                f"{self.name} needs the largest ratio of the pair, and here there is no bound: "
                "give its parameter as a number"
            )
        values = {name: _share(value, largest) for name, value in self.parameters}
        return self._class(**values)

    @property
    def draws(self) -> Any:
        """The way of drawing, which does not depend on the largest ratio."""
        return self.make(1.0).draw

    def make_update(self, rule: str, choices: Sequence[Any]) -> Update:
        """Make the update with these step sizes; `rule` is the study's update.

        The choices of WIS-TD(0) are pairs of u0 and eta.
        """
        own, values = self.update or rule, dict(self.update_parameters)
        if own == "wis-td":
            if values:
                raise ValueError(f"the update wis-td has no choices, got {values}")
            return WISTD([u0 for u0, _ in choices], [eta for _, eta in choices])
        if own in ("sarsa", "expected sarsa"):
            cls = Sarsa if own == "sarsa" else ExpectedSarsa
            return cls(choices, OPTIMISERS[known(rule, OPTIMISERS, f"update for {own}")](**values))
        if own in OPTIMISERS:
            return TD(choices, OPTIMISERS[own](**values))
        others: dict[str, Any] = {"incremental": IncrementalTD, "tdc": TDC, "tdrc": TDRC}
        made: Any = others[own] if own in others else _update_class(own)
        return made(choices, **values)

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
    def of(cls, given: Any) -> Method:
        """Return a method, given its name, a reference, a table or a correction."""
        if isinstance(given, Method):
            return given
        if isinstance(given, str):
            return _by_name(given.strip())
        if isinstance(given, Mapping):
            return _by_table(dict(given))
        if isinstance(given, Correction):
            return _by_instance(given)
        if isinstance(given, type) and issubclass(given, Correction):
            return cls(_name_of(given))
        raise ValueError(
            f'a method is a name, a table such as {{correction = "VTrace", clip = 1.0}}, or a '
            f"gvf.Correction, not {given!r}"
        )


def _by_name(name: str) -> Method:
    if name in NAMED:
        return NAMED[name]
    return Method(*_named_correction(name, NAMED, "method"))


def _named_correction(name: str, others: Iterable[str], kind: str) -> tuple[str, Parameters]:
    """Find a correction by label, class or reference, and read the parameters in its name."""
    label, bracket, inside = name.partition("(")
    if bracket and not inside.endswith(")"):
        raise ValueError(f"{kind} {name!r}: the bracket is not closed at the end")
    if is_reference(label):
        found = find(label, "correction")
        if isinstance(found, Correction) and not bracket:
            method = _by_instance(found)
            return method.correction, method.parameters
    elif label in _LABELS or label in _CORRECTIONS:
        label = _LABELS.get(label, label)
    else:
        known(name, others, kind)
    return label, _written_parameters(label, inside.removesuffix(")"), name)


def _written_parameters(correction: str, inside: str, name: str) -> Parameters:
    """Read parameters as in ``VTrace(0.3)`` or ``VTrace(clip=0.5 max)``."""
    allowed = [field.name for field in fields(_correction_class(correction))]
    parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
    if len(parts) > len(allowed):
        raise ValueError(f"method {name!r}: {correction} has the parameters {allowed}")
    pairs = []
    for position, part in enumerate(parts):
        key, equals, value = part.rpartition("=")
        try:
            number: float | str = value.strip() if _SHARE.fullmatch(value.strip()) else float(value)
        except ValueError:
            raise ValueError(f"method {name!r}: {value.strip()!r} is not a number") from None
        pairs.append((key.strip() if equals else allowed[position], number))
    return tuple(pairs)


def _by_table(given: dict[str, Any]) -> Method:
    if "correction" not in given:
        raise ValueError(f"a method needs a correction: {given!r} names none")
    base = given.pop("correction")
    if not isinstance(base, str):
        raise ValueError(f'correction must be a name or "module:Class", got {base!r}')
    own: dict[str, Any] = {key: given.pop(key) for key in ("name", "colour") if key in given}
    for key, value in own.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{key} of a method must be text, got {value!r}")
    if "on_policy" in given:
        own["on_policy"] = given.pop("on_policy")
        if not isinstance(own["on_policy"], bool):
            raise ValueError(f"on_policy must be true or false, got {own['on_policy']!r}")
    update = given.pop("update", "")
    if isinstance(update, Mapping):
        rest = dict(update)
        own |= {"update": rest.pop("rule", ""), "update_parameters": tuple(rest.items())}
    else:
        own["update"] = update
    if not isinstance(own["update"], str):
        raise ValueError(f"update of a method must be a name, got {update!r}")
    correction, parameters = _named_correction(base, _CORRECTIONS, "correction")
    return Method(correction, tuple((dict(parameters) | given).items()), **own)


def _by_instance(correction: Correction) -> Method:
    values = [(field.name, getattr(correction, field.name)) for field in fields(correction)]
    return Method(_name_of(type(correction)), tuple(values))


def _name_of(cls: type[Correction]) -> str:
    """Return the name of a built-in class, or a reference that leads back to the class."""
    if _CORRECTIONS.get(cls.__name__) is cls:
        return cls.__name__
    check_lasting(cls.__module__, cls.__qualname__)
    reference = f"{cls.__module__}:{cls.__qualname__}"
    if not is_reference(reference) or find(reference, "correction") is not cls:
        raise ValueError(
            f"{cls.__qualname__} cannot be found again by name, as workers must: define it at the "
            "top of a module"
        )
    return reference


def _correction_class(name: str) -> type[Correction]:
    """Find a class by name, anew each time, since ``importlib.reload`` replaces classes."""
    if name in _CORRECTIONS:
        return _CORRECTIONS[name]
    if not is_reference(name):
        known(name, _CORRECTIONS, "correction")
    found = find(name, "correction")
    if isinstance(found, type) and issubclass(found, Correction):
        return found
    raise ValueError(f"correction {name!r} is {found!r}, not a subclass of gvf.Correction")


def _update_class(name: str) -> type[Update]:
    found = find(name, "update")
    if isinstance(found, type) and issubclass(found, Update):
        return found
    raise ValueError(f"update {name!r} is {found!r}, not a subclass of gvf.Update")


def _check_parameter(name: str, value: Any) -> None:
    if isinstance(value, str):
        match = _SHARE.fullmatch(value)
        if match is None:
            raise ValueError(
                f'{name} must be a number or a share of the largest ratio, "0.5 max", got {value!r}'
            )
        _share(value, 1.0)
    elif isinstance(value, bool) or not isinstance(value, Real | None):
        raise ValueError(f"{name} must be a number, got {value!r}")


def _share(value: float | str | None, largest: float) -> Any:
    """Return a parameter as a number."""
    if not isinstance(value, str):
        return value
    match = _SHARE.fullmatch(value)
    assert match is not None
    try:
        return (1.0 if match[1] is None else float(match[1])) * largest
    except ValueError:
        raise ValueError(f'{value!r} is not a share of the largest ratio: "0.5 max"') from None


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
