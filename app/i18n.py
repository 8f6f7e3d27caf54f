"""The interface's language: `tr` for every text a person reads, and catalogues that can be switched live.

English texts are the keys. A catalogue is a JSON object in assets/translations that maps them to another language;
it is served to Qt through a QTranslator, so Qt's own buttons can be translated by the same file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication, QLocale, QTranslator

from app import resources

LANGUAGES: Mapping[str, str] = {"en": "English", "zh_CN": "简体中文"}
CONTEXT = "app"


def tr(text: str, /, **values: object) -> str:
    """`text` in the current language; `{name}` places in it are filled from `values`."""
    translated = QCoreApplication.translate(CONTEXT, text)
    return translated.format(**values) if values else translated


class CatalogueTranslator(QTranslator):
    """Serves one JSON catalogue to Qt."""

    def __init__(self, catalogue: Mapping[str, str]) -> None:
        super().__init__()
        self._catalogue = catalogue

    def translate(
        self,
        context: str | bytes,  # noqa: ARG002 - Qt's signature; our catalogues have one context
        source_text: str | bytes,
        disambiguation: str | bytes | None = None,  # noqa: ARG002
        n: int = -1,  # noqa: ARG002
    ) -> str:
        text = source_text.decode("utf-8", "replace") if isinstance(source_text, bytes) else source_text
        return self._catalogue.get(text, "")

    def isEmpty(self) -> bool:
        return not self._catalogue


_installed: CatalogueTranslator | None = None


def resolve_language(choice: str) -> str:
    """`choice` when it is a language we have, else the one nearest to the system's."""
    if choice in LANGUAGES:
        return choice
    return "zh_CN" if QLocale.system().language() == QLocale.Language.Chinese else "en"


def load_catalogue(language: str) -> dict[str, str]:
    """The catalogue of `language`, empty for English."""
    if language == "en":
        return {}
    loaded = json.loads(resources.text(f"translations/{language}.json"))
    return {str(key): str(value) for key, value in loaded.items()}


def set_language(choice: str) -> str:
    """Installs a language ("" = the system's) and returns its code; widgets must be built or retranslated after."""
    global _installed  # noqa: PLW0603 - Qt's translators are global to the application too
    language = resolve_language(choice)
    if _installed is not None:
        QCoreApplication.removeTranslator(_installed)
        _installed = None
    catalogue = load_catalogue(language)
    if catalogue:
        _installed = CatalogueTranslator(catalogue)
        QCoreApplication.installTranslator(_installed)
    return language
