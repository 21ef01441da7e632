"""The store: equal results are equal bytes, and no file is wrong, incomplete or mixed up."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import gvf
from gvf.common.version import __version__
from gvf_lab.study import Study, Task, VarianceStudy, load, run_task, run_variance
from gvf_lab.study.encoding import COLUMNS, encode
from gvf_lab.study.run_study import run
from gvf_lab.study.settings import settings
from gvf_lab.study.store import Store, StoreError, stored
from gvf_lab.study.study_file import as_toml

CHAIN = Study(
    "chain", "markov-chain", ("IR", "Sarsa"), (0.5, 1.0), updates=20, steps=200, points=5, runs=2
)
WIS = Study(
    "wis", "four-rooms", ("IS", "WIS-TD(0)"), (0.5,), pairs=(("down", "uniform"),),
    update="incremental", u0=(1.0, 2.0), mu=(0.1,), steps=60, window=30, gaps=(4,), runs=1,
)  # fmt: skip


VARIANCE = VarianceStudy("v", iterations=(0, 5), batches=20, buffer=100, runs=2)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in result_files(folder)
    }


def result_files(folder: Path) -> list[Path]:
    return sorted((folder / "results").glob("**/*.parquet"))


def unfinished(folder: Path) -> list[Path]:
    return sorted((folder / ".unfinished").glob("*"))


def digest(task: Task) -> str:
    content = encode(task, task.study.compute(task, lambda: False))
    return hashlib.sha256(content).hexdigest()


def test_the_same_result_is_the_same_bytes_in_another_process() -> None:
    task = next(CHAIN.tasks())
    here = digest(task)
    program = (
        "import hashlib; from gvf_lab.study import *; from gvf_lab.study.encoding import encode;"
        f"task = next(Study(**{asdict(CHAIN)!r}).tasks());"
        "content = encode(task, task.study.compute(task, lambda: False));"
        "print(hashlib.sha256(content).hexdigest())"
    )
    there = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == here
    assert digest(task) == here


def test_any_parquet_tool_reads_all_there_is_to_know(tmp_path: Path) -> None:
    run(WIS, tmp_path)
    (path,) = result_files(tmp_path)
    table = pq.read_table(path)
    assert table.column_names == list(COLUMNS) == [
        "study", "protocol", "variant", "question", "behaviour", "gap", "run", "method",
        "step_size", "u0", "eta", "iteration",
        "error", "final", "curve", "curve_steps", "film", "l1", "l2", "scalar",
        "trace",
    ]  # fmt: skip
    rows = table.to_pylist()
    assert {(row["study"], row["protocol"]) for row in rows} == {("wis", "paper")}
    assert {(row["question"], row["behaviour"]) for row in rows} == {("down", "uniform")}
    assert {(row["gap"], row["run"]) for row in rows} == {(4, 0)}
    assert [row["method"] for row in rows] == ["IS", "WIS-TD(0)", "WIS-TD(0)"]
    assert [row["step_size"] for row in rows] == [0.5, None, None]
    assert [row["u0"] for row in rows] == [None, 1.0, 2.0]
    assert [row["eta"] for row in rows] == [None, 0.1, 0.05]
    outcome = run_task(next(WIS.tasks()))[1]
    np.testing.assert_array_equal([row["error"] for row in rows[1:]], outcome.error)
    np.testing.assert_array_equal([row["final"] for row in rows[1:]], outcome.final)
    np.testing.assert_array_equal([row["curve"] for row in rows[1:]], outcome.curve)
    assert all(row["curve_steps"] == [i + 0.5 for i in range(60)] for row in rows)
    elsewhere = ("iteration", "film", "l1", "l2", "scalar", "trace")
    assert all(row[name] is None for row in rows for name in elsewhere)
    metadata = table.schema.metadata
    inside = json.loads(metadata[b"gvf.configuration"])
    assert inside["window"] == 30
    assert (inside["question"], inside["gap"], inside["run"]) == ("down", 4, 0)
    assert metadata[b"gvf.seed"] == b"0"
    assert metadata[b"gvf.version"] == gvf.__version__.encode()
    assert metadata[b"gvf.task"] == b"wis/down/uniform/gap-4/run-0"


def test_the_variance_of_updates_is_stored_too(tmp_path: Path) -> None:
    assert run(VARIANCE, tmp_path).done == 6
    table = Store(VARIANCE, tmp_path).read()
    row = next(
        row
        for row in table.to_pylist()
        if (row["question"], row["run"], row["method"], row["iteration"]) == ("hard", 1, "IS", 5)
    )
    task = next(t for t in VARIANCE.tasks() if (t.question, t.run) == ("hard", 1))
    kinds = ("l1", "l2", "scalar", "trace")
    assert [row[kind] for kind in kinds] == list(run_variance(task)["IS"][1])
    assert (row["study"], row["protocol"]) == ("v", "both")
    elsewhere = ("gap", "step_size", "u0", "eta", "error", "final", "curve", "curve_steps", "film")
    assert all(row[name] is None for name in elsewhere)


def test_the_results_of_all_studies_are_one_table(tmp_path: Path) -> None:
    studies = CHAIN, replace(CHAIN, protocol="authors"), WIS, VARIANCE
    for study in studies:
        run(study, tmp_path)
    below = [path for path in (tmp_path / "results").glob("**/*") if path.is_file()]
    assert sorted(below) == result_files(tmp_path)
    whole = pq.read_table(tmp_path / "results")
    assert whole.column_names == list(COLUMNS)
    rows = [(row["study"], row["protocol"]) for row in whole.to_pylist()]
    for study in studies:
        number = Store(study, tmp_path).read().num_rows
        assert rows.count((study.name, study.protocol)) == number > 0


@pytest.mark.parametrize("version", ["0.2.0", "1.1.0"])
def test_results_of_another_version_are_refused_and_left_alone(
    version: str, tmp_path: Path
) -> None:
    run(CHAIN, tmp_path)
    path = result_files(tmp_path)[0]
    table = pq.read_table(path)
    other = {**(table.schema.metadata or {}), b"gvf.version": version.encode()}
    pq.write_table(table.replace_schema_metadata(other), path)
    before = digests(tmp_path)
    told = f"{path} is of gvf {version}, and this is gvf {__version__}: use"
    for use in (Store(CHAIN, tmp_path).read, lambda: run(CHAIN, tmp_path)):
        with pytest.raises(StoreError, match=re.escape(told)):
            use()
    assert digests(tmp_path) == before


def test_results_of_a_version_that_only_mends_are_read(tmp_path: Path) -> None:
    run(CHAIN, tmp_path)
    before = Store(CHAIN, tmp_path).read()
    for path in result_files(tmp_path):
        table = pq.read_table(path)
        other = {**(table.schema.metadata or {}), b"gvf.version": b"0.1.99"}
        pq.write_table(table.replace_schema_metadata(other), path)
    assert Store(CHAIN, tmp_path).read().equals(before)


def test_only_missing_tasks_run(tmp_path: Path) -> None:
    assert run(CHAIN, tmp_path).done == 6
    before = digests(tmp_path)
    for path in result_files(tmp_path)[1:3]:
        path.unlink()
    untouched = result_files(tmp_path)[0].stat().st_mtime_ns
    summary = run(CHAIN, tmp_path)
    assert (summary.done, summary.skipped, summary.damaged) == (2, 4, 0)
    assert digests(tmp_path) == before
    assert result_files(tmp_path)[0].stat().st_mtime_ns == untouched


def test_asking_for_fewer_runs_takes_none_away(tmp_path: Path) -> None:
    for runs in (1, 3, 2):
        store = Store(replace(CHAIN, runs=runs), tmp_path)
        store.prepare()
    assert load(store.log_path.with_suffix(".toml")).runs == 3


def test_what_another_process_does_meanwhile_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(CHAIN, tmp_path / "other")
    tasks = []

    def compute(task: Task, stop):
        tasks.append(task)
        # All the others are there before this one is done.
        shutil.copytree(tmp_path / "other", tmp_path / "out", dirs_exist_ok=True)
        return run_task(task, stop)

    monkeypatch.setattr("gvf_lab.study.task.run_task", compute)
    run(CHAIN, tmp_path / "out", workers=1)
    assert tasks == [next(CHAIN.tasks())]
    assert digests(tmp_path / "out") == digests(tmp_path / "other")


def test_runs_pairs_and_gaps_are_added_to_what_is_there(tmp_path: Path) -> None:
    few = replace(WIS, gaps=(4,))
    run(few, tmp_path)
    more = replace(WIS, gaps=(2, 4), runs=2, pairs=(("down", "uniform"), ("down", "random-state")))
    summary = run(more, tmp_path)
    assert (summary.done, summary.skipped) == (7, 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"seed": 1}, "seed was 0, and is 1 now"),
        ({"step_sizes": (0.5, 2.0)}, "step_sizes was [0.5, 1.0], and is [0.5, 2.0] now"),
        ({"methods": ("IR",)}, 'methods was ["IR", "Sarsa"], and is ["IR"] now'),
        ({"updates": 30}, "updates was 20, and is 30 now"),
        ({"points": 4}, "points was 5, and is 4 now"),
        ({"protocol": "authors"}, None),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_other_settings_never_meet_in_a_folder(tmp_path: Path, change: dict, why: str) -> None:
    """Results that do not fit are named, and why; those of another protocol are no mistake."""
    assert run(CHAIN, tmp_path).unfit == ()
    before = digests(tmp_path)
    folder = Store(CHAIN, tmp_path).folder
    with pytest.raises(StoreError, match="5 other tasks") as caught:
        Store(replace(CHAIN, **change), tmp_path).read()
    summary = run(replace(CHAIN, **change), tmp_path)
    assert summary.done == 6
    if why is None:
        assert summary.unfit == ()
        assert str(caught.value).endswith("computes what is missing")
    else:
        assert summary.unfit == (f"6 results in {folder} do not fit: {why}",)
        assert str(caught.value).endswith(f"computes what is missing. {summary.unfit[0]}")
    after = digests(tmp_path)
    assert len(after) == 12
    assert after.items() > before.items()
    assert run(CHAIN, tmp_path).done == 0


def test_a_later_setting_leaves_stored_results_where_they_are(tmp_path: Path) -> None:
    assert "when" not in settings(WIS)
    assert settings(replace(WIS, when="active"))["when"] == "active"
    run(WIS, tmp_path)
    assert run(replace(WIS, when="every step"), tmp_path).done == 0
    other = run(replace(WIS, when="active"), tmp_path)
    assert other.done > 0
    assert other.unfit[0].endswith('when was not there, and is "active" now')


def test_a_step_size_of_1_is_one_of_1_point_0(tmp_path: Path) -> None:
    run(CHAIN, tmp_path)
    assert run(replace(CHAIN, step_sizes=(0.5, 1)), tmp_path).done == 0


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_bit(path: Path) -> None:
    """Flip a bit of the numbers: the pages of the errors hold the method's largest part."""
    content, place = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0)
    column = next(c for c in map(place.column, range(99)) if c.path_in_schema == "error")
    content[column.data_page_offset + column.total_compressed_size - 4] ^= 1
    path.write_bytes(content)


def test_no_flipped_bit_changes_a_number_unnoticed(tmp_path: Path) -> None:
    run(CHAIN, tmp_path)
    store, task = Store(CHAIN, tmp_path), next(CHAIN.tasks())
    path = store.path(task)
    whole, (table, _) = path.read_bytes(), store._examine(task)
    noticed = 0
    for position in range(0, len(whole), 29):
        content = bytearray(whole)
        content[position] ^= 1 << position % 8
        path.write_bytes(content)
        try:
            found, trouble = store._examine(task)
        except StoreError as error:  # of another version
            found, trouble = None, str(error)
        noticed += bool(trouble)
        assert trouble or (found is not None and found.equals(table))
    assert noticed > len(whole) // 29 // 2


def damage_other_task(path: Path) -> None:
    path.write_bytes(path.with_name("run-0.parquet").read_bytes())


def damage_other_parquet(path: Path) -> None:
    import pyarrow as pa

    pq.write_table(pa.table({"x": [1]}), path)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (damage_cut, "is damaged"), (damage_empty, "is damaged"), (damage_bit, "is damaged"),
        (damage_other_task, "is not the result of this task"),
        (damage_other_parquet, "is not the result of this task"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_set_aside_and_computed_again(tmp_path, damage, why) -> None:
    run(CHAIN, tmp_path)
    before = digests(tmp_path)
    path = tmp_path / next(name for name in before if "hard/gap-1/run-1" in name)
    damage(path)
    content = path.read_bytes()
    with pytest.warns(RuntimeWarning, match=f"run-1.parquet {why}"):
        Store(CHAIN, tmp_path).read(partial=True)
    assert path.exists()
    with pytest.warns(RuntimeWarning, match=f"run-1.parquet {why}"):
        summary = run(CHAIN, tmp_path)
    assert (summary.done, summary.skipped, summary.damaged) == (1, 5, 1)
    aside = tmp_path / "damaged" / path.relative_to(tmp_path / "results")
    assert [p for p in (tmp_path / "damaged").glob("**/*") if p.is_file()] == [aside]
    assert aside.read_bytes() == content
    assert digests(tmp_path) == before


def test_a_file_that_another_process_repairs_meanwhile_stays(tmp_path, monkeypatch) -> None:
    run(CHAIN, tmp_path)
    before, task = digests(tmp_path), next(CHAIN.tasks())
    store = Store(CHAIN, tmp_path)
    path = store.path(task)
    whole, real = path.read_bytes(), Path.read_bytes
    damage_cut(path)

    def read_before_a_repair(self: Path) -> bytes:
        content = real(self)
        if self == path:
            store.save(task, whole)
        return content

    monkeypatch.setattr(Path, "read_bytes", read_before_a_repair)
    assert store.survey() == ([], [])
    monkeypatch.undo()
    assert digests(tmp_path) == before
    assert not [p for p in (tmp_path / "damaged").glob("**/*") if p.is_file()]


def fail_after_half(code: int, only: bytes):
    """`Path.open` whose files take half of what is written if it begins so, then fail."""
    real = Path.open

    def opened(self: Path, *arguments, **options):
        file = real(self, *arguments, **options)

        class Full:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                file.close()

            def write(self, content):
                if not content.startswith(only):
                    return file.write(content)
                file.write(content[: len(content) // 2])
                raise OSError(code, os.strerror(code))

        return Full() if set("xa") & set("".join(arguments)) else file

    return opened


@pytest.mark.parametrize(
    ("only", "results"), [(b"kind =", 0), (b"PAR1", 0), (b"{", 1)], ids=["study", "result", "log"]
)
def test_a_full_disk_says_what_to_do_and_leaves_no_torn_file(
    tmp_path, monkeypatch, only, results
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail_after_half(errno.ENOSPC, only))
        with pytest.raises(StoreError, match=r"no space left to write .*--out.*goes on"):
            run(CHAIN, tmp_path)
    assert unfinished(tmp_path) == []
    assert list(Store(CHAIN, tmp_path).logged()) == []
    for path in result_files(tmp_path):
        pq.read_table(path)
    assert Store(CHAIN, tmp_path).count() == len(result_files(tmp_path)) == results
    run(CHAIN, tmp_path)
    assert Store(CHAIN, tmp_path).read().num_rows == 3 * 2 * 2 * 2


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*file.*: Not a directory"):
        run(CHAIN, tmp_path / "file")


def test_that_nothing_can_be_written_is_found_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []
    monkeypatch.setattr(
        "gvf_lab.study.run_study.perform", lambda *arguments: computed.append(arguments)
    )
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*file.*; name another folder with --out"):
        run(CHAIN, tmp_path / "file" / "out")
    assert computed == []


def test_some_tasks_alone_are_a_part_of_the_whole(tmp_path: Path) -> None:
    some = list(CHAIN.tasks())[1:4:2]
    summary = run(CHAIN, tmp_path / "some", tasks=some)
    assert (summary.tasks, summary.done, summary.skipped) == (2, 2, 0)
    assert run(CHAIN, tmp_path / "some", tasks=some[:1]).skipped == 1
    run(CHAIN, tmp_path / "all")
    alone = digests(tmp_path / "some")
    assert len(alone) == 2
    assert alone.items() < digests(tmp_path / "all").items()
    with pytest.raises(ValueError, match="task wis/down/uniform/gap-4/run-0 is not one of this st"):
        run(CHAIN, tmp_path, tasks=WIS.tasks())


def test_two_processes_on_one_folder_do_no_harm(tmp_path: Path) -> None:
    study = replace(CHAIN, runs=20)
    run(study, tmp_path / "alone")
    threads = [threading.Thread(target=run, args=(study, tmp_path / "both")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert digests(tmp_path / "both") == digests(tmp_path / "alone")
    assert unfinished(tmp_path / "both") == []


def test_old_leftovers_are_swept_and_young_ones_left_alone(tmp_path: Path) -> None:
    run(CHAIN, tmp_path)
    assert unfinished(tmp_path) == []
    old, young = tmp_path / ".unfinished" / "a", tmp_path / ".unfinished" / "b"
    for path in (old, young):
        path.write_text("")
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    run(CHAIN, tmp_path)
    assert not old.exists()
    assert young.exists()


def test_what_varies_is_in_the_log_alone(tmp_path: Path) -> None:
    run(CHAIN, tmp_path, workers=1)
    store = Store(CHAIN, tmp_path)
    lines = list(store.logged())
    assert {line["task"] for line in lines} == {task.name for task in CHAIN.tasks()}
    assert all(line["seconds"] > 0 and line["workers"] == 1 for line in lines)
    with store.log_path.open("a") as file:
        file.write('{"task": "to')
    assert len(list(store.logged())) == 6
    name = store.folder.relative_to(tmp_path / "results")
    assert store.log_path == tmp_path / "logs" / name.with_suffix(".jsonl")
    assert store.log_path.with_suffix(".toml").read_text() == as_toml(CHAIN) + "\n"


def test_an_incomplete_line_of_the_log_loses_no_other(tmp_path: Path) -> None:
    store = Store(CHAIN, tmp_path)
    store.log(task="a")
    with store.log_path.open("a") as file:
        file.write('{"task": "b')
    store.log(task="c")
    store.log(task="d")
    assert [line["task"] for line in store.logged()] == ["a", "c", "d"]
    assert store.log_path.read_text().count("\n") == 4


def test_an_unfinished_study_is_read_only_if_that_is_wanted(tmp_path: Path) -> None:
    store = Store(CHAIN, tmp_path)
    with pytest.raises(StoreError, match=r"easy/easy/gap-1/run-0 and 5 other tasks; `gvf study"):
        store.read(partial=True)
    run(replace(CHAIN, runs=1), tmp_path)
    with pytest.raises(StoreError, match="run-1 and 2 other tasks"):
        store.read()
    table = store.read(partial=True)
    assert table.num_rows == 3 * 2 * 2
    assert table["question"].to_pylist() == ["easy"] * 4 + ["hard"] * 4 + ["hardest"] * 4


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "/root", "-x", ".hidden", "a b"])
def test_a_name_that_no_folder_should_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a study cannot be called"):
        Store(replace(CHAIN, name=name))


def test_stored_finds_results_and_nothing_else(tmp_path: Path) -> None:
    run(CHAIN, tmp_path)
    (tmp_path / "holiday" / "pictures").mkdir(parents=True)
    for place in ("chain", "results/chain", "results/chain/notes"):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "chain.png").write_text("")
    assert stored(tmp_path) == {"chain": [Store(CHAIN, tmp_path).folder]}


def test_a_new_setting_changes_no_digest_until_it_is_used() -> None:
    @dataclass(frozen=True, repr=False)
    class Later(Study):
        brand_new: float = 0.5

    study = {"name": "s", "domain": "markov-chain", "methods": ("IR",), "step_sizes": (1.0,)}
    before = settings(Study(**study))
    assert settings(Later(**study)) == before
    assert settings(Later(**study, brand_new=0.75)) == before | {"brand_new": 0.75}
    assert settings(Later(**study, when="active")).keys() - before.keys() == {"when"}
