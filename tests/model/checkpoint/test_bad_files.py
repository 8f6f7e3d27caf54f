"""Files that are wrong: each is refused at once, in one sentence that names the file, the place, and the way out."""

import os
import socket
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import gguf
import hypothesis
import pytest
from hypothesis import strategies as st

from model.checkpoint import gguf_header, safetensors_header
from model.checkpoint.errors import BadFileError, CheckpointError, UnsupportedError
from model.checkpoint.paths import open_regular
from model.checkpoint.safetensors_folder import SINGLE
from model.errors import DecoderscopeError
from model.loading import open_model, plan_model
from tests.model.checkpoint import files
from tests.model.checkpoint.files import entry, gguf_key, gguf_string, gguf_tensor, raw_gguf, raw_safetensors

pytestmark = pytest.mark.usefixtures("own_cache")


@contextmanager
def cheaply(seconds: float = 1.0, megabytes: int = 40) -> Iterator[None]:
    """What is done inside takes under a second of processor time, little memory, and waits for nothing."""
    tracemalloc.start()
    start, clock = time.process_time(), time.monotonic()
    try:
        yield
        taken, waited = time.process_time() - start, time.monotonic() - clock
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < seconds
    assert waited < 20 * seconds  # a busy machine is not waiting
    assert peak < megabytes << 20


def _header(path: Path, read: Callable[[int, Path], object]) -> object:
    descriptor = open_regular(path)
    try:
        return read(descriptor, path)
    finally:
        os.close(descriptor)


# --- safetensors

GOOD = {"a": entry("F32", [2], 0, 8), "b": entry("F16", [3], 8, 14)}


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        ("[]", b"", "not a JSON object"),
        ("{nonsense", b"", "not valid JSON"),
        (b'{"\xff": 1}', b"", "not UTF-8"),
        ('{"a":' * 100_000, b"", "nested too deeply"),
        ('{"a": 1, "a": 2}', b"", "a appears twice"),
        ({"a": 5}, b"", "a: malformed entry"),
        ({"a": {**entry("F32", [2], 0, 8), "x": 1}}, bytes(8), "a: malformed entry"),
        ({"a": entry("F33", [2], 0, 8)}, bytes(8), r"a: unknown dtype \(found F33"),
        ({"a": entry("F32", [-2], 0, 8)}, bytes(8), "a: malformed shape"),
        ({"a": entry("F32", [2.0], 0, 8)}, bytes(8), "a: malformed shape"),  # type: ignore[list-item]
        ({"a": entry("F32", [True], 0, 4)}, bytes(4), "a: malformed shape"),
        ({"a": entry("F32", [1] * 9, 0, 4)}, bytes(4), "a: malformed shape"),
        ({"a": entry("F32", [2**62, 2**62], 0, 8)}, bytes(8), "a: malformed shape"),
        ({"a": entry("F32", [2**40, 2**40], 0, 8)}, bytes(8), "does not fill its bytes"),
        (
            {"a": entry("F32", [3], 0, 8)},
            bytes(8),
            r"a: F32 \[3\] does not fill its bytes \(found 8 bytes, expected 12",
        ),
        ({"a": entry("F4", [3], 0, 1)}, bytes(1), "expected 2 bytes"),
        ({"a": entry("F32", [2], 8, 0)}, bytes(8), "a: reversed"),
        ({"a": entry("F32", [2], -8, 0)}, bytes(8), "a: malformed data_offsets"),
        ({"a": GOOD["a"], "b": entry("F16", [3], 6, 12)}, bytes(12), "b: its bytes overlaps those of a"),
        ({"a": GOOD["a"], "b": entry("F16", [3], 10, 16)}, bytes(16), "b: its bytes leaves a gap after those of a"),
        ({"a": entry("F32", [2], 4, 12)}, bytes(12), "a: its bytes leaves a gap after the header"),
        (GOOD, bytes(13), r"b: truncated.*found a file of \d+ bytes, expected \d+ bytes"),
        (GOOD, bytes(15), "b: bytes follow the last tensor"),
        ({"__metadata__": {"a": 1}}, b"", "__metadata__"),
        ({"__metadata__": []}, b"", "__metadata__"),
    ],
)
def test_bad_safetensors_headers(tmp_path: Path, header: object, data: bytes, said: str) -> None:
    path = raw_safetensors(tmp_path / "m.safetensors", header, data)  # type: ignore[arg-type]
    with cheaply(), pytest.raises(BadFileError, match=said) as caught:
        _header(path, safetensors_header.read_header)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("length", [2**64 - 1, 100 << 20, 1 << 40])
def test_a_header_length_past_the_end_allocates_nothing(tmp_path: Path, length: int) -> None:
    path = raw_safetensors(tmp_path / "m.safetensors", "{}" + " " * 100, length=length)
    with cheaply(megabytes=1), pytest.raises(BadFileError, match=f"found a header of {length} bytes"):
        _header(path, safetensors_header.read_header)


def test_a_huge_header_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with path.open("wb") as file:
        file.write((90 << 20).to_bytes(8, "little") + b"{")
        file.truncate(100 << 20)
    with cheaply(megabytes=1), pytest.raises(BadFileError, match="the header is too large"):
        _header(path, safetensors_header.read_header)


def test_thousands_of_tensors_are_fine(tmp_path: Path) -> None:
    header = {f"layers.{number}.weight": entry("F16", [1], 2 * number, 2 * number + 2) for number in range(20_000)}
    path = raw_safetensors(tmp_path / "m.safetensors", header, bytes(40_000))
    with cheaply(4.0, 80):  # tracing memory makes it several times slower
        found = _header(path, safetensors_header.read_header)
    assert isinstance(found, safetensors_header.Header)
    assert list(found.entries) == list(header)


def _pickle(path: Path) -> None:
    path.write_bytes(b"\x80\x04\x95" + bytes(50))


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02.")


def _pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 538090408\n")


def _page(path: Path) -> None:
    path.write_text("<!DOCTYPE html><html><body>Please log in</body></html>" * 30)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


WRONG_KINDS = [
    (_pickle, "a Python pickle", "save_pretrained"),
    (_zip, "a zip archive", "never opened"),
    (_pointer, "Git LFS pointer", "git lfs pull"),
    (_page, "a web page", "Download it again"),
    (_empty, "an empty file", "Download it again"),
]


@pytest.mark.parametrize(("make", "kind", "remedy"), WRONG_KINDS)
@pytest.mark.parametrize("name", [SINGLE, "config.json", "tokenizer.json", "m.gguf"])
def test_files_of_another_kind_are_called_by_their_name(
    tmp_path: Path, name: str, make: Callable[[Path], None], kind: str, remedy: str
) -> None:
    path = files.folder(tmp_path / "tiny")
    make(path / name)
    with cheaply(2.0), pytest.raises(CheckpointError) as caught:
        open_model(path / name if name == "m.gguf" else path)
    assert name in str(caught.value)
    assert kind in str(caught.value)
    assert remedy in str(caught.value)


def test_unfinished_downloads_and_tiny_files(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.crdownload"
    path.write_bytes(b"12345")
    with pytest.raises(CheckpointError, match="unfinished download"):
        open_model(path)
    (tmp_path / "m.safetensors").write_bytes(b"1234567")
    with pytest.raises(BadFileError, match="truncated: there is no header"):
        _header(tmp_path / "m.safetensors", safetensors_header.read_header)


# --- things that are no files


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe.gguf", tmp_path / "link.gguf"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "nowhere")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s.gguf"))
    try:
        with cheaply():
            for path, said in (
                (pipe, "found a named pipe"),
                (link, "a link to something that does not exist"),
                (tmp_path / "s.gguf", "found a socket"),
                (Path(os.devnull), "found a device"),
                (tmp_path / "absent.gguf", "no such file"),
            ):
                with pytest.raises(BadFileError, match=said):
                    open_model(path)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("https://huggingface.co/gpt2", "a web address"),
        ("no such model", "There is no model called"),
        ("a\0b", "There is no model called"),
        ("../no such folder", "no such file or folder"),
        ("x" * 5000, "There is no model called"),
    ],
    ids=["url", "words", "nul", "path", "long"],
)
def test_names_that_are_no_model(source: str, said: str) -> None:
    with pytest.raises(DecoderscopeError, match=said):
        open_model(source)


def test_an_absent_default_model_says_how_to_get_it() -> None:
    with pytest.raises(CheckpointError, match="SmolLM2-135M-Instruct is not on this machine yet: get it first"):
        open_model()


# --- config.json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"model_type": "bert"}', "encoder-only"),
        (
            b'{"model_type": "nonesuch", "auto_map": {"AutoModel": "m.M"}}',
            "'nonesuch' is not supported",
        ),
        (b"{}", "no model_type"),
        (b'{"model_type": [' + b"0, " * 3000 + b"1]}", "no model_type"),
        (b'{"model_type": "llama", "model_type": "llama"}', "appears twice"),
        (b'{"a":' * 50_000, "nested too deeply"),
    ],
)
def test_bad_configurations(tmp_path: Path, text: bytes, said: str) -> None:
    path = files.folder(tmp_path / "tiny")
    (path / "config.json").write_bytes(text)
    with cheaply(2.0), pytest.raises(CheckpointError, match=said) as caught:
        open_model(path)
    assert "config.json" in str(caught.value) and len(str(caught.value)) < 2_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_layers", 2000), ("vocab_size", 10**9), ("hidden_size", -1), ("hidden_size", "32"),
        ("hidden_size", 0), ("num_key_value_heads", 0), ("num_key_value_heads", 3), ("head_dim", 7),
        ("rope_theta", 0), ("rms_norm_eps", float("nan")), ("hidden_act", "sparkle"),
    ],
)  # fmt: skip
def test_configurations_out_of_range_allocate_nothing(tmp_path: Path, field: str, value: object) -> None:
    path = files.folder(tmp_path / "tiny")
    files.edit_config(path, rope_parameters=None, **{field: value})
    with cheaply(2.0), pytest.raises(BadFileError, match=r"config\.json: The model's configuration|config\.json: "):
        plan_model(path)


def test_a_missing_or_huge_config_is_refused_and_a_bom_is_read(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    config = path / "config.json"
    config.write_bytes(b"\xef\xbb\xbf" + config.read_bytes())
    assert open_model(path).info.n_layers == 2
    os.truncate(config, 1 << 30)
    with cheaply(), pytest.raises(BadFileError, match="far too large for what it is"):
        open_model(path)
    config.unlink()
    with pytest.raises(BadFileError, match=r"config\.json: no such file"):
        open_model(path)


def test_code_that_a_config_points_to_is_never_looked_at(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    files.edit_config(path, auto_map={"AutoModelForCausalLM": "evil.Model"}, trust_remote_code=True)
    (path / "evil.py").write_text("raise SystemExit('run')")
    assert open_model(path).info.family == "llama"


# --- GGUF

HUGE = struct.pack("<Q", 1 << 40)
U32 = struct.pack("<I", 4)
ARRAY_OF = {
    "numbers": struct.pack("<I", 4),
    "texts": struct.pack("<I", 8),
    "arrays": struct.pack("<I", 9),
    "nonsense": struct.pack("<I", 77),
}
OVERLAPPING = gguf_tensor("t", [20]) + gguf_tensor("u", [2], offset=32)
ALIGNMENT = [gguf_key("general.alignment", 4, struct.pack("<I", value)) for value in (0, 3, 2**31)]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"GGUF\x03\x00", "truncated: there is no header"),
        (b"NOPE" + bytes(40), "not a GGUF file"),
        (raw_gguf(version=1, body=bytes(64)), r"unsupported GGUF version \(found 1, expected 2 or 3"),
        (raw_gguf(version=999, body=bytes(64)), "found 999"),
        (raw_gguf(version=3, order=">", body=bytes(64)), "big-endian"),
        (raw_gguf(keys=1 << 40, body=bytes(64)), "more keys than the file can hold"),
        (raw_gguf(tensors=1 << 40, body=bytes(64)), "more tensors than the file can hold"),
        (raw_gguf(keys=1, body=HUGE + bytes(64)), "text too long"),
        (raw_gguf(keys=1, body=gguf_key("k", 8, HUGE) + bytes(64)), "k: text too long"),
        (raw_gguf(keys=1, body=gguf_key("k", 8, struct.pack("<Q", 9999)) + bytes(64)), "k: truncated"),
        (raw_gguf(keys=1, body=gguf_key("k", 8, gguf_string(b"\xff\xff")) + bytes(64)), "k: text that is not UTF-8"),
        (raw_gguf(keys=1, body=gguf_key("k", 77, b"") + bytes(64)), "k: unknown value type"),
        (raw_gguf(keys=1, body=gguf_key("k", 7, b"\x05") + bytes(64)), "k: a truth value is neither"),
        (raw_gguf(keys=1, body=gguf_key("k", 9, ARRAY_OF["numbers"] + HUGE) + bytes(64)), "k: an array longer than"),
        (raw_gguf(keys=1, body=gguf_key("k", 9, ARRAY_OF["texts"] + HUGE) + bytes(64)), "k: an array longer than"),
        (raw_gguf(keys=1, body=gguf_key("k", 9, ARRAY_OF["arrays"] + bytes(64))), "an array inside an array"),
        (raw_gguf(keys=1, body=gguf_key("k", 9, ARRAY_OF["nonsense"] + bytes(64))), "unknown element type"),
        (raw_gguf(keys=2, body=gguf_key("k", 4, U32) * 2 + bytes(64)), "k: this key appears twice"),
        *((raw_gguf(keys=1, body=key + bytes(64)), "general.alignment: bad alignment") for key in ALIGNMENT),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [2], n_dims=2**32 - 1) + bytes(64)), "t: bad number of dimensions"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [], n_dims=0) + bytes(64)), "t: bad number of dimensions"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [2, 0]) + bytes(64)), "t: bad dimension"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [2**47, 2**47]) + bytes(64)), "t: truncated: its data goes past"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [2], offset=1 << 40) + bytes(64)), "t: truncated: its data goes"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [2], offset=7) + bytes(64)), "t: unaligned offset"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [2], kind=99) + bytes(64)), "t: unknown tensor type"),
        (raw_gguf(tensors=1, body=gguf_tensor("t", [33], kind=8) + bytes(99)), "t: a row does not fill Q8_0 blocks"),
        (raw_gguf(tensors=2, body=gguf_tensor("t", [2]) * 2 + bytes(99)), "t: this tensor appears twice"),
        (raw_gguf(tensors=2, body=OVERLAPPING + bytes(199)), "u: its bytes overlap those of t"),
    ],
)  # fmt: skip
def test_bad_gguf_headers(tmp_path: Path, raw: bytes, said: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    with cheaply(), pytest.raises(BadFileError, match=said) as caught:
        _header(path, gguf_header.read_header)
    assert str(path) in str(caught.value)


def test_gguf_models_we_do_not_know_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(raw_gguf(keys=1, body=gguf_key("general.architecture", 8, gguf_string("mamba")) + bytes(64)))
    with pytest.raises(BadFileError, match=r"architecture 'mamba' is not supported\. Supported: .*llama"):
        open_model(path)
    path.write_bytes(raw_gguf(body=bytes(64)))
    with pytest.raises(BadFileError, match="not supported"):
        open_model(path)


def test_a_gguf_of_a_known_architecture_is_matched_strictly(tmp_path: Path) -> None:
    whole = files.tiny_gguf(tmp_path / "tiny.gguf")
    raw = whole.read_bytes()
    path = tmp_path / "m.gguf"
    path.write_bytes(raw.replace(b"blk.1.attn_q.weight", b"blk.1.attn_Q.weight"))
    with pytest.raises(CheckpointError, match=r"missing 1: model\.layers\.1\.self_attn\.q_proj\.weight"):
        open_model(path)
    path.write_bytes(raw[:-100])
    with pytest.raises(BadFileError, match="truncated: its data goes past the end"):
        open_model(path)
    typed = files.tiny_gguf(tmp_path / "typed.gguf", meta={"general.alignment": (64, gguf.GGUFValueType.UINT32)})
    assert open_model(typed).info.n_layers == 2


# --- anything at all


def _refusal(path: Path, read: Callable[[int, Path], object]) -> str:
    """What reading the header said; "" when it was read."""
    try:
        _header(path, read)
    except BadFileError as error:
        return str(error)
    return ""


@hypothesis.given(data=st.binary(max_size=400), seed=st.sampled_from(["", "GGUF", "safetensors"]))
def test_garbage_is_always_one_error(tmp_path_factory: pytest.TempPathFactory, data: bytes, seed: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "m.bin"
    starts = {"": b"", "GGUF": b"GGUF\x03\x00\x00\x00", "safetensors": len(data).to_bytes(8, "little") + b"{"}
    path.write_bytes(starts[seed] + data)
    said = [_refusal(path, read) for read in (gguf_header.read_header, safetensors_header.read_header)]
    assert all(not sentence or str(path) in sentence for sentence in said)
    assert any(said)  # nothing is both


@hypothesis.given(changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_damaged_gguf_header_is_an_error_or_a_model(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    raw = bytearray(files.tiny_gguf(folder / "tiny.gguf").read_bytes())
    for at, value in changes:
        raw[at] = value
    path = folder / "m.gguf"
    path.write_bytes(raw)
    assert len(_refusal(path, gguf_header.read_header)) < 2000


def test_refusals_never_hold_raw_control_characters(tmp_path: Path) -> None:
    path = raw_safetensors(tmp_path / "m.safetensors", {"a\x1b[31m\n" + "x" * 9000: 5})
    with pytest.raises(BadFileError) as caught:
        _header(path, safetensors_header.read_header)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_other_files_are_refused_as_models(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(UnsupportedError, match="none of the kinds known here, not a model"):
        open_model(path)


def test_every_refusal_of_a_file_says_a_way_out(tmp_path: Path) -> None:
    assert str(BadFileError(tmp_path, "damaged", found=3, expected=4)).endswith(
        "damaged (found 3, expected 4). Get the file again, or open another one."
    )
    assert str(BadFileError(tmp_path, "damaged", remedy="Mend it.")).endswith("damaged. Mend it.")
