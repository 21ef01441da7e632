"""Families of claims: tables in a file beside a module, each of which stands for many claims.

    [[family]]
    id = "ir-faster-than-{other}"
    figure = "four-rooms-learning-curves"
    other = ["IS", "WIS-Buffer"]
    says = "IR learns faster than {other} with an update every 16 steps."
    measure = "error of {other} over that of IR"
    statistic = "error_ratio"
    of = { method = "{other}", other = "IR" }
    least = 1.1
    why = "noticeable"
    history = ["written"]
    not_counted = { WIS-Buffer = "buffer-is-is" }

`figure`, and every name that is no field of a claim, stands for a value or for each value of a
list. A string may name a list of ``[lists]`` at the top of the file. A family has a claim for each
combination, the last list varying fastest. Entries of a list that are tables have several names
each.

`{name}` in a text stands for the value, in an id for its short form ("v-trace-1"). A list is joined
by commas there. As an argument of the statistic, `{name}` alone is the value or the list itself.

Fields are those of :class:`gvf_lab.figure.claim.Claim`. The statistic is a function of the module
or of :mod:`gvf_lab.figure.statistics`, and `of` has its arguments; there a pair is written
"target/behaviour", or with one word if both have the same name. A field that differs from claim to
claim is a table: a key names values of the claim, divided by " & ", and "else" stands for all other
claims. The key with most values counts.

Reasons, histories and often used words stand once, in `reasons.toml`, and are named by their keys;
a reason with a space in it is the text itself. Nothing else can be said here: what needs more is
two families, or a statistic.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from types import ModuleType
from typing import Any, get_args

from gvf.common.arrays import Array
from gvf.common.part_names import known
from gvf_lab.figure import statistics
from gvf_lab.figure.claim import Claim, HistoryEntry, Knew
from gvf_lab.figure.statistics import Bounds
from gvf_lab.study.results import Pair

FIELDS = (
    "id", "says", "measure", "statistic", "of", "least", "most", "why", "because", "not_counted",
    "history", "needs", "protocols", "place",
)  # fmt: skip
"""The names in a family that do not stand for values of its claims."""
ELSE = "else"
"""The key of the value for all claims that no other key names."""
Row = Mapping[str, Any]
"""The values of a claim by name."""


class ClaimFile:
    """The claims of a module's figures: those of the TOML file of the same name beside it.

    The file is read when claims are asked for. `functions` is the module with the statistics that
    are not in :mod:`gvf_lab.figure.statistics`, by default the module itself.

    Example:
        >>> from gvf_lab.figure.families import ClaimFile
        >>> import gvf_lab.paper.markov_chain_figures
        >>> claims = ClaimFile("gvf_lab.paper.markov_chain_figures")
        >>> [claim.id for claim in claims("markov-vtrace")][:2]
        ['harder-clip-more-bias', 'v-trace-0.9-max-bears-larger-steps-than-is']
    """

    def __init__(self, module: str, functions: ModuleType | None = None) -> None:
        self.module = module
        self.functions = functions

    def __call__(self, figure: str) -> tuple[Claim, ...]:
        """Return the claims of a figure, in the order of the file."""
        return self.by_figure.get(figure, ())

    @cached_property
    def by_figure(self) -> dict[str, tuple[Claim, ...]]:
        """The claims by figure."""
        package, _, name = self.module.rpartition(".")
        text = (files(package) / f"{name}.toml").read_text(encoding="utf-8")
        by_figure: dict[str, list[Claim]] = {}
        for figure, claim in read_families(tomllib.loads(text), self._statistic):
            by_figure.setdefault(figure, []).append(claim)
        return {figure: tuple(claims) for figure, claims in by_figure.items()}

    def _statistic(self, name: str) -> Callable[..., Array | Bounds]:
        functions = vars(statistics) | vars(self.functions or sys.modules[self.module])
        return functions[known(name, functions, "statistic")]


def read_families(
    file: Mapping[str, Any], statistic: Callable[[str], Callable[..., Array | Bounds]]
) -> Iterator[tuple[str, Claim]]:
    """Yield the claims of a file's families, each with its figure."""
    lists = file.get("lists", {})
    for family in file["family"]:
        try:
            every = list(rows(family, lists))
            _refuse_what_is_not_used(family, every)
            for row in every:
                yield row["figure"], _claim(family, row, lists, statistic)
        except (KeyError, ValueError) as error:
            raise ValueError(f"family {family.get('id')!r}: {error}") from None


def rows(family: Mapping[str, Any], lists: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the values of every claim of a family.

    Example:
        >>> from gvf_lab.figure.families import rows
        >>> family = {"id": "{a}-{b}", "a": "letters", "b": [1, 2]}
        >>> [row["a"] + str(row["b"]) for row in rows(family, {"letters": ["x", "y"]})]
        ['x1', 'x2', 'y1', 'y2']
    """
    named = {name: value for name, value in family.items() if name not in FIELDS}
    values = {
        name: lists.get(value, [value]) if isinstance(value, str) else value
        for name, value in named.items()
    }
    for combination in product(*values.values()):
        row: dict[str, Any] = {}
        for name, value in zip(values, combination, strict=True):
            row |= value if isinstance(value, dict) else {name: value}
        yield row


def _refuse_what_is_not_used(family: Mapping[str, Any], every: list[dict[str, Any]]) -> None:
    """Raise an error for a name that no text has, and for a key of a table that fits no claim."""
    texts = str({name: value for name, value in family.items() if name in FIELDS})
    for name, value in family.items():
        in_rows = name in every[0] and name not in (*FIELDS, "figure")
        if in_rows and f"{{{name}}}" not in texts:
            raise ValueError(f"{name!r} is no field of a claim, and no text has {{{name}}}")
        if name in FIELDS and name != "of" and isinstance(value, dict):
            for key in value:
                if key != ELSE and not any(_fits(key, row) for row in every):
                    raise ValueError(f"{name}: no claim has {key!r}")


def _fits(key: str, row: Row) -> bool:
    """Return True if a claim has all values that a key names."""
    return set(key.split(" & ")) <= {str(value) for value in row.values()}


def slug(value: Any) -> str:
    """Return the short form of a value in an id.

    Example:
        >>> from gvf_lab.figure.families import slug
        >>> slug("V-trace(1.0)"), slug("V-trace(0.5 max)"), slug("WIS-TD(0)"), slug("6,187 updates")
        ('v-trace-1', 'v-trace-0.5-max', 'wis-td', '6187-updates')
    """
    plain = re.sub(r"\(0\)|\.0(?=\))|,", "", str(value).lower())
    return re.sub(r"[^a-z0-9.]+", "-", plain).strip("-")


def _claim(
    family: Mapping[str, Any],
    row: Row,
    lists: Mapping[str, list[Any]],
    statistic: Callable[[str], Callable[..., Array | Bounds]],
) -> Claim:
    joined = {name: ", ".join(map(str, value)) for name, value in lists.items()}
    words = {**reasons()["words"], **joined, **row}
    values = {**lists, **row}
    every = {
        name: value if name == "of" else chosen(value, row)
        for name, value in family.items()
        if name in FIELDS
    }
    of = {name: value for name, value in every.items() if value is not None}
    names = {name: slug(value) for name, value in row.items()}
    others: dict[str, Any] = {
        name: tuple(_filled(value, words) for value in of[name])
        for name in ("needs", "protocols")
        if name in of
    }
    numbers: dict[str, Any] = {name: float(of[name]) for name in ("least", "most") if name in of}
    texts: dict[str, Any] = {
        name: " ".join(_reason(name, text) for text in _several(of.get(name, ())))
        for name in ("why", "because", "not_counted")
    }
    return Claim(
        slug(of["id"].format(**names)),
        of["says"].format(**words),
        of["measure"].format(**words),
        statistic(of["statistic"]),
        history=tuple(map(_history, of["history"])),
        place=of.get("place", ""),
        of={name: _argument(name, value, values) for name, value in of.get("of", {}).items()},
        family=of["id"],
        names=names,
        **numbers,
        **texts,
        **others,
    )


def chosen(value: Any, row: Row) -> Any:
    """Return a field's value for one claim: that of the key with most of its values, or None.

    Example:
        >>> from gvf_lab.figure.families import chosen
        >>> why = {"else": "tie", "IS": "plain", "IS & hard": "both"}
        >>> [chosen(why, {"method": "IS", "pair": pair}) for pair in ("easy", "hard")]
        ['plain', 'both']
        >>> chosen(why, {"method": "IR", "pair": "hard"})
        'tie'
    """
    if not isinstance(value, dict):
        return value
    matching = sorted(
        (len(key.split(" & ")), key) for key in value if key != ELSE and _fits(key, row)
    )
    if len(matching) > 1 and matching[-1][0] == matching[-2][0]:
        raise ValueError(f"{matching[-2][1]!r} and {matching[-1][1]!r} name the same claim")
    return value[matching[-1][1]] if matching else value.get(ELSE)


def _filled(value: Any, row: Row) -> Any:
    """Return a value with the names in its texts replaced; a text that is a name is the value."""
    if isinstance(value, list):
        return tuple(_filled(each, row) for each in value)
    if not isinstance(value, str):
        return value
    name = re.fullmatch(r"\{(\w+)\}", value)
    whole = row[name[1]] if name else value.format(**row)
    return tuple(whole) if isinstance(whole, list) else whole


def _argument(name: str, value: Any, row: Row) -> Any:
    filled = _filled(value, row)
    if name == "pair":
        return pair_of(filled)
    return tuple(map(pair_of, filled)) if name == "pairs" else filled


def pair_of(policies: str) -> Pair:
    """Return the target and the behaviour that a text names."""
    target, _, behaviour = policies.partition("/")
    return target, behaviour or target


@cache
def reasons() -> dict[str, Any]:
    """Return `reasons.toml`: reasons and histories by their keys.

    Example:
        >>> from gvf_lab.figure.families import reasons
        >>> reasons()["history"]["written"].knew
        'unrecorded'
    """
    text = (files("gvf_lab.figure") / "reasons.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    history = {
        key: HistoryEntry(entry, knew)
        for knew in get_args(Knew)
        for key, entry in tables["history"][knew].items()
    }
    return tables | {"history": history}


def _history(key: str) -> HistoryEntry:
    return reasons()["history"][known(key, reasons()["history"], "history")]


def _reason(field: str, text: str) -> str:
    """Return the reason that a key names, or the text itself."""
    return text if " " in text else reasons()[field][known(text, reasons()[field], field)]


def _several(value: str | Iterable[str]) -> Iterable[str]:
    return (value,) if isinstance(value, str) else value


def named_claims(reference: str, claims: Iterable[Claim]) -> list[str]:
    """Return the ids of the claims that a reference names: the id of a claim, or of its family.

    In the id of a family, a value may stand in the place of a `{name}`.

    Example:
        >>> from gvf_lab.figure.families import named_claims
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
