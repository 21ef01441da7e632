"""The truths that must decide claims: for each statistic those of a claim or two.

A claim about one pair or gap has its truth planted there only, and the opposite everywhere else.
So it is decided the other way round if it reads the wrong place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planted import Truth

from gvf_lab import paper
from gvf_lab.study.results import Pair

VTRACE = ("V-trace(1.0)", "V-trace(0.5 max)", "V-trace(0.9 max)")
UNIFORM = ("IS", "WIS-Minibatch", "WIS-Buffer", *VTRACE, "Sarsa")
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
OVERLAP = alike("IR", "WIS-Optimal", bound=1.1)
CHAIN_PAIRS = EASY, HARD, HARDEST = (
    ("easy", "easy"),
    ("hard", "hard"),
    ("hardest", "hardest"),
)
DOWN, SKEWED = ("down", "uniform"), ("down", "random-state")
TOGETHER = Case(
    holds=(Truth(),),
    fails=(Truth(error={"IS": 2.0}), Truth(error={"IR": 0.5})),
    unsure=(Truth(), Truth(error={"IS": 1.5})),
).only(gap=MOST)


def bias_at_the_end(method: str) -> Case:
    """A method's error at the end must hardly exceed that of IS."""
    return Case(
        # Slow at first, and as good as IS in the end.
        holds=(Truth(error={method: 2.0}, end={method: 0.5}),),
        fails=(Truth(end={method: 2.0}),),
        unsure=(Truth(), Truth(end={method: 1.2})),
        about=(method, "IS"),
    )


def grows(method: str, few: float, other: str, other_few: float) -> Truth:
    """With the most updates errors are alike, and two of them change by factors with fewer."""
    return placed({MOST: Truth()}, Truth(error={method: few, other: other_few}))


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


IMAGES = ("BC-IR", "IS", "V-trace(1.0)")
_, NEXT, _ = sorted(paper.get("racing-step-size").quick["step_sizes"])[-3:]
"""The learning rate with images before the largest."""
LOW, MIDDLE, _ = sorted(paper.get("racing-momentum").quick["step_sizes"])
"""Learning rates with momentum: those before the largest."""


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


def differ(place: Pair) -> Truth:
    """IS and IR differ on one of two pairs; on others, and at other gaps, much more."""
    both: dict[Pair | int, Truth] = {DOWN: Truth(gap=FEW), SKEWED: Truth(gap=FEW)}
    much = Truth(error={"IS": 9.0})
    return placed({**both, place: Truth(error={"IS": 2.0}, gap=FEW)}, much)


def nearer(by: float) -> Truth:
    """Emphatic IR has twice the error of IR by emphasis, and so many times it otherwise."""
    return Truth(
        error={"Emphatic IR": 2.0}, gap=4, elsewhere=Truth(error={"Emphatic IR": by}, gap=4)
    )


STABLE_LOW, STABLE_HIGH = Truth(limit={"IR": 2.0}), Truth(limit={"IR": 8.0})
OTHERS = (
    "IR", "BC-IR", "IS", "NormIS", "WIS-Minibatch", "WIS-Buffer", *VTRACE, "Sarsa",
    "Expected Sarsa",
)  # fmt: skip
DEGRADES = Truth(error={"IR": 2.0}, gap=FEW)
"""IR gets twice as bad with the fewest updates, all others do not."""
LARGE_END = Truth(end={"WIS-Minibatch": 2.0})
FAVOURED = ("favoured-down", "random-state")

CASES: Mapping[str, Mapping[tuple[str, str], Case]] = {
    "error_ratio": {
        ("four-rooms-learning-curves", "ir-faster-than-is"): noticeably_worse("IS", "IR"),
        ("markov-step-size", "bc-ir-like-ir"): alike("BC-IR", "IR", bound=1.1),
        ("markov-step-size-all", "ir-lower-error-than-is-hardest"): worse("IS", "IR").only(HARDEST),
        ("continuous-rmsprop", "ir-beats-is-with-few-updates"): worse("IS", "IR").only(gap=FEW),
        (
            "continuous-sgd-all",
            "ir-lower-error-than-wis-minibatch-down-random-state-6187-updates",
        ): worse("WIS-Minibatch", "IR").only(SKEWED, 16),
    },
    "mean_error_ratio": {
        ("continuous-incremental", "ir-wis-td-beats-is"): worse_on_average("IS", "IR+WIS-TD(0)"),
    },
    "least_error_ratio_of_gaps": {
        ("four-rooms-gap", "ir-ahead-as-updates-get-rarer"): Case(
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
        )
    },
    "rising_error_ratios": {
        ("markov-step-size-all", "larger-ratios-hurt-ir-too"): over_pairs(
            "error", "IR", (0.5, 1.0, 2.0), "On-policy"
        )
    },
    "best_of_all": {
        ("markov-step-size-all", "wis-optimal-best-hard"): best(
            "WIS-Optimal", OTHERS, **{"On-policy": 0.1}
        ).only(HARD),
        ("racing-step-size", "ir-best"): best("IR", IMAGES),
    },
    "outside_range": {("markov-step-size-all", "sarsa-within-reweighting-easy"): WITHIN.only(EASY)},
    "error_spread": {
        ("markov-vtrace-all", "clip-must-be-tuned-hardest"): TUNED.only(HARDEST),
        ("continuous-rmsprop", "methods-come-together"): TOGETHER,
    },
    "largest_error_spread_of_gaps": {
        ("four-rooms-gap", "ir-overlaps-wis-optimal-at-every-gap"): replace(
            OVERLAP,
            # One gap is enough.
            fails=tuple(replace(truth, gap=gap) for truth in OVERLAP.fails for gap in GAPS),
        )
    },
    "error_spread_ratio": {
        ("continuous-sgd-all", "ir-depends-less-on-behaviour-than-v-trace-1-down"): depends_less(
            "error",
            2.0,
            "IR",
            "V-trace(1.0)",
            (DOWN, SKEWED, ("down", "random-state-weight")),
            FEW,
        )
    },
    "growth_difference": {
        ("four-rooms-gap", "is-worse-with-gap"): Case(
            # It even counts if IR gets better.
            holds=(grows("IS", 2.0, "IR", 1.2), grows("IS", 0.9, "IR", 0.8)),
            fails=(grows("IS", 1.2, "IR", 2.0), grows("IS", 0.8, "IR", 0.9)),
            about=("IS", "IR"),
        )
    },
    "end_ratio": {
        ("four-rooms-learning-curves", "v-trace-1-bias-matters-little"): bias_at_the_end(
            "V-trace(1.0)"
        ),
        ("four-rooms-targets", "wis-minibatch-bias-matters-favoured-down"): Case(
            (LARGE_END,),
            (Truth(end={"WIS-Minibatch": 0.5}), Truth(end={"WIS-Minibatch": 1.05})),
            about=("WIS-Minibatch", "IS"),
        ).only(FAVOURED),
    },
    "end_growth_ratio": {
        ("four-rooms-targets", "wis-minibatch-bias-matters-with-other-targets"): Case(
            # It grows, and IR's error does not; or IR's error grows as well, and more.
            (replace(LARGE_END, pair=FAVOURED),),
            (
                replace(LARGE_END, pair=SKEWED),
                Truth(end={"WIS-Minibatch": 2.0, "IR": 4.0}, pair=FAVOURED),
            ),
            about=("WIS-Minibatch", "IR"),
        )
    },
    "rising_end_errors": {
        ("markov-vtrace", "harder-clip-more-bias"): in_order(
            "end", dict(zip(VTRACE[::-1], (1.0, 1.4, 2.0), strict=True))
        ),
        # Half of the easy pair's largest ratio is less than 1.
        ("markov-vtrace-all", "harder-clip-more-bias-easy"): in_order(
            "end", {"V-trace(0.9 max)": 1.0, "V-trace(1.0)": 1.4, "V-trace(0.5 max)": 2.0}
        ).only(EASY),
    },
    "stable_step_ratio": {
        ("markov-step-size-all", "ir-bears-larger-steps-than-is-easy"): Sensitivity(
            "IR", "IS"
        ).larger_steps.only(EASY),
        ("markov-step-size", "ir-as-sensitive-as-on-policy"): ON_POLICY,
        ("emphatic-rooms", "ir-bears-larger-steps-than-emphatic-ir"): Sensitivity(
            "IR", "Emphatic IR"
        ).larger_steps.only(gap=16),
    },
    "stable_step_ratio_of_figures": {
        ("markov-vtrace", "ir-less-sensitive-than-v-trace-1"): Case(
            holds=(Truth(elsewhere=Truth(limit={"IR": 8.0})),),
            fails=(Truth(limit={"V-trace(1.0)": 8.0}),),
            about=("IR", "V-trace(1.0)"),
        )
    },
    "stable_step_spread_ratio": {
        ("markov-step-size-all", "ir-step-sizes-depend-less-on-policies-than-is"): depends_less(
            "limit", 8.0, "IR", "IS", CHAIN_PAIRS
        )
    },
    "rising_stable_steps": {
        ("markov-step-size-all", "larger-ratios-destabilise-is"): over_pairs(
            "limit", "IS", (8.0, 4.0, 2.0)
        )
    },
    "least_stable_step_of_pairs": {
        ("markov-step-size-all", "larger-ratios-leave-ir-stable"): Case(
            (Truth(), placed({EASY: Truth()}, STABLE_HIGH)),
            # As on the pair easy is enough; less on one of the others is too little.
            (
                placed({HARD: STABLE_LOW}, Truth()),
                placed({HARDEST: STABLE_LOW}, Truth()),
                placed({EASY: STABLE_HIGH}, STABLE_LOW),
            ),
            about=("IR",),
        )
    },
    "least_stable_step_of_others": {
        ("markov-step-size-all", "is-most-sensitive-hard"): most_sensitive(
            "markov-step-size-all"
        ).only(HARD)
    },
    "usable_range_ratio": {
        ("markov-step-size-all", "ir-wider-than-is-hard"): Sensitivity("IR", "IS").wider.only(HARD),
        ("continuous-sgd-step-size-all", "ir-wider-than-wis-minibatch-down-uniform"): Sensitivity(
            "IR", "WIS-Minibatch", 0.25, 0.5
        ).wider.only(DOWN),
    },
    "accurate_range_ratio": {
        ("markov-step-size-all", "ir-accurate-over-wider-range-than-is-hardest"): Sensitivity(
            "IR", "IS"
        ).accurate.only(HARDEST)
    },
    "published_growth_difference": {
        ("continuous-incremental", "wis-td-degrades-published-u0"): Case(
            holds=(Truth(u0={640.0: 2.0}, gap=FEW),), fails=(DEGRADES,), about=("IR", "WIS-TD(0)")
        )
    },
    "change_of_difference": {
        ("continuous-sgd-all", "smaller-difference-under-random-state-down"): Case(
            (differ(DOWN),), (differ(SKEWED),), about=("IR", "IS")
        )
    },
    "mean_error_ratio_to_figure": {
        ("continuous-rmsprop-all", "rmsprop-worse-than-constant"): Case(
            (Truth(error={"IR": 2.0}),), (Truth(error={"IR": 0.5}),), about=("IR",)
        )
    },
    "error_ratio_over_that_of_table": {
        ("continuous-rmsprop", "difference-as-stark-as-in-the-table"): AS_STARK,
        ("continuous-sgd-all", "difference-smaller-than-in-the-table-down"): Case(
            # What is narrower is not as stark.
            tuple(with_table(here, 2.0, SKEWED) for here in (1.2, 1.7)),
            tuple(with_table(here, 2.0, SKEWED) for here in (4.0, 1.9)),
            about=("IR", "IS"),
        ),
    },
    "needed_updates_ratio": {
        ("continuous-rmsprop", "ir-needs-fewer-updates-than-is"): needs_more("IS")
    },
    "variance_ratio": {
        ("markov-variance", "ir-variance-far-below-early"): variances("IS", "IR", 3.0)[0],
        ("markov-variance", "ir-variance-comparable-late-trace"): COMPARABLE,
        ("markov-variance-all", "wis-minibatch-less-variance-than-is-late-easy"): variances(
            "IS", "WIS-Minibatch"
        )[1].only(EASY),
    },
    "least_variance_ratio": {
        ("markov-variance-all", "ir-less-variance-than-v-trace-1-throughout-hard"): (
            lower_throughout("V-trace(1.0)").only(HARD)
        )
    },
    "rising_variances": {
        ("markov-variance-all", "larger-ratios-more-variance"): over_pairs(
            "early", "IS", (0.5, 1.0, 2.0)
        )
    },
    "largest_late_share": {
        ("markov-variance-all", "late-variance-near-zero-easy"): NEAR_ZERO.only(EASY)
    },
    "early_difference": {
        ("markov-variance-all", "difference-largest-early-hard"): LARGEST_DIFFERENCE_EARLY.only(
            HARD
        )
    },
    "early_factor": {
        ("markov-variance-all", "ratio-largest-early-hard"): LARGEST_RATIO_EARLY.only(HARD)
    },
    "variance_and_error": {
        ("markov-variance-all", "variance-goes-with-error-is-easy"): goes_with("IS", EASY)
    },
    "variance_and_sensitivity": {
        ("markov-variance", "variance-goes-with-sensitivity-late"): correlates("late"),
        ("markov-variance-all", "variance-goes-with-sensitivity-early-hard"): correlates(
            "early", HARD
        ),
    },
    "distance_of_mean_ratio": {
        ("markov-variance-all", "mean-ratio-near-one-hardest"): MEAN_RATIO.only(HARDEST)
    },
    "least_found_ratio": {
        ("emphatic-rooms", "emphatic-ir-beats-is"): replace(
            worse("IS", "Emphatic IR"),
            # One gap is enough.
            fails=tuple(
                placed({gap: Truth(error={"IS": 0.5})}, Truth(error={"IS": 2.0}))
                for gap in (4, 16, 256)
            ),
        )
    },
    "found_ratio_over_that_of_figure": {
        ("emphatic-rooms-by-emphasis", "emphatic-ir-nearer-an-update-every-4-steps"): Case(
            (nearer(4.0),), (nearer(1.5),), about=("IR", "Emphatic IR")
        )
    },
    "difference_of_usable_rates": {
        ("racing-step-size", "ir-less-sensitive-than-is"): Case(
            # A rate counts if the error is below that of the best constant.
            holds=(Truth(limit={"IS": NEXT}),),
            fails=(Truth(limit={"IR": NEXT}),),
            unsure=(Truth(), Truth(limit={"IS": NEXT})),
            about=("IR", "IS"),
        )
    },
    "ratio_of_factors_over_rates": {
        ("racing-step-size", "ir-less-sensitive-by-error-than-is"): Case(
            # The smallest error, or the largest one, differs.
            holds=tuple(
                replace(truth, limit={"IR": NEXT, "IS": NEXT})
                for truth in (Truth(error={"IS": 0.5}), Truth(beyond={"IS": 3.0}))
            ),
            fails=tuple(
                replace(truth, limit={"IR": NEXT, "IS": NEXT})
                for truth in (Truth(error={"IR": 0.5}), Truth(beyond={"IR": 3.0}))
            ),
            about=("IR", "IS"),
        )
    },
    "largest_error_ratio_of_rates": {
        ("racing-step-size", "ir-as-stable-as-is"): Case(
            holds=(Truth(), Truth(error={"IS": 2.0})),
            # One rate is enough.
            fails=(Truth(error={"IR": 2.0}), Truth(limit={"IR": NEXT})),
            unsure=(Truth(), Truth(error={"IR": 1.2})),
            about=("IR", "IS"),
        )
    },
    "end_over_constant": {
        ("racing-step-size", "ir-better-than-constant-at-the-end"): Case(
            # Bad for most of the run, and good in the end.
            holds=(Truth(error={"IR": 3.0}, end={"IR": 0.2}),),
            fails=(Truth(end={"IR": 3.0}),),
            about=("IR",),
        )
    },
    "second_largest_spread_ratio": {
        ("racing-step-size", "ir-varies-less-over-runs-than-is"): Case(
            # Runs differ by a factor: a larger error differs more.
            holds=(Truth(error={"IS": 2.0}),),
            # The last: no rate is of use to IR.
            fails=(Truth(error={"IS": 0.5}), Truth(error={"IR": 4.0})),
            unsure=(Truth(), Truth()),
            about=("IR", "IS"),
        )
    },
    "error_ratio_at_largest_usable_rate": {
        ("racing-momentum", "bc-ir-worse-at-the-largest-rate"): Case(
            # The largest rate that IR can use, which need not be the largest of all.
            holds=(Truth(limit={"BC-IR": MIDDLE}), Truth(limit={"IR": MIDDLE, "BC-IR": LOW})),
            fails=(
                Truth(error={"BC-IR": 0.5}),
                Truth(error={"BC-IR": 0.9}, limit={"IR": MIDDLE, "BC-IR": MIDDLE}),
            ),
            about=("IR", "BC-IR"),
        )
    },
}
"""The truths that must decide claims, by statistic; a claim has its figure and its id."""
