"""The oracle of hordes: a learner for each question, with the slots that the horde drew."""

from collections.abc import Iterator

import numpy as np

import gvf
from gvf.learners import update_loop as loop
from gvf.window.buffer import write_means

ACTIONS = 3
BEHAVIOUR = gvf.policies.Fixed([0.2, 0.3, 0.5])
CORRECTIONS = [
    gvf.corrections.IR(),
    gvf.corrections.BCIR(),
    gvf.corrections.IS(),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.WISBuffer(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.VTrace(),
    gvf.corrections.NormIS(5.0),
    gvf.corrections.Interpolated(0.5),
    gvf.corrections.EmphaticIR(0.5),
    gvf.corrections.EmphaticIS(0.5),
]


def near_the_edge(transitions):
    """A continuation that depends on the state."""
    return np.where(np.reshape(transitions["next_state"], (len(transitions), -1))[:, 0] > 0.7, 0, 1)


def many_signals(transitions):
    """Three cumulants at once, [m, 3]."""
    reward = transitions["reward"]
    return np.column_stack([reward, reward**2, 1.0 - reward])


def stream(steps, *, states, seed=0, ends=0.1):
    """A walk through random states, numbers in [0, 1)^2 or whole ones below `states`."""
    rng = np.random.default_rng(seed)

    def some(count):
        return rng.integers(states, size=count) if states else rng.random((count, 2))

    state, terminated = some(steps), rng.random(steps) < ends
    truncated = ~terminated & (rng.random(steps) < ends / 2)
    next_state = np.roll(state, -1, axis=0)
    next_state[terminated | truncated] = some(int((terminated | truncated).sum()))
    next_state[-1:] = some(1)
    return gvf.Transitions(
        state=state,
        action=BEHAVIOUR.sample(np.zeros(steps), rng=rng),
        reward=rng.normal(size=steps),
        next_state=next_state,
        terminated=terminated,
        truncated=truncated,
    )


def asked(policies=4, *, seed=1):
    """Questions about some policies of different kinds, with shared and own parts."""
    rng = np.random.default_rng(seed)
    named: dict[str, gvf.policies.Policy]
    named = {
        f"pi{i}": gvf.policies.Fixed(rng.dirichlet(np.ones(ACTIONS))) for i in range(policies - 1)
    }
    named["never 2"] = gvf.policies.Always(1, actions=ACTIONS)
    signals = {"reward": "reward", "one": lambda t: np.ones(len(t))}
    signals |= gvf.SignalBank(many_signals, ["first", "second", "third"])
    horizons = {"0": 0.0, "0.9": 0.9, "edge": near_the_edge}
    some = gvf.question_grid(named, signals, horizons)
    return [q for q in some if rng.random() < 0.7]


def record(horde, states) -> list:
    """Keep the batches that a horde draws from now on, in the list returned."""
    horde._predict(states)  # makes the draws
    batches: list = []
    insert = horde._shard.draws.insert

    def inserting(*given):
        batches.append(insert(*given))
        return batches[-1]

    horde._shard.draws.insert = inserting
    return batches


def slots_of(batches, group, window, since=0, whole=False) -> Iterator:
    """The slots of one group, update by update; None where it had no mass.

    They are those of a learner that begins with row `since`, whose rows the horde must draw.
    """
    for batch in batches:
        for u, newest in enumerate(batch.times):
            shared = batch.slots.shape[1] == 1
            slots = batch.slots[u, 0 if shared else group]
            row = newest - (newest - slots) % window
            row = row[row >= since] if whole else row
            assert (row >= since).all()
            yield (row - since) % window if batch.has_mass[u, group] else None


def learner_like(horde, question, batches):
    """A learner for one question of a horde that draws what the horde has drawn."""
    options, arguments = horde._shard.options, horde.arguments()
    learner = gvf.Learner(
        horde.questions[question],
        arguments["features"],
        arguments["update"],
        options.correction,
        behaviour=horde.behaviour,
        window=options.window,
        batch_size=options.batch_size,
        update_every=options.update_every,
        warm_up=options.warm_up,
    )
    group = int(horde._layout.group[horde._layout.place[question]])
    since = int(horde._layout.since[question])
    whole = options.correction.draw.whole
    given = slots_of(batches, group, options.window, since, whole)
    buffer, values = learner.buffer, learner.values

    def draw(k, rng):
        write_means(buffer.masses, buffer.mass, buffer._means)
        return next(given)

    buffer.draw = draw

    def observe(buffer, rows, schedule, repeats=0):
        assert not repeats
        loop.observe(values, buffer, rows, schedule)

    values._observe = observe
    return learner
