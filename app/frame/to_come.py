"""What will stand in each panel, for as long as nothing does. Light: painted before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ToCome:
    """`icon`: of assets/icons. `title`: the panel's. `words`: one line. In English, translated where shown."""

    icon: str
    title: str
    words: str


TO_COME = {
    "prompt": ToCome(icon="prompt", title="Prompt", words="The text and its tokens"),
    "timeline": ToCome(icon="timeline", title="Timeline", words="The steps, and how unsure each was"),
    "attention": ToCome(icon="attention", title="Attention", words="Which tokens each token reads"),
    "sampling": ToCome(icon="sampling", title="Sampling", words="The candidates for the next token"),
    "kv": ToCome(icon="kv", title="KV cache", words="The keys and values that are kept, and their bytes"),
    "rope": ToCome(icon="rope", title="RoPE", words="How positions turn queries and keys"),
    "feed_forward": ToCome(icon="feed_forward", title="Feed-forward", words="The neurons that a token excites"),
    "block_walk": ToCome(icon="block_walk", title="Block walk", words="One token through a block, step by step"),
    "lens": ToCome(icon="search", title="Lens", words="What each layer would say next"),
    "model": ToCome(icon="engine", title="Model", words="The model's parts, sizes and costs"),
}
NOTHING = ToCome(icon="", title="", words="")
