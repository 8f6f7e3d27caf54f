"""Makes the pictures of README.md and of the panels' help again, from one tour: python packaging/pictures.py [FOLDER]

FOLDER: what `decoderscope tour --out FOLDER` left; without it the tour is walked first. Look at them before committing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PySide6.QtGui import QImage

ROOT = Path(__file__).resolve().parent.parent
QUALITY = 78
MOST_BYTES = 150_000


def convert(source: Path, target: Path) -> None:
    """A PNG of the tour as the smaller WebP that is kept; refuses one that is too large to keep."""
    target.parent.mkdir(exist_ok=True)
    if not QImage(str(source)).save(str(target), "WEBP", QUALITY):
        sys.exit(f"{target} could not be written")
    size = target.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{target} takes {size:,} bytes: over {MOST_BYTES:,}")
    sys.stdout.write(f"{target.relative_to(ROOT)} {size:,}\n")


def pictures(folder: Path) -> None:
    """The window, every panel in both themes, and where in each the figure lies that its help shows."""
    convert(folder / "1-start-dark.png", ROOT / "assets/pictures/window.webp")
    for source in sorted(folder.glob("panel-*.png")):
        convert(source, ROOT / "assets/panels" / f"{source.stem.removeprefix('panel-')}.webp")
    shutil.copyfile(folder / "telling.json", ROOT / "assets/panels/telling.json")


def main(arguments: list[str]) -> None:
    """Walks the tour unless a folder is named."""
    if arguments:
        pictures(Path(arguments[0]))
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-P", "-m", "app", "tour", "--out", folder], cwd=ROOT, check=True)
        pictures(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
