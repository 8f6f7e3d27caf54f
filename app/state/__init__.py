"""What the window knows, apart from widgets: run, prompt, sampler, model, and what is kept against a crash."""
