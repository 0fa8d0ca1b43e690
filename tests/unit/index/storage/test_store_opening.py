"""index/storage/store_opening.py: a store that opens at its first use is like one that is open, on a real LanceDB database."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from index.errors import Unavailable
from index.storage.chunk_store import DAMAGED
from index.storage.store_opening import open_later, open_store
from tests.support import temporary_folders
from tests.support.chunk_rows import DIMENSIONS

tmp_path = temporary_folders.tmp_path_on_disk


@pytest.fixture
def later(tmp_path):
    """Return a function that defers the store, with what is called when it opens."""
    stores = []

    def defer(opened=lambda: None):
        uri = str(tmp_path / "s.lance")
        stores.append(open_later(partial(open_store, uri, dimensions=DIMENSIONS, options={}), DIMENSIONS, opened))
        return stores[-1]

    yield defer
    for store in stores:
        store.close()


def test_damage_is_reported_once_the_store_is_open_and_opens_nothing(later, tmp_path):
    store = later()
    assert not store.is_damaged
    assert not (tmp_path / "s.lance").exists()
    assert store.count() == 0
    assert not store.is_damaged
    store._store._failures = DAMAGED  # as after so many failed searches
    assert store.is_damaged


def test_what_must_happen_at_the_opening_is_tried_again_at_the_next_use(later):
    calls, failures = [], [Unavailable("the catalog can't be written")]

    def opened():
        calls.append(store.count())  # it may use the store itself
        if failures:
            raise failures.pop()

    store = later(opened)
    with pytest.raises(Unavailable):
        store.count()
    assert store.count() == store.count() == 0
    assert calls == [0, 0]


def test_the_store_can_be_used_while_what_must_happen_at_its_opening_waits_for_a_lock(later):
    """A commit holds the lock of its index while it uses the store, and another thread may have opened the store."""
    lock, is_waiting = threading.Lock(), threading.Event()

    def opened():
        is_waiting.set()
        with lock:
            pass

    store = later(opened)
    with ThreadPoolExecutor(2) as pool:
        with lock:
            opening = pool.submit(lambda: store.count())
            assert is_waiting.wait(10)
            assert pool.submit(lambda: store.count()).result(10) == 0
        assert opening.result(10) == 0
