"""A batch is checked as a whole before anything of it is learned from."""

import numpy as np
import pytest
from dumb_ray import DumbRay
from many_learners import BEHAVIOUR, asked, stream

import gvf
from gvf.horde import cuts
from gvf.jobs import RayCluster
from gvf.jobs import ray_cluster as cluster

TILES = gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4)
IR = gvf.corrections.IR()
ROWS, BAD = 1000, 600


def made(correction: gvf.corrections.Correction = IR, questions=None, **options):
    options = {"window": 40, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return gvf.Horde(questions or asked(), TILES, gvf.updates.TD(0.1), correction, **options)


def from_column(transitions):
    return transitions["column"]


def data_with(name, value, at=BAD):
    """A stream with one value that cannot be used."""
    data = stream(ROWS, states=0, ends=0.0)
    columns = {**data.columns, "column": np.full(ROWS, 0.5)}
    columns[name] = np.array(columns[name])
    columns[name][at] = value
    return gvf.Transitions(**columns)


def assert_unchanged(before, horde):
    after = horde._arrays()
    assert list(after) == list(before)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)


BROKEN = {
    "action": ("action", 7),
    "state": ("state", np.nan),
    "continuation": ("column", 1.5),
    "a row that does not follow": ("next_state", 0.25),
}


@pytest.mark.parametrize("workers", [None, RayCluster()], ids=["here", "on a cluster"])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_bad_row_is_named_and_no_row_before_it_is_learned_from(broken, workers, monkeypatch):
    ray, (name, value) = DumbRay(), BROKEN[broken]
    monkeypatch.setattr(cluster, "import_ray", lambda: ray)
    asked_too = gvf.GVF(gvf.policies.Uniform(3), "reward", from_column, name="asked")
    horde = made(gvf.corrections.EmphaticIR(0.5), [*asked(), asked_too], workers=workers)
    data = data_with(name, value, BAD + 50)
    horde.observe(data[:50])
    before = horde._arrays()
    at = BAD + (broken == "a row that does not follow")
    with pytest.raises(ValueError, match=rf"position {at}\b") as caught:
        horde.observe(data[50:])
    assert not hasattr(caught.value, "__notes__")
    assert horde.steps == 50
    assert_unchanged(before, horde)


def test_learn_names_the_row_of_the_source():
    horde, data = made(), data_with("action", 7)
    with pytest.raises(ValueError, match="position 600") as caught:
        horde.learn([data], progress=False)
    assert caught.value.__notes__ == ["Positions count from transition 0 of the source."]
    assert horde.steps == 0
    batches = [data_with("action", 1)[:300], data[300:]]
    with pytest.raises(ValueError, match="position 300") as caught:
        horde.learn(batches, progress=False)
    assert caught.value.__notes__ == ["Positions count from transition 300 of the source."]
    assert horde.steps == 300


def test_a_batch_too_large_to_be_checked_at_once_says_how_many_were_learned(monkeypatch):
    monkeypatch.setattr(cuts, "ROOM", 1)  # so that 256 rows are checked together
    horde = made()
    with pytest.raises(ValueError, match="position 88") as caught:
        horde.observe(data_with("action", 7))
    (note,) = caught.value.__notes__
    assert "from transition 512 of the batch" in note
    assert "512 transitions have been learned from" in note
    assert horde.steps == 512


def test_rows_that_are_checked_together_change_no_bit(monkeypatch):
    data, hordes = stream(ROWS, states=0), [made(gvf.corrections.EmphaticIR(0.5)) for _ in range(2)]
    hordes[0].observe(data)
    monkeypatch.setattr(cuts, "ROOM", 1)
    hordes[1].observe(data)
    assert_unchanged(hordes[0]._arrays(), hordes[1])


def test_the_rows_checked_together_follow_the_memory_that_they_take():
    few, many = (
        next(iter(cuts.checked_together(10**9, horde._bytes_of_row))).stop
        for horde in (made(), made(questions=asked(400)))
    )
    assert few > 10_000
    numbers = 400 * (1 + 1 + 2)  # a ratio of each policy; a ratio, a mass and a copy of each group
    assert (1 << 26) / 8 / numbers > many > (1 << 26) / 8 / (numbers + 200)


def test_an_interrupt_before_any_row_is_learned_from_changes_nothing(monkeypatch):
    def interrupted(rows):
        raise KeyboardInterrupt

    horde, data = made(), data_with("reward", np.nan, at=60)
    horde.observe(data[:50])
    before = horde._arrays()
    with monkeypatch.context() as patch:
        patch.setattr(horde._shard, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            horde.observe(data[50:])
    assert_unchanged(before, horde)
