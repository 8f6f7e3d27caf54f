"""The command line: what it prints, exit codes, one line for an error, and what it does not load."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from model import __main__ as program
from model.checkpoint import catalogue
from model.loading import open_model
from model.protocol.engine_requests import CheckRow
from tests.model.checkpoint import files

PROMPT = "in the end"
COMMAND = [sys.executable, "-P", "-m", "model"]
ROOT = Path(program.__file__).resolve().parent.parent
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    torch.set_num_threads(1)
    code = program.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = call(capsys, "run", "--json", *arguments)
    assert code == 0 and err == ""
    result: dict[str, Any] = json.loads(out)
    return result


def test_json_says_what_the_reference_says(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    told = run_json(capsys, "--model", tiny, "--prompt", PROMPT, "--steps", 6, "--temperature", 0)
    ids = open_model(tiny).tokenizer.encode(PROMPT)
    judge, expected = files.tiny().model, list(ids)
    for step in told["steps"]:
        with torch.no_grad():
            logits = judge(torch.tensor([expected])).logits[0, -1].double()
        raw = logits.softmax(-1)
        assert step["id"] == int(logits.argmax())
        assert step["logprob"] == pytest.approx(float(raw.log()[step["id"]]), abs=1e-4)
        assert step["entropy"] == pytest.approx(float(-(raw * raw.log()).sum()), abs=1e-4)
        assert len(step["top"]) == 10 and set(step["top"][0]) == {"id", "piece", "p_raw", "p"}
        assert [one["id"] for one in step["top"]] == logits.topk(10).indices.tolist()
        assert [one["p_raw"] for one in step["top"]] == pytest.approx(raw.topk(10).values.tolist(), abs=1e-4)
        assert [one["p"] for one in step["top"]] == [1.0] + [0.0] * 9
        assert 0 <= step["draw"] < 1 and step["ms"] > 0
        expected.append(step["id"])
    assert told["prompt"]["ids"] == ids and told["prompt"]["text"] == PROMPT
    assert "".join(told["prompt"]["pieces"]) == PROMPT.replace(" ", "·")
    assert told["text"] == open_model(tiny).tokenizer.decode(expected[len(ids) :]) and len(told["steps"]) == 6


def test_json_has_every_field(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    told = run_json(capsys, "--model", tiny, "--prompt", PROMPT, "--steps", 3, "--dtype", "bfloat16", "--device", "cpu")
    model = told["model"]
    assert set(model) == {
        "name", "family", "source", "n_layers", "n_heads", "n_kv_heads", "d_model", "d_head", "d_mlp", "d_vocab",
        "n_ctx", "dtype", "device", "parameters",
    }  # fmt: skip
    assert (model["family"], model["dtype"], model["device"], model["n_kv_heads"]) == ("llama", "bfloat16", "cpu", 2)
    assert set(told["steps"][0]) == {"id", "piece", "logprob", "entropy", "draw", "ms", "top"}
    assert set(told["timing"]) == {"load_ms", "prefill_ms", "decode_ms_median"}
    assert all(value > 0 for value in told["timing"].values())
    assert set(told["memory"]) == {"weights", "kv_used", "kv_allocated", "activations", "peak_rss"}
    length = len(told["prompt"]["ids"]) + 3
    assert told["memory"]["kv_used"] == 2 * 2 * 2 * 8 * length * 2  # K and V, layers, KV heads, d_head, tokens, bytes
    assert told["memory"]["weights"] == 2 * model["parameters"]


def test_the_same_seed_gives_the_same_text_and_another_one_another(
    capsys: pytest.CaptureFixture[str], tiny: Path
) -> None:
    options = ("--model", tiny, "--prompt", PROMPT, "--steps", 12, "--temperature", 1.5, "--top-k", 0, "--top-p", 1)
    first, again, other = (run_json(capsys, *options, "--seed", seed) for seed in (5, 5, 2**64 - 1))
    assert [step["id"] for step in first["steps"]] == [step["id"] for step in again["steps"]]
    assert [step["draw"] for step in first["steps"]] == [step["draw"] for step in again["steps"]]
    assert [step["id"] for step in first["steps"]] != [step["id"] for step in other["steps"]]
    kept = run_json(capsys, *options, "--top-k", 3)["steps"][0]["top"]
    assert sum(one["p"] for one in kept) == pytest.approx(1) and kept[3]["p"] == 0


def test_no_steps_is_a_prefill(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    told = run_json(capsys, "--model", tiny, "--prompt", PROMPT, "--steps", 0)
    assert told["steps"] == [] and told["text"] == "" and told["timing"]["decode_ms_median"] is None
    code, out, err = call(capsys, "run", "--model", tiny, "--prompt", PROMPT, "--steps", 0)
    assert code == 0 and out == "" and err.startswith("load ") and "decode" not in err


def test_the_text_is_printed_and_the_times_beside_it(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    options = ("--model", tiny, "--prompt", PROMPT, "--steps", 4, "--temperature", 0)
    code, out, err = call(capsys, "run", *options)
    assert code == 0 and out == run_json(capsys, *options)["text"] + "\n"
    assert err.count("\n") == 1 and "prefill" in err and "decode 4 tokens" in err


def test_a_full_context_ends_the_run_and_says_so(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    told = run_json(capsys, "--model", tiny, "--prompt", "a" * 60, "--steps", 100, "--temperature", 0)
    assert told["stop"] in {"context_full", "end_of_text"}
    assert len(told["prompt"]["ids"]) + len(told["steps"]) <= told["model"]["n_ctx"] == 64


@pytest.mark.parametrize("prompt", ["a\x00b", "\ud83d half", "\u202eabc", "👩‍👩‍👧‍👦", "a\nb\n"])
def test_a_prompt_from_stdin_is_taken_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny: Path, prompt: str
) -> None:
    data = prompt.encode("utf-8", "surrogatepass")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    told = run_json(capsys, "--model", tiny, "--prompt", "-", "--steps", 1)
    assert told["prompt"]["text"] == data.decode("utf-8", "surrogateescape")
    assert len(told["prompt"]["ids"]) >= len(prompt)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a command: run, export"),
        (["rum"], "invalid choice: 'rum'"),
        (["run"], "--prompt"),
        (["run", "--prompt", "a", "--fast"], "unrecognized arguments: --fast"),
        (["run", "--prompt", "a", "--steps", "-1"], "argument --steps: '-1' is not a whole number 0 or more"),
        (["run", "--prompt", "a", "--steps", "1" * 5000], "argument --steps: '1111"),
        (["run", "--prompt", "a", "--top-p", "x" * 5000], "argument --top-p: 'xxxx"),
        (["run", "--prompt", "a", "--fast" + "x" * 5000], "unrecognized arguments: --fastx"),
        (["export", "--prompt", "a", "--what", "x" * 5000], "--what: 'xxxx"),
        (["models", "get", "x" * 5000], "There is no model in the catalogue called 'xxxx"),
        (["run", "--prompt", "a", "--model", "~nosuchuser/x"], "~nosuchuser/x: there is no such user"),
        (["run", "--prompt", "a", "--model", "x" * 5000], "There is no model called 'xxxx"),
        (["run", "--prompt", "a", "--model", "TINY", "--device", "cpu:7"], "device is 'cpu:7'; expected one of auto"),
        (["run", "--prompt", "a", "--model", "TINY", "--force-ids", ",".join("1" * 64)], "--force-ids: 64 ids after a"),
        (["run", "--prompt", "a", "--model", "TINY", "--force-ids", "1,300"], "300 is not an id of this model, which"),
        (["run", "--prompt", "a", "--seed", "x"], "argument --seed: 'x' is not a whole number from 0"),
        (["run", "--prompt", "a", "--seed", str(2**64)], "is not a whole number"),
        (["run", "--prompt", "a", "--temperature", "hot"], "'hot' is not a number"),
        (["run", "--prompt", "a", "--temperature", "-1"], "temperature is -1.0"),
        (["run", "--prompt", "a", "--temperature", "nan"], "temperature is nan"),
        (["run", "--prompt", "a", "--top-p", "2"], "top_p is 2.0"),
        (["run", "--prompt", "a", "--top-k", "-3"], "--top-k"),
        (["run", "--prompt", "a", "--dtype", "int4"], "invalid choice: 'int4'"),
        (["run", "--prompt", "a", "--model", "/no/such/model"], "no such file"),
        (["run", "--prompt", "a", "--model", "TINY", "--device", "abacus"], "device is 'abacus'"),
        (["run", "--prompt", "", "--model", "TINY"], "The prompt is empty"),
        (["run", "--prompt", "a" * 65, "--model", "TINY"], "this model takes 64"),
        (["models"], "ACTION"),
        (["models", "get", "gpt-9"], "There is no model in the catalogue called 'gpt-9'"),
        (["models", "remove"], "NAME"),
        (["engine", "--nice", "40"], "from 0 to 19"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tiny: Path, arguments: list[str], words: str
) -> None:
    code, out, err = call(capsys, *(str(tiny) if argument == "TINY" else argument for argument in arguments))
    assert code == 2 and out == ""
    assert err.startswith("error: ") and err.count("\n") == 1 and words in err and "Traceback" not in err


def test_even_a_fault_of_ours_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    monkeypatch.setattr("model.loading.open_model", lambda *_a, **_k: 1 // 0)
    code, _, err = call(capsys, "run", "--model", tiny, "--prompt", "a")
    assert code == 2 and "ZeroDivisionError" in err and err.count("\n") == 1
    monkeypatch.setenv(program.TRACEBACK_VARIABLE, "1")
    with pytest.raises(ZeroDivisionError):
        call(capsys, "run", "--model", tiny, "--prompt", "a")


def test_models_that_are_not_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path))
    name = catalogue.DEFAULT.name
    code, out, _ = call(capsys, "models", "list")
    assert code == 0 and f"{name} (default)\tApache-2.0\tnot fetched (93 MB)" in out
    [told] = json.loads(call(capsys, "models", "list", "--json")[1])
    assert (told["name"], told["default"], told["licence"]) == (name, True, "Apache-2.0")
    assert (told["path"], told["prepared"], told["download_bytes"]) == (None, False, 92871040)
    for action in ("where", "remove"):
        code, _, err = call(capsys, "models", action, "default")
        assert code == 2 and "is not on this machine yet" in err
    code, _, err = call(capsys, "run", "--prompt", "a")
    assert code == 2 and "is not on this machine yet" in err


def test_models_that_are_here(
    capsys: pytest.CaptureFixture[str], default_model_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for action in (["get"], ["get", "default"], ["where"], ["where", catalogue.DEFAULT.hub_id]):
        code, out, _ = call(capsys, "models", *action)
        assert code == 0 and Path(out.strip()).samefile(default_model_path)
    assert str(default_model_path) in call(capsys, "models", "list")[1]
    [told] = json.loads(call(capsys, "models", "list", "--json")[1])
    assert Path(told["path"]).samefile(default_model_path) and told["prepared"] is True
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "models" / catalogue.DEFAULT.name
    folder.mkdir(parents=True)
    (folder / default_model_path.name).write_bytes(b"")
    os.truncate(folder / default_model_path.name, default_model_path.stat().st_size)
    assert catalogue.DEFAULT.wheel is not None
    prepared = tmp_path / "prepared" / f"{catalogue.DEFAULT.wheel.member_sha256[:32]}-0"
    prepared.mkdir(parents=True)
    code, out, _ = call(capsys, "models", "remove", "default")
    assert code == 0 and out.count("removed") == 2 and not folder.exists() and not prepared.exists()


def test_help_and_version_come_before_anything_heavy() -> None:
    code = (
        "import sys\nfrom model.__main__ import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit as end: assert end.code == 0\n"
        "heavy = [m for m in ('torch', 'PySide6', 'transformers', 'numpy', 'tokenizers') if m in sys.modules]\n"
        "print(heavy, file=sys.stderr)"
    )
    for arguments in (["--help"], ["--version"], ["run", "--help"], ["models", "list"]):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, *arguments],
            env=os.environ | ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr.strip() in {"[]", "['numpy']"} and done.stdout
    assert "decoderscope" in done.stdout or "smollm2" in done.stdout


@pytest.mark.parametrize("when", ["importing", "decoding"])
def test_ctrl_c_ends_it_cleanly(default_model_path: Path, when: str) -> None:
    arguments = ["run", "--model", str(default_model_path), "--prompt", "Once", "--steps", "8000", "--temperature", "1"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        first = process.stdout.read(1) if when == "decoding" else b""
        while not first and not any("torch" in area.path for area in psutil.Process(process.pid).memory_maps()):
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and err == b""
    assert bool(first) == (when == "decoding") and (first or not out)


SLOW_SAVE = """
import sys, time
from model import __main__ as program
from model.export import run_file

def write(run, out, **_):
    out.write(b"half")
    print("writing", flush=True)
    time.sleep(60)

run_file.write_run = write
sys.exit(program.main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)])
def test_a_signal_leaves_nothing_half_written(tiny: Path, tmp_path: Path, number: signal.Signals) -> None:
    arguments = ["run", "--model", str(tiny), "--prompt", "a", "--steps", "0", "--save", str(tmp_path / "a.dscope")]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SLOW_SAVE, *arguments],
        env=os.environ | ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number and err == b""
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_modules_come_in_is_quiet() -> None:
    code = "import sys\nsys.argv = ['decoderscope', 'run', '--prompt', 'a']\nfrom app.__main__ import main\n"
    code += "import signal\nclass Finder:\n    def find_spec(self, name, *_):\n        if name == 'model.cli':\n"
    code += "            signal.raise_signal(signal.SIGINT)\nsys.meta_path.insert(0, Finder())\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=os.environ | ENVIRONMENT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, b"", b"")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux")
def test_a_file_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run", "--prompt", "a", "--model"], ["doctor", "--model"], ["record-check"], ["export", "--run"]):
        code, _, err = call(capsys, *command, "/proc/self/mem")
        assert code == 2 and "mem" in err and "can't be read: Input/output error" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux")
@pytest.mark.parametrize("arguments", [["--help"], ["models", "list"], ["run", "--steps", "1", "--prompt", "a"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_is_full_is_named(tiny: Path, arguments: list[str], unbuffered: str) -> None:
    model = ["--model", str(tiny)] if "run" in arguments else []
    environment = os.environ | ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments, *model], env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: The output could not be written: No space left on device.")


def test_an_output_that_is_closed_is_no_error(tiny: Path) -> None:
    code = (
        "import os, sys\nsys.stdout = None\nfrom model import __main__ as program\nsys.exit(program.main(sys.argv[1:]))"
    )
    arguments = ["run", "--model", str(tiny), "--prompt", "a", "--steps", "1"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stderr.startswith("load ")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")
@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_a_stderr_that_takes_nothing_changes_nothing(tiny: Path, tmp_path: Path, closed: str) -> None:
    """Not the text, not the exit code; and no file gets the descriptor of a stream that was closed."""
    saved = tmp_path / "run.dscope"
    line = f'"$@" run --model {tiny} --prompt a --steps 1 --save {saved} {closed}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND], env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stderr == ""
    assert bool(done.stdout) is (">&- 2" not in closed)
    assert saved.stat().st_size > 100
    line = f'"$@" run --model {tiny} --prompt a --temperature nan {closed}'
    refused = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND], env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (2, "")


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of Linux")
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("ulimit -n 16", "error: Too many files are open: raise the limit (ulimit -n), or close other programs.\n"),
        ("ulimit -v 400000", "error: There is not enough memory to start: raise the limit if there is one (ulimit -v)"),
        ("mkdir gone && cd gone && rmdir ../gone", "error: The folder this was started in no longer exists: change to"),
    ],
)
def test_what_the_system_does_not_give_is_one_sentence(tiny: Path, tmp_path: Path, limit: str, said: str) -> None:
    line = f'{limit} && "$@" export --model {tiny} --prompt a --layer 0 --head 0 --format png --out {tmp_path}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND],
        env=os.environ | ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.startswith(said) and done.stderr.count("\n") == 1
    assert done.stdout == "" and list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(tiny: Path) -> None:
    arguments = ["run", "--model", str(tiny), "--prompt", "a", "--steps", "20", "--temperature", "0"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 141 and err == ""


def test_the_example_on_the_default_model(capsys: pytest.CaptureFixture[str], default_model_path: Path) -> None:
    assert default_model_path.exists()
    prompt = "The animal didn't cross the street because it was too tired"
    told = run_json(capsys, "--prompt", prompt, "--steps", 12, "--temperature", 0)
    assert told["model"]["name"] == "SmolLM2-135M-Instruct" and told["model"]["parameters"] == 134_515_008
    assert len(told["prompt"]["ids"]) == 12 and len(told["steps"]) == 12
    assert told["text"].startswith(" to move.")  # as transformers decodes the same file
    assert all(step["top"][0]["id"] == step["id"] and step["top"][0]["p"] == 1 for step in told["steps"])
    assert all(math.isfinite(step["logprob"]) for step in told["steps"])


def test_bench_measures_everything(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    options = ("--model", tiny, "--tokens", 20, "--steps", 2, "--repeats", 2)
    code, out, err = call(capsys, "bench", *options)
    assert code == 0 and err == "" and out.count("\n") == 7
    for words in (
        "open the model",
        "prefill 20 tokens",
        "decode a token at 20",
        "read all weights",
        "grid of all 8 heads",
    ):
        assert words in out
    told = json.loads(call(capsys, "bench", *options, "--json")[1])
    assert len(told["measures"]) == 6
    assert all(0 < row["fastest_ms"] <= row["median_ms"] <= row["slowest_ms"] for row in told["measures"])


@pytest.mark.parametrize(("tokens", "steps"), [(64, 64), (8, 70), (2, 63), (99_999, 10**15)])
def test_bench_says_that_its_steps_do_not_fit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tokens: int, steps: int
) -> None:
    short = files.folder(tmp_path / "short", max_position_embeddings=64)
    code, out, err = call(capsys, "bench", "--model", short, "--tokens", tokens, "--steps", steps, "--repeats", 1)
    assert (code, out) == (2, "") and err == (
        f"error: --steps: {steps:,} steps after a prompt of 2 tokens or more do not fit; this model takes 64 positions "
        "in all\n"
    )


def test_doctor_proves_the_numbers(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    code, out, err = call(capsys, "doctor", "--model", tiny)
    assert code == 0 and err == "" and "FAILED" not in out and "checks hold" in out.splitlines()[-1]
    told = json.loads(call(capsys, "doctor", "--model", tiny, "--json")[1])
    assert told["ok"] and len(told["rows"]) == out.count("ok    ")
    assert all(row["error"] <= row["bound"] for row in told["rows"])


def test_doctor_says_which_check_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    bad = CheckRow(name="a", title="a thing", error=float("nan"), bound=1.0, ok=False)
    good = CheckRow(name="b", title="another", error=0.0, bound=1.0, ok=True)
    monkeypatch.setattr("model.views.self_check.doctor", lambda _model: (bad, good))
    code, out, _ = call(capsys, "doctor", "--model", tiny)
    assert code == 1 and "FAILED  a thing" in out and out.endswith("1 of 2 checks failed\n")
    code, out, _ = call(capsys, "doctor", "--model", tiny, "--json")
    assert code == 1 and json.loads(out)["rows"][0]["error"] is None
