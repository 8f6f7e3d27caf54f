"""Which fonts a figure is set in, and what they can print."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

from model.export.labels import escape

_CJK = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Hiragino Sans",
    "Yu Gothic",
    "Malgun Gothic",
)
"""The first of these that is there joins the chain, then the first that adds Japanese or Korean where it lacks them."""
_OTHERS = ("Noto Sans", "Noto Sans Devanagari", "Noto Sans Thai", "Segoe UI", "Arial Unicode MS")
_SANS = ("Figure Sans", "DejaVu Sans")
_MONO = ("Figure Sans Mono", "DejaVu Sans Mono", "DejaVu Sans")
"""First the cuts of DejaVu in typefaces/ (packaging/typefaces.py), of which a PDF embeds letters ten times as fast."""
for _face in sorted((Path(__file__).parent / "typefaces").glob("*.ttf")):
    fontManager.addfont(_face)


@cache
def families(*, mono: bool = False) -> tuple[str, ...]:
    """Font families in the order in which a glyph is looked for; every one of them is installed."""
    installed = {font.name for font in fontManager.ttflist}
    chain = [*(_MONO if mono else _SANS)]
    chain += [name for name in (*_CJK, *_OTHERS) if name in installed][:6]
    return tuple(chain)


@cache
def _covered() -> frozenset[int]:
    """Code points that every chain can print: DejaVu Sans closes both."""
    points: set[int] = set()
    for family in families():
        points |= get_font(findfont(FontProperties(family=[family]))).get_charmap().keys()
    return frozenset(points)


def families_for(text: str, *, mono: bool = False, bold: bool = False) -> tuple[str, ...]:
    """The shortest beginning of `families` that prints `text` as the whole does: each further one is looked for at
    every word."""
    chain = families(mono=mono)
    return chain[:1] if _of_first(mono=mono, bold=bold).issuperset(map(ord, text)) else chain


@cache
def _of_first(*, mono: bool, bold: bool) -> frozenset[int]:
    """Code points that the first of the families holds."""
    first = FontProperties(family=[families(mono=mono)[0]], weight="bold" if bold else "normal")
    return frozenset(get_font(findfont(first)).get_charmap())


def printable(text: str) -> str:
    """`text` as figures can print it: nothing invisible, what no font holds as ⟨U+1F600⟩."""
    return escape(text, lambda character: ord(character) in _covered())
