from __future__ import annotations

import json
import re
import string

import pytest
from PySide6.QtWidgets import QLineEdit

from app import i18n, resources
from tests.app.catalogue import texts

LANGUAGES = sorted(set(i18n.LANGUAGES) - {"en"})


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    catalogue = i18n.load_catalogue(language)
    missing = {text: where for text, where in texts().items() if not catalogue.get(text)}
    assert missing == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_the_places_of_values(language: str) -> None:
    wrong = {text: to for text, to in i18n.load_catalogue(language).items() if fields(text) != fields(to)}
    assert wrong == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogue_is_sorted_and_has_no_key_twice(language: str) -> None:
    pairs = json.loads(resources.text(f"translations/{language}.json"), object_pairs_hook=list)
    keys = [key for key, _ in pairs]
    assert keys == sorted(set(keys))


def test_language_is_switched_live_and_back(qapp: object) -> None:
    try:
        assert i18n.set_language("zh_CN") == "zh_CN"
        assert i18n.tr("Prompt") == "提示词"
        assert i18n.tr("0 tokens · {left} left", left=5) == "0 个词元 · 剩余 5"
    finally:
        i18n.set_language("en")
    assert i18n.tr("Prompt") == "Prompt"


def test_chinese_uses_full_width_marks() -> None:
    half = re.compile(r"[\u4e00-\u9fff][,;:?]|[,;:?][\u4e00-\u9fff]")
    assert [to for to in i18n.load_catalogue("zh_CN").values() if half.search(to)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_goes_on_is_marked_as_in_english(language: str) -> None:
    """Some had "……", others "…", with a space before it or without."""
    marks = re.compile(r" ?…+ ?")
    wrong = {
        text: to for text, to in i18n.load_catalogue(language).items()
        if marks.findall(to) != marks.findall(text) and "…" in to
    }  # fmt: skip
    assert wrong == {}


def test_what_a_catalogue_lacks_stays_as_it_is_and_qt_says_its_own_in_the_language(qapp: object) -> None:
    try:
        i18n.set_language("zh_CN")
        assert i18n.tr("a text that nobody translated") == "a text that nobody translated"
        line = QLineEdit()
        menu = line.createStandardContextMenu()
        actions = [action.text() for action in menu.actions()]
        assert actions[0].startswith("撤消") and all(text[:1] != "\t" for text in actions)
    finally:
        i18n.set_language("en")


@pytest.mark.parametrize(
    "content", ["", "[1]", '{"a": ', "\ud800", '{"Prompt": 5, "Exporting …": "{x} {", "{n} tokens": "{m}"}', None]
)
def test_a_damaged_catalogue_leaves_english(qapp: object, monkeypatch: pytest.MonkeyPatch, content: str | None) -> None:
    def text(_name: str) -> str:
        if content is None:
            raise FileNotFoundError
        return content

    monkeypatch.setattr(resources, "text", text)
    try:
        told: list[str] = []
        got = i18n.set_language("zh_CN", told.append)
        assert (i18n.tr("Prompt"), i18n.tr("Exporting …")) == ("Prompt", "Exporting …")
        assert i18n.tr("{n} tokens", n=3) == "3 tokens"
        assert got == "en" or (content is not None and content.startswith('{"Prompt'))
        assert [one for one in told if "can't be read" in one] == told and bool(told) is (got == "en")
    finally:
        i18n.set_language("en")
