"""The store: one file for each cell that is done, so that an interrupted answer goes on.

    <out>/cells/gvf-version.txt
    <out>/cells/<cell>-<digest>.npz

A folder belongs to one version of gvf, and any other refuses it. The digest is that of everything
that the cell depends on: the log's contents, the parts of the plan that matter to it, the files
that these parts name, and the functions of the user's own that they use. A file is complete when it
appears. A file that cannot be read is computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers.cells import Arrays, Cell, methods, order_of
from gvf.answers.plan import Plan, texts
from gvf.answers.read_inputs import Material
from gvf.common import user_code
from gvf.common.files import replaced, write_text
from gvf.common.part_names import is_reference
from gvf.common.version import __version__

VERSION = "gvf-version.txt"
"""The name of the file with the version of gvf."""


def check_version(folder: Path) -> None:
    """Raise ValueError if the folder of an answer is of another version of gvf."""
    cells = folder / "cells"
    if not cells.is_dir():
        return
    try:
        version = (cells / VERSION).read_text("utf-8").strip()
    except FileNotFoundError:
        version = "an unknown version" if any(cells.iterdir()) else __version__
    if version != __version__:
        raise ValueError(
            f"{folder} was written by gvf {version}; this is gvf {__version__}, and goes on with "
            "its own answers only: name another folder, or remove this one"
        )


def write_version(folder: Path) -> None:
    """Make the folder of the cells, and write the version of gvf into it."""
    cells = folder / "cells"
    if not (cells / VERSION).exists():
        cells.mkdir(parents=True, exist_ok=True)
        write_text(cells / VERSION, __version__)


class Store:
    """The cells of an answer, in a folder that appears with the first of them.

    Args:
        folder: the folder of the answer.
        material: the material of the answer.
    """

    def __init__(self, folder: Path, material: Material) -> None:
        check_version(folder)
        self.folder = folder
        self._material = material
        self._common = _common(material)

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell."""
        plan = self._material.plan
        asked = {k: v for k, v in vars(plan.questions[cell.question]).items() if k != "name"}
        method = methods(self._material)[cell.method]
        parts: dict[str, Any] = {"question": _part(plan, asked), "method": cell.method}
        if method is not None:
            parts["method"] = _part(plan, method.plain())
        depends = {**self._common, **vars(cell), **parts}
        if cell.kind == "judge":
            depends |= {"step_sizes": plan.step_sizes, "folds": plan.folds}
        text = json.dumps(depends, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        name = re.sub(r"[^\w.-]+", "_", f"{cell.kind}-{cell.method}-{cell.part}")
        return self.folder / "cells" / f"{name}-{digest}.npz"

    def get(self, cell: Cell) -> Arrays | None:
        """Return the arrays of a cell, or None if they are not there."""
        path = self.path(cell)
        try:
            with path.open("rb") as file, np.load(file) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            print(f"gvf: warning: {path} is damaged, and computed again: {error}", file=sys.stderr)
            return None

    def put(self, cell: Cell, arrays: Arrays) -> None:
        """Store the arrays of a cell."""
        path = self.path(cell)
        write_version(self.folder)
        with replaced(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]


def _common(material: Material) -> dict[str, Any]:
    """Return what all cells depend on."""
    plan = material.plan
    return {
        "log": material.digest,
        "behaviour": _part(plan, plan.behaviour),
        "features": _part(plan, plan.features),
        "learn": {**plan.learn, "order": order_of(material)},
        "seed": plan.seed,
    }


def _part(plan: Plan, named: Any) -> list[Any]:
    """Return what tells a part of a plan from others: its text, its files, and the code it uses."""
    files = sorted({text for text in texts(named) if (plan.folder / text).is_file()})
    digests = {
        name: hashlib.sha256((plan.folder / name).read_bytes()).hexdigest() for name in files
    }
    return [named, digests, user_code.digest(_references_in(named))]


def references(plan: Plan) -> list[str]:
    """Return the references of a plan to code of the user's own."""
    asked = [
        [question.policy, question.cumulant, question.continuation, question.interest]
        for question in plan.questions
    ]
    return _references_in([plan.features, plan.behaviour, plan.methods, asked])


def _references_in(named: Any) -> list[str]:
    names = {text.partition("(")[0] for text in texts(named)}
    return sorted(name for name in names if is_reference(name))
