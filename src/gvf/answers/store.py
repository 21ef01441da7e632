"""The store: one file for each cell that is done, so that an interrupted answer goes on.

    <out>/cells/<cell>-<digest>.npz

The digest is that of everything that the cell depends on: the log's contents, the parts of the plan
that matter to it, the files and the code of the user's own that the plan names, and the version of
gvf. A file is complete when it appears. A file that cannot be read is computed again.
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

from gvf.answers.cells import Arrays, Cell
from gvf.answers.material import Material
from gvf.answers.plan import Plan, texts
from gvf.common import code
from gvf.common.files import replaced
from gvf.common.names import is_reference
from gvf.common.version import __version__


class Store:
    """The cells of an answer, in a folder that appears with the first of them.

    Args:
        folder: the folder of the answer.
        material: the material of the answer.
    """

    def __init__(self, folder: Path, material: Material) -> None:
        self.folder = folder
        self._material = material
        self._common = _common(material)

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell."""
        plan = self._material.plan
        asked = {k: v for k, v in vars(plan.questions[cell.question]).items() if k != "name"}
        depends = {**self._common, **vars(cell), "question": asked}
        depends["method"] = _method(cell, self._material)
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
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]


def _common(material: Material) -> dict[str, Any]:
    """Return what all cells depend on."""
    plan = material.plan
    given = _naming(plan)
    files = sorted({text for text in texts(given) if (plan.folder / text).is_file()})
    return {
        "version": __version__,
        "log": material.digest,
        "behaviour": plan.behaviour,
        "features": plan.features,
        "learn": plan.learn,
        "seed": plan.seed,
        "files": {
            name: hashlib.sha256((plan.folder / name).read_bytes()).hexdigest() for name in files
        },
        "code": code.digest(references(plan)),
    }


def references(plan: Plan) -> list[str]:
    """Return the references of a plan to code of the user's own."""
    names = {text.partition("(")[0] for text in texts(_naming(plan))}
    return sorted(name for name in names if is_reference(name))


def _naming(plan: Plan) -> list[Any]:
    """Return the parts of a plan that may name files and code."""
    asked = [[one.policy, one.cumulant, one.continuation, one.interest] for one in plan.questions]
    return [plan.features, plan.behaviour, plan.methods, asked]


def _method(cell: Cell, material: Material) -> Any:
    from gvf.answers.cells import methods

    found = methods(material)[cell.method]
    return cell.method if found is None else found.plain()
