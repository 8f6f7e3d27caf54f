"""Requests about run files (`.dscope`): opening one, and what saving one would take. ExportRun saves."""

from __future__ import annotations

from dataclasses import dataclass

from model.protocol.export_requests import RunContents
from model.protocol.run_requests import StepPart
from model.protocol.values import ModelInfo, RunState, Token
from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class RunFileInfo:
    """What is in a run file, read without opening it: of which model (`source`: where it was opened from), how much."""

    model: str
    source: str
    sha256: str
    dtype: str
    contents: RunContents
    n_prompt: int
    steps: int
    size: int
    text: str


@request("run.peek", RunFileInfo, lane="view")
@dataclass(frozen=True, kw_only=True)
class PeekRun(Request):
    """Reads the record of the run file at `path` on the engine's disk, or of the one beside the request (OpenRun)."""

    path: str = ""


@dataclass(frozen=True, kw_only=True)
class OpenRunReply:
    """The run of a file, now the engine's: its state, its prompt's tokens and their text, `prompt` as typed, the model.
    `recorded`: that model is not open, `model` only tells of it, and nothing can be computed anew. `other`: another
    model was open, and was closed for this."""

    state: RunState
    tokens: tuple[Token, ...]
    text: str
    prompt: str
    model: ModelInfo
    recorded: bool
    other: bool = False


@request("run.open", OpenRunReply, part=StepPart)
@dataclass(frozen=True, kw_only=True)
class OpenRun(Request):
    """Opens the run file at `path` on the engine's disk, or, without a path, the one that travels beside the request in
    the array `data` uint8 (n,). With the model it was made with open in the same dtype, the run goes on; otherwise it
    is looked at with its recorded numbers, and the model that was open is closed. A file of text alone is run again,
    in the dtype of the open model. Error code `run_needs_model`: the file holds too little to be looked at."""

    path: str = ""


@dataclass(frozen=True, kw_only=True)
class RunSizesReply:
    """Bytes of a run file by its contents; -1 where this run does not have them."""

    text: int
    attention: int
    all: int


@request("run.sizes", RunSizesReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetRunSizes(Request):
    """What ExportRun would write of the current run."""
