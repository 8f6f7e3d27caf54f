"""What is known of an engine that is gone: how it ended, when, with which model and memory, and what it wrote last."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from app.frame.statusbar import memory_tip
from app.i18n import tr
from app.notify import Trouble
from app.settings import log_folder

if TYPE_CHECKING:
    from app.engine import CrashInfo
    from app.session import Session

LOG = "decoderscope.log"


def crash_trouble(crash: CrashInfo, session: Session) -> Trouble:
    """An error whose details stand open: the sentence itself is in the window already."""
    return Trouble(
        title=tr("The engine stopped"), message=crash.sentence, details=crash_details(crash, session), expanded=True
    )


def crash_details(crash: CrashInfo, session: Session) -> str:
    """Line by line what a report of it needs."""
    how = crash.signal or (tr("exit code {code}", code=crash.exit_code) if crash.exit_code is not None else "–")
    rows = [
        (tr("ended by"), how),
        (tr("time"), time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(crash.at))),
    ]
    if session.hello is not None:
        rows.append((tr("process"), str(session.hello.pid)))
    if (model := session.model) is not None:
        rows.append((tr("model"), f"{model.name} · {model.dtype} · {model.device}"))
    rows += [(tr("tokens"), f"{session.length:,}"), (tr("log file"), str(log_folder() / LOG))]
    lines = [f"{name}: {value}" for name, value in rows]
    if memory := memory_tip(session):
        lines += ["", tr("Memory as it was last measured:"), memory]
    return "\n".join([*lines, "", tr("What the engine wrote last:"), crash.stderr.strip() or tr("(nothing)")])
