"""The panels of the window, one line each, in the order of the View menu."""

from __future__ import annotations

from app.panels.attention import AttentionPanel
from app.panels.base import Panel
from app.panels.block_walk import BlockWalkPanel
from app.panels.feed_forward import FeedForwardPanel
from app.panels.kv import KvPanel
from app.panels.lens import LensPanel
from app.panels.model_card import ModelPanel
from app.panels.prompt import PromptPanel
from app.panels.rope import RopePanel
from app.panels.sampling import SamplingPanel
from app.panels.timeline import TimelinePanel

PANELS: tuple[type[Panel], ...] = (
    PromptPanel,
    TimelinePanel,
    AttentionPanel,
    SamplingPanel,
    KvPanel,
    RopePanel,
    FeedForwardPanel,
    BlockWalkPanel,
    LensPanel,
    ModelPanel,
)
