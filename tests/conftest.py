"""What several test files share: the bundled model, built once for all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from index.encoders.bundled import BundledEncoder
from index.encoders.settings import Bundled
from syncd.ledger import Ledger


@pytest.fixture(scope="session")
def models() -> Path:
    """A cache folder for built graphs that outlives the run; a graph's name changes with everything in it."""
    chosen = os.environ.get("MEMEX_TEST_CACHE")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"memex-test-models-{os.getuid()}"


@pytest.fixture(scope="session")
def bundled(models: Path) -> Iterator[BundledEncoder]:
    """The bundled model in fp32, as it is by default."""
    encoder = BundledEncoder(Bundled(), cache=models, threads=2)
    yield encoder
    encoder.close()


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger in a state folder of its own."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    opened = Ledger.open(folder / "ledger.db")
    yield opened
    opened.close()
