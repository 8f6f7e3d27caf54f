"""Mixture of experts: a router chooses, for every token, the few feed-forwards that run (Shazeer et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.config import DecoderConfig
from model.device import to_host
from model.hooks import HookPoint
from model.layers import ACTIVATIONS, Linear

GATHERED_SLOTS = 32
"""Up to so many (token, expert) pairs, a device other than the CPU gathers each pair's own matrices."""


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
        self._stacks: tuple[Tensor, ...] = ()
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

    def join(self) -> None:
        """Stacks the experts' matrices, whose own become views of the stacks, so that a decode step on a GPU takes
        those it needs by ids the host never sees. On a CPU, which waits for nobody, there is nothing to gain."""
        if self.gate.weight.device.type != "cpu":
            self.stack()

    def stack(self) -> None:
        """`join` on any device. Experts with biases stay as they are."""
        names = ("gate_proj", "up_proj", "down_proj")
        if any(getattr(self.experts[0], name).bias is not None for name in names):
            return
        self._stacks = tuple(self._stacked(name) for name in names)

    def _stacked(self, name: str) -> Tensor:
        linears = [getattr(expert, name) for expert in self.experts]
        stack = torch.stack([linear.weight for linear in linears])  # (E, out, in)
        for linear, weight in zip(linears, stack, strict=True):
            linear.weight = nn.Parameter(weight, requires_grad=False)
        return stack

    def _gathers(self, n_slots: int) -> bool:
        """Whether few enough pairs are wanted, of stacks that are still the experts' own: who gives one of them another
        matrix, rather than writing into it, calls `join` again."""
        if not self._stacks or n_slots > GATHERED_SLOTS:
            return False
        first, last = self.experts[0], self.experts[-1]
        assert isinstance(first, Expert)
        assert isinstance(last, Expert)
        gate, _, down = self._stacks
        places = (gate[0].data_ptr(), down[-1].data_ptr())
        return (first.gate_proj.weight.data_ptr(), last.down_proj.weight.data_ptr()) == places

    def forward(self, x: Tensor) -> Tensor:
        """(T, M) → (T, M)."""
        ids, weights = self.route(x)
        down = self._gathered(x, ids) if self._gathers(ids.numel()) else self._sorted(x, ids)  # (T · k, M)
        return (down.view(*ids.shape, -1) * weights[..., None]).sum(1)  # (T, M)

    def _gathered(self, x: Tensor, ids: Tensor) -> Tensor:
        """What every chosen expert adds, (T · k, M), each pair with a copy of its own matrices: no host sync."""
        slots = ids.flatten()
        rows = x.repeat_interleave(self.moe.top_k, 0)[..., None]  # (T · k, M, 1)
        gate, up, down = (stack[slots] for stack in self._stacks)  # (T · k, out, in) each
        shape = (*ids.shape, self.moe.d_expert)
        pre, risen = torch.bmm(gate, rows).view(shape), torch.bmm(up, rows).view(shape)
        post = self.hook_post(self.act(self.hook_pre(pre)) * self.hook_up(risen))  # (T, k, F)
        return torch.bmm(down, post.reshape(slots.shape[0], -1, 1))[..., 0]  # (T · k, M)

    def _sorted(self, x: Tensor, ids: Tensor) -> Tensor:
        """The same, expert by expert: every matrix is read once, for all tokens that chose it."""
        n_slots = ids.numel()
        order = ids.flatten().argsort(stable=True)  # slots (token, rank) sorted by expert
        counts = to_host(torch.bincount(ids.flatten(), minlength=self.moe.n_experts)).tolist()  # waits, for many tokens
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
        return down

    def _runs(self, counts: list[int]) -> list[tuple[Expert, slice]]:
        """Every expert that has work, and its slots in sorted order."""
        runs, begin = [], 0
        for expert, count in zip(self.experts, counts, strict=True):
            assert isinstance(expert, Expert)
            if count:
                runs.append((expert, slice(begin, begin + count)))
            begin += count
        return runs
