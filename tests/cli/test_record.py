"""The command `gvf record`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import gvf
from gvf.cli import main

pytestmark = pytest.mark.usefixtures("apart")


def test_a_recording_is_the_stream_of_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "CartPole-v1", "--steps", "300", "--seed", "4"]) == 0
    assert "300 transitions in" in capsys.readouterr().out
    log = gvf.read_log("CartPole-v1.parquet", quiet=True)
    stream = gvf.collect(gym.make("CartPole-v1"), gvf.policies.Uniform(2), 300, seed=4)
    expected = gvf.Transitions.concatenate(stream)
    found = log.transitions()
    for name, column in expected.columns.items():
        if name != "truncated":  # the end of the recording cuts the last episode
            np.testing.assert_array_equal(found[name], column, err_msg=name)
    assert log.notes["environment"] == "CartPole-v1"
    assert log.notes["policy"] == "Uniform(2)"


def test_real_actions_have_log_densities() -> None:
    assert main(["record", "Pendulum-v1", "--steps", "250", "--out", "swing.parquet"]) == 0
    found = gvf.read_log("swing.parquet", quiet=True).transitions()
    policy = gvf.policies.Gaussian([0.0], [1.0])
    np.testing.assert_allclose(
        found.behaviour_log_probability, policy.log_probability(found.state, found.action)
    )
    assert found.truncated.sum() == 2


OWN = """
import numpy as np
import gvf
print("this module runs")
def lean(states):
    return np.where(states[:, 2:3] > 0, [0.1, 0.9], [0.9, 0.1])
always = gvf.policies.Always(1, actions=2)
number = 3
"""


def test_a_policy_of_ones_own_is_run_only_if_trusted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own_lean.py").write_text(OWN)
    command = ["record", "CartPole-v1", "--steps", "100", "--policy", "own_lean:lean"]
    assert main(command) == 2
    told = capsys.readouterr()
    assert "allow it with --trust" in told.err
    assert "this module runs" not in told.out
    assert not Path("CartPole-v1.parquet").exists()
    assert main([*command, "--trust"]) == 0
    found = gvf.read_log("CartPole-v1.parquet", quiet=True).transitions()
    assert set(found.behaviour_probability) == {0.1, 0.9}
    assert main([*command[:-1], "own_lean:always", "--trust"]) == 0
    assert set(gvf.read_log("CartPole-v1.parquet", quiet=True).transitions().action) == {1}
    assert main([*command[:-1], "own_lean:number", "--trust"]) == 2
    assert "neither a gvf.policies.Policy nor a function" in capsys.readouterr().err


def test_info_becomes_a_column() -> None:
    arguments = ["--steps", "20", "--info", "prob", "--out", "lake.parquet"]
    assert main(["record", "FrozenLake-v1", *arguments]) == 0
    assert "prob" in gvf.read_log("lake.parquet", quiet=True).columns


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cartpole-v1"], "unknown environment: 'cartpole-v1'; did you mean"),
        (["CartPole-v1", "--steps", "0"], "--steps must be at least 1"),
        (["CartPole-v1", "--out", "log.csv"], "must end in .parquet"),
        (["CartPole-v1", "--out", "no/log.parquet"], "there is no folder no"),
        (["CartPole-v1", "--policy", "greedy"], "unknown policy: 'greedy'"),
        (["CartPole-v1", "--info", "speed"], "info has no 'speed'"),
        (["own_envs:Env-v0"], "would run the module 'own_envs': allow it with --trust"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not list(Path.cwd().iterdir())


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_keeps_the_steps_so_far() -> None:
    Path("slow.py").write_text(
        "import time\nimport numpy as np\n"
        "def policy(states):\n"
        "    open('begun', 'a').close()\n"
        "    time.sleep(0.001)\n"
        "    return np.full((len(states), 2), 0.5)\n"
    )
    options = ["--steps", "10000000", "--policy", "slow:policy", "--trust", "--out", "log.parquet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gvf", "record", "CartPole-v1", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not Path("begun").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    log = gvf.read_log("log.parquet", quiet=True)
    assert (process.returncode, told) == (
        130,
        f"gvf: stopped; log.parquet has the {len(log)} steps so far\n",
    )
    assert len(log) % 64 == 0
    assert not list(Path.cwd().glob(".gvf*"))
