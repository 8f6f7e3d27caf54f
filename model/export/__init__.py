"""What leaves the program: figures, tables, run files. Pure functions of plain values, then of a run.

Importing this package loads no drawing library: each figure's file does.
"""
