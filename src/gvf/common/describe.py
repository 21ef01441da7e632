"""Objects as data: descriptions as JSON and arrays, from which objects can be built again.

An object is described by the name of its class and the arguments of its constructor,

    {"class": "gvf.policies:Always", "arguments": {"action": 1, "actions": 2}}

and is built again by calling the class with them. A function is described by its name, as pickle
does it: what the function does is not in the description. Descriptions come from files, which
anybody may have written, so names are only looked up in gvf itself and in modules that the reader
trusts.

An object can be built again if its class is a frozen dataclass; or if its attributes are exactly
the arguments of the constructor; or if its class has a method ``constructor_arguments`` that
returns them by name. All others, and functions that no module has under their name, such as
lambdas, are described as *unnamed*: they can neither be built again nor compared. Functions of the
running program are compared by their names, but no other program can find them.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.distribution import PACKAGES

_ABSENT = {"class": ":nothing"}
_CODE = {"function", "object"}
"""The keys of descriptions that do not tell what a part does."""


class LostError(ValueError):
    """The error that a part of a description cannot be built again.

    Attributes:
        part: the place of the part, such as ``question.policy.function``.
        what: the part itself, in words.
    """

    def __init__(self, part: str, what: str) -> None:
        super().__init__(
            f"{part} is {what}, which cannot be found by a name: define it at the top of a module "
            "of its own, or make the learner as before and call "
            "learner.load(path, same_functions=True)"
        )
        self.part, self.what = part, what


def describe(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Describe a value as JSON, for :func:`build` and :func:`differences`.

    Args:
        value: a number, a text, None, an array, a function, a class, an object, or a list, tuple or
            dict of these. A part that cannot be built again is marked as unnamed.
        arrays: a dict to which NumPy arrays are added under new names, without copies; the
            description refers to them.

    Example:
        >>> import gvf
        >>> from gvf.common.describe import describe
        >>> describe(gvf.policies.Always(1, actions=2), {})
        {'class': 'gvf.policies:Always', 'arguments': {'action': 1, 'actions': 2}}
    """
    kind: Any = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [describe(part, arrays) for part in value]
    if kind is tuple:
        return {"tuple": [describe(part, arrays) for part in value]}
    if kind is dict:
        return {"dict": [[describe(part, arrays) for part in pair] for pair in value.items()]}
    if issubclass(kind, np.generic) and value.dtype.kind in "biuf" and value.itemsize <= 8:
        return {"scalar": value.dtype.name, "value": value.item()}
    if kind is np.ndarray and not value.dtype.hasobject:
        key = next(name for i in range(len(arrays) + 1) if (name := f"part/{i}") not in arrays)
        arrays[key] = value
        return {"array": key, "type": _array_type(value), "sha256": _digest(value)}
    if inspect.isfunction(value) or inspect.isclass(value):
        node = {"class" if inspect.isclass(value) else "function": _name(value)}
        if _can_be_found(value):
            return node
        if _look_up(sys.modules["__main__"], _name(value)) is value:
            return {**node, "unnamed": "of the running program"}
    elif (arguments := _arguments(value)) is not None:
        described = {name: describe(part, arrays) for name, part in arguments.items()}
        unnamed = {} if _can_be_found(kind) else {"unnamed": True}
        return {"class": _name(kind), "arguments": described, **unnamed}
    name = _name(value if hasattr(value, "__qualname__") else kind)
    return {"function" if callable(value) else "object": name, "unnamed": True}


def build(description: Any, arrays: Mapping[str, NDArray[Any]], trust: Iterable[str] = ()) -> Any:
    """Build the value that was described.

    Args:
        description: a result of :func:`describe`.
        arrays: the arrays that the description refers to.
        trust: modules, or packages with all their modules, whose classes may be called and whose
            functions may be used. gvf itself is always trusted.

    Raises:
        ValueError: if a part comes from a module that is not trusted, or cannot be found by its
            name; the message names the part.

    Example:
        >>> import gvf
        >>> from gvf.common.describe import build, describe
        >>> arrays = {}
        >>> build(describe(gvf.policies.Table([[0.1, 0.9], [1.0, 0.0]]), arrays), arrays)
        Table(2 states, 2 actions)
    """
    trusted = (*PACKAGES, *([trust] if isinstance(trust, str) else trust))

    def make(node: Any, at: str) -> Any:
        part = at or "the description"
        match node:
            case None | bool() | int() | float() | str():
                return node
            case list():
                return [make(inner, f"{at}[{i}]") for i, inner in enumerate(node)]
            case {"tuple": list(parts)}:
                return tuple(make(parts, at))
            case {"dict": list(pairs)}:
                return {make(key, at): make(inner, _join(at, key)) for key, inner in pairs}
            case {"scalar": str(name), "value": value}:
                return np.dtype(name).type(value)
            case {"array": str(key)} if key in arrays:
                return arrays[key]
            case {"unnamed": _}:
                raise LostError(part, _show(node))
            case {"class": str(name), "arguments": dict(parts)}:
                cls = _import(name, type, trusted, part)
                arguments = {key: make(inner, _join(at, key)) for key, inner in parts.items()}
                try:
                    return cls(**arguments)
                except TypeError as error:
                    raise ValueError(f"{part}, {name}, cannot be made: {error}") from error
            case {"class": str(name)}:
                return _import(name, type, trusted, part)
            case {"function": str(name)}:
                # Functions of gvf are not trusted: not all are harmless, and no question needs one.
                return _import(name, FunctionType, trusted[len(PACKAGES) :], part)
        raise ValueError(f"{part} cannot be understood: {_show(node)}")

    return make(description, "")


def references(value: Any) -> set[str]:
    """Return the names of all classes and functions that a value is built of.

    Raises:
        LostError: if a part of the value cannot be built again.

    Example:
        >>> import gvf
        >>> from gvf.common.describe import references
        >>> sorted(references(gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)))
        ['gvf.policies:Always', 'gvf:GVF']
        >>> try:
        ...     references({"policy": gvf.policies.Function(lambda states: [[1.0]], actions=1)})
        ... except ValueError as error:
        ...     print(error.part, error.what)
        policy.function <lambda>
    """
    return set(_references(describe(value, {}), ""))


def _references(node: Any, at: str) -> Iterator[str]:
    if isinstance(node, dict):
        if "unnamed" in node:
            raise LostError(at or "the description", _show(node))
        if isinstance(name := node.get("class") or node.get("function"), str):
            yield name
    for key, inner in _parts(node)[1].items():
        yield from _references(inner, _join(at, key))


class Difference(NamedTuple):
    """A part in which two descriptions differ, or cannot be compared."""

    text: str
    """The part and both values, in one line."""
    is_known: bool
    """False if the two may do the same: functions of other names, or without a name."""


def differences(saved: Any, present: Any) -> list[Difference]:
    """List the parts in which two descriptions differ or cannot be compared.

    Functions are equal if their names are. A function without a name in a module cannot be
    compared, not even with itself.

    Args:
        saved: a description, called "there".
        present: another, called "here".

    Example:
        >>> import gvf
        >>> from gvf.common.describe import describe, differences
        >>> saved = describe(gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9), {})
        >>> own = describe(gvf.GVF(gvf.policies.Always(0, actions=2), lambda t: t.reward, 0.9), {})
        >>> for difference in differences(saved, own):
        ...     print(difference.text)
        policy.action: there 1, here 0
        cumulant: there 'reward', here <lambda>
    """
    return list(_differences(saved, present, ""))


class _Empty:
    """A class without data, whose size shows if another class holds more than attributes."""


def _arguments(value: Any) -> dict[str, Any] | None:
    """Return the arguments that build an object like this one; None if they are unknown."""
    cls: Any = type(value)
    declared = hasattr(cls, "constructor_arguments")
    if declared:
        kept = value.constructor_arguments()
    elif _is_frozen(cls):
        kept = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    elif cls.__basicsize__ == _Empty.__basicsize__ and hasattr(value, "__dict__"):
        kept = vars(value)
    else:  # the object holds more than its attributes, as a list does
        return None
    try:
        signature = inspect.signature(cls)
        signature.bind(**kept)
    except (TypeError, ValueError):
        return None
    expected = signature.parameters.values()
    every = all(p.name in kept and p.kind is not p.VAR_KEYWORD for p in expected)
    return dict(kept) if declared or every else None


def _is_frozen(cls: Any) -> bool:
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _name(thing: Any) -> str:
    """Return the name of a class or function; public names do not depend on gvf's modules."""
    package, _, rest = thing.__module__.partition(".")
    homes = (package, f"{package}.{rest.partition('.')[0]}") if package in PACKAGES else ()
    public = (
        home for home in homes if getattr(sys.modules.get(home), thing.__qualname__, None) is thing
    )
    return f"{next(public, thing.__module__)}:{thing.__qualname__}"


def _can_be_found(thing: Any) -> bool:
    """Return True if another process can find a class or function by its name."""
    home = sys.modules.get(thing.__module__)
    return thing.__module__ != "__main__" and _look_up(home, _name(thing)) is thing


def _look_up(module: ModuleType | None, name: str) -> Any:
    """Return the attribute of this name in a module or a class of it; None if there is none."""
    part_of_module: Any = module
    for part in name.partition(":")[2].split("."):
        if not (part_of_module is module or inspect.isclass(part_of_module)) or not _is_plain(part):
            return None
        part_of_module = getattr(part_of_module, part, None)
    return part_of_module


def _is_plain(name: str) -> bool:
    return name.isidentifier() and not name.startswith("__")


def _covers(packages: Iterable[str], module: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _import(name: str, kind: type, trusted: tuple[str, ...], part: str) -> Any:
    """Import the class or function of this name, if a trusted module defines it."""
    module = name.partition(":")[0]
    if not _covers(trusted, module):
        raise ValueError(
            f'{part} names {name}; if you trust it: gvf.load(path, trust=["{module}"])'
        )
    try:
        plain = all(map(_is_plain, module.split(".")))
        imported = _look_up(importlib.import_module(module), name) if plain else None
    except ImportError as error:
        raise ValueError(f"{part} names {name}, which cannot be imported: {error}") from error
    # A trusted module may import names from one that is not trusted. And some classes of gvf do
    # more than hold data: they start a simulator.
    if not isinstance(imported, kind) or not _covers(trusted, imported.__module__):
        what = "class" if kind is type else "function"
        raise ValueError(f"{part} names {name}, and there is no such {what} in that module")
    data = _is_frozen(imported) or hasattr(imported, "constructor_arguments")
    if kind is type and _covers(PACKAGES, imported.__module__) and not data:
        raise ValueError(f"{part} names {name}, which is not made from a file")
    return imported


def _differences(saved: Any, here: Any, at: str) -> Iterator[Difference]:
    (kind, parts), (own_kind, own_parts) = _parts(saved), _parts(here)
    if kind is not None and kind == own_kind:
        for key in parts | own_parts:
            pair = parts.get(key, _ABSENT), own_parts.get(key, _ABSENT)
            yield from _differences(*pair, _join(at, key))
        return
    at = at or "the whole"
    codes = [node for node in (saved, here) if isinstance(node, dict) and {*node} & _CODE]
    unnamed = [_show(node) for node in codes if node.get("unnamed") is True]
    if len(codes) == 2 and unnamed:
        text = f"{at}: {unnamed[0]} cannot be compared, since it has no name in a module"
        yield Difference(text, is_known=False)
        return
    a, b = _identity(saved), _identity(here)
    if a != b and (a == a or b == b):  # nan equals nan here
        same_text = _show(saved) == _show(here)
        text = f"{at}: there {_show(saved)}, here {'another ' if same_text else ''}{_show(here)}"
        yield Difference(text, is_known=len(codes) < 2)


def _identity(node: Any) -> Any:
    """Return the part of a description by which it is compared with others."""
    match node:
        case {"function": value} | {"sha256": value} | {"scalar": _, "value": value} | value:
            return value


def _parts(node: Any) -> tuple[str | None, dict[Any, Any]]:
    """Return the kind of a described list, tuple, dict or object, and its parts by key."""
    match node:
        case list():
            return "list", dict(enumerate(node))
        case {"tuple": parts}:
            return "tuple", dict(enumerate(parts))
        case {"dict": pairs}:
            return "dict", {k if isinstance(k, str) else json.dumps(k): part for k, part in pairs}
        case {"class": name, "arguments": parts}:
            return name, parts
    return None, {}


def _join(at: str, key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{at}.{key}" if at else key
    return f"{at}[{key}]"


def _show(node: Any) -> str:
    """Format a description as readable text."""
    match node:
        case {"class": str(name), "arguments": dict(parts)}:
            inside = ", ".join(f"{key}={_show(part)}" for key, part in parts.items())
            return f"{_show({'object': name})}({inside})"
        case {"class": str(name)} | {"function": str(name)} | {"object": str(name)}:
            return name.partition(":")[2].rpartition("<locals>.")[2]
        case {"array": _, "type": str(name)}:
            return name
        case {"tuple": list(parts)}:
            return f"({', '.join(map(_show, parts))})"
        case {"scalar": _, "value": value} | value:
            return repr(value)


def _array_type(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _digest(array: Any) -> str:
    """Hash an array's type and values without a copy."""
    data: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.sha256(_array_type(array).encode())
    digest.update(data)
    return digest.hexdigest()
