"""The text being typed and its tokens, which follow a little later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.i18n import tr
from model.protocol.run_requests import Tokenize, TokenizeReply
from model.protocol.token_run import NO_TOKENS, TokenRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.engine import EngineClient
    from model.protocol.framing import Arrays
    from model.protocol.values import Token
    from model.protocol.wire import ErrorInfo

EXAMPLE_PROMPT = "The animal didn't cross the street because it was too tired"
DELAY_MS = 120
LONG_DELAY_MS = 350
LONG_TEXT = 20_000


def nothing_typed() -> str:
    """Why an empty prompt is not prefilled; over once something is typed."""
    return tr("The prompt is empty: type something first.")


class PromptState(QObject):
    """`text` as typed; `shown` is what the tokens cover: the same, or the rendered chat template. `tokens`: the first
    of them, `count`: how many there are; `taken`: those of a run that they are. `changed` after any."""

    changed = Signal()

    def __init__(self, engine: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._ready = False
        self.text = EXAMPLE_PROMPT
        self.shown = ""
        self.tokens = NO_TOKENS
        self.taken: object = None
        self.count = 0
        self.notice = ""
        self.add_special = True
        self.chat = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._ask)

    @property
    def stale(self) -> bool:
        """Whether the tokens are still those of an earlier text."""
        return self._timer.isActive() or (not self.chat and self.shown != self.text)

    def set_text(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self._retokenize()
            self.changed.emit()

    def take(self, text: str, shown: str, tokens: Sequence[Token]) -> None:
        """The text of a run that was opened, with its tokens; nothing is asked."""
        self._timer.stop()
        self.text, self.shown, self.notice = text, shown, ""
        self._set_tokens(TokenRun.of(tokens), len(tokens))
        self.taken = tokens
        self.changed.emit()

    def set_options(self, *, add_special: bool | None = None, chat: bool | None = None) -> None:
        """Whether special tokens are added and whether the text is put into the model's chat template."""
        self.add_special = self.add_special if add_special is None else add_special
        self.chat = self.chat if chat is None else chat
        self._retokenize()
        self.changed.emit()

    def set_ready(self, ready: bool) -> None:
        """Whether there is a tokenizer to ask; a new one tokenises again."""
        self._ready = ready
        if ready:
            self._retokenize()

    def _retokenize(self) -> None:
        self._timer.start(LONG_DELAY_MS if len(self.text) > LONG_TEXT else DELAY_MS)

    def _set_tokens(self, tokens: TokenRun, count: int) -> None:
        self.tokens, self.count, self.taken = tokens, count, None

    def _ask(self) -> None:
        if not self._ready:
            return

        def done(reply: TokenizeReply, arrays: Arrays) -> None:
            self.shown, self.notice = reply.text, reply.notice
            self._set_tokens(TokenRun.read(reply.pieces, arrays), reply.count)
            self.changed.emit()

        def failed(error: ErrorInfo) -> None:
            if error.code not in {"superseded", "cancelled"}:
                self.shown, self.notice = self.text, error.message
                self._set_tokens(NO_TOKENS, 0)
                self.changed.emit()

        self._engine.request(
            Tokenize(text=self.text, add_special=self.add_special, chat=self.chat),
            on_reply=done,
            on_error=failed,
            slot="session.tokens",
        )
