"""The package as a whole: its names, its imports, its command."""

import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import gvf

HEAVY = {"jinja2", "matplotlib", "pyarrow", "ray", "rich", "scipy", "torch"}
PUBLIC = [name for name in gvf.__all__ if not name.startswith("__")]


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("modules", ["gvf", "gvf, gvf.paper, gvf.study, gvf.cli"])
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


@pytest.mark.parametrize("name", ["cli", "neural", "paper", "report", "study", "theory", "truth"])
def test_a_subpackage_is_an_attribute(name: str) -> None:
    if name == "neural":
        pytest.importorskip("torch")
    assert run("-c", f"import gvf; print('{name}' in dir(gvf), gvf.{name}.__name__)") == (
        f"True gvf.{name}\n"
    )


def test_all_subpackages_are_listed() -> None:
    packages = {module.name for module in pkgutil.iter_modules(gvf.__path__) if module.ispkg}
    assert packages <= set(run("-c", "import gvf; print(*dir(gvf))").split())


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
    "module", ["typing", "numpy", "gymnasium", "gvf.cli.theory", "gvf.paper.studies"]
)
def test_ctrl_c_while_importing_is_one_line(module: str, script: bool, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(module=module))
    (tmp_path / "gvf").write_text("import sys\nfrom gvf.cli import main\nsys.exit(main())\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *([tmp_path / "gvf"] if script else ["-m", "gvf"]), "list"],
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
            [sys.executable, "-m", "gvf", "verify"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        while not begun.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moment / 8)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[1] == "gvf: stopped\n"
        assert process.returncode == 130


def test_other_programs_keep_their_ctrl_c() -> None:
    program = "import gvf, signal; print(signal.getsignal(2) is signal.default_int_handler)"
    assert run("-c", program) == "True\n"


@cache
def completion(shell: str) -> str:
    return run("-m", "gvf", "completion", shell)


def completed(shell: str, *words: str) -> list[str]:
    """Ask a shell what it makes of words, the last of which is not whole."""
    script = completion(shell)
    if shell == "bash":
        array = " ".join(f"'{word}'" for word in words)
        script += f"COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _gvf\n"
        script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    else:
        script += f"complete -C '{' '.join(words)}'\n"
    began = time.perf_counter()
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.perf_counter() - began < 5  # no Python is started, even on a busy machine
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gvf", "rep"], {"reproduce", "report"}),
        (["gvf", "--ver"], {"--version"}),
        (["gvf", "run", "qui"], {"quick-check"}),
        (["gvf", "reproduce", "markov-var"], {"markov-variance", "markov-variance-all"}),
        (["gvf", "run", "quick-check", "--pro"], {"--protocol"}),
        (["gvf", "reproduce", "--protocol", ""], {"paper", "authors", "both"}),
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
    assert "bashcompinit" in zsh.removesuffix(bash)
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n"], input=zsh, text=True, check=True)


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


def test_without_an_extra_the_rest_can_be_looked_at() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import gvf, inspect, pydoc\n"
        "assert not hasattr(gvf, 'neural') and 'neural' in dir(gvf)\n"
        "assert 'Learner' in pydoc.render_doc(gvf)\n"
        "assert dict(inspect.getmembers(gvf))['IR'] is gvf.IR\n"
        "try:\n    gvf.neural\nexcept AttributeError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'pip install "gvf[torch]"' in done.stdout


def test_dir_lists_what_users_want_and_no_tools() -> None:
    assert {"Learner", "study", "report", "__version__"} <= set(dir(gvf))
    assert not {"sys", "gym", "import_module", "TYPE_CHECKING"} & set(dir(gvf))
