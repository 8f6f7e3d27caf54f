"""Commands about run files, and those that take what a panel shows elsewhere: files, picture, values, a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from PySide6.QtGui import QGuiApplication

from app.commands import Command
from app.export.command_line import command_line
from app.export.exporter import Exporter
from app.export.panel_files import as_tabs, copy_picture
from app.export.subjects import PANEL, kind_of, message_of, shown
from app.i18n import tr
from app.notify import WayOut
from app.panels.in_sight import once_drawn

if TYPE_CHECKING:
    from app.context import AppContext
    from app.panels.attention import AttentionPanel
    from app.panels.base import Panel
    from app.window import MainWindow
    from model.protocol.export_requests import FileRequest
    from model.protocol.run_file_requests import OpenRunReply

EXPORT_TITLES = {
    "prompt": "Export the prompt …",
    "timeline": "Export the timeline …",
    "attention": "Export attention …",
    "sampling": "Export sampling …",
    "kv": "Export the KV cache …",
    "rope": "Export RoPE …",
    "feed_forward": "Export the feed-forward …",
    "block_walk": "Export the block walk …",
    "lens": "Export the lens …",
    "model": "Export the model panel …",
}


def export_command(panel: Panel) -> Command:
    """Exports this panel, whichever is in use."""
    session = panel.ctx.session

    def can_look() -> bool:
        return session.model is not None if panel.needs == "model" else session.run is not None and session.can_look

    return Command(
        id=f"{panel.panel_id}.export", title=EXPORT_TITLES[panel.panel_id], menu="File", group=2,
        submenu="Export another panel", run=panel.export, enabled=can_look,
    )  # fmt: skip


def run_file_commands(ctx: AppContext, window: MainWindow) -> tuple[Command, ...]:
    """Save the run, go on with a recorded one; export and copy from the panel in use."""
    session = ctx.session
    session.files.opened.connect(lambda reply: tell_recorded(ctx, reply))

    def has_run() -> bool:
        return session.run is not None and session.can_look

    def save() -> None:
        from app.export.save_run import SaveRunDialog  # noqa: PLC0415 - not before it is asked for

        SaveRunDialog(ctx, window).open()

    def on_panel(run: Callable[[Panel], object]) -> Callable[[], None]:
        def act() -> None:
            assert window.in_use is not None  # since before there are commands
            panel = window.in_use.panel
            once_drawn(panel, lambda: run(panel))

        return act

    return (
        Command(id="file.save_run", title="Save the run …", shortcuts=("Ctrl+S",), menu="File", run=save,
                enabled=lambda: has_run() and not session.busy),
        Command(id="file.go_on", title="Go on with the model of this run", menu="File", run=session.files.go_on,
                enabled=lambda: session.files.recorded and not session.busy),
        Command(id="file.export", title="Export the panel …", shortcuts=("Ctrl+E",), menu="File", group=2,
                run=on_panel(lambda panel: panel.export()), enabled=has_run),
        Command(id="file.export_again", title="Export again", shortcuts=("Ctrl+Shift+E",), menu="File", group=2,
                run=on_panel(lambda panel: Exporter.shared(ctx).again(panel)), enabled=has_run),
        Command(id="file.copy_picture", title="Copy the panel as a picture", shortcuts=("Ctrl+Shift+C",), menu="File",
                group=3, enabled=has_run, run=on_panel(copy_picture)),
        Command(id="file.copy_values", title="Copy the panel's values", menu="File", group=3, enabled=has_run,
                run=on_panel(copy_values)),
        Command(id="file.copy_command", title="Copy the command line", menu="File", group=3, enabled=has_run,
                run=on_panel(copy_command)),
    )  # fmt: skip


def tell_recorded(ctx: AppContext, reply: OpenRunReply) -> None:
    """Says of a recorded run what it is, with the way to go on with it."""
    if reply.recorded:
        words = tr(
            "This run was recorded with {model} and is shown without it: nothing is computed anew.",
            model=reply.model.name,
        )
        ctx.notify.propose(words, WayOut(label=tr("Open its model"), run=ctx.session.files.go_on))


def copy_values(panel: Panel) -> None:
    """The panel's tables, or the matrix in view, tab-separated."""
    if panel.panel_id == "attention":
        cast("AttentionPanel", panel).main.heat.copyWanted.emit("matrix")
        return

    def put(tables: list[tuple[str, list[list[str]]]]) -> None:
        if not tables:
            panel.ctx.notify.say(tr("This panel has no table to copy."))
            return
        QGuiApplication.clipboard().setText(as_tabs(tables))
        panel.ctx.notify.say(tr("Copied."))

    panel.tables(put)


def copy_command(panel: Panel) -> None:
    """The line that makes what the panel shows, as it would be exported."""
    kind, options = kind_of(panel), Exporter.shared(panel.ctx).options
    if kind != PANEL:
        message: FileRequest | None = message_of(options.want(kind, ""), panel)
    else:
        message = shown(panel)
    line = command_line(panel.ctx.session, message) if message is not None else panel.line()
    if not line:
        panel.ctx.notify.say(tr("No command line can make this; save the run and export from its file."))
        return
    QGuiApplication.clipboard().setText(line)
    panel.ctx.notify.say(tr("Copied: {line}", line=line))
