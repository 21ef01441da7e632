"""The command `gvf record`: a log with probabilities, from any Gymnasium environment."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gvf.cli.options import add_command

if TYPE_CHECKING:
    import gymnasium as gym

    from gvf.policies import Policy

RECORD = """\
Let a policy act in a Gymnasium environment, and write its transitions to a Parquet file: states,
actions, rewards, ends of episodes, and the probability with which each action was chosen. In
Python, gvf.read_log("log.parquet") reads the file, and learner.fit(log) learns from it what would
happen under other policies.

By default all actions are equally likely; real-valued actions are drawn from a Gaussian around the
middle of their range. A policy of your own is "module:name": a gvf.policies.Policy, or a function
from states [m, ...] to probabilities of actions [m, actions]. Its module is looked for in the
current folder first. This runs the module's code, so it needs --trust.

The same seed makes the same log. Ctrl-C ends the recording, and the file has the steps so far."""

EXAMPLES = """\
examples:
  gvf record CartPole-v1                                  10,000 steps, to CartPole-v1.parquet
  gvf record FrozenLake-v1 --steps 50000 --seed 1 --out lake.parquet
  gvf record CartPole-v1 --policy my_policies:careful --trust
  gvf record Ant-v5 --info x_position                     with a value of the environment's info
"""


def add(commands: Any) -> None:
    """Add the command to a parser's subparsers."""
    record_parser = add_command(
        commands,
        "record",
        _record,
        "record a log: a policy acts in an environment",
        RECORD,
        EXAMPLES,
    )
    record_parser.add_argument(
        "environment", metavar="ENV", help="the id of a Gymnasium environment"
    )
    record_parser.add_argument(
        "--steps",
        type=int,
        default=10_000,
        metavar="N",
        help="the number of steps (default: 10000)",
    )
    record_parser.add_argument(
        "--policy",
        default="uniform",
        metavar="POLICY",
        help='"uniform" (default), or "module:name" for one of your own',
    )
    record_parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="the seed of environment and actions (default: 0)",
    )
    record_parser.add_argument(
        "--info",
        action="append",
        default=[],
        metavar="NAME",
        help="an entry of the environment's info to keep as a column (may be repeated)",
    )
    record_parser.add_argument(
        "--out", metavar="FILE", help="the file to write (default: the environment's name.parquet)"
    )
    record_parser.add_argument(
        "--trust",
        action="store_true",
        help="allow modules of your own to be imported, and so to run",
    )


def _record(options: argparse.Namespace) -> int:
    from gvf.common.progress import progress_of
    from gvf.log import read_log, record_log

    if options.steps < 1:
        raise ValueError(f"--steps must be at least 1, got {options.steps}")
    out = Path(options.out or f"{options.environment.replace('/', '-').replace(':', '-')}.parquet")
    if out.suffix != ".parquet":
        raise ValueError(f"--out {out}: the name of the file must end in .parquet")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out {out}: there is no folder {out.parent}")
    env = _environment(options.environment, options.trust)
    stopped, before = False, _version(out)
    try:
        policy = _policy(options.policy, env, options.trust)
        with progress_of("recording", options.steps) as advance:
            record_log(
                env,
                policy,
                options.steps,
                out,
                seed=options.seed,
                info=options.info,
                notes={"environment": options.environment},
                progress=advance,
            )
    except KeyboardInterrupt:
        if _version(out) == before:
            raise
        stopped = True
    finally:
        env.close()
    log = read_log(out, quiet=True)
    print(log.describe())
    if stopped:
        print(f"gvf: stopped; {out} has the {len(log)} steps so far", file=sys.stderr)
    return 130 if stopped else 0


def _version(path: Path) -> int | None:
    """Return a number that changes when a file is replaced, or None if there is no file."""
    return path.stat().st_ino if path.exists() else None


def _environment(id: str, trust: bool) -> gym.Env[Any, Any]:
    from importlib.metadata import entry_points

    import gymnasium as gym

    from gvf.common.part_names import known, look_in

    for point in entry_points(group="gvf.environments"):
        point.load()()
    if ":" in id:
        if not trust:
            raise ValueError(
                f"{id} would run the module {id.partition(':')[0]!r}: allow it with --trust"
            )
        look_in(Path.cwd())
    else:
        known(id, gym.registry, "environment")
    try:
        return gym.make(id)
    except gym.error.Error as error:
        raise ValueError(f"{id}: {error}") from error


def _policy(name: str, env: gym.Env[Any, Any], trust: bool) -> Policy:
    from gvf.common.part_names import find, is_reference, look_in
    from gvf.policies import default_behaviour
    from gvf.policies.function import as_policy

    if name == "uniform":
        return default_behaviour(env.action_space)
    if not is_reference(name):
        raise ValueError(
            f'unknown policy: {name!r}; give "uniform", or one of yours, "module:name"'
        )
    if not trust:
        raise ValueError(
            f"--policy {name} would run the module {name.partition(':')[0]!r}: allow it with "
            "--trust"
        )
    look_in(Path.cwd())
    actions = getattr(env.action_space, "n", None)
    count = None if actions is None else int(actions)
    return as_policy(find(name, "policy"), f"--policy {name}", count)
