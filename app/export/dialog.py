"""The export dialog: what, which files, how they look, where they go, with a preview drawn by the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.amounts import progress_amount
from app.dialogs.ask import ConfirmDialog
from app.dialogs.sheet import Sheet
from app.export.exporter import (
    FORMATS,
    KINDS,
    MAX_DPI,
    MIN_DPI,
    Exporter,
    ExportOptions,
    default_folder,
    formats_of,
)
from app.export.fields import choices, inches
from app.export.places import NoSuchUserError, is_there, typed_path
from app.export.preview import Preview, has_figures, place_of
from app.export.subjects import (
    FIGURES,
    PANEL,
    STEM,
    Want,
    kind_of,
    message_of,
    names_in,
    plain,
    safe_stem,
    shown,
    stem_of,
)
from app.i18n import tr
from app.widgets.busy_bar import BusyBar
from app.widgets.check_box import CheckBox
from app.widgets.form_spin import FormSpin
from app.widgets.path_edit import PathEdit
from model.colormaps import ONE_SIGNED
from model.protocol.errors import DecoderscopeError
from model.protocol.export_kinds import file_names, indices
from model.protocol.export_requests import DrawnRequest, ExportActivations, FigureTheme, figure_pixels
from model.protocol.figure_requests import ExportText, TintBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.panels.base import Panel
    from model.protocol.wire import Progress

PREVIEW_DELAY_MS = 250
"""After the last change of an option, before the engine draws again."""


class ExportDialog(Sheet):
    """Options at the left, the figure as the engine draws it at the right."""

    def __init__(self, exporter: Exporter, panel: Panel) -> None:
        super().__init__(exporter.ctx.theme, panel.window(), spacing=12)
        self._exporter, self._panel = exporter, panel
        self._ctx = exporter.ctx
        self._kind = kind_of(panel)
        self._options = exporter.options
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Export"))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PREVIEW_DELAY_MS)
        self._timer.timeout.connect(self._draw)
        self._rows: dict[str, tuple[QWidget, ...]] = {}
        self._under_way = self._stopping = self._begun = False
        self._build(self._options)
        panel.destroyed.connect(self._leave)
        exporter.ended.connect(self._on_ended)
        exporter.progressed.connect(self._on_progress)
        self._ctx.session.changed.connect(self._look_at_place)
        self._ctx.session.changed.connect(self._say_what_it_waits_for)
        self._timer.start(0)

    # what is chosen

    def options(self) -> ExportOptions:
        """The options as they stand. Formats that this kind has not stay chosen for those that have them."""
        kind, known = self._kind, formats_of(self._kind)
        kept = [name for name in self._options.formats if name not in known]
        chosen = [name for name in known if self.boxes[name].isChecked()]
        size = (self.width_box.value(), self.height_box.value())
        return ExportOptions(
            formats=tuple(name for name in FORMATS if name in {*kept, *chosen}),
            theme=cast("FigureTheme", self.theme_box.key()), colormap=str(self.colormap_box.key()),
            sizes={**self._options.sizes, **({kind: size} if has_figures(kind) else {})}, dpi=self.dpi_box.value(),
            whole=bool(self.whole_box.key()), layers=self.layers_edit.text().strip() or "all",
            heads=self.heads_edit.text().strip() or "all", folder=self.folder_edit.text().strip(),
        )  # fmt: skip

    def want(self) -> Want:
        """What would be exported now; without formats where none is chosen."""
        chosen = tuple(
            name for name in formats_of(self._kind) if self.boxes[name].isChecked() and self.boxes[name].isEnabled()
        )
        want = self.options().want(self._kind, safe_stem(self.name_edit.text()))
        return replace(want, formats=chosen, tint=str(self.tint_box.key()), names=self.names_edit.text())

    def export(self) -> None:
        """Writes the files, after asking about those that exist."""
        want, options = self.want(), self.options()
        folder = typed_path(options.folder)
        existing = [name for name in self._names(want) if is_there(folder / name)]
        if existing and not self._may_replace(existing):
            return
        self._exporter.remember(options)
        self._under_way, self._stopping, self._begun = True, False, False
        self._set_running(running=True)
        self._timer.stop()
        self.preview.stop()  # what is exported need not wait for it
        self._exporter.start(self._panel, want, folder, overwrite=bool(existing))
        self._say_what_it_waits_for()

    def reject(self) -> None:
        """Ends the export this dialog started, and stays for another; closes where there is none, or it won't end."""
        if self._under_way and not self._stopping:
            self._stopping = True
            self.progress_note.setText(tr("Stopping …"))
            self._exporter.cancel()
        else:
            super().reject()

    def _leave(self) -> None:
        """Its panel is gone, made anew in another language; what is under way goes on."""
        self.done(QDialog.DialogCode.Rejected)

    def done(self, result: int) -> None:
        self._timer.stop()
        self.preview.stop()
        super().done(result)

    def _names(self, want: Want) -> tuple[str, ...]:
        if want.kind == PANEL:
            return tuple(f"{want.stem}.{name}" for name in want.formats)
        return file_names(message_of(want, self._panel))

    # building

    def _build(self, options: ExportOptions) -> None:
        form = QGridLayout()
        form.setVerticalSpacing(8)
        form.setHorizontalSpacing(10)
        form.setColumnStretch(1, 1)
        theme = self._ctx.theme
        self.kind_box = choices(theme, tr("What"), kind_texts(self._panel), self._kind)
        self.name_edit = QLineEdit(stem_of(self._kind, self._panel))
        self.folder_edit = PathEdit(options.folder or str(default_folder()))
        self.folder_edit.setMinimumWidth(220)
        browse = QPushButton(tr("Choose…"))
        browse.clicked.connect(self._choose_folder)
        self._add_row(form, "kind", tr("What"), self.kind_box)
        self._add_row(form, "name", tr("Name"), self.name_edit)
        self._add_row(form, "folder", tr("Folder"), self.folder_edit, browse)
        self._add_row(form, "files", tr("Files"), self._format_boxes(options))
        self._add_subject_rows(form, options)
        themes = [("light", tr("light")), ("dark", tr("dark")), ("transparent", tr("no background"))]
        self.theme_box = choices(theme, tr("Theme"), themes, options.theme)
        self.colormap_box = choices(theme, tr("Colour map"), [(name, name) for name in ONE_SIGNED], options.colormap)
        self.width_box, self.height_box = inches(theme), inches(theme)
        self.dpi_box = FormSpin(theme)
        self.dpi_box.setRange(MIN_DPI, MAX_DPI)
        self.dpi_box.setValue(options.dpi)
        self.dpi_box.setSuffix(tr(" dpi"))
        self._add_row(form, "theme", tr("Theme"), self.theme_box)
        self._add_row(form, "colormap", tr("Colour map"), self.colormap_box)
        self._add_row(form, "width", tr("Width"), self.width_box)
        self._add_row(form, "height", tr("Height"), self.height_box)
        self._add_row(form, "dpi", tr("Resolution"), self.dpi_box)
        self.note = QLabel()
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        self.note.setFont(theme.font("hint"))
        self.note.setWordWrap(True)
        form.addWidget(self.note, form.rowCount(), 1, 1, 2)
        form.setRowStretch(form.rowCount(), 1)
        self.preview, self.moved = Preview(self._ctx.engine), QLabel()
        self.moved.setFont(theme.font("hint"))
        self.moved.setTextFormat(Qt.TextFormat.PlainText)
        self.moved.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.moved.setMinimumHeight(self.moved.fontMetrics().height())  # the picture stays as large when it is said
        top = QHBoxLayout()
        top.setSpacing(20)
        top.addLayout(form)
        seen = QVBoxLayout()
        seen.setSpacing(4)
        seen.addWidget(self.preview, 1)
        seen.addWidget(self.moved)
        top.addLayout(seen, 1)
        self.column.addLayout(top, 1)
        self._add_buttons()
        self._watch()
        self._show_kind()

    def _add_subject_rows(self, form: QGridLayout, options: ExportOptions) -> None:
        """What one kind has and the others have not."""
        theme, selection = self._ctx.theme, self._ctx.selection
        cells = [(True, tr("the whole matrix")), (False, tr("what is in sight"))]
        self.whole_box = choices(theme, tr("Cells"), cells, options.whole)
        tints = {
            "surprisal": tr("surprisal"), "entropy": tr("entropy"), "reads": tr("what the query reads"),
            "read_by": tr("who reads the key"),
        }  # fmt: skip
        own = shown(self._panel)
        tint = own.by if isinstance(own, ExportText) else "surprisal"
        self.tint_box = choices(theme, tr("Tint"), [(by, tints[by]) for by in get_args(TintBy)], tint)
        self.layers_edit, self.heads_edit = QLineEdit(options.layers), QLineEdit(options.heads)
        self.layers_edit.setPlaceholderText(tr("all, or 0,3-5 of {n}", n=selection.n_layers))
        self.heads_edit.setPlaceholderText(tr("all, or 0,3-5 of {n}", n=selection.n_heads))
        activations = own if isinstance(own, ExportActivations) else plain("activation", self._ctx)
        self.names_edit = QLineEdit(", ".join(cast("ExportActivations", activations).names))
        self.names_edit.setToolTip(
            tr("Hook names, * for any: layers.3.attn.pattern, layers.*.mlp.post, layers.5.resid_pre, embed, logits, kv")
        )
        self._add_row(form, "whole", tr("Cells"), self.whole_box)
        self._add_row(form, "tint", tr("Tint"), self.tint_box)
        self._add_row(form, "layers", tr("Layers"), self.layers_edit)
        self._add_row(form, "heads", tr("Heads"), self.heads_edit)
        self._add_row(form, "names", tr("Activations"), self.names_edit)

    def _add_row(self, form: QGridLayout, key: str, text: str, widget: QWidget, extra: QWidget | None = None) -> None:
        row = form.rowCount()
        label = QLabel(text)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setBuddy(widget)
        widget.setAccessibleName(text)
        form.addWidget(label, row, 0)
        form.addWidget(widget, row, 1, 1, 1 if extra is not None else 2)
        if extra is not None:
            form.addWidget(extra, row, 2)
        self._rows[key] = (label, widget)

    def _format_boxes(self, options: ExportOptions) -> QWidget:
        tips = {
            "png": tr("A picture"), "svg": tr("A drawing that scales, text as text"), "pdf": tr("For print"),
            "html": tr("An interactive page of its own: point at a cell, read its exact value"),
            "csv": tr("Exact values and tokens, for a spreadsheet"), "json": tr("Exact values and metadata"),
            "npz": tr("Exact float32 values, token ids and metadata, for numpy"),
            "safetensors": tr("Exact float32 values and metadata, as weights are kept"),
        }  # fmt: skip
        widget = QWidget()
        grid = self._format_grid = QGridLayout(widget)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        self.boxes: dict[str, CheckBox] = {}
        for name in FORMATS:
            box = CheckBox(self._ctx.theme, name if name == "safetensors" else name.upper(), tip=tips[name])
            box.setChecked(name in options.formats)
            box.setParent(widget)
            self.boxes[name] = box
        grid.setColumnStretch(4, 1)
        return widget

    def _add_buttons(self) -> None:
        self.bar = BusyBar(self._ctx.theme)
        self.bar.hide()
        self.progress_note = QLabel()
        self.progress_note.setTextFormat(Qt.TextFormat.PlainText)
        self.export_button = QPushButton(tr("Export"))
        self.export_button.setDefault(True)
        self.export_button.setProperty("primary", True)
        self.export_button.clicked.connect(self.export)
        self.cancel_button = QPushButton(tr("Cancel"))
        self.cancel_button.clicked.connect(self.reject)
        self.foot.addWidget(self.progress_note)
        self.foot.addWidget(self.bar, 1)
        self.foot.addStretch(0)
        self.foot.addWidget(self.cancel_button)
        self.foot.addWidget(self.export_button)

    def _watch(self) -> None:
        self.kind_box.keyChosen.connect(self.choose)
        for box in self.boxes.values():
            box.toggled.connect(self._on_changed)
        for combo in (self.theme_box, self.colormap_box, self.whole_box, self.tint_box):
            combo.keyChosen.connect(self._on_changed)
        for spin in (self.width_box, self.height_box, self.dpi_box):
            spin.valueChanged.connect(self._on_changed)
        for edit in (self.name_edit, self.folder_edit, self.layers_edit, self.heads_edit, self.names_edit):
            edit.textChanged.connect(self._on_changed)

    # acting

    def choose(self, kind: str) -> None:
        """Goes to another kind; the name follows unless it was changed by hand."""
        named = self.name_edit.text() == stem_of(self._kind, self._panel)
        self._options = self.options()
        self._kind = kind
        self.kind_box.set_key(kind)
        if named:
            self.name_edit.setText(stem_of(kind, self._panel))
        self._show_kind()

    def _show_kind(self) -> None:
        """The rows, formats and size of the kind."""
        kind, known = self._kind, formats_of(self._kind)
        figures, sheet = has_figures(kind), kind in {"sheet", "grid"}
        rows = {
            "whole": kind == "attention", "tint": kind == "text", "layers": sheet, "heads": sheet,
            "names": kind == "activation", "theme": figures, "colormap": figures, "width": figures,
            "height": figures, "dpi": figures,
        }  # fmt: skip
        for key, there in rows.items():
            for widget in self._rows[key]:
                widget.setVisible(there)
        for box in self.boxes.values():
            self._format_grid.removeWidget(box)
            box.setVisible(False)
        widest = max(self.boxes[name].sizeHint().width() for name in known)
        for column in range(4):
            self._format_grid.setColumnMinimumWidth(column, widest)
        for at, name in enumerate(known):
            self._format_grid.addWidget(self.boxes[name], at // 4, at % 4)
            self.boxes[name].setVisible(True)
        if not any(self.boxes[name].isChecked() for name in known):
            self.boxes[known[0]].setChecked(True)
        if figures:
            width, height = self._options.size(kind)
            for spin, value in ((self.width_box, width), (self.height_box, height)):
                blocked = spin.blockSignals(True)
                spin.setValue(value)
                spin.blockSignals(blocked)
        self.preview.setText(tr("Drawing …"))
        self._on_changed()

    def _on_changed(self, *_: object) -> None:
        several = self._kind in {"sheet", "grid"} and self._layers() != 1
        self.boxes["html"].setEnabled(not several)
        want = self.want()
        drawn = bool(FIGURES & set(want.formats))
        for widget in (self.width_box, self.height_box):
            widget.setEnabled(drawn)
        for combo in (self.theme_box, self.colormap_box):
            combo.setEnabled(drawn or "html" in want.formats)
        self.dpi_box.setEnabled(drawn)  # how finely cells are repeated in SVG and PDF
        problem = self._problem(want)
        note = problem
        if not problem and several and self.boxes["html"].isChecked():
            note = tr("An interactive page is of one layer: name it under Layers.")
        elif not problem and has_figures(self._kind) and "png" in want.formats:
            width, height = round(want.width * want.dpi), round(want.height * want.dpi)
            note = tr("{w} × {h} pixels", w=f"{width:,}", h=f"{height:,}")
        left_out = "" if problem else left_out_words(self._kind, self._options.formats, self._panel)
        renamed = name_words(self.name_edit.text().strip(), want.stem)
        busy = "" if self._exporter.running is None or self._under_way else tr("An export is under way.")
        self.note.setText("\n".join(filter(None, (busy, note, renamed, left_out))))
        if self.note.width() > 0:  # a grid gives words that wrap the height of one line
            self.note.setMinimumHeight(max(0, self.note.heightForWidth(self.note.width())))
        good = bool(want.formats) and bool(self.folder_edit.text().strip()) and bool(self.name_edit.text().strip())
        self.export_button.setEnabled(good and not problem and self._exporter.running is None)
        self._timer.start()

    def _draw(self) -> None:
        self.preview.show_want(self.want(), self._panel)
        self._look_at_place()

    def _look_at_place(self, *_: object) -> None:
        """Says where the run has moved on since the preview was asked for, and draws that anew once it rests."""
        behind = self.preview.place not in {None, place_of(self._panel)}
        words = tr("The run has moved on: this is drawn again once it rests.")
        self.moved.setText(words if behind else "")
        if behind and not self._ctx.session.busy and not self._timer.isActive():
            self._timer.start()

    def _layers(self) -> int:
        try:
            return len(indices(self.layers_edit.text() or "all", self._ctx.selection.n_layers))
        except DecoderscopeError:
            return 0

    def _problem(self, want: Want) -> str:
        """Why this can't be asked for; empty where it can."""
        try:
            typed_path(self.folder_edit.text().strip())
        except NoSuchUserError as error:
            return str(error)
        if want.kind == PANEL:
            return ""
        if want.kind == "activation" and not any(names_in(want.names)):
            return tr("Name at least one activation.")
        try:
            message = message_of(want, self._panel)
            if isinstance(message, DrawnRequest):
                figure_pixels(message.width, message.height, message.dpi)
        except DecoderscopeError as error:
            return str(error)
        return ""

    def _choose_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder for the files"), self.folder_edit.text())
        if folder:
            self.folder_edit.setText(folder)

    def _may_replace(self, names: list[str]) -> bool:
        sentence = tr("{names} exist in this folder.", names=", ".join(names))
        box = ConfirmDialog(
            self._ctx.theme, sentence, keep=tr("Keep"), action=tr("Replace"), title=tr("Export"), parent=self
        )
        return bool(box.exec())

    def _set_running(self, *, running: bool) -> None:
        self.bar.setVisible(running)
        self.bar.setRange(0, 0)
        self.progress_note.setText(tr("Exporting …") if running else "")
        self._on_changed()
        self.export_button.setEnabled(self.export_button.isEnabled() and not running)

    def _on_progress(self, progress: Progress) -> None:
        if self._under_way and not self._stopping:
            self._begun = True
            self._show_progress(progress)

    def _say_what_it_waits_for(self, *_: object) -> None:
        """Until the engine has come to it: what the engine is at, and how far."""
        if self._under_way and not self._begun and not self._stopping:
            ahead = self._ctx.session.progress
            if ahead is None:
                self.bar.setRange(0, 0)
                self.progress_note.setText(tr("Exporting …"))
            else:
                self._show_progress(replace(ahead, what=self._ctx.session.progress_title))
                self.progress_note.setText(tr("Waiting: {what}", what=self.progress_note.text()))

    def _show_progress(self, progress: Progress) -> None:
        self.bar.setRange(0, progress.total)
        self.bar.setValue(progress.done)
        amount = progress_amount(progress.done, progress.total, progress.unit)
        self.progress_note.setText(f"{progress.what}  {amount}")

    def _on_ended(self, files: list[Path]) -> None:
        mine, self._under_way, self._stopping = self._under_way, False, False
        self._set_running(running=False)
        if files and mine:
            self.accept()


def name_words(typed: str, stem: str) -> str:
    """What is said of a name that is not the one the files will have."""
    if not typed or typed == stem:
        return ""
    if stem == STEM and STEM not in typed:
        return tr("No character of this name can be used: the files will be called {stem}.", stem=stem)
    return tr("The files will be called {stem}.", stem=stem)


def kind_texts(panel: Panel) -> list[tuple[str, str]]:
    """The kinds with their names, what the panel shows as it looks first."""
    texts = {
        PANEL: tr("{title}: as on the screen, and its tables", title=tr(panel.title)),
        "attention": tr("Attention: one head's matrix"),
        "sheet": tr("Attention: a sheet of heads on one colour scale"),
        "grid": tr("Attention: a grid of heads, each on its own scale"),
        "text": tr("Text: its tokens tinted"),
        "sampler": tr("Sampling: the next token's waterfall"),
        "kv-growth": tr("KV cache: its growth"),
        "rope": tr("RoPE: planes of the query and the key"),
        "lens": tr("Lens: the top token of every layer"),
        "activation": tr("Activations by name"),
    }
    model = panel.ctx.session.model
    turned = model is not None and model.positions == "rope"
    return [(kind, texts[kind]) for kind in KINDS if kind != "rope" or turned]


def left_out_words(kind: str, chosen: Sequence[str], panel: Panel) -> str:
    """Says which of the formats chosen for others this kind has not, and what has tables; empty where it has all."""
    gone = [name.upper() for name in chosen if name not in formats_of(kind)]
    if not gone:
        return ""
    if "CSV" in gone:
        other = tr("{title}: as on the screen, and its tables", title=tr(panel.title))
        return tr("No {formats} of this: see “{other}”.", formats=", ".join(gone), other=other)
    return tr("No {formats} of this.", formats=", ".join(gone))
