"""Objects as data: descriptions as JSON and arrays, from which objects can be built again.

An object is described by the name of its class and the arguments of its constructor,

    {"class": "gvf.policies:Always", "arguments": {"action": 1, "actions": 2}}

and is built again by calling the class with them. A function is described by its name, and by a
fingerprint that shows whether it has changed. Descriptions come from files, which anybody may have
written, so names are only looked up in gvf itself and in modules that the reader trusts.

An object can be built again if its class is a frozen dataclass; or if its attributes are exactly
the arguments of the constructor; or if its class has a method ``constructor_arguments`` that
returns them by name. All others can only be compared, by their fingerprints.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from gvf.common import user_code
from gvf.common.distribution import PACKAGES

_PYTHON = f"{sys.implementation.cache_tag}:"  # bytecode depends on the version of Python
_ABSENT = {"object": ":nothing"}


class LostError(ValueError):
    """The error that a part of a description cannot be built again.

    Attributes:
        part: the place of the part, such as ``question.policy.function``.
        what: the part itself, in words.
    """

    def __init__(self, part: str, what: str) -> None:
        super().__init__(
            f"{part} is {what}, which cannot be found again; define it with a name in a module, or "
            "build the learner yourself and call learner.load(path)"
        )
        self.part, self.what = part, what


def describe(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Describe a value as JSON, for :func:`build` and :func:`differences`.

    Args:
        value: a number, a text, None, an array, a function, an object, or a list, tuple or dict of
            these. The description of a part that cannot be built again serves for comparison only.
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
    if inspect.isfunction(value):
        if _can_be_found(value):
            return {"function": _name(value), "fingerprint": fingerprint(value)}
    elif (arguments := _arguments(value)) is not None:
        described = {name: describe(part, arrays) for name, part in arguments.items()}
        unnamed = {} if _can_be_found(kind) else {"unnamed": True}
        return {"class": _name(kind), "arguments": described, **unnamed}
    name = _name(value if hasattr(value, "__qualname__") else kind)
    what = "function" if callable(value) else "object"
    return {what: name, "unnamed": True, "fingerprint": fingerprint(value)}


def build(description: Any, arrays: Mapping[str, NDArray[Any]], trust: Iterable[str] = ()) -> Any:
    """Build the value that was described.

    Args:
        description: a result of :func:`describe`.
        arrays: the arrays that the description refers to.
        trust: modules, or packages with all their modules, whose classes may be called and whose
            functions may be used. gvf itself is always trusted.

    Raises:
        ValueError: if a part comes from a module that is not trusted, cannot be found by its name,
            or is a function that has changed; the message names the part.

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
            case {"unnamed": True}:
                raise LostError(part, _show(node))
            case {"class": str(name), "arguments": dict(parts)}:
                cls = _import(name, type, trusted, part)
                arguments = {key: make(inner, _join(at, key)) for key, inner in parts.items()}
                try:
                    return cls(**arguments)
                except TypeError as error:
                    raise ValueError(f"{part}, {name}, cannot be made: {error}") from error
            case {"function": str(name), "fingerprint": saved}:
                # Functions of gvf are not trusted: not all are harmless, and no question needs one.
                function = _import(name, FunctionType, trusted[len(PACKAGES) :], part)
                if str(saved).startswith(_PYTHON) and saved != fingerprint(function):
                    raise ValueError(
                        f"{part}, {name}, has changed since it was saved: its code, or a value "
                        "that it uses"
                    )
                return function
        raise ValueError(f"{part} cannot be understood: {_show(node)}")

    return make(description, "")


def check_lasts(value: Any) -> None:
    """Raise LostError if a part of a value cannot be built again from its description.

    Example:
        >>> import gvf
        >>> from gvf.common.describe import check_lasts
        >>> check_lasts({"policy": gvf.policies.Always(1, actions=2)})
        >>> try:
        ...     check_lasts({"policy": gvf.policies.Function(lambda states: [[1.0]], actions=1)})
        ... except ValueError as error:
        ...     print(error.part, error.what)
        policy.function <lambda>
    """
    arrays: dict[str, NDArray[Any]] = {}
    description = describe(value, arrays)
    build(description, arrays, sorted(_modules(description)))


def _modules(node: Any) -> Iterator[str]:
    """Yield the modules that a description names."""
    if isinstance(node, list):
        for part in node:
            yield from _modules(part)
    elif isinstance(node, dict):
        name = node.get("class") or node.get("function")
        if isinstance(name, str):
            yield name.partition(":")[0]
        yield from _modules(list(node.values()))


class Difference(NamedTuple):
    """A part in which two descriptions differ, or cannot be compared."""

    text: str
    """The part and both values, in one line."""
    is_known: bool
    """False if the two cannot be compared, and so may be the same."""


def differences(saved: Any, present: Any) -> list[Difference]:
    """List the parts in which two descriptions differ or cannot be compared.

    Functions are equal if their fingerprints are equal, even if their names differ.

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


def fingerprint(function: Any) -> str | None:
    """Compute a hash of all that determines what a function does; None if that is not possible.

    The hash covers the code, without names of local variables, line numbers and docstrings; the
    values of its defaults, of its closure and of the globals it uses; and, in the same way, the
    functions and the user's own classes among these. Installed modules and classes count by name.
    The hash is the same in every process of the same Python version. It is None if a value cannot
    be compared, such as an open file or a module of the user's own.

    Example:
        >>> from gvf.common.describe import fingerprint
        >>> def scaled(factor):
        ...     return lambda t: factor * t.reward
        >>> fingerprint(scaled(2.0)) == fingerprint(scaled(2.0))
        True
        >>> fingerprint(scaled(2.0)) == fingerprint(scaled(3.0))
        False
    """
    try:
        text = json.dumps(_plain(function, {}))
    except (_CannotTellError, RecursionError):
        return None
    return _PYTHON + hashlib.sha256(text.encode()).hexdigest()


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
    match saved, here:
        case {"fingerprint": a}, {"fingerprint": b} if not (a and b):
            value_text = _show(here if a else saved)
            yield Difference(f"{at}: {value_text} cannot be compared", is_known=False)
            return
        case {"fingerprint": a}, {"fingerprint": b} if not a.startswith(_PYTHON):
            text = f"{at}: {_show(saved)} cannot be compared, since another Python saved it"
            yield Difference(text, is_known=False)
            return
    a, b = _identity(saved), _identity(here)
    if a != b and (a == a or b == b):  # nan equals nan here
        same_name = _show(saved) == _show(here)
        text = f"{at}: there {_show(saved)}, here {'another ' if same_name else ''}{_show(here)}"
        yield Difference(text, is_known=True)


def _identity(node: Any) -> Any:
    """Return the part of a description by which it is compared with others."""
    match node:
        case {"fingerprint": value} | {"sha256": value} | {"scalar": _, "value": value} | value:
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
        case {"function": str(name)} | {"object": str(name)}:
            return name.partition(":")[2].rpartition("<locals>.")[2]
        case {"array": _, "type": str(name)}:
            return name
        case {"tuple": list(parts)}:
            return f"({', '.join(map(_show, parts))})"
        case {"scalar": _, "value": value} | value:
            return repr(value)


class _CannotTellError(Exception):
    """The error that a value cannot be compared."""


def _plain(value: Any, seen: dict[int, tuple[int, Any]]) -> list[Any]:
    """Convert a value to nested lists of texts and numbers; different values give different lists.

    Args:
        value: any value.
        seen: the number of each value visited so far, by id, because values may contain themselves.
            The value is kept too, so that no other value gets its id.
    """
    kind: Any = type(value)
    if kind is int:
        return [hex(value)]
    if value is None or value is ... or kind in (bool, float, complex, str, bytes, range):
        return [repr(value)]
    if kind in (set, frozenset):
        # Sorted, because the order of a set differs from process to process.
        return [kind.__name__, *sorted(json.dumps(_plain(part, {})) for part in value)]
    if (kind is np.ndarray or issubclass(kind, np.generic)) and not value.dtype.hasobject:
        return [kind.__name__, _digest(value)]
    if isinstance(value, ModuleType):
        if not _is_installed(value.__name__):
            raise _CannotTellError  # its contents are not compared
        return ["module", value.__name__]
    if isinstance(value, type) and _is_installed(value.__module__):
        return ["class", _name(value)]
    home = sys.modules.get(getattr(value, "__module__", "numpy"))
    if kind.__module__ == "numpy" and getattr(home, getattr(value, "__name__", ""), None) is value:
        return ["numpy", value.__module__, value.__name__]
    if kind is not tuple:  # the compiler may or may not merge equal tuples
        if id(value) in seen:
            return ["again", seen[id(value)][0]]
        seen[id(value)] = len(seen), value
    # The class decides what an object does; an installed class counts by its name.
    of = _name(kind) if _is_installed(kind.__module__) else _plain(kind, seen)
    return [of, *(_plain(part, seen) for part in _inside(value))]


def _inside(value: Any) -> Iterable[Any]:
    """Return the values that determine what a value is and does."""
    kind = type(value)
    if kind in (tuple, list):
        return value
    if kind is dict:
        return value.items()
    if kind is slice:
        return value.start, value.stop, value.step
    if kind is BuiltinFunctionType:
        return value.__name__, value.__self__
    if kind is MethodType:
        return value.__self__, value.__func__
    if kind in (staticmethod, classmethod):
        return (value.__func__,)
    if kind is property:
        return value.fget, value.fset, value.fdel
    if isinstance(value, type):
        return _name(value), value.__bases__, _members(value)
    if kind is functools.partial:
        return value.func, value.args, value.keywords
    if is_jitted(value):
        return value.py_func, value.targetoptions
    if kind is FunctionType:
        names: set[str] = set()
        steps = _instructions(value.__code__, names)
        used = [(n, value.__globals__[n]) for n in sorted(names & value.__globals__.keys())]
        cells = [_contents(cell) for cell in value.__closure__ or ()]
        return steps, used, cells, value.__defaults__, value.__kwdefaults__, vars(value)
    arguments = _arguments(value)
    if arguments is None:
        raise _CannotTellError
    return (arguments,)


def _members(cls: type) -> list[tuple[str, Any]]:
    """List the members that a class itself defines, without those that Python adds."""
    noted = {"__annotations__", "__dict__", "__doc__", "__match_args__", "__module__"}
    noted |= {"__weakref__", "__abstractmethods__", "_abc_impl", "__orig_bases__", "__parameters__"}
    kept = {k: v for k, v in vars(cls).items() if k not in noted and "__dataclass_" not in k}
    if is_dataclass(cls):  # its methods are made from its fields
        generated = ("__delattr__", "__eq__", "__hash__", "__init__", "__repr__", "__setattr__")
        kept = {k: v for k, v in kept.items() if k not in generated}
        kept["fields"] = [field.name for field in fields(cls)]
    return [(k, v) for k, v in sorted(kept.items()) if not k.startswith(("__static", "__first"))]


@functools.cache
def _is_installed(name: str) -> bool:
    """Return True if a module belongs to Python, gvf or an installed package, not to a user."""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or package in PACKAGES:
        return package != "__main__"
    file = getattr(sys.modules.get(package), "__file__", None)
    if package and package not in sys.modules:
        spec = importlib.util.find_spec(package)
        file = spec.origin if spec else None
    return file is not None and user_code.is_installed(Path(file))


def _instructions(code: CodeType, names: set[str]) -> tuple[Any, ...]:
    """Return the instructions of code with their constants; add names of globals to ``names``."""
    steps: list[Any] = []
    for step in dis.get_instructions(code):
        if isinstance(step.argval, CodeType):
            steps.append((step.opcode, _instructions(step.argval, names)))
        elif step.opcode in dis.hasconst:  # not the position, which a docstring changes
            steps.append((step.opcode, step.argval))
        else:
            if step.opname == "IMPORT_NAME" and not _is_installed(step.argval):
                raise _CannotTellError  # a module of the user's own is not compared
            steps.append((step.opcode, step.arg, step.opcode in dis.hasname and step.argval))
            if "GLOBAL" in step.opname or step.opname == "LOAD_NAME":
                names.add(step.argval)
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    flags = code.co_flags & ~0x4000000  # without the flag for a docstring (Python 3.14)
    return flags, counts, arguments, code.co_exceptiontable, tuple(steps)


def _contents(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # a variable that has no value yet
        return ()


def _array_type(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _digest(array: Any) -> str:
    """Hash an array's type and values without a copy."""
    data: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.sha256(_array_type(array).encode())
    digest.update(data)
    return digest.hexdigest()
