"""True values: dynamic programming against linear solves, rollouts against means, the cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from gvf.common.cache import default_folder, remembered
from gvf.common.xoshiro import streams
from gvf.domain import ContinuousDomain, TabularDomain, get
from gvf.domain import rollouts as evaluation
from gvf.domain.body import NOISE, SOLID
from gvf.domain.four_rooms import FREE
from gvf.policy import Gaussian, Table, Uniform
from gvf.policy.base import thresholds
from gvf.question import GVF
from gvf.truth import Model, TrueValues, exact_values, held_out_returns

DOWN = np.eye(4)[[2] * 121]
COLLISION = np.array([0.0, 1.0]), np.array([0.9, 0.0])


def solved(model: Model, question: GVF) -> np.ndarray:
    """Values by a direct linear solve, entry by entry."""
    states, actions, outcomes = model.probability.shape
    matrix, right = np.eye(states), np.zeros(states)
    pi = question.policy.probabilities(np.arange(states))  # pyright: ignore
    cumulant, continuation = model.signals(question)
    for s in range(states):
        if model.terminal[s]:
            continue
        for a in range(actions):
            for b in range(outcomes):
                chance = pi[s, a] * model.probability[s, a, b]
                right[s] += chance * cumulant[s, a, b]
                matrix[s, model.next_state[s, a, b]] -= chance * continuation[s, a, b]
    return np.linalg.solve(matrix, right)


def random_model(rng: np.random.Generator, states: int, actions: int, outcomes: int) -> Model:
    shape = (states, actions, outcomes)
    return Model(
        probability=rng.dirichlet(np.ones(outcomes), shape[:2]),
        next_state=rng.integers(states, size=shape),
        reward=rng.normal(size=shape),
        terminal=rng.random(states) < 0.2,
    )


def continuous(protocol: str = "paper") -> ContinuousDomain:
    domain = get("continuous-four-rooms", protocol)
    assert isinstance(domain, ContinuousDomain)
    return domain


@pytest.mark.parametrize("name", ["markov-chain", "four-rooms", "star"])
def test_values_of_the_domains_solve_the_linear_equations(name: str) -> None:
    domain = get(name)
    assert isinstance(domain, TabularDomain)
    for question in domain.questions:
        truth = domain.truth(question)
        expected = solved(domain.model, domain.question(question))[truth.states]
        assert truth.values == pytest.approx(expected, abs=2e-14)
        assert not truth.noise.any()


@given(
    seed=st.integers(0, 2**32),
    states=st.integers(1, 6),
    actions=st.integers(1, 3),
    outcomes=st.integers(1, 3),
    continuation=st.floats(0, 0.95),
)
def test_values_of_any_model_solve_the_linear_equations(
    seed, states, actions, outcomes, continuation
) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, states, actions, outcomes)
    question = GVF(Table(rng.dirichlet(np.ones(actions), states)), continuation=continuation)
    assert exact_values(model, question) == pytest.approx(solved(model, question), abs=1e-12)


def test_step_size_zero_on_the_chain() -> None:
    truth = get("markov-chain").truth("hard", "hard")
    assert len(truth.states) == 10
    assert truth.values[[0, 9]].tolist() == [0, 0]
    assert truth.mean_absolute_error(np.zeros(10)) == pytest.approx(0.517162, abs=5e-7)


def test_values_of_going_down_count_the_steps_to_the_wall() -> None:
    truth = get("four-rooms").truth("down", "uniform")
    assert len(truth.states) == 104
    steps = {(0, 0): 4, (4, 0): 0, (0, 1): 10, (10, 0): 0, (2, 5): 0, (9, 5): 0, (0, 8): 10}
    for (row, column), free in steps.items():
        (value,) = truth.values[truth.states == 11 * row + column]
        assert value == pytest.approx(0.9**free, abs=1e-15)


def test_the_star_is_worth_nothing() -> None:
    assert get("star").truth(*get("star").pairs[0]).values.tolist() == [0] * 7


def test_returns_in_the_environment_agree_with_the_exact_values() -> None:
    chain = get("markov-chain")
    held_out = held_out_returns(
        chain.make(), chain.question("hard"), states=60, rollouts=50, run_length=20, seed=1
    )
    values = chain.truth("hard", "hard").values
    # The difference of means is within 4 standard errors.
    bias = held_out.error(lambda states: values[states]).bias
    assert abs(bias.value) < 4 * bias.standard_error


def test_a_terminal_state_is_worth_nothing_whatever_the_cumulant() -> None:
    chain = get("markov-chain")
    assert isinstance(chain, TabularDomain)
    entered = GVF(Uniform(2), cumulant=lambda t: t.next_state == 9, continuation=1.0)
    values = exact_values(chain.model, entered)
    assert values == pytest.approx([*np.arange(9) / 9, 0])


def test_values_that_never_settle_are_an_error() -> None:
    one = np.ones((1, 1, 1))
    model = Model(one, np.zeros((1, 1, 1), int), one, np.zeros(1, bool))
    with pytest.raises(ValueError, match="still change by 1 after 50 sweeps; a continuation of 1"):
        exact_values(model, GVF(Uniform(1), continuation=1.0), sweeps=50)


def test_a_policy_that_does_not_fit_the_model_is_an_error() -> None:
    model = random_model(np.random.default_rng(0), 3, 2, 1)
    for policy in (Uniform(3), Gaussian(0.0, 1.0)):
        with pytest.raises(ValueError, match="not a discrete policy over the 2 actions"):
            exact_values(model, GVF(policy))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": np.full((2, 1, 2), 0.4)}, "follows state 0, action 0 are .* sum to 1"),
        ({"probability": np.ones((2, 1))}, r"shape \(2, 1\), expected \[states, actions, outcomes"),
        ({"next_state": np.array([[[0, 1]], [[1, 7]]])}, "state 7 may follow state 1, action 0"),
        ({"reward": np.zeros((2, 1))}, r"reward has shape \(2, 1\), expected \(2, 1, 2\)"),
        ({"terminal": np.zeros(3, bool)}, r"terminal has shape \(3,\), expected \(2,\)"),
    ],
)
def test_a_model_that_is_none_is_refused(change, message) -> None:
    parts = {
        "probability": np.full((2, 1, 2), 0.5),
        "next_state": np.zeros((2, 1, 2), int),
        "reward": np.zeros((2, 1, 2)),
        "terminal": np.zeros(2, bool),
    }
    Model(**parts)
    with pytest.raises(ValueError, match=message):
        Model(**(parts | change))


def test_errors_are_averaged_over_the_states() -> None:
    truth = TrueValues(np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))
    predictions = [1.0, 2.0, 3.0, 0.0]
    assert truth.mean_absolute_error(predictions) == 1
    assert truth.root_mean_square_error(predictions) == 2
    with pytest.raises(ValueError, match=r"shape \(2,\), expected \(4,\)"):
        truth.mean_absolute_error([1.0, 2.0])


# Rollouts


def uniform_points(count: int) -> np.ndarray:
    rng = np.random.default_rng(8)
    cells = FREE[rng.integers(len(FREE), size=count)]
    return np.stack(np.divmod(cells, 11), axis=1) + rng.random((count, 2))


def test_step_size_zero_in_the_continuous_rooms() -> None:
    points = uniform_points(20_000)
    wrong = evaluation.roll_out(points, DOWN, COLLISION, 5, protocol="authors", seed=1).mean(axis=1)
    right = np.empty((len(points), 5))
    evaluation._roll_out(
        right,
        points,
        thresholds(DOWN),
        *COLLISION,
        evaluation.CUTOFF,
        streams(len(points), 1),
        SOLID,
        NOISE["authors"],
    )
    # Known to three digits: half of the last one, and 4 standard errors of this sample.
    for values, known in ((wrong, 0.684), (right.mean(axis=1), 0.617)):
        assert abs(values.mean() - known) < 0.0005 + 4 * values.std() / np.sqrt(len(values))


def test_rollouts_agree_with_returns_of_the_environment() -> None:
    rooms = continuous()
    question, mu = rooms.question("favoured-down"), rooms.behaviour("uniform")
    held_out = held_out_returns(
        rooms.make(), question, behaviour=mu, states=40, rollouts=40, run_length=30, seed=2
    )
    target = rooms.table(rooms.target("favoured-down"))
    returns = evaluation.roll_out(
        held_out.states, target, rooms.signals("favoured-down"), 4000, protocol="paper", seed=3
    )
    # The difference of means is within 4 standard errors.
    bias = held_out.error(lambda states: returns.mean(axis=1)).bias
    assert abs(bias.value) < 4 * bias.standard_error
    assert np.corrcoef(held_out.values, returns.mean(axis=1))[0, 1] > 0.9


def test_a_state_keeps_its_returns_however_many_there_are() -> None:
    points = uniform_points(120)
    many = evaluation.roll_out(points, DOWN, COLLISION, 3, protocol="paper", seed=1)
    few = evaluation.roll_out(points[:7], DOWN, COLLISION, 3, protocol="paper", seed=1)
    assert np.array_equal(many[:7], few)


def ends(rooms: ContinuousDomain, behaviour: str, runs: int, steps: int) -> np.ndarray:
    """The positions [runs, 2] in which runs of the environment end."""
    rng, table = np.random.default_rng(9), thresholds(rooms.table(rooms.behaviour(behaviour)))
    environment, found = rooms.make().unwrapped, np.empty((runs, 2))
    for run in range(runs):
        state, _ = environment.reset(seed=run)
        for u in rng.random(steps):
            cell = 11 * int(state[0]) + int(state[1])
            state, *_ = environment.step(int(np.searchsorted(table[cell], u, side="right")))
        found[run] = state
    return found


def same_law(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of the hypothesis that two samples come from one law."""
    test: Any = scipy.stats.ks_2samp(one, other)
    return test.pvalue


@pytest.mark.parametrize(
    ("protocol", "steps"), [("paper", evaluation.SPACING), ("authors", evaluation.RUN)]
)
def test_states_are_visited_as_often_as_in_the_environment(protocol: str, steps: int) -> None:
    """Rows and columns have one law (Kolmogorov and Smirnov, level 1e-4 over the eight tests)."""
    rooms, seen, there = continuous(protocol), {}, {}
    for name in ("uniform", "random-state"):
        table = rooms.table(rooms.behaviour(name))
        states = evaluation.visited_states(table, 1000, protocol=protocol, seed=5)
        # Cells, since under "authors" a state is anywhere in the cell in which its run ended.
        seen[name], there[name] = states.astype(int), ends(rooms, name, 50, steps).astype(int)
        for axis in (0, 1):
            assert same_law(seen[name][:, axis], there[name][:, axis]) > 1e-4 / 8
    # The rows of the two behaviours differ by far more than that.
    assert same_law(seen["uniform"][:, 0], there["random-state"][:, 0]) < 1e-4 / 8
    assert same_law(seen["random-state"][:, 0], there["uniform"][:, 0]) < 1e-4 / 8


def test_positions_of_a_long_run_are_nearly_independent() -> None:
    table = np.full((121, 4), 0.25)
    states = evaluation.visited_states(table, 1000, protocol="paper", seed=6)
    centred = states - states.mean(axis=0)
    correlation = (centred[1:] * centred[:-1]).mean(axis=0) / centred.var(axis=0)
    # 4 standard errors of an autocorrelation that is 0.
    assert (np.abs(correlation) < 4 / np.sqrt(1000)).all()


# The truth of the continuous rooms, and its cache


def test_a_truth_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = continuous()
    options: Any = {"states": 20, "rollouts": 5, "folder": tmp_path}
    first = rooms.truth("down", "uniform", **options)
    assert first.states.shape == (20, 2)
    assert first.values.shape == first.noise.shape == (20,)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("continuous-four-rooms-")
    assert file.suffix == ".npz"
    monkeypatch.setattr(evaluation, "roll_out", None)
    again = rooms.truth("down", "uniform", **options)
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.states, again.states)
    with pytest.raises(TypeError, match="not callable"):
        rooms.truth("down", "uniform", **options, seed=1)


def test_every_truth_has_a_file_of_its_own(tmp_path: Path) -> None:
    small: Any = {"states": 4, "rollouts": 2, "folder": tmp_path}
    for protocol in ("paper", "authors"):
        rooms = continuous(protocol)
        for pair in rooms.pairs:
            rooms.truth(*pair, **small)
    rooms.truth("down", "uniform", **(small | {"states": 5}))
    rooms.truth("down", "uniform", **(small | {"rollouts": 3}))
    rooms.truth("down", "uniform", **small, seed=1)
    assert len(list(tmp_path.iterdir())) == 2 * 6 + 3


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY", b"text"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, content: bytes) -> None:
    rooms = continuous()
    options: Any = {"states": 4, "rollouts": 2, "folder": tmp_path}
    first = rooms.truth("down", "uniform", **options)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (content, whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        assert np.array_equal(rooms.truth("down", "uniform", **options).values, first.values)
        assert file.read_bytes() == whole


def test_an_array_in_a_key_is_known_by_its_type_shape_and_numbers(tmp_path: Path) -> None:
    arrays = [np.zeros(6), np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6, int), np.ones(6)]
    for _ in range(2):
        for i, array in enumerate(arrays):
            kept = remembered("x", {"array": array}, lambda i=i: {"i": np.array(i)}, tmp_path)
            assert kept["i"] == i
    assert len(list(tmp_path.iterdir())) == len(arrays)


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning, match="cannot keep x-.*computed again.*GVF_CACHE_DIR"):
        kept = remembered("x", {}, lambda: {"a": np.arange(3)}, tmp_path / "file" / "below")
    assert kept["a"].tolist() == [0, 1, 2]


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", "here")
    assert default_folder() == Path.cwd() / "here"
    monkeypatch.delenv("GVF_CACHE_DIR")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_folder() == Path("/caches/gvf")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "gvf"


def test_a_continuous_truth_needs_a_behaviour_and_numbers(tmp_path: Path) -> None:
    rooms = continuous()
    with pytest.raises(ValueError, match="a behaviour visits: name one of 'uniform', 'random-st"):
        rooms.truth("down")
    with pytest.raises(ValueError, match="rollouts must be at least 1, got 0"):
        rooms.truth("down", "uniform", rollouts=0, folder=tmp_path)
