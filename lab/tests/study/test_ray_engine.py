"""The engine Ray: the same bits, also when a node is lost."""

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from own_code import CHAIN, write
from study_runs import STOPPED, STUDY, beside_progress, digests, needs_posix, start

from gvf.cli import main
from gvf.common.distribution import how_to_install
from gvf.jobs import RayCluster
from gvf_lab.study.run_study import run

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def ray():
    ray = pytest.importorskip("ray")
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_ray_on_one_machine_gives_the_same_bits(
    tmp_path: Path, undisturbed: dict[str, str], ray
) -> None:
    assert run(STUDY, tmp_path, workers=RayCluster(workers=2)).done == 30
    assert digests(tmp_path) == undisturbed
    assert run(STUDY, tmp_path, workers=RayCluster(workers=2)).done == 0
    assert not ray.is_initialized()


@pytest.mark.skipif(sys.platform != "linux", reason="finds the node's processes in /proc")
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_that_loses_a_node_gives_the_same_bits(
    tmp_path: Path, undisturbed: dict[str, str], ray
) -> None:
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    (raylet,) = nodes[0].all_processes["raylet"]
    lost: list[int] = []

    def lose_a_node() -> None:
        while len(list(tmp_path.glob("**/*.parquet"))) < 4:
            time.sleep(0.01)
        lost.append(len(list(tmp_path.glob("**/*.parquet"))))
        # As when the power goes: its workers too, whatever they are at.
        pid = raylet.process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        cluster.remove_node(nodes[0], allow_graceful=False)

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    try:
        assert run(STUDY, tmp_path, workers=RayCluster(cluster.address)).done == 30
        thread.join()
        assert 4 <= lost[0] < 30
        assert digests(tmp_path) == undisturbed
    finally:
        cluster.shutdown()


@needs_posix
def test_an_interrupt_under_ray_keeps_what_is_done(
    tmp_path: Path, toml: Path, undisturbed: dict[str, str]
) -> None:
    pytest.importorskip("ray")
    out = tmp_path / "out"
    process = start(toml, out, 2, "--engine", "ray")
    while len(list(out.glob("**/*.parquet"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all processes that it started
    told, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert (process.returncode, told, beside_progress(errors)) == (130, "", STOPPED)
    kept = digests(out)
    assert 3 <= len(kept) < 30
    assert kept.items() <= undisturbed.items()
    assert run(STUDY, out).skipped == len(kept)
    assert digests(out) == undisturbed


FAILING = """
from gvf_lab.study import Study

class Failing(Study):
    kind = "failing:Failing"

    def compute(self, task, stop):
        raise RuntimeError("broken")

    def check(self):
        pass
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("own_modules", "ray")
def test_a_task_that_fails_under_ray_is_named(tmp_path: Path) -> None:
    write("failing.py", FAILING)
    study = importlib.import_module("failing").Failing("s", methods=("IR",), **CHAIN)
    with pytest.raises(RuntimeError, match="broken") as caught:
        run(study, tmp_path, workers=RayCluster(workers=1))
    assert caught.value.__notes__ == [f"in job {next(study.tasks()).name}"]


def test_without_ray_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["study", "run", "quick-check", "--engine", "ray"]) == 2
    assert how_to_install("gvf[ray]") in capsys.readouterr().err
