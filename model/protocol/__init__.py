"""The language between the window and the engine: framing, the envelope, values, one file of requests an area.

Imported by both sides, so it imports neither torch nor Qt. A new area is a file here and a line below, which is what
registers its requests.
"""

from model.protocol import (
    attention_requests,
    card_requests,
    engine_requests,
    errors,
    events,
    export_requests,
    feed_forward_requests,
    figure_requests,
    framing,
    kv_requests,
    lens_requests,
    rope_requests,
    run_file_requests,
    run_requests,
    values,
    walk_requests,
    wire,
)

__all__ = [
    "attention_requests",
    "card_requests",
    "engine_requests",
    "errors",
    "events",
    "export_requests",
    "feed_forward_requests",
    "figure_requests",
    "framing",
    "kv_requests",
    "lens_requests",
    "rope_requests",
    "run_file_requests",
    "run_requests",
    "values",
    "walk_requests",
    "wire",
]
