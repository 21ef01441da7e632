"""The parts that all pages share: their style, their templates, and how these are read.

A page is one HTML file that contains its pictures, so it opens without a network and on a phone. It
prints, and it runs no scripts.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def css() -> str:
    """Return the style sheet."""
    return (files("gvf.common") / "page.css").read_text(encoding="utf-8")


@cache
def templates(package: str) -> Environment:
    """Load the templates of a package and the common ones.

    A missing name is an error, and so is nan in JSON. All text is escaped.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("gvf.common")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    return environment
