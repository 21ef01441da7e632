"""The code of users in studies: what counts, and how it gets to other machines."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from own_code import CHAIN, CORRECTION, ENVIRONMENT, registering, told_by, write

from gvf.common import user_code as code
from gvf_lab import domain as domains
from gvf_lab.study import Store, Study, run
from gvf_lab.study.settings import settings

pytestmark = pytest.mark.usefixtures("own_modules")


def test_a_world_of_a_notebook_is_refused():
    message = "put it into a module of its own, so that workers and later runs find the same code"
    assert message in told_by(domains.get, "__main__:world")


def test_a_study_with_a_reloaded_class_is_another_study():
    file = write("reloaded.py", CORRECTION.format(weight=1.0))
    study = Study("s", methods=("reloaded:Mine",), **CHAIN)
    before = settings(study)
    assert run(study, "out").done == 3
    file.write_text(CORRECTION.format(weight=22.5))
    importlib.reload(sys.modules["reloaded"])
    assert settings(study)["code"] != before["code"]
    assert (run(study, "out").done, run(study, "out").done) == (3, 0)


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
from gvf.jobs import RayCluster
from gvf_lab.study import Study, run
import gymnasium

sys.path.append("other")
gymnasium.register("Own-v0", "own_environment:Env", max_episode_steps=50)
for domain in ("own_registers:Own-v1", "Own-v0"):
    study = Study("s", domain, ({"correction": "sent_correction:Mine"},), (0.5,), steps=40,
                  evaluation_states=2, runs=1)
    for folder, workers in (("ray", RayCluster(workers=1)), ("local", 1)):
        assert run(study, folder, workers=workers).done == 2
        assert run(study, folder, workers=workers).done == 0
"""


@pytest.mark.skipif(os.name != "posix", reason="Ray is tested where it runs best")
def test_ray_workers_get_environments_and_helpers_wherever_they_lie(tmp_path):
    pytest.importorskip("ray")
    write("other/own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    write("other/sent_correction.py", CORRECTION.format(weight=2.0))
    write("own_registers.py", registering("own_environment").replace("Own-v0", "Own-v1"))
    write("script/main.py", RAY)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "script/main.py"], env=environment, check=True)
    from study_runs import digests

    assert digests(Path("ray")) == digests(Path("local"))
    assert len(digests(Path("ray"))) == 4
