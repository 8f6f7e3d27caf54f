"""A text of 100,000 characters of any script: all its tokens are in the strip, and in the table of the panel."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.export.panel_files import Table
from app.panels.prompt import PromptPanel
from app.theme import Theme
from app.widgets.token_groups import Group, Groups, Pieces
from app.widgets.token_strip import TokenStrip
from model.handlers.text import MAX_TOKENS
from model.protocol.token_run import TokenRun
from model.protocol.values import Token
from model.tokenizer import Tokenizer
from tests.app.model_bench import ModelBench
from tests.model.checkpoint import files
from tests.model.tiny import made

CHARACTERS = 100_000
SLOW = 300.0
"""ms of own time: ten times a call's bound, for what else a machine of tests does to its caches."""


def own_ms(call: Callable[[], object]) -> float:
    begun = time.thread_time()
    call()
    return (time.thread_time() - begun) * 1000


@pytest.mark.parametrize("character", ["日", "\U0001f600"])
def test_every_token_of_a_long_text_is_listed(qtbot: QtBot, tmp_path: Path, character: str) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), replace(made(), tokenizer=Tokenizer(files.tiny_tokenizer())))
    panel = PromptPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(284, 400)
    panel.show()
    prompt, text = bench.session.prompt, character * CHARACTERS
    prompt.set_ready(True)
    bench.session.set_prompt(text)
    qtbot.waitUntil(lambda: len(panel.strip._pieces) == prompt.count > CHARACTERS, timeout=15_000)
    assert len(prompt.tokens) == prompt.count <= MAX_TOKENS
    assert "are shown" not in panel.notices.text()
    last = prompt.tokens[prompt.count - 1]
    assert last.end == CHARACTERS and panel.strip.tip_of(prompt.count - 1).endswith(f"id {last.id}")
    panel.strip.reveal(prompt.count - 1)
    assert panel.strip.viewport().rect().contains(panel.strip.chip_rect(prompt.count - 1).center().toPoint())
    shown = panel.strip._groups[len(panel.strip._groups) - 1]
    assert shown.text == character and shown.last == prompt.count - 1
    tables: list[list[Table]] = []
    panel.tables(tables.append)
    qtbot.waitUntil(lambda: bool(tables), timeout=15_000)
    ((_, lines),) = tables[0]
    assert len(lines) == prompt.count + 1
    assert lines[-1] == [str(prompt.count - 1), str(last.id), last.piece, str(last.start), str(last.end)]


def test_beyond_the_bound_it_is_said_how_many_are_shown(qtbot: QtBot, tmp_path: Path) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), replace(made(), tokenizer=Tokenizer(files.tiny_tokenizer())))
    panel = PromptPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.show()
    bench.session.prompt.set_ready(True)
    bench.session.set_prompt("日" * (MAX_TOKENS // 3 + 100))
    qtbot.waitUntil(lambda: bench.session.prompt.count > MAX_TOKENS, timeout=30_000)
    qtbot.waitUntil(lambda: len(panel.strip._pieces) == MAX_TOKENS, timeout=15_000)
    qtbot.waitUntil(lambda: f"the first {MAX_TOKENS:,} are shown" in panel.notices.text())


def test_three_hundred_thousand_tokens_stay_smooth(qtbot: QtBot) -> None:
    strip = TokenStrip(Theme("dark"), "Tokens")
    qtbot.addWidget(strip)
    strip.resize(258, 200)
    strip.show()
    qtbot.waitExposed(strip)
    kind = np.arange(300_000, dtype=np.int32) % 3
    first = np.arange(0, len(kind), 3)
    pieces, groups = Pieces(("⟨E6⟩", "⟨97⟩", "⟨A5⟩"), kind), Groups(first, first + 2, ["日"] * len(first))
    times = {
        "set": own_ms(lambda: strip.set_tokens(pieces, groups=groups)),
        "resize": own_ms(lambda: strip.resize(300, 200)),
        "scroll": own_ms(lambda: strip.verticalScrollBar().setValue(strip.verticalScrollBar().maximum() // 2)),
        "paint": own_ms(strip.viewport().repaint),
        "reveal": own_ms(lambda: strip.reveal(len(kind) - 1)),
        "paint the end": own_ms(strip.viewport().repaint),
    }
    print({name: round(ms, 1) for name, ms in times.items()})
    assert {name: ms for name, ms in times.items() if ms > SLOW} == {}
    assert strip.viewport().rect().contains(strip.chip_rect(len(kind) - 1).center().toPoint())


@st.composite
def some_tokens(draw: st.DrawFn) -> list[Token]:
    tokens, at = [], 0
    for _ in range(draw(st.integers(0, 40))):
        part, shares = draw(st.booleans()), draw(st.booleans())
        start = max(at - 1, 0) if shares else at
        at = start + 1
        tokens.append(Token(id=draw(st.integers(0, 3)), piece="x", start=start, end=at, part=part))
    return tokens


def one_by_one(tokens: list[Token], text: str) -> list[tuple[int, int, str]]:
    """First and last of the neighbouring tokens that hold parts of the same characters, and these."""
    runs: list[list[int]] = []
    for at, token in enumerate(tokens):
        if not token.part:
            continue
        if runs and runs[-1][-1] == at - 1 and token.start < tokens[at - 1].end:
            runs[-1].append(at)
        else:
            runs.append([at])
    return [(run[0], run[-1], text[tokens[run[0]].start : tokens[run[-1]].end]) for run in runs]


@given(some_tokens())
def test_as_arrays_tokens_and_their_groups_are_the_same(tokens: list[Token]) -> None:
    text = "".join(chr(0x4E00 + at) for at in range(len(tokens) + 1))
    run = TokenRun.of(tokens)
    assert list(run) == tokens and run[1:3] == tuple(tokens[1:3])
    assert run.first(2)[:] == tuple(tokens[:2])
    assert list(TokenRun.read(run.pieces, run.arrays())) == tokens
    groups = Groups.of(run, text)
    assert [(group.first, group.last, group.text) for group in groups] == one_by_one(tokens, text)
    glue, tall = groups.members()
    assert glue.tolist() == [at for group in groups for at in range(group.first + 1, group.last + 1)]
    assert tall.tolist() == [at for group in groups for at in range(group.first, group.last + 1)]
    for first, end in ((0, len(tokens)), (2, 5), (3, 3)):
        wanted = [group for group in groups if group.first < end and group.last >= first] if first < end else []
        assert [group for group in groups.between(first, end) if first < end] == wanted


def test_groups_that_were_given_stay_what_they_are() -> None:
    given_groups = [Group(first=1, last=3, text="你"), Group(first=4, last=5, text="好")]
    assert list(Groups.taken(given_groups)) == given_groups
