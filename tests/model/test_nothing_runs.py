"""Opening any kind of model, seen by Python's audit hook: no code of the model's, no file outside, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, pre_tokenizers

from model.checkpoint import chat_child, tokenizer_child
from tests.model.checkpoint import files
from tests.model.export.test_run_file import branched, saved

CHILD = """
import json, sys, os
from pathlib import Path
import torch
from model.loading import open_model, plan_model
from model.export.run_file import RunFile, reopen
from model.checkpoint.chat import ChatTemplateError, chat_text
from model.tokenizer import TokenizerError
from model.errors import DecoderscopeError
import gguf.quants, gguf.constants, subprocess
sources, places, helpers = json.loads(sys.argv[1])
places = [Path(place).resolve() for place in places]
folder, seen, counted = Path("/nowhere"), [], {}
def under(path, places):
    path = Path(path).resolve()
    return any(path.is_relative_to(place) for place in places)
def hook(event, arguments):
    counted[event] = counted.get(event, 0) + 1
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.fsdecode(arguments[0])
        ours = under(path, [folder, *places, "/proc", "/sys", "/dev"])
        if not ours:
            seen.append(f"open {path}")
        if path.endswith((".py", ".pyc", ".so")) and under(path, [folder]):
            seen.append(f"code {path}")
    elif event == "exec" and under(getattr(arguments[0], "co_filename", ""), [folder]):
        seen.append(f"exec {arguments[0].co_filename}")
    elif event == "import" and arguments[1] and under(arguments[1], [folder]):
        seen.append(f"import {arguments[1]}")
    elif event == "subprocess.Popen":
        if not (arguments[0] == sys.executable and list(arguments[1][1:2]) == ["-I"] and arguments[1][2] in helpers):
            seen.append(f"Popen {arguments[1]}")
    elif event.startswith(("socket.", "urllib.", "http.", "ftplib.", "webbrowser.", "pickle.", "os.exec", "os.system",
                           "os.spawn", "os.posix_spawn", "os.fork")):
        seen.append(event)
    elif event == "ctypes.dlopen" and under(str(arguments[0]), [folder]):
        seen.append(f"{event} {arguments[0]}")
sys.addaudithook(hook)
def look(source):
    if source.endswith(".dscope"):
        with RunFile(Path(source)) as file:
            reopen(file)
        return
    plan_model(source)
    model = open_model(source)
    try:
        model.tokenizer.encode("a text of 7 words, no more")
        if model.tokenizer.chat_template:
            chat_text(model.tokenizer, [{"role": "user", "content": "a"}])
    except (TokenizerError, ChatTemplateError):
        pass
found = {}
for kind, source in sources.items():
    folder = Path(source) if Path(source).is_dir() else Path(source).parent
    folder, seen, counted = folder.resolve(), [], {}
    end = "opened"
    try:
        look(source)
    except DecoderscopeError as error:
        end = str(error)
    found[kind] = {"seen": seen, "end": end, "opens": counted.get("open", 0)}
print(json.dumps(found))
"""

EVIL_TEMPLATE = (
    "{{ cycler.__init__.__globals__.os.system('touch /tmp/x') }}{{ ''.__class__.__mro__[1].__subclasses__() }}"
)


def _folder(path: Path) -> Path:
    return files.folder(path)


def _sharded(path: Path) -> Path:
    return files.folder(path, shard=True)


def _gguf(path: Path) -> Path:
    path.mkdir()
    return files.tiny_gguf(path / "tiny.gguf")


def _split(path: Path) -> Path:
    path.mkdir()
    whole = files.tiny_gguf(path / "tiny.gguf")
    parts = files.split_gguf(whole, 3)
    whole.unlink()
    return parts[1]


def _remote_code(path: Path) -> Path:
    files.folder(path)
    files.edit_config(
        path, auto_map={"AutoModelForCausalLM": "modeling_evil.Model", "AutoConfig": "configuration_evil.C"}
    )
    for name in (
        "modeling_evil.py",
        "configuration_evil.py",
        "tokenization_evil.py",
        "__init__.py",
        "sitecustomize.py",
    ):
        (path / name).write_text("raise SystemExit('it ran')")
    return path


def _pickle_beside(path: Path) -> Path:
    files.folder(path)
    torch.save({"a": torch.zeros(2)}, path / "pytorch_model.bin")
    torch.save({"a": torch.zeros(2)}, path / "training_args.bin")
    return path


def _pickle_only(path: Path) -> Path:
    files.folder(path)
    torch.save({"a": torch.zeros(2)}, path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    return path


def _pickle_renamed(path: Path) -> Path:
    files.folder(path)
    torch.save({"a": torch.zeros(2)}, path / "model.safetensors")
    return path


def _evil_template(path: Path) -> Path:
    files.folder(path)
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": EVIL_TEMPLATE, "eos_token": "<|end|>"}))
    (path / "chat_template.jinja").write_text(EVIL_TEMPLATE)
    return path


def _evil_pattern(path: Path) -> Path:
    files.folder(path)
    tokenizer = files.tiny_tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(a|a)*b|."), "isolated")
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def _link_out(name: str) -> Callable[[Path], Path]:
    """A folder one of whose files is a link to a file elsewhere."""

    def make(path: Path) -> Path:
        files.folder(path, shard=name.endswith("index.json"))
        elsewhere = path.parent / "elsewhere"
        elsewhere.mkdir()
        if (path / name).exists():
            shutil.move(path / name, elsewhere / name)
        else:
            (elsewhere / name).write_text("{}")
        (path / name).symlink_to(elsewhere / name)
        return path

    return make


def _gguf_link_out(path: Path) -> Path:
    part = _split(path)
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    shutil.move(part, elsewhere / part.name)
    part.symlink_to(elsewhere / part.name)
    return part.with_name(part.name.replace("00002-of", "00001-of"))


def _run(path: Path) -> Path:
    path.mkdir()
    return saved(branched(), path / "a.dscope")


KINDS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "folder": (_folder, "opened"),
    "sharded": (_sharded, "opened"),
    "gguf": (_gguf, "opened"),
    "split gguf": (_split, "opened"),
    "remote code": (_remote_code, "opened"),
    "pickles beside": (_pickle_beside, "opened"),
    "pickles only": (_pickle_only, "pickles only"),
    "pickle renamed": (_pickle_renamed, "zip archive"),
    "evil template": (_evil_template, "opened"),
    "evil pattern": (_evil_pattern, "opened"),
    "run file": (_run, "opened"),
    **{
        f"link {name}": (_link_out(name), "a link out of the model's folder")
        for name in (
            "config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "generation_config.json",
            "chat_template.jinja",
            "model.safetensors",
            "model.safetensors.index.json",
        )
    },
    "link gguf part": (_gguf_link_out, "a link out of the model's folder"),
}


def _audit(sources: dict[str, str], cache: Path, *, allowed: bool = True) -> dict[str, Any]:
    """What the hook saw of each source, in one fresh process."""
    root = Path(chat_child.__file__).parents[2]
    places = [cache, sys.prefix, sys.base_prefix, Path(torch.__file__).parent, root / "model", root / ".venv"]
    helpers = [chat_child.__file__, tokenizer_child.__file__]
    arguments = json.dumps([sources, [str(place) for place in places if allowed], helpers])
    environment = os.environ | {"DECODERSCOPE_CACHE_DIR": str(cache), "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("kinds")
    sources = {}
    for number, (kind, (make, _)) in enumerate(KINDS.items()):
        (place / str(number)).mkdir()
        sources[kind] = str(make(place / str(number) / "model"))
    return _audit(sources, place / "cache")


@pytest.mark.parametrize("kind", KINDS)
def test_opening_executes_nothing_and_touches_nothing_outside(audited: dict[str, Any], kind: str) -> None:
    found, end = audited[kind], KINDS[kind][1]
    assert found["seen"] == []
    assert end in found["end"]
    assert found["opens"] or end != "opened"  # the hook did see


def test_the_hook_sees_what_it_looks_for(tmp_path: Path) -> None:
    """The same folder, with the program's own places not allowed."""
    found = _audit({"a": str(files.folder(tmp_path / "model"))}, tmp_path / "cache", allowed=False)
    assert found["a"]["seen"]


def test_the_hubs_token_is_in_no_log_line_and_no_error(
    tmp_path: Path,
) -> None:
    token = "hf_" + "x" * 34
    code = (
        "import logging, sys, faulthandler; logging.basicConfig(level=logging.DEBUG)\n"
        "from model.loading import open_model\nfrom model.errors import DecoderscopeError\n"
        "import huggingface_hub.constants as c\n"
        "try: open_model('owner/name')\n"
        "except DecoderscopeError as error: print(error)\n"
    )
    environment = {"HF_TOKEN": token, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    base = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=base | environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Could not fetch owner/name" in done.stdout
    assert token not in done.stdout + done.stderr and "xxxxxxxx" not in done.stdout + done.stderr
