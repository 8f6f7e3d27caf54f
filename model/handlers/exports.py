"""Exports: files made here, sent in pieces, written by the other side."""

from __future__ import annotations

from collections.abc import Iterable

from model.export.files import ExportedFile
from model.export.making import make_files
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.export_requests import (
    ExportActivations,
    ExportAttention,
    ExportReply,
    ExportRun,
    ExportSheet,
    FileRequest,
)
from model.protocol.figure_requests import ExportKvGrowth, ExportLens, ExportRope, ExportSampler, ExportText


@handles(ExportActivations)
@handles(ExportAttention)
@handles(ExportKvGrowth)
@handles(ExportLens)
@handles(ExportRope)
@handles(ExportRun)
@handles(ExportSampler)
@handles(ExportSheet)
@handles(ExportText)
def export(context: EngineContext, message: FileRequest, job: Job) -> Answer:
    """Whatever is asked for; other views are served between its blocks of rows."""
    return send(make_files(context.need_run(), message, progress=job.progress, check=job.yield_point), job), {}


def send(files: Iterable[ExportedFile], job: Job) -> ExportReply:
    """Sends each file as it is made, no faster than it is written; returns what was sent."""
    sent = []
    for file in files:
        with file:
            for part, data in file.parts():
                job.part(part, {"data": data})
            sent.append(file.info)
    return ExportReply(files=tuple(sent))
