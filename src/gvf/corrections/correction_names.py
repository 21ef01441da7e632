"""Corrections by their names: ``"IR"``, ``"V-trace(1.0)"``, ``"VTrace(clip=0.5 max)"``.

A name is that of the class or of the figures, with parameters in brackets. A parameter may be a
share of the largest possible ratio, ``"0.5 max"``. A correction of the user's own is named by
reference, ``"module:Class"``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from numbers import Real
from typing import Any

from gvf.common.part_names import check_lasting, find, is_reference, known
from gvf.corrections import emphatic_corrections, plain_corrections
from gvf.corrections.correction import Correction

Parameters = tuple[tuple[str, float | str | None], ...]
"""Names and values of parameters; a share of the largest ratio is a text."""

CORRECTIONS: dict[str, type[Correction]] = {
    name: cls
    for name, cls in (vars(plain_corrections) | vars(emphatic_corrections)).items()
    if isinstance(cls, type) and issubclass(cls, Correction) and cls is not Correction
}
"""The classes of all corrections of gvf, by name."""
_LABELS = {cls.label or name: name for name, cls in CORRECTIONS.items()}
_SHARE = re.compile(r"(?:([0-9.eE+-]+) )?max")


def by_name(name: str, *, largest_ratio: float = math.inf) -> Correction:
    """Return the correction of a name, as studies and question files have it.

    Args:
        name: the name in figures or that of the class, with parameters in brackets, or a reference
            to a correction of your own, ``"module:Class"``.
        largest_ratio: the largest possible ratio (:func:`gvf.policies.largest_ratio`), for
            parameters such as ``"0.5 max"``.

    Raises:
        ValueError: if there is no such correction, or if a parameter does not fit.

    Example:
        >>> import gvf
        >>> gvf.corrections.by_name("IR"), gvf.corrections.by_name("V-trace(1.0)")
        (IR(), VTrace(clip=1.0))
        >>> gvf.corrections.by_name("VTrace(0.5 max)", largest_ratio=20.0)
        VTrace(clip=10.0)
        >>> gvf.corrections.by_name("WISMinbatch")
        Traceback (most recent call last):
        ValueError: unknown correction: 'WISMinbatch'; did you mean 'WISMinibatch'?
    """
    label, parameters = parse(name.strip(), [*CORRECTIONS, *_LABELS], "correction")
    return make_correction(label, parameters, largest_ratio)


def make_correction(name: str, parameters: Parameters, largest_ratio: float) -> Correction:
    """Make the correction of a class or reference with these parameters."""
    parameters = all_parameters(name, parameters)
    if any(isinstance(value, str) for _, value in parameters) and math.isinf(largest_ratio):
        raise ValueError(
            f"{name} needs the largest ratio of the pair, and here there is no bound: give its "
            "parameter as a number"
        )
    values = {key: number_of(value, largest_ratio) for key, value in parameters}
    try:
        return correction_class(name)(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def all_parameters(name: str, parameters: Parameters) -> Parameters:
    """Return the parameters of a correction in order, with defaults; ValueError if one is wrong."""
    expected, values = fields(correction_class(name)), dict(parameters)
    for key, value in parameters:
        known(key, [field.name for field in expected], f"parameter of {name}")
        _check_parameter(key, value)
    for field in expected:
        if field.name not in values and field.default is MISSING:
            raise ValueError(f"{name} needs its parameter {field.name!r}")
    ordered: Any = tuple((field.name, values.get(field.name, field.default)) for field in expected)
    return ordered


def parse(name: str, names: Iterable[str], kind: str) -> tuple[str, Parameters]:
    """Find a correction by label, class or reference, and read the parameters in its name."""
    label, bracket, inside = name.partition("(")
    if bracket and not inside.endswith(")"):
        raise ValueError(f"{kind} {name!r}: the bracket is not closed at the end")
    if is_reference(label):
        named = find(label, "correction")
        if isinstance(named, Correction) and not bracket:
            return name_and_parameters(named)
    elif label in _LABELS or label in CORRECTIONS:
        label = _LABELS.get(label, label)
    else:
        known(name, names, kind)
    return label, _written_parameters(label, inside.removesuffix(")"), f"{kind} {name!r}")


def _written_parameters(correction: str, inside: str, place: str) -> Parameters:
    """Read parameters as in ``VTrace(0.3)`` or ``VTrace(clip=0.5 max)``."""
    allowed = [field.name for field in fields(correction_class(correction))]
    parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
    if len(parts) > len(allowed):
        raise ValueError(f"{place}: {correction} has the parameters {allowed}")
    pairs: list[tuple[str, float | str | None]] = []
    for position, part in enumerate(parts):
        key, equals, value = part.rpartition("=")
        try:
            number: float | str = value.strip() if _SHARE.fullmatch(value.strip()) else float(value)
        except ValueError:
            raise ValueError(f"{place}: {value.strip()!r} is not a number") from None
        pairs.append((key.strip() if equals else allowed[position], number))
    return tuple(pairs)


def name_and_parameters(correction: Correction) -> tuple[str, Parameters]:
    """Return the name of the class of a correction, and its parameters."""
    values = [(field.name, getattr(correction, field.name)) for field in fields(correction)]
    return name_of(type(correction)), tuple(values)


def name_of(cls: type[Correction]) -> str:
    """Return the name of a built-in class, or a reference that leads back to the class."""
    if CORRECTIONS.get(cls.__name__) is cls:
        return cls.__name__
    check_lasting(cls.__module__, cls.__qualname__)
    reference = f"{cls.__module__}:{cls.__qualname__}"
    if not is_reference(reference) or find(reference, "correction") is not cls:
        raise ValueError(
            f"{cls.__qualname__} cannot be found again by name, as workers must: define it at the "
            "top of a module"
        )
    return reference


def correction_class(name: str) -> type[Correction]:
    """Find a class by name, anew each time, since ``importlib.reload`` replaces classes."""
    if name in CORRECTIONS:
        return CORRECTIONS[name]
    if not is_reference(name):
        known(name, CORRECTIONS, "correction")
    cls = find(name, "correction")
    if isinstance(cls, type) and issubclass(cls, Correction):
        return cls
    raise ValueError(
        f"correction {name!r} is {cls!r}, not a subclass of gvf.corrections.Correction"
    )


def _check_parameter(name: str, value: Any) -> None:
    if isinstance(value, str):
        match = _SHARE.fullmatch(value)
        if match is None:
            raise ValueError(
                f'{name} must be a number or a share of the largest ratio, "0.5 max", got {value!r}'
            )
        number_of(value, 1.0)
    elif isinstance(value, bool) or not isinstance(value, Real | None):
        raise ValueError(f"{name} must be a number, got {value!r}")


def number_of(value: float | str | None, largest: float) -> Any:
    """Return a parameter as a number; it may be a share of the largest ratio."""
    if not isinstance(value, str):
        return value
    match = _SHARE.fullmatch(value)
    assert match is not None
    try:
        return (1.0 if match[1] is None else float(match[1])) * largest
    except ValueError:
        raise ValueError(f'{value!r} is not a share of the largest ratio: "0.5 max"') from None
