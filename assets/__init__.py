"""Files the window shows: icons, style sheet, example prompts, translations; read with importlib.resources."""
