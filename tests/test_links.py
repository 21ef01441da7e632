"""Rows of several streams in any order, and what follows what."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gvf
from gvf.links import Links, breaks, in_order

STATES = 6
MU, PI = gvf.policies.Fixed([0.5, 0.5]), gvf.policies.Fixed([0.3, 0.7])
ASKED = gvf.GVF(PI, "reward", 0.9)


def walk(stream: int, steps: int) -> gvf.Transitions:
    """A stream of a ring of states that ends now and then, and stops anywhere."""
    rng = np.random.default_rng([6, stream])
    action = rng.integers(2, size=steps)
    state = np.cumsum(np.append(stream, 2 * action - 1)) % STATES
    ended = rng.random(steps) < 0.08
    cut = ~ended & (rng.random(steps) < 0.04)
    return gvf.Transitions(
        state=state[:-1], action=action, reward=rng.normal(size=steps), next_state=state[1:],
        terminated=ended, truncated=cut, behaviour_probability=np.full(steps, 0.5),
        stream=np.full(steps, stream),
    )  # fmt: skip


SORTED = gvf.Transitions.concatenate([walk(0, 150), walk(1, 90), walk(2, 240)])


def mixed(seed: int) -> gvf.Transitions:
    """The rows in another order, in which those of each stream keep theirs."""
    stream = np.random.default_rng(seed).permutation(SORTED.stream)
    rows = np.empty(len(stream), int)
    rows[np.argsort(stream, kind="stable")] = np.arange(len(stream))
    return SORTED[rows]


class Values:
    """A table of predictions."""

    question = ASKED

    def __init__(self, scale: float) -> None:
        self._scale = scale

    def predict(self, states: Any) -> Any:
        return self._scale * np.sin(np.asarray(states))


def learner() -> gvf.Learner:
    return gvf.Learner(
        ASKED, gvf.features.OneHot(STATES), gvf.updates.TD(0.1), gvf.corrections.IR(), seed=0
    )


def log_of(rows: gvf.Transitions) -> gvf.Log:
    return gvf.read_log(rows, quiet=True)


def judged(rows: Any) -> list[float]:
    found = gvf.compare_learners({str(k): Values(k) for k in (0.0, 0.5, 1.0)}, rows, replicates=50)
    return [x for score in found.scores for x in (score.score, *score.difference)]


def selected(rows: gvf.Transitions) -> list[float]:
    selection = gvf.select_learner(learner(), log_of(rows), epochs=1, replicates=50)
    return [score.score for score in selection.comparison.scores]


def horde(rows: gvf.Transitions) -> Any:
    questions = [gvf.GVF(MU, "reward", g, name=str(g)) for g in (0.0, 0.8)]
    one = gvf.Horde(questions, gvf.features.OneHot(STATES), gvf.updates.TD(0.1), seed=0)
    found = one.stream_error(rows, rows=200)
    return [found.root_mean_square, found.bias, found.spread]


def supported(rows: gvf.Transitions) -> Any:
    found = gvf.check_support(log_of(rows), PI)
    return [tuple(estimate) for estimate in (found.mean_ratio, *found.lost.values())]


def solved(correction: gvf.corrections.Correction) -> Callable[[gvf.Transitions], Any]:
    def solver(rows: gvf.Transitions) -> Any:
        one = gvf.LSTDLearner(ASKED, gvf.features.OneHot(STATES), correction)
        one.observe(rows)
        return one.predict(range(STATES))

    return solver


USERS: dict[str, Callable[[gvf.Transitions], Any]] = {
    "judge": judged,
    "judge a list": lambda rows: judged([rows]),
    "judge a log": lambda rows: judged(log_of(rows)),
    "select": selected,
    "bootstrap": lambda rows: gvf.bootstrap(learner(), log_of(rows), replicates=19).weights,
    "support": supported,
    "estimate": lambda rows: tuple(gvf.estimate_behaviour(log_of(rows)).scores.log_loss),
    "least squares": solved(gvf.corrections.WISBuffer()),
    "least squares with a trace": solved(gvf.corrections.EmphaticIR()),
    "horde": horde,
    "target_visits": lambda rows: gvf.truth.target_visits(rows, ASKED, states=STATES),
}


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_any_order_of_streams_gives_the_same_numbers(
    user: Callable[[gvf.Transitions], Any],
) -> None:
    expected = user(SORTED)
    for seed in range(3):
        np.testing.assert_allclose(user(mixed(seed)), expected, rtol=1e-9, atol=1e-12)


def test_rows_that_were_joined_are_those_of_their_streams() -> None:
    def joined(rows: gvf.Transitions) -> Any:
        one = gvf.Learner(
            ASKED, gvf.features.OneHot(STATES), gvf.updates.TD(0.1), n_step=3, window=500, seed=0
        )
        one.learn([rows], progress=False)
        kept = one.window.columns
        columns = [kept[n][: len(one.window)].ravel() for n in ("x", "x_next", "cumulant")]
        return np.array(sorted(zip(*columns, one.buffer.inputs[0], strict=True)))

    expected = joined(SORTED)
    assert len(expected) == len(SORTED)
    np.testing.assert_allclose(joined(mixed(0)), expected, rtol=1e-12)


def test_streams_are_put_one_after_the_other_and_stop_where_they_stop() -> None:
    for seed in range(3):
        ordered, last = in_order(mixed(seed))
        np.testing.assert_array_equal(ordered.stream, SORTED.stream)
        np.testing.assert_array_equal(ordered.reward, SORTED.reward)
        ended = SORTED.terminated | SORTED.truncated
        ended[[149, 239, 479]] = True
        np.testing.assert_array_equal(last, ended)


def test_the_rows_of_a_log_are_those_of_the_transitions_as_they_were_given() -> None:
    rows = mixed(1)
    for batch, keys in log_of(rows).select(range(5, 20)).keyed():
        np.testing.assert_array_equal(rows.reward[keys["row"]], batch.reward)
        np.testing.assert_array_equal(rows.stream[keys["row"]], batch.stream)


def without(rows: gvf.Transitions, *names: str) -> gvf.Transitions:
    """A copy without some columns."""
    return gvf.Transitions(**{n: c.copy() for n, c in rows.columns.items() if n not in names})


def test_rows_of_unknown_streams_are_refused_with_their_place() -> None:
    rows = without(mixed(0), "stream")
    ended = rows.terminated | rows.truncated
    first = int(((rows.next_state[:-1] != rows.state[1:]) & ~ended[:-1]).argmax()) + 1
    said = f"position {first} does not begin in the state where the one before it ended: .*'stream'"
    rows.truncated[-1] = True
    with pytest.raises(ValueError, match=said):
        judged(rows)
    # A row that is missing is named by its place among the rows as they were given.
    gone = np.flatnonzero(mixed(0).stream == 1)[1]
    rest = mixed(0)[np.delete(np.arange(len(SORTED)), gone)]
    after = np.flatnonzero(rest.stream == 1)[1]
    with pytest.raises(ValueError, match=f"position {after} does not begin"):
        judged(rest)
    stretches = in_order(rest)[1][rest.stream[np.argsort(rest.stream, kind="stable")] == 1]
    assert stretches[0]
    with pytest.raises(ValueError, match=f"row {np.flatnonzero(rest.stream == 1)[0]}: the next st"):
        log_of(rest)


def test_episodes_are_taken_apart_where_their_numbers_change() -> None:
    ended = SORTED.terminated | SORTED.truncated
    episode = np.cumsum(ended) - ended + SORTED.stream  # a stream that stops begins a new one
    marked = gvf.Transitions(**SORTED.columns, episode=episode)
    bare = without(marked, "truncated", "stream")
    bare.terminated[-1] = True
    again = without(marked, "stream")
    again.terminated[-1] = again.truncated[[149, 239]] = True
    assert judged(bare) == judged(again)
    # Episodes of two streams that alternate, without the streams.
    two = marked[marked.stream < 2]
    alternate = two[np.argsort(np.arange(240) % 7 + 0.0, kind="stable")]
    alternate.truncated[-1] = True
    for rows in (alternate, without(alternate, "next_state")):
        with pytest.raises(ValueError, match=r"position \d+ "):
            judged(without(rows, "stream"))


def test_an_episode_that_comes_back_is_refused() -> None:
    rows = gvf.Transitions(
        state=[0, 1, 2, 3], action=[0] * 4, reward=[1.0] * 4, episode=[0, 1, 0, 1],
        terminated=[False, False, True, True], behaviour_probability=[0.5] * 4,
    )  # fmt: skip
    with pytest.raises(ValueError, match="position 2 returns to an episode that another one"):
        judged(rows)
    assert len(judged(rows[[0, 2, 1, 3]])) == 16


@pytest.mark.parametrize("seed", range(5))
def test_breaks_are_differences_beyond_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    exact = rng.normal(size=(400, 3)) * [1.0, 100.0, 0.01]
    moved = rng.random(400) < 0.2
    other = np.where(moved[:, None], exact + rng.normal(size=(400, 3)), exact)
    inside = rng.random(400) < 0.8
    for decimals in (None, 2, 4):
        rounded = other if decimals is None else other.round(decimals)
        near = 0.0 if decimals is None else 0.5001 * 10.0**-decimals
        expected = inside & (np.abs(exact - rounded) > near + 1e-6 * np.abs(rounded) + 1e-9).any(1)
        np.testing.assert_array_equal(breaks(exact, rounded, inside), expected)
        np.testing.assert_array_equal(breaks(rounded, exact, inside), expected)
    # Numbers that are rounded alike must be the same.
    one_more = exact.round(2) + np.array([0.01, 0.0, 0.0])
    np.testing.assert_array_equal(breaks(exact.round(2), one_more, inside), inside)


def test_states_of_other_forms_are_not_compared_and_texts_are() -> None:
    both = np.ones(2, bool)
    assert not breaks(np.zeros((2, 3)), np.ones((2, 4)), both).any()
    assert not breaks(np.zeros(2), np.zeros(2, [("x", float)]), both).any()
    texts = np.array(["a", "b"]), np.array(["a", "c"])
    np.testing.assert_array_equal(breaks(*texts, both), [False, True])
    large = np.array([2**40, 2**40 + 1])
    np.testing.assert_array_equal(breaks(large, large[::-1], both), both)


# Rows that come batch by batch


class DumbLinks:
    """The links of rows one by one, with a dictionary of the latest row of each stream."""

    def __init__(self) -> None:
        self.latest: dict[int, dict[str, Any]] = {}
        self.anew: set[int] = set()

    def begins(self, row: dict[str, Any]) -> bool:
        before = self.latest.get(row["stream"])
        again = row["stream"] in self.anew
        self.anew.discard(row["stream"])
        self.latest[row["stream"]] = row
        if before is None or again:
            return True
        ended = before["terminated"] or before["truncated"]
        return bool(ended or before["episode"] != row["episode"])

    def leave_out(self, row: dict[str, Any]) -> None:
        self.anew.add(row["stream"])

    def reset(self) -> None:
        self.anew |= self.latest.keys()


def rows_of(batch: gvf.Transitions) -> list[dict[str, Any]]:
    return [{name: c[i].item() for name, c in batch.columns.items()} for i in range(len(batch))]


@pytest.mark.parametrize("seed", range(8))
def test_links_of_batches_are_those_of_rows_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = mixed(seed)
    ends = rows.terminated | rows.truncated
    episode = np.empty(len(rows), int)
    for stream in range(3):
        of_stream = rows.stream == stream
        episode[of_stream] = 100 * stream + np.cumsum(ends[of_stream]) - ends[of_stream]
    rows = gvf.Transitions(**rows.columns, episode=episode)
    links, dumb, start = Links("rows are linked"), DumbLinks(), 0
    numbers: dict[int, int] = {}
    while start < len(rows):
        stop = min(start + int(rng.integers(1, 40)), len(rows))
        batch, left_out = rows[start:stop], rng.random(stop - start) < 0.1
        if rng.random() < 0.1:
            links.new_source(reset=True)
            dumb.reset()
        if rng.random() < 0.3:
            again = Links("rows are linked")
            again.load_state_dict(links.state_dict())
            links = again
        linked = links.of(batch, left_out if left_out.any() else None)
        expected, streams = [], []
        for row in np.unique(batch.stream).tolist():
            numbers.setdefault(row, len(numbers))
        for row, missing in zip(rows_of(batch), left_out, strict=True):
            if missing:
                dumb.leave_out(row)
                continue
            expected.append(dumb.begins(row))
            streams.append(numbers[row["stream"]])
        assert linked.begins.tolist() == expected
        assert linked.stream.tolist() == streams
        start = stop
    assert len(links) == 3


def test_a_row_that_does_not_follow_is_refused_and_what_was_known_can_be_put_back() -> None:
    links = Links("rows are linked")
    walk = gvf.Transitions(state=[0, 1], next_state=[1, 2])
    links.of(walk)
    memory = links.remembered()
    wrong = gvf.Transitions(state=[2, 5, 4], next_state=[3, 4, 3])
    with pytest.raises(ValueError, match=r"at position 1 does not begin .* and rows are linked: "):
        links.of(wrong)
    links.put_back(memory)
    assert links.of(gvf.Transitions(state=[2], next_state=[3])).begins.tolist() == [False]
    left_out = np.array([False, True, False])
    with pytest.raises(ValueError, match="at position 0 does not begin"):
        links.of(wrong, left_out)


def test_what_is_put_back_is_what_was_known_before_the_batch_that_failed() -> None:
    links = Links("rows are linked")
    links.of(gvf.Transitions(state=[0, 1], next_state=[1, 2]))
    links.new_source(reset=False)
    memory = links.remembered()
    with pytest.raises(ValueError, match="at position 1 does not begin"):
        links.of(gvf.Transitions(state=[2, 9], next_state=[3, 8]))
    links.put_back(memory)
    assert links.of(gvf.Transitions(state=[7], next_state=[8])).begins.tolist() == [True]


def test_another_source_may_go_on_or_begin_anew() -> None:
    for state, begins in ((2, False), (5, True)):
        links = Links("rows are linked")
        links.of(gvf.Transitions(state=[0, 1], next_state=[1, 2]))
        links.new_source(reset=False)
        assert links.of(gvf.Transitions(state=[state], next_state=[3])).begins.tolist() == [begins]


def test_rows_of_any_order_all_begin_anew() -> None:
    links = Links("rows are linked", looks_back=False)
    for state in ([3, 1, 4], [1, 5]):
        batch = gvf.Transitions(state=state, next_state=state)
        assert links.of(batch).begins.all()


def test_a_damaged_memory_of_streams_is_refused() -> None:
    links = Links("rows are linked")
    links.of(SORTED)
    arrays = links.state_dict()
    for name in ("flags", "episodes", "left", "after"):
        with pytest.raises(ValueError, match="3 streams remember"):
            links.load_state_dict(arrays | {name: arrays[name][:2]})
