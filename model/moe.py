"""Mixture of experts: a router chooses, for every token, the few feed-forwards that run (Shazeer et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.config import DecoderConfig
from model.hooks import HookPoint
from model.layers import ACTIVATIONS, Linear


class Expert(nn.Module):
    """One gated feed-forward: the three matrices, run by `Experts`."""

    def __init__(self, config: DecoderConfig, d_expert: int) -> None:
        super().__init__()
        self.gate_proj = Linear(config.d_model, d_expert, bias=config.mlp_bias)
        self.up_proj = Linear(config.d_model, d_expert, bias=config.mlp_bias)
        self.down_proj = Linear(d_expert, config.d_model, bias=config.mlp_bias)


class Experts(nn.Module):
    """`top_k` of E experts per token, weighted by the router's softmax (over all E, in float32).

    Hook points: `moe.router` logits (T, E); `moe.ids` (T, k) int64 and `moe.weights` (T, k) as used, best first;
    `mlp.pre`, `mlp.up`, `mlp.post` (T, k, F), in the order of `moe.ids`.
    """

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        assert config.moe is not None
        self.moe = config.moe
        self.act = ACTIVATIONS[config.activation]
        self.gate = Linear(config.d_model, self.moe.n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(config, self.moe.d_expert) for _ in range(self.moe.n_experts))
        name = f"layers.{layer}"
        self.hook_router = HookPoint(f"{name}.moe.router", "(T, E)")
        self.hook_ids = HookPoint(f"{name}.moe.ids", "(T, k)")
        self.hook_weights = HookPoint(f"{name}.moe.weights", "(T, k)")
        self.hook_pre = HookPoint(f"{name}.mlp.pre", "(T, k, F)")
        self.hook_up = HookPoint(f"{name}.mlp.up", "(T, k, F)")
        self.hook_post = HookPoint(f"{name}.mlp.post", "(T, k, F)")

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The chosen experts of x (T, M), best first, (T, k) int64, and their weights (T, k) in x's dtype."""
        logits = self.hook_router(self.gate(x))  # (T, E)
        probs = logits.float().softmax(-1)  # (T, E)
        best = probs.topk(self.moe.top_k, dim=-1)
        ids: Tensor = self.hook_ids(best.indices)  # (T, k)
        weights = best.values if ids is best.indices else probs.gather(1, ids)  # (T, k)
        if self.moe.renormalize:
            weights = weights / weights.sum(-1, keepdim=True)
        return ids, self.hook_weights(weights.to(x.dtype))

    def forward(self, x: Tensor) -> Tensor:
        """(T, M) → (T, M)."""
        ids, weights = self.route(x)
        n_slots = ids.numel()
        order = ids.flatten().argsort(stable=True)  # slots (token, rank) sorted by expert
        counts = torch.bincount(ids.flatten(), minlength=self.moe.n_experts).tolist()  # the one host sync of a layer
        rows = order // self.moe.top_k  # the token of every slot
        pre, up = (x.new_empty(n_slots, self.moe.d_expert) for _ in range(2))
        for expert, at in self._runs(counts):
            mine, slots = x[rows[at]], order[at]
            pre[slots] = expert.gate_proj(mine)  # (n, F)
            up[slots] = expert.up_proj(mine)  # (n, F)
        shape = (*ids.shape, self.moe.d_expert)
        post = self.act(self.hook_pre(pre.view(shape))) * self.hook_up(up.view(shape))  # (T, k, F)
        post = self.hook_post(post).view(n_slots, -1)
        down = x.new_empty(n_slots, x.shape[1])
        for expert, at in self._runs(counts):
            slots = order[at]
            down[slots] = expert.down_proj(post[slots])  # (n, M)
        return (down.view(*ids.shape, -1) * weights[..., None]).sum(1)  # (T, M)

    def _runs(self, counts: list[int]) -> list[tuple[Expert, slice]]:
        """Every expert that has work, and its slots in sorted order."""
        runs, begin = [], 0
        for expert, count in zip(self.experts, counts, strict=True):
            assert isinstance(expert, Expert)
            if count:
                runs.append((expert, slice(begin, begin + count)))
            begin += count
        return runs
