from __future__ import annotations

from dataclasses import replace

from app.state.run_book import RunBook
from model.protocol.run_requests import PrefillReply, StepPart
from model.protocol.values import MemoryInfo, Node, RunState, SamplerSettings, Token

MEMORY = MemoryInfo(
    weights=1, kv_used=1, kv_allocated=1, activations=1, rss=1, peak_rss=1, budget=1, available=1
)  # fmt: skip
PROMPT = tuple(Token(id=100 + i, piece=f"p{i}", start=i, end=i + 1) for i in range(3))


def node(number: int, parent: int, position: int) -> Node:
    return Node(
        id=number, parent=parent, position=position, token_id=number, piece=f"n{number}", logprob=-1.0, p=0.5,
        entropy=1.0, draw=0.1, ms=float(number), settings=SamplerSettings(),
    )  # fmt: skip


def state(path: tuple[int, ...], *nodes: Node) -> RunState:
    current = path[-1] if path else 2
    return RunState(
        run_id=1, n_prompt=3, path=path, current=current, length=3 + len(path), n_ctx=64, nodes=nodes, text="t",
        memory=MEMORY, prefill_ms=5.0,
    )  # fmt: skip


def book_with(*nodes: Node, path: tuple[int, ...]) -> RunBook:
    book = RunBook()
    book.begin(PrefillReply(state=state(path, *nodes), tokens=PROMPT, text="abc"))
    return book


LINE = (node(3, 2, 3), node(4, 3, 4), node(5, 4, 5))


def test_an_empty_book_says_so() -> None:
    book = RunBook()
    assert (book.current, book.length, book.n_prompt, book.decode_ms, book.kept()) == (-1, 0, 0, 0.0, None)
    assert book.path_nodes() == ()


def test_the_path_is_prompt_then_steps() -> None:
    book = book_with(*LINE, path=(3, 4, 5))
    assert [t.piece for t in book.path] == ["p0", "p1", "p2", "n3", "n4", "n5"]
    assert [t.kind for t in book.path] == ["prompt"] * 3 + ["decode"] * 3
    assert [t.node for t in book.path] == [0, 1, 2, 3, 4, 5]
    assert book.decode_ms == 4.0


def test_back_and_forward_again_unless_the_sampler_changed() -> None:
    book = book_with(*LINE, path=(3, 4, 5))
    book.leave_for(3, sampler_version=0)
    book.take(state((3,)))
    assert book.forward_from(3, sampler_version=0) == 4
    assert book.forward_from(3, sampler_version=1) is None
    assert book.last_from(3) == 5
    assert [n.id for n in book.nodes_ahead()] == [4, 5]


def test_another_branch_replaces_the_way_forward() -> None:
    other = node(6, 3, 4)
    book = book_with(*LINE, path=(3, 4, 5))
    book.leave_for(3, sampler_version=0)
    book.take(state((3,)))
    book.take(state((3, 6), other))
    book.leave_for(3, sampler_version=0)
    book.take(state((3,)))
    assert book.forward_from(3, sampler_version=0) == 6
    assert {n.id for n in book.children(3)} == {4, 6}


def test_parts_build_the_path_as_they_come() -> None:
    book = book_with(path=())
    for n, made in enumerate(LINE, start=1):
        book.take_part(StepPart(node=made, length=3 + n, text="t" * n))
        assert (book.current, book.length, book.text) == (made.id, 3 + n, "t" * n)
    assert [t.node for t in book.path][3:] == [3, 4, 5]


def test_a_part_after_an_earlier_node_cuts_the_path_there() -> None:
    book = book_with(*LINE, path=(3, 4, 5))
    book.take_part(StepPart(node=node(6, 3, 4), length=5, text="t"))
    assert [t.node for t in book.path][3:] == [3, 6]
    book.take_part(StepPart(node=node(7, 2, 3), length=4, text="t"))
    assert [t.node for t in book.path][3:] == [7]


def test_what_is_kept_is_enough_to_make_the_run_again() -> None:
    book = book_with(*LINE, path=(3, 4, 5))
    kept = book.kept()
    assert kept is not None
    assert (kept.ids, kept.nodes, kept.current) == ((100, 101, 102), LINE, 5)
    assert replace(kept.nodes[0]) == LINE[0]


def test_positions_and_length_are_those_of_the_path_whatever_an_engine_says() -> None:
    book = book_with(*LINE, path=(3, 4, 5))
    book.take_part(StepPart(node=node(6, 99, 0), length=1, text="t"))  # no such parent, no such length
    assert book.length == len(book.path) == 7
    assert [t.position for t in book.path] == list(range(7))
