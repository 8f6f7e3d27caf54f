"""`import model` as a library: the README's own lines, arrays against the engine's numbers, files, mistakes."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import model
from model.errors import BadValueError, DecoderscopeError
from model.export.run_file import RunFileError
from tests.model import tiny
from tests.model.checkpoint import files

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def session(folder: Path) -> model.Session:
    return model.open_model(folder, dtype="float32", threads=1).prefill("in the end").step(3, temperature=0)


def test_importing_it_loads_next_to_nothing() -> None:
    code = "import sys, model; print(*{name.partition('.')[0] for name in sys.modules}); print(dir(model))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    loaded, names = done.stdout.split("\n")[:2]
    assert {"torch", "numpy", "PySide6", "matplotlib", "msgspec"}.isdisjoint(loaded.split())
    assert "'open_model'" in names


def test_the_lines_of_the_readme(default_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del default_model_path
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(import model\n.*?)```", readme, re.DOTALL)
    assert lines == re.sub(r"(?m)^    ", "", model.__doc__ or "").partition("\n\n")[2].partition("\n\nSee")[0] + "\n"
    assert len([line for line in lines.splitlines() if line]) == 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(lines, names)  # the README's
    weights = names["weights"]
    assert isinstance(weights, np.ndarray) and weights.dtype == np.float32 and weights.shape == (19, 19)
    assert weights[8, 1] == pytest.approx(0.75, abs=0.005)
    assert np.isnan(weights[8, 9]) and np.nansum(weights, axis=1) == pytest.approx(1, abs=1e-5)
    assert (tmp_path / "it.pdf").read_bytes().startswith(b"%PDF")


def test_steps_go_forth_and_back(session: model.Session) -> None:
    assert len(session.steps) == 3 and all(step.settings.greedy for step in session.steps)
    assert len(session.ids) == len(session.tokens) and session.text.startswith("in the end")
    here = session.ids
    assert session.candidates(3)[0].p == 1 and session.candidates(3, temperature=1.0, top_k=0)[0].p < 1
    best = int(session.logits().argmax())
    assert session.step().ids == (*here, best)
    assert session.back(2).ids == here[:-1]
    assert session.step(token=65, temperature=1.5).ids == (*here[:-1], 65)
    assert session.steps[-1].forced and session.back(99).steps == ()
    with pytest.raises(BadValueError, match="fields of SamplerSettings"):
        session.step(warmth=1)


def test_arrays_are_the_runs_own(session: model.Session) -> None:
    n = len(session.ids)
    pattern = session.activation("layers.1.attn.pattern")
    one = session.attention(layer=1, head=2)
    assert np.array_equal(np.nan_to_num(one), pattern[2])
    assert np.nan_to_num(session.attention(layer=1)) == pytest.approx(pattern.mean(0), abs=1e-6)
    assert set(session.activations("kv")) == {f"layers.{at}.attn.{name}" for at in (0, 1) for name in ("rot_k", "v")}
    assert session.activation("layers.0.mlp.post").shape == (n, 64)
    with pytest.raises(BadValueError, match="takes patterns"):
        session.activation("layers.*.mlp.post")
    with pytest.raises(DecoderscopeError, match="Did you mean"):
        session.activation("layers.0.mlp.pots")


@pytest.mark.parametrize("what", ["attention", "sheet", "sampler", "kv-growth", "lens", "text"])
def test_a_notebook_shows_each_figure(session: model.Session, what: str) -> None:
    figure = session.figure(what, dpi=50)
    with Image.open(io.BytesIO(figure._repr_png_())) as picture:
        assert picture.size[0] == (450 if what == "lens" else 350)


def test_figures_and_runs_are_saved(session: model.Session, folder: Path, tmp_path: Path) -> None:
    figure = session.figure("rope", layer=1, head=0, query=5, key=2)
    assert figure.save(tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    for what in ("sheet", "text"):
        with Image.open(io.BytesIO(session.figure(what, dpi=50).png)) as picture:
            assert picture.width == 350 and picture.height < 250  # as high as what is on it
        with Image.open(io.BytesIO(session.figure(what, dpi=50, height=6).png)) as picture:
            assert picture.size == (350, 300)
    assert session.figure(layer=0, head=1).save(tmp_path / "b.csv").with_suffix(".csv-metadata.json").exists()
    with pytest.raises(BadValueError, match="a name that ends in"):
        figure.save(tmp_path / "a.docx")
    with pytest.raises(BadValueError, match="a field of ExportLens"):
        session.figure("lens", colour="red")
    with pytest.raises(BadValueError, match="attention, sheet, sampler"):
        session.figure("lense")
    path = session.save(tmp_path / "a.dscope")
    seen = model.open_run(path)
    assert np.array_equal(seen.attention(layer=1, head=2), session.attention(layer=1, head=2), equal_nan=True)
    assert seen.text == session.text
    again = model.open_run(path, model.open_model(folder, dtype="float32"))
    assert again.step(temperature=0).ids == session.step(temperature=0).ids
    other = model.Model(tiny.llama()[1])
    with pytest.raises(RunFileError, match="the open model is tiny"):
        model.open_run(path, other)


def test_names_that_are_not_there_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing
