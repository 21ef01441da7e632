"""Studies as TOML: `gvf study show` prints them, and users write them to run grids of their own."""

from __future__ import annotations

import json
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from gvf.common.part_names import check_same_module, find, is_reference, known, look_in
from gvf_lab.study.base_study import BaseStudy
from gvf_lab.study.online_study import OnlineStudy
from gvf_lab.study.settings import references
from gvf_lab.study.study import Study
from gvf_lab.study.variance_study import VarianceStudy

KINDS: dict[str, Any] = {
    study_class.kind: study_class for study_class in (Study, OnlineStudy, VarianceStudy)
}
"""Kinds of studies, by the word that a file has for them."""
BESIDE = "# modules beside: "
"""The start of a line, in a stored study, that names a folder with the study's modules."""


def load(path: str | Path) -> BaseStudy:
    r"""Load a study from a TOML file whose keys are the attributes of :class:`Study`.

    With ``kind = "online"`` or ``kind = "variance"`` the keys are the attributes of
    :class:`OnlineStudy` or :class:`VarianceStudy`. With a reference, ``kind = "module:Class"``,
    they are those of that subclass of :class:`BaseStudy`. The study's name is the file's, unless
    the file has a ``name``. Modules that the file names may lie beside it.

    Example:
        >>> from gvf_lab.study import load
        >>> from pathlib import Path
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text('domain = "four-rooms"\nmethods = ["IR"]\nstep_sizes = [1]')
        >>> load(file).name
        'mine'
        >>> _ = file.write_text('kind = "variance"\nruns = 3')
        >>> type(load(file)).__name__
        'VarianceStudy'
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    look_in(path.parent)
    for line in text.splitlines():
        if line.startswith(BESIDE):
            look_in(Path(line.removeprefix(BESIDE)))
    try:
        kind = settings.pop("kind", "errors")
        if not isinstance(kind, str):
            raise ValueError(f"kind must be a name, got {kind!r}")
        study = _class(kind)
        for key in settings:
            keys = ["kind", *(field.name for field in fields(study) if field.name != "own")]
            known(key, keys, "key", "`gvf study show STUDY` shows all")
        settings = {"name": path.stem} | settings
        needed = [field.name for field in fields(study) if field.default is MISSING]
        for key in needed:
            if key not in settings:
                raise ValueError(f"{key} is missing; needed are {' and '.join(needed[1:])}")
        loaded = study(**settings)
        for reference in references(loaded):
            check_same_module(reference)
        return loaded
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _class(kind: str) -> Any:
    """Find the class of a kind of study, by its word or its reference."""
    if kind.startswith("gvf.racing:"):
        raise ValueError(f"kind {kind!r} is called {kind.replace('gvf.', 'gvf_lab.')!r} now")
    if not is_reference(kind):
        return KINDS[known(kind, KINDS, "kind of study")]
    value = find(kind, "kind of study")
    if isinstance(value, type) and issubclass(value, BaseStudy):
        return value
    raise ValueError(f"kind {kind!r} is not a subclass of gvf_lab.study.BaseStudy")


def as_toml(study: BaseStudy) -> str:
    """Write all settings of a study as TOML, without the name, which is that of the file.

    Example:
        >>> from gvf_lab.study.study_file import as_toml
        >>> from gvf_lab.study import Study
        >>> print(as_toml(Study("mine", "four-rooms", ("IR", "IS"), (0.5, 1.0))).splitlines()[2])
        methods = ["IR", "IS"]
    """
    lines = [f'kind = "{study.kind}"']
    for setting in study.settings:
        if setting == "name":
            continue
        value = getattr(study, setting)
        if setting == "methods":
            value = tuple(study.method(name).plain() for name in value)
        line = f"{setting} = {_written(value)}"
        if len(line) > 100 and isinstance(value, tuple):
            line = f"{setting} = [\n{_lines(value)}\n]"
        lines.append(line)
    return "\n".join(lines)


def _lines(values: tuple[Any, ...]) -> str:
    """Write items on lines of up to 96 characters, broken between items only."""
    lines = [" "]
    for item in map(_written, values):
        if len(lines[-1]) + len(item) + 2 > 96 and lines != [" "]:
            lines.append(" ")
        lines[-1] += f" {item},"
    return "\n".join(lines).removesuffix(",")


def _written(value: Any) -> str:
    """Write a value in TOML: strings and numbers as in JSON, tables on one line."""
    if isinstance(value, dict):
        # TOML has no None; a parameter that is left out gets the correction's default.
        parts = {key: part for key, part in value.items() if part is not None}
        inside = ", ".join(f"{key} = {_written(part)}" for key, part in parts.items())
        return f"{{{inside}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(value, ensure_ascii=False)
