# SPDX-License-Identifier: GPL-2.0-or-later

"""TORCS itself: it is deterministic, keeps time, and leaves no files or processes."""

import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, DependencyNotInstalled, ResetNeeded
from gymnasium.utils.env_checker import check_env

from torcs_lockstep import Torcs, child, installation
from torcs_lockstep.environment import CAMERAS, periods, steering
from torcs_lockstep.exchange import BLOCK
from torcs_lockstep.race import Race


def missing() -> str:
    """Return the reason why TORCS cannot be tested on this machine, or ""."""
    try:
        installation.find()
        ctypes.CDLL("libEGL.so.1")
    except (DependencyNotInstalled, OSError) as error:
        return str(error)
    return "" if shutil.which("g++") else "g++ is not installed"


needs_torcs = pytest.mark.skipif(bool(missing()), reason=missing())

WAVES = 0.1 * np.sin(np.arange(300) / 9)[:, None]
"""Steering that stays on the road for a while, [300, 1]."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the compiled bridge, so that it is compiled here and now."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache folder")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder for temporary files, with characters that are special to the linker."""
    folder = tmp_path / "with a: space"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def shared(cache: Path) -> Iterator[Torcs]:
    """Share one TORCS among the tests that leave it running."""
    with closing(Torcs(render_mode="rgb_array")) as env:
        yield env


@pytest.fixture
def env(shared: Torcs) -> Torcs:
    shared.draw = True
    return shared


def in_python(program: str, *arguments: str, wait: bool = True) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True
    )
    if wait:
        assert process.wait(60) == 0
    return process


def fingerprint(env: Torcs, actions: Any) -> str:
    """A hash of all states and pictures."""
    frame, info = env.reset()
    found = hashlib.sha256(frame.tobytes())
    for action in actions:
        frame, reward, *_, info = env.step(action)
        found.update(repr((reward, sorted(info.items()))).encode() + frame.tobytes())
    return found.hexdigest()


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def runs(pid: int) -> bool:
    """Return True if a process runs; one that has ended may exist until its parent waits for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def pid_of(env: Torcs) -> int:
    assert env._child is not None
    return env._child.pid


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def follow(info: dict[str, Any]) -> float:
    return (info["angle"] - info["lateral"] / 2) / info["steer_lock"]


# Determinism.


@needs_torcs
def test_states_and_pictures_are_the_same_in_every_process_and_after_every_reset(
    env: Torcs,
) -> None:
    here = []
    for _ in range(2):
        here.append(fingerprint(env, WAVES))
        env.replay(np.ones((20, 1)))  # what was done last must not matter either
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from test_torcs import *;"
        "env = Torcs(); print(fingerprint(env, WAVES)); env.close()"
    )
    there = in_python(program, str(Path(__file__).parent)).communicate()[0].strip()
    assert here == [there, there]


@needs_torcs
def test_drawing_does_not_disturb_what_happens(env: Torcs) -> None:
    env.reset()
    drawn = [env.step(action) for action in WAVES[:100]]
    env.render()
    env.draw = False
    blank, _ = env.reset()
    assert not blank.any()
    undrawn = [env.step(action) for action in WAVES[:99]]
    assert not any(frame.any() for frame, *_ in undrawn)
    env.draw = True
    undrawn.append(env.step(WAVES[99]))
    assert [result[1:] for result in undrawn] == [result[1:] for result in drawn]
    assert np.array_equal(undrawn[-1][0], drawn[-1][0])


@needs_torcs
def test_undrawn_steps_are_many_times_faster_and_pictures_stay_as_they_are(env: Torcs) -> None:
    env.reset()
    start = time.perf_counter()
    frames = [env.step(action)[0] for action in WAVES[:100]]
    drawn = time.perf_counter() - start
    copies = [frame.copy() for frame in frames]
    env.draw = False
    start = time.perf_counter()
    for action in WAVES[:100]:
        env.step(action)
    assert 3 * (time.perf_counter() - start) < drawn  # 30 times, if nothing else is running
    env.draw = True
    env.step([0.0])
    assert np.array_equal(frames, copies)
    assert not np.array_equal(frames[0], frames[-1])


@needs_torcs
def test_a_replay_is_as_many_steps(env: Torcs) -> None:
    actions = np.concatenate([WAVES] * 4)  # more than one block
    assert len(actions) > BLOCK
    env.draw = False
    env.reset()
    infos = [env.step(action)[-1] for action in actions]
    env.reset()
    columns = env.replay(actions)
    assert columns.keys() == infos[0].keys()
    for name, column in columns.items():
        assert column.tolist() == [info[name] for info in infos]
    env.draw = True
    one = env.step(WAVES[0])
    env.reset()
    env.replay(actions)
    other = env.step(WAVES[0])
    assert np.array_equal(one[0], other[0])
    assert one[1:] == other[1:]
    assert [len(column) for column in env.replay(np.zeros((0, 1))).values()] == [0] * 9


@needs_torcs
@pytest.mark.parametrize("camera", sorted(set(CAMERAS) - {"road"}))
def test_a_picture_depends_only_on_where_the_car_is(camera: str) -> None:
    with closing(Torcs(camera=camera)) as env:
        env.reset()
        seen = [env.step(action)[0] for action in WAVES[:30]][-1]
        env.reset()
        env.replay(WAVES[:29])
        again = env.step(WAVES[29])[0]
    assert seen.std() > 10
    assert np.array_equal(seen, again)


# It keeps time, and drives as told.


@needs_torcs
def test_a_step_is_a_tenth_of_a_second_exactly(env: Torcs) -> None:
    assert env.reset()[1]["time"] == 0
    assert [env.step(action)[-1]["time"] for action in WAVES[:50]] == [
        count / 10 for count in range(1, 51)
    ]
    time.sleep(0.3)  # nothing passes while nobody asks
    assert env.step([0.0])[-1]["time"] == 5.1


@needs_torcs
def test_steps_may_be_shorter_and_the_car_faster() -> None:
    with closing(Torcs(seconds=0.02, speed=25.0, car="car2-trb1", track="c-speedway")) as env:
        env.draw = False
        _, info = env.reset()
        for _ in range(500):
            *_, info = env.step([follow(info)])
    assert info["time"] == 10.0
    assert info["speed"] == pytest.approx(25, abs=1)


@needs_torcs
@pytest.mark.parametrize("side", [1, -1])
def test_positive_steering_goes_left(env: Torcs, side: int) -> None:
    env.draw = False
    env.reset()
    env.replay(np.zeros((30, 1)))  # to some speed, on the straight
    before = env.step([0.0])[-1]
    after = env.replay(np.full((10, 1), 0.3 * side))
    assert side * (after["to_middle"][-1] - before["to_middle"]) > 0.5
    # The car is turned to that side, so the road is turned to the other.
    assert side * (after["angle"][-1] - before["angle"]) < -0.1


@needs_torcs
def test_a_controller_stays_on_the_road_at_its_speed(env: Torcs) -> None:
    env.draw = False
    _, info = env.reset()
    noise = np.random.default_rng(0).normal(0, 0.1, 2000)
    laterals, progress = [], 0.0
    for number in noise:
        _, reward, terminated, truncated, info = env.step([follow(info) + number])
        assert not terminated
        assert not truncated
        progress += reward
        laterals.append(info["lateral"])
        assert info["lateral"] == info["to_middle"] / info["half_width"]
    assert np.abs(laterals).max() < 0.8
    assert info["speed"] == pytest.approx(15, abs=1)
    assert progress == pytest.approx(2000 * 1.5, rel=0.05)  # over the starting line, too


@needs_torcs
def test_an_episode_is_cut_off_when_the_car_is_off_the_road_or_stuck(env: Torcs) -> None:
    env.draw = False

    def until_truncated(steering: float) -> list[dict[str, Any]]:
        env.reset()
        infos, truncated = [], False
        while not truncated:
            *_, truncated, info = env.step([steering])
            infos.append(info)
        return infos

    *before, off = until_truncated(0.2)
    assert abs(off["lateral"]) > 2
    assert max(abs(info["lateral"]) for info in before) <= 2

    stuck = until_truncated(-1.0)  # against the wall
    assert max(abs(info["lateral"]) for info in stuck) <= 2
    assert [abs(info["speed"]) < 1 for info in stuck[-31:]] == [False] + [True] * 30

    # A replay counts too.
    env.reset()
    env.replay(np.full((len(stuck) - 2, 1), -1.0))
    assert [env.step([-1.0])[3] for _ in range(2)] == [False, True]


@needs_torcs
def test_a_picture_is_large_and_in_colour_and_shows_the_same(env: Torcs) -> None:
    frame, _ = env.reset()
    picture = env.render()
    assert picture.shape == (256, 512, 3)
    assert picture.dtype == np.uint8
    small = picture.reshape(64, 4, 128, 4, 3).mean(axis=(1, 3)) @ [0.299, 0.587, 0.114]
    assert np.corrcoef(small.ravel(), frame.ravel())[0, 1] > 0.98
    assert (picture[20, :, 2] > picture[20, :, 0]).mean() > 0.6  # the sky is blue, at the top
    assert np.array_equal(env.reset()[0], frame)


@needs_torcs
def test_gymnasium_finds_nothing_wrong() -> None:
    env = gym.make("torcs_lockstep:Torcs-v0", render_mode="rgb_array")
    assert isinstance(env.unwrapped, Torcs)
    check_env(env.unwrapped)
    env.close()


# Several at once, and nothing left behind.


@needs_torcs
def test_several_at_once_do_not_disturb_each_other(env: Torcs, temporary: Path) -> None:
    expected = fingerprint(env, WAVES[:60])

    def run(_: int) -> str:
        with closing(Torcs()) as mine:
            return fingerprint(mine, WAVES[:60])

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(2))) == [expected] * 2

    # The thread that started it may end before it.
    with closing(Torcs()) as one, closing(Torcs()) as other:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(one.reset).result()
        other.reset()
        for action in WAVES[:60]:
            assert np.array_equal(one.step(action)[0], other.step(action)[0])
        assert len(list(temporary.iterdir())) == 2
    assert not list(temporary.iterdir())


@needs_torcs
@pytest.mark.parametrize("end", ["close", "forget"])
def test_nothing_is_left_when_it_is_closed_or_forgotten(end: str, temporary: Path) -> None:
    home = Path.home()
    before = sorted(home.iterdir())
    descriptors = len(os.listdir("/proc/self/fd"))
    env = Torcs()
    env.reset()
    pid = pid_of(env)
    assert exists(pid)
    if end == "close":
        env.close()
        env.close()
        with pytest.raises(ClosedEnvironmentError, match="make a new one"):
            env.step([0.0])
        with pytest.raises(ClosedEnvironmentError, match="make a new one"):
            env.reset()
    else:
        del env
    assert not exists(pid)
    assert not list(temporary.iterdir())
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert sorted(home.iterdir()) == before


@needs_torcs
def test_a_fork_leaves_torcs_alone_and_it_ends_with_python_without_closing(tmp_path: Path) -> None:
    program = (
        "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from torcs_lockstep import Torcs\n"
        "env = Torcs(); env.reset()\n"
        "if os.fork() == 0:\n"
        "    try: env.step([0.0])\n"
        "    except RuntimeError as error: print(error, flush=True)\n"
        "    env.close()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(env.step([0.0])[-1]['time'])\n"
        "print(env._child.pid, len(os.listdir(sys.argv[1])))\n"
    )
    told = in_python(program, str(tmp_path)).communicate()[0].splitlines()
    assert "make the environment in the process that uses it" in told[0]
    assert told[1] == "0.1"
    pid, folders = map(int, told[2].split())
    assert folders == 1
    assert not exists(pid)
    assert not list(tmp_path.iterdir())


@needs_torcs
@pytest.mark.parametrize("forked", [False, True])
def test_torcs_ends_with_python_whatever_happens(forked: bool, tmp_path: Path) -> None:
    program = (
        "import os, sys, tempfile, time; tempfile.tempdir = sys.argv[1]\n"
        "from torcs_lockstep import Torcs\n"
        "one, other = Torcs(), Torcs(); one.reset(); other.reset()\n"
        # A fork has the sockets open, which then do not close with its parent.
        "fork = os.fork() if sys.argv[2] == 'True' else os.getpid()\n"
        "if fork: print(one._child.pid, other._child.pid, fork, flush=True)\n"
        "time.sleep(60)\n"
    )
    python = in_python(program, str(tmp_path), str(forked), wait=False)
    assert python.stdout is not None
    waiting, stopped, fork = map(int, python.stdout.readline().split())
    assert len(list(tmp_path.iterdir())) == 2
    os.kill(stopped, signal.SIGSTOP)
    python.kill()
    python.wait()
    python.stdout.close()
    gone = within(5, lambda: not runs(waiting) and not runs(stopped))
    for left in (fork, waiting, stopped):
        if runs(left):
            os.kill(left, signal.SIGKILL)
    assert gone
    assert not list(tmp_path.iterdir())


# A child that dies or hangs.


@needs_torcs
@pytest.mark.parametrize(
    ("harm", "message"),
    [(signal.SIGKILL, r"ended by itself \(status -9\)"), (signal.SIGSTOP, "within 1 s")],
)
def test_a_child_that_dies_or_hangs_is_an_error_and_reset_starts_another(
    harm: signal.Signals, message: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Torcs()) as env:
        expected, _ = env.reset()
        env.step([0.0])
        pid = pid_of(env)
        monkeypatch.setattr(env._child, "_timeout", 1.0)  # only now: it may start slowly
        os.kill(pid, harm)
        start = time.monotonic()
        with pytest.raises(RuntimeError, match=message):
            env.step([0.0])
        assert time.monotonic() - start < 3
        assert not exists(pid)  # not even as a zombie
        assert not list(temporary.iterdir())
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            env.step([0.0])
        assert np.array_equal(env.reset()[0], expected)
        assert env.step([0.0])[-1]["time"] == 0.1


@needs_torcs
def test_an_interrupt_does_not_leave_an_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Torcs()) as env:
        env.reset()
        pid = pid_of(env)

        class Interrupted:
            def poll(self, _: float) -> None:
                raise KeyboardInterrupt

        monkeypatch.setattr(env._child, "_poll", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            env.step([0.0])
        assert not exists(pid)
        env.reset()
        assert env.step([0.0])[-1]["time"] == 0.1
        # Ctrl-C in a terminal goes to all of a group, and is for Python alone.
        assert os.getpgid(pid_of(env)) != os.getpgid(0)


@needs_torcs
def test_what_torcs_said_last_is_in_the_error(
    monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    usual = child._environment

    def without_drivers(*arguments: Any) -> dict[str, str]:
        return usual(*arguments) | {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nowhere"}

    monkeypatch.setattr(child, "_environment", without_drivers)
    with pytest.raises(RuntimeError, match=r"(?s)the end of its log:.*apt-get install -y libegl1"):
        Torcs().reset()
    assert not list(temporary.iterdir())


@needs_torcs
def test_the_bridge_refuses_a_torcs_whose_memory_looks_different(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = Race.files
    monkeypatch.setattr(
        Race,
        "files",
        lambda race: {
            name: text.replace('"name" val="lockstep"', '"name" val="somebody"')
            for name, text in usual(race).items()
        },
    )
    with pytest.raises(RuntimeError, match=r"not the 1\.3\.7 .* found another driver"):
        Torcs().reset()


# What is missing, wrong or unknown. These need no TORCS.


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TORCS that has nothing but a version."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "torcs-bin").touch()
    (tmp_path / "lib" / "libclient.so").write_bytes(b"ELF\0GLIBC_2.2.5\0" + b"1.3.7\0more\0")
    for kind, track in (("road", "one"), ("road", "two"), ("oval", "three"), ("dirt", "four")):
        folder = tmp_path / "tracks" / kind / track
        folder.mkdir(parents=True)
        (folder / f"{track}.xml").touch()
    monkeypatch.setattr(installation, "LIBRARIES", (tmp_path / "nowhere", tmp_path))
    monkeypatch.setattr(installation, "DATA", tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return tmp_path


def test_without_torcs_the_error_says_what_to_install(
    pretended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "LIBRARIES", (pretended / "nowhere",))
    with pytest.raises(DependencyNotInstalled, match=r"apt-get install -y torcs libegl1 .* g\+\+$"):
        Torcs()


@pytest.mark.parametrize(
    ("content", "version"), [(b"\0001.3.8\0", r"1\.3\.8"), (b"\0\0", "unknown")]
)
def test_another_version_of_torcs_is_refused(pretended: Path, content: bytes, version: str) -> None:
    assert installation.find().library == pretended
    (pretended / "lib" / "libclient.so").write_bytes(content)
    with pytest.raises(DependencyNotInstalled, match=rf"version {version}.* only use 1\.3\.7"):
        Torcs()


@pytest.mark.parametrize(
    ("what", "value"), [("sys.platform", "darwin"), ("platform.machine", lambda: "aarch64")]
)
def test_another_machine_is_refused(
    pretended: Path, what: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what, value)
    with pytest.raises(DependencyNotInstalled, match=r"Linux on amd64 only, and this is"):
        Torcs()


def test_without_a_compiler_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DependencyNotInstalled, match=r"(?s)g\+\+ is not installed.*apt-get"):
        installation.bridge(tmp_path / "cache")


def test_a_folder_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/g++")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot keep .* in .*file/cache .*XDG_CACHE_HOME"):
        installation.bridge(tmp_path / "file" / "cache")


def test_an_unknown_track_gets_a_list(pretended: Path) -> None:
    with pytest.raises(ValueError, match="'four'; known are road: one, two; oval: three"):
        Torcs(track="four")


@needs_torcs
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"track": "dirt-1"}, "unknown track: 'dirt-1'; "),
        ({"car": "lorry"}, "unknown car: 'lorry'; "),
        ({"camera": "behind"}, "unknown camera: 'behind'; known are 'road'"),
        ({"render_mode": "human"}, "unknown render_mode: 'human'"),
        ({"speed": 0.0}, "speed must be from 2 to 100 m/s, got 0.0"),
        ({"timeout": 0.0}, "timeout must be a positive number of seconds, got 0.0"),
        ({"seconds": 0.03}, "multiple of .02 from .02 to 2, got 0.03"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Torcs(**arguments)


def test_actions_are_checked_and_clipped() -> None:
    assert steering([[0.5], [7.0], [-1.5]]).tolist() == [0.5, 1, -1]
    with pytest.raises(ValueError, match=r"shape \(1,\), got shape \(\)"):
        steering([0.5])
    with pytest.raises(ValueError, match=r"shape \(1,\), got shape \(2,\)"):
        steering([[0.5, 0.5]])
    with pytest.raises(ValueError, match="finite number, got nan in row 1"):
        steering([[0.5], [np.nan]])


def test_a_step_is_a_whole_number_of_questions_to_the_driver() -> None:
    assert [periods(seconds) for seconds in (0.02, 0.1, 0.3, 2.0)] == [1, 5, 15, 100]
    for seconds in (0.0, 0.01, 0.05, 2.02, np.nan):
        with pytest.raises(ValueError, match="multiple"):
            periods(seconds)


@needs_torcs
def test_a_child_that_hangs_is_given_less_than_ten_seconds() -> None:
    assert Torcs()._timeout < 10


@needs_torcs
def test_a_step_before_a_reset_is_an_error() -> None:
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        Torcs().step([0.0])
