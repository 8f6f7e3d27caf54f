"""One file an area of requests; a line here registers it. Importing this imports torch."""

from model.handlers import (
    attention,
    card,
    checks,
    engine,
    exports,
    feed_forward,
    kv,
    lens,
    models,
    prompt,
    rope,
    run_files,
    runs,
    sampling,
    text,
    walk,
)

__all__ = [
    "attention",
    "card",
    "checks",
    "engine",
    "exports",
    "feed_forward",
    "kv",
    "lens",
    "models",
    "prompt",
    "rope",
    "run_files",
    "runs",
    "sampling",
    "text",
    "walk",
]
