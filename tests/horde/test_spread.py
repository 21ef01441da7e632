"""A horde on a cluster has the bits of a horde of one process, also if workers die."""

import copy
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dumb_ray import DumbRay
from many_learners import BEHAVIOUR, asked, near_the_edge, stream
from test_horde import CORRECTIONS

import gvf
from gvf.common.distribution import how_to_install
from gvf.horde import ray_shards as spread
from gvf.horde.layout import Layout
from gvf.jobs import RayCluster
from gvf.jobs import ray_cluster as cluster

TILES = gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4)
WAVES = np.random.default_rng(0).normal(size=(2, 1024))


def waves(states):
    return np.cos(states @ WAVES)


KINDS = {
    "tiles": (TILES, gvf.updates.TD(0.1)),
    "dense": (
        gvf.features.Dense(5, lambda s: np.column_stack([np.ones(len(s)), s, s**2])),
        gvf.updates.TD(0.1),
    ),
    "default step size": (TILES, gvf.updates.TD()),
    "TDRC": (TILES, gvf.updates.TDRC(0.05)),
}


def made(kind="tiles", questions=None, **options):
    features, update = KINDS[kind]
    options = {"window": 40, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    if options.get("workers") is None:
        options["threads"] = 1
    return gvf.Horde(questions or asked(6), features, update, **options)


def feed(horde, data, pieces=(1, 30, 7, 90)):
    start = 0
    while start < len(data):
        for rows in pieces:
            horde.observe(data[start : start + rows])
            start += rows


def assert_same_bits(one, other):
    ours, theirs = one._arrays(), other._arrays()
    assert list(ours) == list(theirs)
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
        assert array.dtype == theirs[name].dtype
    states = np.random.default_rng(3).random((9, 2))
    np.testing.assert_array_equal(one.predict(states), other.predict(states))
    for name in one.names[::7]:
        np.testing.assert_array_equal(one.weights(name), other.weights(name))
    assert repr(one.report()) == repr(other.report())


@pytest.fixture
def dumb(monkeypatch):
    """Hordes with the engine "ray" use a cluster in this process."""

    def use(**options):
        ray = DumbRay(**options)
        monkeypatch.setattr(cluster, "import_ray", lambda: ray)
        return ray

    return use


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_are_those_of_one_process(dumb, kind, correction):
    ray, data = dumb(), stream(200, states=0)
    data.reward[60:63] = np.nan
    alone = made(kind, correction=correction)
    several = made(kind, correction=correction, workers=RayCluster(workers=3))
    for horde in (alone, several):
        feed(horde, data)
    assert len(ray.actors) == 3
    assert_same_bits(alone, several)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_any_number_of_workers_has_the_same_bits(dumb, workers):
    """Also if a sensor of one policy fails, of which the workers of the others know nothing."""
    ray, data = dumb(), stream(400, states=0)
    own = data.reward.copy()
    own[[100, 230]] = np.nan
    data = gvf.Transitions(**data.columns, own=own)
    first = asked(6)
    questions = [replace(first[0], cumulant="own", name="own"), *first]
    alone = made("dense", questions)
    several = made("dense", questions, workers=RayCluster(workers=workers))
    for horde in (alone, several):
        feed(horde, data)
    assert len(ray.actors) == workers
    assert_same_bits(alone, several)


def test_a_worker_gets_only_what_its_policies_need(dumb):
    dumb()
    signals = {str(i): partial(weighed, i) for i in range(4)}
    policies = {str(i): gvf.policies.Favour(0, 0.2 + 0.2 * i, 3) for i in range(4)}
    questions = [
        gvf.GVF(policy, signals[name], near_the_edge if name == "2" else 0.5, name=name)
        for name, policy in policies.items()
    ]
    horde = made("tiles", questions, workers=RayCluster(workers=2))
    horde._predict([[0.5, 0.5]])
    shards = horde._shards
    assert isinstance(shards, spread.RayShards)
    data = stream(20, states=0)
    horde.observe(data)
    ((features, parts),) = shards._rows
    assert sorted(features.value()) == ["x", "x_next"]
    for part, own in zip(parts, ([0, 1], [2, 3]), strict=True):
        assert (part.inputs.shape, part.p.shape) == ((1, 2, 20), (2, 20))
        np.testing.assert_array_equal(
            part.columns["cumulant"], np.stack([weighed(i, data) for i in own], axis=1)
        )
        assert part.columns["continuation"].shape == (20, 1 + (2 in own))
        assert len(part.largest) == 2 + 1 + (2 in own)
        largest = [np.abs(weighed(i, data)).max() for i in own]
        np.testing.assert_array_equal(part.largest[:2], largest)


def weighed(factor, transitions):
    return factor * transitions["reward"]


def test_single_precision_has_the_same_bits(dumb):
    dumb()
    data = stream(200, states=0)
    for kind in ("tiles", "dense"):
        alone, several = (
            made(kind, dtype="float32"),
            made(kind, dtype="float32", workers=RayCluster()),
        )
        for horde in (alone, several):
            feed(horde, data)
        assert_same_bits(alone, several)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [20, 10**6], ids=["checkpoints", "no checkpoint"])
def test_workers_that_die_change_no_bit(dumb, monkeypatch, kind, every):
    monkeypatch.setattr(spread, "CHECKPOINT_EVERY", every)
    data = stream(300, states=0)
    alone = made(kind, correction=gvf.corrections.EmphaticIR(0.5))
    feed(alone, data, pieces=(5,))
    for die_before in ({1}, {2, 60}, {30, 31, 33}, {70, 90, 91, 100}, {110, 115, 117, 118}):
        ray = dumb(die_before=die_before)
        several = made(
            kind, correction=gvf.corrections.EmphaticIR(0.5), workers=RayCluster(workers=2)
        )
        feed(several, data, pieces=(5,))
        assert_same_bits(alone, several)
        assert len(ray.actors) == 2 + len(die_before)


def test_a_worker_that_is_killed_at_any_moment_changes_no_bit(dumb, monkeypatch):
    monkeypatch.setattr(spread, "CHECKPOINT_EVERY", 20)
    data = stream(60, states=0)
    alone = made()
    feed(alone, data, pieces=(5,))
    for moment in range(12):
        ray = dumb()
        several = made(workers=RayCluster(workers=2))
        feed(several, data[: 5 * moment], pieces=(5,))
        several._predict([[0.5, 0.5]])
        ray.actors[moment % 2].dead = True
        feed(several, data[5 * moment :], pieces=(5,))
        assert_same_bits(alone, several)


def test_an_interrupted_call_observes_nothing(dumb, monkeypatch):
    monkeypatch.setattr(spread, "CHECKPOINT_EVERY", 20)
    data = stream(60, states=0)
    alone = made()
    feed(alone, data, pieces=(5,))
    # First before the second worker gets the rows, then while the first gets all of them again.
    monkeypatch.setattr(spread, "_AHEAD", 2)
    ray = dumb(interrupt_at={6, 10})
    several, interrupts = made(workers=RayCluster(workers=2)), 0
    while several.steps < 60:
        before = several.steps
        try:
            several.observe(data[before : before + 5])
        except KeyboardInterrupt:
            interrupts += 1
            assert several.steps in (before, before + 5)
    assert (interrupts, len(ray.actors)) == (2, 5)
    assert_same_bits(alone, several)


def test_rows_and_calls_ahead_are_bounded(dumb, monkeypatch):
    monkeypatch.setattr(spread, "CHECKPOINT_EVERY", 20)
    dumb()
    horde = made(workers=RayCluster(workers=2))
    data, most = stream(300, states=0), 0
    for start in range(0, 300, 2):
        horde.observe(data[start : start + 2])
        shards = horde._shards
        assert isinstance(shards, spread.RayShards)
        assert max(map(len, shards._ahead)) <= spread._AHEAD
        most = max(most, len(shards._rows))
    assert 10 < most <= 10 + spread._AHEAD + 1


def test_workers_that_always_die_are_given_up(dumb):
    ray = dumb(die_before=range(1000))
    horde = made(workers=RayCluster(workers=2))
    with pytest.raises(RuntimeError, match="have died 10 times since the last checkpoint"):
        feed(horde, stream(300, states=0), pieces=(5,))
    assert len(ray.actors) == 2 + 10


def test_the_chunk_is_that_of_all_questions(dumb):
    dumb()
    signals = {str(i): "reward" for i in range(64)}
    policies = [
        gvf.policies.Fixed(p) for p in np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    ]
    questions = gvf.question_grid({"many": policies[0]}, signals, [0.9])
    questions += gvf.question_grid({"b": policies[1], "c": policies[2]}, {"0": "reward"}, [0.9])
    data = stream(100, states=0)
    alone, several = (
        made("dense", questions),
        made("dense", questions, workers=RayCluster(workers=2)),
    )
    largest = made("dense", questions[:64])
    for horde in (alone, several, largest):
        feed(horde, data)
    assert alone._shard.steps_per_call < largest._shard.steps_per_call
    assert_same_bits(alone, several)


def test_shares_have_about_as_many_questions():
    questions = [
        gvf.GVF(gvf.policies.Favour(0, 0.5 + 0.1 * i, 3), "reward", name=f"{i}, {j}")
        for i, count in enumerate((10, 10, 10, 60, 10))
        for j in range(count)
    ]
    layout = Layout(questions, gvf.corrections.IR())
    for count, sizes in ((2, [30, 70]), (100, [10, 10, 10, 60, 10])):
        places = spread.places_of_shards(layout, count)
        assert [len(place.layout) for place in places] == sizes


@pytest.mark.parametrize("steps", [0, 70])
def test_a_file_is_that_of_one_process_and_goes_on_anywhere(dumb, tmp_path, steps):
    dumb()
    data = stream(120, states=0)
    correction = gvf.corrections.EmphaticIR(0.5)
    alone, several = (
        made(correction=correction),
        made(correction=correction, workers=RayCluster(workers=2)),
    )
    for name, horde in (("alone", alone), ("several", several)):
        feed(horde, data[:steps])
        horde.save(tmp_path / name)
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "several").read_bytes()
    back = made(correction=correction, seed=5)
    back.load(tmp_path / "several", same_functions=True)
    there = made(correction=correction, seed=5, workers=RayCluster(workers=3))
    there.load(tmp_path / "alone", same_functions=True)
    for horde in (alone, back, there):
        feed(horde, data[steps:])
    assert_same_bits(alone, back)
    assert_same_bits(alone, there)


def test_questions_come_and_go_and_hordes_are_copied(dumb):
    ray, data = dumb(), stream(160, states=0)
    questions = asked(6)
    hordes = [made(questions=questions[:-9]), made(questions=questions[:-9], workers=RayCluster())]
    for horde in hordes:
        feed(horde, data[:50])
        horde.add(questions[-9:])
        feed(horde, data[50:90])
        horde.remove([q.name for q in questions[3:8]])
    hordes.append(copy.deepcopy(hordes[1]))
    assert isinstance(hordes[2]._shards, spread.RayShards)
    ray.actors[-1].dead = True
    for horde in hordes:
        feed(horde, data[90:])
    assert_same_bits(hordes[0], hordes[1])
    assert_same_bits(hordes[0], hordes[2])


@pytest.mark.parametrize("correction", [gvf.corrections.OnPolicy(), gvf.corrections.IS()])
def test_added_questions_leave_out_rows_that_they_do_not_know(dumb, correction):
    dumb()
    data, first = stream(100, states=0), asked(6)[:5]
    # A cumulant of its own, which rows before do not have.
    new = [replace(q, cumulant=lambda t: 1.0 + t.reward, name=f"{q.name}, more") for q in first]
    hordes = [
        made(questions=first, correction=correction, workers=place)
        for place in (None, RayCluster())
    ]
    for horde in hordes:
        feed(horde, data[:50])
        horde.add(new)
        feed(horde, data[50:])
    assert_same_bits(*hordes)


def test_a_failed_observation_is_sent_to_nobody(dumb):
    dumb()
    data = stream(40, states=0, ends=0.0)
    alone, several = (
        made(correction=gvf.corrections.EmphaticIR(0.5), workers=place)
        for place in (None, RayCluster())
    )
    for horde in (alone, several):
        feed(horde, data[:20])
        with pytest.raises(ValueError, match="does not begin in the state"):
            horde.observe(data[[20, 35]])
        feed(horde, data[20:])
    assert_same_bits(alone, several)


def test_what_does_not_fit_a_cluster_is_refused(monkeypatch):
    with pytest.raises(TypeError, match=r"workers must be a gvf\.jobs\.RayCluster, got .*threads="):
        made(workers=2)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(how_to_install("gvf[ray]"))):
        made(workers=RayCluster())
    monkeypatch.setattr(cluster, "import_ray", lambda: None)
    with pytest.raises(ValueError, match="give their number"):
        made(workers=RayCluster(), threads=2)


def test_a_part_of_a_layout_has_no_function_and_the_same_places():
    layout = Layout(asked(6), gvf.corrections.IR())
    part = layout.part(2, 5)
    pickle.dumps(part)
    places = slice(*layout.starts[[2, 5]].tolist())
    assert (len(part), part.groups) == (places.stop - places.start, 3)
    np.testing.assert_array_equal(part.group, layout.group[places] - 2)
    np.testing.assert_array_equal(part.starts, layout.starts[2:6] - layout.starts[2])
    np.testing.assert_array_equal(part.scale, layout.scale[places])


@pytest.fixture(scope="module")
def ray():
    """A cluster on this machine, for all tests below."""
    ray = pytest.importorskip("ray")
    yield ray
    ray.shutdown()


@pytest.mark.skipif(os.name != "posix", reason="Ray is tested where it runs best")
@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
@pytest.mark.parametrize("kind", ["tiles", "dense"])
def test_ray_gives_the_same_bits_although_workers_are_killed(ray, monkeypatch, kind):
    monkeypatch.setattr(spread, "CHECKPOINT_EVERY", 64)
    data = stream(400, states=0)
    alone, several = made(kind), made(kind, workers=RayCluster(workers=2))
    for horde in (alone, several):
        feed(horde, data[:30])
    shards = several._shards
    assert isinstance(shards, spread.RayShards)
    first = list(shards._actors)
    ray.kill(first[0])  # before the first checkpoint, with calls under way
    for horde in (alone, several):
        feed(horde, data[30:200], pieces=(10,))
    several.predict([[0.5, 0.5]])
    feed(several, data[200:290], pieces=(10,))
    ray.kill(shards._actors[1])  # after some, while rows are sent
    feed(several, data[290:], pieces=(10,))
    feed(alone, data[200:], pieces=(10,))
    assert_same_bits(alone, several)
    assert not {*first} & {*shards._actors}


INTERRUPTED = """
import sys, time
import numpy as np
import gvf
from gvf.jobs import RayCluster
from many_learners import BEHAVIOUR, stream

DATA = stream(20_000, states=0)

def slow():
    print("begun", flush=True)
    for start in range(0, 20_000, 50):
        time.sleep(0.02)
        yield DATA[start : start + 50]

def made(**options):
    questions = gvf.question_grid(
        {"u": gvf.policies.Uniform(3), "one": gvf.policies.Always(1, 3)},
        {"reward": "reward"},
        [0.5, 0.9],
    )
    features = gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4)
    return gvf.Horde(
        questions, features, gvf.updates.TD(0.1), behaviour=BEHAVIOUR, window=40, seed=0, **options
    )

horde = made(workers=RayCluster(workers=2))
horde._predict(DATA.state[:1])
try:
    horde.learn(slow(), progress=False)
except KeyboardInterrupt:
    steps = horde.steps
alone = made(threads=1)
alone.learn((DATA[s : s + 50] for s in range(0, steps, 50)), progress=False)
ours, theirs = horde._arrays(), alone._arrays()
same = all(np.array_equal(array, theirs[name]) for name, array in ours.items())
print(0 < steps < 20_000, same)
"""


@pytest.mark.skipif(os.name != "posix", reason="Ray is tested where it runs best")
def test_an_interrupt_loses_nothing():
    pytest.importorskip("ray")
    folders = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all processes that it started
    told, _ = process.communicate(timeout=120)
    assert told == "True True\n"
