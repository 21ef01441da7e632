"""The code of users: what counts as theirs, and how it gets to other machines."""

import importlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from own_code import CORRECTION, told_by, write
from own_corrections import SquareRoot

import gvf
from gvf.common import user_code as code
from gvf.learners.method import Method

pytestmark = pytest.mark.usefixtures("own_modules")


_PATH = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]


def digest_after(files: dict[str, str], reference: str) -> str:
    """Return a reference's digest, as a new process computes it after these files are written."""
    for name, text in files.items():
        write(name, text)
    script = (
        "import sys; from gvf.common.user_code import digest; print(*digest(sys.argv[1:]).values())"
    )
    given = [sys.executable, "-c", script, reference]
    path = os.pathsep.join([str(Path.cwd()), str(Path("other").resolve()), *_PATH])
    done = subprocess.run(
        given, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    return done.stdout


# Code that cannot be found again


def test_code_of_a_notebook_is_refused(monkeypatch):
    monkeypatch.setattr(SquareRoot, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "SquareRoot", SquareRoot, raising=False)
    told = "put it into a module of its own, so that workers and later runs find the same code"
    assert told in told_by(Method.of, SquareRoot)
    assert told in told_by(Method.of, SquareRoot())
    assert told in told_by(Method.of, "__main__:SquareRoot")
    assert told in told_by(Method.of, {"correction": "__main__:SquareRoot"})
    assert told in told_by(Method.of, {"correction": "IR", "update": "__main__:Update"})
    assert told in told_by(code.digest, ["__main__:SquareRoot"])


def test_code_without_a_file_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "nowhere_at_all", type(sys)("nowhere_at_all"))
    assert "has no file" in told_by(code.digest, ["nowhere_at_all:Mine"])


def test_a_class_that_is_reloaded_is_the_new_one():
    file = write("reloaded.py", CORRECTION.format(weight=1.0))
    method = Method.of("reloaded:Mine")
    before = code.digest(["reloaded:Mine"])
    file.write_text(CORRECTION.format(weight=22.5))
    module = importlib.reload(sys.modules["reloaded"])
    assert type(method.make(1.0)) is module.Mine
    assert code.digest(["reloaded:Mine"]) != before
    assert Method.of(module.Mine).correction == "reloaded:Mine"


def test_an_edit_without_reloading_changes_nothing():
    file = write("edited.py", CORRECTION.format(weight=1.0))
    Method.of("edited:Mine")
    before = code.digest(["edited:Mine"])
    file.write_text(CORRECTION.format(weight=22.5))
    assert code.digest(["edited:Mine"]) == before


# What counts as a user's code


USED = """
import math
from functools import lru_cache
SHARE, OTHER = 0.5, 7
@lru_cache(4)
def half(x):
    return SHARE * x
class Base:
    size = 3
class Mine(Base):
    def act(self, x):
        return half(x)
Mine.limit = 2
def unused():
    return math.pi
"""


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("SHARE, OTHER = 0.5, 7", "SHARE, OTHER = 0.6, 7", True),
        ("SHARE * x", "SHARE + x", True),
        ("@lru_cache(4)", "@lru_cache(4)  # of results", False),
        ("@lru_cache(4)", "@lru_cache(5)", True),
        ("size = 3", "size = 4", True),
        ("Mine.limit = 2", "Mine.limit = 3", True),
        ("math.pi", "math.e", False),
        ("import math\n", "", False),
        ("def act", "def acts", True),
        ("\ndef unused", "\nfor SHARE in (1, 2):\n    pass\ndef unused", True),
        ("\ndef unused", "\nfrom own_code import *\ndef unused", True),
        ("\ndef unused", "\nunused = Mine\ndef unused", False),
    ],
)
def test_of_a_module_only_what_the_attribute_needs_counts(old, new, changes):
    before, after = (
        digest_after({"used.py": text}, "used:Mine") for text in (USED, USED.replace(old, new))
    )
    assert (before != after) == changes


def test_of_a_module_without_the_attribute_all_counts():
    # As the id of an environment, which the module registers.
    before, after = (
        digest_after({"used.py": text}, "used:Mine-v1")
        for text in (USED, USED.replace("math.pi", "math.e"))
    )
    assert before != after


def test_a_helper_from_another_place_on_the_path_counts():
    world = {"worlds_here.py": "from helper_there import size\n"}
    first = digest_after(world | {"other/helper_there.py": "size = 1\n"}, "worlds_here:size")
    second = digest_after(world | {"other/helper_there.py": "size = 2\n"}, "worlds_here:size")
    third = digest_after(world | {"other/helper_there.py": "size = 1  # one\n"}, "worlds_here:size")
    assert first != second
    assert first == third


def test_files_go_under_their_import_paths(monkeypatch):
    write("real/anything.py", "x = 1\n")
    Path("linked.py").symlink_to(Path("real/anything.py"))
    write("there/pack/__init__.py", "")
    write("there/pack/inner.py", "from .beside import y\nfrom . import third\nimport numpy\n")
    write("there/pack/beside.py", "import linked, space.deep.leaf\ny = 1\n")
    write("there/pack/third.py", "def late():\n    import later\n")
    write("there/pack/not_used.py", "")
    write("space/deep/leaf.py", "raise RuntimeError('it is looked at, not imported')\n")
    write("later.py", "import json\n")
    monkeypatch.setattr(sys, "path", [str(Path("there").resolve()), *sys.path])
    sent = code.files(["pack.inner:y"])
    assert set(sent) == {
        "pack/__init__.py", "pack/inner.py", "pack/beside.py", "pack/third.py", "linked.py",
        "space/deep/leaf.py", "later.py",
    }  # fmt: skip
    assert "pack" not in sys.modules
    assert code.folders(["pack.inner:y"]) == sorted(map(str, (Path.cwd(), Path("there").resolve())))


def test_an_installed_package_is_its_distribution(monkeypatch):
    assert code.digest(["numpy.linalg:norm"]) == {"numpy.linalg:norm": f"numpy {np.__version__}"}
    assert code.digest(["gvf.corrections:IR"])["gvf.corrections:IR"] == f"gvf {gvf.__version__}"
    assert code.files(["numpy.linalg:norm", "json:dumps"]) == {}
    code._distributions.cache_clear()
    monkeypatch.setattr(metadata, "packages_distributions", lambda: {"yaml": ["PyYAML"] * 2})
    monkeypatch.setattr(metadata, "version", {"PyYAML": "6.0"}.__getitem__)
    assert code._distributions("yaml") == "PyYAML 6.0"
    code._distributions.cache_clear()


def test_a_file_that_is_not_python_is_told_in_one_line():
    write("whole.py", "import torn\n")
    write("torn.py", "x = 1\ndef f(:\n")
    assert "torn.py, line 2 is not Python" in told_by(code.digest, ["whole:x"])
    Path("torn.py").write_bytes(b"# \xff\n")
    assert "torn.py" in told_by(code.digest, ["whole:x"])


def test_a_file_in_another_encoding_counts_and_goes_along():
    Path("latin.py").write_bytes("# coding: latin-1\nname = 'é'\r\n".encode("latin-1"))
    assert len(code.digest(["latin:name"])["latin:name"]) == 16
    assert code.files(["latin:name"])["latin.py"] == Path("latin.py").read_bytes()


# Other machines


def test_processes_install_at_the_same_time_and_leave_nothing(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    sent = {"pack/__init__.py": b"", **{f"pack/m{i}.py": b"x = 1\n" * 9999 for i in range(20)}}
    write("sent.py", f"from gvf.common.user_code import install\ninstall({sent!r})\n")
    script = (
        "import sent, importlib, os, stat, pack\n"
        "assert all(importlib.import_module(f'pack.m{i}').x == 1 for i in range(20))\n"
        "assert os.stat(pack.__path__[0] + '/..').st_mode & 0o077 == 0\n"
        "print(pack.__path__[0])\n"
    )
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    places = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert len(places) == 4
    assert list(temporary.iterdir()) == []


def test_what_was_sent_is_what_is_imported(monkeypatch):
    """Sent code is used even if other code has its name, sent before or on this machine."""
    write("sent_one.py", "x = 'here'\n")
    assert importlib.import_module("sent_one").x == "here"
    monkeypatch.setattr(code, "_here", None)
    for text in ("first", "second"):
        code.install({"sent_one.py": f"x = {text!r}\n".encode()})
        assert importlib.import_module("sent_one").x == text
        before = sys.modules["sent_one"]
        code.install({"sent_one.py": f"x = {text!r}\n".encode()})
        assert sys.modules["sent_one"] is before
    assert sum("gvf-code-" in place for place in sys.path) == 1
