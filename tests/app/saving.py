"""A panel's own files, written as the export dialog writes them."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.export.panel_files import PanelExport
from app.panels.base import Panel


def save(qtbot: QtBot, panel: Panel, path: Path) -> Path:
    """Writes one file of a panel; its ending says which."""
    export = PanelExport(panel, path.parent, overwrite=True)
    with qtbot.waitSignal(export.finished, timeout=5000) as ended:
        export.start((path.suffix[1:],), path.stem)
    assert ended.args == [[path]]
    export.deleteLater()
    return path
