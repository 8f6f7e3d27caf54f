"""Recording, checking and exporting recorded runs from the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model import __main__ as program
from model.cli.command import UsageError
from model.cli.wanted import indices
from model.export.run_file import RunFile, reopen
from tests.model.checkpoint import files

PROMPT = "in the end"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def recorded(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "a.dscope"
    torch.set_num_threads(1)
    code = program.main(["run", "--model", str(tiny), "--prompt", PROMPT, "--steps", "3", "--save", str(path)])
    assert code == 0
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = program.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def values(path: Path) -> Any:
    with np.load(path) as arrays:
        return arrays["values"]


def test_a_recorded_run_exports_what_the_live_one_does(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path
) -> None:
    what = ("--layer", 1, "--head", 2, "--format", "npz,png", "--out", tmp_path, "--dpi", 60)
    prompt = ("--prompt", PROMPT, "--steps", 3, "--model", tiny)
    assert call(capsys, "export", *prompt, *what, "--name", "live")[0] == 0
    assert call(capsys, "export", "--run", recorded, *what, "--name", "recorded")[0] == 0
    assert call(capsys, "export", "--run", recorded, "--model", tiny, *what, "--name", "both")[0] == 0
    for name in ("recorded", "both"):
        assert np.array_equal(values(tmp_path / f"{name}.npz"), values(tmp_path / "live.npz"), equal_nan=True)
        assert (tmp_path / f"{name}.png").read_bytes() == (tmp_path / "live.png").read_bytes()


def test_one_file_a_head_is_named_by_it(capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path) -> None:
    options = ("export", "--run", recorded, "--format", "npz", "--out", tmp_path / "new" / "folder")
    assert call(capsys, *options, "--layer", "0", "--head", "0-1")[0] == 0
    assert call(capsys, *options, "--layer", "0-1", "--head", "max", "--name", "{stage} {layer}")[0] == 0
    assert call(capsys, *options)[0] == 0
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {
        *("attention-layer0-head0.npz", "attention-layer0-head1.npz", "weights 0.npz", "weights 1.npz"),
        "attention.npz",
    }


def test_what_needs_the_model_says_so(capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path) -> None:
    options = ("export", "--run", recorded, "--out", tmp_path, "--what", "activation")
    code, _, err = call(capsys, *options, "layers.0.mlp.post")
    assert code == 2 and "recorded without the model" in err
    assert call(capsys, *options, "layers.0.resid_pre")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["activation.safetensors"]


def test_record_check_says_what_is_in_a_file(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    code, out, _ = call(capsys, "record-check", recorded, "--json")
    told = json.loads(out)
    assert code == 0 and (told["contents"], told["steps"], told["logits"]) == ("all", 3, 4)
    with RunFile(recorded) as file:
        run = reopen(file)
    assert told["text"] == run.text
    assert "contents: all" in call(capsys, "record-check", recorded)[1]
    damaged = tmp_path / "b.dscope"
    damaged.write_bytes(recorded.read_bytes()[:-1])
    code, _, err = call(capsys, "record-check", damaged)
    assert code == 2 and err.startswith("error: ") and err.count("\n") == 1


def test_saving_keeps_what_is_there(capsys: pytest.CaptureFixture[str], tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.dscope"
    path.write_bytes(b"old")
    options = ("run", "--model", tiny, "--prompt", PROMPT, "--steps", 1, "--save", path)
    code, _, err = call(capsys, *options)
    assert code == 2 and "a file of this name is there" in err and path.read_bytes() == b"old"
    assert call(capsys, *options, "--overwrite")[0] == 0
    assert call(capsys, "record-check", path)[0] == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".", "this is a folder. Name a file in it, such as run.dscope"),
        ("..", "this is a folder"),
        ("folder", "this is a folder"),
        (".dscope", "the name has nothing before its extension"),
        ("...", "the name has nothing before its extension"),
        ("a" * 307, "the name is too long"),
        ("none/a.dscope", "the folder does not exist"),
        ("file/a.dscope", "a part of the path is not a folder"),
        (os.devnull, "something that is not a file has this name"),
    ],
)
def test_a_place_nothing_can_be_saved_at_is_refused_before_the_model_is_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("model.loading.open_model", lambda *_, **__: pytest.fail("it was opened"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for more in ([], ["--overwrite"]):
        code, _, err = call(capsys, "run", "--prompt", PROMPT, "--save", name, *more)
        assert code == 2 and words in err and len(err) < 400 and not err.startswith("error:  ")
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "file"}
    if "/" in name and name != os.devnull:
        out = name if name.startswith("file") else "file"
        assert "a part of the path is not a folder" in call(capsys, "export", "--prompt", PROMPT, "--out", out)[2]


def test_what_is_saved_has_our_suffix_and_its_path_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny: Path, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("run", "--model", tiny, "--prompt", PROMPT, "--steps", 1, "--save")
    assert "saved a.dscope\n" in call(capsys, *options, "a")[2]
    assert json.loads(call(capsys, *options, "b.Dscope", "--json")[1])["saved"] == "b.dscope"
    assert "a file of this name is there" in call(capsys, *options, "a")[2]
    assert {path.name for path in tmp_path.iterdir()} == {"a.dscope", "b.dscope"}


def test_a_run_file_given_as_a_model_is_called_by_its_name(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    other = tmp_path / "a.safetensors"
    other.write_bytes(recorded.read_bytes())
    for path in (recorded, other):
        code, _, err = call(capsys, "run", "--model", path, "--prompt", PROMPT)
        assert code == 2 and "this is a recorded run, not a model" in err and "decoderscope export --run FILE" in err


def test_a_record_of_long_and_odd_texts_is_told_in_short_lines(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path
) -> None:
    tensors = load_file(recorded)
    document = json.loads(tensors["run"].numpy().tobytes()) | {"text": "\x1b[2J" + "x" * 10_000}
    tensors["run"] = torch.frombuffer(bytearray(json.dumps(document).encode()), dtype=torch.uint8)
    path = tmp_path / "a.dscope"
    save_file(tensors, path, metadata={"format": "dscope", "version": "1"})
    out = call(capsys, "record-check", path)[1]
    assert "\x1b" not in out and "text: \\x1b[2Jxxx" in out and max(map(len, out.splitlines())) < 500
    assert json.loads(call(capsys, "record-check", path, "--json")[1])["text"] == document["text"]


def test_a_source_is_needed(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    assert "either --prompt TEXT or --run FILE" in call(capsys, "export")[2]
    assert "either --prompt TEXT or --run FILE" in call(capsys, "export", "--prompt", "a", "--run", recorded)[2]
    assert "--steps goes with --prompt" in call(capsys, "export", "--run", recorded, "--steps", 2)[2]
    assert "30,000" in call(capsys, "export", "--prompt", "a", "--size", "100x100", "--dpi", 300)[2]


class Stdin(io.TextIOWrapper):
    """Bytes on stdin, which tell how many of them were read."""

    def __init__(self, data: bytes) -> None:
        self.raw_bytes = io.BytesIO(data)
        super().__init__(self.raw_bytes)


@pytest.mark.parametrize("prompt", ["a\x00b", "\u202eabc", "👩‍👩‍👧‍👦 a\n"])
def test_a_prompt_from_stdin_is_the_one_of_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny: Path, tmp_path: Path, prompt: str
) -> None:
    ids = []
    for command in (
        ["run", "--json"],
        ["export", "--what", "activation", "embed", "--format", "json", "--out", tmp_path],
    ):
        monkeypatch.setattr(sys, "stdin", Stdin(prompt.encode()))
        code, out, err = call(capsys, *command, "--model", tiny, "--prompt", "-", "--steps", 0)
        assert code == 0, err
        told = json.loads(out if command[0] == "run" else (tmp_path / "activation.json").read_text())
        ids.append(told["prompt"]["ids"] if command[0] == "run" else told["ids"])
    assert ids[0] == ids[1]


@pytest.mark.parametrize("command", ["run", "export"])
def test_stdin_without_an_end_is_refused_before_a_model_is_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("model.cli.prompted.MAX_STDIN_BYTES", 2**20)
    endless = Stdin(b"y" * (3 * 2**20))
    monkeypatch.setattr(sys, "stdin", endless)
    code, _, err = call(capsys, command, "--prompt", "-", "--model", "/no/such/model")
    assert code == 2
    assert "more than 1 MiB on stdin" in err
    assert endless.raw_bytes.tell() < 2 * 2**20
    code, _, err = call(capsys, command, "--prompt", "a", "--temperature", "-1", "--model", "/no/such/model")
    assert code == 2
    assert "temperature is -1.0" in err


def test_lists_of_indices() -> None:
    assert indices("--layer", "0,3-5, 2,3", 6) == (0, 3, 4, 5, 2)
    assert indices("--layer", "all", 3) == (0, 1, 2)
    assert indices("--head", "2, all", 4) == (2, 0, 1, 3)
    with pytest.raises(UsageError, match="names nothing"):
        indices("--layer", "5-3", 6)
    for wrong in ("", "6", "1-6", "-1", "a", "1,,2", "²"):
        with pytest.raises(UsageError, match=r"--layer: .* is not a whole number from 0 to 5"):
            indices("--layer", wrong, 6)


def test_recorded_logits_are_exported_without_the_model(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path
) -> None:
    options = ("export", "--what", "logits", "--format", "safetensors,npz,json,csv", "--out", tmp_path)
    assert call(capsys, *options, "--run", recorded, "--name", "kept")[0] == 0
    assert call(capsys, *options, "--run", recorded, "--model", tiny, "--name", "whole")[0] == 0
    whole = load_file(tmp_path / "whole.safetensors")["logits"].numpy()
    kept = load_file(tmp_path / "kept.safetensors")
    length = whole.shape[0]
    positions = list(range(length - 4, length))  # after the prompt, and after each of its three steps
    assert kept["logits.positions"].tolist() == positions
    values = kept["logits"].numpy()
    assert values.dtype == np.float32 and np.array_equal(values, whole[positions])
    with np.load(tmp_path / "kept.npz") as arrays:
        assert np.array_equal(arrays["logits"], values) and arrays["logits.positions"].tolist() == positions
    told = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))["activations"]["logits"]
    assert told["positions"] == positions and np.array_equal(np.array(told["values"], dtype=np.float32), values)
    with (tmp_path / "kept.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))[1:]
    assert [int(row[0]) for row in rows] == positions
    assert [int(row[1]) for row in rows] == kept["ids"][positions].tolist()
    assert np.array_equal(np.array([row[3:] for row in rows], dtype=np.float32), values)
    beside = json.loads((tmp_path / "kept.csv-metadata.json").read_text(encoding="utf-8"))
    assert beside["notes"][0]["positions"] == positions
    code, _, err = call(capsys, "export", "--run", recorded, "--what", "activation", "final_norm", "--out", tmp_path)
    assert code == 2 and "recorded without the model" in err


@pytest.mark.parametrize("by", ["surprisal", "entropy"])
def test_a_text_is_tinted_by_what_was_recorded(
    capsys: pytest.CaptureFixture[str], tiny: Path, recorded: Path, tmp_path: Path, by: str
) -> None:
    what = ("export", "--what", "text", "--by", by, "--format", "json,png", "--dpi", 60, "--out", tmp_path)
    assert call(capsys, *what, "--prompt", PROMPT, "--steps", 3, "--model", tiny, "--name", "live")[0] == 0
    assert call(capsys, *what, "--run", recorded, "--name", "recorded")[0] == 0
    live, again = (json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) for name in ("live", "recorded"))
    assert None not in again["values"][1:] and live["values"] == again["values"]
    assert (tmp_path / "live.png").read_bytes() == (tmp_path / "recorded.png").read_bytes()
    old = without_prompt_stats(recorded, tmp_path / "old.dscope")
    assert call(capsys, *what, "--run", old, "--name", "old")[0] == 0
    older = json.loads((tmp_path / "old.json").read_text(encoding="utf-8"))
    first = len(live["values"]) - 3 - (by == "entropy")  # the prompt's last logits foresee the first step
    assert older["values"][:first] == [None] * first
    assert older["values"][first:] == pytest.approx(
        live["values"][first:], rel=1e-5
    )  # of stored logits, not of the head
    assert older["metadata"]["what"] == f"{by}, of the prompt not recorded"


def without_prompt_stats(recorded: Path, path: Path, **changes: object) -> Path:
    """The file as it was before it held them, or with others."""
    tensors = load_file(recorded)
    document = json.loads(tensors["run"].numpy().tobytes())
    del document["prompt_stats"]
    tensors["run"] = torch.frombuffer(bytearray(json.dumps(document | changes).encode()), dtype=torch.uint8)
    save_file(tensors, path, metadata={"format": "dscope", "version": "1"})
    return path


@pytest.mark.parametrize(
    ("stats", "words"),
    [
        ({"logprob": [None], "entropy": [1.0], "rank": [-1]}, "prompt_stats.logprob has 1 numbers, expected one for"),
        ({"logprob": [1e300] * 9, "entropy": [], "rank": []}, "prompt_stats.logprob"),
        ({"logprob": "a"}, "its record is damaged"),
    ],
)
def test_prompt_statistics_that_do_not_fit_are_refused(
    capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path, stats: dict[str, Any], words: str
) -> None:
    path = without_prompt_stats(recorded, tmp_path / "a.dscope", prompt_stats=stats)
    code, _, err = call(capsys, "record-check", path)
    assert code == 2 and words in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is an empty file, not a run file (.dscope)"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "it is a PNG picture, not a run file (.dscope)"),
        (b"%PDF-1.7\n", "it is a PDF document, not a run file"),
        (b"PK\x03\x04" + bytes(40), "it is a zip archive (as NPZ files are), not a run file"),
        (b"hello", "it is a text, not a run file"),
        ("Schnörkel und mehr Text ⟨é⟩".encode() * 40, "it is a text, not a run file"),
        (b'{"a": 1}', "it is a JSON text, not a run file"),
        (b"GGUF" + bytes(40), "it is a GGUF file, not a run file"),
        (bytes(range(256)), "it is a file of another kind, or a damaged one, not a run file"),
        (b"version https://git-lfs.github.com/spec/v1", "Run `git lfs pull` in its folder."),
    ],
)
def test_what_is_no_run_file_is_called_by_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, data: bytes, words: str
) -> None:
    path = tmp_path / "a.dscope"
    path.write_bytes(data)
    for command in (("record-check", path), ("export", "--out", tmp_path, "--run", path)):
        code, _, err = call(capsys, *command)
        assert code == 2 and words in err and "truncated" not in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_cut_run_file_is_a_damaged_one(capsys: pytest.CaptureFixture[str], recorded: Path, tmp_path: Path) -> None:
    whole = recorded.read_bytes()
    for kept in (9, 200, len(whole) - 1):
        path = tmp_path / f"{kept}.dscope"
        path.write_bytes(whole[:kept])
        code, _, err = call(capsys, "record-check", path)
        assert code == 2 and "truncated" in err
