"""The interface's language: `tr` for every text a person reads, and catalogues that can be switched live.

English texts are the keys. A catalogue is a JSON object in assets/translations that maps them to another language;
it is served to Qt through a QTranslator, so Qt's own buttons can be translated by the same file.
"""

from __future__ import annotations

import json
import logging
import string
from collections.abc import Callable, Mapping

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from app import resources

log = logging.getLogger("decoderscope.app")

LANGUAGES: Mapping[str, str] = {"en": "English", "zh_CN": "简体中文"}
CONTEXT = "app"


class Words(str):
    """A text in a language, and what it says it of: it can be said `again` in another. What is made of it by joining
    or cutting is a plain str."""

    __slots__ = ("source", "values")
    source: str
    values: Mapping[str, object]


def tr(text: str, /, **values: object) -> str:
    """`text` in the current language; `{name}` places in it are filled from `values`."""
    translated = QCoreApplication.translate(CONTEXT, text)
    words = Words(translated.format(**values) if values else translated)
    words.source, words.values = text, values
    return words


def again(text: str) -> str:
    """What `tr` made, and what of it was made with `tr`, in the current language; another text as it is."""
    if not isinstance(text, Words):
        return text
    return tr(
        text.source, **{name: again(each) if isinstance(each, str) else each for name, each in text.values.items()}
    )


class CatalogueTranslator(QTranslator):
    """Serves one JSON catalogue to Qt; to a text that is not in it other translators and Qt itself have the answer."""

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
        return self._catalogue.get(text)  # type: ignore[return-value] # None: not here, where "" is an empty translation

    def isEmpty(self) -> bool:
        return not self._catalogue


_installed: list[QTranslator] = []


def resolve_language(choice: str) -> str:
    """`choice` when it is a language we have, else the one nearest to the system's."""
    if choice in LANGUAGES:
        return choice
    return "zh_CN" if QLocale.system().language() == QLocale.Language.Chinese else "en"


def load_catalogue(language: str) -> dict[str, str]:
    """The catalogue of `language`, empty for English. Raises OSError, and ValueError where it is damaged."""
    if language == "en":
        return {}
    loaded = json.loads(resources.text(f"translations/{language}.json"))
    if not isinstance(loaded, dict):
        raise ValueError("it holds no object")  # noqa: TRY004 - of the same kind as what is no JSON at all
    return {key: to for key, to in loaded.items() if isinstance(to, str) and to and _fields(key) == _fields(to)}


def _fields(text: str) -> frozenset[str] | None:
    """The names of the places in `text`; None where it has braces that are none."""
    try:
        return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)
    except ValueError:
        return None


def set_language(choice: str, tell: Callable[[str], object] = log.warning) -> str:
    """Installs a language ("" = the system's) and returns the code of the one in force, English where the other can't
    be read, which `tell` is told; widgets must be built or retranslated after."""
    language = resolve_language(choice)
    for translator in _installed:
        QCoreApplication.removeTranslator(translator)
    _installed.clear()
    try:
        catalogue = load_catalogue(language)
    except (OSError, ValueError) as error:
        log.warning("the texts in %s can't be read: %s", language, error)
        tell(tr("The texts in {language} can't be read: install the program again.", language=LANGUAGES[language]))
        return "en"
    if catalogue:
        of_qt = QTranslator()
        if of_qt.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
            _installed.append(of_qt)
        _installed.append(CatalogueTranslator(catalogue))  # asked first, as the last one installed
    for translator in _installed:
        QCoreApplication.installTranslator(translator)
    return language
