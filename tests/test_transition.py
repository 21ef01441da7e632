"""Transitions: batches as columns, and what they say about bad input."""

import copy
import pickle

import numpy as np
import pytest
from columns import assert_same

from gvf import Transitions


def some_transitions() -> Transitions:
    return Transitions(state=np.arange(8.0).reshape(4, 2), action=[3, 1, 2, 0], reward=(0, 1, 2, 3))


def test_columns_are_attributes_and_items():
    batch = some_transitions()
    assert len(batch) == 4
    assert list(batch.columns) == ["state", "action", "reward"]
    assert batch.state is batch["state"] is batch.columns["state"]
    assert isinstance(batch.reward, np.ndarray)
    assert batch["reward"].tolist() == [0, 1, 2, 3]
    assert "reward" in batch
    assert "terminated" not in batch
    assert repr(batch) == "Transitions(4: state float64[2], action int64, reward int64)"


def test_rows_are_a_batch_of_their_own():
    batch = some_transitions()
    for rows in (slice(1, 3), [1, 2], np.array([1, 2]), slice(-3, -1)):
        part = batch[rows]
        assert isinstance(part, Transitions)
        assert len(part) == 2
        assert part.state.tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert part.action.tolist() == [1, 2]
    assert batch[[0, 0, 3]].action.tolist() == [3, 3, 0]
    assert len(batch[:0]) == 0
    with pytest.raises(IndexError):
        batch[[4]]


def test_an_unknown_column_is_an_error_that_lists_the_known_ones():
    batch = some_transitions()
    with pytest.raises(KeyError, match=r"'rewards'.*state, action, reward"):
        batch["rewards"]
    with pytest.raises(AttributeError, match=r"'rewards'.*state, action, reward"):
        _ = batch.rewards
    assert not hasattr(batch, "terminated")
    assert getattr(batch, "terminated", None) is None


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))]
)
def test_transitions_can_be_copied_and_pickled(clone):
    batch = some_transitions()
    twin = clone(batch)
    assert isinstance(twin, Transitions)
    assert_same(twin.columns, batch.columns)
    assert twin.action.tolist() == [3, 1, 2, 0]
    assert len(clone(Transitions())) == 0


def test_transitions_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match=r"state \(2,\), action \(3,\)"):
        Transitions(state=[1, 2], action=[1, 2, 3])
    with pytest.raises(ValueError, match=r"state \(2, 3\), action \(3,\)"):
        Transitions(state=np.zeros((2, 3)), action=[1, 2, 3])
    with pytest.raises(ValueError, match=r"one row a transition.*state \(\)"):
        Transitions(state=1.0)
    with pytest.raises(ValueError, match=r"state \(\), action \(1,\)"):
        Transitions(state=1.0, action=[1])


def test_there_may_be_no_transitions():
    assert len(Transitions()) == 0
    batch = Transitions(state=np.empty((0, 3)), reward=[])
    assert (len(batch), batch.state.shape) == (0, (0, 3))


def test_one_row_is_a_batch_of_one():
    assert len(some_transitions()[1]) == 1
    assert some_transitions()[1].action.tolist() == [1]


def test_a_column_given_as_a_mapping_becomes_an_array_with_fields():
    batch = Transitions(state={"a": [[1, 2], [3, 4]], "b": {"c": [0.5, 1.5]}}, reward=[0.0, 1.0])
    assert batch.state["a"].tolist() == [[1, 2], [3, 4]]
    assert batch.state["b"]["c"].tolist() == [0.5, 1.5]
    assert batch[1].state["b"]["c"].tolist() == [1.5]
    with pytest.raises(ValueError, match=r"fields of column 'state' .* got a \(2,\), b \(1,\)"):
        Transitions(state={"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="fields of column"):
        Transitions(state={})


@pytest.mark.parametrize("name", ["done", "dones", "terminal", "terminals", "is_terminal"])
def test_an_end_without_a_reason_is_refused_by_its_name(name):
    with pytest.raises(ValueError, match=f"a column '{name}' and none 'terminated'"):
        Transitions(**{"state": [0], name: [True]})
    Transitions(**{"state": [0], name: [True], "terminated": [False]})


def test_masked_values_are_refused():
    reward = np.ma.masked_array([1.0, 999.0], [False, True])
    with pytest.raises(ValueError, match="column 'reward' has masked values"):
        Transitions(reward=reward)
    assert Transitions(reward=np.ma.masked_array([1.0, 2.0])).reward.tolist() == [1.0, 2.0]
