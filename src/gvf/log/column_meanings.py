"""The meanings of a log's columns, found by their names.

Libraries name the same thing differently: ``obs``, ``observation``, ``s`` and ``state`` are all the
state. :func:`recognise` compares names without capitals, punctuation and the plural's "s". A name
that the caller gives wins. Columns that it does not know are kept under their own names, so that
cumulants can use them.

A column ``done`` marks the ends of episodes, but does not say why they ended. Beside a column
``truncated`` it does: an end that is not truncated is the task's own. Alone it has no meaning, and
:mod:`gvf.log.episode_ends` asks for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from gvf.common.errors import OptionError, option
from gvf.common.part_names import close, nearest

_NAMES = {
    "state": "state s obs observation context",
    "action": "action a act",
    "reward": "reward r rew",
    "next_state": "next_state next_s next_obs next_observation new_state new_obs new_observation "
    "state_next s_next obs_next observation_next s_prime",
    "terminated": "terminated termination is_terminated",
    "truncated": "truncated truncation is_truncated timeout time_limit time_limit_truncated",
    "done": "done terminal is_terminal",
    "episode": "episode episode_id episode_index episode_number ep ep_id eps_id trajectory "
    "trajectory_id traj_id",
    "time": "step t time timestep time_step step_id step_index frame_index timestamp",
    "stream": "stream env_id env_index",
    "behaviour_probability": "behaviour_probability behaviour_prob behaviour_policy_prob "
    "action_probability action_prob pscore propensity propensity_score logging_probability "
    "logging_prob",
    "behaviour_log_probability": "behaviour_log_probability behaviour_log_prob behaviour_logp "
    "behaviour_logprob action_log_probability action_log_prob action_logp action_logprob "
    "sample_log_prob log_probability log_prob logp logprob",
}
"""The names in use for each meaning, without plurals."""
MEANINGS = tuple(_NAMES)
"""The meanings that a column may have."""
OF_SEQUENCES = ("next_state", "terminated", "truncated", "done", "stream")
"""The meanings that tell what follows what. Single decisions have none of them."""
COUNTED = "episode number"
"""The name of a column that counts episodes, in a source whose own column is "episode"."""
_MEANING = {name: meaning for meaning, names in _NAMES.items() for name in names.split()}
_NUMBERED = re.compile(r"(.*?)_?(\d+)")
_INFO = re.compile(r"infos?[/.]")

Given = str | Iterable[str] | None
"""The name of a column, the names of several that are joined, or None for no column."""


@dataclass(frozen=True)
class Part:
    """One or several columns of a source that have one meaning.

    Several columns, or one in a list, become a matrix [m, columns].
    """

    columns: tuple[str, ...]
    how: str
    """The way in which the meaning was found, in words."""
    is_matrix: bool = False


@dataclass(frozen=True)
class Reading:
    """The meaning of each column of a source.

    Args:
        parts: the columns of each meaning that was found.
        kept: the columns without a meaning, by the name under which they are kept.
        left_out: the columns that are not kept, each with the reason.
        single: True if every row is a decision of its own.
        ids: the columns in which the log itself names its streams and episodes.
    """

    parts: dict[str, Part]
    kept: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    single: bool = False
    ids: tuple[str, ...] = ()

    def __contains__(self, meaning: str) -> bool:
        return meaning in self.parts

    def columns(self, meanings: Iterable[str]) -> list[str]:
        """Return the columns of some meanings, each once; those that are not there are skipped."""
        parts = [self.parts[meaning].columns for meaning in meanings if meaning in self.parts]
        return list(dict.fromkeys(column for columns in parts for column in columns))


def meaning_of(name: str) -> str | None:
    """Return the meaning of a column by its name, or None.

    Example:
        >>> from gvf.log.column_meanings import meaning_of
        >>> meaning_of("Observations"), meaning_of("nextState"), meaning_of("infos/action_logp")
        ('state', 'next_state', 'behaviour_log_probability')
        >>> print(meaning_of("speed"))
        None
    """
    folded = _folded(name)
    return _MEANING.get(folded) or _MEANING.get(folded.removesuffix("s"))


def recognise(
    names: Iterable[str],
    meanings: Mapping[str, Given],
    stored: Mapping[str, str | None] = MappingProxyType({}),
    ids: Sequence[str] | None = None,
    *,
    single: bool = False,
) -> Reading:
    """Find the meaning of each column.

    Args:
        names: the names of the columns.
        meanings: the columns that the caller names, by meaning. None says that there is none, and a
            list of columns makes a matrix.
        stored: the columns that the source itself names, in the same form.
        ids: the columns with the names of episodes; None for those of the meanings.
        single: True if every row is a decision of its own, which nothing follows.

    Raises:
        ValueError: if a named column is not there, or several columns could have one meaning.
        TypeError: if `given` names a meaning that does not exist.

    Example:
        >>> from gvf.log.column_meanings import recognise
        >>> reading = recognise(["obs_1", "obs_0", "a", "pscore", "speed"], {})
        >>> reading.parts["state"].columns, reading.parts["behaviour_probability"].columns
        (('obs_0', 'obs_1'), ('pscore',))
        >>> reading.kept
        {'speed': 'speed'}
        >>> recognise(["x", "v", "a"], {"state": ["x", "v"]}).parts["state"].is_matrix
        True
    """
    names = list(names)
    parts: dict[str, Part] = {}
    for meaning, asked in {**stored, **meanings}.items():
        if meaning not in MEANINGS:
            near = close(meaning, MEANINGS)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise TypeError(
                f"gvf.read_log has no option {meaning!r}; {hint}columns are named by "
                f"their meaning: {', '.join(MEANINGS)}"
            )
        if single and asked is not None and meaning in OF_SEQUENCES and meaning in meanings:
            raise OptionError(
                option(meaning, asked),
                ": nothing follows a single decision, so leave this out; or leave out ",
                option("steps", "single"),
                " if rows follow each other",
            )
        if asked is None or (single and meaning in OF_SEQUENCES):
            continue
        columns = (asked,) if isinstance(asked, str) else tuple(asked)
        if not columns:
            raise OptionError(option(meaning, []), " names no column; name at least one")
        for column in columns:
            if column not in names:
                raise OptionError(
                    option(meaning, asked),
                    f": there is no column {column!r}; {nearest(str(column), names)}",
                )
        how = "as you say" if meaning in meanings else "as the file says"
        parts[meaning] = Part(columns, how, not isinstance(asked, str))
    taken = {column for part in parts.values() for column in part.columns}
    parts_of: dict[str, list[Part]] = {}
    for part_meaning, part in _by_name([name for name in names if name not in taken]):
        named = part_meaning in meanings or part_meaning in stored
        if not (named or (single and part_meaning in OF_SEQUENCES)):
            parts_of.setdefault(part_meaning, []).append(part)
    for meaning, several in parts_of.items():
        if len(several) > 1 and single and meaning == "time":
            continue  # their order means nothing
        if len(several) > 1:
            names_text = " and ".join(", ".join(map(repr, part.columns[:3])) for part in several)
            raise OptionError(
                f"columns {names_text} both look like the {meaning}; say which one is: ",
                option(meaning, several[0].columns[0]),
            )
        parts[meaning] = several[0]
    if "terminated" in parts and "done" not in meanings:
        parts.pop("done", None)  # it adds nothing
    reading = _with_the_rest(names, parts, single)
    return replace(
        reading, ids=tuple(reading.columns(["stream", "episode"]) if ids is None else ids)
    )


def _by_name(names: list[str]) -> list[tuple[str, Part]]:
    """Return the meanings of single columns, and of groups such as obs_0, obs_1, obs_2."""
    matches: list[tuple[str, Part]] = []
    groups: dict[str, dict[int, str]] = {}
    for name in names:
        meaning = meaning_of(name)
        numbered = _NUMBERED.fullmatch(_folded(name))
        if meaning is not None:
            matches.append((meaning, Part((name,), "by its name")))
        elif numbered and meaning_of(numbered[1]) in ("state", "next_state", "action"):
            groups.setdefault(numbered[1], {})[int(numbered[2])] = name
    for base, columns in groups.items():
        numbers = sorted(columns)
        expected = range(numbers[0], numbers[0] + len(numbers))
        if numbers[0] > 1 or numbers != list(expected):
            missing = min({*range(numbers[-1])} - {*numbers, 0}, default=0)
            raise OptionError(
                f"the columns {columns[numbers[0]]!r} to {columns[numbers[-1]]!r} are numbered, "
                f"but number {missing} is missing; name the columns in their order: ",
                option(str(meaning_of(base)), [...]),
            )
        ordered = tuple(columns[number] for number in numbers)
        matches.append((str(meaning_of(base)), Part(ordered, "by their names, in order", True)))
    return matches


def _with_the_rest(names: list[str], parts: dict[str, Part], single: bool) -> Reading:
    """Keep the columns that no meaning uses, under names that are still free."""
    # The caller's names of episodes and times remain columns, since only their order is used.
    names_and_times = {
        column
        for meaning in ("episode", "time")
        if meaning in parts
        for column in parts[meaning].columns
    }
    used = {column for part in parts.values() for column in part.columns} - names_and_times
    emitted = {"state", "next_state", "terminated", "truncated", "episode", *parts} - {"time"}
    kept: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name in names:
        short = _INFO.sub("", name, count=1)
        short = short if short not in names else name
        if name in used or (name == short and name in ("episode", COUNTED)):
            continue
        if short in emitted:
            why = "nothing follows a single decision" if single else "its name has another meaning"
            left_out[name] = f"{why} here"
        else:
            kept[short] = name
    return Reading(parts, kept, left_out, single=single)


def _folded(name: Any) -> str:
    """Return a name in small letters, with single underscores, in British spelling."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _INFO.sub("", str(name), count=1))
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_").replace("behavior", "behaviour")
