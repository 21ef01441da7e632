"""Fixtures of the tests of studies."""

import pytest
from study_runs import STUDY, digests

from gvf_lab.study.run_study import run


@pytest.fixture(autouse=True)
def truths_in_a_temporary_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVF_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "truth"))


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(STUDY, folder).done == 30
    return digests(folder)
