"""Every row of `make bench` on a tiny model: it measures, it can miss its bound, and the table says which."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.bench import __main__ as bench
from tests.bench import pairs
from tests.bench.pairs import Outcome, percentile, ratio
from tests.bench.subject import Sizes, Subject
from tests.bench.table import Result, Row, markdown
from tests.model.checkpoint import files

PROMISED = {
    "decode-reference": 0.5, "prefill-reference": 1.0, "decode-captured": 1.05, "prefill-captured": 1.10,
    "decode-floor": 2.0, "decode-bfloat16": 0.6, "prefill-bfloat16": 1.3, "decode-float16": 0.6,
    "prefill-float16": 1.3, "head-raw": 1.5, "head-scores": 1.5, "head-masked": 1.5, "head-weights": 1.5,
    "head-weighted": 1.5, "grid": 2.0, "grid-first": 0.05, "sampler-preview": 0.3, "memory": 1.5, "view-latency": 3.0,
    "opening": 1.5, "export": 1.0, "export-memory": 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    sizes = Sizes(short=8, medium=12, long=16, whole=24, picture=8, vocabulary=3000)
    return Subject(str(files.folder(tmp_path_factory.mktemp("tiny"))), sizes)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def row(name: str) -> Row:
    return next(row for row in bench.ROWS if row.name == name)


def made_up(bound: float, value: float, **fields: object) -> Result:
    at = replace(row("grid"), bound=bound, why="the reason")
    return Result(row=at, outcome=Outcome(value=value, low=value, high=value, n=1, **fields))  # type: ignore[arg-type]


def test_every_promise_has_its_row_and_bound() -> None:
    assert {row.name: row.bound for row in bench.ROWS} == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_every_row_measures(name: str, subject: Subject) -> None:
    result = bench.measured(row(name), subject, 1)
    assert result.outcome is not None
    assert math.isfinite(result.outcome.value) and result.outcome.n == 1
    assert 0 < result.outcome.low <= result.outcome.value <= result.outcome.high


def test_a_bound_is_reached_or_missed() -> None:
    assert made_up(1.0, 1.0).verdict == "yes" and "the reason" not in made_up(1.0, 1.0).note
    assert made_up(1.0, 1.001).verdict == "NO" and "the reason" in made_up(1.0, 1.001).note
    assert made_up(1.0, math.nan).verdict == "NO"


def test_pairs_are_interleaved_and_their_ratios_ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    times = {"ours": iter([10.0, 6.0, 9.0]), "theirs": iter([2.0, 2.0, 1.0])}
    monkeypatch.setattr(pairs, "clock", lambda work: next(times[work()]))

    def way(name: str) -> str:
        seen.append(name)
        return name

    made = ratio(lambda: way("ours"), lambda: way("theirs"), 3)
    assert seen == ["ours", "theirs", "ours", "theirs", "theirs", "ours", "ours", "theirs"]  # a warm-up, three pairs
    assert (made.value, made.low, made.high, made.n) == (5.0, 3.0, 9.0, 3)
    assert (made.ours, made.theirs) == (9.0, 2.0)


def test_percentile_is_the_nearest_rank() -> None:
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2.0


def test_the_table_is_printed_and_written(subject: Subject, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "bench.md"
    assert bench.main(["--only", "grid-first", "decode-floor", "--repeats", "2", "--out", str(out)], subject) == 0
    said = capsys.readouterr().out
    assert re.search(r"^(yes|NO) +decode-floor +\d+\.\d{3} ≤ 2 ", said, re.MULTILINE) and "reading all weights" in said
    lines = out.read_text(encoding="utf-8").splitlines()
    assert [line.split(" | ")[0] for line in lines if line.startswith("| ")][2:] == ["| decode-floor", "| grid-first"]
    told = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert [one["name"] for one in told["rows"]] == ["decode-floor", "grid-first"]
    assert all(one["outcome"]["n"] == 2 and one["reached"] in {"yes", "NO"} for one in told["rows"])


def test_json_on_the_terminal_and_strictness(
    subject: Subject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    impossible = replace(row("decode-floor"), bound=0.0)
    monkeypatch.setattr(bench, "ROWS", (impossible,))
    options = ["--repeats", "1", "--json", "--out", str(tmp_path / "bench.md")]
    assert bench.main(options, subject) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["reached"] == "NO"
    assert bench.main([*options, "--strict"], subject) == 1


def test_without_the_reference_its_rows_are_skipped_with_the_reason(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "has_reference", lambda: False)
    results = [bench.measured(row, subject, 1) for row in bench.ROWS if row.needs_reference]
    assert {result.verdict for result in results} == {"skipped"} and len(results) == 3
    assert markdown("", results).count("transformers is not installed") == 3


def test_on_a_gpu_bounds_are_not_judged_and_rows_of_the_cpu_are_skipped(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "device", "cuda")
    outcome = Outcome(value=9.0, low=9.0, high=9.0, n=1)
    results = [bench.measured(replace(each, measure=lambda *_: outcome), subject, 1) for each in bench.ROWS]
    judged = {result.row.name: result.verdict for result in results}
    assert {name for name, verdict in judged.items() if verdict == "skipped"} == {
        "sampler-preview", "memory", "opening", "export", "export-memory"
    }  # fmt: skip
    assert set(judged.values()) == {"skipped", "–"}


@pytest.mark.cuda
def test_rows_measure_on_a_gpu(tmp_path: Path) -> None:
    sizes = Sizes(short=8, medium=12, long=16, whole=24, picture=8, vocabulary=3000)
    subject = Subject(str(files.folder(tmp_path / "tiny")), sizes, device="cuda")
    for each in bench.ROWS:
        result = bench.measured(each, subject, 1)
        assert result.verdict == "–" if each.on_gpu else result.skipped == bench.CPU_ONLY


def test_an_unknown_row_and_a_device_that_is_not_there_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--only", "nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench.main(["--device", "cuda:99"])
    assert "error: device is 'cuda:99'; expected one of auto, cpu" in capsys.readouterr().err
