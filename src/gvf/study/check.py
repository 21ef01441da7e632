"""Checks of what a user says in a study, in words that suit a file and Python alike.

Values of a wrong type, unknown names, numbers out of range, things said twice: each is refused by
name before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any

from gvf import domain as domains
from gvf.common.names import is_reference, known
from gvf.domain import Domain
from gvf.domain.domain import every_pair
from gvf.study.method import NAMED, Method

RESERVED = ("results", "logs", "claims", "contents", "made", "matches")
"""Folders of the store, beside those of figures, and sections of the report."""


def check_shared(study: Any) -> Domain:
    """Check what studies of all kinds have, fill in the pairs, and give the domain."""
    take_methods(study)
    check_types(study)
    check_name(study.name)
    domain = domains.get(study.domain, study.protocol if study.protocol != "both" else "paper")
    pairs = study.pairs or tuple(domain.pairs) or every_pair(domain.questions, domain.behaviours)
    object.__setattr__(study, "pairs", pairs)
    check_several(pairs=study.pairs)
    for question, behaviour in study.pairs:
        known(question, domain.questions, f"question of {study.domain} in pairs")
        known(behaviour, domain.behaviours, f"behaviour of {study.domain} in pairs")
        for name in (question, behaviour):
            check_part(name)
    return domain


def check_pairs(study: Any, domain: Domain) -> None:
    """Refuse a pair that cannot be learned, and a method that cannot be made for it.

    Where something is not ours, a world or a correction, a tiny task of each pair is tried.
    """
    for question, behaviour in study.pairs:
        domain.check(question, behaviour)
        for name in study.methods:
            correction = study.method(name).make(domain.largest_ratio(question, behaviour))
            try:
                correction.address("weigh")
            except TypeError as error:
                raise ValueError(f"{name}: {error}") from error
    if study.domain in domains.names() and not study.own and not is_reference(study.update):
        return
    tiny = study.tiny()
    for task in tiny.tasks():
        for name in tiny.methods:
            try:
                alone = replace(task, study=tiny.with_(methods=(name,)))
                alone.study.compute(alone, lambda: False)
            except Exception as error:
                told = str(error) if isinstance(error, ValueError) else repr(error)
                raise ValueError(f"{name}, in a trial of {task.name}: {told}") from error


def check_masses(method: Method) -> None:
    """Refuse a method whose draws depend on what it learns: studies make draws beforehand."""
    if method.make(1.0).refresh is not None:
        raise ValueError(
            f"{method.name} has masses that change as it learns, and studies share draws that are "
            "made beforehand; use a learner"
        )


def take_methods(study: Any) -> None:
    """Let `methods` be names, and `own` what those stand for that are not ours."""
    given = study.methods
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"methods must be a list of methods, got {_written(given)}")
    before = {method.name: method for method in study.own}
    methods: dict[str, Method] = {}
    for item in given:
        one = before[item] if isinstance(item, str) and item in before else Method.of(item)
        if one.name in methods and methods[one.name].same(one):
            raise ValueError(f"methods has something twice: {one.name!r}")
        if one.name in methods:
            raise ValueError(f"methods: two are called {one.name!r}; give one of them a name")
        if not one.same(NAMED.get(one.name, one)):
            raise ValueError(
                f"methods: {one.name!r} is the name of another method of ours; give this one a name"
            )
        methods[one.name] = one
    if not methods:
        raise ValueError("methods must name at least one")
    own = tuple(one for one in methods.values() if NAMED.get(one.name) != one)
    object.__setattr__(study, "methods", tuple(methods))
    object.__setattr__(study, "own", own)


def check_part(name: str) -> None:
    """Refuse the name of a question or behaviour that cannot be part of a path."""
    if not re.fullmatch(r"[^\W_][\w.+-]*", name):
        raise ValueError(
            f"{name!r} cannot be the name of a question or behaviour, since results are kept in a "
            "folder of that name: choose letters, digits, '-', '_', '+' and '.'"
        )


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a study."""
    if not re.fullmatch(r"[^\W_][\w.+-]*", name):
        raise ValueError(
            f"a study cannot be called {name!r}, since its results are kept in a folder of "
            "that name: choose a name of letters, digits, '-', '_', '+' and '.' that begins with a "
            "letter or digit"
        )
    if name in RESERVED:
        raise ValueError(f"a study cannot be called {name!r}: a folder or section is called so")


def check_at_least(least: int, **values: int) -> None:
    """Refuse what is less, by name."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


def check_distinct(**values: tuple[Any, ...]) -> None:
    """Refuse what has something twice, by name."""
    for name, several in values.items():
        for i, value in enumerate(several):
            if value in several[:i]:
                raise ValueError(f"{name} has something twice: {value!r}")


def check_several(**values: tuple[Any, ...]) -> None:
    """Refuse what has nothing, or something twice, by name."""
    for name, several in values.items():
        if not several:
            raise ValueError(f"{name} must name at least one")
    check_distinct(**values)


def check_types(study: Any) -> None:
    """Refuse values of a wrong type, by name, in words that suit a file and Python alike.

    Lists become tuples, and numbers plain ones: names of parts do not depend on how 1 was written.
    """
    for field in fields(study):
        if field.name in ("methods", "own"):
            continue  # see take_methods
        value = getattr(study, field.name)
        kind = str(field.type).removeprefix("tuple[").removesuffix(", ...]")
        one, several, plain = _TYPES[kind]
        if kind == field.type:
            if (new := plain(value)) is None:
                raise ValueError(f"{field.name} must be {one}, got {_written(value)}")
        elif isinstance(value, str | Mapping) or not isinstance(value, Iterable):
            raise ValueError(f"{field.name} must be a list of {several}, got {_written(value)}")
        else:
            items = tuple(value)
            new = tuple(plain(item) for item in items)
            if None in new:
                place = new.index(None)
                raise ValueError(
                    f"{field.name} must be a list of {several}, but item {place + 1} is "
                    f"{_written(items[place])}"
                )
        object.__setattr__(study, field.name, new)


def _pair(value: Any) -> tuple[str, ...] | None:
    words = tuple(value) if isinstance(value, list | tuple) else ()
    return words if len(words) == 2 and all(isinstance(word, str) for word in words) else None


def _of(kind: type, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """From a value to a plain one, or to None if it is not of that kind; true is no number."""
    return lambda v: make(v) if isinstance(v, kind) and not isinstance(v, bool) else None


_TYPES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "str": ("a name", "names", _of(str, str)),
    "int": ("a whole number", "whole numbers", _of(Integral, int)),
    "float": ("a number", "numbers", _of(Real, float)),
    "tuple[str, str]": ("a pair", "pairs [question, behaviour]", _pair),
}
"""For each type of attribute: one, several, and how a value becomes one."""


def _written(value: Any) -> str:
    """A value as in a file."""
    return str(value).lower() if isinstance(value, bool) else repr(value)
