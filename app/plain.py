"""Text of other people's making (tokens, names out of files) where Qt would take what looks like markup for markup."""

from __future__ import annotations

import html


def tip(text: str) -> str:
    """A tool tip that shows `text` as it is. Qt has no plain tool tips: it guesses from the text, and a token such as
    <img src=…> would be obeyed. A QLabel is told with setTextFormat instead."""
    if "<" not in text and "&" not in text:
        return text
    return f'<span style="white-space: pre-wrap">{html.escape(text)}</span>'
