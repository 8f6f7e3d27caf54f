"""Exports: files made here, sent in pieces, written by the other side."""

from __future__ import annotations

from collections.abc import Iterable

from model.export.attention import export_attention
from model.export.files import ExportedFile
from model.handlers.registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.export_requests import ExportAttention, ExportReply


@handles(ExportAttention)
def attention(context: EngineContext, message: ExportAttention, job: Job) -> Answer:
    """The heat map in view; other views are served between its row blocks."""
    files = export_attention(context.need_run(), message, progress=job.progress, check=job.yield_point)
    return send(files, job), {}


def send(files: Iterable[ExportedFile], job: Job) -> ExportReply:
    """Sends each file as it is made, no faster than it is written; returns what was sent."""
    sent = []
    for file in files:
        with file:
            for part, data in file.parts():
                job.part(part, {"data": data})
            sent.append(file.info)
    return ExportReply(files=tuple(sent))
