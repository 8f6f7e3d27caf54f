"""The tree of a run's nodes: which token followed which, by the draw or by hand. Knows no tensors."""

from __future__ import annotations

from model.errors import DecoderscopeError
from model.protocol.values import Node, SamplerSettings


class NoNodeError(DecoderscopeError):
    """A node that this run doesn't have, or that can't be gone to."""

    code = "no_node"

    def __init__(self, node: int, expected: str) -> None:
        self.node = node
        super().__init__(f"There is no step {node} to go to; expected {expected}.")


class RunTree:
    """Nodes by id. Prompt tokens are nodes 0 … n_prompt - 1; the last of them is the root that steps grow from."""

    def __init__(self, prompt_ids: list[int]) -> None:
        self.prompt_ids = prompt_ids
        self.nodes: dict[int, Node] = {}
        self._children: dict[int, list[int]] = {}

    @property
    def n_prompt(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt_ids)

    @property
    def root(self) -> int:
        """The last prompt token's node."""
        return self.n_prompt - 1

    @property
    def next_id(self) -> int:
        """The id the next new node gets."""
        return self.n_prompt + len(self.nodes)

    def add(self, node: Node) -> None:
        """Appends a node whose parent exists and whose id is `next_id`."""
        self.check(node.parent)
        if node.id != self.next_id:
            raise NoNodeError(node.id, f"the next new id {self.next_id}")
        if node.position != self.position(node.parent) + 1:
            raise NoNodeError(node.id, f"position {self.position(node.parent) + 1} after step {node.parent}")
        self.nodes[node.id] = node
        self._children.setdefault(node.parent, []).append(node.id)

    def check(self, node: int) -> None:
        """Raises NoNodeError unless `node` is the last prompt token or a decode step."""
        if node != self.root and node not in self.nodes:
            last = f" to {self.next_id - 1}" if self.nodes else ""
            raise NoNodeError(node, f"{self.root} (the end of the prompt){last}")

    def position(self, node: int) -> int:
        """The position of a node's token."""
        return node if node < self.n_prompt else self.nodes[node].position

    def token(self, node: int) -> int:
        """The id of a node's token."""
        return self.prompt_ids[node] if node < self.n_prompt else self.nodes[node].token_id

    def path(self, node: int) -> tuple[int, ...]:
        """Decode nodes from the first generated token to `node`; empty for the root."""
        path: list[int] = []
        while node != self.root:
            path.append(node)
            node = self.nodes[node].parent
        return tuple(reversed(path))

    def children(self, node: int) -> tuple[int, ...]:
        """The nodes that follow `node`, oldest first."""
        return tuple(self._children.get(node, ()))

    def drawn_child(self, node: int, settings: SamplerSettings) -> int | None:
        """The child that sampling `node` with `settings` made, if there is one."""
        for child in self.children(node):
            if not self.nodes[child].forced and self.nodes[child].settings == settings:
                return child
        return None

    def child_with(self, node: int, token_id: int) -> int | None:
        """The child that holds `token_id`, however it was chosen."""
        for child in self.children(node):
            if self.nodes[child].token_id == token_id:
                return child
        return None
