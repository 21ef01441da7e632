"""Logs of libraries that are not installed with gvf: `make test-extras` has them."""

# pyright: reportMissingImports=false

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gvf

pytestmark = pytest.mark.extras

FILES = Path(__file__).parent / "files"
COLUMNS = ("state", "action", "reward", "next_state", "terminated", "truncated", "episode")


def expected() -> dict[str, np.ndarray[Any, Any]]:
    columns = dict(np.load(FILES / "expected.npz"))
    columns["truncated"][-1] = True
    return columns


def check(log: gvf.Log, columns: tuple[str, ...] = (*COLUMNS, "behaviour_probability")) -> None:
    found, wanted = log.transitions(), expected()
    for name in columns:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_a_table_of_a_library_is_its_file(name: str) -> None:
    path = str(FILES / "polars.parquet")
    if name == "pandas":
        import pandas as pd

        table: Any = pd.read_parquet(path)
    elif name == "polars":
        import polars as pl

        table = pl.read_parquet(path)
        with pytest.raises(TypeError, match=r"after \.collect"):
            gvf.read_log(pl.scan_parquet(path))
    else:
        import duckdb

        table = duckdb.sql(f"select * from '{path}'")
    log = gvf.read_log(table, quiet=True)
    check(log, COLUMNS)
    assert log.source == f"a table of {name}"


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_minari_dataset_is_read(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(FILES / "minari"))
    options: dict[str, Any] = {"quiet": True, "in_memory": in_memory}
    check(gvf.read_log("cartpole/short-v0", **options))
    check(gvf.read_log(FILES / "minari" / "cartpole" / "short-v0", **options))
    dataset = minari.load_dataset("cartpole/short-v0")
    check(gvf.read_log(dataset, **options))
    long = gvf.read_log(dataset.filter_episodes(lambda one: len(one) == 15), **options)
    assert set(long.lengths) == {15}
    with pytest.raises(FileNotFoundError, match="no Minari dataset of that name"):
        gvf.read_log("cartpole/long-v0")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
def test_a_log_is_stored_as_a_minari_dataset(form: str, datasets: Path) -> None:
    log = gvf.read_log(FILES / "polars.parquet", quiet=True)
    stored = log.to_minari("mine/log-v0", data_format=form)
    assert stored.total_steps == 64
    assert str(stored.action_space) == "Discrete(2)"
    back = gvf.read_log("mine/log-v0", quiet=True)
    check(back, COLUMNS)
    np.testing.assert_array_equal(
        back.transitions().behaviour_log_probability, log.transitions().behaviour_log_probability
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_images_and_dicts_are_stored_without_loss(datasets: Path) -> None:
    rng = np.random.default_rng(0)
    one = {
        "obs": {"camera": rng.integers(0, 256, (4, 8, 8, 3), dtype=np.uint8), "door": [0, 1, 1, 0]},
        "action": [0.5, 0.25, 0.0],
        "reward": [1.0, 2.0, 3.0],
        "terminated": True,
        "action_logp": [-1.0, 0.5, 0.0],
    }
    log = gvf.read_log([one, one], quiet=True)
    log.to_minari("mine/images-v0")
    back = gvf.read_log("mine/images-v0", quiet=True).transitions()
    for name in ("camera", "door"):
        np.testing.assert_array_equal(back.state[name], log.transitions().state[name])
        np.testing.assert_array_equal(back.next_state[name], log.transitions().next_state[name])
    np.testing.assert_array_equal(back.behaviour_log_probability, [-1.0, 0.5, 0.0] * 2)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_about_minari_runs_and_shows_what_it_prints(
    datasets: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gvf.common.progress.EVERY", 1e6)  # slow machines print lines of progress
    page = Path(__file__).parents[2].joinpath("docs", "minari.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python3\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
    exec("".join(blocks), {"__name__": "__main__"})
    printed = "".join(reversed(capsys.readouterr()))  # the table of the log comes first
    told = re.findall(r"^```text\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
    assert printed == "".join(told)
