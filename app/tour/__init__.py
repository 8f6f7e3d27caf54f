"""`decoderscope tour`: the real window walks the main job by itself, by key presses and clicks, and leaves pictures.

It is what `make run` does where there is no display, and a smoke test of the whole program.
"""
