"""Convert an encoder's settings to the table that is kept beside the index, and decide which previous encoder to load again.

Law, tested: after a change of encoders searches and captures continue as before until the new index takes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from index.encoders.embedder import Embedder
from index.encoders.settings import EncoderSettings
from syncd.settings.settings import ENCODERS
from syncd.settings.values import Setting, convert


def to_table(settings: EncoderSettings) -> dict[str, Any]:
    """Return an encoder's settings as they are remembered beside the index."""
    kind = next(kind for kind, name in ENCODERS.kinds.items() if name == type(settings).__name__)
    return {"kind": kind, **{name: value for name, value in asdict(settings).items() if value is not None}}


def from_table(remembered: Any) -> EncoderSettings | None:
    """Read the settings that `to_table` wrote; None when there are none, or none that this version knows."""
    if not isinstance(remembered, Mapping):
        return None
    try:
        (value,) = convert(Setting("encoder", ENCODERS, (), ""), [remembered], text=False)
    except ValueError:
        return None
    settings: EncoderSettings = value
    return settings


def encoder_to_recall(embedder: Embedder, made_with: EncoderSettings | None, identity: str) -> EncoderSettings | None:
    """Return the encoder to load beside `embedder` for an index of `identity`; None when that would not help."""
    if made_with is None or not identity:
        return None
    if embedder.state == "ready" and embedder.identity == identity:
        return None
    configured = embedder.configured
    if configured and made_with == configured[0]:
        return None  # the same settings, whose model has changed or is unavailable
    if made_with in configured and not embedder.identity:
        return None  # it replaces the first one automatically
    return made_with
