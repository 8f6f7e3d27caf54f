"""The commands of the window: one list, from which menus, toolbar, palette and the sheet of keys are drawn."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.branches import branches, end_beside, lay_out
from app.commands import Command
from app.export.run_commands import run_file_commands
from app.i18n import LANGUAGES
from app.state.on_screen import bring_back, follows_run
from app.theme import MAX_SCALE, MIN_SCALE

if TYPE_CHECKING:
    from app.context import AppContext
    from app.window import MainWindow

SCALE_STEP = 0.1
PREFILL_CHUNKS = {0: "In one go", 1: "1 token", 4: "4 tokens", 16: "16 tokens", 64: "64 tokens", 256: "256 tokens"}


def commands_of(ctx: AppContext, window: MainWindow) -> tuple[Command, ...]:
    """All of them, in the order of the menus."""
    return (
        *file_commands(window),
        *run_file_commands(ctx, window),
        *run_commands(ctx, window),
        *look_commands(ctx),
        *view_commands(window),
        *model_commands(ctx, window),
        *help_commands(window),
    )


def file_commands(window: MainWindow) -> tuple[Command, ...]:
    """Opening, exporting, leaving."""
    return (
        Command(
            id="file.open", title="Open a model or a run …", shortcuts=("Ctrl+O",), menu="File",
            run=window.sheets.open_model,
        ),
        Command(
            id="file.preferences", title="Preferences …", shortcuts=("Ctrl+,",), menu="File", group=8,
            run=window.sheets.preferences,
        ),
        Command(id="file.quit", title="Quit", shortcuts=("Ctrl+Q",), menu="File", group=9, run=lambda: _close(window)),
    )  # fmt: skip


def _close(window: MainWindow) -> None:
    window.close()


def run_commands(ctx: AppContext, window: MainWindow) -> tuple[Command, ...]:
    """Prefill, steps, branches."""
    session = ctx.session

    def idle() -> bool:
        return session.can_run and not session.busy

    def can_prefill() -> bool:
        return idle() and bool(session.prompt_text)

    def prefill() -> None:
        session.prefill()
        if session.busy:
            window.leave_text()

    def has_run() -> bool:
        return session.can_go_on

    def has_steps() -> bool:
        return session.can_look and not session.busy and bool(session.run and session.run.path)

    def can_step() -> bool:
        """Also while steps are taken: they are counted. After a run to the end none can follow."""
        return has_run() and session.phase in {"ready", "decode"} and not session.under_way.to_end

    def many(n: int) -> Command:
        return Command(
            id=f"run.step{n}",
            title=f"Step {n} times",
            menu="Run",
            group=1,
            enabled=can_step,
            run=lambda: session.step(n),
        )

    def restart() -> None:
        if not follows_run(session):  # the box holds another text by now: Undo there brings it back
            bring_back(session)
        prefill()

    def chunks(n: int, title: str) -> Command:
        settings = ctx.settings
        return Command(
            id=f"run.chunks{n}", title=title, menu="Run", submenu="Prefill in visible chunks",
            checked=lambda: settings.values.prefill_chunk == n, run=lambda: settings.update(prefill_chunk=n),
        )  # fmt: skip

    return (
        Command(
            id="run.prefill", title="Prefill", shortcuts=("Ctrl+Return", "Ctrl+Enter"), menu="Run", enabled=can_prefill,
            run=prefill,
        ),
        Command(
            id="run.restart", title="Restart the run", menu="Run", enabled=lambda: idle() and session.run is not None,
            run=restart,
        ),
        Command(
            id="run.step", title="Step", shortcuts=("Space", "Right"), keys="unclaimed", menu="Run", group=1,
            enabled=can_step, run=session.step,
        ),
        Command(
            id="run.back", title="Step back", shortcuts=("Left",), keys="unclaimed", menu="Run", group=1,
            enabled=has_steps, run=session.back,
        ),
        many(8),
        many(32),
        Command(
            id="run.step_many", title="Step N times …", menu="Run", group=1, enabled=can_step,
            run=lambda: window.sheets.ask_steps(session.step),
        ),
        Command(
            id="run.run", title="Run until end of text", shortcuts=("R",), keys="letter", menu="Run", group=1,
            enabled=lambda: has_run() and not session.busy, run=session.run_until_end,
        ),
        Command(
            id="run.stop", title="Stop", shortcuts=("Escape",), keys="unclaimed", menu="Run", group=1,
            enabled=lambda: session.busy, run=session.stop,
        ),
        Command(
            id="run.first", title="First step", shortcuts=("Home",), keys="unclaimed", menu="Run", group=2,
            enabled=has_steps, run=session.first,
        ),
        Command(
            id="run.last", title="Last step", shortcuts=("End",), keys="unclaimed", menu="Run", group=2,
            enabled=lambda: session.run is not None and session.can_look and not session.busy, run=session.last,
        ),
        *branch_commands(ctx),
        Command(
            id="run.duplicate", title="Duplicate the branch", shortcuts=("Ctrl+Shift+D",), menu="Run", group=2,
            enabled=lambda: has_run() and has_steps(), run=session.duplicate,
        ),
        *(chunks(n, title) for n, title in PREFILL_CHUNKS.items()),
        Command(
            id="run.restart_engine", title="Restart the engine", menu="Run", group=3, run=session.restart_engine,
        ),
    )  # fmt: skip


def branch_commands(ctx: AppContext) -> tuple[Command, ...]:
    """From branch to branch, each at its end."""
    session = ctx.session

    def several() -> bool:
        return session.can_look and not session.busy and branches(session.nodes)

    def go(by: int) -> None:
        node = end_beside(lay_out(session.nodes, session.n_prompt), session.current_node, by)
        if node is not None:
            session.seek(node)

    return tuple(
        Command(
            id=command_id, title=title, shortcuts=(keys,), menu="Run", group=2, enabled=several, run=partial(go, by)
        )
        for command_id, title, keys, by in (
            ("run.branch_before", "Previous branch", "Ctrl+PgUp", -1),
            ("run.branch_after", "Next branch", "Ctrl+PgDown", 1),
        )
    )


def look_commands(ctx: AppContext) -> tuple[Command, ...]:
    """What is looked at: layer, head, query, stage, scale."""
    selection = ctx.selection
    rows = (
        ("view.layer_down", "Previous layer", "[", lambda: selection.step_layer(-1)),
        ("view.layer_up", "Next layer", "]", lambda: selection.step_layer(1)),
        ("view.head_down", "Previous head", "-", lambda: selection.step_head(-1)),
        ("view.head_up", "Next head", "=", lambda: selection.step_head(1)),
        ("view.query_up", "Previous query token", ",", lambda: selection.step_query(-1)),
        ("view.query_down", "Next query token", ".", lambda: selection.step_query(1)),
        ("view.stage", "Next stage of attention", "S", selection.cycle_stage),
        ("view.scale", "Next colour scale", "L", selection.cycle_scale),
    )
    tints = {"attention": "What the query reads", "entropy": "Entropy", "surprisal": "Surprisal", "none": "Nothing"}
    tint_commands = tuple(
        Command(id=f"view.tint.{tint}", title=title, menu="View", group=1, submenu="Tint the tokens by",
                checked=lambda tint=tint: selection.tint == tint,  # type: ignore[misc]
                run=lambda tint=tint: selection.set_tint(tint))  # type: ignore[misc]
        for tint, title in tints.items()
    )  # fmt: skip
    return tuple(
        Command(id=command_id, title=title, shortcuts=(key,), keys="letter", menu="View", group=1, run=run,
                submenu="What is looked at", enabled=lambda: ctx.session.run is not None)
        for command_id, title, key, run in rows
    ) + tint_commands  # fmt: skip


def view_commands(window: MainWindow) -> tuple[Command, ...]:
    """The window itself: layout, theme, language, size of text."""
    theme, settings = window.theme, window.settings

    def zoom(by: float) -> None:
        scale = round(min(MAX_SCALE, max(MIN_SCALE, theme.text_scale + by)), 2) if by else 1.0
        settings.update(text_scale=scale)

    def choose_theme(name: str) -> Command:
        return Command(
            id=f"view.theme.{name}", title={"system": "As the system", "light": "Light", "dark": "Dark"}[name],
            menu="View", group=5, submenu="Theme", checked=lambda: settings.values.theme == name,
            run=lambda: settings.update(theme=name),
        )  # fmt: skip

    def choose_language(code: str, title: str) -> Command:
        return Command(
            id=f"view.language.{code or 'system'}", title=title, menu="View", group=5, submenu="Language",
            checked=lambda: settings.values.language == code, run=lambda: settings.update(language=code),
        )  # fmt: skip

    return (
        Command(id="view.palette", title="Find a command …", shortcuts=("Ctrl+Shift+P",), menu="View",
                run=window.sheets.palette),
        Command(id="view.full_screen", title="Full screen", shortcuts=("F11",), menu="View", group=2,
                checked=window.isFullScreen, run=window.toggle_full_screen),
        Command(id="view.reset_layout", title="Reset the layout", menu="View", submenu="Layouts",
                run=window.reset_layout),
        Command(id="view.restore_panel", title="Restore the maximised panel", shortcuts=("Escape",), keys="unclaimed",
                menu="View", group=2, enabled=lambda: window.maximised is not None, run=window.restore_maximised),
        Command(id="view.save_layout", title="Save the layout as …", menu="View", submenu="Layouts",
                run=window.save_layout_as),
        *(choose_theme(name) for name in ("system", "light", "dark")),
        choose_language("", "As the system"),
        *(choose_language(code, title) for code, title in LANGUAGES.items()),
        Command(id="view.text_larger", title="Larger text", shortcuts=("Ctrl+=", "Ctrl++"), menu="View", group=5,
                submenu="Size of text", enabled=lambda: theme.text_scale < MAX_SCALE, run=lambda: zoom(SCALE_STEP)),
        Command(id="view.text_smaller", title="Smaller text", shortcuts=("Ctrl+-",), menu="View", group=5,
                submenu="Size of text", enabled=lambda: theme.text_scale > MIN_SCALE, run=lambda: zoom(-SCALE_STEP)),
        Command(id="view.text_normal", title="Normal text", shortcuts=("Ctrl+0",), menu="View", group=5,
                submenu="Size of text", run=lambda: zoom(0)),
    )  # fmt: skip


def model_commands(ctx: AppContext, window: MainWindow) -> tuple[Command, ...]:
    """The model and the proof of its numbers."""
    session = ctx.session
    return (
        Command(id="model.open", title="Open another model …", menu="Model", run=window.sheets.open_model),
        Command(id="model.default", title="Open the default model", menu="Model", run=session.desk.open_default,
                enabled=lambda: session.hello is not None and not session.busy),
        Command(id="model.reload", title="Open it again", menu="Model", run=lambda: session.open_model(session.source),
                enabled=lambda: session.model is not None and not session.busy),
        Command(id="model.check", title="Check the numbers", menu="Model", group=1,
                run=lambda: session.facts.check(quick=False), enabled=lambda: session.run is not None),
    )  # fmt: skip


def help_commands(window: MainWindow) -> tuple[Command, ...]:
    """Keys, log, about."""
    return (
        Command(id="help.keys", title="Keys", shortcuts=("F1",), menu="Help", run=window.sheets.keys),
        Command(id="help.log", title="Open the log folder", menu="Help", group=1, run=window.sheets.log),
        Command(id="help.about", title="About Decoderscope", menu="Help", group=1, run=window.sheets.about),
    )
