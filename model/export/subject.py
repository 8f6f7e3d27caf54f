"""What an export is about: a snapshot of a run's text and settings, and the provenance of what is drawn from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from model.errors import BadValueError, NoRunError
from model.export.provenance import SCALE_WORDS, STAGE_WORDS, Provenance, hash_ids
from model.protocol.attention_requests import HeadView, Scale
from model.protocol.values import ModelInfo, SamplerSettings
from model.version import product_version

if TYPE_CHECKING:
    from model.run import Run

_OVER_HEADS = {"mean": "mean of all", "max": "maximum of all"}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A run's active path: ids and pieces one a position, the prompt and the whole text, the last step's settings."""

    info: ModelInfo
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    n_prompt: int
    prompt: str
    text: str
    settings: SamplerSettings | None
    altered: bool = False

    @classmethod
    def of(cls, run: Run) -> Subject:
        """Raises NoRunError while nothing has been prefilled."""
        if not run.length:
            raise NoRunError
        tokenizer, ids = run.model.tokenizer, run.ids
        return cls(
            info=run.model.info,
            ids=ids,
            pieces=tuple(tokenizer.pieces(ids)),
            n_prompt=run.n_prompt,
            prompt=tokenizer.decode(run.prompt_ids),
            text=run.text,
            settings=run.nodes[run.path[-1]].settings if run.path else None,
            altered=run.altered,
        )

    @property
    def length(self) -> int:
        return len(self.ids)

    @property
    def boundary(self) -> int:
        """The first decode position; 0 while there is none."""
        return self.n_prompt if self.n_prompt < self.length else 0

    def span(self, name: str, asked: tuple[int, int]) -> tuple[int, int]:
        """A half-open range of positions, (0, 0) being all. Raises BadValueError for one without a position of ours."""
        if asked == (0, 0):
            return 0, self.length
        start, stop = max(asked[0], 0), min(asked[1], self.length)
        if start >= stop:
            raise BadValueError(name, asked, f"a range within 0 to {self.length}")
        return start, stop

    def with_settings(self, settings: SamplerSettings) -> Subject:
        """The same under other sampler settings."""
        return replace(self, settings=settings)

    def about(
        self, what: str, *, layer: str = "", head: str = "", kv_head: str = "", stage: str = "", scale: str = ""
    ) -> Provenance:
        """Where the numbers of an export come from."""
        info = self.info
        return Provenance(
            model=info.name,
            model_sha256=info.sha256,
            model_source=info.source,
            family=info.family,
            dtype=info.dtype,
            device=info.device,
            what=what,
            layer=layer,
            head=head,
            kv_head=kv_head,
            stage=stage,
            scale=scale,
            prompt=self.prompt,
            text=self.text,
            ids_sha256=hash_ids(self.ids),
            n_prompt=self.n_prompt,
            length=self.length,
            settings=self.settings,
            altered=self.altered,
            version=product_version(),
        )

    def about_view(self, view: HeadView, scale: Scale) -> Provenance:
        """The provenance of one head's matrix."""
        shared = self.info.n_heads // self.info.n_kv_heads
        return self.about(
            STAGE_WORDS[view.stage],
            layer=str(view.layer),
            head=_OVER_HEADS.get(str(view.head), str(view.head)),
            kv_head=str(view.head // shared) if isinstance(view.head, int) else "",
            stage=view.stage,
            scale=SCALE_WORDS[scale],
        )


def view_title(view: HeadView) -> str:
    """A figure's title: "Attention weights · layer 13 · head 8"."""
    layer = "all layers" if view.layer == "all" else f"layer {view.layer}"
    head = {"mean": "mean over heads", "max": "maximum over heads"}.get(str(view.head), f"head {view.head}")
    what = STAGE_WORDS[view.stage]
    return f"{what[0].upper() if what[0] != 'q' else what[0]}{what[1:]} · {layer} · {head}"
