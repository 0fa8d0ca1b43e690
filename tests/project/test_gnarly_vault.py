"""The gnarly vault is what its list says, and the listing agrees with it path by path."""

from __future__ import annotations

import os
import sys
import time

import pytest

from index.errors import Unavailable
from syncd.vault.path_rules import find_collisions, to_printable
from syncd.vault.vault import Vault
from vault_fixtures import gnarly
from vault_fixtures.zoo import LIMIT, ZOO


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("gnarly")
    gnarly.build(root)
    return root


def test_every_shape_is_made(root):
    missing = [shape.path for shape in gnarly.SHAPES if shape not in gnarly.existing_shapes(root)]
    if sys.platform == "linux":
        assert missing == []
    assert len(gnarly.existing_shapes(root)) > 100


def test_paths_and_words_are_unique():
    paths = [shape.path for shape in gnarly.SHAPES]
    words = [shape.word for shape in gnarly.SHAPES if shape.word]
    assert len(set(paths)) == len(paths)
    assert len(set(words)) == len(words)
    assert all(word.encode() in shape.data for shape in gnarly.SHAPES if (word := shape.word))


def test_the_listing_agrees(root):
    started = time.monotonic()
    listing = Vault(root).list_notes()
    assert time.monotonic() - started < 5
    assert listing.complete
    shapes = gnarly.existing_shapes(root)
    assert set(listing.files) == {shape.path for shape in shapes if shape.outcome in ("indexed", "unreadable")}
    expected = {to_printable(shape.path): shape.reason for shape in shapes if shape.outcome == "skipped"}
    expected |= {r"Names/\xff\xfe": "not UTF-8"} if os.path.lexists(os.fsencode(root) + b"/Names/\xff\xfe") else {}
    assert set(listing.skipped) == set(expected)
    assert [path for path, words in expected.items() if words not in listing.skipped[path]] == []
    assert listing.unread == {"Sync/Away.md"}
    assert find_collisions(listing.files) == sorted(gnarly.TWINS)


def test_every_note_is_read_as_it_was_written_and_nothing_else_is(root):
    vault = Vault(root)
    for shape in gnarly.existing_shapes(root):
        if shape.outcome == "indexed":
            data, stat = vault.read(shape.path)
            assert data == (shape.data if shape.make == "file" else (root / shape.to).read_bytes())
            assert stat == vault.stat(shape.path)
        elif shape.outcome == "skipped" and to_printable(shape.path) == shape.path:
            with pytest.raises(Unavailable):
                vault.read(shape.path)
        elif shape.outcome == "unreadable" and os.geteuid() != 0:
            with pytest.raises(Unavailable, match="permission"):
                vault.read(shape.path)


def test_nothing_in_it_can_be_swept(root):
    assert Vault(root).remove_leftovers() == []


def test_the_zoo_is_a_zoo():
    assert len(ZOO) >= 40
    assert len({beast.name for beast in ZOO}) == len(ZOO)
    small = {beast.name: len(beast.front) for beast in ZOO if "bomb" in beast.name or "below" in beast.name}
    assert all(size < LIMIT for size in small.values())
