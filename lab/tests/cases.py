"""The truths that must decide each claim of each figure of the paper.

A claim about one pair or gap has its truth planted there only, and the opposite everywhere else.
So it is decided the other way round if it reads the wrong place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planted import Truth

from gvf_lab import paper
from gvf_lab.study.results import Pair

VTRACE = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
UNIFORM = ("IS", "WIS-Minibatch", "WIS-Buffer", *VTRACE, "Sarsa")
PLAIN = ("IS", "WIS-Minibatch", "V-trace(1.0)")
SLUGS = {
    "IS": "is", "WIS-Minibatch": "wis-minibatch", "WIS-Buffer": "wis-buffer", "Sarsa": "sarsa",
    "V-trace(1.0)": "v-trace-1", "V-trace(0.5 max)": "v-trace-0.5-max",
    "V-trace(0.9 max)": "v-trace-0.9-max", "WIS-TD(0)": "wis-td",
    "BC-IR": "bc-ir", "IR": "ir", "Expected Sarsa": "expected-sarsa",
    "Emphatic IS": "emphatic-is", "Emphatic WIS-Minibatch": "emphatic-wis-minibatch",
}  # fmt: skip
GAPS = (1, 4, 16, 64, 256)
"""The gaps of planted results, if a figure has several."""
FEW, MOST = max(GAPS), min(GAPS)
"""The gaps with the fewest and the most updates."""


@dataclass(frozen=True)
class Case:
    """Truths that decide a claim.

    Attributes:
        holds: those that bear it out.
        fails: those that refute it.
        unsure: two, each of which half of the runs show; by default the first of each.
        about: the methods that matter, if not all do.
    """

    holds: tuple[Truth, ...]
    fails: tuple[Truth, ...]
    unsure: tuple[Truth, Truth] | None = None
    about: tuple[str, ...] = ()

    def truths(self, verdict: str) -> Sequence[tuple[Truth, ...]]:
        """Return the truths that must give a verdict."""
        if verdict == "undecided":
            return [self.unsure or (self.holds[0], self.fails[0])]
        return [(truth,) for truth in (self.holds if verdict == "holds" else self.fails)]

    def only(self, pair: Pair | None = None, gap: int | None = None) -> "Case":
        """Return the case of a claim about one pair or gap: elsewhere the opposite is true."""

        def here(truth: Truth, opposite: Truth) -> Truth:
            return replace(truth, pair=pair, gap=gap, otherwise=opposite)

        return replace(
            self,
            holds=tuple(here(truth, self.fails[0]) for truth in self.holds),
            fails=tuple(here(truth, self.holds[0]) for truth in self.fails),
            unsure=self.unsure and tuple(here(truth, self.fails[0]) for truth in self.unsure),
        )


def placed(truths: Mapping[Pair | int, Truth], otherwise: Truth | None = None) -> Truth:
    """Return a truth made of those of some pairs or gaps, and of that of all others."""
    for place, truth in truths.items():
        where = {"gap": place} if isinstance(place, int) else {"pair": place}
        otherwise = replace(truth, otherwise=otherwise, **where)
    assert otherwise is not None
    return otherwise


def alike(method: str, *others: str, bound: float) -> Case:
    """A method must perform like others, within a factor."""
    return Case(
        holds=(Truth(),),
        fails=(Truth(error={method: 2.0}), Truth(error={method: 0.5})),
        # On average just at the bound.
        unsure=(Truth(), Truth(error={method: 2 * bound - 1})),
        about=(method, *others),
    )


def worse(method: str, other: str) -> Case:
    """A method must be worse than another one."""
    return Case(
        holds=(Truth(error={method: 2.0}),),
        fails=(Truth(error={method: 0.5}),),
        about=(method, other),
    )


def noticeably_worse(method: str, other: str) -> Case:
    """A method must be worse than another one by a tenth."""
    case = worse(method, other)
    return replace(case, fails=(*case.fails, Truth(error={method: 1.05})))


def best(method: str, others: Sequence[str], **more: float) -> Case:
    """A method must be better than all others."""
    ahead = {method: 0.5, **more}
    return Case(
        holds=(Truth(error=ahead),),
        # One other method is enough.
        fails=(
            Truth(error={method: 2.0, **more}),
            *(Truth(error=ahead | {other: 0.3}) for other in others),
        ),
        about=(method, *others, *more),
    )


@dataclass(frozen=True)
class Sensitivity:
    """Truths about the step sizes of two methods, of which the first must bear the larger ones.

    Ranges begin far below these step sizes, inside the grid.

    Attributes:
        method: the method.
        other: the other one.
        low: a step size of the grid.
        high: a larger one.
    """

    method: str
    other: str
    low: float = 4.0
    high: float = 8.0

    @property
    def more(self) -> Truth:
        """The method bears larger step sizes."""
        return Truth(floor=self.low / 8, limit={self.method: self.high, self.other: self.low})

    @property
    def less(self) -> Truth:
        """The method bears smaller step sizes."""
        return Truth(floor=self.low / 8, limit={self.method: self.low, self.other: self.high})

    @property
    def less_and_accurate(self) -> Truth:
        """The method bears smaller step sizes, and only there an error is low."""
        return replace(self.less, error={self.method: 0.25})

    @property
    def more_and_worse_beyond(self) -> Truth:
        """The method has the larger usable step sizes, and only its error ever passes 1."""
        both = dict.fromkeys((self.method, self.other), 0.5)
        return replace(self.more, error=both, beyond={self.other: 0.9})

    def case(self, holds: Sequence[Truth] = (), fails: Sequence[Truth] = ()) -> Case:
        """Return a case with further truths."""
        about = (self.method, self.other)
        return Case((self.more, *holds), (self.less, *fails), about=about)

    @property
    def larger_steps(self) -> Case:
        """The error must pass 1 at a larger step size."""
        return self.case(fails=[self.more_and_worse_beyond])

    @property
    def wider(self) -> Case:
        """More step sizes must be within twice the method's own best error."""
        return self.case([self.more_and_worse_beyond], [self.less_and_accurate])

    @property
    def accurate(self) -> Case:
        """More step sizes must be within twice the best error of the two."""
        return self.case([self.more_and_worse_beyond, self.less_and_accurate])


def in_order(kind: str, values: Mapping[str, float], **more: Mapping[str, float]) -> Case:
    """Values must rise from one method to the next."""
    names, rising = list(values), list(values.values())
    swapped = [
        [*rising[:i], rising[i + 1], rising[i], *rising[i + 2 :]] for i in range(len(rising) - 1)
    ]
    holds, *fails = (
        Truth(**{kind: dict(zip(names, given, strict=True)), **more})  # pyright: ignore[reportArgumentType]
        for given in (rising, rising[::-1], *swapped)
    )
    return Case((holds,), tuple(fails), about=tuple(names))


def over_pairs(kind: str, method: str, values: Sequence[float], *others: str) -> Case:
    """A method's values must rise from pair to pair of the chain."""
    first, second, third = values
    holds, *fails = (
        placed(
            {
                pair: Truth(**{kind: {method: value}})  # pyright: ignore[reportArgumentType]
                for pair, value in zip(CHAIN_PAIRS, given, strict=True)
            }
        )
        for given in (values, values[::-1], (second, first, third), (first, third, second))
    )
    return Case((holds,), tuple(fails), about=(method, *others))


def depends_less(
    kind: str, value: float, method: str, other: str, pairs: Sequence[Pair], gap: int | None = None
) -> Case:
    """A method must differ less from pair to pair than another one, at a gap."""

    def differs(name: str, opposite: str) -> tuple[Truth, ...]:
        here, at_other_gaps = (
            Truth(**{kind: {one: value}})  # pyright: ignore[reportArgumentType]
            for one in (name, opposite)
        )
        return tuple(
            replace(here, pair=pair, gap=gap, otherwise=replace(at_other_gaps, pair=pair))
            for pair in pairs
        )

    return Case(differs(other, method), differs(method, other), about=(method, other))


def clips(pair: Pair | None = None) -> tuple[str, ...]:
    """Return the names of V-trace, from the softest clip to the hardest."""
    # Half of the easy pair's largest ratio is less than 1.
    easy = ("V-trace(0.9 max)", "V-trace(1.0)", "V-trace(0.5 max)")
    return easy if pair == ("easy", "easy") else VTRACE[::-1]


def more_bias(pair: Pair | None = None) -> Case:
    """The error at the end must rise with harder clips."""
    return in_order("end", dict(zip(clips(pair), (1.0, 1.4, 2.0), strict=True)))


TUNED = Case(
    holds=tuple(Truth(error={clip: 2.0}) for clip in VTRACE),
    fails=(Truth(), Truth(error={"V-trace(1.0)": 1.2})),
    unsure=(Truth(), Truth(error={"V-trace(1.0)": 1.5})),
    about=VTRACE,
)
WITHIN = Case(
    # As all others; or between two of them.
    holds=(Truth(), Truth(error={"IS": 2.0, "WIS-Minibatch": 0.5})),
    fails=(Truth(error={"Sarsa": 2.0}), Truth(error={"Sarsa": 0.5})),
    unsure=(Truth(), Truth(error={"Sarsa": 1.02})),
    about=("Sarsa", "IS", "WIS-Minibatch", *VTRACE),
)
BC_IR = alike("BC-IR", "IR", bound=1.1)
OVERLAP = alike("IR", "WIS-Optimal", bound=1.1)
CHAIN_PAIRS = EASY, HARD, HARDEST = (
    ("easy", "easy"),
    ("hard", "hard"),
    ("hardest", "hardest"),
)
ROOMS = tuple(
    (target, behaviour)
    for target in ("down", "favoured-down")
    for behaviour in ("uniform", "random-state", "random-state-weight")
)
UPDATES = {256: "386-updates", 16: "6187-updates", 4: "24750-updates"}
"""The ends of ids of claims about one number of updates, by gap."""
TOGETHER = Case(
    holds=(Truth(),),
    fails=(Truth(error={"IS": 2.0}), Truth(error={"IR": 0.5})),
    unsure=(Truth(), Truth(error={"IS": 1.5})),
).only(gap=MOST)


# Four Rooms with a table


def bias_at_the_end(method: str) -> Case:
    """A method's error at the end must hardly exceed that of IS."""
    return Case(
        # Slow at first, and as good as IS in the end.
        holds=(Truth(error={method: 2.0}, end={method: 0.5}),),
        fails=(Truth(end={method: 2.0}),),
        unsure=(Truth(), Truth(end={method: 1.2})),
        about=(method, "IS"),
    )


LEARNING_CURVES = {
    **{f"ir-faster-than-{SLUGS[other]}": noticeably_worse(other, "IR") for other in UNIFORM},
    "ir-overlaps-wis-optimal": OVERLAP,
    "wis-buffer-is-nearly-is": alike("WIS-Buffer", "IS", bound=1.05),
    "v-trace-1-beats-is": worse("IS", "V-trace(1.0)"),
    "wis-minibatch-beats-is": worse("IS", "WIS-Minibatch"),
    "wis-optimal-best": best("WIS-Optimal", ("IR", "BC-IR", *UNIFORM)),
    "clip-must-be-tuned": TUNED,
    **{
        f"{SLUGS[other]}-bias-matters-little": bias_at_the_end(other)
        for other in ("WIS-Minibatch", *VTRACE)
    },
    "sarsa-within-reweighting": WITHIN,
    "bc-ir-like-ir": BC_IR,
}


def grows(method: str, few: float, other: str, other_few: float) -> Truth:
    """With the most updates errors are alike, and two of them change by factors with fewer."""
    return placed({MOST: Truth()}, Truth(error={method: few, other: other_few}))


RARE = ("IS", "WIS-Minibatch", *VTRACE)
AT_GAPS = {1: "after-every-step", 4: "every-4-steps", 256: "every-256-steps"}
GAP = {
    **{
        f"noticeably-ir-lower-error-than-{SLUGS[other]}-an-update-{at}": noticeably_worse(
            other, "IR"
        ).only(gap=gap)
        for other in RARE
        for gap, at in AT_GAPS.items()
    },
    **{
        f"rarely-ir-lower-error-than-{SLUGS[other]}-{gap}": worse(other, "IR").only(gap=gap)
        for other in RARE
        for gap in (64, 256)
    },
    **{
        f"{SLUGS[other]}-worse-with-gap": Case(
            # It even counts if IR gets better.
            holds=(grows(other, 2.0, "IR", 1.2), grows(other, 0.9, "IR", 0.8)),
            fails=(grows(other, 1.2, "IR", 2.0), grows(other, 0.8, "IR", 0.9)),
            about=(other, "IR"),
        )
        for other in UNIFORM
    },
    **{
        f"ir-lower-error-than-{SLUGS[other]}-an-update-after-every-step": worse(other, "IR").only(
            gap=1
        )
        for other in RARE
    },
    "ir-overlaps-wis-optimal-at-every-gap": replace(
        OVERLAP,
        # One gap is enough.
        fails=tuple(replace(truth, gap=gap) for truth in OVERLAP.fails for gap in GAPS),
    ),
    "ir-ahead-as-updates-get-rarer": Case(
        holds=(Truth(error={"IR": 0.5}),),
        # One other method, at one gap, is enough.
        fails=(
            Truth(error={"IR": 2.0}),
            *(
                placed({gap: Truth(error={"IR": 0.5, other: 0.3})}, Truth(error={"IR": 0.5}))
                for gap in GAPS
                for other in UNIFORM
            ),
        ),
        about=("IR", *UNIFORM),
    ),
}

STEP_SIZE = {
    **{f"ir-wider-than-{SLUGS[other]}": Sensitivity("IR", other).wider for other in UNIFORM},
    **{
        f"ir-{id}-than-{SLUGS[other]}": case
        for other in UNIFORM
        if other != "Sarsa"
        for id, case in (
            ("bears-larger-steps", Sensitivity("IR", other).larger_steps),
            ("accurate-over-wider-range", Sensitivity("IR", other).accurate),
        )
    },
    **{
        f"{SLUGS[other]}-less-variance-than-is": Sensitivity(other, "IS").larger_steps
        for other in ("WIS-Minibatch", *VTRACE)
    },
    **{f"{SLUGS[clip]}-wider-than-is": Sensitivity(clip, "IS").wider for clip in VTRACE},
}


def targets() -> Iterator[tuple[str, Case]]:
    """Yield the cases of the figure with two targets."""
    down, favoured = ("down", "random-state"), ("favoured-down", "random-state")
    for other in ("WIS-Minibatch", *VTRACE):
        about, large = (other, "IS"), Truth(end={other: 2.0})
        # It grows, and IR's error does not; or IR's error grows as well, and more.
        yield (
            f"{SLUGS[other]}-bias-matters-with-other-targets",
            Case(
                (replace(large, pair=favoured),),
                (replace(large, pair=down), Truth(end={other: 2.0, "IR": 4.0}, pair=favoured)),
                about=(other, "IR"),
            ),
        )
        matters = Case((large,), (Truth(end={other: 0.5}), Truth(end={other: 1.05})), about=about)
        yield f"{SLUGS[other]}-bias-matters-favoured-down", matters.only(favoured)


# Continuous Four Rooms


def at_all_updates(others: Sequence[str], pairs: Sequence[Pair | None]) -> Iterator[
    tuple[str, Case]
]:  # fmt: skip
    """Yield the cases of claims that IR's error is lower, at every number of updates."""
    for pair in pairs:
        policies = "".join(f"-{word}" for word in pair or ())
        for other in others:
            slug, case = SLUGS[other], worse(other, "IR")
            yield f"ir-beats-{slug}-with-most-updates{policies}", case.only(pair, MOST)
            for gap, updates in UPDATES.items():
                if pair is None and gap == FEW:
                    yield f"ir-beats-{slug}-with-few-updates", case.only(gap=FEW)
                else:
                    yield f"ir-lower-error-than-{slug}{policies}-{updates}", case.only(pair, gap)


def noticeable() -> Iterator[tuple[str, Case]]:
    """Yield the cases of claims that IR's error is lower by a tenth, at every number of updates."""
    for other in ("IS", "V-trace(1.0)"):
        case = noticeably_worse(other, "IR")
        yield f"noticeably-ir-beats-{SLUGS[other]}-with-few-updates", case.only(gap=FEW)
        yield f"noticeably-ir-beats-{SLUGS[other]}-with-most-updates", case.only(gap=MOST)
        for gap, updates in UPDATES.items():
            if gap != FEW:
                id = f"noticeably-ir-lower-error-than-{SLUGS[other]}-{updates}"
                yield id, case.only(gap=gap)


def needs_more(other: str) -> Case:
    """Another method must need a tenth more updates for the error of IR at gap 64."""

    def falls(*factors: float) -> Truth:
        """The other method's error falls with updates, from gap 256 to gap 1."""
        at: dict[Pair | int, Truth] = {
            # IR's errors at other gaps are much lower, and do not count.
            gap: Truth(error={other: factor, "IR": 1.0 if gap == 64 else 0.1})
            for gap, factor in zip(GAPS[::-1], factors, strict=True)
        }
        return placed(at)

    return Case(
        holds=(falls(4.0, 2.0, 0.5, 0.4, 0.3), falls(4.0, 3.0, 2.0, 1.5, 0.5)),
        # It needs fewer; or hardly more; or has this error already with the fewest.
        fails=(
            falls(1.5, 0.5, 0.4, 0.3, 0.2),
            falls(2.0, 1.01, 0.5, 0.4, 0.3),
            falls(0.5, 0.4, 0.3, 0.2, 0.1),
        ),
        about=(other, "IR"),
    )


def worse_on_average(method: str, other: str) -> Case:
    """A method must be worse than another one on average over the gaps."""
    case = worse(method, other)
    much = tuple(
        placed({gap: Truth(error={method: 8.0})}, Truth(error={method: 0.9})) for gap in GAPS
    )
    return replace(case, holds=(*case.holds, *much))


def with_table(here: float, table: float, pair: Pair | None = None) -> Truth:
    """With the fewest updates the error of IS is so many times IR's, here and in a table."""
    return Truth(
        error={"IS": here},
        pair=pair,
        gap=FEW,
        otherwise=Truth(error={"IS": table**2 / here}),
        elsewhere=Truth(
            error={"IS": table}, gap=FEW, otherwise=Truth(error={"IS": here**2 / table})
        ),
    )


AS_STARK = Case(
    holds=(with_table(2.0, 2.0), with_table(4.0, 2.0)),
    fails=(with_table(1.2, 2.0), with_table(1.7, 2.0)),
    about=("IR", "IS"),
)


def all_policies(others: Sequence[str]) -> Iterator[tuple[str, Case]]:
    """Yield the cases that the three figures with all pairs of policies share."""
    yield from at_all_updates(others, ROOMS)
    about = ("IR", "IS")
    for target in ("down", "favoured-down"):
        uniform, skewed, _ = mine = tuple(pair for pair in ROOMS if pair[0] == target)
        both: dict[Pair | int, Truth] = {uniform: Truth(gap=FEW), skewed: Truth(gap=FEW)}

        def differ(place: Pair, both: Mapping[Pair | int, Truth] = both) -> Truth:
            """IS and IR differ on one of the two pairs; on others, and at other gaps, much more."""
            much = Truth(error={"IS": 9.0})
            return placed({**both, place: Truth(error={"IS": 2.0}, gap=FEW)}, much)

        yield (
            f"smaller-difference-under-random-state-{target}",
            Case((differ(uniform),), (differ(skewed),), about=about),
        )
        if target == "down":
            # What is narrower is not as stark.
            narrower = tuple(with_table(here, 2.0, skewed) for here in (1.2, 1.7))
            stark = tuple(with_table(here, 2.0, skewed) for here in (4.0, 1.9))
            yield "difference-smaller-than-in-the-table-down", Case(narrower, stark, about=about)
        for other in PLAIN:
            yield (
                f"ir-depends-less-on-behaviour-than-{SLUGS[other]}-{target}",
                depends_less("error", 2.0, "IR", other, mine, FEW),
            )


DEGRADES = Truth(error={"IR": 2.0}, gap=FEW)
"""IR gets twice as bad with the fewest updates, all others do not."""
BOTH_MAIN_FIGURES = {"difference-as-stark-as-in-the-table": AS_STARK,
                     "methods-come-together": TOGETHER}  # fmt: skip
INCREMENTAL = {
    **dict(at_all_updates((*PLAIN, "WIS-TD(0)"), [None])),
    **BOTH_MAIN_FIGURES,
    **{
        f"ir-needs-fewer-updates-than-{SLUGS[other]}": needs_more(other)
        for other in (*PLAIN, "WIS-TD(0)")
    },
    **{
        f"ir-wis-td-beats-{SLUGS[other]}": worse_on_average(other, "IR+WIS-TD(0)")
        for other in (*PLAIN, "WIS-TD(0)")
    },
    **{
        f"ir-wis-td-beats-{SLUGS[other]}-{updates}": worse(other, "IR+WIS-TD(0)").only(gap=gap)
        for other in ("WIS-TD(0)", "IR")
        for gap, updates in (UPDATES | {MOST: "with-most-updates"}).items()
    },
    "wis-td-beats-is": worse_on_average("IS", "WIS-TD(0)"),
    **dict(noticeable()),
    "ir-wis-td-slightly-better": Case(
        holds=(Truth(error={"IR": 1.05}),),
        # Worse; or better, and not slightly.
        fails=(Truth(error={"IR": 0.9}), Truth(error={"IR": 1.15})),
        about=("IR", "IR+WIS-TD(0)"),
    ),
    "wis-td-degrades-published-u0": Case(
        holds=(Truth(u0={640.0: 2.0}, gap=FEW),), fails=(DEGRADES,), about=("IR", "WIS-TD(0)")
    ),
    "wis-td-degrades-full-grid": Case(
        holds=(Truth(error={"WIS-TD(0)": 2.0}, gap=FEW),),
        # It degrades with one u0 and not with the others: the best one does not.
        fails=(DEGRADES, Truth(error={"IR": 1.2}, u0={640.0: 2.0}, gap=FEW)),
        about=("IR", "WIS-TD(0)"),
    ),
}
RMSPROP = {
    **dict(at_all_updates(PLAIN, [None])),
    **dict(noticeable()),
    **BOTH_MAIN_FIGURES,
    **{f"ir-needs-fewer-updates-than-{SLUGS[other]}": needs_more(other) for other in PLAIN},
}


def sensitivities(pairs: Sequence[Pair], low: float, high: float) -> Iterator[tuple[str, Case]]:
    """Yield the cases of claims about the step sizes of IR and another method on a pair."""
    for pair in pairs:
        policies = "-".join(dict.fromkeys(pair))
        for other in PLAIN:
            two, end = Sensitivity("IR", other, low, high), f"{SLUGS[other]}-{policies}"
            yield f"ir-bears-larger-steps-than-{end}", two.larger_steps.only(pair)
            yield f"ir-wider-than-{end}", two.wider.only(pair)
            yield f"ir-accurate-over-wider-range-than-{end}", two.accurate.only(pair)


# The racing car

IMAGES = ("BC-IR", "IS", "V-trace(1.0)")
_, NEXT, _ = sorted(paper.get("racing-step-size").quick["step_sizes"])[-3:]
"""The learning rate with images before the largest."""
RACING = {
    "ir-best": best("IR", IMAGES),
    **{
        f"ir-better-than-{SLUGS[other]}": worse(other, "IR") for other in (*IMAGES, "WIS-Minibatch")
    },
    "ir-varies-less-over-runs-than-is": Case(
        # Runs differ by a factor: a larger error differs more.
        holds=(Truth(error={"IS": 2.0}),),
        # The last: no rate is of use to IR.
        fails=(Truth(error={"IS": 0.5}), Truth(error={"IR": 4.0})),
        unsure=(Truth(), Truth()),
        about=("IR", "IS"),
    ),
    **{
        f"ir-less-sensitive-than-{SLUGS[other]}": Case(
            # A rate counts if the error is below that of the best constant.
            holds=(Truth(limit={other: NEXT}),),
            fails=(Truth(limit={"IR": NEXT}),),
            unsure=(Truth(), Truth(limit={other: NEXT})),
            about=("IR", other),
        )
        for other in ("IS", "V-trace(1.0)")
    },
    **{
        f"ir-less-sensitive-by-error-than-{SLUGS[other]}": Case(
            # The smallest error, or the largest one, differs.
            holds=tuple(
                replace(truth, limit={"IR": NEXT, other: NEXT})
                for truth in (Truth(error={other: 0.5}), Truth(beyond={other: 3.0}))
            ),
            fails=tuple(
                replace(truth, limit={"IR": NEXT, other: NEXT})
                for truth in (Truth(error={"IR": 0.5}), Truth(beyond={"IR": 3.0}))
            ),
            about=("IR", other),
        )
        for other in ("IS", "V-trace(1.0)")
    },
    "ir-as-stable-as-is": Case(
        holds=(Truth(), Truth(error={"IS": 2.0})),
        # One rate is enough.
        fails=(Truth(error={"IR": 2.0}), Truth(limit={"IR": NEXT})),
        unsure=(Truth(), Truth(error={"IR": 1.2})),
        about=("IR", "IS"),
    ),
    "ir-better-than-constant-at-the-end": Case(
        # Bad for most of the run, and good in the end.
        holds=(Truth(error={"IR": 3.0}, end={"IR": 0.2}),),
        fails=(Truth(end={"IR": 3.0}),),
        about=("IR",),
    ),
}

LOW, MIDDLE, _ = sorted(paper.get("racing-momentum").quick["step_sizes"])
"""Learning rates with momentum: those before the largest."""
MOMENTUM = {
    "bc-ir-worse-at-the-largest-rate": Case(
        # The largest rate that IR can use, which need not be the largest of all.
        holds=(Truth(limit={"BC-IR": MIDDLE}), Truth(limit={"IR": MIDDLE, "BC-IR": LOW})),
        fails=(
            Truth(error={"BC-IR": 0.5}),
            Truth(error={"BC-IR": 0.9}, limit={"IR": MIDDLE, "BC-IR": MIDDLE}),
        ),
        about=("IR", "BC-IR"),
    ),
}


# The Markov chain

SENSITIVE = ("IS", "WIS-Buffer", "WIS-Minibatch")


def most_sensitive(figure: str) -> Case:
    """IS and its kin must bear smaller step sizes than all other methods of a figure."""
    methods = paper.get(figure).study("paper").methods
    # Those with step sizes in other units do not count, however small these are.
    units: dict[str, float] = dict.fromkeys((*VTRACE, "NormIS"), 1.0)
    others = [method for method in methods if method not in (*SENSITIVE, *units)]
    bear_more = dict.fromkeys(others, 8.0) | units
    return Case(
        holds=(Truth(limit=bear_more),),
        # One other method that bears less is enough, or one of these that bears as much.
        fails=(
            Truth(limit=units | dict.fromkeys(SENSITIVE, 8.0)),
            *(Truth(limit=bear_more | {other: 2.0}) for other in others),
            *(Truth(limit=bear_more | {one: 9.0}) for one in SENSITIVE),
        ),
    )


ON_POLICY = Case(
    holds=(Truth(),),
    fails=(Truth(limit={"IR": 8.0}), Truth(limit={"On-policy": 8.0})),
    unsure=(Truth(), Truth(limit={"IR": 8.0})),
    about=("IR", "On-policy"),
)
CHAIN = {
    "ir-as-sensitive-as-on-policy": ON_POLICY,
    **{
        f"ir-less-sensitive-than-{SLUGS[other]}": Sensitivity("IR", other).larger_steps
        for other in (*SENSITIVE, "Sarsa")
    },
    **{f"ir-wider-than-{SLUGS[other]}": Sensitivity("IR", other).wider for other in SENSITIVE},
    "is-most-sensitive": most_sensitive("markov-step-size"),
    "bc-ir-like-ir": BC_IR,
}
CLIP_BEARS_MORE = {
    f"{SLUGS[clip]}-bears-larger-steps-than-is": Sensitivity(clip, "IS").larger_steps
    for clip in VTRACE
} | {f"{SLUGS[clip]}-wider-than-is": Sensitivity(clip, "IS").wider for clip in VTRACE}
CHAIN_CLIPS = {
    "harder-clip-more-bias": more_bias(),
    **CLIP_BEARS_MORE,
    **{
        f"ir-less-sensitive-than-{SLUGS[clip]}": Case(
            holds=(Truth(elsewhere=Truth(limit={"IR": 8.0})),),
            fails=(Truth(limit={clip: 8.0}),),
            about=("IR", clip),
        )
        for clip in VTRACE
    },
}


def chain_pairs() -> Iterator[tuple[str, Case]]:
    """Yield the cases of the errors on three pairs."""
    yield from sensitivities(CHAIN_PAIRS, 4.0, 8.0)
    others = (
        "IR", "BC-IR", "IS", "NormIS", "WIS-Minibatch", "WIS-Buffer", *VTRACE, "Sarsa",
        "Expected Sarsa",
    )  # fmt: skip
    cases = {
        **{
            f"ir-lower-error-than-{SLUGS[other]}": worse(other, "IR") for other in (*PLAIN, *VTRACE)
        },
        **{
            f"ir-{id}-than-{SLUGS[clip]}": case
            for clip in VTRACE[1:]
            for id, case in (
                ("wider", Sensitivity("IR", clip).wider),
                ("accurate-over-wider-range", Sensitivity("IR", clip).accurate),
            )
        },
        **{
            f"ir-bears-larger-steps-than-{SLUGS[other]}": Sensitivity("IR", other).larger_steps
            for other in ("Sarsa", "Expected Sarsa")
        },
        "bc-ir-like-ir": BC_IR,
        "wis-minibatch-beats-is": worse("IS", "WIS-Minibatch"),
        "expected-sarsa-is-sarsa": alike("Expected Sarsa", "Sarsa", bound=1.1),
        "wis-optimal-best": best("WIS-Optimal", others, **{"On-policy": 0.1}),
        "sarsa-within-reweighting": WITHIN,
        "ir-as-sensitive-as-on-policy": ON_POLICY,
        "is-most-sensitive": most_sensitive("markov-step-size-all"),
    }
    for pair in CHAIN_PAIRS:
        yield from ((f"{id}-{pair[0]}", case.only(pair)) for id, case in cases.items())
    for other in PLAIN:
        yield (
            f"ir-depends-less-on-policies-than-{SLUGS[other]}",
            depends_less("error", 2.0, "IR", other, CHAIN_PAIRS),
        )
        yield (
            f"ir-step-sizes-depend-less-on-policies-than-{SLUGS[other]}",
            depends_less("limit", 8.0, "IR", other, CHAIN_PAIRS),
        )
    yield "larger-ratios-destabilise-is", over_pairs("limit", "IS", (8.0, 4.0, 2.0))
    yield "larger-ratios-hurt-ir-too", over_pairs("error", "IR", (0.5, 1.0, 2.0), "On-policy")
    yield "advantage-grows-with-ratios", over_pairs("error", "IS", (0.5, 1.0, 2.0), "IR")
    low, high = Truth(limit={"IR": 2.0}), Truth(limit={"IR": 8.0})
    # As on the pair easy is enough; less on one of the others is too little.
    fails = (placed({HARD: low}, Truth()), placed({HARDEST: low}, Truth()))
    stable = Case((Truth(), placed({EASY: Truth()}, high)), (*fails, placed({EASY: high}, low)))
    yield "larger-ratios-leave-ir-stable", replace(stable, about=("IR",))


def chain_clips() -> Iterator[tuple[str, Case]]:
    """Yield the cases of V-trace on three pairs."""
    for pair in CHAIN_PAIRS:
        yield f"harder-clip-more-bias-{pair[0]}", more_bias(pair).only(pair)
        yield from ((f"{id}-{pair[0]}", case.only(pair)) for id, case in CLIP_BEARS_MORE.items())
        yield f"clip-must-be-tuned-{pair[0]}", TUNED.only(pair)


def variances(first: str, second: str, factor: float = 1.0) -> tuple[Case, Case]:
    """The variance of one method must be so many times another's, early, or late."""
    many, few = {first: 2 * factor}, {first: 0.5 * factor}
    case = Case(
        (Truth(early=many, late=few),), (Truth(early=few, late=many),), about=(first, second)
    )
    return case, replace(case, holds=case.fails, fails=case.holds)


COMPARABLE = Case(
    holds=(Truth(early={"IS": 10.0}),),
    fails=(Truth(late={"IS": 4.0}), Truth(late={"IR": 4.0})),
    unsure=(Truth(), Truth(late={"IS": 3.0})),
    about=("IR", "IS"),
)


def lower_throughout(other: str) -> Case:
    """IR's updates must vary less than those of another method, early and late."""
    return Case(
        holds=(Truth(early={other: 10.0}, late={other: 2.0}),),
        # Lower for a long time, and not in the end; or the other way round.
        fails=(
            Truth(early={other: 10.0}, late={"IR": 2.0}),
            Truth(early={"IR": 2.0}, late={other: 10.0}),
        ),
        about=("IR", other),
    )


LARGEST_RATIO_EARLY = Case(
    # Variances are large up to iteration 100, so the middle of a run decides if the end does not.
    holds=(
        Truth(early={"IS": 10.0}, middle={"IS": 2.0}),
        Truth(early={"IR": 10.0}, middle={"IS": 2.0}),
    ),
    # A difference to the other side counts as much.
    fails=(
        Truth(early={"IS": 2.0}, late={"IS": 10.0}),
        Truth(early={"IS": 2.0}, late={"IR": 10.0}),
        Truth(early={"IS": 2.0}, middle={"IS": 4.0}),
    ),
    about=("IR", "IS"),
)
LARGEST_DIFFERENCE_EARLY = replace(
    LARGEST_RATIO_EARLY,
    # Late variances are small, so a large ratio is a small difference.
    holds=(
        *LARGEST_RATIO_EARLY.holds,
        Truth(early={"IS": 2.0}, middle={"IS": 1.5}, late={"IS": 10.0}),
    ),
    fails=(
        Truth(early={"IS": 2.0}, middle={"IS": 4.0}),
        Truth(early={"IS": 2.0}, middle={"IR": 4.0}),
    ),
)
MEAN_RATIO = Case(
    # The factor of the variance is the square of the mean ratio.
    holds=(Truth(), Truth(early={"BC-IR": 1.05**2})),
    fails=(Truth(early={"BC-IR": 1.3**2}), Truth(early={"BC-IR": 0.7**2})),
    unsure=(Truth(), Truth(early={"BC-IR": 1.14**2})),
    about=("IR", "BC-IR"),
)
BY_VARIANCE = ("V-trace(1.0)", "IR", "BC-IR", "V-trace(0.5 max)", *VTRACE[2:], "WIS-Minibatch",
               "IS", "WIS-Buffer")  # fmt: skip
RISING = {method: 1.0 + rank for rank, method in enumerate(BY_VARIANCE)}
FALLING = {method: 8.0 - rank for rank, method in enumerate(BY_VARIANCE)}
FAR_BELOW, _ = variances("IS", "IR", 3.0)
NEAR_ZERO = Case(
    holds=(Truth(),),
    # Each is compared with its own variance at the start.
    fails=(
        Truth(late={"IS": 10.0}),
        Truth(late={"IR": 10.0}),
        Truth(early={"IS": 10.0}, late={"IR": 10.0}),
        Truth(early={"IR": 0.1}),
    ),
    unsure=(Truth(), Truth(late={"IS": 9.0})),
    about=("IR", "IS"),
)


def correlates(when: str, pair: Pair | None = None) -> Case:
    """Methods whose updates vary more, early or late, must bear smaller step sizes, on a pair."""
    other = {"early": "late", "late": "early"}[when]

    def both(ours: Mapping[str, float], limit: Mapping[str, float]) -> Truth:
        opposite = FALLING if ours is RISING else RISING
        here = Truth(**{when: ours, other: opposite}, pair=pair)  # pyright: ignore[reportArgumentType]
        turned = Truth(limit=FALLING if limit is RISING else RISING)
        return replace(here, elsewhere=Truth(limit=limit, pair=pair, otherwise=turned))

    return Case((both(RISING, FALLING),), (both(RISING, RISING),))


BY_KIND = {
    f"{id}{kind}": case
    for id, case in (
        ("ir-variance-far-below-early", FAR_BELOW),
        ("ir-variance-comparable-late", COMPARABLE),
        ("ir-variance-lower", lower_throughout("IS")),
    )
    for kind in ("", "-trace")
}
"""The claims that are judged by two kinds of variance."""
VARIANCE = {
    **BY_KIND,
    "late-variance-near-zero": NEAR_ZERO,
    **{f"{SLUGS[clip]}-less-variance-than-is": variances("IS", clip)[0] for clip in VTRACE},
    **{f"variance-goes-with-sensitivity-{when}": correlates(when) for when in ("early", "late")},
}


def chain_variances() -> Iterator[tuple[str, Case]]:
    """Yield the cases of the variances on three pairs."""
    yield "larger-ratios-more-variance", over_pairs("early", "IS", (0.5, 1.0, 2.0))
    early, late = variances("IS", "WIS-Minibatch")
    cases = {
        **{
            f"ir-less-variance-than-{SLUGS[other]}": variances(other, "IR")[0]
            for other in ("IS", "WIS-Minibatch", *VTRACE)
        },
        **BY_KIND,
        **{
            f"ir-less-variance-than-{SLUGS[other]}-throughout{kind}": lower_throughout(other)
            for other in ("WIS-Minibatch", *VTRACE)
            for kind in ("", "-trace")
        },
        "difference-largest-early": LARGEST_DIFFERENCE_EARLY,
        "ratio-largest-early": LARGEST_RATIO_EARLY,
        "late-variance-near-zero": NEAR_ZERO,
        "mean-ratio-near-one": MEAN_RATIO,
        "wis-minibatch-less-variance-than-is-early": early,
        "wis-minibatch-less-variance-than-is-late": late,
    }
    for pair in CHAIN_PAIRS:
        yield from ((f"{id}-{pair[0]}", case.only(pair)) for id, case in cases.items())
        for when in ("early", "late"):
            yield f"variance-goes-with-sensitivity-{when}-{pair[0]}", correlates(when, pair)
        for other in ("IS", "WIS-Minibatch"):
            yield f"variance-goes-with-error-{SLUGS[other]}-{pair[0]}", goes_with(other, pair)


def goes_with(other: str, pair: Pair) -> Case:
    """Variance and error of a method must be on the same side of IR's, on a pair."""

    def both(variance: float, error: float) -> Truth:
        """On other pairs the two are on opposite sides."""
        on_pair = Truth(error={other: error}, pair=pair, otherwise=Truth(error={other: 1 / error}))
        return Truth(early={other: variance}, elsewhere=on_pair)

    return Case(
        holds=(both(2.0, 2.0), both(0.5, 0.5)),
        fails=(both(2.0, 0.5), both(0.5, 2.0)),
        unsure=(both(2.0, 1.5), both(2.0, 0.5)),
        about=("IR", other),
    )


# Emphasis on the paper's domains


def with_emphasis(ats: Mapping[int | None, str], steps: bool = False) -> dict[str, Case]:
    """Return the cases of a figure with emphatic methods and the paper's weighting of states."""
    behind = worse("Emphatic IR", "IR")
    cases = {f"emphatic-ir-behind{at}": behind.only(gap=gap) for gap, at in ats.items()}
    cases |= everywhere(ats)
    if steps:
        gap = 16 if len(ats) > 1 else None
        for first, second in (("IR", "Emphatic IR"), ("Emphatic IR", "Emphatic IS")):
            id = f"{first} bears larger steps than {second}".lower().replace(" ", "-")
            cases[id] = Sensitivity(first, second).larger_steps.only(gap=gap)
    return cases


def by_emphasis(ats: Mapping[int | None, str]) -> dict[str, Case]:
    """Return the cases of a figure in which states count by their emphasis."""
    ahead = Case(
        holds=(Truth(), Truth(error={"Emphatic IR": 0.95}), Truth(error={"Emphatic IR": 2.0})),
        fails=(Truth(error={"Emphatic IR": 0.5}),),
        unsure=(Truth(), Truth(error={"Emphatic IR": 0.82})),
        about=("IR", "Emphatic IR"),
    )
    cases = {f"emphatic-ir-not-ahead{at}": ahead.only(gap=gap) for gap, at in ats.items()}
    for gap, at in ats.items():
        near, far = (
            Truth(error={"Emphatic IR": 2.0}, gap=gap, elsewhere=Truth(error={"Emphatic IR": by}))
            for by in (4.0, 1.5)
        )
        cases[f"emphatic-ir-nearer{at}"] = Case((near,), (far,), about=("IR", "Emphatic IR"))
    return cases | everywhere(ats)


def everywhere(ats: Mapping[int | None, str]) -> dict[str, Case]:
    """Return the cases of claims about all numbers of updates; one is enough to refute them."""
    two = {
        f"{SLUGS[emphatic]}-behind": (emphatic, plain)
        for emphatic, plain in (
            ("Emphatic IS", "IS"),
            ("Emphatic WIS-Minibatch", "WIS-Minibatch"),
        )
    } | {
        f"emphatic-ir-beats-{SLUGS[other]}": (other, "Emphatic IR")
        for other in ("Emphatic IS", "Emphatic WIS-Minibatch", "IS")
    }
    return {
        id: replace(
            worse(first, second),
            fails=tuple(
                placed({gap: Truth(error={first: 0.5})}, Truth(error={first: 2.0}))
                if gap
                else Truth(error={first: 0.5})
                for gap in ats
            ),
        )
        for id, (first, second) in two.items()
    }


Ats = Mapping[int | None, str]
EVERY_FEW_STEPS: Ats = {gap: f"-an-update-every-{gap}-steps" for gap in (4, 16, 256)}
AFTER_UPDATES: Ats = {gap: f"-{at}" for gap, at in UPDATES.items()}
ONLY_GAP: Ats = {None: ""}
EMPHATIC = {
    name: cases
    for figure, ats, steps in (
        ("emphatic-rooms", EVERY_FEW_STEPS, True),
        ("emphatic-tiles", AFTER_UPDATES, False),
        ("emphatic-rmsprop", AFTER_UPDATES, False),
        ("emphatic-chain", ONLY_GAP, True),
    )
    for name, cases in (
        (figure, with_emphasis(ats, steps)),
        (f"{figure}-by-emphasis", by_emphasis(ats)),
    )
}

CASES: Mapping[str, Mapping[str, Case]] = {
    **EMPHATIC,
    "four-rooms-learning-curves": LEARNING_CURVES,
    "four-rooms-gap": GAP,
    "four-rooms-step-size": STEP_SIZE,
    "four-rooms-targets": dict(targets()),
    "continuous-incremental": INCREMENTAL,
    "continuous-rmsprop": RMSPROP,
    "continuous-sgd-all": dict(all_policies(PLAIN)),
    "continuous-rmsprop-all": {
        **dict(all_policies(PLAIN)),
        "rmsprop-worse-than-constant": Case(
            (Truth(error={"IR": 2.0}),), (Truth(error={"IR": 0.5}),), about=("IR",)
        ),
    },
    "continuous-incremental-all": dict(all_policies((*PLAIN, "WIS-TD(0)"))),
    "continuous-sgd-step-size-all": {
        **dict(sensitivities(ROOMS, 0.25, 0.5)),
        **{
            f"ir-lower-error-than-{SLUGS[other]}-{'-'.join(pair)}": worse(other, "IR").only(pair)
            for other in PLAIN
            for pair in ROOMS
        },
    },
    "racing-step-size": RACING,
    "racing-momentum": MOMENTUM,
    "markov-step-size": CHAIN,
    "markov-vtrace": CHAIN_CLIPS,
    "markov-variance": VARIANCE,
    "markov-step-size-all": dict(chain_pairs()),
    "markov-vtrace-all": dict(chain_clips()),
    "markov-variance-all": dict(chain_variances()),
}
"""The truths that must decide each claim of each figure."""
