"""The paper's claims: each is borne out, refuted or left open where results are made so by hand."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest
from planted import Truth, elsewhere, planted

from gvf import paper
from gvf.figure import Claim, Figure, Verdict, judge

VTRACE = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
UNIFORM = ("IS", "WIS-Minibatch", "WIS-Buffer", *VTRACE, "Sarsa")
SLUGS = {
    "IS": "is", "WIS-Minibatch": "wis-minibatch", "WIS-Buffer": "wis-buffer", "Sarsa": "sarsa",
    "V-trace(1.0)": "v-trace-1", "V-trace(0.5 max)": "v-trace-0.5-max",
    "V-trace(0.9 max)": "v-trace-0.9-max", "WIS-TD(0)": "wis-td",
    "BC-IR": "bc-ir",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Truths that decide a claim.

    Attributes:
        holds: one or several that bear it out.
        fails: one or several that refute it.
        unsure: two, each of which half of the runs show; by default the first of each.
        about: the methods that matter, if not all do.
    """

    holds: Truth | tuple[Truth, ...]
    fails: Truth | tuple[Truth, ...]
    unsure: tuple[Truth, Truth] | None = None
    about: tuple[str, ...] = ()

    def truths(self, verdict: str) -> list[tuple[Truth, ...]]:
        """Return the truths that must give a verdict."""
        told = {
            name: truths if isinstance(truths, tuple) else (truths,)
            for name, truths in (("holds", self.holds), ("fails", self.fails))
        }
        if verdict == "undecided":
            return [self.unsure or (told["holds"][0], told["fails"][0])]
        return [(truth,) for truth in told[verdict]]


def alike(method: str, *others: str, bound: float) -> Case:
    """A method must perform like others, within a factor."""
    return Case(
        holds=Truth(),
        fails=(Truth(error={method: 2.0}), Truth(error={method: 0.5})),
        # On average just at the bound.
        unsure=(Truth(), Truth(error={method: 2 * bound - 1})),
        about=(method, *others),
    )


def worse(method: str, other: str) -> Case:
    """A method must be worse than another one."""
    return Case(
        holds=Truth(error={method: 2.0}),
        fails=Truth(error={method: 0.5}),
        about=(method, other),
    )


def bears_more(method: str, other: str) -> Case:
    """A method must bear larger step sizes than another one."""
    return Case(
        holds=Truth(limit={method: 8.0}),
        fails=Truth(limit={other: 8.0}),
        about=(method, other),
    )


def by_clip(*values: float) -> Mapping[str, float]:
    """Name values: V-trace with the clips 1, .5 and .9 of the largest ratio, then IS."""
    return dict(zip((*VTRACE, "IS"), values, strict=False))


BC_IR = alike("BC-IR", "IR", bound=1.1)
DEGRADES = Truth(few={"IR": 2.0})
"""IR gets twice as bad with the fewest updates, all others do not."""
TOGETHER = Case(
    holds=Truth(few={"IS": 3.0}),
    fails=Truth(error={"IS": 2.0}),
    unsure=(Truth(), Truth(error={"IS": 1.5})),
)
DIFFERENCES = {
    f"smaller-difference-under-random-state-{target}": Case(
        holds=Truth(few_in={(target, "uniform"): {"IS": 2.0}}),
        fails=Truth(few_in={(target, "random-state"): {"IS": 2.0}}),
        about=("IS", "IR"),
    )
    for target in ("down", "favoured-down")
}
BEATS = {
    f"ir-beats-{SLUGS[other]}-with-few-updates": Case(
        # With many updates it is the other way round, and does not count.
        holds=Truth(error={other: 0.5}, few={other: 4.0}),
        fails=Truth(few={other: 0.5}),
        about=(other, "IR"),
    )
    for other in ("IS", "WIS-Minibatch", "V-trace(1.0)")
}
BY_VARIANCE = ("V-trace(1.0)", "IR", "BC-IR", "V-trace(0.5 max)", *VTRACE[2:], "WIS-Minibatch",
               "IS", "WIS-Buffer")  # fmt: skip
RISING = {method: 1.0 + rank for rank, method in enumerate(BY_VARIANCE)}
FALLING = {method: 8.0 - rank for rank, method in enumerate(BY_VARIANCE)}
IMAGES = ("BC-IR", "IS", "V-trace(1.0)")
LOW, NEXT, _ = sorted(paper.get("racing-step-size").quick["step_sizes"])[-3:]
"""Learning rates with images: those before the largest."""
FALLS: Mapping[str, float] = dict.fromkeys(("IR", *IMAGES, "WIS-Minibatch"), NEXT)
"""All get worse at the largest."""
SENSITIVE = ("IS", "WIS-Buffer", "WIS-Minibatch")
NOT_SENSITIVE = ("IR", "BC-IR", "WIS-Optimal", "Sarsa", "Expected Sarsa", "On-policy")

CASES: Mapping[str, Mapping[str, Case]] = {
    "four-rooms-learning-curves": {
        **{f"ir-faster-than-{SLUGS[other]}": worse(other, "IR") for other in UNIFORM},
        "ir-overlaps-wis-optimal": alike("IR", "WIS-Optimal", bound=1.1),
        "wis-buffer-is-nearly-is": alike("WIS-Buffer", "IS", bound=1.05),
        "v-trace-1-beats-is": worse("IS", "V-trace(1.0)"),
        **{
            f"{SLUGS[other]}-bias-matters-little": Case(
                # Slow at first, and as good as IS in the end.
                holds=Truth(error={other: 2.0}, end={other: 0.5}),
                fails=Truth(end={other: 2.0}),
                unsure=(Truth(), Truth(end={other: 1.2})),
                about=(other, "IS"),
            )
            for other in ("WIS-Minibatch", *VTRACE)
        },
        "sarsa-like-reweighting": alike("Sarsa", *UNIFORM, bound=1.25),
        "bc-ir-like-ir": BC_IR,
    },
    "four-rooms-gap": {
        **{
            f"{SLUGS[other]}-worse-with-gap": Case(
                # It even counts if IR gets better.
                holds=(Truth(few={other: 2.0, "IR": 1.2}), Truth(few={other: 0.9, "IR": 0.8})),
                fails=(Truth(few={other: 1.2, "IR": 2.0}), Truth(few={other: 0.8, "IR": 0.9})),
                about=(other, "IR"),
            )
            for other in UNIFORM
        },
        "ir-ahead-as-updates-get-rarer": Case(
            holds=Truth(error={"IR": 0.5}),
            # One other method, at one gap, is enough.
            fails=(Truth(error={"IR": 2.0}), Truth(error={"IR": 0.5}, few={"Sarsa": 0.3})),
            about=("IR", *UNIFORM),
        ),
    },
    "four-rooms-step-size": {
        **{f"ir-wider-than-{SLUGS[other]}": bears_more("IR", other) for other in UNIFORM},
        **{
            f"{SLUGS[other]}-less-variance-than-is": bears_more(other, "IS")
            for other in ("WIS-Minibatch", *VTRACE)
        },
    },
    "continuous-incremental": {
        **BEATS,
        "ir-beats-wis-td-with-few-updates": Case(
            holds=Truth(few={"WIS-TD(0)": 2.0}),
            fails=Truth(few={"WIS-TD(0)": 0.5}),
            about=("IR", "WIS-TD(0)"),
        ),
        **{
            f"ir-wis-td-beats-{SLUGS[other]}": worse(other, "IR+WIS-TD(0)")
            for other in ("IS", "WIS-Minibatch", "V-trace(1.0)", "WIS-TD(0)")
        },
        "ir-wis-td-slightly-better": Case(
            holds=Truth(error={"IR": 1.1}),
            # Worse; or better, and not slightly.
            fails=(Truth(error={"IR": 0.9}), Truth(error={"IR": 2.0})),
            about=("IR", "IR+WIS-TD(0)"),
        ),
        "wis-td-degrades-published-u0": Case(
            holds=Truth(few_with_u0={640.0: 2.0}), fails=DEGRADES, about=("IR", "WIS-TD(0)")
        ),
        "wis-td-degrades-full-grid": Case(
            holds=Truth(few={"WIS-TD(0)": 2.0}),
            # It degrades with one u0 and not with the others: the best one does not.
            fails=(DEGRADES, Truth(few={"IR": 1.2}, few_with_u0={640.0: 2.0})),
            about=("IR", "WIS-TD(0)"),
        ),
        "methods-come-together": TOGETHER,
    },
    "continuous-rmsprop": {**BEATS, "methods-come-together": TOGETHER},
    "racing-step-size": {
        "ir-best": Case(
            holds=Truth(error={"IR": 0.5}),
            # One other method is enough.
            fails=(Truth(error={"IR": 2.0}), Truth(error={"IR": 0.5, "V-trace(1.0)": 0.3})),
            about=("IR", *IMAGES),
        ),
        **{
            f"ir-better-than-{SLUGS[other]}": worse(other, "IR")
            for other in (*IMAGES, "WIS-Minibatch")
        },
        "is-unstable-where-ir-is-not": Case(
            # Runs differ by a factor: a larger error differs more.
            holds=Truth(error={"IS": 4.0}),
            fails=(Truth(), Truth(error={"IR": 4.0})),
            unsure=(Truth(), Truth(error={"IS": 1.3})),
            about=("IR", "IS"),
        ),
        **{
            f"ir-less-sensitive-than-{SLUGS[other]}": Case(
                # A rate counts if the error is below that of the best constant.
                holds=Truth(limit={other: NEXT}),
                fails=Truth(limit={"IR": NEXT}),
                unsure=(Truth(), Truth(limit={other: NEXT})),
                about=("IR", other),
            )
            for other in ("IS", "V-trace(1.0)")
        },
        "all-worse-above": Case(
            holds=Truth(limit=FALLS),
            # One method that is best at the largest rate is enough.
            fails=Truth(error={"IS": 5.0}, limit=FALLS),
            about=("IR", *IMAGES, "WIS-Minibatch"),
        ),
    },
    "racing-momentum": {
        "bc-ir-worse-at-the-largest-rate": Case(
            # The largest rate that IR can use, which need not be the largest of all.
            holds=(Truth(limit={"BC-IR": NEXT}), Truth(limit={"IR": NEXT, "BC-IR": LOW})),
            fails=(
                Truth(error={"BC-IR": 0.5}),
                Truth(error={"BC-IR": 0.9}, limit={"IR": NEXT, "BC-IR": NEXT}),
            ),
            about=("IR", "BC-IR"),
        ),
    },
    "continuous-sgd-all": DIFFERENCES,
    "continuous-rmsprop-all": {
        **DIFFERENCES,
        "rmsprop-worse-than-constant": Case(
            holds=Truth(error={"IR": 2.0}), fails=Truth(error={"IR": 0.5}), about=("IR",)
        ),
    },
    "continuous-incremental-all": DIFFERENCES,
    "markov-step-size": {
        "ir-as-sensitive-as-on-policy": Case(
            holds=Truth(),
            fails=(Truth(limit={"IR": 8.0}), Truth(limit={"On-policy": 8.0})),
            unsure=(Truth(), Truth(limit={"IR": 8.0})),
            about=("IR", "On-policy"),
        ),
        **{
            f"ir-less-sensitive-than-{SLUGS[other]}": bears_more("IR", other)
            for other in (*SENSITIVE, "Sarsa")
        },
        **{f"ir-wider-than-{SLUGS[other]}": bears_more("IR", other) for other in SENSITIVE},
        "is-most-sensitive": Case(
            holds=Truth(limit=dict.fromkeys(NOT_SENSITIVE, 8.0)),
            # One other method that bears less is enough.
            fails=(
                Truth(limit=dict.fromkeys(SENSITIVE, 8.0)),
                Truth(limit=dict.fromkeys(NOT_SENSITIVE, 8.0) | {"Sarsa": 2.0}),
            ),
        ),
        "bc-ir-like-ir": BC_IR,
    },
    "markov-vtrace": {
        "harder-clip-more-bias": Case(
            holds=Truth(error=by_clip(2.0, 1.4, 1.0)),
            # The other way round; or not in order.
            fails=(Truth(error=by_clip(1.0, 1.4, 2.0)), Truth(error=by_clip(2.0, 1.0, 1.4))),
            about=VTRACE,
        ),
        "harder-clip-more-step-sizes": Case(
            holds=Truth(limit=by_clip(8.0, 6.0, 4.0, 2.0)),
            fails=(
                Truth(limit=by_clip(2.0, 4.0, 6.0, 8.0)),
                Truth(limit=by_clip(8.0, 6.0, 2.0, 4.0)),
            ),
        ),
        **{
            f"ir-less-sensitive-than-{SLUGS[clip]}": Case(
                holds=Truth(elsewhere=Truth(limit={"IR": 8.0})),
                fails=Truth(limit={clip: 8.0}),
                about=("IR", clip),
            )
            for clip in VTRACE
        },
    },
    "markov-variance": {
        "ir-variance-far-below-early": Case(
            holds=Truth(early={"IS": 10.0}),
            # Twice is not far.
            fails=Truth(early={"IS": 2.0}),
            unsure=(Truth(early={"IS": 2.0}), Truth(early={"IS": 4.0})),
            about=("IR", "IS"),
        ),
        "ir-variance-comparable-late": Case(
            holds=Truth(early={"IS": 10.0}),
            fails=(Truth(late={"IS": 4.0}), Truth(late={"IR": 4.0})),
            unsure=(Truth(), Truth(late={"IS": 3.0})),
            about=("IR", "IS"),
        ),
        "ir-variance-lower": Case(
            holds=Truth(early={"IS": 10.0}, late={"IS": 2.0}),
            # Lower for a long time, and not in the end.
            fails=Truth(early={"IS": 10.0}, late={"IR": 2.0}),
            about=("IR", "IS"),
        ),
        "late-variance-near-zero": Case(
            holds=Truth(),
            fails=(Truth(late={"IS": 10.0}), Truth(late={"IR": 10.0})),
            unsure=(Truth(), Truth(late={"IS": 9.0})),
            about=("IR", "IS"),
        ),
        "harder-clip-less-variance": Case(
            holds=Truth(early=by_clip(0.2, 0.5, 0.8, 1.0)),
            fails=(
                Truth(early=by_clip(1.0, 0.8, 0.5, 0.2)),
                Truth(early=by_clip(0.2, 0.8, 0.5, 1.0)),
            ),
            about=("IS", *VTRACE),
        ),
        "variance-goes-with-sensitivity": Case(
            holds=Truth(early=RISING, elsewhere=Truth(limit=FALLING)),
            fails=Truth(early=RISING, elsewhere=Truth(limit=RISING)),
        ),
    },
}
"""The truths that must decide each claim of each figure."""

CLAIMS = [
    pytest.param(figure, claim, protocol, id=f"{figure.id}/{claim.id}-{protocol}")
    for figure in paper.FIGURES.values()
    for claim in figure.claims
    for protocol in claim.protocols
]


def verdict_on(
    figure: Figure, claim: Claim, protocol: str, truths: tuple[Truth, ...], **how: Any
) -> Verdict:
    others = {
        name: planted(paper.get(name), protocol, elsewhere(truths), **how) for name in claim.needs
    }
    return judge(claim, planted(figure, protocol, truths, **how), others)


@pytest.mark.parametrize("verdict", ["holds", "fails", "undecided"])
@pytest.mark.parametrize(("figure", "claim", "protocol"), CLAIMS)
def test_planted_results_give_every_verdict(
    figure: Figure, claim: Claim, protocol: str, verdict: str
) -> None:
    case = CASES.get(figure.id, {}).get(claim.id)
    assert case is not None, f"plant results for a new claim: {figure.id}, {claim.id}"
    for truths in case.truths(verdict):
        told = verdict_on(figure, claim, protocol, truths, about=case.about)
        assert told.verdict == verdict, told
        assert (told.id, told.sentence, told.protocol) == (claim.id, claim.sentence, protocol)
        assert told.runs == 8
        assert told.low is not None
        assert told.high is not None
        assert told.low <= told.high
        assert told.remark == (claim.because if verdict == "fails" else "")
        written = json.loads(json.dumps(asdict(told), allow_nan=False))
        assert list(written)[:8] == [
            "id", "sentence", "statistic", "low", "high", "runs", "protocol", "verdict",
        ]  # fmt: skip


def test_no_truths_are_planted_for_claims_that_are_gone() -> None:
    known = {(figure.id, claim.id) for figure in paper.FIGURES.values() for claim in figure.claims}
    assert {(figure, claim) for figure, cases in CASES.items() for claim in cases} == known


@pytest.mark.parametrize(("figure", "claim", "protocol"), CLAIMS)
def test_fewer_than_five_runs_decide_nothing(figure: Figure, claim: Claim, protocol: str) -> None:
    (truths, *_) = CASES[figure.id][claim.id].truths("holds")
    told = verdict_on(figure, claim, protocol, truths, runs=4)
    assert (told.verdict, told.low, told.high, told.runs) == ("undecided", None, None, 4)
    assert told.remark == "fewer than 5 runs do not tell"
    json.dumps(asdict(told), allow_nan=False)


NEEDY = [param for param in CLAIMS if param.values[1].needs]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("figure", "claim", "protocol"), NEEDY)
def test_a_claim_says_what_else_it_needs(figure: Figure, claim: Claim, protocol: str) -> None:
    told = judge(claim, planted(figure, protocol, [Truth()]))
    assert (told.verdict, told.statistic, told.low, told.high) == ("undecided", None, None, None)
    for name in claim.needs:
        assert name in told.remark
    json.dumps(asdict(told), allow_nan=False)


def test_a_claim_takes_the_results_it_needs_at_any_scale() -> None:
    figure, constant = paper.get("continuous-rmsprop-all"), paper.get("continuous-sgd-all")
    claim = next(claim for claim in figure.claims if claim.needs)
    fewer = replace(constant, quick={"gaps": (16, 256)})
    others = {constant.id: planted(fewer, "paper", [Truth()], runs=5)}
    told = judge(claim, planted(figure, "paper", [Truth(error={"IR": 2.0})], runs=8), others)
    assert (told.verdict, told.runs) == ("holds", 5)
    assert told.statistic == pytest.approx(2.0, rel=0.2)


TABULAR, GAP, SIZES = "four-rooms-learning-curves", "four-rooms-gap", "four-rooms-step-size"
ONE_BY_ONE, RMSPROP = "continuous-incremental", "continuous-rmsprop"
RACING = "racing-step-size"
CHAIN, CLIPS, VARIANCE = "markov-step-size", "markov-vtrace", "markov-variance"
APPENDIX = ("continuous-sgd-all", "continuous-rmsprop-all", "continuous-incremental-all")
PLAIN = ("is", "wis-minibatch", "v-trace-1")

SAID: Mapping[str, set[tuple[str, str]]] = {
    "IR and WIS-Optimal overlap": {(TABULAR, "ir-overlaps-wis-optimal")},
    "IR learns faster than IS, WIS-Minibatch, WIS-Buffer, V-trace, Sarsa": {
        (TABULAR, f"ir-faster-than-{SLUGS[other]}") for other in UNIFORM
    },
    "IR has the widest range of usable step sizes": {
        (SIZES, f"ir-wider-than-{SLUGS[other]}") for other in UNIFORM
    },
    "the same is seen with fewer updates": {(GAP, "ir-ahead-as-updates-get-rarer")},
    "methods that draw uniformly get worse faster than IR as the gap grows": {
        (GAP, f"{SLUGS[other]}-worse-with-gap") for other in UNIFORM
    },
    "WIS-Buffer is nearly IS": {(TABULAR, "wis-buffer-is-nearly-is")},
    "WIS-Minibatch and V-trace reduce the variance": {
        (SIZES, f"{SLUGS[other]}-less-variance-than-is") for other in ("WIS-Minibatch", *VTRACE)
    },
    "and their bias matters little at the end, compared to IS": {
        (TABULAR, f"{SLUGS[other]}-bias-matters-little") for other in ("WIS-Minibatch", *VTRACE)
    },
    "even V-trace(1.0) beats IS": {(TABULAR, "v-trace-1-beats-is")},
    "Sarsa performs like the reweighting strategies": {(TABULAR, "sarsa-like-reweighting")},
    "generalisation mitigates the difference where only some states are skewed": {
        (figure, f"smaller-difference-under-random-state-{target}")
        for figure in APPENDIX
        for target in ("down", "favoured-down")
    },
    "with a uniform behaviour IR needs fewer updates than IS and V-trace": {
        (RMSPROP, f"ir-beats-{other}-with-few-updates") for other in PLAIN
    },
    "one by one, IR still outperforms all others": {
        (ONE_BY_ONE, f"ir-beats-{other}-with-few-updates") for other in (*PLAIN, "wis-td")
    },
    "WIS-TD(0) degrades as updates get fewer": {
        (ONE_BY_ONE, "wis-td-degrades-published-u0"),
        (ONE_BY_ONE, "wis-td-degrades-full-grid"),
    },
    "IR+WIS-TD(0) outperforms all others": {
        (ONE_BY_ONE, f"ir-wis-td-beats-{other}") for other in (*PLAIN, "wis-td")
    },
    "though IR only slightly": {(ONE_BY_ONE, "ir-wis-td-slightly-better")},
    "with many updates the methods come together": {
        (ONE_BY_ONE, "methods-come-together"),
        (RMSPROP, "methods-come-together"),
    },
    "RMSProp is a worse choice than a constant step size there": {
        ("continuous-rmsprop-all", "rmsprop-worse-than-constant")
    },
    "with images, IR does best": {
        (RACING, "ir-best"),
        *((RACING, f"ir-better-than-{other}") for other in (*PLAIN, "bc-ir")),
    },
    "where it is stable, IS is not": {(RACING, "is-unstable-where-ir-is-not")},
    "and is less sensitive to the learning rate than IS and V-trace": {
        (RACING, f"ir-less-sensitive-than-{other}") for other in ("is", "v-trace-1")
    },
    "BC-IR does worse at the largest learning rate": {
        ("racing-momentum", "bc-ir-worse-at-the-largest-rate")
    },
    "and every method gets worse above the best ones": {(RACING, "all-worse-above")},
    "the variance of IR is lower than that of IS": {(VARIANCE, "ir-variance-lower")},
    "and far lower early": {(VARIANCE, "ir-variance-far-below-early")},
    "later they are comparable": {(VARIANCE, "ir-variance-comparable-late")},
    "and near zero": {(VARIANCE, "late-variance-near-zero")},
    "IR is the least sensitive to the step size": {
        *((CHAIN, f"ir-less-sensitive-than-{SLUGS[other]}") for other in (*SENSITIVE, "Sarsa")),
        *((CHAIN, f"ir-wider-than-{SLUGS[other]}") for other in SENSITIVE),
        *((CLIPS, f"ir-less-sensitive-than-{SLUGS[clip]}") for clip in VTRACE),
    },
    "as sensitive as On-policy": {(CHAIN, "ir-as-sensitive-as-on-policy")},
    "IS is the most sensitive, with WIS-Buffer and WIS-Minibatch": {(CHAIN, "is-most-sensitive")},
    "V-trace has less variance": {
        (CLIPS, "harder-clip-more-step-sizes"),
        (VARIANCE, "harder-clip-less-variance"),
    },
    "and more bias the harder the clip": {(CLIPS, "harder-clip-more-bias")},
    "sensitivity to the step size goes with variance": {
        (VARIANCE, "variance-goes-with-sensitivity")
    },
    "BC-IR performs differently with images only": {
        (TABULAR, "bc-ir-like-ir"),
        (CHAIN, "bc-ir-like-ir"),
    },
}


def test_all_that_the_paper_says_is_claimed_and_nothing_else() -> None:
    said = sorted(claim for claims in SAID.values() for claim in claims)
    assert said == sorted(
        (figure.id, claim.id) for figure in paper.FIGURES.values() for claim in figure.claims
    )
