"""Chat templates, rendered in a process that is killed when it takes too long: the text a chat becomes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from model.checkpoint import chat_child
from model.checkpoint.errors import CheckpointError
from model.errors import shown
from model.tokenizer import Tokenizer

SECONDS = 2.0
BUSY = 5 if sys.platform != "win32" else 1
"""Times as long by the clock as on the processor, where that has a limit: a busy machine makes no template hostile."""
_ROLES_LIMIT = 10_000


class ChatTemplateError(CheckpointError):
    """A chat template that can't be rendered; the text can still be typed without it."""

    code = "chat_template"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The model's chat template can't be used: {shown(reason, 300).rstrip('.')}. The prompt goes in as typed."
        )


def _command() -> list[str]:
    if getattr(sys, "frozen", False):
        return [sys.executable, "chat-template"]
    return [sys.executable, "-I", str(Path(chat_child.__file__))]


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, object]],
    *,
    bos_token: str = "",
    eos_token: str = "",
    add_generation_prompt: bool = True,
    seconds: float = SECONDS,
) -> str:
    """`messages` ({"role": …, "content": …}) as text by `template`; ChatTemplateError after `seconds` of the
    processor, or a fault."""
    variables = {
        "messages": list(messages)[:_ROLES_LIMIT],
        "bos_token": bos_token,
        "eos_token": eos_token,
        "add_generation_prompt": add_generation_prompt,
        "tools": None,
        "documents": None,
    }
    request = {"template": template, "variables": variables, "cpu_seconds": max(1, int(seconds))}
    try:
        done = subprocess.run(
            _command(), input=json.dumps(request).encode(), capture_output=True, timeout=BUSY * seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ChatTemplateError(f"it takes longer than {BUSY * seconds:g} seconds") from error
    except OSError as error:
        raise ChatTemplateError(f"its process did not start ({error.strerror})") from error
    try:
        reply = json.loads(done.stdout)
    except ValueError as error:
        raise ChatTemplateError("it ended its process (too much time or memory)") from error
    if "text" not in reply:
        raise ChatTemplateError(str(reply.get("error", "no reason given")))
    return str(reply["text"])


def chat_text(
    tokenizer: Tokenizer, messages: Sequence[Mapping[str, object]], *, add_generation_prompt: bool = True
) -> str:
    """`render_chat` with the model's own template and special tokens; encode the text with `add_special=False`."""
    if tokenizer.chat_template is None:
        raise ChatTemplateError("the model came without one")
    bos, eos = (tokenizer.decode([token_id]) if token_id is not None else "" for token_id in _ends(tokenizer))
    return render_chat(
        tokenizer.chat_template,
        messages,
        bos_token=bos,
        eos_token=eos,
        add_generation_prompt=add_generation_prompt,
    )


def _ends(tokenizer: Tokenizer) -> tuple[int | None, int | None]:
    return tokenizer.bos_id, tokenizer.eos_ids[0] if tokenizer.eos_ids else None
