"""Text of other people's making (tokens, names out of files) where Qt would take what looks like markup for markup."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
"""Controls, formatting (joiners, marks of direction), surrogates, private, unassigned, separators, spaces."""
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""What Qt draws as nothing, or obeys: controls, soft hyphens, marks of direction, spaces without width. All of them one
UTF-16 unit; joiners are not among them, which make one sign of others, and no end of a line is."""
_NOT_HELD = re.compile("[\r\U000e0000-\U000e007f]")
_SIGNS = {" ": " ", "\n": "⏎", "\t": "⇥"}


def tip(text: str) -> str:
    """A tool tip that shows `text` as it is. Qt has no plain tool tips: it guesses from the text, and a token such as
    <img src=…> would be obeyed. A QLabel is told with setTextFormat instead."""
    if "<" not in text and "&" not in text:
        return text
    from html import escape  # noqa: PLC0415 - the first paint has no such text

    return f'<span style="white-space: pre-wrap">{escape(text)}</span>'


def seen(text: str) -> str:
    """A few characters with ⟨U+202E⟩ for each that can't be seen, or turns the text around. Joiners between others
    stay: they make one sign of them."""
    joined = len(text) > 1 and not all(map(_hidden, text))
    kept = {**_SIGNS, "\u200c": "\u200c", "\u200d": "\u200d"} if joined else _SIGNS
    return "".join(kept.get(ch, escaped(ch)) if _hidden(ch) else ch for ch in text)


def escaped(character: str) -> str:
    """⟨U+202E⟩ for a character."""
    return f"⟨U+{ord(character):04X}⟩"


def unseen(text: str, most: int = 3, *, everywhere: bool = False) -> str:
    """The first few kinds of characters in a text that the prompt's box does not show, as ⟨U+E0041⟩; "" without any.
    With `everywhere` all that Qt does not show: not all of them are escaped in the box."""
    kinds = list(dict.fromkeys([*(UNSEEN.findall(text) if everywhere else ()), *_NOT_HELD.findall(text)]))
    named = [escaped(kind) for kind in kinds[:most]]
    return " ".join([*named, "…"] if len(kinds) > most else named)


def _hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def one_line(text: str, most: int) -> str:
    """The beginning of a text in at most `most` characters, with nothing in it that is not printed."""
    line = " ".join(text[: 8 * most].split())
    line = "".join(character if character.isprintable() else "·" for character in line)
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
