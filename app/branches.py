"""Where the nodes of a run's tree stand: a lane a branch, a column a step. Plain values, no Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.protocol.values import Node


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a node is drawn: its step (1 …) and its lane (0 …)."""

    node: int
    parent: int
    step: int
    lane: int


def lay_out(nodes: Mapping[int, Node], n_prompt: int) -> tuple[Place, ...]:
    """A first child stays on its parent's lane, every other opens a new one; parents come before children."""
    lanes: dict[int, int] = {}
    parents = set[int]()
    used = 0
    places: list[Place] = []
    for node in sorted(nodes.values(), key=lambda n: n.id):
        lane = used + 1 if node.parent in parents else lanes.get(node.parent, 0)
        parents.add(node.parent)
        used = max(used, lane)
        lanes[node.id] = lane
        places.append(Place(node=node.id, parent=node.parent, step=node.position - n_prompt + 1, lane=lane))
    return tuple(places)


def branches(nodes: Mapping[int, Node]) -> bool:
    """Whether there is more than one branch."""
    return len({node.parent for node in nodes.values()}) < len(nodes)


def end_beside(places: Sequence[Place], current: int, by: int) -> int | None:
    """The last node of the branch `by` lanes from that of `current`, around the end; None with one branch only."""
    ends = {place.lane: place.node for place in places}  # a lane's places come in order
    if len(ends) < 2:
        return None
    lane = next((place.lane for place in places if place.node == current), 0)
    return ends[(lane + by) % len(ends)]


def beside(places: Sequence[Place], node: int, *, steps: int = 0, lanes: int = 0) -> int:
    """The node an arrow leads to: along the branch to its parent or its first child, or to the nearest step of the
    next lane; `node` itself where there is none."""
    at = {place.node: place for place in places}
    here = at[node]
    if steps < 0:
        return here.parent if here.parent in at else node
    if steps > 0:
        return next((place.node for place in places if place.parent == node), node)
    there = [place for place in places if place.lane == here.lane + lanes]
    return min(there, key=lambda place: abs(place.step - here.step), default=here).node
