"""Every head of every layer as a thumbnail: KV groups under brackets, filled in as layers come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QWidget

from app.i18n import tr
from app.widgets.head_grid_layout import ROW_GAP, GridLayout, Head, by_layer, by_rank
from app.widgets.head_grid_marks import draw_key, draw_key_upright, key_width, largest, shares, tint, tints
from app.widgets.head_grid_numbers import draw_header, draw_layer_numbers, header_height, number_pitch
from app.widgets.heatmap_image import colour_table
from app.widgets.pointed_sheet import PointedSheet
from app.widgets.thumbnails import fit_stack
from app.widgets.ticks import short

if TYPE_CHECKING:
    from app.theme import Theme

Key = Qt.Key
MOST_PIXELS = 48
"""Of a thumbnail a side: larger ones are drawn from as many."""
LABELS_APART, KEY_AWAY = 6.0, 12.0
"""Px at least between the names of sorted heads, and from the heads to a key beside them."""


def name_of(layer: int, head: int) -> str:
    """A head in a few letters: "L18 H8"."""
    return f"L{layer} H{head}"


class HeadGrid(PointedSheet[Head]):
    """`headClicked(layer, head)` by mouse or keys; `headHovered`, -1, -1 for none; `layersWanted` when layers came
    into sight whose thumbnails are not here: see `missing()`; `tableWanted` by a right click's menu. Setters emit
    nothing but `layersWanted`."""

    headClicked = Signal(int, int)
    headHovered = Signal(int, int)
    layersWanted = Signal()
    tableWanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, tr("All heads"), parent)
        self._n_layers, self._n_heads, self._group = 0, 0, 1
        self._thumbs: dict[int, NDArray[np.uint8]] = {}
        self._enough: dict[int, int] = {}  # up to so many pixels a side
        self._strips: dict[int, tuple[QImage, NDArray[np.uint32]]] = {}
        self._stale: set[int] = set()
        self._signed = False
        self._lut: NDArray[np.uint8] = np.zeros((256, 4), dtype=np.uint8)
        self._metric: NDArray[np.float32] | None = None
        self._tints: NDArray[np.uint32] | None = None
        self._metric_name, self._unit, self._sorted = "", "", False
        self._selected: Head | None = None
        self._layout_now: GridLayout | None = None
        self.verticalScrollBar().valueChanged.connect(self.layersWanted)
        theme.changed.connect(self._restyle)

    # state → widget

    def set_shape(self, n_layers: int, n_heads: int, n_kv_heads: int) -> None:
        """How many layers and heads there are and how many of them share a KV head."""
        shape = (n_layers, n_heads, n_heads // max(n_kv_heads, 1))
        if shape != (self._n_layers, self._n_heads, self._group):
            self._n_layers, self._n_heads, self._group = shape
            self._thumbs.clear()
            self._enough.clear()
            self._strips.clear()
            self._metric = self._tints = None
            self._relayout()

    def set_lut(self, lut: NDArray[np.uint8], *, signed: bool = False) -> None:
        """Colours of the pixels, as for a heat map."""
        self._lut, self._signed = lut, signed
        self._strips.clear()
        self.viewport().update()

    def set_layer(self, layer: int, pixels: NDArray[np.uint8], *, enough: int | None = None) -> None:
        """The thumbnails of one layer, uint8 (heads, h, w); drawn with more than `enough` pixels a side (default: any
        number) they are to be asked for again."""
        self._thumbs[layer] = pixels
        self._enough[layer] = MOST_PIXELS if enough is None else enough
        self._strips.pop(layer, None)
        self._stale.discard(layer)
        if self._sorted:
            self.viewport().update()
        else:  # layer after layer, token after token: not all of it each time
            row = self.head_rect(layer, 0).united(self.head_rect(layer, self._n_heads - 1))
            self.viewport().update(row.adjusted(-4, -4, 4, 4).toAlignedRect())

    @property
    def blank(self) -> bool:
        """Whether no thumbnail has come yet."""
        return not self._thumbs

    def make_stale(self) -> None:
        """Every thumbnail is of an older state: they stay in sight until the new ones come."""
        self._stale = set(range(self._n_layers))

    def clear(self) -> None:
        """Forgets every thumbnail."""
        self._stale.clear()
        self._thumbs.clear()
        self._enough.clear()
        self._strips.clear()
        self.viewport().update()

    def set_metric(
        self, values: NDArray[np.float32] | None, name: str = "", *, unit: str = "", sort: bool = False
    ) -> None:
        """(layers, heads) to mark heads with, largest first when sorted; None: no marks, by layer."""
        sort = sort and values is not None
        same = values is self._metric or (
            values is not None and self._metric is not None and np.array_equal(values, self._metric, equal_nan=True)
        )
        if same and (name, sort) == (self._metric_name, self._sorted):
            return
        again = sort or self._sorted or (values is None) != (self._metric is None)
        self._metric, self._metric_name, self._unit, self._sorted = values, name, unit, sort
        self._colour_marks()
        if again:
            self._relayout()
            if self._selected is not None:
                self._reveal(self._selected)
        self.viewport().update()

    @property
    def measure(self) -> tuple[str, NDArray[np.float32]] | None:
        """What heads are marked with: its name and (layers, heads)."""
        return None if self._metric is None else (self._metric_name, self._metric)

    def set_selected(self, layer: int | None, head: int | None) -> None:
        """The head that is looked at; with a layer only (mean, max), the layer's row."""
        chosen = None if layer is None else (layer, -1 if head is None else head)
        if chosen != self._selected:
            self._selected = chosen
            self.setAccessibleDescription("" if chosen is None else self.describe(*chosen))
            if chosen is not None:
                self._reveal(chosen)
            self.viewport().update()

    # what is in sight

    def missing(self) -> tuple[int, ...]:
        """Layers in sight without thumbnails of the present state and size, the chosen one's first."""
        if not self._n_layers:
            return ()
        layers = self._layout().layers_between(*self._span())
        size, stale = self.thumbnail_pixels(), self._stale
        wanted = [layer for layer in layers if layer in stale or self._enough.get(layer, 0) < size]
        first = self._selected[0] if self._selected else -1
        return tuple(sorted(wanted, key=lambda layer: (layer != first, layer)))

    def drawn(self) -> tuple[int, int]:
        """Of how many layers in sight the thumbnails are of the present state, whatever their size; and how many are
        in sight."""
        layers = self._layout().layers_between(*self._span()) if self._n_layers else []
        return sum(layer in self._thumbs and layer not in self._stale for layer in layers), len(layers)

    def thumbnail_pixels(self) -> int:
        """Pixels worth asking for of a thumbnail's longer side."""
        return min(max(self._thumbnail_size()), MOST_PIXELS)

    def room_for(self, width: int, height: int) -> tuple[float, float]:
        """Px of a thumbnail's side if the grid, by layer, had that room, and of the height it would take of it."""
        layout = self._by_layer(width - 2, height)
        return layout.side, min(layout.height_with(ROW_GAP), height)

    def head_rect(self, layer: int, head: int) -> QRectF:
        """Where a thumbnail is drawn, in the viewport."""
        return self._layout().rect(layer, head).translated(-self._scroll())

    def thing_at(self, point: QPointF) -> Head | None:
        layout = self._layout()
        if not layout.header <= point.y() < layout.header + layout.rows_in(self.viewport().height()) * layout.pitch:
            return None
        return layout.at(point + self._scroll())

    def describe(self, layer: int, head: int) -> str:
        """A head in words, with its measure."""
        if head < 0:
            return tr("Layer {layer}", layer=layer)
        text = tr("Layer {layer} · Head {head} · KV {kv}", layer=layer, head=head, kv=head // max(self._group, 1))
        if self._metric is not None:
            text += f" · {self._metric_name} {short(float(self._metric[layer, head]))} {self._unit}".rstrip()
        return text

    def sizeHint(self) -> QSize:
        return QSize(220, 320)

    def minimumSizeHint(self) -> QSize:
        return QSize(110, 90)

    # events

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._n_layers:
            return
        painter, layout, dirty = QPainter(self.viewport()), self._layout(), event.rect()
        hint = self._theme.font("hint")
        painter.setFont(hint)
        offset, (first, last) = self._scroll(), self._span()
        top, bottom = max(first, offset.y() + dirty.top()), min(last, offset.y() + dirty.bottom() + 1)
        if not self._sorted:
            layers = layout.layers_between(top, bottom)
            self._paint_layers(painter, layout, offset, layers)
            draw_layer_numbers(
                painter, self._theme, layout, offset, layers, self._selected[0] if self._selected else -1
            )
        for layer, head in layout.heads_between(top, bottom) if self._sorted else ():
            self._paint_ranked(painter, layer, head, layout.rect(layer, head).translated(-offset))
        self._paint_frames(painter)
        if self._metric is not None:
            self._paint_key(painter, layout, self._metric)
        if dirty.top() <= layout.header and not self._sorted:
            draw_header(painter, self._theme, layout, offset, self._selected[1] if self._selected else -1)

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._relayout()
        if self._selected is not None:
            self._reveal(self._selected)
        self.layersWanted.emit()

    def choose(self, thing: Head) -> None:
        self.set_selected(*thing)
        self.headClicked.emit(*thing)

    def say_hovered(self, thing: Head | None) -> None:
        self.headHovered.emit(*(thing or (-1, -1)))

    def tip_of(self, thing: Head) -> str:
        return self.describe(*thing)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Show as table"), self.tableWanted.emit)
        menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        here = self._selected or (0, 0)
        here = (here[0], max(here[1], 0))
        layout = self._layout()
        page = max(1, layout.rows_in(self.viewport().height()) - 1)
        steps = {
            Key.Key_Left: (0, -1), Key.Key_Right: (0, 1), Key.Key_Up: (-1, 0), Key.Key_Down: (1, 0),
            Key.Key_PageUp: (-page, 0), Key.Key_PageDown: (page, 0), Key.Key_Home: (0, -self._n_heads),
            Key.Key_End: (0, self._n_heads),
        }  # fmt: skip
        step = steps.get(Key(event.key()))
        if step is None or not self._n_layers:
            event.ignore()
            return
        self.choose(layout.moved(here, *step))

    # inside

    def _paint_ranked(self, painter: QPainter, layer: int, head: int, rect: QRectF) -> None:
        """A head out of its layer's row, with its name under it."""
        strip, (height, width) = self._strip(layer), self._thumbnail_size()
        if strip is None:
            painter.fillRect(rect, self._theme.palette.masked)
        else:
            painter.drawImage(rect, strip, QRectF(self._strip_offset(head), 0, width, height))
        painter.setPen(self._theme.palette.secondary)
        step = self._layout().step
        label = QRectF(rect.center().x() - step / 2, rect.bottom() + 3, step, self._theme.px(14))
        painter.drawText(label, Qt.AlignmentFlag.AlignCenter, name_of(layer, head))

    def _paint_key(self, painter: QPainter, layout: GridLayout, metric: NDArray[np.float32]) -> None:
        top = largest(metric)
        if not layout.key:
            draw_key_upright(painter, self._theme, QPointF(layout.width + KEY_AWAY, layout.header), top, self._unit)
            return
        left = 6.0 if self._sorted else layout.left
        place = QRectF(left, 0, self.viewport().width() - left - 2, layout.key)
        draw_key(painter, self._theme, place, top, self._unit, self.rank_words())

    def rank_words(self) -> str:
        """Where the chosen head stands among all of them when they are sorted, as it may be out of sight."""
        if not self._sorted or self._selected is None or self._selected[1] < 0:
            return ""
        layer, head = self._selected
        return tr("{head}: {rank} of {n}", head=name_of(layer, head), rank=self._layout().rank(layer, head) + 1,
                  n=f"{self._n_layers * self._n_heads:,}")  # fmt: skip

    def _key_height(self) -> float:
        """Px of the line that says what the marks stand for; none without marks."""
        return 0.0 if self._metric is None else math.ceil(QFontMetricsF(self._theme.font("hint")).height()) + 3.0

    def _colour_marks(self) -> None:
        colours = self._theme.palette
        self._tints = None if self._metric is None else tints(colours.masked, colours.secondary, shares(self._metric))
        self._strips.clear()

    def _paint_frames(self, painter: QPainter) -> None:
        colours = self._theme.palette
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pointed = self.hovered
        if pointed is not None and pointed != self._selected and self._is_in_sight(*pointed):
            painter.setPen(QPen(colours.text, 1.2))
            painter.drawRoundedRect(self.head_rect(*pointed).adjusted(-1, -1, 1, 1), 2, 2)
        if self._selected is None or not self._n_layers:
            return
        layer, head = self._selected
        if not self._is_in_sight(layer, max(head, 0)):
            return
        if head >= 0:
            rect = self.head_rect(layer, head)
        elif self._sorted:
            return
        else:
            rect = self.head_rect(layer, 0).united(self.head_rect(layer, self._n_heads - 1))
        halo = QColor(colours.accent)
        halo.setAlphaF(0.35)
        if self.hasFocus():
            painter.setPen(QPen(halo, 5))
            painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 2), 3, 3)
        painter.setPen(QPen(colours.accent, 2))
        painter.drawRoundedRect(rect.adjusted(-1.5, -1.5, 1.5, 1.5), 2.5, 2.5)

    def _paint_layers(self, painter: QPainter, layout: GridLayout, offset: QPointF, layers: Sequence[int]) -> None:
        """A layer is one picture: a thousand thumbnails are as many draws as there are layers in sight."""
        for layer in layers:
            place = layout.rect(layer, 0).topLeft() - offset
            strip = self._strip(layer)
            if strip is not None:
                painter.drawImage(place, strip)
                continue
            for head in range(self._n_heads):
                painter.fillRect(layout.rect(layer, head).translated(-offset), self._theme.palette.masked)

    def _strip_offset(self, head: int) -> int:
        """Screen pixels from the left of a layer's picture to a thumbnail."""
        layout = self._layout()
        if layout.order is not None:
            return head * self._thumbnail_size()[1]
        return round((layout.rect(0, head).left() - layout.left) * self.devicePixelRatioF())

    def _strip(self, layer: int) -> QImage | None:
        """A layer's thumbnails side by side with their gaps, coloured, at screen resolution."""
        if layer not in self._strips:
            thumbs = self._thumbs.get(layer)
            if thumbs is None:
                return None
            (height, thumb), heads = self._thumbnail_size(), min(len(thumbs), self._n_heads)
            fitted = fit_stack(thumbs[:heads], (height, thumb), signed=self._signed)
            small = colour_table(self._lut, QColor(self._theme.palette.masked))[fitted]  # (heads, height, thumb)
            if self._tints is not None:
                tint(small, fitted, self._tints[layer, :heads])
            width = self._strip_offset(heads - 1) + thumb
            colours = np.full((height, width), self._theme.palette.panel.rgb(), dtype=np.uint32)
            for head in range(heads):
                start = self._strip_offset(head)
                colours[:, start : start + thumb] = small[head]
            image = QImage(colours.data, width, height, 4 * width, QImage.Format.Format_RGB32)
            image.setDevicePixelRatio(self.devicePixelRatioF())
            self._strips[layer] = (image, colours)
        return self._strips[layer][0]

    def _thumbnail_size(self) -> tuple[int, int]:
        """Screen pixels of a thumbnail's height and width."""
        layout, ratio = self._layout(), self.devicePixelRatioF()
        return max(1, round(layout.side * ratio)), max(1, round(layout.side * ratio))

    def _layout(self) -> GridLayout:
        if self._layout_now is None:
            # Where no row is out of sight there is no scroll bar to leave room for.
            self._layout_now = self._lay_out(self.width() - 2)
            if self._layout_now.rows > self._layout_now.rows_in(self.height()):
                self._layout_now = self._lay_out(self.width() - 2 - self.verticalScrollBar().sizeHint().width())
        return self._layout_now

    def _lay_out(self, width: int) -> GridLayout:
        metrics = QFontMetricsF(self._theme.font("hint"))
        if self._sorted and self._metric is not None:
            return by_rank(
                self._metric, width=width, side=self._theme.px(30), label=metrics.height() + 4,
                header=self._key_height() + 4, key=self._key_height(),
                least=metrics.horizontalAdvance(name_of(self._n_layers - 1, self._n_heads - 1)) + LABELS_APART,
            )  # fmt: skip
        return self._by_layer(width, self.height())

    def _by_layer(self, width: int, height: int) -> GridLayout:
        """The key of marks stands over the heads, or beside them where it would put layers out of sight."""
        over = self._under_key(width, height, self._key_height())
        if self._metric is None or over.rows <= over.rows_in(height):
            return over
        beside = self._under_key(width, height, 0.0)
        right = beside.width + KEY_AWAY + key_width(self._theme, largest(self._metric), self._unit)
        return beside if beside.rows <= beside.rows_in(height) and right <= width else over

    def _under_key(self, width: int, height: int, key: float) -> GridLayout:
        metrics = QFontMetricsF(self._theme.font("hint"))
        return by_layer(
            (self._n_layers, self._n_heads), self._group, width=width, height=height, gap=ROW_GAP, key=key,
            left=metrics.horizontalAdvance(str(max(self._n_layers - 1, 0))) + 8,
            header=key + header_height(metrics, grouped=self._group > 1), line=number_pitch(metrics),
        )  # fmt: skip

    def _scroll(self) -> QPointF:
        """By whole rows down: none is cut at the brackets."""
        pitch = self._layout().pitch
        return QPointF(self.horizontalScrollBar().value(), round(self.verticalScrollBar().value() / pitch) * pitch)

    def _span(self) -> tuple[float, float]:
        """The heights of the sheet between which rows show, whole ones only."""
        layout = self._layout()
        top = layout.header + self._scroll().y()
        return top, top + layout.rows_in(self.viewport().height()) * layout.pitch

    def _is_in_sight(self, layer: int, head: int) -> bool:
        rect, (top, bottom) = self._layout().rect(layer, head), self._span()
        return rect.top() >= top - 0.5 and rect.bottom() <= bottom + 0.5

    def _relayout(self) -> None:
        self._layout_now = None
        self._strips.clear()
        layout = self._layout()
        fits = layout.rows <= layout.rows_in(self.height()) and layout.width <= self.width()
        viewport = self.size() if fits else self.viewport().size()  # what a bar that goes leaves free is free
        shown = layout.rows_in(viewport.height())
        for bar, size, room in (
            (self.verticalScrollBar(), math.ceil(layout.rows * layout.pitch), math.ceil(shown * layout.pitch)),
            (self.horizontalScrollBar(), layout.width, viewport.width()),
        ):
            bar.setPageStep(room)
            bar.setSingleStep(round(layout.pitch))
            bar.setRange(0, max(0, round(size - room)))
        self.viewport().update()

    def _reveal(self, head: Head) -> None:
        if not self._n_layers or (self._sorted and head[1] < 0):
            return
        layout = self._layout()
        rect = layout.rect(head[0], max(head[1], 0))
        bar, (top, bottom) = self.verticalScrollBar(), self._span()
        if rect.top() < top - 0.5:
            bar.setValue(round(rect.top() - layout.header - layout.pitch))
        elif rect.bottom() > bottom + 0.5:
            bar.setValue(round(rect.bottom() - bottom + top - layout.header + 2 * layout.pitch))
        across, width = self.horizontalScrollBar(), self.viewport().width()
        if head[1] >= 0 and not across.value() + layout.left <= rect.left() <= across.value() + width - rect.width():
            across.setValue(int(rect.center().x() - width / 2))

    def _restyle(self) -> None:
        self._colour_marks()
        self._relayout()
