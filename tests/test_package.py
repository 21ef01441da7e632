"""The package as a whole: its names, its imports, its command."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from shells import completed, completion

import gvf
from gvf.cli import main
from gvf.common.distribution import how_to_install

HEAVY = {"jinja2", "matplotlib", "pyarrow", "ray", "rich", "scipy", "torch"}
PUBLIC = [name for name in gvf.__all__ if not isinstance(getattr(gvf, name, gvf), ModuleType)]
NAMESPACES = ("corrections", "features", "intervals", "judging", "learners", "neural", "online",
              "policies", "truth", "updates")  # fmt: skip
if find_spec("torch") is None:
    NAMESPACES = tuple(name for name in NAMESPACES if name != "neural")
IN_NAMESPACES = [(space, name) for space in NAMESPACES for name in getattr(gvf, space).__all__]
CONSTANTS = {"MASS", "RATIO", "TRACE", "WINDOW"}
"""Places in the arrays of a correction's kernels; numbers have no docstring."""


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "modules", ["gvf", "gvf.cli", "gvf.learners, gvf.log", "gvf.horde, gvf.answers"]
)
def test_importing_gvf_brings_in_no_heavy_module(modules: str) -> None:
    # Numba asks for SciPy's version by itself, so only what `import gvf` adds counts. It brings in
    # much of SciPy where a kernel with an explicit signature is compiled, or loaded, at import:
    # that alone takes as long as all the rest.
    program = (
        f"import gymnasium, numba, numpy, sys; before = set(sys.modules); import {modules};"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    brought = set(run("-c", program).split())
    assert "gvf" in brought
    assert brought & HEAVY == set()


@pytest.mark.parametrize("start", [["-m", "gvf"], ["-c", "from gvf.cli import main; main()"]])
def test_the_command_tells_its_version(start: list[str]) -> None:
    assert run(*start, "--version") == f"gvf {gvf.__version__}\n"


def test_the_installed_command_is_the_one_tested_here() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="gvf")
    assert command.value == "gvf.cli:main"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_command_alone_teaches_how_to_begin(arguments: list[str]) -> None:
    told = run("-m", "gvf", *arguments)
    assert "importance resampling" in told.lower()
    assert "gvf.RatioRing" in told


@pytest.mark.parametrize("name", ["behaviour", "neural", "policies", "truth"])
def test_a_subpackage_is_an_attribute(name: str) -> None:
    if name == "neural":
        pytest.importorskip("torch")
    assert run("-c", f"import gvf; print('{name}' in dir(gvf), gvf.{name}.__name__)") == (
        f"True gvf.{name}\n"
    )


def test_a_mistyped_attribute_is_answered_with_the_one_that_was_meant() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import gvf; gvf.Lerner"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.endswith("no attribute 'Lerner'. Did you mean: 'Learner'?\n")


INTERRUPT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""
"""Presses Ctrl-C when a module is about to be imported."""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(
    "module",
    ["typing", "lazy_loader", "gvf.cli.learn_and_diagnose"],
)
def test_ctrl_c_while_importing_is_one_line(module: str, script: bool, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(module=module))
    (tmp_path / "gvf").write_text("import sys\nfrom gvf.cli import main\nsys.exit(main())\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *([tmp_path / "gvf"] if script else ["-m", "gvf"]), "learn", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert (done.returncode, done.stderr) == (130, "gvf: stopped\n")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_at_any_moment_of_the_first_second_is_one_line(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "sitecustomize.py").write_text(
        INTERRUPT.format(module="numpy").replace("os.kill(os.getpid(), signal.SIGINT)",
                                                 f"open({str(begun)!r}, 'w').close()")
    )  # fmt: skip
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    for moment in range(8):
        begun.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "gvf", "record", "CartPole-v1", "--steps", "9999999"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
            cwd=tmp_path,
        )
        while not begun.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moment / 8)
        process.send_signal(signal.SIGINT)
        assert re.fullmatch(r"gvf: stopped[^\n]*\n", process.communicate(timeout=30)[1])
        assert process.returncode == 130


def test_other_programs_keep_their_ctrl_c() -> None:
    program = "import gvf, signal; print(signal.getsignal(2) is signal.default_int_handler)"
    assert run("-c", program) == "True\n"


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gvf", "rec"], {"record"}),
        (["gvf", "--ver"], {"--version"}),
        (["gvf", "record", "CartPole-v1", "--st"], {"--steps"}),
        (["gvf", "learn", "--engine", ""], {"local", "ray"}),
        (["gvf", "show", ""], {"question"}),
        (["gvf", "completion", "z"], {"zsh"}),
    ],
)
def test_a_shell_completes(shell: str, words: list[str], expected: set[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert set(completed(shell, *words)) == expected


def test_the_script_for_zsh_is_that_for_bash_with_a_preparation() -> None:
    bash, zsh = completion("bash"), completion("zsh")
    assert zsh.endswith(bash)
    assert "compinit" in zsh.removesuffix(bash)
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n"], input=zsh, text=True, check=True)


@pytest.mark.parametrize("arguments", [["--version"], ["completion", "bash"], ["--help"]])
def test_what_needs_no_numbers_starts_without_the_packages_for_them(arguments: list[str]) -> None:
    program = (
        "import sys; from gvf.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print('imported:', *{name.partition('.')[0] for name in sys.modules})"
    )
    imported = set(run("-c", program).rpartition("imported:")[2].split())
    assert not imported & {"gymnasium", "numba", "numpy", *HEAVY}
    assert ("argcomplete" in imported) == (arguments == ["completion", "bash"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "quick-check"], "`gvf run` is now `gvf study run`"),
        (["list"], "`gvf list` is now `gvf study list`"),
        (["report", "out"], "`gvf report` is now `gvf reproduce --report`"),
        (["record-racing"], "`gvf record-racing` is now `gvf reproduce --record`"),
        (["show", "quick-check"], "settings of a study: `gvf study show quick-check`"),
    ],
)
def test_a_former_command_is_answered_with_the_present_one(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("gvf: ")
    assert told.endswith(f"{message}\n")
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", ["reproduce", "verify", "study"])
def test_without_the_laboratory_its_commands_say_how_to_get_it(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gvf.cli.command_line.entry_points", lambda group: ())
    assert main([command, "--help"]) == 2
    how = "comes with the laboratory, gvf-lab; in a clone: pip install ./lab"
    assert capsys.readouterr().err == f"gvf: `gvf {command}` {how}\n"
    assert main([]) == 0
    assert "in a clone: pip install ./lab" in capsys.readouterr().out


def test_an_unknown_argument_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gvf", "--colour"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--colour" in done.stderr


def test_public_names_are_sorted_and_unique() -> None:
    assert gvf.__all__ == sorted(set(gvf.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    # Its own: `inspect.getdoc` would take that of a base class.
    assert ">>>" in (getattr(gvf, name).__doc__ or "")


@pytest.mark.parametrize(("space", "name"), IN_NAMESPACES)
def test_a_name_of_a_namespace_has_a_docstring_with_an_example(space: str, name: str) -> None:
    if name not in CONSTANTS:
        assert ">>>" in (vars(getattr(gvf, space))[name].__doc__ or "")


def test_a_public_name_has_one_home() -> None:
    names = [*PUBLIC, *(name for _, name in IN_NAMESPACES)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("space", NAMESPACES)
def test_a_namespace_lists_its_names_alone(space: str) -> None:
    module = getattr(gvf, space)
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("policies.Unifrom", "Uniform"), ("features.TileCode", "TileCoder"),
     ("corrections.by_nam", "by_name"), ("online.TDLamda", "TDLambda")],
)  # fmt: skip
def test_a_mistyped_name_of_a_namespace_is_answered_with_the_one_that_was_meant(
    wrong: str, meant: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import gvf; gvf.{wrong}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.endswith(f"Did you mean: '{meant}'?\n")


def test_without_an_extra_the_rest_can_be_looked_at() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import gvf, inspect, pydoc\n"
        "assert not hasattr(gvf, 'neural') and 'neural' in dir(gvf)\n"
        "assert 'Learner' in pydoc.render_doc(gvf)\n"
        "assert dict(inspect.getmembers(gvf))['Learner'] is gvf.Learner\n"
        "try:\n    gvf.neural\nexcept AttributeError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert how_to_install("gvf[torch]") in done.stdout


def test_dir_lists_what_users_want_and_no_tools() -> None:
    assert {"Learner", "policies", "truth", "__version__"} <= set(dir(gvf))
    assert not {"sys", "gym", "import_module", "TYPE_CHECKING"} & set(dir(gvf))
