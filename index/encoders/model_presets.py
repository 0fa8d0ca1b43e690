"""List the models that Memex knows by a short name, with prompts and facts, and turn the name of any model into encoder settings.

Facts come from each model's card on its hub; a prompt is the one that its makers trained it with."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from index.encoders.settings import BundledSettings, EncoderSettings, EndpointSettings, LocalSettings
from index.errors import InvalidArgument
from index.names import did_you_mean

OLLAMA: Final = "ollama:"  # begins the name of a model that Ollama serves on this machine
OLLAMA_URL: Final = "http://127.0.0.1:11434/v1"


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """Describes a model: its settings, and what its makers say about it."""

    name: str
    encoder: BundledSettings | LocalSettings
    dimensions: int
    languages: str
    parameters: float  # in millions
    licence: str


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Holds what a caller says about a model besides its name; None or "" = what the preset or the model says."""

    base_url: str = ""
    api_key_env: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    download: bool = False


PRESETS: Final[tuple[ModelPreset, ...]] = (
    ModelPreset("minilm", BundledSettings("fp32"), 384, "English", 22.7, "Apache-2.0"),
    ModelPreset("minilm-int8", BundledSettings("int8"), 384, "English", 22.7, "Apache-2.0"),
    ModelPreset(
        "multilingual-e5-small",
        LocalSettings("intfloat/multilingual-e5-small", query_prompt="query: ", document_prompt="passage: "),
        *(384, "about 100", 118, "MIT"),
    ),
    ModelPreset(
        "ruri-v3-30m",
        LocalSettings("cl-nagoya/ruri-v3-30m", query_prompt="検索クエリ: ", document_prompt="検索文書: "),
        *(256, "Japanese", 37, "Apache-2.0"),
    ),
    ModelPreset(
        "snowflake-arctic-embed-s",
        LocalSettings(
            "Snowflake/snowflake-arctic-embed-s",
            query_prompt="Represent this sentence for searching relevant passages: ",
            document_prompt="",
        ),
        *(384, "English", 33, "Apache-2.0"),
    ),
)


def find_preset(encoder: EncoderSettings) -> ModelPreset | None:
    """Return the preset with the weights and prompts of `encoder`; the device, a token limit and downloads do not matter."""
    return next(
        (preset for preset in PRESETS if _weights_and_prompts(preset.encoder) == _weights_and_prompts(encoder)), None
    )


def choose_encoder(name: str, options: ModelOptions) -> EncoderSettings:
    """Return the settings of the model `name`: a preset, a folder, a name on the hub, `ollama:NAME`, or with `base_url` a server's.

    Raises InvalidArgument for options that the model does not have, and for a name that is almost a preset's."""
    if options.base_url or name.startswith(OLLAMA):
        return EndpointSettings(
            options.base_url or OLLAMA_URL,
            name.removeprefix(OLLAMA) if not options.base_url else name,
            api_key_env=options.api_key_env,
            query_prompt=options.query_prompt or "",
            document_prompt=options.document_prompt or "",
        )
    if options.api_key_env:
        raise InvalidArgument("a key is for a server: pass its address with --base-url too")
    encoder = next((preset.encoder for preset in PRESETS if preset.name == name), None)
    if isinstance(encoder, BundledSettings):
        if options.query_prompt or options.document_prompt or options.download:
            raise InvalidArgument("the bundled model has no prompts, and is never downloaded")
        return encoder
    if encoder is None:
        folder = Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser() fails for an unknown user
        near = did_you_mean(name, [preset.name for preset in PRESETS])
        if near and not folder.is_dir() and "/" not in name:
            raise InvalidArgument(f"no model {name!r} in the list{near} `memex model` shows it")
        encoder = LocalSettings(str(folder.absolute()) if folder.is_dir() else name)
    return replace(
        encoder,
        download=options.download,
        query_prompt=encoder.query_prompt if options.query_prompt is None else options.query_prompt,
        document_prompt=encoder.document_prompt if options.document_prompt is None else options.document_prompt,
    )


def _weights_and_prompts(encoder: EncoderSettings) -> EncoderSettings:
    if isinstance(encoder, LocalSettings):
        return LocalSettings(encoder.model, query_prompt=encoder.query_prompt, document_prompt=encoder.document_prompt)
    return encoder
