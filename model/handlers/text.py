"""The text as it is typed: its tokens, on the light thread."""

from __future__ import annotations

from collections.abc import Sequence

from model.handlers.registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.run_requests import Tokenize, TokenizeReply
from model.protocol.values import Token
from model.tokenizer import Tokenizer

MAX_TOKENS = 100_000  # so that a reply stays well under a frame's limit


@handles(Tokenize)
def tokenize(context: EngineContext, message: Tokenize, _job: Job) -> Answer:
    """The tokens of the text, or of the chat it makes."""
    tokenizer = context.need_model().tokenizer
    text, notice = chat_text(tokenizer, message.text) if message.chat else (message.text, "")
    tokens = tokenizer.offsets(text, add_special=message.add_special)
    if len(tokens) > MAX_TOKENS:
        notice = f"Only the first {MAX_TOKENS:,} of {len(tokens):,} tokens are listed."
    return TokenizeReply(text=text, tokens=tuple(tokens[:MAX_TOKENS]), notice=notice), {}


def chat_text(tokenizer: Tokenizer, text: str) -> tuple[str, str]:
    """The model's chat template around `text`, or `text` itself and why."""
    del tokenizer
    return text, "This model has no chat template: the text is used as it is."


def tokens_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
    """The text of `ids` and each token's place in it."""
    stream, text, tokens = tokenizer.decode_stream(), "", []
    for token_id in ids:
        start = len(text)
        text += stream.push(token_id)
        special = tokenizer.is_special(token_id)
        token = Token(id=token_id, piece=tokenizer.piece(token_id), start=start, end=len(text), special=special)
        tokens.append(token)
    return text, tuple(tokens)
