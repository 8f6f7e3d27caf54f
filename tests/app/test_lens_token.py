"""What the Lens says of one token in a line: words shorten, a figure never."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panels.lens_token import sum_forms
from app.theme import Theme
from app.widgets.readout import Readout, parts_width
from model.protocol.lens_requests import LensTermsReply

REST = -6.0023e-06


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_no_figure_of_the_sum_is_cut_at_any_width(qtbot: QtBot, qapp: QApplication, scale: float) -> None:
    del qapp
    theme = Theme("dark")
    theme.set_text_scale(scale)
    line = Readout(theme)
    qtbot.addWidget(line)
    reply = LensTermsReply(
        position=8, token_id=1, piece="·internationalisation", logit=9.1, embed=-0.0592, bias=0.0, rest=REST, scale=1.0,
        run_id=1,
    )  # fmt: skip
    line.set_parts(*sum_forms(reply, {"attn": np.array([-5.87]), "mlp": np.array([15.0293])}))
    seen = set()
    for width in range(1200, theme.px(60), -10):
        line.resize(width, line.sizeHint().height())
        shown = line.shown()
        text = "".join(part for part, _voice in shown)
        seen.add(text)
        assert parts_width(theme, shown) <= width
        assert re.search(r"\b9\.100\b", text)
        if "rest" in text:
            assert re.search(r"-6(\.00)?e-0?6$", text)
    assert "·internationalisation  9.100 = emb. -0.0592 attn -5.87 ffn 15.0 rest -6.00e-06" in seen
    assert "9.100 = emb. -0.0592 attn -5.87 ffn 15 rest -6e-6" in seen
    assert len(seen) >= 6
