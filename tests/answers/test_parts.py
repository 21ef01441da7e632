"""The parts that a question file describes: policies, signals and features."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_logs import walks, write

import gvf
from gvf.answers import load, prepare

STATES = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)


def real_log(tmp_path: Path, actions: np.ndarray | None = None) -> Path:
    """A log of two dimensions, u and v; actions are 0 and 1 unless given."""
    rng = np.random.default_rng(1)
    columns = {
        "run": np.repeat(np.arange(10), 5),
        "u": STATES[:, 0],
        "v": STATES[:, 1],
        "action": rng.integers(2, size=50) if actions is None else actions,
        "gain": rng.normal(size=50),
        "on": rng.random(50),
        "pscore": np.full(50, 0.5),
        "terminated": np.tile([False] * 4 + [True], 10),
    }
    return write(tmp_path / "log.parquet", columns)


def material(tmp_path: Path, policy: str, more: str = "", log: Path | None = None) -> Any:
    text = f"""
[[question]]
policy = {policy}
cumulant = "gain"
{more}
[log]
state = ["u", "v"]
episode = "run"
"""
    if "[features]" not in text:
        text += '[features]\nkind = "tiles"\ntiles = 2\ntilings = 2\n'
    path = tmp_path / "asked.toml"
    path.write_text(text)
    return prepare(load(path, trust=True), log or real_log(tmp_path), quiet=True)


SAME = {
    '"uniform"': gvf.policies.Uniform(2),
    '{kind = "always", action = 1}': gvf.policies.Always(1, 2),
    '{kind = "favour", action = 0, probability = 0.3}': gvf.policies.Favour(0, 0.3, 2),
    '{kind = "favour", action = 0, probability = 0.3, actions = 2}': gvf.policies.Favour(0, 0.3, 2),
    '{kind = "fixed", probabilities = [0.25, 0.75]}': gvf.policies.Fixed([0.25, 0.75]),
    '{kind = "mixture", share = 0.9, first = "uniform", second = {kind = "always", action = 0}}':
        gvf.policies.Mixture(gvf.policies.Uniform(2), gvf.policies.Always(0, 2), 0.9),
}  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_a_policy_of_a_file_is_that_of_python(tmp_path: Path, text: str) -> None:
    assert material(tmp_path, text).questions[0].policy == SAME[text]


def test_a_softmax_has_log_odds_linear_in_the_state(tmp_path: Path) -> None:
    text = '{kind = "softmax", weights = [[0, 0], [2, -1]], bias = [0, 0.5]}'
    found = material(tmp_path, text).questions[0].policy
    odds = 2.0 * STATES[:, 0] - STATES[:, 1] + 0.5
    np.testing.assert_allclose(
        found.probabilities(STATES)[:, 1], 1 / (1 + np.exp(-odds.astype(float))), rtol=1e-6
    )


def test_a_gaussian_may_have_a_linear_mean(tmp_path: Path) -> None:
    log = real_log(tmp_path, np.random.default_rng(2).normal(size=50))
    text = '{kind = "gaussian", mean = 0.5, sd = 0.7, weights = [[1, -2]]}'
    found = material(tmp_path, text, log=log).questions[0].policy
    expected = gvf.policies.Gaussian(lambda s: s[:, 0] - 2 * s[:, 1] + 0.5, 0.7)
    actions = np.linspace(-1, 1, 50)
    np.testing.assert_allclose(
        found.log_probability(STATES, actions),
        expected.log_probability(STATES, actions),
        rtol=1e-5,
    )


def test_a_table_comes_from_the_file_or_a_csv(tmp_path: Path) -> None:
    log = write(tmp_path / "chain.parquet", walks(10))
    rows = [[0.1 * s, 1 - 0.1 * s] for s in range(5)]
    np.savetxt(tmp_path / "policy.csv", rows, delimiter=",")
    for how in (f"probabilities = {rows}", 'file = "policy.csv"'):
        path = tmp_path / "asked.toml"
        path.write_text(f'[[question]]\npolicy = {{kind = "table", {how}}}')
        found = prepare(load(path), log, quiet=True)
        assert found.questions[0].policy == gvf.policies.Table(rows)
        assert found.features == gvf.features.OneHot(5)


def test_networks_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    expected = torch.softmax(network(torch.as_tensor(STATES)), 1).detach().numpy()
    text = '{kind = "state-dict", file = "weights.pt"}'
    found = material(tmp_path, text).questions[0].policy
    np.testing.assert_allclose(found.probabilities(STATES), expected, rtol=1e-5)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(network).save(str(tmp_path / "script.pt"))
        text = '{kind = "torchscript", file = "script.pt"}'
        found = material(tmp_path, text).questions[0].policy
    np.testing.assert_allclose(found.probabilities(STATES), expected, rtol=1e-5)
    (tmp_path / "weights.pt").write_bytes(b"no network")
    with pytest.raises(ValueError, match=r"weights.pt is not a state dict"):
        material(tmp_path, '{kind = "state-dict", file = "weights.pt"}')
    torch.save({"0.weight": torch.zeros(3, 2, 2)}, tmp_path / "weights.pt")
    with pytest.raises(ValueError, match=r"'0.weight' of shape \(3, 2, 2\) is no part"):
        material(tmp_path, '{kind = "state-dict", file = "weights.pt"}')


def test_a_state_dict_runs_no_code(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import pickle

    class Runs:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    (tmp_path / "weights.pt").write_bytes(pickle.dumps(Runs()))
    with pytest.raises(ValueError, match="not a state dict of PyTorch that is safe to load"):
        material(tmp_path, '{kind = "state-dict", file = "weights.pt"}')
    assert not (tmp_path / "ran").exists()


OWN = """
import numpy as np
import gvf
def lean(states):
    return np.where(states[:, :1] > 0, [0.2, 0.8], [0.8, 0.2])
def doubled(t):
    return 2 * t.gain
def squares(states):
    return np.asarray(states, float) ** 2
policy = gvf.policies.Fixed([0.5, 0.5])
"""


@pytest.mark.usefixtures("own_modules")
def test_functions_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(OWN)
    more = """
[features]
kind = "function"
of = "asks:squares"
size = 2
"""
    text = '{kind = "function", of = "asks:lean"}'
    found = material(tmp_path, text, more)
    policy, features = found.questions[0].policy, found.features
    assert isinstance(policy, gvf.policies.DiscretePolicy)
    np.testing.assert_array_equal(
        policy.probabilities(STATES)[:, 1], np.where(STATES[:, 0] > 0, 0.8, 0.2)
    )
    np.testing.assert_array_equal(features(STATES), STATES.astype(float) ** 2)
    assert material(tmp_path, '"asks:policy"').questions[0].policy == gvf.policies.Fixed([0.5, 0.5])


def test_signals_are_columns_entries_and_numbers(tmp_path: Path) -> None:
    log = real_log(tmp_path)
    text = """
question = [
  {name = "a", policy = "uniform", cumulant = "gain", continuation = "on", interest = "on"},
  {name = "b", policy = "uniform", cumulant = 2.5, continuation = 0.5},
  {name = "c", policy = "uniform", cumulant = {column = "next_state", index = 1}},
]
[log]
state = ["u", "v"]
episode = "run"
"""
    path = tmp_path / "asked.toml"
    path.write_text(text)
    found = prepare(load(path), log, quiet=True)
    whole = found.log.transitions()
    a, b, c = (one.evaluate(whole) for one in found.questions)
    ended = whole.terminated
    np.testing.assert_array_equal(a.cumulant, whole.gain)
    np.testing.assert_array_equal(a.continuation, np.where(ended, 0.0, whole.on))
    np.testing.assert_array_equal(a.interest, whole.on)
    assert (b.cumulant == 2.5).all()
    np.testing.assert_array_equal(
        c.cumulant, np.where(ended, 0.0, np.roll(STATES[:, 1].astype(float), -1))
    )


def test_features_take_their_ranges_from_the_log(tmp_path: Path) -> None:
    low, high = np.quantile(STATES.astype(float), (0.005, 0.995), axis=0)
    tiles = material(tmp_path, '"uniform"').features
    assert isinstance(tiles, gvf.features.TileCoder)
    np.testing.assert_allclose([tiles.low, tiles.high], [low, high])
    given = material(
        tmp_path, '"uniform"', '[features]\nkind = "tiles"\ntiles = 2\nlow = -1\nhigh = [1, 2]'
    ).features
    np.testing.assert_array_equal([given.low, given.high], [[-1, -1], [1, 2]])
    dense = material(tmp_path, '"uniform"', '[features]\nkind = "dense"').features
    found = dense(np.array([low, high, (low + high) / 2]))
    np.testing.assert_allclose(found, [[1, -1, -1], [1, 1, 1], [1, 0, 0]], atol=1e-12)
