"""The main job, step by step, as a person does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.tour.driver import TourError
from app.tour.panels import photograph

if TYPE_CHECKING:
    from app.panels.attention import AttentionPanel
    from app.tour.driver import Driver

PROMPT = "The animal didn't cross the street because it was too wide"
STEPS = 8
HEADS = ((13, 8), (14, 8), (14, 7))
FORMATS = ("png", "svg", "pdf", "csv", "npz")
START_SECONDS = 240.0


def walk(driver: Driver) -> None:
    """The main job, with a picture after each part, and of every panel once the example is up."""
    _start(driver)
    photograph(driver)
    _prompt(driver)
    _steps(driver)
    _heads(driver)
    _sliders(driver)


def _start(driver: Driver) -> None:
    driver.window.show()
    driver.wait(lambda: driver.application.ctx is not None, "opening the window", START_SECONDS)
    absent: list[str] = []
    driver.session.modelAbsent.connect(absent.append)

    def ready() -> bool:
        if absent:
            raise TourError(
                absent[0] or "The default model is not on this machine: run `decoderscope models get` first."
            )
        if str(driver.session.engine_status) == "lost":
            raise TourError(driver.session.engine.message)
        run = driver.session.run
        return run is not None and len(run.path) >= 7 and not driver.session.busy

    driver.wait(ready, "opening the model and its example", START_SECONDS)
    _see_attention(driver)
    driver.picture("1-start")


def _prompt(driver: Driver) -> None:
    from app.panels.prompt import PromptPanel  # noqa: PLC0415

    panel = driver.window.docks["prompt"].panel
    assert isinstance(panel, PromptPanel)
    old_run = driver.session.run_id
    driver.click(panel.edit.viewport())
    panel.edit.setFocus()
    driver.press("Ctrl+A", panel.edit)
    driver.write(panel.edit, PROMPT)
    driver.wait(lambda: driver.session.prompt.shown == PROMPT, "tokenising the prompt")
    driver.press("Ctrl+Return")
    driver.wait(lambda: driver.session.run_id != old_run and not driver.session.busy, "prefilling the prompt")
    driver.settle()
    driver.picture("2-prefill")


def _steps(driver: Driver) -> None:
    driver.window.setFocus()
    for step in range(1, STEPS + 1):
        driver.press("Space")
        driver.wait(lambda step=step: len(driver.session.path_nodes()) >= step, f"decoding step {step}")  # type: ignore[misc]
        driver.wait(lambda: not driver.session.busy, "decoding")
    for key, steps in (("Left", STEPS - 1), ("Right", STEPS)):
        driver.press(key)
        driver.wait(lambda steps=steps: len(driver.session.path_nodes()) == steps, "stepping back and forth")  # type: ignore[misc]
    _see_attention(driver)
    driver.picture("3-steps")


def _heads(driver: Driver) -> None:
    assert driver.application.ctx is not None
    selection = driver.application.ctx.selection
    for layer, head in HEADS:
        for _ in range(200):
            if selection.layer != layer:
                driver.press("]" if isinstance(selection.layer, str) or selection.layer < layer else "[")
            elif selection.head != head:
                driver.press("=" if isinstance(selection.head, str) or selection.head < head else "-")
            else:
                break
        if (selection.layer, selection.head) != (layer, head):
            raise TourError(f"layer {layer}, head {head} could not be selected.")
        _see_attention(driver)
        driver.picture(f"4-layer{layer}-head{head}")


def _see_attention(driver: Driver) -> None:
    """Waits until the chosen head's exact numbers are drawn: a weight for the last query's own key."""
    panel: AttentionPanel = driver.window.docks["attention"].panel  # type: ignore[assignment] # by its id
    last = driver.session.length - 1
    driver.wait(
        lambda: panel.main.view == panel.ctx.selection.view and panel.main.heat.value_of((last, last)) is not None,
        "drawing the attention",
    )
    driver.settle(400)


def _sliders(driver: Driver) -> None:
    from app.panels.sampling import SamplingPanel  # noqa: PLC0415
    from app.widgets.slider_row import TravelSlider  # noqa: PLC0415

    panel = driver.window.docks["sampling"].panel
    assert isinstance(panel, SamplingPanel)
    for name, keys in (("temperature", ["PgUp"] * 4), ("top_p", ["PgDown"])):
        before = driver.session.distribution
        slider = panel.rows[name].findChild(TravelSlider)
        assert slider is not None
        slider.setFocus()
        for key in keys:
            driver.press(key, slider)
        driver.wait(
            lambda before=before: driver.session.distribution not in {None, before},  # type: ignore[misc]
            f"moving {name}",
        )
    driver.settle()
    driver.picture("5-sampling")
    driver.window.setFocus()


def export(driver: Driver) -> None:
    """The matrix in view in every format, by the real export."""
    from app.export.exporter import Exporter, ExportOptions  # noqa: PLC0415

    panel: AttentionPanel = driver.window.docks["attention"].panel  # type: ignore[assignment] # by its id
    ended: list[list[Path]] = []
    exporter = Exporter.shared(panel.ctx)
    exporter.ended.connect(ended.append)
    exporter.remember(ExportOptions(formats=FORMATS, folder=str(driver.out)))
    driver.press("Ctrl+Shift+E")
    driver.wait(lambda: ended, "exporting the attention matrix")
    if not ended[0]:
        raise TourError(f"exporting the attention matrix: {driver.application.notify.last}")
    driver.files += ended[0]
