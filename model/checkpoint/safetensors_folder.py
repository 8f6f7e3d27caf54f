"""The weights of a Hugging Face-style folder: one .safetensors file, or shards with their index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

from model.checkpoint.bounded_json import INDEX_LIMIT, read_object
from model.checkpoint.errors import BadFileError, UnsupportedError, shown_list

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_MAX_SHARDS = 2000
_SHARD = re.compile(r"^(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})\.safetensors$")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
_OTHERS = ("*.h5", "*.msgpack", "*.onnx", "weights*.npz", "*.mlmodel", "*.tflite")


def weight_files(folder: Path) -> tuple[list[Path], Mapping[str, str] | None]:
    """(the files, {tensor: file name} of the index or None). Refuses what holds no safetensors, with the way out."""
    if (folder / "adapter_config.json").exists() and not (folder / "config.json").exists():
        raise UnsupportedError(
            folder, "this is an adapter (LoRA), not a whole model", "Merge it into its base model and open the result."
        )
    if _present(folder / INDEX):
        return _indexed(folder)
    if _present(folder / SINGLE):
        return [folder / SINGLE], None
    found = sorted(folder.glob("*.safetensors"))
    if len(found) == 1:
        return found, None
    if found:
        return _complete_set(folder, found), None
    raise _no_weights(folder)


def _present(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _no_weights(folder: Path) -> UnsupportedError:
    def names(patterns: tuple[str, ...]) -> list[str]:
        return sorted(path.name for pattern in patterns for path in folder.glob(pattern) if path.is_file())

    if ggufs := names(("*.gguf",)):
        return UnsupportedError(folder, f"it holds GGUF files ({shown_list(ggufs)})", "Open one of them by its path.")
    if not _present(folder / "config.json"):
        # Whatever else lies there says nothing: an .npz or a .bin in any folder is hardly a model's weights.
        return UnsupportedError(
            folder, "there is no config.json in it", "Check the path: a model's folder has one beside its weights."
        )
    if pickles := names(_PICKLES):
        return UnsupportedError(
            folder,
            f"its weights are Python pickles only ({shown_list(pickles)})",
            "Pickle files can run code, so they are never opened: use a version with .safetensors files, or convert "
            "with transformers (save_pretrained) where you trust the files.",
        )
    if others := names(_OTHERS):
        return UnsupportedError(
            folder, f"its weights are for another framework ({shown_list(others)})", "Use a .safetensors version."
        )
    return UnsupportedError(folder, "there are no .safetensors files in it", "Check the path and the download.")


def _complete_set(folder: Path, found: list[Path]) -> list[Path]:
    matches = [_SHARD.match(path.name) for path in found]
    sets = {(match["stem"], int(match["count"])) for match in matches if match}
    if all(matches) and len(sets) == 1:
        stem, count = next(iter(sets))
        wanted = [f"{stem}-{part:05d}-of-{count:05d}.safetensors" for part in range(1, count + 1)]
        if missing := [name for name in wanted if not (folder / name).exists()]:
            raise BadFileError(folder, f"shards are missing: {shown_list(missing)}", remedy="Download them.")
        return [folder / name for name in wanted]
    raise UnsupportedError(
        folder,
        f"it holds several .safetensors files and no index ({shown_list([path.name for path in found])})",
        f"Add {INDEX}, or open one of the files.",
    )


def _indexed(folder: Path) -> tuple[list[Path], Mapping[str, str]]:
    index = folder / INDEX
    require_inside(folder, index)
    weight_map = read_object(index, INDEX_LIMIT).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadFileError(index, "no map from tensors to files", where="weight_map", expected="an object with entries")
    names = sorted({_safe_name(index, tensor, name) for tensor, name in weight_map.items()})
    if len(names) > _MAX_SHARDS:
        raise BadFileError(index, "too many files", where="weight_map", found=len(names), expected=f"≤ {_MAX_SHARDS}")
    if missing := [name for name in names if not _present(folder / name)]:
        raise BadFileError(index, f"it names files that are not there: {shown_list(missing)}", remedy="Download them.")
    for name in names:
        require_inside(folder, folder / name)
    extra = sorted(
        path.name for path in folder.glob("*.safetensors") if path.name not in names and _SHARD.match(path.name)
    )
    if extra:
        raise BadFileError(
            index,
            f"shards that it does not name lie beside it: {shown_list(extra)}",
            remedy="Remove them, or download the folder again.",
        )
    return [folder / name for name in names], weight_map


def _safe_name(index: Path, tensor: str, name: object) -> str:
    good = (
        isinstance(name, str)
        and name.endswith(".safetensors")
        and len(name) <= 255
        and name.isprintable()
        and not any(ch in name for ch in '/\\:*?"<>|')
        and not name.startswith(".")
        and not PureWindowsPath(name).is_reserved()
    )
    if not good or not isinstance(name, str):
        raise BadFileError(
            index,
            "a file name that leads elsewhere or is no file name",
            where=tensor,
            found=name,
            expected="the plain name of a .safetensors file in the same folder",
        )
    return name


def require_inside(folder: Path, path: Path) -> None:
    """Refuses a link that leaves `folder`; the hub cache's own links (snapshots/… → ../../blobs/…) are fine."""
    real, root = path.resolve(), folder.resolve()
    allowed = [root]
    if root.parent.name == "snapshots":
        allowed.append(root.parent.parent / "blobs")
    if not any(real.is_relative_to(place) for place in allowed):
        raise BadFileError(path, "a link out of the model's folder", found=real, expected=f"a file under {root}")


def check_index(index: Path, weight_map: Mapping[str, str], held: Mapping[str, str]) -> None:
    """Compares the index with what the shards hold ({tensor: file name}); BadFileError lists what differs."""
    absent = [f"{tensor} ({name})" for tensor, name in weight_map.items() if tensor not in held]
    moved = [
        f"{tensor} (in {held[tensor]}, not {name})"
        for tensor, name in weight_map.items()
        if tensor in held and held[tensor] != name
    ]
    unnamed = [f"{tensor} (in {name})" for tensor, name in held.items() if tensor not in weight_map]
    problems = {"tensors the shards lack": absent, "tensors in another shard": moved, "tensors it lacks": unnamed}
    lines = [f"{what}: {shown_list(names)}" for what, names in problems.items() if names]
    if lines:
        raise BadFileError(
            index, f"it does not fit its shards: {'; '.join(lines)}", remedy="Download the folder again."
        )
