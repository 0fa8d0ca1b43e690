"""Provide handwritten fakes of the parts that tests must not depend on: the model and the remote endpoint."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from index.encoders.settings import BundledSettings, Encoder, EncoderSettings, Kind

if TYPE_CHECKING:
    from index.encoders.embedder import Embedder

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


def words(text: str) -> list[str]:
    """Return the words of `text`, with each CJK character as one word; FakeEncoder uses them as tokens."""
    return _WORD.findall(text.casefold())


@functools.lru_cache(maxsize=100_000)
def _direction(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


class FakeEncoder:
    """A deterministic encoder: texts that share words have similar vectors. It encodes about 50,000 short texts a second."""

    def __init__(self, dimensions: int = 64, *, max_tokens: int = 256, identity: str = "fake", batch: int = 64) -> None:
        self.name = f"{identity} encoder"
        self.dimensions = dimensions
        self.max_tokens = max_tokens
        self.batch = batch
        self.identity = identity
        self.calls: list[tuple[Kind, bool, int]] = []  # (kind, urgent, number of texts) of every encode
        self.closed = False

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        self.calls.append((kind, urgent, len(texts)))
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in words(text)[: self.max_tokens]:
                vectors[row] += _direction(word, self.dimensions)
            if not vectors[row].any():
                vectors[row, 0] = 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(words(text)) for text in texts]

    def close(self) -> None:
        self.closed = True


class BlindEncoder(FakeEncoder):
    """An encoder that gives all texts one vector, so that it tells nothing apart."""

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:  # noqa: ARG002 - as above
        return np.tile(np.eye(1, self.dimensions, dtype=np.float32), (len(texts), 1))


def fake_embedder(encoder: Encoder | None = None) -> Embedder:
    """Return a real Embedder, ready at once, over `encoder` (a FakeEncoder of 64 dimensions if left out)."""
    from index.encoders.embedder import Embedder, EmbedSettings

    chosen = encoder or FakeEncoder()

    def load(_settings: EncoderSettings, _cache: Path) -> Encoder:
        return chosen

    embedder = Embedder(EmbedSettings(encoders=(BundledSettings(),)), cache=Path("unused"), load=load)
    embedder.start()
    assert embedder.wait(60), embedder.problem
    return embedder


class FakeEndpoint:
    """A real HTTP server on a free port that answers as an OpenAI-compatible embeddings endpoint.

    `answers` is a queue of (status, headers, body) to send before any vector; `longest` is the longest text that it
    accepts; another `salt` makes another model."""

    def __init__(self, *, dimensions: int = 64, key: str | None = None, longest: int | None = None) -> None:
        self.dimensions = dimensions
        self.key = key
        self.longest = longest
        self.salt = ""
        self.delay_s = 0.0
        self.answers: list[tuple[int, dict[str, str], str]] = []
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, key: str, body: dict[str, Any]) -> tuple[int, dict[str, str], str]:
        """Return the server's answer to a request."""
        self.requests.append(body)
        time.sleep(self.delay_s)
        if self.answers:
            return self.answers.pop(0)
        if path != "/v1/embeddings":
            return 404, {}, "no such route"
        if self.key is not None and key != f"Bearer {self.key}":
            return 401, {}, '{"error": {"message": "Incorrect API key"}}'
        if self.longest is not None and any(len(text) > self.longest for text in body["input"]):
            return 400, {}, '{"error": {"message": "the input length exceeds the context length"}}'
        encoder = FakeEncoder(body.get("dimensions", self.dimensions))
        vectors = encoder.encode([f"{text} {self.salt}" for text in body["input"]], kind="document", urgent=False) * 3
        data = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)]
        return 200, {}, json.dumps({"object": "list", "data": data[::-1], "model": body["model"]})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, headers, text = endpoint.answer(self.path, self.headers.get("authorization", ""), body)
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(text.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: tests read pytest's output."""

        return Handler


class FakeChat:
    """A real HTTP server on a free port that answers as an OpenAI-compatible chat endpoint, well or badly."""

    def __init__(self) -> None:
        self.status, self.delay_s, self.drip_s = 200, 0.0, 0.0
        self.body = b""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self._ended = threading.Event()
        self.says('{"summary": "A summary.", "tags": ["one-tag", "two-tags"]}')
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, request: Any) -> None:
        """Set the answer to a request; a subclass overrides it."""

    def says(self, content: Any) -> None:
        """Set the text of the next answers."""
        self.body = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                chat.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                chat.answer(chat.requests[-1])
                chat.keys.append(self.headers.get("authorization", ""))
                chat._ended.wait(chat.delay_s)
                try:
                    self.send_response(chat.status)
                    self.send_header("content-length", str(len(chat.body)))
                    self.end_headers()
                    for byte in chat.body if chat.drip_s else ():
                        self.wfile.write(bytes([byte]))
                        if chat._ended.wait(chat.drip_s):
                            return
                    if not chat.drip_s:
                        self.wfile.write(chat.body)
                except OSError:
                    self.close_connection = True  # the client has gone

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: tests read pytest's output."""

        return Handler


class FakeJudge:
    """A reranker that scores a passage by its number of `word`; tests can block it, and let it fail."""

    def __init__(self, word: str = "gold") -> None:
        self.name = "the model 'fake'"
        self.word = word
        self.queries: list[str] = []
        self.asked: list[str] = []  # every passage that was judged
        self.failing: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        self.entered.set()
        assert self.gate.wait(30), "nobody opened the gate"
        if self.failing is not None:
            raise self.failing
        self.queries.append(query)
        self.asked += passages
        return [1 - 1 / (2 + words(passage).count(self.word)) for passage in passages]
