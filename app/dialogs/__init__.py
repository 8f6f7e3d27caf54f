"""What opens over the window: errors, opening a model, preferences, keys, about."""
