"""The settings of a study: checks, and the digest that identifies results.

Values of a wrong type, unknown names, numbers out of range and repeated values are refused before
anything runs, and the message names the setting, in words that suit TOML files and Python alike.

A task's configuration is all that determines its result: equal configurations give equal bytes. The
study's *variant* is the digest of the settings that all its tasks share.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from inspect import formatannotation
from numbers import Integral, Real
from typing import Any

from gvf import Method
from gvf.common import user_code as code
from gvf.common.part_names import is_reference, known
from gvf.kernels import NAMED
from gvf_lab import domain as domains
from gvf_lab.domain import Domain
from gvf_lab.domain.domain import every_pair
from gvf_lab.study.base_study import BaseStudy, Task

ADDS_TASKS = {"name", "runs", "pairs", "gaps", "own"}
"""Attributes that decide which tasks a study has, and do not change any one of them."""
WRITTEN = {
    *("domain", "simulator", "protocol", "device", "seed", "methods", "update", "optimiser"),
    *("step_size", "step_sizes", "trace_decays", "etas", "betas", "zetas", "xi_max", "u0", "mu"),
    *("steps", "updates", "iterations", "warm_up", "gap", "buffer", "window", "batch_size"),
    *("batches", "error", "measure_every", "points", "evaluation_states", "rollouts"),
}
"""The settings that stored results name even where they are the default.

All others are left out at their default, so that a new setting changes no digest: results that were
stored before it still belong to their study."""
PLACE = ("question", "behaviour", "gap", "run")
"""The columns that identify a task within its study."""
RESERVED = ("results", "logs", "claims", "contents", "made", "matches")
"""Names that no study may have: folders of the store, and sections of the report."""


def check_shared(study: Any) -> Domain:
    """Check the settings that all kinds of studies have, fill in the pairs, return the domain."""
    resolve_methods(study)
    check_types(study)
    check_name(study.name)
    domain = study.world
    pairs = study.pairs or tuple(domain.pairs) or every_pair(domain.questions, domain.behaviours)
    object.__setattr__(study, "pairs", pairs)
    check_several(pairs=study.pairs)
    for question, behaviour in study.pairs:
        known(question, domain.questions, f"question of {study.domain} in pairs")
        known(behaviour, domain.behaviours, f"behaviour of {study.domain} in pairs")
        for name in (question, behaviour):
            check_part(name)
    return domain


def check_pairs(study: Any) -> None:
    """Refuse a pair that cannot be learned, and a method that cannot be made for it.

    If the domain, a method or the update is the user's own, a tiny task of each pair is tried.
    """
    domain = study.world
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
    try_methods(study.tiny(), lambda task: task.study.compute(task, lambda: False))


def try_methods(tiny: Any, do: Callable[[Task], object]) -> None:
    """Do the tasks of a tiny study with each method alone; an error names the method."""
    for task in tiny.tasks():
        for name in tiny.methods:
            try:
                do(replace(task, study=tiny.with_(methods=(name,))))
            except Exception as error:
                message = str(error) if isinstance(error, ValueError) else repr(error)
                raise ValueError(f"{name}, in a trial of {task.name}: {message}") from error


def check_masses(method: Method) -> None:
    """Refuse a method whose draws depend on what it learns, because studies draw beforehand."""
    if method.make(1.0).refresh is not None:
        raise ValueError(
            f"{method.name} has masses that change as it learns, and studies share draws that are "
            "made beforehand; use a learner"
        )


def resolve_methods(study: Any) -> None:
    """Turn `methods` into names, and put the methods that are not built in into `own`."""
    items = study.methods
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise ValueError(f"methods must be a list of methods, got {_written(items)}")
    before = {method.name: method for method in study.own}
    methods: dict[str, Method] = {}
    for item in items:
        resolved = before[item] if isinstance(item, str) and item in before else Method.of(item)
        if resolved.name in methods and methods[resolved.name].same(resolved):
            raise ValueError(f"methods has something twice: {resolved.name!r}")
        if resolved.name in methods:
            raise ValueError(f"methods: two are called {resolved.name!r}; give one of them a name")
        if not resolved.same(NAMED.get(resolved.name, resolved)):
            raise ValueError(
                f"methods: {resolved.name!r} is the name of another method of ours; give this one "
                "a name"
            )
        methods[resolved.name] = resolved
    if not methods:
        raise ValueError("methods must name at least one")
    own_methods = tuple(
        resolved for resolved in methods.values() if NAMED.get(resolved.name) != resolved
    )
    object.__setattr__(study, "methods", tuple(methods))
    object.__setattr__(study, "own", own_methods)


def check_part(name: str) -> None:
    """Refuse the name of a question or behaviour that cannot be part of a path."""
    if not re.fullmatch(r"[^\W_][\w.+-]*", name):
        raise ValueError(
            f"{name!r} cannot be the name of a question or behaviour, since results are kept in a "
            "folder of that name: choose letters, digits, '-', '_', '+' and '.'"
        )


def check_name(name: str) -> None:
    """Refuse a text that cannot be the name of a study."""
    if not re.fullmatch(r"[^\W_][\w.+-]*", name):
        raise ValueError(
            f"a study cannot be called {name!r}, since its results are kept in a folder of "
            "that name: choose a name of letters, digits, '-', '_', '+' and '.' that begins with a "
            "letter or digit"
        )
    if name in RESERVED:
        raise ValueError(f"a study cannot be called {name!r}: a folder or section is called so")


def check_numbers(study: BaseStudy) -> None:
    """Refuse a whole number, or one of several, that is below its least value."""
    for name, least in study.least.items():
        value = getattr(study, name)
        for number in value if isinstance(value, tuple) else (value,):
            if number < least:
                raise ValueError(f"{name} must be at least {least}, got {number}")


def check_distinct(**values: tuple[Any, ...]) -> None:
    """Refuse a setting with a repeated value, by name."""
    for name, several in values.items():
        for i, value in enumerate(several):
            if value in several[:i]:
                raise ValueError(f"{name} has something twice: {value!r}")


def check_several(**values: tuple[Any, ...]) -> None:
    """Refuse a setting that is empty or has a repeated value, by name."""
    for name, several in values.items():
        if not several:
            raise ValueError(f"{name} must name at least one")
    check_distinct(**values)


def check_types(study: Any) -> None:
    """Refuse values of a wrong type, by name.

    Lists become tuples and numbers plain ones, so that 1 and 1.0 give a part the same name.
    """
    for field in fields(study):
        if field.name in ("methods", "own"):
            continue  # see resolve_methods
        value = getattr(study, field.name)
        # Annotations are text or types, depending on the module that defines the study.
        text = field.type if isinstance(field.type, str) else formatannotation(field.type)
        single = not text.endswith(", ...]")
        kind = text if single else text.removeprefix("tuple[").removesuffix(", ...]")
        type_of_item, several, plain = _TYPES[
            known(kind, _TYPES, f"type of the setting {field.name!r}")
        ]
        if single:
            if (new := plain(value)) is None:
                raise ValueError(f"{field.name} must be {type_of_item}, got {_written(value)}")
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
    """Return a function from a value to a plain one, or to None if it is a bool or not `kind`."""
    return lambda v: make(v) if isinstance(v, kind) and not isinstance(v, bool) else None


_TYPES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "str": ("a name", "names", _of(str, str)),
    "int": ("a whole number", "whole numbers", _of(Integral, int)),
    "float": ("a number", "numbers", _of(Real, float)),
    "bool": ("true or false", "true and false", lambda v: v if isinstance(v, bool) else None),
    "tuple[str, str]": ("a pair", "pairs [question, behaviour]", _pair),
}
"""The words for one and for several of each type of attribute, and the conversion to it."""


def _written(value: Any) -> str:
    """Write a value as in a TOML file."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def settings(study: BaseStudy) -> dict[str, Any]:
    """Return the settings that the results depend on and that all tasks of the study share.

    Example:
        >>> from gvf_lab.study import Study
        >>> from gvf_lab.study.settings import settings
        >>> settings(Study("mine", "four-rooms", ("IR",), (1,), runs=3))["step_sizes"]
        [1.0]
    """
    plain: dict[str, Any] = {"generation": study.generation}
    for field in fields(study):  # pyright: ignore[reportArgumentType]
        value = getattr(study, field.name)
        written = field.name in WRITTEN or value != field.default
        if field.name not in ADDS_TASKS and written:
            # 1 and 1.0 are the same step size.
            plain_one = float if "float" in str(field.type) else lambda v: v
            is_many = isinstance(value, tuple)
            plain[field.name] = [plain_one(v) for v in value] if is_many else plain_one(value)
    # A method's colour does not change its results.
    plain["methods"] = [replace(study.method(name), colour="").plain() for name in study.methods]
    if used := references(study):
        plain["code"] = code.digest(used)
    return plain


def references(study: BaseStudy) -> set[str]:
    """Return a study's references to code that is not ours, including those of its domain."""
    named = {name for name in (study.kind, study.update) if is_reference(name)}
    named -= {name for name in named if name.startswith(("gvf.", "gvf_lab."))}
    for method in study.own:
        named |= {*method.references()}
    return named | {*domains.references(study.domain)}


def configuration(task: Task, shared: Mapping[str, Any] | None = None) -> str:
    """Return all that determines a task's result, as JSON: equal texts mean equal results."""
    place = {name: getattr(task, name) for name in PLACE}
    return canonical({**(shared or settings(task.study)), **place})


def variant(study: BaseStudy) -> str:
    """Return eight hexadecimal digits that depend only on the settings; they name a folder."""
    # A user's code may change, so the digest is cached only for studies without any.
    return _variant(study) if references(study) else _remembered_variant(study)


def _variant(study: BaseStudy) -> str:
    return hashlib.sha256(canonical(settings(study)).encode()).hexdigest()[:8]


_remembered_variant = lru_cache(maxsize=8)(_variant)


def canonical(value: Any) -> str:
    """Write settings as JSON in which equal settings are equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
