"""The numbers of a live run, for exports."""

from __future__ import annotations

from model.export.attention import Tile
from model.export.raster import Float32
from model.export.under_way import Check, Report, nothing
from model.protocol.attention_requests import HeadView, Stage
from model.run import Run
from model.views.attention import matrix
from model.views.attention_exact import exact, exact_heads
from model.views.selection import Chosen, chosen


class RunSource:
    """A run's matrices. `check` is called between blocks of rows and may raise to end the work; `progress` is told how
    many of a picture's rows are done."""

    def __init__(self, run: Run, *, check: Check, progress: Report = nothing) -> None:
        self._run, self._check, self._progress = run, check, progress

    def exact(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int]) -> Float32:
        """(t, S) float32, NaN where masked: what a hover shows."""
        return exact(self._run, chosen(self._run, view), rows, cols, yield_point=self._check)

    def heads(self, layer: int, heads: tuple[int, ...], stage: Stage, rows: tuple[int, int]) -> Float32:
        """`exact` of each head, (H, t, S), over all keys."""
        views = Chosen(layers=(layer,), heads=heads, stage=stage, maximum=False)
        return exact_heads(self._run, views, rows, yield_point=self._check)

    def pooled(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int], height: int, width: int) -> Tile:
        """The rectangle on at most height × width cells, and its extremes: what the window draws."""

        def reached(row: int) -> None:
            if height * width > 1:  # one cell is an extreme, looked for beside the picture
                self._progress("rows", row - rows[0], rows[1] - rows[0], "rows")

        pixels = (height, width)
        tile = matrix(self._run, view, rows=rows, cols=cols, pixels=pixels, reached=reached, yield_point=self._check)
        return Tile(values=tile.values, low=tile.low, high=tile.high)
