"""One file an area of requests; a line here registers it. Importing this imports torch."""

from model.handlers import engine, models, registry, runs, sampling, text

__all__ = ["engine", "models", "registry", "runs", "sampling", "text"]
