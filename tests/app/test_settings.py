from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.settings import MAX_BYTES, Preferences, Settings, config_folder
from app.small_files import write_atomically


def test_what_is_changed_comes_back(tmp_path: Path, qtbot: QtBot) -> None:
    settings = Settings(tmp_path / "settings.json")
    with qtbot.waitSignal(settings.changed) as changed:
        settings.update(theme="light", text_scale=1.5)
    assert changed.args == [frozenset({"theme", "text_scale"})]
    settings.update_panel("export", dpi=300)
    settings.add_recent("a")
    settings.add_recent("b")
    settings.add_recent("a")
    settings.save()
    again = Settings(tmp_path / "settings.json")
    assert (again.values.theme, again.values.text_scale) == ("light", 1.5)
    assert again.panel("export") == {"dpi": 300}
    assert again.values.recent_models == ("a", "b")
    assert again.notices == []


@pytest.mark.usefixtures("qapp")
def test_names_of_files_that_are_no_utf8_come_back(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "settings.json")
    named = os.fsdecode(b"/models/\xff\xfe-\xe6\xa8\xa1")
    settings.update(last_folder=named)
    settings.add_recent(named)
    settings.save()
    again = Settings(tmp_path / "settings.json")
    assert (again.values.last_folder, again.values.recent_models) == (named, (named,))
    assert again.notices == []


def test_it_saves_by_itself_soon(tmp_path: Path, qtbot: QtBot) -> None:
    settings = Settings(tmp_path / "settings.json")
    settings.update(language="zh_CN")
    qtbot.waitUntil((tmp_path / "settings.json").exists)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"theme": 7}',
        b'{"version": 99, "theme": "light"}',
        b'{"version": "x"}',
        b'{"text_scale": NaN}',
        b'{"panels": {"lens": {"width": 1e999}}}',
        b"[" * 100_000,
        b" " * (MAX_BYTES + 1),
    ],
    ids=["empty", "cut", "list", "not-utf8", "wrong-type", "newer", "bad-version", "nan", "overflow", "nested", "huge"],
)
def test_a_bad_file_gives_defaults_a_notice_and_a_backup(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    settings = Settings(path)
    assert settings.values == type(settings.values)()
    (backup,) = tmp_path.glob("settings.backup-*.json")
    assert backup.read_bytes() == content
    assert len(settings.notices) == 1
    assert str(backup) in settings.notices[0]
    settings.update(theme="dark")
    settings.save()
    assert json.loads(path.read_text())["theme"] == "dark"


def make_odd(path: Path, kind: str) -> None:
    """Something at `path` that is no file, or a file without end."""
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "zero":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
@pytest.mark.parametrize(("kind", "words"), [("fifo", "a named pipe"), ("zero", "a device"), ("folder", "a folder")])
def test_what_is_no_file_is_set_aside_without_waiting(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / "settings.json"
    make_odd(path, kind)
    settings = Settings(path)
    assert settings.values == Preferences()
    [notice] = settings.notices
    assert words in notice and "is kept as" in notice
    settings.save()
    assert Settings(path).notices == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_nothing_waits_where_a_temporary_file_would_be(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f".a.{os.getpid()}.tmp")
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("geometry", "a"),
        ("geometry", "é"),
        ("layout", "a"),
        ("layout", "\udcff"),
        ("layout", "YWJj!"),
        ("theme", "<b>"),
        ("threads", -5),
        ("threads", 2**70),
        ("prefill_chunk", -1),
        ("budget_bytes", 2**80),
    ],
)
def test_a_field_that_cannot_be_used_is_its_default_with_a_notice_and_a_backup(
    tmp_path: Path, field: str, value: object
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"version": 1, "language": "zh_CN", field: value}))
    settings = Settings(path)
    assert settings.values == replace(Preferences(), language="zh_CN")
    (backup,) = tmp_path.glob("settings.backup-*.json")
    assert backup.read_bytes() == path.read_bytes()
    [notice] = settings.notices
    assert field in notice and str(backup) in notice


def test_layouts_that_are_none_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"layouts": {"mine": "YWJj", "<b>x": "a", "": "é"}}))
    settings = Settings(path)
    assert settings.values.layouts == {"mine": "YWJj"}
    assert all(name in settings.notices[0] for name in ("layouts['<b>x']", "layouts['']"))


def test_a_bad_file_with_braces_in_its_error_is_told_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "{odd} name"
    folder.mkdir()
    (folder / "settings.json").write_text("{")
    assert "{odd} name" in Settings(folder / "settings.json").notices[0]


def test_a_folder_that_is_a_file_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "deeper").write_text("in the way")
    _check_unwritable(tmp_path / "deeper" / "settings.json")


def _check_unwritable(path: Path) -> None:
    settings = Settings(path)
    read_notices = len(settings.notices)
    settings.update(theme="light")
    settings.save()
    settings.update(theme="dark")
    settings.save()
    assert settings.values.theme == "dark"
    assert len(settings.notices) == read_notices + 1


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["settings.json"]


def test_the_folder_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path))
    assert config_folder() == tmp_path
