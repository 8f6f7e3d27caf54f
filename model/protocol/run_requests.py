"""Requests about the text and the run: tokenise, prefill, step, seek, branch, the next token's distribution."""

from __future__ import annotations

from dataclasses import dataclass

from model.protocol.values import Candidate, Node, RunState, SamplerSettings, Token
from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class TokenizeReply:
    """`text`: what was tokenised (the rendered chat template when asked for). `pieces` and the arrays `kind`, `start`,
    `end`, `ids`, `flags`: the first tokens, see TokenRun; `count`: how many there are in all. `notice`: e.g. why no
    template."""

    text: str
    pieces: tuple[str, ...]
    count: int
    notice: str = ""


@request("text.tokenize", TokenizeReply, lane="light")
@dataclass(frozen=True, kw_only=True)
class Tokenize(Request):
    """The tokens of a text as it is typed."""

    text: str
    add_special: bool = True
    chat: bool = False


@dataclass(frozen=True, kw_only=True)
class PrefillReply:
    """The new run: its state and its prompt tokens."""

    state: RunState
    tokens: tuple[Token, ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class PrefillPart:
    """A run whose prompt is still being read: its state as far as it goes, and the `tokens` that are new."""

    state: RunState
    tokens: tuple[Token, ...]


@request("run.prefill", PrefillReply, part=PrefillPart)
@dataclass(frozen=True, kw_only=True)
class Prefill(Request):
    """A new run on a prompt: `ids` when given, else `text`. `chunk` 0: the engine's choice of positions at a time.
    Progress in tokens. A prompt longer than the context is refused unless `truncate`. `visible`: the new run is the
    current one from its first chunk on and told after each; views see it between chunks, and a cancel keeps it."""

    text: str = ""
    ids: tuple[int, ...] | None = None
    add_special: bool = True
    chat: bool = False
    chunk: int = 0
    truncate: bool = False
    visible: bool = False


@dataclass(frozen=True, kw_only=True)
class StepPart:
    """Sent as soon as a token is decoded; `length`: positions in the cache now; `text`: of the whole path."""

    node: Node
    length: int
    text: str


@request("run.step", RunState, part=StepPart)
@dataclass(frozen=True, kw_only=True)
class Step(Request):
    """Decodes up to `n` tokens after the current node. With `reuse`, a step that would make a node that exists
    already (same parent, same settings, not forced) goes to it without a forward pass."""

    n: int = 1
    settings: SamplerSettings
    stop_at_end_of_text: bool = True
    reuse: bool = True


@request("run.seek", RunState)
@dataclass(frozen=True, kw_only=True)
class Seek(Request):
    """Goes to a node (or to the last prompt token) without running the model."""

    node: int


@request("run.branch", RunState, part=StepPart)
@dataclass(frozen=True, kw_only=True)
class Branch(Request):
    """Appends `token_id` after `node`, whatever the draw says; shares everything before it. `again`: also where
    there is such a token already."""

    node: int
    token_id: int
    settings: SamplerSettings
    again: bool = False


@request("run.restore", PrefillReply, part=StepPart)
@dataclass(frozen=True, kw_only=True)
class Restore(Request):
    """Makes a run again after the engine was lost: prefills `ids`, then appends `nodes` (parents first) with their
    tokens, draws and settings, then seeks `current`."""

    ids: tuple[int, ...]
    text: str
    nodes: tuple[Node, ...]
    current: int
    chunk: int = 0


@dataclass(frozen=True, kw_only=True)
class StageInfo:
    """A sampler stage: tokens kept after it, and the mass they hold (0 … 1): their share of the whole vocabulary's
    probability after penalty and temperature, at every stage. At temperature 0 the likeliest token holds all of it."""

    name: str
    kept: int
    mass: float


@dataclass(frozen=True, kw_only=True)
class DistributionReply:
    """The next token's distribution at a node. `stages` starts with the whole vocabulary. `draw`: this node's u, and
    `would_pick` the token it falls on under the asked settings, `place` of the `kept` ones before it in candidate
    order. Entropies in nats. `found`: matches of `search`."""

    node: int
    candidates: tuple[Candidate, ...]
    stages: tuple[StageInfo, ...]
    draw: float
    would_pick: Candidate
    entropy_raw: float
    entropy: float
    kept: int
    found: tuple[Candidate, ...] = ()
    nan_logits: int = 0
    place: int = 0


@request("sampling.distribution", DistributionReply, lane="light")
@dataclass(frozen=True, kw_only=True)
class GetDistribution(Request):
    """Applies `settings` to the stored logits of `node`; no forward pass. `top` candidates by raw rank, and the one
    the draw falls on where it is none of them. `search`: a piece of text or an id. Arrays: `cdf` float64 (n,) the
    cumulative final probability in candidate order after as many kept tokens as `cdf_tokens` int64 (n,) says: after
    every one of up to 4,096, else after so many of them, the last and the one the draw falls on with them."""

    node: int
    settings: SamplerSettings
    top: int = 40
    search: str = ""


@dataclass(frozen=True, kw_only=True)
class PromptStatsReply:
    """Mean cross-entropy (nats per token) and perplexity over positions 1 … n_prompt - 1; NaN for one token."""

    first: int
    last: int
    mean_cross_entropy: float
    perplexity: float
    complete: bool


@request("run.prompt_stats", PromptStatsReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetPromptStats(Request):
    """What the model expected at prompt positions, computed from the final residual in row blocks, when asked.
    Arrays, over the prompt's tokens: `logprob` float32 (T,) of token t given those before (NaN at 0), `entropy`
    float32 (T,) of the distribution after position t, `rank` int32 (T,) of token t (0 = first; -1 at 0)."""


@dataclass(frozen=True, kw_only=True)
class ExpectedReply:
    """The distribution that foresaw the token at `position`; `token` is the one that came, `top` the ten likeliest."""

    position: int
    token: Candidate
    top: tuple[Candidate, ...]
    entropy: float


@request("run.expected", ExpectedReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetExpected(Request):
    """What the model expected at one position of the current path (1 … length - 1)."""

    position: int
