"""Rows of a question, compared with an oracle that takes one transition after the other."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pytest

import gvf
from gvf.common.errors import positions_counted_from
from gvf.policies.ratio import quotient
from gvf.question import GVF
from gvf.rows import Origin, RowMaker
from gvf.transition import ESTIMATED, RECORDED, Transitions, one_row

NAN = float("nan")
MU, PI = gvf.policies.Fixed([0.5, 0.3, 0.2]), gvf.policies.Fixed([0.1, 0.0, 0.9])
OPTIONAL = (*RECORDED, ESTIMATED, "terminated")


class Estimate(gvf.policies.Fixed):
    """A policy that counts as estimated."""

    is_estimated: ClassVar[bool] = True


ESTIMATE = Estimate([0.4, 0.3, 0.3])
QUESTION = GVF(
    PI, lambda t: t.reward + t.next_state, lambda t: 0.5 + 0.1 * (t.state > 2), interest="weight"
)


def batch_of(seed: int, columns: tuple[str, ...]) -> Transitions:
    """Rows of which some have a NaN, with some of the optional columns."""
    rng, m = np.random.default_rng(seed), 24
    action = rng.integers(0, 3, m)
    probability = np.where(rng.random(m) < 0.1, NAN, np.array([0.5, 0.3, 0.2])[action])
    optional = {
        "behaviour_probability": probability,
        "behaviour_log_probability": np.log(probability),
        ESTIMATED: rng.random(m) < 0.3,
        "terminated": rng.random(m) < 0.2,
    }
    holes = np.where(rng.random((4, m)) < 0.06, NAN, 0.0)
    return Transitions(
        state=rng.integers(0, 5, m) + holes[0],
        action=action,
        reward=rng.normal(size=m) + holes[1],
        next_state=rng.integers(0, 5, m) + holes[2],
        weight=rng.random(m) + holes[3],
        **{name: optional[name] for name in columns},
    )


def by_definition(row: dict[str, Any], behaviour: Any, on_conflict: str) -> dict[str, Any] | None:
    """The numbers of one transition by their definitions; None if a NaN leaves it out."""
    ends = bool(row.get("terminated", False))
    after = row["state"] if ends and math.isnan(row["next_state"]) else row["next_state"]
    recorded = [row[name] for name in RECORDED if name in row]
    cumulant = row["reward"] + row["next_state"]
    if any(map(math.isnan, [row["state"], after, cumulant, row["weight"], *recorded])):
        return None
    uses_policy = not recorded or on_conflict == "behaviour"
    action = int(row["action"])
    if behaviour is not None and uses_policy:
        mu, estimated = behaviour.row[action], behaviour.is_estimated
    elif recorded:
        mu = math.exp(recorded[0]) if RECORDED[0] in row else recorded[0]
        estimated = bool(row.get(ESTIMATED, False))
    else:
        mu, estimated = PI.row[action] or 1.0, bool(row.get(ESTIMATED, False))
    known = behaviour is not None or bool(recorded)
    continuation = 0.0 if ends else 0.5 + 0.1 * (row["state"] > 2)
    return {
        "ratio": PI.row[action] / mu if known else 1.0,
        "cumulant": cumulant,
        "continuation": continuation,
        "interest": row["weight"],
        "estimated": estimated,
    }


@pytest.mark.parametrize(
    "columns", [c for n in range(5) for c in itertools.combinations(OPTIONAL, n)]
)
@pytest.mark.parametrize("behaviour", [None, MU, ESTIMATE])
@pytest.mark.parametrize("on_conflict", ["recorded", "behaviour"])
def test_rows_are_those_of_the_oracle(columns: Any, behaviour: Any, on_conflict: Any) -> None:
    batch = batch_of(len(columns), columns)
    maker = RowMaker(QUESTION, on_conflict, "skip", needs_ratio=False)
    rows = maker.many(batch, behaviour)
    one_by_one = [
        by_definition(
            {name: c[i].item() for name, c in batch.columns.items()}, behaviour, on_conflict
        )
        for i in range(len(batch))
    ]
    used = [row for row in one_by_one if row is not None]
    assert 0 < len(used) < len(batch)
    assert rows.origin.left_out is not None
    assert rows.origin.left_out.tolist() == [row is None for row in one_by_one]
    assert rows.origin.left_out_count == len(batch) - len(used)
    assert rows.origin.batch is batch
    assert len(rows.origin.transitions) == len(used)
    for name in ("ratio", "cumulant", "continuation", "interest"):
        expected = [row[name] for row in used]
        assert getattr(rows, name) == pytest.approx(expected, rel=1e-12), name
    recorded = {*RECORDED} & {*columns}
    assert rows.origin.is_known == (behaviour is not None or bool(recorded))
    estimated = [row["estimated"] for row in used]
    assert rows.origin.estimated.tolist() == estimated
    assert rows.origin.has_estimates == any(estimated)


def test_rows_are_what_the_question_says_bit_for_bit() -> None:
    batch = batch_of(3, ("behaviour_probability", "terminated"))
    batch = batch[~QUESTION.missing(batch)]
    rows = RowMaker(QUESTION).many(batch, MU)
    assert rows.origin.transitions is batch
    assert rows.origin.left_out is None
    for of_rows, of_question in zip(rows[:4], QUESTION.evaluate(batch, behaviour=MU), strict=True):
        assert of_rows.tobytes() == of_question.tobytes()


def test_a_number_that_is_not_needed_is_not_asked_for() -> None:
    def fails(_: Transitions) -> Any:
        raise AssertionError("was asked")

    question = GVF(PI, "reward", interest=fails)
    batch = Transitions(state=[0, 0], action=[0, 1], reward=[1.0, 2.0])
    rows = RowMaker(question, needs_ratio=False, needs_interest=False).many(batch, None)
    assert rows.ratio.tolist() == rows.interest.tolist() == [1.0, 1.0]
    assert not rows.origin.is_known
    with pytest.raises(ValueError, match="the behaviour is not known"):
        RowMaker(question, needs_interest=False).many(batch, None)
    known = RowMaker(question, needs_ratio=False, needs_interest=False).many(batch, MU)
    assert known.ratio.tolist() == [0.1 / 0.5, 0.0]


def test_an_interest_that_is_not_needed_leaves_no_row_out() -> None:
    batch = Transitions(state=[0, 0], action=[0, 2], reward=[1.0, 2.0], weight=[NAN, 1.0])
    question = GVF(PI, interest="weight")
    assert RowMaker(question, on_nan="skip").many(batch, MU).origin.left_out is not None
    maker = RowMaker(question, on_nan="skip", needs_interest=False)
    assert maker.many(batch, MU).origin.left_out is None


def test_functions_are_not_called_when_all_rows_are_left_out() -> None:
    calls: list[int] = []

    def cumulant(transitions: Transitions) -> Any:
        calls.append(len(transitions))
        return transitions.reward

    batch = Transitions(state=[NAN, NAN], action=[0, 1], reward=[1.0, 2.0])
    rows = RowMaker(GVF(PI, cumulant), on_nan="skip").many(batch, MU)
    assert [len(numbers) for numbers in rows[:4]] == [0, 0, 0, 0]
    assert not calls
    assert rows.origin.left_out is not None
    assert rows.origin.left_out.all()


def test_an_error_says_which_rows_its_positions_do_not_count() -> None:
    batch = Transitions(state=[NAN, 0.0, 0.0], action=[0, 1, 1], reward=[0.0, 1.0, np.inf])
    with pytest.raises(ValueError, match="is inf at position 1") as caught:
        RowMaker(GVF(PI), on_nan="skip").many(batch, MU)
    assert caught.value.__notes__ == ["Positions do not count the rows left out for a NaN, [0]."]
    with pytest.raises(ValueError, match="is inf at position 1") as caught:
        RowMaker(GVF(PI), on_nan="skip").many(batch[1:], MU)
    assert not hasattr(caught.value, "__notes__")


def test_a_nan_is_an_error_unless_it_may_be_left_out() -> None:
    batch = Transitions(state=[0, 0], action=[0, 1], reward=[1.0, NAN])
    with pytest.raises(ValueError, match="cumulant 'reward' is nan at position 1"):
        RowMaker(GVF(PI)).many(batch, MU)


def test_an_origin_leaves_out_what_it_is_told_to() -> None:
    batch = batch_of(5, ())
    some = np.arange(len(batch)) % 3 == 0
    origin = Origin.of(batch, some, MU, "error")
    assert origin.transitions["action"].tolist() == batch["action"][~some].tolist()
    none = Origin.of(batch, np.zeros(len(batch), bool), MU, "error")
    assert none.left_out is None
    assert none.transitions is batch
    assert none.left_out_count == 0


def test_positions_count_from_a_place_of_the_source() -> None:
    with pytest.raises(ValueError, match="wrong") as caught, positions_counted_from(64, "the log"):
        raise ValueError("wrong")
    assert caught.value.__notes__ == ["Positions count from transition 64 of the log."]


@pytest.mark.parametrize("logs", [False, True])
def test_the_quotient_is_0_where_the_target_never_acts(logs: bool) -> None:
    pi, mu = np.array([0.0, 0.0, 0.25, 0.5]), np.array([0.0, 0.5, 0.5, 0.0])
    with np.errstate(divide="ignore"):
        given = (np.log(pi), np.log(mu)) if logs else (pi, mu)
    assert quotient(*given, logs=logs).tolist() == pytest.approx([0.0, 0.0, 0.5, math.inf])


# One row

TABLE = gvf.policies.Table([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1]])
ODD = [
    True, False, 7, -1, 1.5, NAN, np.inf, "0.5", None, [1.0], np.float32(0.3), np.int64(2), 2**70,
    10**400, np.array(1), np.array([0.5, NAN]), np.array([1.0, 2.0]), {"a": 1.0}, np.bool_(True),
    1e300, -0.0, 1.0 + 5e-7, 0.5000001,
]  # fmt: skip
"""Values that a column may have, most of them in the wrong one."""


def outcome(make: Any, source: Any, behaviour: Any) -> Any:
    """The bits of rows with their origin, or the error with its notes."""
    try:
        rows = make(source, behaviour)
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", [])
    origin = rows.origin
    batch = {name: (c.dtype, c.tobytes()) for name, c in origin.batch.columns.items()}
    left_out = None if origin.left_out is None else origin.left_out.tolist()
    numbers = [(array.dtype, array.shape, array.tobytes()) for array in rows[:4]]
    return numbers, str(batch), left_out, origin.source, origin.has_estimates


def row_like(rng: np.random.Generator) -> dict[str, Any]:
    """A transition whose columns are mostly good."""
    row: dict[str, Any] = {
        "state": int(rng.integers(3)),
        "action": int(rng.integers(3)),
        "reward": float(rng.normal()),
        "next_state": int(rng.integers(3)),
        "terminated": bool(rng.random() < 0.3),
        "truncated": False,
    }
    if rng.random() < 0.5:
        row |= {"state": rng.normal(size=2), "next_state": rng.normal(size=2)}
    if rng.random() < 0.5:
        right = [0.5, 0.3, 0.2][row["action"]] * (1 + rng.choice([0.0, 4e-6, 3e-5]))
        row["behaviour_probability"] = rng.choice([right, 0.0, 1.0, rng.random()])
    if rng.random() < 0.1:
        row["behaviour_log_probability"] = np.log(0.3)
    if rng.random() < 0.1:
        row[ESTIMATED] = True
    if rng.random() < 0.4:
        names = [name for name in row if name != ESTIMATED]
        row[names[rng.integers(len(names))]] = ODD[rng.integers(len(ODD))]
    return row


QUESTIONS = [
    GVF(PI), GVF(TABLE, "reward", 0.5), GVF(PI, "state", 1), GVF(PI, "nothing"),
    GVF(gvf.policies.Always(2, actions=3), interest=2), GVF(PI, interest=lambda t: t.reward**2),
    GVF(PI, lambda t: t.reward), GVF(PI, continuation=lambda t: 0.5),
    GVF(gvf.policies.Function(lambda s: np.full((len(s), 3), 1 / 3), actions=3)),
    GVF(gvf.policies.Uniform(3), "reward", 0.0), GVF(gvf.policies.Favour(1, 0.8, actions=3)),
]  # fmt: skip


def batch_of_one(maker: RowMaker, row: dict[str, Any], behaviour: Any) -> Any:
    return maker.many(one_row(row), behaviour)


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
@pytest.mark.parametrize("behaviour", [None, MU, TABLE, ESTIMATE], ids=repr)
def test_one_row_is_a_batch_of_one_with_its_bits_and_its_errors(
    number: int, behaviour: Any
) -> None:
    rng, plain_rows = np.random.default_rng(number), 0
    for _ in range(150):
        row, choices = row_like(rng), rng.integers(2, size=3)
        on_conflict: Any = ["error", "recorded", "behaviour"][rng.integers(3)]
        maker = RowMaker(
            QUESTIONS[number], on_conflict, ["error", "skip"][choices[0]],  # type: ignore[arg-type]
            bool(choices[1]), bool(choices[2]),
        )  # fmt: skip
        expected = outcome(
            lambda row, mu, maker=maker: maker.many(one_row(row), mu), row, behaviour
        )
        assert outcome(maker.one, row, behaviour) == expected, row
        plain_rows += maker._plain.numbers(row, behaviour) is not None
    if number in (0, 1, 4, 9, 10):
        assert plain_rows > 20 or behaviour is ESTIMATE


def test_a_behaviour_that_is_replaced_counts_from_then_on() -> None:
    maker, row = RowMaker(GVF(PI)), row_like(np.random.default_rng(1)) | {"state": 0, "action": 2}
    row = {name: value for name, value in row.items() if name not in (*RECORDED, ESTIMATED)}
    for behaviour in (MU, gvf.policies.Uniform(3), TABLE, MU):
        assert maker.one(row, behaviour).ratio == 0.9 / behaviour.probability([0], [2])
