"""The racing domain: all of it by name, and driving as learning goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from roads import learned, same

import gvf
from gvf.corrections.carried import Trace
from gvf_lab.racing import get
from gvf_lab.racing.driving_policies import Behaviour
from gvf_lab.racing.recording import record


def test_a_domain_has_its_environment_behaviour_and_question_by_name() -> None:
    for name, environment in (("torcs", "gvf/Torcs-v0"), ("car-racing", "gvf/CarRacing-v0")):
        domain = get(name)
        assert domain.environment == environment
        assert domain.target("left") == gvf.policies.Gaussian(0.15, 0.0075)
        assert isinstance(domain.behaviour("wander", seed=0), Behaviour)
        assert repr(domain).startswith(f"RacingDomain '{name}', environment {environment}\n")
        with pytest.raises(ValueError, match=f"question of {name}: 'right'; known are 'left'"):
            domain.question("right")
        with pytest.raises(ValueError, match=f"behaviour of {name}: 'x'; known are 'wander'"):
            domain.behaviour("x")
    with pytest.raises(ValueError, match="'bicycle'; known are 'torcs', 'car-racing'"):
        get("bicycle")


@pytest.mark.parametrize(("steps", "batch"), [(100, 7), (64, 64), (5, 64), (3, 1)])
def test_a_stream_is_what_a_recording_holds(
    steps: int, batch: int, flat: Callable[..., None]
) -> None:
    flat(end=12)  # episodes of 7 transitions
    batches = list(get("torcs").stream(steps, seed=4, batch=batch))
    assert [len(piece) for piece in batches[:-1]] == [batch] * ((steps - 1) // batch)
    recording = record("torcs", steps, seed=4)
    assert same(gvf.Transitions.concatenate(batches), recording.transitions())


def test_a_stream_closes_its_simulator(flat: Callable[..., None]) -> None:
    flat()
    stream = get("torcs").stream(30, batch=10)
    made = sys.modules["flat_road"].made
    assert not made  # nothing starts before it is asked for
    assert len(list(islice(stream, 2))) == 2
    assert not made[0].closed
    del stream
    assert made[0].closed
    list(get("torcs").stream(30))
    assert made[1].closed

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:  # with the frames in which it was raised
        record("torcs", 300, progress=stop)
    assert made[2].closed, kept


def test_a_stream_of_nothing_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        get("torcs").stream(0)
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        get("torcs").stream(10, batch=0)


def test_learning_online_is_learning_from_the_recording(flat: Callable[..., None]) -> None:
    flat(end=40)
    online = [learned(get("torcs").stream(120, seed=6, batch=batch), 100) for batch in (64, 9)]
    recorded = learned([record("torcs", 120, seed=6).transitions()], 100)
    for predictions in online:
        assert np.array_equal(predictions, recorded)


def test_a_trace_begins_anew_in_every_episode_of_the_stream(flat: Callable[..., None]) -> None:
    flat(end=12)  # episodes of 7 transitions
    domain = get("torcs")
    stream = gvf.Transitions.concatenate(list(domain.stream(30, seed=4)))
    question = next(iter(domain.questions.values()))
    ratio, _, continuation, _ = question.evaluate(stream)
    trace = Trace(gvf.corrections.EmphaticIR(0.9)).inputs(ratio, continuation, stream)[1]
    assert (trace[::7] == 1.0).all()
    assert (trace > 1.5).any()
