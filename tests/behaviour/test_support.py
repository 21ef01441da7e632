"""The support of a target policy by a behaviour, and logs without some rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from acted import needs_scikit_learn, shown, table_log, vector_log
from own_policies import LEVEL

import gvf

MU = gvf.policies.Table([[0.5, 0.5], [0.995, 0.005], [0.2, 0.8]])
PI = gvf.policies.Table([[0.1, 0.9], [0.5, 0.5], [0.2, 0.8]])


def recorded(mu: Any, states: int, **options: int) -> gvf.Log:
    """A log with the probabilities of its actions."""
    log = table_log(mu, states, **options)
    return log.with_columns(
        lambda batch: {"behaviour_probability": mu.probability(batch.state, batch.action)}
    )


def test_lost_mass_and_cost_are_those_of_their_definitions() -> None:
    log = table_log(MU, 3, episodes=50, steps=20)
    found = gvf.check_support(log, PI, behaviour=MU)
    batch = log.transitions()
    for c, share in found.lost.items():
        lost = [
            sum(PI.rows[s, a] for a in (0, 1) if MU.rows[s, a] < c) for s in batch.state.tolist()
        ]
        assert share.value == pytest.approx(np.mean(lost))
    assert list(found.lost) == [0.001, 0.01, 0.1]
    cost = (PI.rows**2 / MU.rows).sum(axis=1)
    np.testing.assert_allclose(found.cover.cost, cost[batch.state])
    ratio = gvf.policies.ratio(PI, batch.state, batch.action, behaviour=MU)
    assert found.effective_sample_size == pytest.approx(ratio.sum() ** 2 / (ratio**2).sum())
    assert found.largest_ratio == ratio.max()
    worst = found.worst(3)
    assert {row["state"] for row in worst} == {1}
    assert worst[0]["cost"] == pytest.approx(cost[1])
    assert worst[0]["lost"] == 0.5
    assert batch.action[worst[0]["row"]] == worst[0]["action"]
    assert found.by_state()[0].name == "state 1"
    assert found.by_state()[0].lost.value == 0.5
    assert not found.estimated


def test_recorded_probabilities_estimate_the_same_mass() -> None:
    log = recorded(MU, 3, episodes=2000, steps=20)
    every, known = gvf.check_support(log, PI), gvf.check_support(log, PI, behaviour=MU)
    limit = scipy.stats.norm.isf(LEVEL / 2)
    for c in (0.01, 0.1):
        error = (every.lost[c].high - every.lost[c].low) / (2 * 1.959964)
        assert abs(every.lost[c].value - known.lost[c].value) < limit * error
    assert abs(every.mean_ratio.value - 1) < limit * (every.mean_ratio.high - 1) / 1.9
    assert "estimated from recorded actions" in shown(every)
    assert "state by state" in shown(known)


def test_intervals_are_over_episodes_not_rows() -> None:
    # The state stays the same in an episode, and so does what is lost in it.
    walks = [{"state": [s] * 21, "action": [s % 2] * 20} for s in (0, 1, 2) * 10]
    found = gvf.check_support(gvf.read_log(walks, ends="truncated", quiet=True), PI, behaviour=MU)
    rows = found.batch["state"]
    for share, each in (
        (found.lost[0.01], np.where(rows == 1, 0.5, 0.0)),
        (found.mean_ratio, (PI.rows / MU.rows)[rows, rows % 2]),
    ):
        means = [each[found.batch["episode"] == e].mean() for e in range(30)]
        half = 1.959964 * np.std(means, ddof=1) / np.sqrt(30)
        assert [*share] == pytest.approx([each.mean(), each.mean() - half, each.mean() + half])


def test_a_record_that_contradicts_the_behaviour_is_refused_as_learners_do() -> None:
    log, other = recorded(MU, 3, episodes=50, steps=20), gvf.policies.Table([[0.4, 0.6]] * 3)
    learner = gvf.Learner(gvf.GVF(PI), gvf.features.OneHot(3), gvf.updates.TD(0.1), behaviour=other)
    messages = []
    for use in (
        lambda: learner.observe(log.transitions()),
        lambda: gvf.check_support(log, PI, behaviour=other),
    ):
        with pytest.raises(ValueError, match=r"transition 0 .*recorded as .*on_conflict=") as error:
            use()
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    with pytest.raises(ValueError, match="transition 0") as error:
        gvf.check_support(log, PI, behaviour=other, rows=100)
    assert error.value.__notes__ == ["Positions count among the 100 rows looked at."]
    # Either of the two may be right.
    options: Any = {"behaviour": other, "on_conflict": "recorded"}
    assert shown(gvf.check_support(log, PI, **options)) == shown(gvf.check_support(log, PI))
    found = gvf.check_support(log, PI, behaviour=other, on_conflict="behaviour")
    bare = table_log(MU, 3, episodes=50, steps=20)
    assert shown(found) == shown(gvf.check_support(bare, PI, behaviour=other))
    trimmed = [
        one.trim(largest_ratio=1.2).rows
        for one in (found, gvf.check_support(bare, PI, behaviour=other))
    ]
    assert trimmed[0] == trimmed[1] > 0
    with pytest.raises(ValueError, match="on_conflict must be one of"):
        gvf.check_support(log, PI, on_conflict="ask")  # pyright: ignore[reportArgumentType]


def test_what_the_behaviour_never_does_shows_in_the_mean_ratio() -> None:
    never = gvf.policies.Table([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]])
    found = gvf.check_support(recorded(never, 3, episodes=500, steps=20), PI)
    # A third of the states lose half of the target's mass.
    assert found.mean_ratio.low < 5 / 6 < found.mean_ratio.high
    assert "of the target's mass is where the behaviour never goes" in shown(found)
    log = table_log(never, 3, episodes=50, steps=20)
    known = gvf.check_support(log, PI, behaviour=never)
    assert known.lost[0.01].value == pytest.approx((log.transitions().state == 1).mean() / 2)
    assert known.cover.cost.max() == np.inf


def test_wrong_probabilities_show_in_the_mean_ratio() -> None:
    log = table_log(MU, 3, episodes=200, steps=20)
    found = gvf.check_support(
        log, gvf.policies.Fixed([0.9, 0.1]), behaviour=gvf.policies.Fixed([0.3, 0.7])
    )
    assert "The mean ratio is above 1" in shown(found)


def test_continuous_actions_are_lost_where_the_density_is_small() -> None:
    mu, pi = (
        gvf.policies.Gaussian(lambda s: s[:, 0], 1.0),
        gvf.policies.Gaussian(lambda s: s[:, 0] + 2, 1.0),
    )
    found = gvf.check_support(vector_log(mu, episodes=100, steps=20), pi, behaviour=mu)
    # log(pi / mu) = 2 (a - s) - 2, and a - s is N(2, 1) under the target.
    for c, share in found.lost.items():
        expected = scipy.stats.norm.sf((2 - np.log(c)) / 2 - 2)
        assert share.value == pytest.approx(expected, abs=0.01)
    assert np.median(found.cover.cost) > 2
    assert "density, relative to the target's," in shown(found)
    assert found.by_state()[0].name.startswith("state[")


def test_groups_of_states_have_the_names_of_columns_and_one_value_each_if_there_are_few() -> None:
    rng = np.random.default_rng(0)
    columns = {"mass": rng.normal(size=600), "age": rng.choice([0, 1, 2], 600, p=[0.2, 0.2, 0.6])}
    never = columns["age"] == 2
    columns["action"] = np.where(never, 0, rng.integers(2, size=600))
    columns["patient"] = np.arange(600) // 5

    def careful(states: Any) -> Any:
        return np.where(states[:, 1:] == 2, [1.0, 0.0], [0.5, 0.5])

    log = gvf.read_log(
        columns, state=["mass", "age"], action="action", episode="patient", ends="terminated",
        quiet=True,
    )  # fmt: skip
    mu = gvf.policies.Function(careful, actions=2)
    found = gvf.check_support(log, gvf.policies.Fixed([0.5, 0.5]), behaviour=mu)
    groups = {group.name: group for group in found.by_state()}
    ages = [groups[f"age = {k}"] for k in range(3)]
    assert [group.rows for group in ages] == [int((columns["age"] == k).sum()) for k in range(3)]
    assert [group.lost.value for group in ages] == [0.0, 0.0, 0.5]
    masses = [group for name, group in groups.items() if name.startswith("mass from")]
    assert len(masses) == 8 == len(groups) - 3
    assert "age = 2: 50 %" in shown(found)
    # A point of the picture is drawn at the middle of its group.
    line = next(a for a in found.plot().axes[1].containers if a.get_label() == "age")
    shares = np.bincount(columns["age"]) / 600
    np.testing.assert_allclose(line[0].get_xdata(), 100 * (np.cumsum(shares) - shares / 2))


def test_the_support_of_an_estimate_is_cross_fitted_and_says_that_it_is_one() -> None:
    log = table_log(MU, 3, episodes=300, steps=20)
    behaviour = gvf.estimate_behaviour(log)
    found = behaviour.support(PI, least=0.03)
    np.testing.assert_array_equal(
        found.cover.behaviour_mass, behaviour.probabilities(log.transitions())
    )
    assert found.estimated
    assert "probabilities are estimated" in shown(found)
    assert found.lost[0.03].value == pytest.approx(1 / 6, abs=0.03)
    assert gvf.check_support(behaviour.log, PI).estimated
    assert gvf.check_support(log, PI, behaviour=behaviour.policy).estimated


@pytest.mark.parametrize("rule", [{"most": 0.4}, {"largest_ratio": 20.0}])
def test_a_trimmed_log_says_what_is_gone(rule: dict[str, float]) -> None:
    log = recorded(MU, 3, episodes=50, steps=20)
    batch, before = log.transitions(), len(log)
    found = gvf.check_support(log, PI, behaviour=MU).trim(**rule)
    ratio = gvf.policies.ratio(PI, batch.state, batch.action, behaviour=MU)
    gone = batch.state == 1 if "most" in rule else ratio > 20
    assert 0 < gone.sum() == found.rows == before - len(found.log)
    assert found.share == pytest.approx(gone.mean())
    assert found.mass == pytest.approx(ratio[gone].sum() / ratio.sum())
    assert f"{gone.sum()} rows removed" in shown(found)
    rest = found.log.transitions()
    for name in ("state", "action", "next_state", "behaviour_probability"):
        np.testing.assert_array_equal(rest[name], batch[name][~gone])
    # An episode goes on only where the next row has remained.
    position = np.flatnonzero(~gone)
    follows = (np.diff(position) == 1) & ~batch.truncated[position[:-1]]
    np.testing.assert_array_equal(rest.truncated[:-1], ~follows)
    np.testing.assert_array_equal(np.diff(rest.episode) == 0, follows)
    assert found.cuts == rest.truncated.sum() - batch.truncated[~gone].sum()
    assert len(log) == before
    again = gvf.check_support(found.log, PI, behaviour=MU).trim(**rule)
    assert again.rows == 0


def test_a_trimmed_log_remains_marked_and_is_learned_from() -> None:
    log = table_log(MU, 3, episodes=100, steps=20).with_columns(
        lambda batch: {"reward": 1.0 * batch.state}
    )
    found = gvf.estimate_behaviour(log).support(PI).trim(largest_ratio=10.0)
    assert found.log.has_estimates
    learner = gvf.Learner(
        gvf.GVF(PI), gvf.features.OneHot(3), gvf.updates.TD(0.1), n_step=2, seed=0
    )
    assert learner.fit(found.log, order="log").estimated


BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"target": 3}, {}, "target must be a gvf.policies.Policy"),
    ({"target": PI, "least": 2.0}, {}, "between 0 and 1"),
    ({"target": PI, "behaviour": 0.5}, {}, "behaviour must be a gvf.policies.Policy"),
    ({"target": PI}, {}, "give one rule"),
    ({"target": PI}, {"most": 0.1, "largest_ratio": 3.0}, "give one rule"),
    ({"target": PI}, {"most": 0.1}, "whole distribution"),
    ({"target": PI}, {"largest_ratio": -1.0}, "0 or more"),
    ({"target": PI}, {"largest_ratio": 0.0}, "no row would remain"),
    ({"target": gvf.policies.Uniform(3), "behaviour": MU}, {}, "must have the same"),
]


@pytest.mark.parametrize(("options", "rule", "message"), BAD)
def test_bad_options_are_told(options: Any, rule: Any, message: str) -> None:
    log = recorded(MU, 3, episodes=5, steps=5)
    with pytest.raises((TypeError, ValueError), match=message):
        gvf.check_support(log, **options).trim(**rule)


def test_an_unknown_behaviour_is_to_be_given_or_estimated() -> None:
    with pytest.raises(ValueError, match=r"gvf\.estimate_behaviour"):
        gvf.check_support(table_log(MU, 3, episodes=5, steps=5), PI)
    with pytest.raises(TypeError, match=r"must be a gvf\.Log"):
        gvf.check_support([1, 2], PI)  # pyright: ignore[reportArgumentType]


@needs_scikit_learn
def test_a_ratio_that_an_estimate_extrapolates_is_named() -> None:
    """No action has a probability below 0.03, and a logistic model of 900 rows has 0.0005."""
    rng, walks = np.random.default_rng(0), []
    for _ in range(60):
        x = rng.normal(size=16)
        p = np.clip(1 / (1 + np.exp(-4 * x[:-1])), 0.03, 0.97)
        action = (rng.random(15) < p).astype(int)
        walks.append({"state": x[:, None], "action": action, "mu": np.where(action, p, 1 - p)})
    log = gvf.read_log(walks, behaviour_probability="mu", ends="truncated", quiet=True)
    assert gvf.check_support(log, gvf.policies.Uniform(2)).extrapolated is None
    found = gvf.estimate_behaviour(log).support(gvf.policies.Uniform(2))
    assert found.largest_ratio > 500
    assert found.extrapolated == pytest.approx(0.5 / found.largest_ratio)
    assert f"rests on an ESTIMATED probability of {found.extrapolated:.2g}" in shown(found)
    share = found.largest_ratio / found.cover.ratio.sum()
    assert share > 0.1
    assert f"{100 * share:.2g} % of the sum" in shown(found)
    assert replace(found, estimated=False).extrapolated is None
    assert replace(found, rows=25_000).extrapolated is None  # about 12 rows tell it
    ratio = np.ones(900)
    for largest, share in ((40.0, False), (60.0, True)):  # 4 and 6 % of the sum
        ratio[5] = largest
        cover = replace(found.cover, ratio=ratio)
        changed = replace(found, cover=cover, largest_ratio=largest)
        assert (changed.extrapolated is not None) == share
