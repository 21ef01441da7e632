"""The code of users: what counts as theirs, and how it gets to other machines."""

import importlib
import os
import subprocess
import sys
import threading
import time
from functools import partial
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from own_corrections import SquareRoot

import gvf
from gvf import domain as domains
from gvf.common import code
from gvf.common.gym import gym
from gvf.common.names import nearest
from gvf.racing import RacingStudy
from gvf.study import Method, Store, Study, VarianceStudy, run
from gvf.study.encoding import references, settings

CORRECTION = """
from dataclasses import dataclass

import gvf

@dataclass(frozen=True)
class Mine(gvf.Correction):
    @staticmethod
    def weigh(inputs, p, means, parameters, out):
        out[:] = {weight} * inputs[0] / out.size
"""
ENVIRONMENT = """
import gymnasium

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), REWARD, False, False, {}
"""
CHAIN = {"domain": "markov-chain", "step_sizes": (0.5,), "updates": 10, "runs": 1}


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Make a folder from which modules are imported in this test only."""
    before = {*sys.modules}
    registry = dict(gym.registry)
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    for name in {*sys.modules} - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    gym.registry.clear()
    gym.registry.update(registry)
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    return path


def told_by(function, *given) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (looked at below)
        function(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def digest_after(files: dict[str, str], reference: str) -> str:
    """Return a reference's digest, as a new process computes it after these files are written."""
    for name, text in files.items():
        write(name, text)
    script = "import sys; from gvf.common.code import digest; print(*digest(sys.argv[1:]).values())"
    given = [sys.executable, "-c", script, reference]
    path = os.pathsep.join([str(Path.cwd()), str(Path("other").resolve())])
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
    assert told in told_by(domains.get, "__main__:world")
    assert told in told_by(code.digest, ["__main__:SquareRoot"])


def test_code_without_a_file_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "nowhere_at_all", type(sys)("nowhere_at_all"))
    assert "has no file" in told_by(code.digest, ["nowhere_at_all:Mine"])


def test_a_class_that_is_reloaded_is_the_new_one():
    file = write("reloaded.py", CORRECTION.format(weight=1.0))
    method = Method.of("reloaded:Mine")
    study = Study("s", methods=("reloaded:Mine",), **CHAIN)
    before = settings(study)
    assert run(study, "out").done == 3
    file.write_text(CORRECTION.format(weight=22.5))
    module = importlib.reload(sys.modules["reloaded"])
    assert type(method.make(1.0)) is module.Mine
    assert settings(study)["code"] != before["code"]
    assert Method.of(module.Mine).correction == "reloaded:Mine"
    assert (run(study, "out").done, run(study, "out").done) == (3, 0)


def test_an_edit_without_reloading_changes_nothing():
    file = write("edited.py", CORRECTION.format(weight=1.0))
    Method.of("edited:Mine")
    before = code.digest(["edited:Mine"])
    file.write_text(CORRECTION.format(weight=22.5))
    assert code.digest(["edited:Mine"]) == before


# What counts as a user's code


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
    assert code.digest(["gvf.correction:IR"])["gvf.correction:IR"] == f"gvf {gvf.__version__}"
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


# Worlds


def registering(module: str) -> str:
    return f"import gymnasium\ngymnasium.register('Own-v0', '{module}:Env', max_episode_steps=50)\n"


def study_in(domain: str) -> Study:
    return Study("s", domain, ("IR",), (0.5,), steps=40, evaluation_states=2, runs=1)


def test_the_module_of_a_gymnasium_id_counts():
    write("own_registers.py", registering("own_environment"))
    write("own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    study = study_in("own_registers:Own-v0")
    assert domains.references(study.domain) == ("own_registers:Own-v0", "own_environment:Env")
    assert (
        settings(study)["code"].keys() == references(study) == {*domains.references(study.domain)}
    )
    assert set(code.files(references(study))) == {"own_registers.py", "own_environment.py"}


def test_an_environment_that_a_user_registered_counts():
    write("own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    made = importlib.import_module("own_environment").Env
    for given in ("own_environment:Env", made, partial(made)):
        gym.registry.pop("Own-v0", None)
        gym.register("Own-v0", given)
        assert domains.references("Own-v0") == ("own_environment:Env",)
    assert len(settings(study_in("Own-v0"))["code"]["own_environment:Env"]) == 16
    found = settings(study_in("CartPole-v1"))["code"]
    assert [*found.values()] == [f"gymnasium {gym.__version__}"]


def test_an_id_that_is_registered_again_is_another_domain():
    write("own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    gym.register("Own-v0", "own_environment:Env")
    first = domains.get("Own-v0")
    assert domains.get("Own-v0") is first
    del gym.registry["Own-v0"]
    gym.register("Own-v0", "own_environment:Env", max_episode_steps=3)
    assert domains.get("Own-v0") is not first


def test_an_entry_point_counts(monkeypatch):
    points = [EntryPoint("my-world", "own_world:make [extra]", "gvf.domains")]
    monkeypatch.setattr(
        domains, "entry_points",
        lambda group, name=None: [p for p in points if name in (None, p.name)],
    )  # fmt: skip
    write("own_world.py", "import gvf\n\n\ndef make():\n    return gvf.domain.get('star')\n")
    assert domains.references("my-world") == ("own_world:make",)
    assert len(settings(study_in("my-world"))["code"]["own_world:make"]) == 16


def test_our_domains_have_no_code_of_a_user():
    assert all(domains.references(name) == () for name in domains.names())
    assert domains.references("nothing like this") == ()
    assert "code" not in settings(Study("s", methods=("IR",), **CHAIN))
    assert "code" not in settings(RacingStudy("r", step_sizes=(0.1,)))


def test_the_generation_is_the_domains(monkeypatch):
    assert settings(Study("s", methods=("IR",), **CHAIN))["generation"] == 1
    assert settings(VarianceStudy("v"))["generation"] == 1
    assert settings(RacingStudy("r", step_sizes=(0.1,)))["generation"] == 1
    rooms = Study("s", "continuous-four-rooms", ("IR",), (0.5,))
    assert settings(rooms)["generation"] == 1
    assert settings(rooms.under("authors"))["generation"] == 2
    monkeypatch.setattr(type(domains.get("markov-chain")), "generation", 7)
    assert settings(Study("s", methods=("IR",), **CHAIN))["generation"] == 7
    assert settings(VarianceStudy("v"))["generation"] == 7


def test_a_domain_is_made_once(monkeypatch):
    made = []

    def slow(protocol):
        made.append(protocol)
        time.sleep(0.05)
        return object.__new__(domains.GymnasiumDomain)

    monkeypatch.setitem(domains._DOMAINS, "slow", slow)
    found = []
    threads = [
        threading.Thread(target=lambda given=given: found.append(domains.get("slow", *given)))
        for given in [(), ("paper",)] * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["paper"]
    assert len({*map(id, found)}) == 1
    assert domains.get("slow", protocol="authors") is not found[0]
    assert domains.get("CartPole-v1", "authors") is domains.get("CartPole-v1")
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]
    assert domains.get("slow") is not found[0]


def test_a_domain_of_a_reloaded_module_is_the_new_one():
    file = write("own_world.py", "import gvf\n\n\ndef make():\n    return gvf.domain.get('star')\n")
    assert domains.get("own_world:make").name == "star"
    file.write_text(file.read_text().replace("'star'", "'markov-chain'"))
    importlib.reload(sys.modules["own_world"])
    assert domains.get("own_world:make").name == "markov-chain"


@pytest.mark.parametrize(
    ("name", "names", "told"),
    [
        ("b", ["a", "bc"], "did you mean 'bc'? Known are 'a', 'bc'"),
        ("x", ["a", "bc"], "known are 'a', 'bc'"),
        ("x", [], "known are none"),
        ("Vtrace", ["IR", "V-trace(1.0)"], "did you mean 'V-trace(1.0)'? Known are 'IR', 'V-tr"),
        ("lane-999", [f"lane-{i}" for i in range(900)], "did you mean 'lane-99' or 'lane-"),
        ("x", [f"lane-{i}" for i in range(900)], "known are 'lane-0', 'lane-1', 'lane-2', "),
    ],
)
def test_a_message_has_the_nearest_names_and_all_only_if_they_are_few(name, names, told):
    message = nearest(name, names)
    assert message.startswith(told)
    assert len(message) < 150


def test_a_mistyped_domain_is_recognised_among_the_ids_of_gymnasium():
    told = told_by(domains.get, "CartPol-v1")
    assert told.startswith("unknown domain: 'CartPol-v1'; did you mean 'CartPole-v1'")
    assert len(told) < 200


# Other machines


def test_processes_install_at_the_same_time_and_leave_nothing(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    sent = {"pack/__init__.py": b"", **{f"pack/m{i}.py": b"x = 1\n" * 9999 for i in range(20)}}
    write("sent.py", f"from gvf.common.code import install\ninstall({sent!r})\n")
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


def test_a_correction_that_was_sent_is_compiled(monkeypatch):
    write("sent_correction.py", CORRECTION.format(weight=2.0))
    reference = "sent_correction:Mine"
    before, sent = code.digest([reference]), code.files([reference])
    Path("sent_correction.py").unlink()
    monkeypatch.setattr(code, "_here", None)
    code.install(sent)
    study = Study("s", methods=(reference,), **CHAIN)
    assert "gvf-code-" in str(sys.modules["sent_correction"].__file__)
    assert code.digest([reference]) == before
    assert run(study, "out").done == 3
    assert Store(study, "out").count() == 3


RAY = """
import sys
from gvf.study import Study, run
import gymnasium

sys.path.append("other")
gymnasium.register("Own-v0", "own_environment:Env", max_episode_steps=50)
for domain in ("own_registers:Own-v1", "Own-v0"):
    study = Study("s", domain, ({"correction": "sent_correction:Mine"},), (0.5,), steps=40,
                  evaluation_states=2, runs=1)
    for engine in ("ray", "local"):
        assert run(study, engine, engine=engine, workers=1).done == 2
        assert run(study, engine, engine=engine, workers=1).done == 0
"""


@pytest.mark.skipif(os.name != "posix", reason="Ray is tested where it runs best")
def test_ray_workers_get_environments_and_helpers_wherever_they_lie(tmp_path):
    pytest.importorskip("ray")
    write("other/own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    write("other/sent_correction.py", CORRECTION.format(weight=2.0))
    write("own_registers.py", registering("own_environment").replace("Own-v0", "Own-v1"))
    write("script/main.py", RAY)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "script/main.py"], env=environment, check=True)
    from test_run import digests

    assert digests(Path("ray")) == digests(Path("local"))
    assert len(digests(Path("ray"))) == 4


# Methods


@pytest.mark.parametrize("given", ["VTrace(0.3", "V-trace(", "VTrace(0.3)x", "VTrace(0.3)("])
def test_a_bracket_must_be_closed(given):
    assert "the bracket is not closed" in told_by(Method.of, given)
    assert "the bracket is not closed" in told_by(Method.of, {"correction": given})


@pytest.mark.parametrize("colour", ["#112233", "#abc", "#ABCDEF", "teal"])
def test_a_colour_makes_no_other_method(colour):
    plain, coloured = Method.of("IR"), Method.of({"correction": "IR", "colour": colour})
    assert coloured.same(plain)
    assert plain.same(coloured)
    assert not coloured.same(Method.of("IS"))
    assert settings(Study("s", methods=(coloured,), **CHAIN)) == settings(
        Study("s", methods=("IR",), **CHAIN)
    )


@pytest.mark.parametrize("colour", ["#12", "#12345g", "red!", "1", "tab:blue", "dark red"])
def test_what_is_no_colour_is_told(colour):
    assert "colour of a method" in told_by(Method.of, {"correction": "IR", "colour": colour})


@pytest.mark.parametrize("update", ["json:dumps", "gvf:IR", "gvf:__version__"])
def test_what_is_no_update_is_told(update):
    told = told_by(Method.of, {"correction": "IR", "update": update})
    assert told.startswith(f"update {update!r} is ")
    assert told.endswith("not a subclass of gvf.Update")
    assert "not a subclass of gvf.Update" in told_by(
        lambda: Study("s", methods=("IR",), update=update, **CHAIN)
    )
