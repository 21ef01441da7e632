# SPDX-License-Identifier: GPL-2.0-or-later

"""Find TORCS on this machine, in the one version that fits, and compile the bridge to it.

The bridge (``bridge.cpp``) reads the simulator's memory by byte offsets, which hold for TORCS 1.3.7
on amd64, the version in Debian 12. For anything else an error says what to do. The bridge is
compiled at its first use and stored in the user's cache folder, under the hash of its source.
:mod:`torcs_lockstep.child` starts TORCS with it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gymnasium.error import DependencyNotInstalled

VERSION = "1.3.7"
"""The only version of TORCS whose memory the bridge can read."""
INSTALL = "apt-get update && apt-get install -y torcs libegl1 libgl1-mesa-dri g++"
"""The command that installs everything, as root, on Debian and Ubuntu."""
LIBRARIES = (Path("/usr/lib/x86_64-linux-gnu/torcs"), Path("/usr/lib/torcs"))
"""The folders where the packages of Debian and Ubuntu install the program."""
DATA = Path("/usr/share/games/torcs")
"""The folder where they install tracks and cars."""
SOURCE = Path(__file__).with_name("bridge.cpp")
FLAGS = ("-O2", "-shared", "-fPIC")
LIBRARY_FLAGS = ("-pthread", "-ldl")
KINDS = ("road", "oval")
"""Paved tracks. On dirt the car slides, so dirt tracks are left out."""


@dataclass(frozen=True)
class Installation:
    """The folders of an installed TORCS.

    Attributes:
        library: the folder of the program and its modules.
        data: the folder of tracks and cars.

    Example:
        >>> from torcs_lockstep.installation import Installation
        >>> from pathlib import Path
        >>> Installation(Path("/usr/lib/torcs"), Path("/usr/share/games/torcs")).program
        PosixPath('/usr/lib/torcs/torcs-bin')
    """

    library: Path
    data: Path

    @property
    def program(self) -> Path:
        """The path of the simulator."""
        return self.library / "torcs-bin"

    def tracks(self, kind: str) -> list[str]:
        """Return the names of the tracks of a kind, "road" or "oval"."""
        return _described(self.data / "tracks" / kind)

    def kind(self, track: str) -> str:
        """Return the kind of a track, "road" or "oval"; an error lists the known tracks."""
        for kind in KINDS:
            if track in self.tracks(kind):
                return kind
        known = "; ".join(f"{kind}: {', '.join(self.tracks(kind))}" for kind in KINDS)
        raise ValueError(f"unknown track: {track!r}; known are {known}")

    def check_car(self, car: str) -> str:
        """Return the name of a car if it is known; an error lists the known cars."""
        known = _described(self.data / "cars")
        if car in known:
            return car
        raise ValueError(f"unknown car: {car!r}; known are {', '.join(known)}")


def _described(folder: Path) -> list[str]:
    """Return the names of subfolders with an XML file of the same name: tracks or cars."""
    return sorted(
        entry.parent.name for entry in folder.glob("*/*.xml") if entry.stem == entry.parent.name
    )


def find() -> Installation:
    """Find TORCS on this machine; an error says what to install, or why it cannot be used.

    Example:
        >>> from torcs_lockstep.installation import find
        >>> find().program  # doctest: +SKIP
        PosixPath('/usr/lib/x86_64-linux-gnu/torcs/torcs-bin')
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise DependencyNotInstalled(
            f"torcs-lockstep runs on Linux on amd64 only, and this is {platform.system()} on "
            f"{platform.machine()}"
        )
    library = next((folder for folder in LIBRARIES if (folder / "torcs-bin").exists()), None)
    if library is None or not DATA.exists():
        raise DependencyNotInstalled(
            f"TORCS is not installed. As root, on Debian or Ubuntu:\n    {INSTALL}"
        )
    version = version_of(library)
    if version != VERSION:
        raise DependencyNotInstalled(
            f"TORCS in {library} is version {version}, and torcs-lockstep can only use {VERSION}, "
            "whose memory it knows how to read; it is the package torcs of Debian 12"
        )
    return Installation(library, DATA)


def version_of(library: Path) -> str:
    """Return the version that the menus of TORCS show, or "unknown".

    Example:
        >>> from torcs_lockstep.installation import version_of
        >>> from pathlib import Path
        >>> version_of(Path("/nowhere"))
        'unknown'
    """
    client = library / "lib" / "libclient.so"
    numbers = re.findall(rb"\0(\d+\.\d+\.\d+)\0", client.read_bytes()) if client.exists() else []
    return numbers[0].decode() if len(numbers) == 1 else "unknown"


def cache_folder() -> Path:
    """Return the folder ``torcs-lockstep`` in the user's cache folder.

    Example:
        >>> from torcs_lockstep.installation import cache_folder
        >>> cache_folder().name
        'torcs-lockstep'
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches).absolute() / "torcs-lockstep"


def bridge(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of the compiled bridge; the first call compiles it.

    Args:
        folder: the folder of the compiled bridge; by default :func:`cache_folder`.

    Example:
        >>> from torcs_lockstep.installation import bridge
        >>> bridge().suffix  # doctest: +SKIP
        '.so'
    """
    folder = cache_folder() if folder is None else Path(folder).absolute()
    flags = " ".join(FLAGS + LIBRARY_FLAGS)
    digest = hashlib.sha256(SOURCE.read_bytes() + flags.encode()).hexdigest()[:20]
    path = folder / f"torcs-bridge-{digest}.so"
    if path.exists():
        return path
    compiler = shutil.which("g++")
    if compiler is None:
        raise DependencyNotInstalled(
            "g++ is not installed, which compiles the bridge to TORCS (once). As root, on Debian "
            f"or Ubuntu:\n    {INSTALL}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder of its own, since another process may be compiling the same file.
        with tempfile.TemporaryDirectory(dir=folder, prefix=path.stem) as beside:
            built = Path(beside, path.name)
            _compile([compiler, *FLAGS, "-o", str(built), str(SOURCE), *LIBRARY_FLAGS])
            os.replace(built, path)
    except OSError as error:
        raise OSError(
            f"cannot keep the compiled bridge to TORCS in {folder} ({error.strerror}); name "
            "another folder for caches in the environment variable XDG_CACHE_HOME"
        ) from error
    return path


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(
            f"the bridge to TORCS does not compile:\n    {' '.join(command)}\n{done.stderr}"
        )
