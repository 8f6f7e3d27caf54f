"""Exports: files made here, sent in pieces, written by the other side."""

from __future__ import annotations

from collections.abc import Iterable

from model.export.activations import export_activations
from model.export.attention import export_attention
from model.export.files import ExportedFile
from model.export.run_figures import export_figure
from model.export.run_file import export_run
from model.export.sheet import export_sheet
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.export_requests import ExportActivations, ExportAttention, ExportReply, ExportRun, ExportSheet
from model.protocol.figure_requests import (
    ExportKvGrowth,
    ExportLens,
    ExportRope,
    ExportSampler,
    ExportText,
    FigureRequest,
)


@handles(ExportAttention)
def attention(context: EngineContext, message: ExportAttention, job: Job) -> Answer:
    """The heat map in view; other views are served between its row blocks."""
    files = export_attention(context.need_run(), message, progress=job.progress, check=job.yield_point)
    return send(files, job), {}


@handles(ExportSheet)
def sheet(context: EngineContext, message: ExportSheet, job: Job) -> Answer:
    """The contact sheet of chosen heads."""
    files = export_sheet(context.need_run(), message, progress=job.progress, check=job.yield_point)
    return send(files, job), {}


@handles(ExportActivations)
def activations_by_name(context: EngineContext, message: ExportActivations, job: Job) -> Answer:
    """Activations by hook name."""
    files = export_activations(context.need_run(), message, check=job.yield_point)
    return send(files, job), {}


@handles(ExportRun)
def run_file(context: EngineContext, message: ExportRun, job: Job) -> Answer:
    """The run as a file."""
    files = export_run(context.need_run(), message, check=job.yield_point)
    return send(files, job), {}


@handles(ExportSampler)
@handles(ExportKvGrowth)
@handles(ExportLens)
@handles(ExportRope)
@handles(ExportText)
def figure(context: EngineContext, message: FigureRequest, job: Job) -> Answer:
    """A figure that is no heat map."""
    files = export_figure(context.need_run(), message, progress=job.progress, check=job.yield_point)
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
