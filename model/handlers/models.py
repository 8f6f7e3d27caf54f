"""Models: what opening one would take, opening, closing, fetching."""

from __future__ import annotations

from model import loading
from model.checkpoint import catalogue
from model.checkpoint.fetch import local_path
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.engine_requests import CatalogueEntry, CloseModel, GetModel, OpenModel, PlanModel
from model.protocol.events import WeightsMapped
from model.protocol.wire import Empty
from model.threads import use_threads


@handles(PlanModel)
def plan(_context: EngineContext, message: PlanModel, _job: Job) -> Answer:
    """Headers and configuration, no weights."""
    return loading.plan_model(message.source, device=message.device, dtype=message.dtype).reply(), {}


@handles(OpenModel)
def open_model(context: EngineContext, message: OpenModel, job: Job) -> Answer:
    """The previous model and its run serve views until the new one is whole, then go."""
    if message.threads:
        use_threads(message.threads)
    opened = loading.open_model(
        message.source,
        device=message.device,
        dtype=message.dtype,
        progress=job.progress,
        check_cancel=job.yield_point,
    )
    context.run, context.model = None, opened
    context.empty_caches()
    job.event("weights.mapped", opened.mapped.told if opened.mapped is not None else WeightsMapped())
    return opened.info, {}


@handles(CloseModel)
def close(context: EngineContext, _message: CloseModel, _job: Job) -> Answer:
    """Frees the model and its run."""
    context.run = context.model = None
    context.empty_caches()
    return Empty(), {}


@handles(GetModel)
def get(_context: EngineContext, message: GetModel, job: Job) -> Answer:
    """Fetches and prepares a catalogue model."""
    entry = catalogue.get(message.name) if message.name else catalogue.DEFAULT
    loading.get_model(entry.name, progress=job.progress, check_cancel=job.yield_point)
    return catalogue_entry(entry), {}


def catalogue_entries() -> tuple[CatalogueEntry, ...]:
    """Every model that is known by name."""
    return tuple(catalogue_entry(entry) for entry in catalogue.CATALOGUE)


def catalogue_entry(entry: catalogue.Entry) -> CatalogueEntry:
    """A catalogue model and whether it is on this disk."""
    path = local_path(entry)
    return CatalogueEntry(
        name=entry.name,
        title=entry.title,
        licence=entry.licence,
        download_bytes=entry.download_bytes,
        path=str(path) if path is not None else "",
    )
