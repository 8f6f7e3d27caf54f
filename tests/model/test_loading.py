"""Opening as the rest of the program sees it: devices, dtypes, plans, and what opening a file never does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from model.config import DecoderConfig
from model.errors import BadValueError
from model.loading import device_names, open_model, plan_model, select_device, select_dtype
from tests.model.checkpoint import files


def test_devices_and_dtypes_by_name() -> None:
    cpu = torch.device("cpu")
    assert select_device("cpu") == cpu
    assert str(select_device("auto")) in device_names()
    assert select_dtype("auto", cpu) == torch.float32
    assert select_dtype("bfloat16", cpu) == torch.bfloat16
    for name in ("gpu", "cuda:99", "meta", ""):
        with pytest.raises(BadValueError, match=r"device is .*expected one of auto, .*cpu"):
            select_device(name)
    with pytest.raises(BadValueError, match=r"dtype is 'int8'; expected auto or one of float32"):
        select_dtype("int8", cpu)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_info_and_plan_agree(tmp_path: Path, dtype: str) -> None:
    path = files.folder(tmp_path / "tiny")
    plan, model = plan_model(path, dtype=dtype), open_model(path, dtype=dtype)
    info, reply = model.info, plan.reply()
    assert (info.dtype, info.device, info.family) == (dtype, "cpu", "llama")
    assert info.weight_bytes == plan.weight_bytes == reply.weight_bytes
    assert info.weight_bytes == sum(weight.nbytes for weight in model.decoder.parameters())
    assert (reply.name, reply.parameters, reply.n_ctx, reply.fits) == (info.name, info.parameters, info.n_ctx, True)
    assert reply.file_bytes == (path / "model.safetensors").stat().st_size
    assert len(info.sha256) == 64


def test_every_number_of_the_info_is_the_configs(tmp_path: Path) -> None:
    info = open_model(files.folder(tmp_path / "tiny")).info
    tiny = files.TINY
    assert (info.n_layers, info.n_heads, info.n_kv_heads) == (2, 4, 2)
    assert (info.d_model, info.d_head, info.d_mlp, info.d_vocab, info.n_ctx) == (32, 8, 64, 300, 64)
    assert (info.positions, info.attention_kind, info.eos_ids) == ("rope", "GQA", (tiny["eos_token_id"],))


def test_the_identity_changes_with_the_weights(tmp_path: Path) -> None:
    one = open_model(files.folder(tmp_path / "one")).info.sha256
    assert open_model(files.folder(tmp_path / "copy")).info.sha256 == one
    path = files.folder(tmp_path / "other")
    raw = bytearray((path / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (path / "model.safetensors").write_bytes(raw)
    assert open_model(path).info.sha256 != one


def test_progress_reaches_the_end_and_never_goes_back(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int, str]] = []
    open_model(files.folder(tmp_path / "tiny"), progress=lambda *report: seen.append(report))
    done = [report[1] for report in seen]
    assert done == sorted(done)
    assert seen[-1][1] == seen[-1][2]


AUDIT_CHILD = """
import json, sys
from pathlib import Path
import torch
from model.loading import open_model
import gguf.quants, gguf.constants
places = [Path(place).resolve() for place in json.loads(sys.argv[2])]
seen = []
def allowed(path):
    path = Path(path).resolve()
    return any(path.is_relative_to(place) for place in places) or path.parts[1:2] in (("proc",), ("sys",))
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode()
        if not allowed(path):
            seen.append(f"open {path}")
    elif event.startswith(("socket.", "subprocess.", "os.exec", "os.system", "os.posix_spawn", "os.fork", "pickle.")):
        seen.append(event)
sys.addaudithook(hook)
open_model(sys.argv[1])
print(json.dumps(seen))
"""


@pytest.mark.parametrize("kind", ["folder", "gguf"])
def test_opening_runs_nothing_and_touches_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(cache))
    (tmp_path / "model").mkdir()
    made = files.tiny_gguf(tmp_path / "model" / "tiny.gguf") if kind == "gguf" else files.folder(tmp_path / "model")
    (tmp_path / "model" / "evil.py").write_text("raise SystemExit")
    places = [tmp_path / "model", cache, sys.prefix, sys.base_prefix, Path(torch.__file__).parent, Path.cwd() / "model"]
    command = [sys.executable, "-c", AUDIT_CHILD, str(made), json.dumps([str(place) for place in places])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


@pytest.mark.cuda
def test_on_a_gpu_the_weights_are_the_same_numbers(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    cpu = open_model(path, device="cpu").decoder.state_dict()
    model = open_model(path, device="cuda", dtype="float32")
    assert model.info.device == "cuda:0"
    for name, tensor in model.decoder.state_dict().items():
        assert torch.equal(tensor.cpu(), cpu[name])
        assert tensor.is_contiguous()
    assert open_model(path).info.dtype in {"bfloat16", "float16"}
    ids = torch.tensor([5, 77, 131, 12], device="cuda")
    logits = model.decoder(ids, model.decoder.new_cache(), logits="all").cpu()
    expected = files.tiny().run([5, 77, 131, 12])[0].logits
    assert (logits - expected).abs().max() < 1e-3  # sums in another order, and TF32 is off


@pytest.mark.parametrize("kind", ["folder", "gguf", "prepared"])
def test_a_configuration_that_is_refused_is_refused_before_any_weight_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    path = files.folder(tmp_path / "tiny") if kind == "folder" else files.tiny_gguf(tmp_path / "tiny.gguf")
    if kind == "prepared":
        open_model(path)
    layers: list[int] = []
    reads: list[tuple[object, ...]] = []

    def check(config: DecoderConfig) -> None:
        layers.append(config.n_layers)
        raise BadValueError("layer", 7, "0 to 1")

    with pytest.raises(BadValueError, match="layer is 7"):
        open_model(path, progress=lambda *report: reads.append(report), check_config=check)
    assert layers == [2]
    assert [report for report in reads if report[3] == "numbers"] == []
    assert open_model(path, check_config=lambda config: layers.append(config.n_layers)).info.n_layers == 2
    assert len(layers) > 1 and set(layers) == {2}
