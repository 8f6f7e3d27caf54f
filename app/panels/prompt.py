"""The prompt: text, its tokens as they are typed, and what the model expected at each of them."""

from __future__ import annotations

import bisect
import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QResizeEvent, QTextCharFormat
from PySide6.QtWidgets import QLabel, QMenu, QWidget

from app import resources
from app.i18n import tr
from app.panels.base import Changes, Panel
from app.panels.curves import curves
from app.panels.expected import ExpectedView
from app.panels.kv_lines import longest_fitting
from app.panels.prompt_words import EMPTY, OTHER_TEXT, STATS, count_texts, loss_text, notices
from app.panels.question import Doing
from app.panels.run_tables import token_table, typed_table
from app.plain import tip as plain_tip
from app.session import Topic
from app.state.on_screen import bring_back, follows_run
from app.widgets.check_box import CheckBox
from app.widgets.menu_button import MenuButton
from app.widgets.notice_line import Notice, NoticeLine
from app.widgets.prompt_edit import PromptEdit
from app.widgets.prompt_split import PromptSplit
from app.widgets.token_groups import Groups, Pieces
from app.widgets.token_strip import TokenStrip
from app.widgets.wrap_row import WrapRow, wrap
from model.protocol.attention_requests import GetRow, HeadView
from model.protocol.run_requests import GetExpected
from model.protocol.token_run import NO_TOKENS, TokenRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.export.panel_files import Table
    from app.session import Session
    from model.protocol.attention_requests import LineReply
    from model.protocol.framing import Arrays
    from model.protocol.run_requests import ExpectedReply
    from model.protocol.values import Token
    from model.protocol.wire import Request

LONG = 50_000
"""Tokens of which one frame measures the pieces, and the next finds the places."""
NO_UNITS = np.zeros(0, np.int64)
LEAST_WIDTH = 130
WIDTH = 257
"""Px that it has wherever there is room: the example's line and tokens at 100 % text, in any language. Of larger text
the options need more."""

HELP = (
    "Type a text and see its tokens. Prefill runs the model on it; generated tokens follow in amber. Hover a "
    "token to see its id and the characters it covers; click one to see what the model expected there.\n\n"
    "loss = mean of −log p(token | the tokens before it), in nats a token; perplexity = e^loss. A perplexity "
    "of 20 means that the model was, on average, as unsure as between 20 equally likely tokens. The first "
    "token is not counted: nothing comes before it.\n\n"
    "Look for: words that fall into several tokens, the space that belongs to the token after it, characters "
    "made of bytes, and, tinted by surprisal, the few tokens that make most of the loss."
)


class PromptPanel(Panel):
    """Text above, tokens below; while the text is the one that was prefilled, the generated tokens follow in amber."""

    panel_id: ClassVar[str] = "prompt"
    title: ClassVar[str] = "Prompt"
    help_text: ClassVar[str] = HELP
    area: ClassVar[str] = "left"
    exports: ClassVar[bool] = True
    tables_first: ClassVar[bool] = True
    watches: ClassVar[frozenset[str]] = frozenset(
        {
            Topic.PROMPT,
            Topic.RUN,
            Topic.NODE,
            Topic.MODEL,
            Topic.PROMPT_STATS,
            Topic.PROGRESS,
            "hover_token",
            "query",
            "layer",
            "head",
            "tint",
        }
    )

    def build(self) -> None:
        theme, session = self.ctx.theme, self.ctx.session
        self._followed: object = None
        self._units = NO_UNITS
        self._units_of = ""
        self._grouped: tuple[Sequence[Token], str, Groups] = NO_TOKENS, "", Groups.taken(())
        self.edit = PromptEdit()
        self.edit.set_text(session.prompt.text)
        self._listen()
        self.strip = TokenStrip(theme, tr("Tokens"))
        self.strip.tokenHovered.connect(self._on_hover)
        self.strip.tokenClicked.connect(self._on_click)
        self.expected = ExpectedView(theme)
        self.expected.closed.connect(lambda: self.strip.set_selected(self._strip_query()))
        self.split = PromptSplit(self.edit, self.strip)
        self.expected.shown.connect(self.split.set_lean)
        self.body.setSpacing(4)
        self.body.addWidget(self.split, 1)
        self.body.addWidget(self.expected)
        self.notices = NoticeLine(theme)
        self.notices.wanted.connect(self._on_notice)
        self.body.addWidget(self.notices)
        self.count = QLabel()
        self.count.setProperty("role", "hint")
        self.count.setTextFormat(Qt.TextFormat.PlainText)
        self.count.setWordWrap(True)
        self.body.addWidget(self.count)
        self._options_row = self._options()
        self.body.addWidget(self._options_row)

    def _listen(self) -> None:
        edit, session = self.edit, self.ctx.session
        edit.typed.connect(self._on_typed)
        edit.caretMoved.connect(self._mark_tokens)
        edit.told.connect(session.notify.say)
        edit.pointedAt.connect(self._on_pointed)

    def carry(self, before: Self) -> None:
        """The box itself: with its caret, its selection, and what Undo brings back; what was expected at a token."""
        edit, made = before.edit, self.edit
        for signal in (edit.typed, edit.caretMoved, edit.told, edit.pointedAt):
            signal.disconnect()
        self.split.take(edit)
        made.deleteLater()
        self.edit = edit
        self._listen()
        edit.retranslate()
        self.split.own = before.split.own
        self.expected.carry(before.expected)

    def _options(self) -> QWidget:
        session = self.ctx.session
        options = QWidget()
        row = WrapRow(options)
        wrap(options)
        theme = self.ctx.theme
        self.special = CheckBox(theme, tr("Special"), tip=tr("Add the tokens the model expects around a text (BOS …)"))
        self.special.setChecked(session.prompt.add_special)
        self.special.toggled.connect(lambda on: session.prompt.set_options(add_special=on))
        self.chat = CheckBox(
            theme, tr("Chat"), tip=tr("Put the text into the model's chat template; the tokens show the whole of it")
        )
        self.chat.setChecked(session.prompt.chat)
        self.chat.toggled.connect(lambda on: session.prompt.set_options(chat=on))
        examples = MenuButton(theme, tr("Examples"))
        examples.setProperty("compact", True)
        menu = QMenu(examples)
        for example in json.loads(resources.text("prompts/examples.json")):
            action = menu.addAction(tr(example["title"]))
            action.triggered.connect(lambda _checked=False, text=example["text"]: self._use(text))
        examples.setMenu(menu)
        for box in (self.special, self.chat):
            row.add(box)
        row.add_gap()
        row.add(examples)
        return options

    def least_width(self) -> int:
        return self.ctx.theme.px(LEAST_WIDTH)

    def minimumSizeHint(self) -> QSize:
        """Options on one line and the example in sight, wherever there is room for that."""
        least, sides = super().minimumSizeHint(), self.body.contentsMargins()
        line = self._options_row.sizeHint().width() + sides.left() + sides.right()
        return QSize(max(least.width(), line, WIDTH), least.height())

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        """The tokens; where they are tinted by attention, with what the chosen query reads of each."""
        session, selection = self.ctx.session, self.ctx.selection
        if not self._follows_run():
            typed_table(session.prompt.tokens, lambda table: done([table]), self)
        elif selection.tint != "attention":
            done([token_table(session)])
        else:
            view = HeadView(layer=selection.layer, head=selection.head, stage="weights")
            title = f"query {selection.query} reads (layer {view.layer}, head {view.head})"
            self.ask(
                GetRow(view=view, query=selection.query),
                lambda _reply, arrays: done([token_table(session, arrays["values"], title)]),
                on_error=lambda _error: done([token_table(session)]),
            )

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        from app.export.subjects import tinted  # noqa: PLC0415 - not before it is asked for

        if not self._follows_run():
            return None
        return replace(tinted(self.ctx), formats=formats, theme=theme, stem=stem)  # type: ignore[arg-type]

    # state → widgets

    def refresh(self, changes: Changes) -> None:
        session = self.ctx.session
        if changes & {Topic.PROMPT, Topic.RUN, Topic.NODE, Topic.MODEL}:
            if self.edit.text() != session.prompt.text:
                self.edit.set_text(session.prompt.text)
            self.chat.setEnabled(bool(session.model and session.model.has_chat_template))
            self._show_tokens(session)
            self.expected.hide_if_gone(session.run_id if self._follows_run() else None, session.length)
        self._show_words(session)
        if "query" in changes or changes & {Topic.PROMPT, Topic.RUN, Topic.NODE}:
            self.strip.set_selected(self._strip_query(), reveal=False)
        if changes - {"hover_token", "width", Topic.PROGRESS}:
            self._show_tints()
        hovered = self.ctx.selection.hover_token
        self.strip.set_hovered(hovered if self._follows_run() else None)

    def _follows_run(self) -> bool:
        """Whether the strip shows the run (the text is the prefilled one) rather than what is being typed."""
        return follows_run(self.ctx.session)

    def _show_tokens(self, session: Session) -> None:
        follows = self._follows_run()
        tokens: Sequence[Token] = session.prompt.tokens
        shown, first_decode = session.prompt.shown, None
        if shown is not self._units_of:
            self._units, self._units_of = utf16_offsets(shown), shown
        if follows:
            tokens, first_decode = session.prompt_tokens, session.n_prompt
            listed = Pieces.of([token.piece for token in session.path_tokens()])
            ids: Sequence[int] = [token.id for token in session.path_tokens()]
            text = shown if session.prompt.chat else session.prompt.text  # what is shown may be a template of before
            if tokens is not self._grouped[0] or text is not self._grouped[1]:
                self._grouped = tokens, text, Groups.of(TokenRun.of(tokens), text)
        else:
            run = session.prompt.tokens
            if run is not self._grouped[0]:
                self._grouped = run, shown, Groups.of(run, shown)
                self._grouped[2].members()
                self.strip.measure(run.pieces)
                if len(run) > LONG:  # where they go is found in a turn of its own
                    self.mark(Topic.PROMPT)
                    return
            listed = Pieces(run.pieces, run.kind)
            ids = cast("Sequence[int]", run.token_ids)
        run_id = session.run_id if follows else None
        # A run opens at its start, also while the steps it was asked for are added; later steps are followed.
        follow = run_id is not None and run_id == self._followed
        self.strip.set_differs(branch_point(session) if follows else None)
        self.strip.set_tokens(listed, ids=ids, first_decode=first_decode, groups=self._grouped[2], follow=follow)
        if not session.busy:
            self._followed = run_id
        if not follows and len(listed) and self.edit.hasFocus():
            self.strip.reveal(self._token_at_caret(tokens))

    def _show_tints(self) -> None:
        """Tints behind the tokens: what the query reads, or entropy or surprisal over the run."""
        session, selection = self.ctx.session, self.ctx.selection
        if not self._follows_run() or selection.tint == "none":
            self.strip.set_tints(None)
        elif selection.tint == "attention":
            view = HeadView(layer=selection.layer, head=selection.head, stage="weights")
            doing = Doing(title=tr("Computing what the query reads"))
            row = GetRow(view=view, query=selection.query)
            self.ask(row, self._on_row, slot="tint", priority="background", doing=doing)
        else:
            entropy, surprisal = curves(session)
            values = entropy if selection.tint == "entropy" else surprisal
            self.strip.set_tints(shares(values), "accent")

    def _on_row(self, _reply: LineReply, arrays: Arrays) -> None:
        if self.ctx.selection.tint == "attention" and self._follows_run():
            self.strip.set_tints(arrays["values"], "green")

    def _show_words(self, session: Session) -> None:
        """Count and notices. Where there is a notice, a count of more than a line, loss and perplexity are turned to
        behind it, so that the tokens keep their rows."""
        follows = self._follows_run()
        said = notices(session, follows=follows, shows_all=self.edit.shows_all)
        loss = loss_text(session, follows=follows)
        counts, count = count_texts(session), ""
        if said:
            count = longest_fitting(counts, QFontMetricsF(self.count.font()), self.count.width())
            said += [Notice(key="count", texts=(counts[0],))] if count != counts[0] else []
            said += [Notice(key="loss", texts=(loss,))] if loss else []
        self.notices.set_notices(said)
        self.count.setText(count or "\n".join(filter(None, (counts[0], loss))))
        self.count.setToolTip(plain_tip("\n".join((
            counts[0], *([loss] if loss else []),
            tr("left: tokens of the context after the prompt alone; KV cache counts from all tokens so far"),
            tr("KV + views: what a run of them keeps in memory, K and V and what the panels show of every token"),
        ))))  # fmt: skip

    def _on_notice(self, key: str) -> None:
        """The button of a notice."""
        if key == OTHER_TEXT:
            self.ctx.session.prefill()
        elif key == EMPTY:
            bring_back(self.ctx.session)
        elif key == STATS:
            self.ctx.session.facts.measure_prompt()
            self.mark(Topic.PROMPT_STATS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.mark("width")

    def _strip_query(self) -> int | None:
        return self.ctx.selection.query if self._follows_run() and self.ctx.session.length else None

    # widgets → state

    def _on_typed(self) -> None:
        self.ctx.selection.set_hover(token=None)  # of the text before
        self.ctx.session.set_prompt(self.edit.text())

    def _use(self, text: str) -> None:
        self.edit.set_text(text)
        self.ctx.session.set_prompt(text)

    def _on_hover(self, position: int) -> None:
        tokens = self.ctx.session.prompt.tokens
        if 0 <= position < len(tokens) and not self.chat.isChecked():
            token = tokens[position]
            tint = QTextCharFormat()
            tint.setBackground(self.ctx.theme.palette.accent_tint)
            self.edit.mark(self._unit(token.start), self._unit(token.end), tint)
        else:
            self.edit.mark(0, 0, QTextCharFormat())
        if self._follows_run():
            self.ctx.selection.set_hover(token=position if position >= 0 else None)

    def _on_pointed(self, unit: int) -> None:
        """The token that holds a character of the box, hovered as in the strip."""
        prompt, position = self.ctx.session.prompt, -1
        if unit >= 0 and not prompt.stale:
            # In a chat the text stands inside what the template makes of it.
            before = prompt.shown.find(prompt.text) if prompt.chat else 0
            if before >= 0:
                unit += self._unit(before)
                position = bisect.bisect_right(prompt.tokens, unit, key=lambda token: self._unit(token.start)) - 1
        self._on_hover(position)
        if position >= 0:
            self.strip.reveal(position)
        if not self._follows_run():
            self.strip.set_hovered(position if position >= 0 else None)

    def _on_click(self, position: int) -> None:
        if not self._follows_run():
            return
        self.ctx.selection.set_query(position)
        self.strip.set_selected(position)
        run_id = self.ctx.session.run_id
        if position == 0:
            self.expected.show_first(run_id)
            return

        def done(reply: ExpectedReply, _arrays: Arrays) -> None:
            if self._follows_run():
                self.expected.show_reply(run_id, reply)

        doing = Doing(title=tr("Computing what was expected"))
        self.ask(GetExpected(position=position), done, slot="expected", doing=doing)

    def _mark_tokens(self) -> None:
        """The tokens under the text's selection are marked in the strip."""
        cursor = self.edit.textCursor()
        start, end = cursor.selectionStart(), cursor.selectionEnd()
        tokens = self.ctx.session.prompt.tokens
        if start == end or self.edit.excerpted or self.chat.isChecked() or self.ctx.session.prompt.stale:
            self.strip.set_marked(0, 0)
            return
        units = self._units if len(self._units) else np.arange(len(self.ctx.session.prompt.shown) + 1)
        inside = np.flatnonzero((units[tokens.end] > start) & (units[tokens.start] < end))
        self.strip.set_marked(int(inside[0]), int(inside[-1]) + 1) if len(inside) else self.strip.set_marked(0, 0)

    def _token_at_caret(self, tokens: Sequence[Token]) -> int:
        """The token that ends where one types; the last one where the template, not the text, is shown."""
        if self.chat.isChecked():
            return len(tokens) - 1
        caret = self.edit.textCursor().position()
        return max(bisect.bisect_left(tokens, caret, key=lambda token: self._unit(token.start)) - 1, 0)

    def _unit(self, index: int) -> int:
        return int(self._units[index]) if index < len(self._units) else index


def branch_point(session: Session) -> int | None:
    """The position of the first fork on the path, from which branches differ; None without one."""
    for node in session.path_nodes():
        if len(session.branches_after(node.parent)) > 1:
            return node.position
    return None


def shares(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values as shares of the largest, NaN where unknown."""
    top = float(np.nanmax(values)) if len(values) and not np.isnan(values).all() else 0.0
    return values / np.float32(top) if top > 0 else np.full_like(values, np.nan)


def utf16_offsets(text: str) -> NDArray[np.int64]:
    """For each index of `text` and its end, the index in UTF-16 units, which is how Qt counts; empty when equal."""
    if text.isascii() or len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text):
        return NO_UNITS
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.concatenate(([0], np.cumsum(1 + (characters > 0xFFFF), dtype=np.int64)))
