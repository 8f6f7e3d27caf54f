"""The numbers of the run as tables, exact: its tokens, its steps, the next token's distribution."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.i18n import tr
from app.panels.attention_copy import clean
from app.panels.curves import curves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.export.panel_files import Table
    from app.session import Session
    from model.protocol.token_run import TokenRun
    from model.protocol.values import Candidate, Node

ROWS_A_TURN = 5000


def token_table(session: Session, read: Sequence[float] | None = None, title: str = "") -> Table:
    """Every token of the run: what it is, how unsure the model was before it and how surprised by it (nats), its rank
    in the prompt. `read`: a further column, one a token, under `title`."""
    entropy, surprisal = curves(session)
    rank = session.prompt_stats.rank if session.prompt_stats is not None else ()
    head = ["position", "kind", "id", "token", "entropy before it (nats)", "surprisal (nats)", "rank (1 = first)"]
    lines = [head + [title] * (read is not None)]
    for token in session.path_tokens():
        at = token.position
        line = [str(at), token.kind, str(token.id), clean(token.piece), _known(entropy[at]), _known(surprisal[at])]
        line.append(str(int(rank[at]) + 1) if at < len(rank) and rank[at] >= 0 else "")
        lines.append(line + [_known(value) for value in (read[at : at + 1] if read is not None else ())])
    return tr("tokens of the run"), lines


def typed_table(tokens: TokenRun, done: Callable[[Table], None], owner: QObject) -> None:
    """Tokens of a text that has not been prefilled, with the characters that each covers (half-open). A long text's
    come to `done` after some turns of the event loop, while `owner` is there."""
    lines = [["position", "id", "token", "from character", "to character"]]
    pieces = [clean(piece) for piece in tokens.pieces]

    def more() -> None:
        span = slice(len(lines) - 1, len(lines) - 1 + ROWS_A_TURN)
        columns = (column[span].tolist() for column in (tokens.token_ids, tokens.kind, tokens.start, tokens.end))
        for at, (token_id, kind, start, end) in enumerate(zip(*columns, strict=True), span.start):
            lines.append([str(at), str(token_id), pieces[kind], str(start), str(end)])
        if len(lines) > len(tokens):
            done((tr("tokens as typed"), lines))
        else:
            QTimer.singleShot(0, owner, more)

    more()


def step_table(session: Session) -> Table:
    """Every node that was decoded, on this path and on others, with the draw and the settings it came from."""
    settings = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed"]
    head = ["node", "parent", "position", "id", "token", "logprob (nats)", "p raw", "p final", "entropy (nats)", "draw"]
    lines = [[*head, "ms", "forced", "on this path", *settings]]
    path = {node.id for node in session.path_nodes()}
    for node in session.nodes.values():
        used = asdict(node.settings)
        lines.append([*_step(node), str(int(node.id in path)), *(_exact(used[name]) for name in settings)])
    return tr("steps"), lines


def _step(node: Node) -> list[str]:
    place = [str(node.id), str(node.parent), str(node.position), str(node.token_id), clean(node.piece)]
    numbers = (node.logprob, math.exp(node.logprob), node.p, node.entropy, node.draw, node.ms)
    return [*place, *map(_exact, numbers), str(int(node.forced))]


def sampling_tables(session: Session) -> list[Table]:
    """The settings, what each stage leaves, the candidates, the draw, and the distribution function it falls on."""
    reply, cdf, tokens = session.distribution, session.sampling.cdf, session.sampling.cdf_tokens
    found: list[Table] = [(tr("settings"), [[name, _exact(value)] for name, value in asdict(session.sampler).items()])]
    if reply is None:
        return found
    stages = [[stage.name, str(stage.kept), _exact(stage.mass)] for stage in reply.stages]
    found.append((tr("stages"), [["stage", "tokens kept", "mass kept"], *stages]))
    found.append((tr("candidates"), candidate_lines(reply.candidates)))
    if reply.found:
        found.append((tr("found"), candidate_lines(reply.found)))
    picked = reply.would_pick
    facts: dict[str, object] = {
        "node": reply.node, "draw": reply.draw, "would pick id": picked.id, "would pick token": clean(picked.piece),
        "kept tokens before it": reply.place,
        "entropy raw (nats)": reply.entropy_raw, "entropy final (nats)": reply.entropy, "kept": reply.kept,
    }  # fmt: skip
    found.append((tr("the draw"), [[name, _exact(value)] for name, value in facts.items()]))
    if cdf is not None and tokens is not None:
        lines = [[str(at), repr(value)] for at, value in zip(tokens.tolist(), cdf.tolist(), strict=True)]
        found.append((tr("distribution function"), [["tokens", "cumulative p"], *lines]))
    return found


def candidate_lines(rows: Sequence[Candidate]) -> list[list[str]]:
    """A candidate a line, in the order of rank."""
    head = ["rank (1 = first)", "id", "token", "logit", "p raw", "p final"]
    return [head] + [
        [str(row.rank + 1), str(row.id), clean(row.piece), *map(_exact, (row.logit, row.p_raw, row.p))] for row in rows
    ]


def _known(value: float) -> str:
    """A float32 with the fewest digits that give it back; empty where it is not known."""
    return "" if math.isnan(value) else str(value)


def _exact(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
