"""Define what an encoder is, and the settings that choose one: bundled, any sentence-transformers model, or an endpoint."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from index.deferred_patterns import compile_later
from index.document_ids import sha256

if TYPE_CHECKING:
    import numpy as np

# Read by the libraries when they are loaded; the modules that load them import this first: no report to their makers, no threads but ours.
for _name, _value in {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}.items():
    os.environ.setdefault(_name, _value)

SAMPLE = "A capture is a note that an agent wrote; its owner decides whether it stays."  # what encoders are compared by
BUNDLED_TOKENS = 254  # the bundled model's 256 less its two special tokens
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # Thai to Hangul
_PIECE = compile_later(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")

Kind: TypeAlias = Literal["query", "document"]
Precision: TypeAlias = Literal["fp32", "int8"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class BundledSettings:
    """Selects the model that is installed with Memex; int8 embeds notes about twice as fast, and finds slightly less."""

    precision: Precision = "fp32"


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Selects a sentence-transformers model: a folder, or a name in the Hugging Face cache.

    A prompt of None is the model's own (often none at all)."""

    model: str
    device: Device = "auto"
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_tokens: int | None = None  # None = the model's own limit
    download: bool = False  # True: may fetch the model from its hub


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Selects a server with OpenAI's `POST {base_url}/embeddings`: Ollama, LM Studio, OpenAI and others."""

    base_url: str  # with its version, e.g. http://127.0.0.1:11434/v1
    model: str
    dimensions: int | None = None  # None = whatever the model gives; set = asked for and checked
    api_key_env: str | None = None  # the environment variable that holds the key
    query_prompt: str = ""
    document_prompt: str = ""
    max_tokens: int = 512
    batch: int = 32  # texts in one request
    timeout_s: float = 30.0
    retries: int = 3  # after 429, 5xx and broken connections


EncoderSettings: TypeAlias = BundledSettings | LocalSettings | EndpointSettings


def known_window(settings: EncoderSettings) -> int | None:
    """Return the maximum tokens of a text for these settings; None if only the loaded model knows."""
    return BUNDLED_TOKENS if isinstance(settings, BundledSettings) else settings.max_tokens


def without_credentials(url: str) -> str:
    """Remove a user name and password from `url`."""
    return re.sub(r"//[^/]*@", "//", url)


def without_secrets(settings: EncoderSettings) -> EncoderSettings:
    """Remove secrets from `settings`, so that they can be stored and compared."""
    return (
        replace(settings, base_url=without_credentials(settings.base_url))
        if isinstance(settings, EndpointSettings)
        else settings
    )


def model_name(settings: EncoderSettings) -> str:
    """Return the name of the model in `settings`, without its location."""
    match settings:
        case BundledSettings():
            return f"all-MiniLM-L6-v2 ({settings.precision})"
        case LocalSettings():
            return settings.model.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
        case EndpointSettings():
            return settings.model


class Encoder(Protocol):
    """Turns texts into vectors. Safe to call from several threads at once."""

    name: str  # for people: "bundled model", "endpoint nomic-embed-text at http://…"
    dimensions: int
    max_tokens: int  # what it reads of a text, special tokens left out
    batch: int  # texts it likes to be given in one bulk call
    identity: str  # weights, precision, pooling, prompts: equal identity = interchangeable vectors

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        """Return one vector for each text: float32 [n, dimensions], unit length. Raises Unavailable."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text without special tokens."""
        ...

    def close(self) -> None:
        """Release all resources; a running call may fail."""
        ...


def make_identity(*, weights: str, pooling: str, tokens: int, precision: str, query: str, document: str) -> str:
    """Make the identity of one of Memex's encoders: short enough to store, computed from everything that changes a vector.

    `query` and `document` are its prompts, `weights` a digest, `tokens` its limit without special tokens."""
    parts = json.dumps([weights, pooling, tokens, precision, query, document], ensure_ascii=False)
    return f"{weights[:12]}-{precision}-{sha256(parts.encode('utf-8', 'replace'))[:16]}"


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate how many tokens each text has, for an encoder that can't be asked: rather too many than too few.

    A word is a token for every four letters begun, any other character that is not white space is one of its own,
    and so is each letter of a script that writes no spaces."""
    return [sum(-(-len(piece) // 4) for piece in _PIECE.findall(text)) for text in texts]
