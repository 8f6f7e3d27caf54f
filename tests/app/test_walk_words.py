"""How the block walk writes formulas."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app import i18n
from app.panels.block_walk_words import brief_formula, formula_text
from tests.app.walk_bench import shown


def test_formulas_have_letters_of_one_size_and_words_of_the_windows_language(qtbot: QtBot, tmp_path: Path) -> None:
    """Layers stood in raised figures of a third of the height of the others."""
    panel, _bench = shown(qtbot, tmp_path)
    assert panel.walk is not None
    ops = {op.id: op for op in panel.walk.ops}
    assert ops["resid_pre"].formula == f"x = x_{panel.walk.layer}"
    assert ops["resid_post"].formula.startswith(f"x_{panel.walk.layer + 1} = ")
    raised = "⁰¹³⁴⁵⁶⁷⁸⁹⁽⁾"  # a square is another thing
    assert not any(letter in op.formula for op in ops.values() for letter in raised)
    mask = ops["attn.mask"]
    assert formula_text(mask) == mask.formula == f"s = −∞ unless j ≤ {panel.walk.position}"
    try:
        i18n.set_language("zh_CN")
        assert formula_text(mask) == f"s = −∞ 除非 j ≤ {panel.walk.position}"
        assert brief_formula(mask) == f"−∞ 除非 j ≤ {panel.walk.position}"
    finally:
        i18n.set_language("en")
