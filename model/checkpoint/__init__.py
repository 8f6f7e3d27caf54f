"""How models are opened: what a file is, whether it can be trusted, what it holds, and its weights in the decoder.

The order is cheap first: regular file and size, first bytes, bounded header, configuration, plan, weights, finite scan.
Nothing in a model's file is ever executed.
"""
