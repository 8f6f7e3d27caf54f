"""What the feed-forward panel says in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.panels.feed_forward import TOP
from app.panels.feed_forward_words import neuron_facts
from app.theme import Theme
from model.protocol.feed_forward_requests import GetNeurons
from model.views.feed_forward import neurons_reply
from tests.app.model_bench import ModelBench
from tests.model.tiny import made, random_ids


@pytest.mark.parametrize(("rows", "name"), [((3, 4), "in 1 token"), ((2, 4), "in 2 tokens")])
def test_one_token_is_one(qtbot: QtBot, tmp_path: Path, rows: tuple[int, int], name: str) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    bench.run(random_ids(6), 0)
    run = bench.engine.context.run
    assert run is not None
    reply, _arrays = neurons_reply(run, GetNeurons(layer=0, position=3, top=TOP, rows=rows))
    assert name in [fact.name for fact in neuron_facts(reply, None, bench.model.info)]
