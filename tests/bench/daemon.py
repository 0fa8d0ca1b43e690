"""A daemon for measuring, in a process of its own: `python -m tests.bench.daemon VAULT STATE [--made-up]`.

With `--made-up` the vectors of documents are made up, quickly, while queries go through the real model: a vault of
100,000 chunks is then ready in minutes, and a search costs what it costs."""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from index.encoders.embedder import Embedder, EmbedSettings, load_encoder
from index.encoders.settings import Encoder, EncoderSettings, Kind
from syncd.app import App, Ready, import_server_early
from syncd.installation.vault_setup import set_up_vault
from syncd.settings.access import LimitsSettings
from syncd.settings.settings import ServerSettings, Settings, VaultSettings


class MadeUp:
    """The real encoder for queries and captures, made-up vectors for documents in bulk."""

    def __init__(self, real: Encoder) -> None:
        self._real = real
        self.name, self.dimensions, self.max_tokens, self.batch = "made-up", real.dimensions, real.max_tokens, 64
        self.identity = "made-up"

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        if urgent or kind == "query":
            return self._real.encode(texts, kind=kind, urgent=urgent)
        # Nothing is remembered between two calls: the daemon's memory is measured, too.
        seeds = [zlib.crc32(text.encode("utf-8", "replace")) for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(self.dimensions, np.float32) for seed in seeds]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._real.count_tokens(texts)

    def close(self) -> None:
        self._real.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("vault", type=Path)
    parser.add_argument("state", type=Path)
    parser.add_argument("--made-up", action="store_true")
    given = parser.parse_args()
    settings = Settings(
        vault=VaultSettings(path=given.vault),
        state=given.state,
        server=ServerSettings(port=0),
        limits=LimitsSettings(rate=0),  # what is measured asks faster than any agent
    )

    def load(one: EncoderSettings, cache: Path) -> Encoder:
        return MadeUp(load_encoder(one, cache))

    embedder = Embedder(EmbedSettings(), cache=given.state / "models", load=load if given.made_up else None)
    embedder.start()

    def ready(told: Ready) -> None:
        sys.stdout.write(json.dumps({"url": told.url, "key": told.key_file.read_text().strip()}) + "\n")
        sys.stdout.flush()

    import_server_early()
    set_up_vault(settings, now=time.time_ns() // 1_000_000)
    with App(settings, embedder=embedder) as app:
        app.serve(ready)


if __name__ == "__main__":
    main()
