"""Sentences: what a paper says about its experiments, each judged by claims.

A sentence is judged by one claim or many, which may belong to several figures. It

    holds       if every claim holds,
    in part     if some claims hold and others fail: the sentence turns around somewhere,
    fails       if some claims fail and none holds,
    undecided   otherwise.

Claims that do not count (``Claim.not_counted``) are left out. A sentence without claims is judged
by theory, is refuted by arithmetic, is contradicted by the authors' code or published curves, says
why it cannot be tested, or repeats another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from gvf_lab.figure.claim import Claim, Verdict
from gvf_lab.figure.families import slug


@dataclass(frozen=True)
class Sentence:
    """A sentence about experiments.

    Attributes:
        id: the id, unique in its paper.
        place: the place in the paper.
        says: the sentence in our words.
        claims: the claims that judge it, as "figure/claim".
        theory: the names of theoretical results that judge it.
        refuted: the reason why arithmetic refutes it.
        contradicted: how the authors' code or published curves differ from it, for a sentence on
            the protocol of experiments.
        excuse: the reason why it cannot be tested.
        repeats: the id of the sentence that it repeats; repetitions are not counted.
        ours: True if it is not in the paper but was added by us; it is not counted.
        some: True if it says "can", "could", "potentially" or "in some settings": it holds if one
            of its claims does.
        headline: True if it belongs in a summary of the paper.
        remark: the place where it turns around, and the reason, if known.
        first: its verdict when claims first judged it by results at the paper's scale. If it has
            another one now, the claims were changed when results were known.

    Example:
        >>> from gvf_lab.figure.sentence import Sentence
        >>> Sentence("fast", "Section 1", "IR learns fast.", claims=("speed/ir-fast",)).counts
        True
    """

    id: str
    place: str
    says: str
    claims: tuple[str, ...] = ()
    theory: tuple[str, ...] = ()
    refuted: str = ""
    contradicted: str = ""
    excuse: str = ""
    repeats: str = ""
    ours: bool = False
    some: bool = False
    headline: bool = False
    remark: str = ""
    first: str = ""

    def __post_init__(self) -> None:
        judged = self.claims or self.theory or self.refuted or self.contradicted
        if not (judged or self.excuse or self.repeats):
            raise ValueError(
                f"{self.id}: needs claims, theory, a refutation, a contradiction, an excuse or "
                "what it repeats"
            )
        for claim in self.claims:
            if "/" not in claim:
                raise ValueError(f"{self.id}: claims are named figure/claim, got {claim!r}")

    @property
    def counts(self) -> bool:
        """True if it is a sentence of the paper that is judged, and repeats no other."""
        return bool(self.claims) and not self.repeats and not self.ours

    @cached_property
    def figures(self) -> frozenset[str]:
        """The figures whose claims judge it."""
        return frozenset(claim.partition("/")[0] for claim in self.claims)

    def judged_by(self, figure: str, claim: str) -> bool:
        """Return True if a claim of a figure judges it.

        Example:
            >>> from gvf_lab.figure.sentence import Sentence
            >>> sentence = Sentence("fast", "Section 1", "IR is fast.", claims=("speed/ir-fast",))
            >>> sentence.judged_by("speed", "ir-fast"), sentence.judged_by("speed", "is")
            (True, False)
        """
        return f"{figure}/{claim}" in self._claims

    @cached_property
    def _claims(self) -> frozenset[str]:
        return frozenset(self.claims)


def named_claims(reference: str, claims: Iterable[Claim]) -> list[str]:
    """Return the ids of the claims that a reference names: the id of a claim, or of its family.

    In the id of a family, a value may stand in the place of a `{name}`.

    Example:
        >>> from gvf_lab.figure.sentence import named_claims
        >>> from gvf_lab.paper import get
        >>> claims = get("markov-vtrace-all").claims
        >>> named_claims("v-trace-1-wider-than-is-{pair}", claims)
        ['v-trace-1-wider-than-is-easy', 'v-trace-1-wider-than-is-hard',
         'v-trace-1-wider-than-is-hardest']
    """
    names = set(re.findall(r"\{(\w+)\}", reference))
    return [
        claim.id
        for claim in claims
        if claim.id == reference
        or (
            names
            and names <= set(claim.names)
            and slug(reference.format(**claim.names)) == claim.id
        )
    ]


def weigh(verdicts: Iterable[Verdict], some: bool = False) -> str:
    """Return the verdict on a sentence from the verdicts on its claims.

    With `some`, one claim that holds is enough.

    Example:
        >>> from gvf_lab.figure.sentence import weigh
        >>> weigh([])
        'undecided'
    """
    outcomes = [verdict.verdict for verdict in verdicts if not verdict.given]
    if outcomes and (
        all(outcome == "holds" for outcome in outcomes) or (some and "holds" in outcomes)
    ):
        return "holds"
    if "fails" in outcomes:
        return "in part" if "holds" in outcomes else "fails"
    return "undecided"
