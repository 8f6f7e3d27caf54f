"""Every kind and flag of `decoderscope export`, progress on a terminal, an interrupt that leaves whole files only."""

from __future__ import annotations

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file

from model import __main__ as program
from model.protocol.export_kinds import EXPORT_KINDS
from tests.model.checkpoint import files

ROOT = Path(__file__).resolve().parents[3]
PROMPT = "in the end"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def recorded(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "a.dscope"
    command = ["run", "--model", str(tiny), "--prompt", PROMPT, "--steps", "3", "--seed", "5", "--save", str(path)]
    assert program.main(command) == 0
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = program.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def written(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[Path]:
    code, out, err = call(capsys, "export", *arguments, "--json", "--dpi", 50)
    assert code == 0, err
    listed = json.loads(out)
    for entry in listed:
        assert entry["size"] == Path(entry["path"]).stat().st_size and len(entry["sha256"]) == 64
    return [Path(entry["path"]) for entry in listed]


@pytest.mark.parametrize("kind", EXPORT_KINDS)
def test_every_kind_in_every_format(capsys: pytest.CaptureFixture[str], tiny: Path, tmp_path: Path, kind: str) -> None:
    what = ["activation", "layers.*.mlp.post"] if kind == "activation" else [kind]
    place = ("--layer", 1, "--head", 2, "--query", 4, "--key", 1)
    made = written(
        capsys, "--model", tiny, "--prompt", PROMPT, "--steps", 2, "--what", *what, *place,
        "--format", ",".join(EXPORT_KINDS[kind].formats), "--out", tmp_path,
    )  # fmt: skip
    assert {path.suffix[1:] for path in made} >= set(EXPORT_KINDS[kind].formats)
    assert {path.stem.partition(".")[0] for path in made} <= {kind, f"{kind}-layers"}
    assert sorted(tmp_path.iterdir()) == sorted(made)


def test_levels_rows_and_names(capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path) -> None:
    common = ("--run", recorded, "--out", tmp_path, "--layer", "0,all", "--head", "2,0-1", "--stage", "scores")
    made = written(capsys, *common, "--rows", "2-4", "--cols", "1-6", "--format", "npz", "--name", "{layer} {head}")
    assert [path.name for path in made] == [f"{layer} {head}.npz" for layer in (0, 1) for head in (2, 0, 1)]
    with np.load(made[0]) as arrays:
        assert arrays["values"].shape == (3, 6) and arrays["query_positions"].tolist() == [2, 3, 4]
    [table] = [
        path for path in written(capsys, *common[:4], "--format", "csv", "--head", "max") if path.suffix == ".csv"
    ]
    with table.open(newline="", encoding="utf-8") as lines:
        assert len(list(csv.reader(lines))) == 10
    look = (
        "--theme",
        "dark",
        "--colormap",
        "cividis",
        "--title",
        "A <title>",
        "--size",
        "3x2",
        "--fixed",
        "--ignore-first",
    )
    [picture] = written(capsys, *common[:4], *look, "--name", "look", "--scale", "log")
    with Image.open(picture) as opened:
        assert opened.size == (150, 100) and opened.info["Title"] == "A <title>"


def test_prompt_ids_and_forced_ids_make_the_same_run(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path
) -> None:
    [whole] = written(capsys, "--run", recorded, "--what", "run", "--out", tmp_path)
    record = json.loads(load_file(whole)["run"].tobytes())
    ids = ",".join(str(token) for token in record["prompt_ids"])
    forced = ",".join(str(node["token_id"]) for node in record["nodes"])
    same = ("--model", tiny, "--prompt-ids", ids, "--force-ids", forced, "--what", "logits", "--out", tmp_path)
    drawn = ("--model", tiny, "--prompt", PROMPT, "--steps", 3, "--seed", 5, "--what", "logits", "--out", tmp_path)
    first = load_file(written(capsys, *same, "--name", "forced")[0])
    second = load_file(written(capsys, *drawn, "--name", "drawn")[0])
    assert np.array_equal(first["logits"], second["logits"]) and first["ids"].tolist() == second["ids"].tolist()


def test_a_recorded_runs_sampler_is_its_last_steps(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    sampler = ("--run", recorded, "--what", "sampler", "--format", "json", "--out", tmp_path)
    told: list[dict[str, Any]] = []
    for extra in ((), ("--temperature", 0, "--min-p", 0.1, "--repetition-penalty", 1.2)):
        [path] = written(capsys, *sampler, *extra, "--overwrite")
        told.append(json.loads(path.read_text(encoding="utf-8"))["metadata"]["settings"])
    assert (told[0]["seed"], told[0]["temperature"]) == (5, 0.8)
    assert (told[1]["temperature"], told[1]["min_p"], told[1]["repetition_penalty"]) == (0, 0.1, 1.2)


def test_a_run_file_holds_no_more_than_asked(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    sizes = [
        written(capsys, "--run", recorded, "--what", "run", *limit, "--name", f"{at}", "--out", tmp_path)[0]
        .stat()
        .st_size
        for at, limit in enumerate(((), ("--contents", "attention"), ("--max-mb", 0.001)))
    ]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 3


def test_what_is_there_is_refused_before_anything_is_made(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    (tmp_path / "attention-layer1-head3.png").write_bytes(b"mine")
    code, _, err = call(capsys, "export", "--run", recorded, "--layer", "all", "--head", "all", "--out", tmp_path)
    assert code == 2 and "a file of this name is there" in err and "attention-layer1-head3.png" in err
    assert [path.name for path in tmp_path.iterdir()] == ["attention-layer1-head3.png"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--what", "rope", "--layer", "all"), "--layer: 'all' is not one index; rope is of one layer and one head"),
        (("--what", "rope", "--layer", "1", "--head", "0-1"), "--head: '0-1' is not one index"),
        (("--what", "rope", "--layer", "2"), "--layer: '2' is not a whole number from 0 to 1"),
        (("--what", "text", "--by", "reads", "--head", "1"), "--layer: 'all' is not one index; --by reads is of one"),
        (("--what", "text", "--by", "reads", "--layer", "0,1"), "--layer: '0,1' is not one index"),
        (("--what", "lens", "--layer", "0,2"), "--layer: '2' is not a whole number from 0 to 1"),
        (("--what", "sheet", "--format", "html"), "--layer: an interactive page (html) of a sheet is of one layer"),
        (("--what", "grid", "--head", "4"), "--head: '4' is not a whole number from 0 to 3"),
        (("--what", "layers.0.attn.z"), "is not one of attention"),
        (("--what", "layers.0.attn.z"), "names of activations follow the word activation"),
        (("--what", ","), "--what: name at least one of attention"),
        (("--what", "kv", "activation"), "activation takes names of activations"),
        (("--what", "activation", "layers.0.attn.q", "layers.1.atn.q"), "Did you mean 'layers.1.attn.q'"),
        (("--what", "attention", "kv", "--format", "png"), "none of these is a format of kv; add one of safetensors"),
        (("--what", "attention", "kv", "--format", "dscope"), "'dscope' is no format of attention or kv; choose from"),
        (("--name", "{what}-{haed}"), "--name: there is no field {haed}; the fields are {what}, {layer}, {head}"),
        (("--name", "{}"), "--name: there is no field {}"),
        (("--size", "3000x3000"), "--size: 3000x3000 is in inches, and each side takes 0.5 to 200"),
        (("--size", "7x0.1"), "--size: 7x0.1 is in inches"),
        (("--what", "rope", "--layer", "1", "--head", "0", "--query", "99"), "query is 99; expected 0 to"),
        (("--rows", "5-2"), "--rows is '5-2'"),
        (("--what", "text", "--format", "csv"), "'csv' is no format of text; choose from png, svg, pdf, json"),
        (("--min-p", "2", "--what", "sampler"), "min_p is 2.0"),
        (("--force-ids", "3"), "recorded run is exported as it is"),
        (("--prompt-ids", "3,x"), "not a list of token ids"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    code, out, err = call(capsys, "export", "--run", recorded, "--out", tmp_path, *arguments)
    assert code == 2 and sentence in err and err.count("\n") == 1 and out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--layer", "2"),
        ("--head", "4"),
        ("--what", "rope", "--head", "all"),
        ("--what", "lens", "--layer", "0-3"),
        ("--what", "activation", "layers.9.attn.q"),
        ("--what", "sheet", "--format", "html"),
        ("--name", "{step}"),
        ("--size", "300x1"),
    ],
)
def test_mistakes_are_told_before_weights_are_read(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tiny: Path,
    recorded: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setattr("model.loading.fill", lambda *_, **__: pytest.fail("weights were read"))
    for source in (("--model", tiny, "--prompt", PROMPT), ("--model", tiny, "--run", recorded)):
        code, out, err = call(capsys, "export", *source, "--out", tmp_path, *arguments)
        assert code == 2 and err.startswith("error: ") and err.count("\n") == 1 and out == ""
    assert list(tmp_path.iterdir()) == []


def test_several_kinds_in_one_call(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path
) -> None:
    common = ("--run", recorded, "--model", tiny, "--out", tmp_path)
    code, _, err = call(capsys, "export", *common, "--what", "attention,rope", "activation", "embed_out", "grid")
    assert code == 2 and "There is no activation called 'embed_out'" in err
    kinds = ("--what", "attention,rope", "activation", "kv", "layers.0.resid_pre", "--what", "grid", "kv")
    made = written(capsys, *common, *kinds, "--format", "png,npz")
    names = ["attention.png", "attention.npz", "rope.png", "activation.npz", "grid.png", "grid.npz", "kv.npz"]
    assert sorted(path.name for path in made) == sorted(names)
    assert [path.stem for path in made] == sorted((path.stem for path in made), key=lambda stem: names.index(
        next(name for name in names if name.startswith(stem))))  # fmt: skip
    with np.load(tmp_path / "activation.npz") as arrays:
        assert {"layers.0.attn.rot_k", "layers.1.attn.v", "layers.0.resid_pre"} <= set(arrays.files)
    with np.load(tmp_path / "kv.npz") as arrays:
        assert "layers.0.resid_pre" not in arrays.files
    named = written(capsys, *common, "--what", "lens", "kv", "--name", "a {stage}")
    assert [path.name for path in named] == ["a-lens.png", "a-kv.safetensors"]
    fields = ("--name", "{stage}-{layer}-{head}-{what}-x", "--layer", "1")
    named = written(capsys, *common, "--what", "attention", "lens", "kv", *fields)
    assert [path.name for path in named] == ["weights-1-mean-attention-x.png", "1-lens-x.png", "kv-x.safetensors"]


def test_layers_of_the_lens_are_those_of_its_rows(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path
) -> None:
    common = ("--run", recorded, "--model", tiny, "--what", "lens", "--format", "json", "--out", tmp_path)
    for at, (layers, rows) in enumerate(
        {"0": ["0"], "1": ["1, output"], "embed,0": ["embedding", "0"], "all": ["embedding", "0", "1, output"]}.items()
    ):
        [path] = written(capsys, *common, "--layer", layers, "--name", str(at))
        assert json.loads(path.read_text(encoding="utf-8"))["after"] == rows


def test_what_one_kind_refuses_leaves_no_file_of_the_others(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    kinds: list[tuple[str, ...]] = [("lens",), ("rope",), ("activation", "layers.0.mlp.post")]
    for last in (*kinds, ("activation", "layers.*.attn.q")):
        code, out, err = call(capsys, "export", "--run", recorded, "--out", tmp_path, "--what", "attention", *last)
        assert code == 2 and "recorded without the model" in err and out == ""
        assert last[0] != "activation" or f"{last[1].replace('*', '0')} is not in the file" in err
        assert list(tmp_path.iterdir()) == []


def test_sheets_and_texts_are_as_high_as_they_are_unless_asked(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    common = ("--run", recorded, "--out", tmp_path, "--what", "sheet", "text", "attention")
    for sized, name in (((), "plain"), (("--size", "5x4"), "sized")):
        for path in written(capsys, *common, *sized, "--format", "png", "--name", name):
            with Image.open(path) as picture:
                expected = (250, 200) if sized else (350, 300) if "attention" in path.name else None
                assert picture.size == expected if expected else picture.size[0] == 350 and picture.size[1] < 250


def test_who_reads_a_token_is_of_the_first_unless_asked(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    common = ("--run", recorded, "--what", "text", "--format", "json", "--out", tmp_path, "--by")
    told = [
        json.loads(written(capsys, *common, *by, "--name", str(at))[0].read_text(encoding="utf-8"))
        for at, by in enumerate([("read-by",), ("read-by", "--key", "3"), ("reads",), ("reads", "--query", "2")])
    ]
    assert [document["position"] for document in told] == [0, 3, len(told[0]["values"]) - 1, 2]


def test_kinds_of_one_head_are_of_the_first_unless_asked(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path
) -> None:
    common = ("--run", recorded, "--model", tiny, "--what", "rope", "--format", "json", "--out", tmp_path)
    [plain] = written(capsys, *common, "--name", "plain")
    [first] = written(capsys, *common, "--name", "first", "--layer", 0, "--head", 0)
    [other] = written(capsys, *common, "--name", "other", "--layer", 1, "--head", 3)
    assert plain.read_bytes() == first.read_bytes() != other.read_bytes()


def started(*arguments: object, stderr: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "model", *(str(argument) for argument in arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)


def test_an_interrupt_leaves_whole_files_and_a_terminal_sees_progress(recorded: Path, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    process = started(
        "export", "--run", recorded, "--layer", "all", "--head", "all", "--format", "png,pdf,svg", "--out", tmp_path,
        stderr=follower,
    )  # fmt: skip
    os.close(follower)
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("*.png"))) < 4:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        said = os.read(leader, 2**16).decode()
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert "exporting: " in said and "Traceback" not in said and said.endswith("\r")
    names = [path.name for path in tmp_path.iterdir()]
    assert not [name for name in names if name.startswith(".")]
    assert 4 <= len(list(tmp_path.glob("*.png"))) < 8
    for path in tmp_path.glob("*.png"):
        with Image.open(path) as picture:
            picture.load()
        assert path.with_suffix(".pdf").read_bytes().rstrip().endswith(b"%%EOF")
        assert path.with_suffix(".svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
