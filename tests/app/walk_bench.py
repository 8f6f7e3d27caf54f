"""The block walk's panel for tests, with the engine's own numbers."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.panels.block_walk import BlockWalkPanel
from app.theme import Theme
from model.loading import LoadedModel
from tests.app.model_bench import ModelBench
from tests.model.family_cases import CASES
from tests.model.reference import decoder_for, reference
from tests.model.tiny import loaded, made, random_ids


def family(name: str) -> LoadedModel:
    case = CASES[name]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    return loaded(decoder_for(judge.config, judge.tensors))


def shown(
    qtbot: QtBot, folder: Path, model: LoadedModel | None = None, size: tuple[int, int] = (1100, 360)
) -> tuple[BlockWalkPanel, ModelBench]:
    bench = ModelBench(folder, Theme("dark"), model or made())
    panel = BlockWalkPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(*size)
    panel.show()
    qtbot.waitExposed(panel)
    bench.run(random_ids(12), 3)
    bench.selection.set_layer_head(1, 2)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    return panel, bench


def settled(qtbot: QtBot, panel: BlockWalkPanel, bench: ModelBench) -> None:
    qtbot.waitUntil(lambda: not bench.engine.waiting and panel.settled and panel.walk is not None, timeout=4000)


def ids(panel: BlockWalkPanel) -> list[str]:
    assert panel.walk is not None
    return [op.id for op in panel.walk.ops]
