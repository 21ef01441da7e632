"""What TORCS needs before it can start: itself, in the one version that fits, and the bridge.

The bridge (``bridge.cpp``) reads the simulator's memory by byte offsets, which hold for TORCS 1.3.7
on amd64, the version in Debian 12. Anything else is refused here, with what to do about it. The
bridge is compiled at its first use, into the folder of :mod:`gvf.common.cache`, under a name that is
a hash of its source. :mod:`gvf.domain.racing.child` starts what is found here.
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

from gvf.common.cache import default_folder
from gvf.common.names import known

VERSION = "1.3.7"
"""Of TORCS, the only one whose memory the bridge can read."""
INSTALL = "apt-get update && apt-get install -y torcs libegl1 libgl1-mesa-dri g++"
"""What brings everything, as root, on Debian and Ubuntu."""
LIBRARIES = (Path("/usr/lib/x86_64-linux-gnu/torcs"), Path("/usr/lib/torcs"))
"""Where the packages of Debian and Ubuntu put the program."""
DATA = Path("/usr/share/games/torcs")
"""Where they put tracks and cars."""
SOURCE = Path(__file__).with_name("bridge.cpp")
FLAGS = ("-O2", "-shared", "-fPIC")
LIBRARY_FLAGS = ("-pthread", "-ldl")
KINDS = ("road", "oval")
"""Of tracks on which a car stays where it is driven; on the others, of dirt, it does not."""


@dataclass(frozen=True)
class Installation:
    """Where TORCS is.

    Attributes:
        library: the folder of the program and its modules.
        data: the folder of tracks and cars.

    Example:
        >>> from gvf.domain.racing.installation import Installation
        >>> from pathlib import Path
        >>> Installation(Path("/usr/lib/torcs"), Path("/usr/share/games/torcs")).program
        PosixPath('/usr/lib/torcs/torcs-bin')
    """

    library: Path
    data: Path

    @property
    def program(self) -> Path:
        """The simulator itself."""
        return self.library / "torcs-bin"

    def tracks(self, kind: str) -> list[str]:
        """The names of the tracks of a kind, "road" or "oval"."""
        return _described(self.data / "tracks" / kind)

    def kind(self, track: str) -> str:
        """The kind of a track, "road" or "oval". An unknown track is an error."""
        kinds = {name: kind for kind in KINDS for name in self.tracks(kind)}
        return kinds[known(track, kinds, "track", f"all are in {self.data / 'tracks'}")]

    def check_car(self, car: str) -> str:
        """The name itself, if there is such a car."""
        cars = self.data / "cars"
        return known(car, _described(cars), "car", f"all are in {cars}")


def _described(folder: Path) -> list[str]:
    """Folders that hold a description of the same name, as those of tracks and cars do."""
    return sorted(
        entry.parent.name for entry in folder.glob("*/*.xml") if entry.stem == entry.parent.name
    )


def find() -> Installation:
    """TORCS on this machine; an error says what to install, or why it cannot be used.

    Example:
        >>> from gvf.domain.racing.installation import find
        >>> find().program  # doctest: +SKIP
        PosixPath('/usr/lib/x86_64-linux-gnu/torcs/torcs-bin')
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise _missing(
            f"gvf/Torcs-v0 runs on Linux on amd64 only, and this is {platform.system()} on "
            f"{platform.machine()}; gvf/CarRacing-v0 has the same observation, action and info, "
            "and runs anywhere"
        )
    library = next((folder for folder in LIBRARIES if (folder / "torcs-bin").exists()), None)
    if library is None or not DATA.exists():
        raise _missing(
            f"TORCS is not installed. As root, on Debian or Ubuntu:\n    {INSTALL}\n"
            "gvf/CarRacing-v0 has the same observation, action and info, and needs no TORCS"
        )
    version = version_of(library)
    if version != VERSION:
        raise _missing(
            f"TORCS in {library} is version {version}, and gvf can only use {VERSION}, whose "
            "memory it knows how to read; it is the package torcs of Debian 12"
        )
    return Installation(library, DATA)


def version_of(library: Path) -> str:
    """The version that the menus of TORCS show, or "unknown".

    Example:
        >>> from gvf.domain.racing.installation import version_of
        >>> from pathlib import Path
        >>> version_of(Path("/nowhere"))
        'unknown'
    """
    client = library / "lib" / "libclient.so"
    numbers = re.findall(rb"\0(\d+\.\d+\.\d+)\0", client.read_bytes()) if client.exists() else []
    return numbers[0].decode() if len(numbers) == 1 else "unknown"


def bridge(folder: str | os.PathLike[str] | None = None) -> Path:
    """The compiled bridge, compiled now if it has not been before.

    Args:
        folder: where it is kept; by default :func:`gvf.common.cache.default_folder`.

    Example:
        >>> from gvf.domain.racing.installation import bridge
        >>> bridge().suffix  # doctest: +SKIP
        '.so'
    """
    folder = default_folder() if folder is None else Path(folder).absolute()
    flags = " ".join(FLAGS + LIBRARY_FLAGS)
    digest = hashlib.sha256(SOURCE.read_bytes() + flags.encode()).hexdigest()[:20]
    path = folder / f"torcs-bridge-{digest}.so"
    if path.exists():
        return path
    compiler = shutil.which("g++")
    if compiler is None:
        raise _missing(
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
            "another folder in the environment variable GVF_CACHE_DIR"
        ) from error
    return path


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(
            f"the bridge to TORCS does not compile:\n    {' '.join(command)}\n{done.stderr}"
        )


def _missing(message: str) -> Exception:
    # Imported late: without Gymnasium there is no environment to make, but much else.
    from gymnasium.error import DependencyNotInstalled

    return DependencyNotInstalled(message)
