"""The sentences of the paper about methods and experiments, with the claims that judge them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from gvf_lab.figure.sentence import Sentence


@cache
def sentences() -> tuple[Sentence, ...]:
    """Return all sentences, in the order of the paper; those that are ours come last.

    Example:
        >>> from gvf_lab.paper.paper_sentences import sentences
        >>> first = next(one for one in sentences() if one.claims)
        >>> first.place, first.says
        ('Abstract', 'IS can make updates of high variance.')
    """
    text = (files("gvf_lab.paper") / "sentences.toml").read_text(encoding="utf-8")
    return tuple(_sentence(entry) for entry in tomllib.loads(text)["sentence"])


def _sentence(entry: dict[str, Any]) -> Sentence:
    lists: dict[str, Any] = {name: tuple(entry.get(name, ())) for name in ("claims", "theory")}
    return Sentence(**(entry | lists))
