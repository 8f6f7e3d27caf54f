"""The text as it is typed: its tokens, on the light thread."""

from __future__ import annotations

from collections.abc import Sequence

from model.checkpoint.chat import ChatTemplateError, chat_text
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.run_requests import Prefill, Tokenize, TokenizeReply
from model.protocol.values import Token
from model.tokenizer import Tokenizer

MAX_TOKENS = 400_064
"""Tokens that are listed: what 100,000 characters of any script have at most, four bytes each and what is added. Some
5 MB travel, and the window keeps some 25 MB of where they stand."""


@handles(Tokenize)
def tokenize(context: EngineContext, message: Tokenize, _job: Job) -> Answer:
    """The first tokens of the text, or of the chat it makes, and how many there are."""
    tokenizer = context.need_model().tokenizer
    text, add_special, notice = wrapped(tokenizer, message)
    tokens = tokenizer.token_run(text, add_special=add_special)
    listed = tokens.first(MAX_TOKENS)
    return TokenizeReply(text=text, pieces=listed.pieces, count=len(tokens), notice=notice), listed.arrays()


def wrapped(tokenizer: Tokenizer, message: Tokenize | Prefill) -> tuple[str, bool, str]:
    """What is tokenised: the text, or the chat it makes by the model's template; whether special tokens are added (a
    template brings its own); why no template was used where one was asked for."""
    if not message.chat:
        return message.text, message.add_special, ""
    try:
        return chat_text(tokenizer, [{"role": "user", "content": message.text}]), False, ""
    except ChatTemplateError as error:
        return message.text, message.add_special, str(error)


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
