"""Attention of the run there is: rectangles, cells, rows, columns, entropies, the grid of heads, their metrics."""

from __future__ import annotations

from model.device import Stopwatch
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.attention_requests import (
    GetCell,
    GetColumn,
    GetEntropy,
    GetGrid,
    GetMatrix,
    GetMetrics,
    GetRow,
    GridPart,
    GridReply,
)
from model.views.attention import cell_reply, column_reply, entropy_reply, matrix_reply, row_reply
from model.views.head_grid import grid_layer, grid_layers, metrics_reply


@handles(GetMatrix)
def matrix(context: EngineContext, message: GetMatrix, job: Job) -> Answer:
    """A rectangle of a head's matrix as pixels."""
    return matrix_reply(context.need_run(), message, yield_point=job.yield_point)


@handles(GetCell)
def cell(context: EngineContext, message: GetCell, _job: Job) -> Answer:
    """One exact value."""
    return cell_reply(context.need_run(), message), {}


@handles(GetRow)
def row(context: EngineContext, message: GetRow, _job: Job) -> Answer:
    """What one query reads."""
    return row_reply(context.need_run(), message)


@handles(GetColumn)
def column(context: EngineContext, message: GetColumn, job: Job) -> Answer:
    """Who reads one key."""
    return column_reply(context.need_run(), message, yield_point=job.yield_point)


@handles(GetEntropy)
def entropy(context: EngineContext, message: GetEntropy, job: Job) -> Answer:
    """The entropy of every row."""
    return entropy_reply(context.need_run(), message, yield_point=job.yield_point)


@handles(GetGrid)
def grid(context: EngineContext, message: GetGrid, job: Job) -> Answer:
    """Every head of every layer asked for, a layer at a time."""
    run = context.need_run()
    watch = Stopwatch(run.device)
    for layer in grid_layers(run, message):
        job.yield_point()
        job.part(GridPart(layer=layer), grid_layer(run, message, layer, yield_point=job.yield_point))
    ms = watch.ms() - job.away_ms
    return GridReply(run_id=run.id, length=run.length, size=message.size, ms=ms), {}


@handles(GetMetrics)
def metrics(context: EngineContext, _message: GetMetrics, job: Job) -> Answer:
    """Measures of every head."""
    return metrics_reply(context.need_run(), yield_point=job.yield_point, progress=job.progress)
