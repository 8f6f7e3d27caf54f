"""The library for notebooks and scripts: open, prefill, step, arrays, figures. `import model` gives these names.

A thin cover of `Run`, the views and the exports, which it hands out (`Session.run`) to whoever wants more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import sampling
from model.candidates import candidates
from model.errors import BadValueError
from model.export.activations import find
from model.export.files import ExportedFile, write_files
from model.export.making import make_files
from model.export.page_size import as_high_as_needed
from model.export.run_file import Contents, RunFile, reopen, save_run
from model.loading import LoadedModel
from model.loading import open_model as load_model
from model.protocol.attention_requests import HeadView, Stage
from model.protocol.engine_requests import DType
from model.protocol.export_kinds import EXPORT_KINDS
from model.protocol.export_requests import ExportAttention, ExportSheet
from model.protocol.figure_requests import FigureRequest
from model.protocol.values import Candidate, ModelInfo, Node, SamplerSettings
from model.run import Run
from model.threads import use_threads
from model.views.attention_exact import exact
from model.views.selection import chosen

Float32 = NDArray[np.float32]
Shown = ExportAttention | ExportSheet | FigureRequest
_FIGURES: dict[str, type[FigureRequest]] = {
    name: kind.request for name, kind in EXPORT_KINDS.items() if issubclass(kind.request, FigureRequest)
}


def open_model(
    source: str | Path = "", *, device: str = "auto", dtype: DType = "auto", threads: int | None = None
) -> Model:
    """Opens a folder, a .gguf file, a hub id or a catalogue name; nothing: the default model. Raises
    DecoderscopeError with the reason and the way out."""
    if threads is not None:
        use_threads(threads)
    return Model(load_model(str(source), device=device, dtype=dtype))


def open_run(path: str | Path, model: Model | None = None) -> Session:
    """The run of a .dscope file: to be looked at, or, with the model it was made with, to be gone on with. Raises
    RunFileError."""
    with RunFile(Path(path)) as file:
        return Session(reopen(file, model.loaded if model is not None else None))


class Model:
    """An open model. `loaded` has its decoder (hooks too) and its tokenizer, `info` its facts."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded

    def __repr__(self) -> str:
        info = self.info
        return f"<{info.name}: {info.n_layers} layers, {info.n_heads} heads, {info.dtype} on {info.device}>"

    @property
    def info(self) -> ModelInfo:
        """What is loaded."""
        return self.loaded.info

    def prefill(self, prompt: str | Sequence[int], *, add_special: bool = True, budget: int | None = None) -> Session:
        """A new run on a text or on token ids. `budget`: bytes that may be kept of it besides the weights."""
        run = Run(self.loaded, budget_bytes=budget)
        run.prefill(prompt, add_special=add_special)
        return Session(run)


class Session:
    """A run. Positions, layers and heads count from 0; T is the length of the path, prompt included."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __repr__(self) -> str:
        return f"<{self.run.model.info.name}: {self.run.n_prompt} + {len(self.run.path)} tokens, {self.text[:60]!r}>"

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids, (T,)."""
        return self.run.ids

    @property
    def tokens(self) -> list[str]:
        """Tokens as they are drawn, one a position: spaces as dots, bytes as ⟨E4⟩."""
        return self.run.model.tokenizer.pieces(self.run.ids)

    @property
    def text(self) -> str:
        """The text, prompt included."""
        return self.run.text

    @property
    def steps(self) -> tuple[Node, ...]:
        """The decode steps of the path."""
        return tuple(self.run.nodes[node] for node in self.run.path)

    def step(self, n: int = 1, *, token: int | None = None, **sampler: Any) -> Session:
        """Decodes up to `n` tokens, or appends `token`. `sampler`: fields of SamplerSettings (temperature, top_k …,
        seed), those of the last step where they aren't given. Ends early at the end of the
        text. Returns itself."""
        settings = self._settings(**sampler)
        if token is not None:
            self.run.step(settings, force_token=token)
        else:
            self.run.generate(n, settings)
        return self

    def back(self, n: int = 1) -> Session:
        """`n` tokens back, at most to the prompt; nothing is run. Returns itself."""
        nodes = (self.run.tree.root, *self.run.path)
        self.run.seek(nodes[max(0, len(nodes) - 1 - n)])
        return self

    def logits(self) -> Float32:
        """Of the next token, (V,) float32."""
        return self.run.logits(self.run.current)

    def candidates(self, n: int = 10, **sampler: Any) -> tuple[Candidate, ...]:
        """The `n` likeliest next tokens, with their probability raw and after the sampler."""
        order = self.run.order(self.run.current)
        made = sampling.apply(order, self._settings(**sampler), self.run.ids)
        return candidates(made, self.run.model.tokenizer, order.ids(n))

    def attention(self, *, layer: int | str, head: int | str = "mean", stage: Stage = "weights") -> Float32:
        """(T, T) float32, NaN where masked: row t is what query t reads. `head`: an index, "mean" or "max" over the
        layer's (with `layer` "all": over all)."""
        everything = (0, self.run.length)
        view = HeadView(layer=layer, head=head, stage=stage)  # type: ignore[arg-type]  # `chosen` refuses what it isn't
        return exact(self.run, chosen(self.run, view), everything, everything)

    def activation(self, name: str) -> NDArray[Any]:
        """An activation of the whole path by its hook name, float32: "layers.3.mlp.post" (T, F), "logits" (T, V) …"""
        found = find(self.run, (name,))
        if len(found) > 1:
            raise BadValueError("name", name, "one activation; `activations` takes patterns")
        return self.activations(name)[found[0].name]

    def activations(self, *names: str) -> dict[str, NDArray[Any]]:
        """Activations by hook name or pattern ("layers.*.attn.z", "kv"). Without its model a run has the "logits" of
        the prompt's last token and of every step, and no others."""
        return {
            one.name: np.concatenate([block.numpy() for block in one.blocks()]).reshape(one.shape)
            for one in find(self.run, names)
        }

    def figure(self, what: str = "attention", **options: Any) -> Figure:
        """A figure: "attention" (`layer`, `head`, `stage`), "sheet" (`layers`, `heads`), "sampler", "kv-growth", "rope"
        (`layer`, `head`, `query`, `key`), "lens" or "text" (`by`). `options` also: theme, scale, colormap, title, dpi,
        width and height in inches: a sheet or a text is as high as what is on it unless you say."""
        if what == "attention":
            names = ("layer", "head", "stage")
            view = HeadView(**({"layer": "all", "head": "mean"} | {k: options.pop(k) for k in names if k in options}))
            return Figure(self.run, _asked(ExportAttention, view=view, **({"scale": "sqrt"} | options)))
        if what == "sheet":
            return Figure(self.run, self._sized(_asked(ExportSheet, **options), options))
        if what not in _FIGURES:
            raise BadValueError("what", what, f"attention, sheet, {', '.join(_FIGURES)}")
        if what == "sampler":
            options.setdefault("settings", self._settings())
        return Figure(self.run, self._sized(_asked(_FIGURES[what], **options), options))

    def save(self, path: str | Path, *, contents: Contents = "all", overwrite: bool = False) -> Path:
        """Writes the run as a .dscope file, whole or not at all. Raises FileWriteError."""
        return save_run(self.run, Path(path), contents=contents, overwrite=overwrite)

    def _sized(self, message: Any, options: Mapping[str, Any]) -> Any:
        """A figure's request, its page as high as what is on it unless a height was asked."""
        return message if "height" in options else as_high_as_needed(self.run, message)

    def _settings(self, **changes: Any) -> SamplerSettings:
        last = self.steps[-1].settings if self.run.path else SamplerSettings()
        try:
            return replace(last, **changes)
        except TypeError as error:
            raise BadValueError("sampler", ", ".join(changes), "fields of SamplerSettings") from error


def _asked(kind: type[Any], **options: Any) -> Any:
    """The request. Raises BadValueError for an option it doesn't have."""
    unknown = sorted(set(options) - set(kind.__dataclass_fields__))
    if unknown:
        raise BadValueError("option", unknown[0], "a field of " + kind.__name__)
    return kind(**options)


class Figure:
    """A figure of a run. A notebook shows it; `save` writes it in the format its name ends in."""

    def __init__(self, run: Run, message: Shown) -> None:
        self._run, self._message = run, message
        if isinstance(message, FigureRequest):  # refused now rather than when it is drawn
            self._files("png")

    def __repr__(self) -> str:
        return f"<Figure {self._message.stem}>"

    @cached_property
    def png(self) -> bytes:
        """The picture."""
        return self.data("png")

    def _repr_png_(self) -> bytes:
        return self.png

    def data(self, file_format: str) -> bytes:
        """The file: "png", "svg", "pdf", "json"; of attention and sheets also "html", "npz", "safetensors" and (a head)
        "csv"."""
        with next(self._files(file_format)) as file:
            return file.read()

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the file, whole or not at all; returns where it is. Raises FileWriteError."""
        path = Path(path)
        files = self._files(path.suffix[1:].lower(), path.stem)
        return write_files(files, path.parent, overwrite=overwrite)[0][0]

    def _files(self, file_format: str, stem: str = "figure") -> Iterator[ExportedFile]:
        kind = type(self._message)
        known = next(entry.formats for entry in EXPORT_KINDS.values() if entry.request is kind)
        if file_format not in known:
            raise BadValueError("format", file_format, f"a name that ends in .{', .'.join(known)}")
        return make_files(self._run, replace(self._message, formats=(file_format,), stem=stem))  # type: ignore[arg-type]
