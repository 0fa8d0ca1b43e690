"""Embed texts through an endpoint in OpenAI's form, `POST {base_url}/embeddings`: Ollama, LM Studio, OpenAI and others.

https://platform.openai.com/docs/api-reference/embeddings. A model name says little about the model that a server
really loaded, so Memex remembers the vector of a known text beside the index: another vector makes another identity."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from index.document_ids import sha256
from index.encoders.settings import SAMPLE, EndpointSettings, Kind, estimate_tokens, make_identity, without_credentials
from index.errors import Unavailable

PROBE = "The quick brown fox jumps over the lazy dog."
PROBES = (PROBE, SAMPLE)  # texts that belong to no user
SAME = 0.99  # minimum cosine at which two vectors of PROBE count as one model's
PAUSE_S, LONGEST_S = 0.5, 8.0  # between retries: doubled each time, or what the server asks for up to the longest
URGENT_S = 10.0  # a search waits no longer than this for one answer
SHORTEST = 64  # a refused text is cut in half and tried again until it is this short
BUSY, REFUSED = frozenset({408, 425, 429}), frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits how long one request may take and how often it is repeated."""

    retries: int
    timeout_s: float


class EndpointEncoder:
    """Keeps connections open, and repeats a request after 429, 5xx and broken connections."""

    def __init__(self, settings: EndpointSettings, *, cache: Path) -> None:
        self.name = f"the endpoint {without_credentials(settings.base_url)} ({settings.model})"
        self.max_tokens = settings.max_tokens
        self.batch = settings.batch
        self._settings = settings
        self._prompts: dict[Kind, str] = {"query": settings.query_prompt, "document": settings.document_prompt}
        self._closed = threading.Event()
        headers = {"authorization": f"Bearer {_read_api_key(settings)}"} if settings.api_key_env else {}
        try:
            self._client = httpx2.Client(headers=headers, timeout=settings.timeout_s)
            probe = self._request_vectors(
                [PROBE], RetryPolicy(1, settings.timeout_s)
            )  # one that is down must not delay the next
            self.dimensions = settings.dimensions or probe.shape[1]
            self._check_dimensions(probe)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeEncodeError) as error:
            message = f"{self.name} can't be called: {error}; check `base_url` and the key"
            raise Unavailable(message, retryable=False) from error
        self.identity = make_identity(
            weights=sha256(settings.model.encode()),
            pooling=f"endpoint {settings.model} {identify_probe(probe[0], settings.model, cache / 'probes')}",
            tokens=settings.max_tokens,
            precision=f"d{self.dimensions}",
            query=settings.query_prompt,
            document=settings.document_prompt,
        )

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        """Return one unit vector for each text, with its prompt in front; an urgent call is repeated at most once."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        prompt = self._prompts[kind]
        rows = [f"{prompt}{text}" or " " for text in texts]  # servers refuse an empty text
        size = self._settings.batch
        policy = RetryPolicy(self._settings.retries, self._settings.timeout_s)
        if urgent:
            policy = RetryPolicy(min(1, policy.retries), min(URGENT_S, policy.timeout_s))
        parts = [self._request_vectors(rows[n : n + size], policy) for n in range(0, len(rows), size)]
        for part in parts:
            self._check_dimensions(part)
        return np.concatenate(parts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens of each text, because an endpoint can't count them."""
        return estimate_tokens(texts)

    def close(self) -> None:
        """End the connections and any pause before a retry."""
        self._closed.set()
        self._client.close()

    def _check_dimensions(self, vectors: np.ndarray) -> None:
        if vectors.shape[1] != self.dimensions:
            message = f"{self.name} gives {vectors.shape[1]} dimensions, not {self.dimensions}; check `dimensions` and `model`"
            raise Unavailable(message, retryable=False)

    def _request_vectors(self, texts: list[str], policy: RetryPolicy) -> np.ndarray:
        response = self._post(texts, policy)
        if response.status_code in REFUSED:
            return self._retry_smaller(texts, response, policy)
        if response.status_code in {401, 403}:
            raise Unavailable(f"{self.name} refuses the key; check `api_key_env` and the key in it", retryable=False)
        if response.status_code == httpx2.codes.NOT_FOUND:
            raise Unavailable(f"{self.name} does not exist (404); check `base_url` and `model`, or pull the model")
        if not response.is_success:
            raise Unavailable(f"{self.name} answers {response.status_code}: {_error_reason(response, texts)}")
        return self._parse(response, len(texts))

    def _retry_smaller(self, texts: list[str], response: httpx2.Response, policy: RetryPolicy) -> np.ndarray:
        """Retry each text alone, and a long one by its first half: one of them may be longer than the model reads."""
        if len(texts) > 1:
            return np.concatenate([self._request_vectors([text], policy) for text in texts])
        if len(texts[0]) <= SHORTEST:
            raise Unavailable(
                f"{self.name} answers {response.status_code}: {_error_reason(response, texts)}; check `model`"
            )
        return self._request_vectors([texts[0][: len(texts[0]) // 2]], policy)

    def _post(self, texts: list[str], policy: RetryPolicy) -> httpx2.Response:
        body: dict[str, Any] = {"model": self._settings.model, "input": texts, "encoding_format": "float"}
        if self._settings.dimensions is not None:
            body["dimensions"] = self._settings.dimensions
        retries, pause = policy.retries, PAUSE_S
        while True:
            wait = pause
            try:
                response = self._client.post(
                    f"{self._settings.base_url.rstrip('/')}/embeddings", json=body, timeout=policy.timeout_s
                )
            except httpx2.RequestError as error:  # of the network, or of an answer that can't be decompressed
                problem = f"{self.name} can't be reached ({str(error) or type(error).__name__}); start it, or check `base_url`"
            except RuntimeError as error:  # httpx2 raises it for a closed client
                raise Unavailable("the encoder is closed", retryable=False) from error
            else:
                if response.status_code not in BUSY and not response.is_server_error:
                    return response
                problem = (
                    f"{self.name} answers {response.status_code}: {_error_reason(response, texts)}; try again later"
                )
                wait = _retry_delay(response, pause)
            if retries <= 0 or self._closed.is_set():
                raise Unavailable(problem)
            retries, pause = retries - 1, min(pause * 2, LONGEST_S)
            self._closed.wait(wait)

    def _parse(self, response: httpx2.Response, count: int) -> np.ndarray:
        """Return the vectors in the order of their texts, of unit length."""
        try:
            rows = {item["index"]: item["embedding"] for item in response.json()["data"]}
            vectors = np.array([rows[row] for row in range(count)], np.float32).reshape(count, -1)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            message = f"{self.name} does not answer like an embeddings endpoint; check `base_url` and `model`"
            raise Unavailable(message) from error
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not lengths.all():
            raise Unavailable(f"{self.name} returned a vector with an invalid number or of length zero; check `model`")
        unit: np.ndarray = vectors / lengths
        return unit


def identify_probe(probe: np.ndarray, model: str, folder: Path) -> str:
    """Return the name of this vector of PROBE: the name of a remembered vector of the same model, or else a new name."""
    prefix = sha256(model.encode())[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.glob(f"{prefix}-*.f32")):
            other = np.frombuffer(file.read_bytes(), np.float32)
            if other.shape == probe.shape and float(other @ probe) >= SAME:
                return file.stem
        name = f"{prefix}-{sha256(probe.tobytes())[:12]}"
        new = folder / f".{name}-{os.getpid()}-{time.monotonic_ns()}"
        new.write_bytes(probe.tobytes())
        new.replace(folder / f"{name}.f32")
    except OSError as error:
        raise Unavailable(f"the encoder's cache can't be used ({error.strerror}); check the state folder") from error
    return name


def _read_api_key(settings: EndpointSettings) -> str:
    key = os.environ.get(settings.api_key_env or "", "").strip()
    if not key:
        message = f"the endpoint {without_credentials(settings.base_url)} needs a key, but {settings.api_key_env} is not set in the environment"
        raise Unavailable(message, retryable=False)
    return key


def _retry_delay(response: httpx2.Response, pause: float) -> float:
    """Return how long the server asks Memex to wait, up to a limit."""
    asked = response.headers.get("retry-after", "")
    return min(float(asked), LONGEST_S) if asked.isascii() and asked.isdigit() else pause


def _error_reason(response: httpx2.Response, texts: Sequence[str]) -> str:
    """Return one line of the server's error, unless it might quote a note: everybody may see why an encoder fails."""
    nobodys = all(any(probe.startswith(text) for probe in PROBES) for text in texts)
    message = " ".join(response.text.split())[:200] if nobodys else ""
    return message or response.reason_phrase
