"""Tiny random models of the reference implementation, made so that a wrong number shows.

Default initialisation makes attention nearly uniform and hides wrong bases, windows and caps. Here weights are scaled
until rows of attention have a clear maximum, norms and biases are random, and every matrix has its own values.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn

from model.config import DecoderConfig
from model.families import Family, TensorRule, family_for
from model.kv_cache import KVCache
from model.transformer import Decoder

transformers.utils.logging.disable_progress_bar()

TOLERANCE = 1e-4  # absolute, on values of size 1 to 20: float32 sums in another order differ by 1e-6 to 1e-5
D_VOCAB = 61


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """What the model computed for one call: per layer the residual before it, q and k as used, the pattern."""

    logits: Tensor  # (T, V)
    resid: list[Tensor]  # n_layers + 1 of (T, M)
    q: list[Tensor]  # (H, T, D)
    k: list[Tensor]  # (K, S, D)
    patterns: list[Tensor]  # (H, T, S)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """A reference model, with its config.json and its tensors as it saves them."""

    model: Any
    config: dict[str, Any]
    tensors: dict[str, Tensor]

    def run(self, *chunks: list[int]) -> list[Trace]:
        """One trace for each chunk of ids, decoded one after the other with the reference's own cache."""
        _forget_lengths(self.model)
        cache = transformers.DynamicCache()  # without a config it keeps every key of sliding-window layers too
        traces = []
        for ids in chunks:
            with torch.no_grad(), _spy(self.model) as (q, patterns), _residuals(self.model) as resid:
                eager = self.model.config._attn_implementation == "eager"
                out = self.model(torch.tensor([ids]), cache=cache, use_cache=True, output_attentions=eager)
            seen = patterns or [weights[0] for weights in out.attentions or ()]
            k = [layer.keys[0].clone() for layer in cache.layers]
            traces.append(Trace(logits=out.logits[0], resid=resid, q=q, k=k, patterns=seen))
        return traces


def _forget_lengths(model: Any) -> None:
    """Dynamic NTK keeps the frequencies of the longest text it has seen: each run begins as on a fresh model."""
    for module in model.modules():
        if getattr(module, "rope_type", None) == "dynamic":
            module.inv_freq.copy_(module.original_inv_freq)
            module.max_seq_len_cached = module.original_max_seq_len


@lru_cache(maxsize=64)
def _reference(name: str, fields: str, seed: int, gain: float, attention: str) -> Reference:
    kwargs = {"vocab_size": D_VOCAB, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2} | json.loads(fields)
    config = getattr(transformers, f"{name}Config")(**kwargs)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()
    for path, weight in model.named_parameters():
        weight.requires_grad_(False)
        _randomise(path, weight, gain)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tensors = load_file(Path(folder) / "model.safetensors")
        saved = json.loads((Path(folder) / "config.json").read_text())
    return Reference(model=model, config=saved, tensors=tensors)


def reference(name: str, *, seed: int = 0, gain: float = 1.6, attention: str = "eager", **fields: Any) -> Reference:
    """The causal model of `transformers`' {name}Config with these fields and random weights; cached.

    Its "sdpa" attention returns no patterns.
    """
    return _reference(name, json.dumps(fields, sort_keys=True), seed, gain, attention)


def _randomise(path: str, weight: Tensor, gain: float) -> None:
    if path.endswith("bias"):
        weight.normal_(0, 0.3)
    elif weight.ndim == 1:
        # RMSNorm and LayerNorm weights near 1 or, where 1 is added to them, near 0: keep the centre
        weight.add_(torch.randn_like(weight) * 0.3)
    elif "embed" in path or "wte" in path or "wpe" in path or path.startswith("lm_head"):
        weight.normal_(0, 0.7)
    else:
        weight.normal_(0, gain / min(weight.shape[-2:]) ** 0.5)


@contextmanager
def _spy(model: Any) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """q (H, T, D) as the reference's attention uses it, and the patterns where its function returns them."""
    module = sys.modules[type(model).__module__]
    q_seen: list[Tensor] = []
    patterns: list[Tensor] = []
    # the function that has q as used in its arguments (attention) or in what it returns (rotation, split)
    for owner, name in (
        (module, "eager_attention_forward"),
        (module, "apply_rotary_pos_emb"),
        (_bloom(model), "_reshape"),
    ):
        original: Callable[..., Any] | None = getattr(owner, name, None)
        if original is not None:
            break
    assert original is not None

    def spy(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        if name == "eager_attention_forward":
            patterns.append(out[1][0].clone())
        q_seen.append((args[1] if name == "eager_attention_forward" else out[0])[0].clone())
        return out

    with mock.patch.object(owner, name, spy):
        yield q_seen, patterns


def _bloom(model: Any) -> Any:
    return getattr(sys.modules[type(model).__module__], "BloomAttention", None)


@contextmanager
def _residuals(model: Any) -> Iterator[list[Tensor]]:
    n_layers = model.config.num_hidden_layers
    lists = (module for module in model.modules() if isinstance(module, nn.ModuleList))
    layers = next(module for module in lists if len(module) == n_layers)
    seen: list[Tensor] = []

    def before(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append((args[0] if args else kwargs["hidden_states"])[0].clone())

    def after(layer: nn.Module, args: Any, out: Any) -> None:
        seen.append((out if isinstance(out, Tensor) else out[0])[0].clone())

    handles = [layer.register_forward_pre_hook(before, with_kwargs=True) for layer in layers]
    handles.append(layers[-1].register_forward_hook(after))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def weights_for(family: Family, config: DecoderConfig, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The decoder's parameters from a checkpoint's tensors by the family's rules."""
    return state_from(family.rules(config), tensors)


def state_from(rules: Iterable[TensorRule], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Parameters from tensors by rules; anything missing or left over fails."""
    left = dict(tensors)
    state: dict[str, Tensor] = {}
    for rule in rules:
        name = next((name for name in (rule.source, *rule.aliases) if name in left), None)
        if name is None:
            assert rule.optional, f"{rule.source} is missing; there are {sorted(left)[:20]}"
            continue
        tensor = left.pop(name)
        assert tuple(tensor.shape) == rule.shape, (rule.source, tuple(tensor.shape), rule.shape)
        for target in rule.targets:
            assert target.name not in state, target.name
            state[target.name] = target.take(tensor)
    assert not left, f"no rule takes {sorted(left)}"
    return state


def decoder_for(values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Decoder:
    """Our decoder of a config.json and its checkpoint's tensors."""
    family = family_for(values)
    config = family.read_config(values)
    return assemble(config, weights_for(family, config, tensors))


def assemble(config: DecoderConfig, state: Mapping[str, Tensor]) -> Decoder:
    """A decoder with these parameters, strictly."""
    decoder = Decoder(config)
    decoder.load_state_dict(dict(state), strict=True, assign=True)
    return decoder


def trace(decoder: Decoder, *chunks: list[int], cache: KVCache | None = None, total: int | None = None) -> list[Trace]:
    """The same as Reference.run, by our decoder; `total` is the length of the whole sequence the chunks belong to."""
    cache = cache or decoder.new_cache()
    traces = []
    for ids in chunks:
        seen: dict[str, list[Tensor]] = {name: [] for name in ("attn.rot_q", "resid_pre", "resid_post", "attn.pattern")}
        listeners = {
            f"layers.*.{name}": (lambda tensor, point, into=into: into.append(tensor.clone()))
            for name, into in seen.items()
        }
        with decoder.hooks(listeners):
            logits = decoder(torch.tensor(ids), cache, logits="all", rope_length=total)
        k = [cache.k(layer).clone() for layer in range(decoder.config.n_layers)]
        resid = [*seen["resid_pre"], seen["resid_post"][-1]]
        traces.append(Trace(logits=logits, resid=resid, q=seen["attn.rot_q"], k=k, patterns=seen["attn.pattern"]))
    return traces


def error(ours: Trace, theirs: Trace) -> dict[str, float]:
    """The largest absolute difference of everything the reference's trace holds."""
    errors = {"logits": (ours.logits - theirs.logits).abs().max().item()}
    for name in ("resid", "q", "k", "patterns"):
        mine, reference_values = getattr(ours, name), getattr(theirs, name)
        if reference_values:
            if name == "k":  # falcon's reference keeps a copy of the keys for every query head
                reference_values = [
                    k[:: k.shape[0] // own.shape[0]] for k, own in zip(reference_values, mine, strict=True)
                ]
            pairs = zip(mine, reference_values, strict=True)
            errors |= {f"{name}.{layer}": (a - b).abs().max().item() for layer, (a, b) in enumerate(pairs)}
    return errors
