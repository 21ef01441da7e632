"""The records beside a figure."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from gvf.common.files import write_text
from gvf_lab.paper import get
from gvf_lab.report import build
from gvf_lab.report.exhibit import Provenance, recorded
from gvf_lab.study import run
from gvf_lab.study.store import Store


def test_two_protocols_recorded_at_once_are_both_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, both = get("markov-vtrace"), Barrier(2)
    made = Provenance("quick", 1, 0, "command", "version", "machine", "today", 1.0)

    def write_together(path: Path, text: str) -> None:
        both.wait(30)
        write_text(path, text)

    monkeypatch.setattr(build, "write_text", write_together)
    with ThreadPoolExecutor(2) as pool:
        for n in range(20):
            out = tmp_path / str(n)
            records = [
                pool.submit(build.record, figure, out, protocol, made)
                for protocol in ("authors", "paper")
            ]
            for one in records:
                one.result()
            assert list(recorded(figure, out / figure.id).items()) == [
                ("paper", made),
                ("authors", made),
            ]


def test_a_study_of_the_paper_in_progress_is_not_shown_as_a_study_of_ones_own(
    tmp_path: Path,
) -> None:
    few = {"methods": ("IR",), "step_sizes": (0.1, 0.2), "updates": 20, "runs": 2}
    study = get("markov-step-size").study("paper").with_(**few)
    run(study, tmp_path)
    last = Store(study, tmp_path).path(list(study.tasks())[-1])
    last.unlink()
    with pytest.warns(RuntimeWarning, match="not finished; `gvf reproduce markov-step-size`"):
        shown = build.build(tmp_path, "command")
    assert all(one.made is None for one in shown)
