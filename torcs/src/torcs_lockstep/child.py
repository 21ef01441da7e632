# SPDX-License-Identifier: GPL-2.0-or-later

"""TORCS as a child process: start it, exchange commands and states with it, and end it.

    Python --- one byte: a command is in the shared memory --->  bridge.cpp inside TORCS
           <-- one byte: states and pictures are there ---------

The shared memory and the log are anonymous (memfd), so they leave no files. TORCS reads and writes
files in a temporary folder. Python removes this folder when it ends the child; if Python has gone,
the bridge removes it. If the child dies or does not answer in time, an error shows the end of its
log, and a reset of the environment starts another.
"""

from __future__ import annotations

import mmap
import os
import select
import shutil
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torcs_lockstep.exchange import DRIVE, EXCHANGE, RESET
from torcs_lockstep.installation import Installation
from torcs_lockstep.race import ROBOT, Race

LINES = 8
"""The number of lines of the child's log that an error shows."""
LOG_LIMIT = 1 << 20
"""The size in bytes above which a reset empties the log."""


class Child:
    """A running TORCS, with its car on the grid.

    Args:
        installation: the installed TORCS.
        bridge: the path of the compiled bridge.
        race: the car, the track and the settings to start with.
        timeout: the seconds that an answer may take, including the first.

    Example:
        >>> from torcs_lockstep.child import Child
        >>> from torcs_lockstep.exchange import NOTHING
        >>> from torcs_lockstep.installation import bridge, find
        >>> from torcs_lockstep.race import Race
        >>> race = Race("e-track-1", "road", "car1-trb1", (0, 4), ticks=50, speed=15.0)
        >>> child = Child(find(), bridge(), race, timeout=10.0)  # doctest: +SKIP
        >>> child.reset(NOTHING)["time"]  # doctest: +SKIP
        array([0.])
        >>> child.drive([0.1, 0.1], NOTHING)["time"]  # doctest: +SKIP
        array([0.1, 0.2])
        >>> child.close()  # doctest: +SKIP
    """

    def __init__(
        self, installation: Installation, bridge: Path, race: Race, timeout: float
    ) -> None:
        self._timeout = timeout
        self._owner = os.getpid()
        folder = Path(tempfile.mkdtemp(prefix="torcs-lockstep-"))
        try:
            _write_files(folder, installation, bridge, race)
            self._start(folder, installation, bridge, race)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._answer("start")

    def _start(self, folder: Path, installation: Installation, bridge: Path, race: Race) -> None:
        import fcntl  # Windows has none, but there TORCS is refused before

        memory = os.memfd_create("torcs-lockstep")
        self._log = os.memfd_create("torcs-lockstep-log")
        library = os.open(bridge, os.O_RDONLY)
        self._channel, theirs = socket.socketpair()
        try:
            os.ftruncate(memory, EXCHANGE.itemsize)
            # Append, because there are several writers and a reset may empty the log.
            fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_APPEND)
            shared = np.frombuffer(mmap.mmap(memory, EXCHANGE.itemsize), EXCHANGE)
            shared["ticks"], shared["speed"] = race.ticks, race.speed
            settings = f"{self._owner} {memory} {theirs.fileno()} {folder}"
            self._process = subprocess.Popen(
                [installation.program, "-l", folder, "-L", folder / "lib", "-D", installation.data],
                cwd=installation.data,
                env=_environment(folder, installation, bridge, library)
                | {"TORCS_LOCKSTEP": settings},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(memory, library, theirs.fileno()),
                start_new_session=True,  # Ctrl-C goes to Python only
            )
        except BaseException:
            self._channel.close()
            os.close(self._log)
            raise
        finally:
            os.close(memory)
            os.close(library)
            theirs.close()
        # This runs on close, when the object is deleted, or when Python exits.
        self._end = weakref.finalize(
            self, _end, self._owner, self._process, self._channel, self._log, folder
        )
        self._command = shared[["command", "count", "draw"]]
        self._steering, self._states = shared["steering"][0], shared["states"][0]
        self._grey, self._colour = shared["grey"][0], shared["colour"][0]
        self._length = shared["length"]
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True if the process has not been ended."""
        return self._end.alive

    @property
    def length(self) -> float:
        """The length of the track, in metres."""
        return float(self._length[0])

    @property
    def grey(self) -> NDArray[np.uint8]:
        """A copy of the last grey picture, uint8[64, 128]."""
        return self._grey.copy()

    @property
    def colour(self) -> NDArray[np.uint8]:
        """A copy of the last colour picture, uint8[256, 512, 3]."""
        return self._colour.copy()

    def reset(self, draw: int) -> NDArray[Any]:
        """Put the car on the grid and return its state, as STATE[1] of :mod:`.exchange`."""
        if os.fstat(self._log).st_size > LOG_LIMIT:
            os.ftruncate(self._log, 0)
        self._exchange(RESET, 0, draw)
        return self._states[:1].copy()

    def drive(self, steering: Sequence[float] | NDArray[Any], draw: int) -> NDArray[Any]:
        """Execute m actions and return the state after each, as STATE[m] of :mod:`.exchange`.

        There may be at most BLOCK actions. Without any, it only draws.
        """
        count = len(steering)
        self._steering[:count] = steering
        self._exchange(DRIVE, count, draw)
        return self._states[:count].copy()

    def close(self) -> None:
        """End the process and remove its folder; closing twice is no error."""
        self._end()

    def _exchange(self, command: int, count: int, draw: int) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError(
                "this TORCS belongs to the process that started it, and this one is a fork of "
                "that: make the environment in the process that uses it"
            )
        self._command[0] = command, count, draw
        with suppress(OSError):  # the child is gone, and waiting for the answer says so
            self._channel.send(b"!")
        self._answer("drive" if command == DRIVE else "reset")

    def _answer(self, doing: str) -> None:
        """Wait until the child has executed its command."""
        try:
            ready = self._poll.poll(1000 * self._timeout)
            answered = bool(ready) and self._channel.recv(1) != b""
        except ConnectionError:
            ready, answered = True, False
        except BaseException:  # a late answer must not be taken for the next one
            self.close()
            raise
        if not answered:
            raise RuntimeError(self._failure_message(doing, hangs=not ready))

    def _failure_message(self, doing: str, *, hangs: bool) -> str:
        """End a child that did not answer, and return the error message."""
        if hangs:
            what = (
                f"TORCS did not answer within {self._timeout:g} s when asked to {doing}, and was "
                "ended; on a slow machine allow more by timeout="
            )
        else:
            try:
                status = self._process.wait(1)
            except subprocess.TimeoutExpired:
                status = "unknown"
            what = f"TORCS has ended by itself (status {status}) when asked to {doing}"
        size = os.fstat(self._log).st_size
        text = os.pread(self._log, LOG_LIMIT, max(0, size - LOG_LIMIT)).decode(errors="replace")
        self.close()
        lines = [line for line in text.splitlines() if line.strip()][-LINES:]
        return "\n    ".join(
            [what + ("; the end of its log:" if lines else "; its log is empty"), *lines]
        )


def _write_files(folder: Path, installation: Installation, bridge: Path, race: Race) -> None:
    drivers = folder / "lib" / "drivers" / ROBOT
    for needed in (folder / "results" / ROBOT, drivers):
        needed.mkdir(parents=True)
    (folder / "lib" / "modules").symlink_to(installation.library / "modules")
    # This must be the preloaded file itself, so that both roles of the bridge share their memory.
    (drivers / f"{ROBOT}.so").symlink_to(bridge.absolute())
    for name, text in race.files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _environment(
    folder: Path, installation: Installation, bridge: Path, library: int
) -> dict[str, str]:
    """Return the child's environment; without Python's variables, pictures are always the same."""
    variables = {
        "HOME": str(folder),
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": str(installation.library / "lib"),
        # The bridge by its descriptor, since its path might have spaces.
        "LD_PRELOAD": f"/proc/self/fd/{library}",
        "ALSOFT_DRIVERS": "null",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        # Mesa's cache of compiled shaders; compiling them takes most of the starting time.
        "XDG_CACHE_HOME": str(bridge.parent),
        # Draw without threads: for pictures this small, threads cost more than they save.
        "LP_NUM_THREADS": "0",
        # Mesa allocates large blocks for every frame; keep them in the process for the next frame.
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    }
    mesa = "/usr/share/glvnd/egl_vendor.d/50_mesa.json"
    if os.path.exists(mesa):  # graphics cards may have installed other vendors
        variables["__EGL_VENDOR_LIBRARY_FILENAMES"] = mesa
    return variables


def _end(
    owner: int,
    process: subprocess.Popen[bytes],
    channel: socket.socket,
    log: int,
    folder: Path,
) -> None:
    channel.close()
    os.close(log)
    if os.getpid() != owner:
        return  # in a fork of Python, the child belongs to the parent
    process.kill()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
