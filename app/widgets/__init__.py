"""Plain widgets: they take data and emit signals, and know neither the engine nor the session."""
