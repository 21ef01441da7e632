"""Make the logs in tests/log/files with the libraries that users have.

Run it where they are installed (`make test-extras` sets up such an environment):

    .venv-extras/bin/python tests/log/make_files.py

Every file has the same 64 steps of CartPole, in episodes of at most 15 steps, some of them cut by
that limit. ``expected.npz`` has them as columns of `gvf.Transitions`. The last step is inside an
episode.
"""

# pyright: reportMissingImports=false

import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import duckdb
import gymnasium as gym
import numpy as np
import pandas as pd
import polars as pl

import gvf

FILES = Path(__file__).parent / "files"


def steps() -> dict[str, np.ndarray[Any, Any]]:
    """The columns of the log, with the number of the episode."""
    env = gym.make("CartPole-v1", max_episode_steps=15)
    policy = gvf.policies.Fixed([0.4, 0.6])
    (batch,) = gvf.collect(env, policy, 64, seed=3, batch=64)
    over = batch.terminated | batch.truncated
    episode = np.concatenate([[0], np.cumsum(over)[:-1]])
    return {**batch.columns, "episode": episode}


def episodes(columns: dict[str, np.ndarray[Any, Any]]) -> list[dict[str, np.ndarray[Any, Any]]]:
    """The same, an array of columns for each episode."""
    numbers = np.unique(columns["episode"])
    return [{k: v[columns["episode"] == n] for k, v in columns.items()} for n in numbers]


def main() -> None:
    """Write all files."""
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    columns = steps()
    named: dict[str, Any] = columns
    np.savez(FILES / "expected.npz", **named)
    flat = pd.DataFrame(
        {
            **{f"obs_{i}": columns["state"][:, i] for i in range(4)},
            "action": columns["action"],
            "reward": columns["reward"],
            "terminated": columns["terminated"],
            "truncated": columns["truncated"],
            "action_prob": columns["behaviour_probability"],
            "episode_id": [f"ep-{n}" for n in columns["episode"]],
        }
    )
    flat.to_parquet(FILES / "pandas.parquet", index=False)
    flat.to_csv(FILES / "pandas.csv", index=False)
    listed = pl.DataFrame(
        {
            "observation": columns["state"].tolist(),
            "next_observation": columns["next_state"].tolist(),
            "action": columns["action"],
            "reward": columns["reward"],
            "terminated": columns["terminated"],
            "truncated": columns["truncated"],
            "action_logp": np.log(columns["behaviour_probability"]),
        }
    )
    listed.write_parquet(FILES / "polars.parquet")
    duckdb.sql(
        "select [obs_0, obs_1, obs_2, obs_3] as s, action as a, reward as r, terminated, truncated,"
        " action_prob as pscore, episode_id as trajectory, 2 * obs_0 as twice from flat"
    ).write_parquet(str(FILES / "duckdb.parquet"))
    np.savez(
        FILES / "d4rl.npz",
        **{
            "observations": columns["state"],
            "actions": columns["action"],
            "rewards": columns["reward"].astype(np.float32),
            "terminals": columns["terminated"],
            "timeouts": columns["truncated"],
            "infos/action_log_probs": np.log(columns["behaviour_probability"]),
        },
    )
    minari(columns)


def minari(columns: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write a Minari dataset, with the probability of step t at entry t + 1 of its infos."""
    os.environ["MINARI_DATASETS_PATH"] = str(FILES / "minari")
    (FILES / "minari").mkdir()
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = [
        EpisodeBuffer(
            observations=np.concatenate([one["state"], one["next_state"][-1:]]),
            actions=one["action"],
            rewards=one["reward"],
            terminations=one["terminated"],
            truncations=one["truncated"],
            infos={"action_prob": np.concatenate([[np.nan], one["behaviour_probability"]])},
        )
        for one in episodes(columns)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers("cartpole/short-v0", buffers, env="CartPole-v1")


if __name__ == "__main__":
    main()
