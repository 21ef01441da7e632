"""Do the cases that come as JSON on standard input; write a line of JSON for each result.

A case that raises an error gives the error as its result, and the next case follows. A room that
cannot be imported fails only its own cases.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
import traceback
import warnings
from importlib import import_module
from typing import Any

import numpy as np

SHOWN = 4
"""The number of readable numbers of an array."""


def outcome(value: Any) -> dict[str, Any]:
    """Return an output as JSON: numbers by the hash of their bytes, all else as text."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        exact = np.ascontiguousarray(value)
        header = f"{exact.dtype.str} {exact.shape} ".encode()
        flat = exact.ravel()
        places = np.unique(np.linspace(0, max(flat.size - 1, 0), SHOWN).astype(int))
        return {
            "sha256": hashlib.sha256(header + exact.tobytes()).hexdigest(),
            "shape": [*exact.shape],
            "numbers": [repr(flat[i].item()) for i in places] if flat.size else [],
        }
    if isinstance(value, str):
        return {"text": value}
    return {"text": json.dumps(value, sort_keys=True, default=_plain, indent=0)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)


def do(kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Do a case, and return its outputs or its error."""
    module, function = kind.split(".")
    try:
        outputs = getattr(import_module(module), function)(**arguments)
        return {name: outcome(value) for name, value in outputs.items()}
    except Exception as error:
        line = traceback.format_exception_only(error)[0].strip().splitlines()[0]
        return {"error": {"text": type(error).__name__, "line": line}}


def main() -> None:
    """Do all cases of standard input."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a case prints does not mix with the results
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        case = json.loads(line)
        began = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            outputs = do(case["kind"], case["arguments"])
        seconds = round(time.perf_counter() - began, 3)
        print(json.dumps([case["name"], outputs, seconds]), file=results, flush=True)


if __name__ == "__main__":
    main()
