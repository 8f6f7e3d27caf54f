"""The run's tree as the app remembers it: prompt tokens, nodes, the current path, the way forward after going back.

Plain values, no Qt: it outlives the engine, which is asked to make the same run again from `kept()`.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from typing import Literal

from model.protocol.run_requests import PrefillPart, PrefillReply, StepPart
from model.protocol.values import Node, RunState, Token


@dataclass(frozen=True, kw_only=True)
class PathToken:
    """One position of the current path. `node` is its node id (a prompt token's is its position)."""

    position: int
    id: int
    piece: str
    kind: Literal["prompt", "decode"]
    node: int
    part: bool = False


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A run as it is remembered without an engine."""

    ids: tuple[int, ...]
    text: str
    nodes: tuple[Node, ...]
    current: int


class RunBook:
    """What is known of the current run; empty (`state` None) before the first prefill."""

    def __init__(self) -> None:
        self.state: RunState | None = None
        self.text = ""
        self.prompt_tokens: tuple[Token, ...] = ()
        self.nodes: dict[int, Node] = {}
        self.path: tuple[PathToken, ...] = ()
        self._prompt_path: tuple[PathToken, ...] = ()
        self._forward: dict[int, tuple[int, int]] = {}

    # reading

    @property
    def current(self) -> int:
        """The current node's id, -1 without a run."""
        return self.state.current if self.state else -1

    @property
    def length(self) -> int:
        """Positions of the current path."""
        return len(self.path)

    @property
    def n_prompt(self) -> int:
        return self.state.n_prompt if self.state else 0

    @property
    def decode_ms(self) -> float:
        """Median wall time of the decode steps on the path, ms; 0 without any."""
        times = [node.ms for node in self.path_nodes()]
        return statistics.median(times) if times else 0.0

    def path_nodes(self) -> tuple[Node, ...]:
        """The decode nodes of the current path, in order."""
        return tuple(self.nodes[node] for node in self.state.path) if self.state else ()

    def children(self, node: int) -> tuple[Node, ...]:
        """The nodes made after `node`, oldest first."""
        return tuple(child for child in self.nodes.values() if child.parent == node)

    def parent(self, node: int) -> int:
        """The node before a decode node."""
        return self.nodes[node].parent

    def kept(self) -> Kept | None:
        """All that is needed to make this run again; None without a run."""
        if self.state is None:
            return None
        return Kept(
            ids=tuple(token.id for token in self.prompt_tokens),
            text=self.text,
            nodes=tuple(self.nodes[node] for node in sorted(self.nodes)),
            current=self.current,
        )

    # the way forward

    def forward_from(self, node: int, sampler_version: int) -> int | None:
        """The node that was left by going back from it, if the sampler has not been changed since."""
        child = self._forward.get(node)
        return child[0] if child and child[1] == sampler_version else None

    def last_from(self, node: int) -> int:
        """As far forward from `node` as has been visited."""
        while node in self._forward:
            node = self._forward[node][0]
        return node

    def nodes_ahead(self) -> tuple[Node, ...]:
        """The nodes that were left by going back from the current one, in order."""
        ahead, node = [], self.current
        while node in self._forward:
            node = self._forward[node][0]
            ahead.append(self.nodes[node])
        return tuple(ahead)

    def leave_for(self, target: int, sampler_version: int) -> None:
        """Notes how to come forward again to the current node, and along the way to `target`."""
        for end in (self.current, target):
            node = end
            while node in self.nodes:
                parent = self.nodes[node].parent
                self._forward[parent] = (node, sampler_version)
                node = parent

    # writing

    def clear(self) -> None:
        """No run."""
        self.__init__()  # type: ignore[misc] # the empty book is what __init__ makes

    def begin(self, reply: PrefillReply) -> None:
        """A new run, or the same one made again (its nodes then come with the state)."""
        self.clear()
        self.prompt_tokens, self.text = reply.tokens, reply.text
        self._prompt_path = _prompt_path(reply.tokens, 0)
        self.take(reply.state)

    def take_chunk(self, part: PrefillPart) -> None:
        """The next tokens of a prompt that is being read; the first of a run that is not the one of before."""
        if self.state is None or self.state.run_id != part.state.run_id:
            self.clear()
        self._prompt_path += _prompt_path(part.tokens, len(self.prompt_tokens))
        self.prompt_tokens += part.tokens
        self.take(part.state)

    def take(self, state: RunState) -> None:
        """The state the engine has after a step, a seek or a branch."""
        self.state = state
        self.text = state.text or self.text
        self.nodes.update({node.id: node for node in state.nodes})
        self.path = self._make_path(state)

    def take_part(self, part: StepPart) -> None:
        """A token that has come while more are being decoded."""
        if self.state is None:
            return
        node = part.node
        self._forward.pop(node.parent, None)
        before = self.state.path
        if node.parent in before:
            before = before[: before.index(node.parent) + 1]
        elif node.parent == self.n_prompt - 1:
            before = ()
        path = (*before, node.id)
        self.take(replace(self.state, path=path, current=node.id, length=part.length, nodes=(node,), text=part.text))

    def _make_path(self, state: RunState) -> tuple[PathToken, ...]:
        decode = tuple(
            PathToken(position=position, id=n.token_id, piece=n.piece, kind="decode", node=n.id)
            for position, n in enumerate((self.nodes[node] for node in state.path), len(self._prompt_path))
        )
        return self._prompt_path + decode


def _prompt_path(tokens: tuple[Token, ...], start: int) -> tuple[PathToken, ...]:
    return tuple(
        PathToken(position=i, id=t.id, piece=t.piece, kind="prompt", node=i, part=t.part)
        for i, t in enumerate(tokens, start)
    )
