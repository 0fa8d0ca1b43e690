"""A chunk store on a real LanceDB database."""

from __future__ import annotations

import pytest

from index.storage.chunk_store import ChunkStore
from tests.support import temporary_folders
from tests.support.chunk_rows import DIMENSIONS

tmp_path = temporary_folders.tmp_path_on_disk


@pytest.fixture
def store(tmp_path):
    opened = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)
    yield opened
    opened.close()
