"""The files of any export request: the one way for the engine, the command line and the notebook."""

from __future__ import annotations

from collections.abc import Iterator

from model.errors import UnknownNameError
from model.export.activation_files import export_activations
from model.export.attention import export_attention
from model.export.files import ExportedFile
from model.export.run_figures import export_figure
from model.export.run_file import export_run
from model.export.sheet import export_sheet
from model.export.under_way import Check, Report, nothing
from model.protocol.export_requests import ExportActivations, ExportAttention, ExportRun, ExportSheet, FileRequest
from model.protocol.figure_requests import FigureRequest
from model.run import Run


def make_files(
    run: Run, message: FileRequest, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """The files of `message`, one at a time; the caller closes each before it takes the next. `progress` and `check`
    (which may raise to end it) are called now and then. What can be refused is refused before anything is made: see
    the exporters."""
    run.model.require_weights()  # where an engine serves this it looks itself
    if isinstance(message, ExportAttention):
        return export_attention(run, message, progress=progress, check=check)
    if isinstance(message, ExportSheet):
        return export_sheet(run, message, progress=progress, check=check)
    if isinstance(message, ExportActivations):
        return export_activations(run, message, progress=progress, check=check)
    if isinstance(message, FigureRequest):
        return export_figure(run, message, progress=progress, check=check)
    if isinstance(message, ExportRun):
        return export_run(run, message, progress=progress, check=check)
    raise UnknownNameError("export", message.method, ())
