"""Makes model/export/typefaces again: cuts of matplotlib's DejaVu fonts that a PDF can take its letters from quickly.

python packaging/typefaces.py. A whole DejaVu font takes 35 ms to cut for each figure and each block of 256 code points,
a tenth of that with the characters that figures are mostly made of. What is not in them comes from DejaVu as before.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import matplotlib as mpl
from fontTools import subset
from fontTools.ttLib import TTFont

SOURCE = Path(mpl.get_data_path()) / "fonts" / "ttf"
TARGET = Path(__file__).resolve().parent.parent / "model" / "export" / "typefaces"
FACES = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold")
BLOCKS = (
    (0x20, 0x7F), (0xA0, 0x180),  # Latin
    (0x370, 0x400),  # Greek
    (0x2010, 0x2028), (0x2030, 0x2060), (0x2070, 0x20A0), (0x20AC, 0x20AD), (0x2122, 0x2123),  # signs
    (0x2190, 0x21C0), (0x2200, 0x2270), (0x23CE, 0x23CF), (0x2423, 0x2424), (0x27E8, 0x27EA),  # arrows, mathematics
)  # fmt: skip
NAMES = (1, 3, 4, 6, 16)  # family, unique, full, PostScript, typographic family; copyright and licence stay as they are


def cut(face: str) -> Path:
    """One font with the characters of `BLOCKS`, under a name of its own as DejaVu's licence asks."""
    font = TTFont(SOURCE / f"{face}.ttf")
    del font["FFTM"]  # the time stamps of a font editor
    options = subset.Options(glyph_names=True, hinting=True, layout_features=["kern", "mark", "mkmk"], name_IDs=["*"])
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=[code for first, end in BLOCKS for code in range(first, end)])
    cutter.subset(font)
    for record in font["name"].names:
        if record.nameID in NAMES:
            record.string = record.toUnicode().replace("DejaVu Sans", "Figure Sans").replace("DejaVuSans", "FigureSans")
    path = TARGET / f"{face.replace('DejaVu', 'Figure')}.ttf"
    font.save(path)
    return path


def main() -> None:
    """All faces, with DejaVu's licence beside them."""
    TARGET.mkdir(exist_ok=True)
    for face in FACES:
        path = cut(face)
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")
    shutil.copyfile(SOURCE / "LICENSE_DEJAVU", TARGET / "LICENSE_DEJAVU")


if __name__ == "__main__":
    main()
