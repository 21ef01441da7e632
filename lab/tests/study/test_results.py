"""Results of a study: one table for any tool, read by its keys."""

from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from study_runs import CHAIN

from gvf.cli import main
from gvf_lab.study import Results, Store, VarianceStudy, run
from gvf_lab.study.encoding import checksum

pytestmark = pytest.mark.usefixtures("apart")


def test_the_results_folder_is_one_table_for_any_tool():
    run(CHAIN, "out")
    run(VarianceStudy("v", iterations=(0, 5), batches=20, buffer=100, runs=1), "out")
    main(["study", "plot", "chain", "--out", "out"])
    folder = Path("out/results")
    assert {path.suffix for path in folder.glob("**/*") if path.is_file()} == {".parquet"}
    table = ds.dataset(folder, format="parquet").to_table()
    assert table.num_rows == 2 * 3 * 4 + 3 * 8 * 2
    assert set(table["study"].to_pylist()) == {"chain", "v"}
    schemas = {pq.read_schema(path).remove_metadata() for path in folder.glob("**/*.parquet")}
    assert len(schemas) == 1
    row = next(row for row in table.to_pylist() if row["study"] == "chain")
    assert (row["protocol"], row["method"], row["step_size"]) == ("paper", "IR", 0.5)
    assert row["curve_steps"] == [2.5, 7.5, 12.5, 17.5]
    for tool in ("pandas", "polars", "duckdb"):
        read_with(tool, folder, table.num_rows)


def read_with(tool: str, folder: Path, rows: int) -> None:
    try:
        module = __import__(tool)
    except ModuleNotFoundError:
        return
    if tool == "duckdb":
        assert len(module.sql(f"SELECT * FROM '{folder}/**/*.parquet'").fetchall()) == rows
    else:
        assert len(module.read_parquet(str(folder))) == rows


def test_results_are_read_by_their_keys_wherever_rows_stand():
    run(CHAIN, "out")
    store = Store(CHAIN, "out")
    before = Results.read(store)
    for task in CHAIN.tasks():
        path = store.path(task)
        table = pq.read_table(path)
        order = np.random.default_rng(task.run).permutation(table.num_rows)
        shuffled = table.take(order)
        metadata = {**table.schema.metadata, b"gvf.checksum": checksum(shuffled)}
        pq.write_table(shuffled.replace_schema_metadata(metadata), path)
    after = Results.read(store)
    assert list(after.by_method) == list(before.by_method)
    for key, cell in before.by_method.items():
        for name in ("error", "final", "curve", "curve_steps"):
            np.testing.assert_array_equal(after.by_method[key][name], cell[name])
