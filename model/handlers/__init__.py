"""One file an area of requests; a line here registers it. Importing this imports torch."""

from model.handlers import engine, exports, models, registry, runs, sampling, text

__all__ = ["engine", "exports", "models", "registry", "runs", "sampling", "text"]
