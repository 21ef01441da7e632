"""The sentences of the paper about methods and experiments, with the claims that judge them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from gvf_lab.figure.claim import Sentence
from gvf_lab.figure.families import named_claims
from gvf_lab.paper import get


@cache
def sentences() -> tuple[Sentence, ...]:
    """Return all sentences, in the order of the paper; those that are ours come last.

    Example:
        >>> from gvf_lab.paper.paper_sentences import sentences
        >>> first = next(sentence for sentence in sentences() if sentence.claims)
        >>> first.place, first.says
        ('Abstract', 'IS can make updates of high variance.')
    """
    text = (files("gvf_lab.paper") / "sentences.toml").read_text(encoding="utf-8")
    return tuple(_sentence(entry) for entry in tomllib.loads(text)["sentence"])


def _sentence(entry: dict[str, Any]) -> Sentence:
    claims = tuple(claim for reference in entry.get("claims", ()) for claim in _claims(reference))
    lists: dict[str, Any] = {"claims": claims, "theory": tuple(entry.get("theory", ()))}
    return Sentence(**(entry | lists))


def _claims(reference: str) -> list[str]:
    """Return the claims that "figure/claim" or "figure/family" names."""
    figure, _, id = reference.partition("/")
    ids = named_claims(id, get(figure).claims)
    if not ids:
        raise ValueError(f"sentences.toml: {figure} has no claim and no family {id!r}")
    return [f"{figure}/{claim}" for claim in ids]
