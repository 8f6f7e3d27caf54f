"""The errors both sides know by type; the window reaches them here, as it reaches all it shares with the engine."""

from model.errors import BadValueError, DecoderscopeError, shown

__all__ = ["BadValueError", "DecoderscopeError", "shown"]
